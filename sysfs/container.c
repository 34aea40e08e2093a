/* Containers and guests, by the names that their runtimes give to control groups. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/container.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sysfs/cgroup.h"

#define FULL_ID 64 /* hexadecimal digits of the IDs that OCI runtimes give */
#define SHORT_ID 12

/* What stands between prefix and suffix. */
enum shape {
	SHAPE_ID,      /* an ID in hexadecimal */
	SHAPE_NAME,    /* any bytes */
	SHAPE_NUMBER,  /* decimal digits */
	SHAPE_MACHINE, /* a name as systemd escapes it */
};

/* The names of parts, most telling first. */
static const struct rule {
	const char *runtime, *parent; /* parent: the part in front, NULL for any */
	const char *prefix, *suffix;
	enum shape shape;
} rules[] = {
	{ "docker", NULL, "docker-", ".scope", SHAPE_ID },
	{ "podman", NULL, "libpod-payload-", "", SHAPE_ID },
	{ "podman", NULL, "libpod-", ".scope", SHAPE_ID },
	{ "podman", NULL, "libpod-", "", SHAPE_ID },
	{ "containerd", NULL, "cri-containerd-", ".scope", SHAPE_ID },
	{ "containerd", NULL, "nerdctl-", ".scope", SHAPE_ID },
	{ "crio", NULL, "crio-", ".scope", SHAPE_ID },
	{ "crio", NULL, "crio-", "", SHAPE_ID },
	{ "kata", NULL, "kata_", "", SHAPE_ID },
	{ "kata", "kata_overhead", "", "", SHAPE_ID },
	{ "docker", "docker", "", "", SHAPE_ID },
	{ "containerd", "k8s.io", "", "", SHAPE_ID },
	{ "lxc", NULL, "lxc.payload.", "", SHAPE_NAME },
	{ "lxc", "lxc.payload", "", "", SHAPE_NAME },
	{ "lxc", "lxc", "", "", SHAPE_NAME },
	{ "nspawn", NULL, "systemd-nspawn@", ".service", SHAPE_MACHINE },
	{ "vmspawn", NULL, "systemd-vmspawn@", ".service", SHAPE_MACHINE },
	{ "machine", NULL, "machine-", ".scope", SHAPE_MACHINE },
	{ "libvirt", "machine", "", ".libvirt-qemu", SHAPE_MACHINE },
	{ "libvirt", "machine", "", ".libvirt-lxc", SHAPE_MACHINE },
	{ "qemu", "qemu.slice", "", ".scope", SHAPE_NUMBER }, /* guests of Proxmox */
	{ "firecracker", "firecracker", "", "", SHAPE_NAME },
};

struct part {
	const char *text;
	size_t len;
};

static bool is_hex(struct part part)
{
	for (size_t i = 0; i < part.len; i++) {
		if (!isxdigit((unsigned char)part.text[i]) || isupper((unsigned char)part.text[i]))
			return false;
	}
	return true;
}

static bool is_text(struct part part, const char *text)
{
	return part.len == strlen(text) && !memcmp(part.text, text, part.len);
}

static bool starts_with(struct part part, const char *prefix)
{
	size_t len = strlen(prefix);
	return part.len >= len && !memcmp(part.text, prefix, len);
}

/* Copy a name; unescape "\x2d" as systemd_escape made it of "-". What does not fit is cut. */
static void copy_name(struct part part, bool unescape, char *name, size_t size)
{
	size_t at = 0;
	for (size_t i = 0; i < part.len && at + 1 < size; i++) {
		unsigned byte;
		if (unescape && part.len - i >= 4 && part.text[i] == '\\' &&
			part.text[i + 1] == 'x' && isxdigit((unsigned char)part.text[i + 2]) &&
			isxdigit((unsigned char)part.text[i + 3]) &&
			sscanf(part.text + i + 2, "%2x", &byte) == 1 && byte != 0) {
			name[at++] = (char)byte;
			i += 3;
		} else {
			name[at++] = part.text[i];
		}
	}
	name[at] = '\0';
}

/* libvirt calls its machines "qemu-3-name" and "lxc-3-name", where 3 counts starts: only "name" lasts. */
static void strip_libvirt(struct container *container)
{
	const char *name = container->name;
	size_t driver = !strncmp(name, "qemu-", 5) ? 5 : !strncmp(name, "lxc-", 4) ? 4 : 0;
	size_t digits = driver ? strspn(name + driver, "0123456789") : 0;
	const char *rest = name + driver + digits;
	if (!digits || rest[0] != '-' || !rest[1])
		return;
	container->runtime = "libvirt";
	memmove(container->name, rest + 1, strlen(rest + 1) + 1);
}

static bool fits(
	const struct rule *rule, struct part part, struct part parent, struct container *container)
{
	size_t prefix = strlen(rule->prefix), suffix = strlen(rule->suffix);
	if (part.len <= prefix + suffix || (rule->parent && !is_text(parent, rule->parent)) ||
		memcmp(part.text, rule->prefix, prefix) != 0 ||
		memcmp(part.text + part.len - suffix, rule->suffix, suffix) != 0)
		return false;
	struct part core = { part.text + prefix, part.len - prefix - suffix };
	if (rule->shape == SHAPE_ID && (core.len < SHORT_ID || !is_hex(core)))
		return false;
	for (size_t i = 0; i < core.len && rule->shape == SHAPE_NUMBER; i++) {
		if (!isdigit((unsigned char)core.text[i]))
			return false;
	}
	container->runtime = rule->runtime;
	container->is_id = rule->shape == SHAPE_ID;
	copy_name(core, rule->shape == SHAPE_MACHINE, container->name, sizeof(container->name));
	if (rule->shape == SHAPE_MACHINE)
		strip_libvirt(container);
	return true;
}

/*
 * "kubepods-burstable-podUID.slice:cri-containerd:ID" as one part: what becomes of systemd's notation
 * where runc was told to make groups by itself.
 */
static bool fits_colons(struct part part, struct container *container)
{
	static const struct {
		const char *word, *runtime;
	} words[] = { { "cri-containerd", "containerd" }, { "docker", "docker" },
		{ "crio", "crio" }, { "libpod", "podman" }, { "nerdctl", "containerd" } };
	const char *last = memrchr(part.text, ':', part.len);
	const char *first = last ? memrchr(part.text, ':', (size_t)(last - part.text)) : NULL;
	if (!first)
		return false;
	struct part word = { first + 1, (size_t)(last - first - 1) };
	struct part id = { last + 1, (size_t)(part.text + part.len - last - 1) };
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!is_text(word, words[i].word) || id.len < SHORT_ID || !is_hex(id))
			continue;
		container->runtime = words[i].runtime;
		container->is_id = true;
		copy_name(id, false, container->name, sizeof(container->name));
		return true;
	}
	return false;
}

static bool is_container(struct part part, struct part parent, struct container *container)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (fits(&rules[i], part, parent, container))
			return true;
	}
	if (fits_colons(part, container))
		return true;
	if (part.len != FULL_ID || !is_hex(part))
		return false;
	container->runtime = "oci";
	container->is_id = true;
	copy_name(part, false, container->name, sizeof(container->name));
	return true;
}

int container_find(const char *path, struct container *container)
{
	struct container found = { 0 };
	struct part part = { 0 }, parent = { "", 0 };
	const char *next = path;
	size_t left = cgroup_path_length(path);

	while (!found.runtime && (part.text = cgroup_part(&next, &left, &part.len))) {
		if (!is_container(part, parent, &found))
			parent = part;
	}
	if (found.runtime) {
		struct part inner;
		inner.text = cgroup_part(&next, &left, &inner.len);
		if (inner.text && is_text(inner, "supervisor"))
			return -ENOENT;
		*container = found;
		return 0;
	}
	if (container_pod(path, found.name))
		return -ENOENT;
	found.runtime = "pod";
	*container = found;
	return 0;
}

/* The UID in "podUID", or "kubepods-burstable-podUID.slice", where it has "_" for "-". */
static bool parse_pod(struct part part, char pod[CONTAINER_POD_MAX])
{
	const char *kubepods = memmem(part.text, part.len, "kubepods", 8);
	if (kubepods) {
		size_t rest = part.len - (size_t)(kubepods - part.text);
		const char *uid = memmem(kubepods, rest, "-pod", 4);
		if (!uid)
			return false;
		part.len -= (size_t)(uid + 1 - part.text);
		part.text = uid + 1;
		const char *end = memchr(part.text, '.', part.len);
		if (end)
			part.len = (size_t)(end - part.text);
	}
	if (!starts_with(part, "pod") || part.len < 3 + 32 || part.len >= 3 + CONTAINER_POD_MAX)
		return false;
	for (size_t i = 3; i < part.len; i++) {
		char c = part.text[i] == '_' ? '-' : part.text[i];
		if (!isxdigit((unsigned char)c) && c != '-')
			return false;
	}
	for (size_t i = 3; i < part.len; i++)
		pod[i - 3] = part.text[i] == '_' ? '-' : part.text[i];
	pod[part.len - 3] = '\0';
	return true;
}

int container_pod(const char *path, char pod[CONTAINER_POD_MAX])
{
	size_t left = cgroup_path_length(path);
	struct part part;
	bool below = false; /* of a group that holds all pods */

	while ((part.text = cgroup_part(&path, &left, &part.len))) {
		below = below || memmem(part.text, part.len, "kubepods", 8) != NULL;
		if (below && parse_pod(part, pod))
			return 0;
	}
	return -ENOENT;
}

const char *container_label(const struct container *container, char *buf, size_t size)
{
	int len = container->is_id ? SHORT_ID : (int)sizeof(container->name);
	snprintf(buf, size, "%s:%.*s", container->runtime, len, container->name);
	return buf;
}
