/* Names replaced by others that say nothing, the same by the same: the table, and paths of control groups. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/anonym.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ID 100000 /* beyond the users that machines have names for */
#define ID_DIGITS 12	/* from so many on a hexadecimal word is the ID of a container */

struct name {
	enum anonym_kind kind;
	size_t len;
	uint64_t number;
	char text[];
};

static int compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->text, y->text, x->len);
}

void anonym_init(struct anonym *anonym)
{
	memset(anonym, 0, sizeof(*anonym));
}

void anonym_free(struct anonym *anonym)
{
	tdestroy(anonym->tree, free);
	anonym->tree = NULL;
}

uint64_t anonym_number(struct anonym *anonym, enum anonym_kind kind, const char *text, size_t len)
{
	struct name *name = malloc(sizeof(*name) + len);
	struct name **found = NULL;
	if (name) {
		name->kind = kind;
		name->len = len;
		name->number = 0;
		memcpy(name->text, text, len);
		found = tsearch(name, &anonym->tree, compare);
	}
	if (!found) {
		free(name);
		anonym->failed = -ENOMEM;
		return 0;
	}
	struct name *kept = *found;
	if (kept != name)
		free(name);
	else
		kept->number = ++anonym->next[kind];
	return kept->number;
}

uint64_t anonym_id(struct anonym *anonym, enum anonym_kind kind, uint64_t id)
{
	return id ? FIRST_ID + anonym_number(anonym, kind, (const char *)&id, sizeof(id)) : 0;
}

/* Words that systemd, runtimes and kernels write, by which units, containers and pods are known. */
static bool is_common(const char *word, size_t len)
{
	static const char *const words[] = { "service", "scope", "slice", "mount", "socket", "swap",
		"system", "user", "init", "session", "app", "machine", "systemd", "nspawn",
		"vmspawn", "docker", "podman", "libpod", "payload", "conmon", "cri", "containerd",
		"nerdctl", "crio", "kata", "kata_overhead", "k8s", "io", "kubepods", "burstable",
		"besteffort", "guaranteed", "pod", "lxc", "monitor", "supervisor", "libvirt",
		"qemu", "firecracker", "deleted" };
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i]) == len && !memcmp(words[i], word, len))
			return true;
	}
	return false;
}

static size_t span(const char *text, size_t len, const char *set)
{
	size_t n = 0;
	while (n < len && text[n] && strchr(set, text[n]))
		n++;
	return n;
}

#define HEX "0123456789abcdef"

/* Digits in the places of those that were there, so that its kind can still be told: its number, over and over. */
static void write_hex(struct anonym *anonym, const char *text, size_t len, FILE *out)
{
	char key[64], number[16];
	size_t keep = 0, digits = 0;
	/* A pod's UID is written with "-" here and "_" there. */
	for (size_t i = 0; i < len && keep < sizeof(key); i++) {
		if (isxdigit((unsigned char)text[i]))
			key[keep++] = text[i];
	}
	snprintf(number, sizeof(number), "%08" PRIx64,
		anonym_number(anonym, ANONYM_ID, key, keep) & UINT32_MAX);
	for (size_t i = 0; i < len; i++)
		putc(isxdigit((unsigned char)text[i]) ? number[digits++ % 8] : text[i], out);
}

/* Length of an ID at the beginning of the text: of a container, or the UID of a pod; 0 when there is none. */
static size_t id_length(const char *text, size_t len)
{
	size_t digits = span(text, len, HEX);
	if (digits >= ID_DIGITS)
		return digits;
	size_t uid = span(text, len, HEX "-_");
	return digits == 8 && uid >= 36 && (text[8] == '-' || text[8] == '_') ? 36 : 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* One word. `user`: a number behind it is a user's. Returns its length. */
static size_t write_word(
	struct anonym *anonym, const char *text, size_t len, bool after_user, FILE *out)
{
	size_t id = id_length(text, len), n = 0;
	bool odd = false; /* what no unit's name may hold */
	if (id) {
		write_hex(anonym, text, id, out);
		return id;
	}
	if (len > 3 && !memcmp(text, "pod", 3) && id_length(text + 3, len - 3)) {
		fwrite(text, 1, 3, out);
		return 3;
	}
	for (; n < len && is_word(text[n]); n++)
		odd |= (unsigned char)text[n] >= 0x80;
	size_t digits = span(text, n, "0123456789");
	if (digits == n && after_user)
		fprintf(out, "%" PRIu64, anonym_id(anonym, ANONYM_UID, strtoull(text, NULL, 10)));
	else if (digits == n)
		fprintf(out, "%" PRIu64, anonym_number(anonym, ANONYM_DIGITS, text, n));
	else if (is_common(text, n))
		fwrite(text, 1, n, out);
	else
		fprintf(out, "w%" PRIu64 "%s", anonym_number(anonym, ANONYM_WORD, text, n),
			odd ? "~" : "");
	return n;
}

/* "0::/system.slice/name.service": signs stay, and the words that tell what it is. */
void anonym_cgroup(struct anonym_process *process, const char *line, size_t len, FILE *out)
{
	const char *path = memchr(line, '/', len), *end = line + len;
	size_t head = path ? (size_t)(path - line) : 0;
	/* A hierarchy with a name that somebody gave it tells nothing here. */
	if (!path || span(line, head, "0123456789abcdefghijklmnopqrstuvwxyz_,:=") != head ||
		(memmem(line, head, "name=", 5) && !memmem(line, head, "name=systemd:", 13)))
		return;
	fwrite(line, 1, head, out);
	bool after_user = false;
	for (const char *p = path; p < end;) {
		size_t left = (size_t)(end - p);
		if (left >= 4 && p[0] == '\\' && p[1] == 'x' &&
			span(p + 2, 2, HEX) == 2) { /* a sign that systemd escaped */
			fwrite(p, 1, 4, out);
			p += 4;
		} else if (!is_word(*p)) {
			after_user &= *p == '-' || *p == '@';
			putc(*p++, out);
		} else {
			size_t n = write_word(process->anonym, p, left, after_user, out);
			after_user = n == 4 && !memcmp(p, "user", 4);
			p += n;
		}
	}
}
