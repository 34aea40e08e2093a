/* sysfs/ksm: names, texts and readings, on trees captured from kernels and on hostile ones. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/ksm.h"

#include <errno.h>
#include <inttypes.h>

#include "tests/unit/fixture.h"
#include "tests/unit/temp.h"

#define DIRECTORY "sys/kernel/mm/ksm/"

START_TEST(keys)
{
	for (int key = 0; key < KSM_KEYS; key++) {
		const struct ksm_key_info *info = &ksm_keys[key];

		ck_assert_ptr_nonnull(info->name);
		ck_assert_ptr_nonnull(info->unit);
		ck_assert_ptr_nonnull(info->meaning);
		ck_assert_uint_gt(strlen(info->meaning), 0);
		ck_assert_int_eq(ksm_find(info->name), key);
		if (key < KSM_TUNABLES)
			ck_assert_int_lt(info->min, info->max);
	}
	ck_assert_int_eq(ksm_find(""), -ENOENT);
	ck_assert_int_eq(ksm_find("pages_"), -ENOENT);
	ck_assert_int_eq(ksm_find("RUN"), -ENOENT);
	ck_assert_int_eq(ksm_find("run "), -ENOENT);
	ck_assert_int_eq(ksm_find("../ksm/run"), -ENOENT);
}
END_TEST

/* Since when a key is there; those that are not named have been there since before 5.17. */
static bool is_due(const char *tree, enum ksm_key key)
{
	switch (key) {
	case KSM_GENERAL_PROFIT:
		return fixture_since(tree, 6, 4);
	case KSM_PAGES_SCANNED:
	case KSM_ZERO_PAGES:
		return fixture_since(tree, 6, 6);
	case KSM_SMART_SCAN:
	case KSM_PAGES_SKIPPED:
		return fixture_since(tree, 6, 7);
	case KSM_ADVISOR_MODE:
	case KSM_ADVISOR_MAX_CPU:
	case KSM_ADVISOR_MIN_PAGES:
	case KSM_ADVISOR_MAX_PAGES:
	case KSM_ADVISOR_TARGET_SCAN_TIME:
		return fixture_since(tree, 6, 8);
	case KSM_MERGE_ACROSS_NODES: /* a matter of CONFIG_NUMA */
		return fixture_has(tree, DIRECTORY "merge_across_nodes");
	default:
		return true;
	}
}

/* The file as another reader sees it. */
static long long naive(const char *tree, enum ksm_key key)
{
	char path[PATH_MAX], text[128];

	snprintf(path, sizeof(path), "%s/" DIRECTORY "%s", tree, ksm_keys[key].name);
	FILE *file = fopen(path, "re");
	ck_assert_msg(file && fgets(text, sizeof(text), file), "%s", path);
	fclose(file);
	if (key == KSM_ADVISOR_MODE)
		return strstr(text, "[none]") ? 0 : strstr(text, "[scan-time]") ? 1 : 2;
	return strtoll(text, NULL, 10);
}

static void check_tree(const char *tree)
{
	struct root root;
	struct ksm ksm;
	struct ksm_state state;
	int64_t saved, zero = 0;

	fixture_root(tree, &root);
	ck_assert_int_eq(ksm_open(&ksm, &root), 0);
	ksm_read(&ksm, &state);
	for (int key = 0; key < KSM_KEYS; key++) {
		const char *name = ksm_keys[key].name;

		if (!is_due(tree, key)) {
			ck_assert_msg(state.error[key] == -ENOENT, "%s: %s", tree, name);
			continue;
		}
		ck_assert_msg(ksm_has(&state, key), "%s: %s: %d", tree, name, state.error[key]);
		ck_assert_msg(state.value[key] == naive(tree, key), "%s: %s", tree, name);
	}
	ck_assert_int_eq(state.value[KSM_RUN], KSM_RUN_MERGE);
	ck_assert_int_eq(state.value[KSM_PAGES_SHARED], fixture_number(tree, "", "pages_shared"));
	ck_assert_int_eq(state.value[KSM_PAGES_SHARING], fixture_number(tree, "", "pages_sharing"));
	ck_assert_int_gt(state.value[KSM_FULL_SCANS], 1);
	if (ksm_has(&state, KSM_ZERO_PAGES))
		zero = state.value[KSM_ZERO_PAGES];
	ck_assert(ksm_saved_pages(&state, &saved));
	ck_assert_int_eq(saved, fixture_number(tree, "", "pages_sharing") + zero);
	ksm_close(&ksm);
	ck_assert_int_eq(ksm.fd, -1);
	ksm_close(&ksm);
	root_close(&root);
}

START_TEST(captured)
{
	fixture_each(check_tree);
}
END_TEST

START_TEST(no_ksm)
{
	struct root root;
	struct ksm ksm = { .fd = 99 };

	mkdirat(temp_fd, "bare", 0755);
	temp_root(&root, "bare");
	ck_assert_int_eq(ksm_open(&ksm, &root), -ENOENT);
	ck_assert_int_eq(ksm.fd, -1);
	ksm_close(&ksm);
	root_close(&root);
	temp_put("file/sys/kernel/mm/ksm", "not a directory");
	temp_root(&root, "file");
	ck_assert_int_eq(ksm_open(&ksm, &root), -ENOTDIR);
	root_close(&root);
}
END_TEST

static void read_tree(const char *name, struct ksm_state *state)
{
	struct root root;
	struct ksm ksm;

	temp_root(&root, name);
	ck_assert_int_eq(ksm_open(&ksm, &root), 0);
	memset(state, 0xa5, sizeof(*state));
	ksm_read(&ksm, state);
	ksm_close(&ksm);
	root_close(&root);
}

START_TEST(values_as_they_are)
{
	struct ksm_state state;
	int64_t saved;

	temp_put("odd/" DIRECTORY "run", "5\n"); /* memory goes offline */
	temp_put("odd/" DIRECTORY "general_profit", "-123456789012\n");
	temp_put("odd/" DIRECTORY "pages_sharing", "3000000000\n");
	temp_put("odd/" DIRECTORY "ksm_zero_pages", "12345678901\n");
	temp_put("odd/" DIRECTORY "pages_to_scan", "4294967295\n");
	temp_put("odd/" DIRECTORY "pages_scanned", "9223372036854775807\n");
	temp_put("odd/" DIRECTORY "advisor_mode", "none [scan-time]\n");
	/* what a vendor added */
	temp_put("odd/" DIRECTORY "zero_pages_only", "1\n");
	temp_put("odd/" DIRECTORY "deeper/run", "1\n");
	read_tree("odd", &state);
	ck_assert_int_eq(state.value[KSM_RUN], 5);
	ck_assert_int_eq(state.value[KSM_GENERAL_PROFIT], INT64_C(-123456789012));
	ck_assert_int_eq(state.value[KSM_PAGES_TO_SCAN], UINT32_MAX);
	ck_assert_int_eq(state.value[KSM_PAGES_SCANNED], INT64_MAX);
	ck_assert_int_eq(state.value[KSM_ADVISOR_MODE], KSM_ADVISOR_SCAN_TIME);
	ck_assert(ksm_saved_pages(&state, &saved));
	ck_assert_int_eq(saved, INT64_C(15345678901));

	int known = 0;
	for (int key = 0; key < KSM_KEYS; key++) {
		known += ksm_has(&state, key);
		if (!ksm_has(&state, key))
			ck_assert_int_eq(state.error[key], -ENOENT);
	}
	ck_assert_int_eq(known, 7);
	temp_put("odd/" DIRECTORY "run", "4\n");
	read_tree("odd", &state);
	ck_assert(ksm_has(&state, KSM_RUN));
	ck_assert_int_eq(state.value[KSM_RUN], 4);
}
END_TEST

/* Whatever a file holds that is no number: the key is not known, and others are. */
START_TEST(values_not_known)
{
	const struct {
		const char *text;
		int err;
	} cases[] = {
		{ "", -EINVAL },
		{ "\n", -EINVAL },
		{ "-\n", -EINVAL },
		{ "one\n", -EINVAL },
		{ "1 2\n", -EINVAL },
		{ "1.2e+07\n", -EINVAL },
		{ "99999999999999999999\n", -ERANGE },
	};
	struct ksm_state state;

	for (int key = 0; key < KSM_KEYS; key++) {
		char path[128], other[128];
		int next = (key + 1) % KSM_KEYS;
		/* A key of its own: "advisor_mode" holds words. */
		if (key == KSM_ADVISOR_MODE || next == KSM_ADVISOR_MODE)
			continue;
		snprintf(path, sizeof(path), "bad%d/" DIRECTORY "%s", key, ksm_keys[key].name);
		snprintf(other, sizeof(other), "bad%d/" DIRECTORY "%s", key, ksm_keys[next].name);
		temp_put(other, "7\n");
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			char name[16];
			snprintf(name, sizeof(name), "bad%d", key);
			temp_put(path, cases[i].text);
			read_tree(name, &state);
			ck_assert_msg(state.error[key] == cases[i].err, "%s '%s': %d",
				ksm_keys[key].name, cases[i].text, state.error[key]);
			ck_assert(ksm_has(&state, next));
			ck_assert_int_eq(state.value[next], 7);
		}
	}
}
END_TEST

START_TEST(saved_not_known)
{
	struct ksm_state state;
	int64_t saved = 77;

	temp_put("zero only/" DIRECTORY "ksm_zero_pages", "5\n");
	read_tree("zero only", &state);
	ck_assert(!ksm_saved_pages(&state, &saved));
	ck_assert_int_eq(saved, 77);
	temp_put("old/" DIRECTORY "pages_sharing", "5\n");
	read_tree("old", &state);
	ck_assert(ksm_saved_pages(&state, &saved));
	ck_assert_int_eq(saved, 5);
}
END_TEST

START_TEST(get_untouched)
{
	struct root root;
	struct ksm ksm;
	int64_t value = 77;

	temp_put("get/" DIRECTORY "run", "x\n");
	temp_root(&root, "get");
	ck_assert_int_eq(ksm_open(&ksm, &root), 0);
	ck_assert_int_eq(ksm_get(&ksm, KSM_RUN, &value), -EINVAL);
	ck_assert_int_eq(ksm_get(&ksm, KSM_SMART_SCAN, &value), -ENOENT);
	mkdirat(ksm.fd, "full_scans", 0755);
	ck_assert_int_eq(ksm_get(&ksm, KSM_FULL_SCANS, &value), -EISDIR);
	ck_assert_int_eq(value, 77);
	ksm_close(&ksm);
	root_close(&root);
}
END_TEST

static void expect_advisor(const char *text, int want_err, int64_t want)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1); /* without a NUL */
	int64_t value = 77;

	memcpy(copy, text, len);
	int err = ksm_parse(KSM_ADVISOR_MODE, copy, len, &value);
	free(copy);
	ck_assert_msg(err == want_err, "'%s': %d", text, err);
	ck_assert_msg(value == (err ? 77 : want), "'%s': %" PRId64, text, value);
}

START_TEST(advisor_words)
{
	expect_advisor("[none] scan-time\n", 0, KSM_ADVISOR_NONE);
	expect_advisor("none [scan-time]\n", 0, KSM_ADVISOR_SCAN_TIME);
	expect_advisor("none [scan-time] psi\n", 0, KSM_ADVISOR_SCAN_TIME);
	expect_advisor("none scan-time [psi]\n", 0, KSM_ADVISOR_OTHER);
	expect_advisor("[]\n", 0, KSM_ADVISOR_OTHER);
	/* of a command line */
	expect_advisor("none", 0, KSM_ADVISOR_NONE);
	expect_advisor("scan-time", 0, KSM_ADVISOR_SCAN_TIME);
	expect_advisor("scan-time\n", 0, KSM_ADVISOR_SCAN_TIME);
	expect_advisor("psi", -EINVAL, 0);
	expect_advisor("scan", -EINVAL, 0);
	expect_advisor("scan-time ", -EINVAL, 0);
	expect_advisor("NONE", -EINVAL, 0);
	expect_advisor("none scan-time", -EINVAL, 0);
	expect_advisor("0", -EINVAL, 0);
	expect_advisor("", -EINVAL, 0);
	expect_advisor("\n", -EINVAL, 0);
	expect_advisor("[none", -EINVAL, 0);
	expect_advisor("]none[", -EINVAL, 0);
}
END_TEST

START_TEST(texts)
{
	char buf[32];
	int64_t value;

	for (int key = 0; key < KSM_TUNABLES; key++) {
		const int64_t values[] = { ksm_keys[key].min, ksm_keys[key].max };
		for (int i = 0; i < 2; i++) {
			ck_assert_ptr_eq(ksm_format(key, values[i], buf, sizeof(buf)), buf);
			ck_assert_int_eq(ksm_parse(key, buf, strlen(buf), &value), 0);
			ck_assert_int_eq(value, values[i]);
		}
	}
	ck_assert_str_eq(ksm_format(KSM_ADVISOR_MODE, 0, buf, sizeof(buf)), "none");
	ck_assert_str_eq(ksm_format(KSM_ADVISOR_MODE, 1, buf, sizeof(buf)), "scan-time");
	ck_assert_str_eq(ksm_format(KSM_ADVISOR_MODE, 2, buf, sizeof(buf)), "other");
	ck_assert_str_eq(ksm_format(KSM_GENERAL_PROFIT, INT64_MIN, buf, sizeof(buf)),
		"-9223372036854775808");
	ck_assert_str_eq(ksm_format(KSM_PAGES_SHARING, 12000000, buf, sizeof(buf)), "12000000");
	ck_assert_str_eq(
		ksm_format(KSM_PAGES_SHARING, 12345, buf, 3), "12"); /* cut, with its NUL */
	ck_assert_int_eq(ksm_parse(KSM_RUN, "none", 4, &value), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ksm");
	TCase *tcase = temp_case(suite, "ksm");

	tcase_add_test(tcase, keys);
	tcase_add_test(tcase, captured);
	tcase_add_test(tcase, no_ksm);
	tcase_add_test(tcase, values_as_they_are);
	tcase_add_test(tcase, values_not_known);
	tcase_add_test(tcase, saved_not_known);
	tcase_add_test(tcase, get_untouched);
	tcase_add_test(tcase, advisor_words);
	tcase_add_test(tcase, texts);
	return tap_run(suite);
}
