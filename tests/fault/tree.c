/* A copy of a captured kernel whose knobs a program under test writes, and what they are. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fault/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_NS 2000 /* what ksmd takes for one */

static void need(bool fine, const char *what)
{
	if (fine)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

void tree_make(struct tree *tree, const char *name)
{
	char command[512];
	const char *parent = getenv("TMPDIR");
	snprintf(tree->work, sizeof(tree->work), "%.100s/ksm-fault.XXXXXX",
		parent ? parent : "/tmp");
	need(mkdtemp(tree->work), "mkdtemp");
	snprintf(tree->root, sizeof(tree->root), "%s/root", tree->work);
	snprintf(command, sizeof(command), "cp -r tests/fixtures/%s '%s'", name, tree->root);
	need(system(command) == 0, command); /* NOLINT(cert-env33-c): a path of our own */
	need(root_open(&tree->handle, tree->root) == 0, tree->root);
	need(ksm_open(&tree->ksm, &tree->handle) == 0, "the knobs of the captured kernel");
	ksm_read(&tree->ksm, &tree->found);
}

void tree_remove(struct tree *tree)
{
	char command[512];
	ksm_close(&tree->ksm);
	root_close(&tree->handle);
	snprintf(command, sizeof(command), "rm -rf '%s'", tree->work);
	need(system(command) == 0, command); /* NOLINT(cert-env33-c): a path of our own */
}

static void write_knob(const struct tree *tree, enum ksm_key key, int64_t value)
{
	char text[64], word[32];
	ksm_format(key, value, word, sizeof(word));
	if (key == KSM_ADVISOR_MODE)
		snprintf(text, sizeof(text), "%s\n",
			value == KSM_ADVISOR_NONE ? "[none] scan-time" : "none [scan-time]");
	else
		snprintf(text, sizeof(text), "%s\n", word);
	/* A program that reads meanwhile meets a whole value, as of the kernel. */
	int fd = openat(tree->ksm.fd, "../.put", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
			renameat(tree->ksm.fd, "../.put", tree->ksm.fd, ksm_keys[key].name) == 0,
		ksm_keys[key].name);
	close(fd);
}

void tree_reset(const struct tree *tree)
{
	struct ksm_state now;
	tree_read(tree, &now);
	for (int key = 0; key < KSM_TUNABLES; key++) {
		if (ksm_has(&tree->found, (enum ksm_key)key) &&
			(now.error[key] || now.value[key] != tree->found.value[key]))
			write_knob(tree, (enum ksm_key)key, tree->found.value[key]);
	}
}

void tree_put(struct tree *tree, enum ksm_key key, int64_t value)
{
	write_knob(tree, key, value);
	tree->found.value[key] = value;
}

void tree_scan(const struct tree *tree, int64_t pages)
{
	struct ksm_state now;
	char text[64] = "";
	tree_read(tree, &now);
	write_knob(tree, KSM_PAGES_SCANNED, now.value[KSM_PAGES_SCANNED] + pages);
	write_knob(tree, KSM_FULL_SCANS, now.value[KSM_FULL_SCANS] + 1);
	/* as tests/fixtures/linux-6.18 has ksmd */
	int fd = openat(tree->handle.fd, "proc/37/schedstat", O_RDWR | O_CLOEXEC);
	need(fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) > 0, "schedstat");
	long long cpu_ns = strtoll(text, NULL, 10) + pages * PAGE_NS;
	int len = snprintf(text, sizeof(text), "%lld 1 1\n", cpu_ns);
	need(pwrite(fd, text, (size_t)len, 0) == len, "schedstat");
	close(fd);
}

void tree_read(const struct tree *tree, struct ksm_state *state)
{
	ksm_read(&tree->ksm, state);
}

bool tree_same(const struct ksm_state *a, const struct ksm_state *b, enum ksm_key *key)
{
	for (int k = 0; k < KSM_TUNABLES; k++) {
		*key = (enum ksm_key)k;
		if (a->error[k] != b->error[k] || (!a->error[k] && a->value[k] != b->value[k]))
			return false;
	}
	return true;
}
