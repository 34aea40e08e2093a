/* Names replaced by others that say nothing: the files of /proc/PID but control groups. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/anonym.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "sysfs/smaps.h"

#define FIRST_ADDRESS 0x10000
#define PAGE 0x1000 /* between areas that do not touch */

void anonym_begin(
	struct anonym_process *process, struct anonym *anonym, const char *comm, int kernel_thread)
{
	*process = (struct anonym_process){ .anonym = anonym, .next_address = FIRST_ADDRESS };
	if (kernel_thread)
		snprintf(process->name, sizeof(process->name), "%s", comm);
	else
		snprintf(process->name, sizeof(process->name), "p%" PRIu64,
			anonym_number(anonym, ANONYM_PROGRAM, comm, strlen(comm)));
}

/* Fields of stat, by their numbers in proc(5), that are addresses, of code and stack and in the kernel. */
static bool is_address(int field)
{
	return (field >= 26 && field <= 30) || field == 35 || (field >= 45 && field <= 51);
}

void anonym_stat(struct anonym_process *process, const char *text, size_t len, FILE *out)
{
	const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len);
	if (!open || !close || close < open)
		return;
	fprintf(out, "%.*s(%s)", (int)(open - text), text, process->name);
	const char *p = close + 1, *end = text + len;
	for (int field = 3; p < end && *p == ' '; field++) {
		const char *next = memchr(p + 1, ' ', (size_t)(end - p - 1));
		size_t width = (size_t)((next ? next : end) - p);
		if (width && p[width - 1] == '\n')
			width--;
		if (is_address(field))
			fputs(" 0", out);
		else
			fwrite(p, 1, width, out);
		p = next ? next : end;
	}
	putc('\n', out);
}

void anonym_comm(struct anonym_process *process, const char *text, size_t len, FILE *out)
{
	(void)text;
	if (len)
		fprintf(out, "%s\n", process->name);
}

/* By an empty one kernel threads are known. */
void anonym_cmdline(struct anonym_process *process, const char *text, size_t len, FILE *out)
{
	(void)text;
	if (len)
		fwrite(process->name, 1, strlen(process->name) + 1, out);
}

/* "Uid:\t0\t1\t..." */
static void write_ids(
	struct anonym *anonym, enum anonym_kind kind, const char *line, size_t len, FILE *out)
{
	const char *p = line, *end = line + len;
	while (p < end) {
		uint64_t id = 0;
		if (!isdigit((unsigned char)*p)) {
			putc(*p++, out);
			continue;
		}
		for (; p < end && isdigit((unsigned char)*p); p++)
			id = id * 10 + (uint64_t)(*p - '0');
		fprintf(out, "%" PRIu64, anonym_id(anonym, kind, id));
	}
}

/* Lines that hold numbers alone, and words of the kernel. What later kernels add is left out. */
static bool is_plain(const char *line, size_t len)
{
	static const char *const names[] = { "Umask:", "State:", "Tgid:", "Ngid:", "Pid:", "PPid:",
		"TracerPid:", "FDSize:", "NS", "Kthread:", "Vm", "Rss",
		"HugetlbPages:", "CoreDumping:", "THP_enabled:", "Threads:", "Sig",
		"ShdPnd:", "Cap", "NoNewPrivs:", "Seccomp", "Speculation", "Cpus_allowed",
		"Mems_allowed", "voluntary_", "nonvoluntary_" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (len >= strlen(names[i]) && !memcmp(line, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

void anonym_status(struct anonym_process *process, const char *line, size_t len, FILE *out)
{
	if (len > 5 && !memcmp(line, "Name:", 5))
		fprintf(out, "Name:\t%s\n", process->name);
	else if (len > 4 && !memcmp(line, "Uid:", 4))
		write_ids(process->anonym, ANONYM_UID, line, len, out);
	else if (len > 4 && !memcmp(line, "Gid:", 4))
		write_ids(process->anonym, ANONYM_GID, line, len, out);
	else if (is_plain(line, len))
		fwrite(line, 1, len, out);
}

/* The name of an area: those of the kernel stay. */
static void write_area_name(struct anonym *anonym, const char *name, size_t len, FILE *out)
{
	static const char gone[] = " (deleted)", memfd[] = "/memfd:";
	size_t gone_len = sizeof(gone) - 1, memfd_len = sizeof(memfd) - 1;
	const char *colon = memchr(name, ':', len);

	if (len && *name == '[' && (!colon || (len > 7 && !memcmp(name, "[stack:", 7)))) {
		fwrite(name, 1, len, out);
	} else if (len && *name == '[') {
		fwrite(name, 1, (size_t)(colon + 1 - name), out);
		fprintf(out, "w%" PRIu64 "]", anonym_number(anonym, ANONYM_WORD, name, len));
	} else if (len) {
		bool is_gone = len > gone_len && !memcmp(name + len - gone_len, gone, gone_len);
		size_t path = is_gone ? len - gone_len : len;
		fprintf(out, "%sf%" PRIu64 "%s",
			path > memfd_len && !memcmp(name, memfd, memfd_len) ? memfd : "/",
			anonym_number(anonym, ANONYM_FILE, name, path), is_gone ? gone : "");
	}
	putc('\n', out);
}

/* The same size at another place. What touched still touches. */
static void move(struct anonym_process *process, uint64_t *start, uint64_t *end)
{
	uint64_t size = *end - *start;
	if (*start > INT64_MAX) /* [vsyscall] is at the same place everywhere */
		return;
	if (*start != process->last_end)
		process->next_address += PAGE;
	process->last_end = *end;
	if (size > INT64_MAX / 4 || process->next_address > INT64_MAX / 4) /* none has as much */
		size = 0;
	*start = process->next_address;
	*end = process->next_address += size;
}

static int take(const struct smaps_area *area, void *data)
{
	*(struct smaps_area *)data = *area;
	return 0;
}

/* By the parser that reads them later, so that both take the same for an area. */
void anonym_smaps(struct anonym_process *process, const char *line, size_t len, FILE *out)
{
	struct smaps_parser parser = { 0 };
	struct smaps_area area = { 0 };
	uint64_t inode = 0;

	if (len && *line >= 'A' && *line <= 'Z') { /* a field of the kernel's */
		fwrite(line, 1, len, out);
		return;
	}
	if (smaps_parse(&parser, line, len, take, &area) || smaps_finish(&parser, take, &area))
		return;
	if (!strcmp(area.name, "[rollup]")) {
		area.start = FIRST_ADDRESS;
		area.end = 2 * FIRST_ADDRESS;
	} else {
		move(process, &area.start, &area.end);
	}
	if (area.inode)
		inode = anonym_number(process->anonym, ANONYM_INODE, (const char *)&area.inode,
			sizeof(area.inode));
	fprintf(out, "%08" PRIx64 "-%08" PRIx64 " %c%c%c%c 00000000 %s %" PRIu64 " ", area.start,
		area.end, area.bits & SMAPS_READ ? 'r' : '-', area.bits & SMAPS_WRITE ? 'w' : '-',
		area.bits & SMAPS_EXEC ? 'x' : '-', area.bits & SMAPS_MAYSHARE ? 's' : 'p',
		inode ? "fd:00" : "00:00", inode);
	write_area_name(process->anonym, area.name, strlen(area.name), out);
}
