/* sysfs/cgroup and sysfs/container: texts and paths as systems really have them, and hostile ones. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/cgroup.h"

#include <errno.h>

#include "sysfs/container.h"
#include "tests/unit/temp.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define HEX12 "0123456789ab"
#define HEX64 HEX12 "cdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "2c48913c-b29f-11e7-9350-020968147796"
#define UID_ "2c48913c_b29f_11e7_9350_020968147796"
#define POD_SLICE "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"
#define USER_MANAGER "/user.slice/user-1000.slice/user@1000.service"

/* The parser is given a text without a NUL behind it. */
static ssize_t parse(const char *text, size_t len, char *path, size_t size)
{
	char *copy = malloc(len ? len : 1);
	memcpy(copy, text, len);
	ssize_t got = cgroup_parse(copy, len, path, size);
	free(copy);
	return got;
}

START_TEST(texts)
{
	static const struct {
		const char *text, *path;
	} good[] = {
		/* version 2 */
		{ "0::/\n", "/" },
		{ "0::/user.slice/user-1000.slice/session-3.scope\n",
			"/user.slice/user-1000.slice/session-3.scope" },
		{ "0::/a", "/a" }, /* without its newline */
		{ "0::/a//\n", "/a" },
		{ "0:://\n", "/" },
		{ "0::/../../system.slice/x.service\n", "/../../system.slice/x.service" },
		{ "0::/old (deleted)\n", "/old (deleted)" },
		{ "0::/a:b::/c\n", "/a:b::/c" },
		{ "0::/blank and \"quote\" \x1b[31m \xff\xfe\n",
			"/blank and \"quote\" \x1b[31m \xff\xfe" },
		/* version 1 */
		{ "12:pids:/docker/" HEX64 "\n11:cpu,cpuacct:/docker/" HEX64
		  "\n10:memory:/docker/" HEX64 "/inner\n1:name=systemd:/docker/" HEX64 "\n",
			"/docker/" HEX64 },
		{ "4:cpu,cpuacct:/c\n3:memory:/m\n2:freezer:/\n1:name=systemd:/\n", "/m" },
		{ "4:cpu,memory:/m\n3:cpuset:/s\n", "/m" },
		{ "4:memoryless:/no\n3:memory:/m\n", "/m" },
		{ "3:cpuset:/s\n2:memory:/\n", "/s" },
		{ "3:cpuset:/\n2:memory:/\n", "/" },
		{ "1:name=elogind:/5\n", "/5" },
		/* hybrid */
		{ "9:memory:/m\n1:name=systemd:/s\n0::/u\n", "/u" },
		{ "9:memory:/m\n1:name=systemd:/s\n0::/\n", "/s" },
		{ "9:memory:/m\n1:name=systemd:/\n0::/\n", "/m" },
		{ "0::/\n1:name=systemd:/s\n9:memory:/m\n", "/s" },
		/* lines of other kinds are passed over */
		{ "\nx\n:\n::\n0::\n0:x\n0::relative\n0::/good\n", "/good" },
	};
	static const char *const bad[] = { "", "\n", "0", "0:", "0::", "0::x\n", "::\n", "/a\n",
		"0:/a\n" };
	char path[256];

	for (size_t i = 0; i < COUNT(good); i++) {
		ssize_t len = parse(good[i].text, strlen(good[i].text), path, sizeof(path));
		ck_assert_msg(len == (ssize_t)strlen(good[i].path), "%s: %zd", good[i].text, len);
		ck_assert_str_eq(path, good[i].path);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		strcpy(path, "kept");
		ck_assert_int_eq(parse(bad[i], strlen(bad[i]), path, sizeof(path)), -EINVAL);
		ck_assert_str_eq(path, "kept");
	}
	ck_assert_int_eq(parse("0::/a\0b\n", 8, path, sizeof(path)), -EINVAL);
	ck_assert_int_eq(parse("0::/abc\n", 8, path, 5), 4);
	strcpy(path, "kept");
	ck_assert_int_eq(parse("0::/abcd\n", 9, path, 5), -ENAMETOOLONG);
	ck_assert_str_eq(path, "kept");
}
END_TEST

/* As many hierarchies as there can be, each with the longest path. */
START_TEST(read_longest)
{
	char name[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX];
	char *text = malloc(20 * CGROUP_PATH_MAX);
	size_t len = 0;
	struct root root;
	struct proc proc;

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = i % 200 ? 'x' : '/';
	name[sizeof(name) - 1] = '\0';
	for (int i = 15; i > 0; i--)
		len += (size_t)sprintf(text + len, "%d:some,controllers,%d:%s\n", i, i, name);
	len += (size_t)sprintf(text + len, "0::/y%s\n", name + 2);
	temp_write("long/proc/7/cgroup", text, len);
	temp_root(&root, "long");
	ck_assert_int_eq(proc_open(&proc, &root, 7), 0);
	ck_assert_int_eq(cgroup_read(&proc, path, sizeof(path)), CGROUP_PATH_MAX - 1);
	ck_assert_int_eq(path[1], 'y');
	proc_close(&proc);
	temp_put("long/proc/8/stat", "");
	ck_assert_int_eq(proc_open(&proc, &root, 8), 0);
	ck_assert_int_eq(cgroup_read(&proc, path, sizeof(path)), -ENOENT);
	proc_close(&proc);
	root_close(&root);
	free(text);
}
END_TEST

START_TEST(units)
{
	static const struct {
		const char *path, *unit;
	} cases[] = {
		{ "/", NULL },
		{ "/init.scope", "init.scope" },
		{ "/system.slice/nginx.service", "nginx.service" },
		{ "/system.slice/nginx.service/", "nginx.service" },
		{ "/system.slice/nginx.service/workers/3", "nginx.service" },
		{ "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service" },
		{ "/system.slice/system-postgresql.slice/postgresql@15-main.service",
			"postgresql@15-main.service" },
		{ "/system.slice/boot-efi.mount", "boot-efi.mount" },
		{ "/system.slice/systemd-fsck@dev-disk-by\\x2duuid-AB\\x2dCD.service",
			"systemd-fsck@dev-disk-by\\x2duuid-AB\\x2dCD.service" },
		{ "/user.slice/user-1000.slice/session-3.scope", "session-3.scope" },
		{ USER_MANAGER, "user@1000.service" },
		{ USER_MANAGER "/init.scope", "user@1000.service/init.scope" },
		{ USER_MANAGER "/app.slice/app-gnome-firefox-4711.scope",
			"user@1000.service/app-gnome-firefox-4711.scope" },
		{ USER_MANAGER "/app.slice/app-org.gnome.Terminal.slice/vte-spawn-a.scope",
			"user@1000.service/vte-spawn-a.scope" },
		{ USER_MANAGER "/session.slice/dbus-broker.service",
			"user@1000.service/dbus-broker.service" },
		{ USER_MANAGER "/user.slice/libpod-" HEX64 ".scope/container",
			"user@1000.service/libpod-" HEX64 ".scope" },
		{ USER_MANAGER "/app.slice", "user@1000.service" },
		{ USER_MANAGER "/odd", "user@1000.service" },
		{ "/user.slice/user-1000.slice", "user-1000.slice" },
		{ "/user.slice/odd", "user.slice" },
		{ POD_SLICE "/cri-containerd-" HEX64 ".scope", "cri-containerd-" HEX64 ".scope" },
		{ "/machine.slice/machine-qemu\\x2d1\\x2dname.scope/libvirt/emulator",
			"machine-qemu\\x2d1\\x2dname.scope" },
		/* units of a container are its own affair */
		{ "/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service",
			"systemd-nspawn@web.service" },
		{ "/lxc.payload.web/system.slice/nginx.service", NULL },
		{ "/docker/" HEX64, NULL },
		{ "/docker/" HEX64 "/system.slice/nginx.service", NULL },
		{ "/kubepods/burstable/pod" UID "/" HEX64, NULL },
		/* escaped, removed, hidden by a namespace */
		{ "/system.slice/_cpu.service", "cpu.service" },
		{ "/system.slice/gone.service (deleted)", "gone.service" },
		{ "/../../system.slice/ssh.service", "ssh.service" },
		{ "/..", NULL },
		/* no unit has such a name */
		{ "/system.slice/evil\x1b[31m.service", "system.slice" },
		{ "/evil name.service", NULL },
		{ "/.service", NULL },
		{ "/.slice", NULL },
		{ "/service", NULL },
	};
	char unit[CGROUP_UNIT_MAX];

	for (size_t i = 0; i < COUNT(cases); i++) {
		strcpy(unit, "kept");
		int err = cgroup_unit(cases[i].path, unit);
		ck_assert_msg(err == (cases[i].unit ? 0 : -ENOENT), "%s: %d", cases[i].path, err);
		ck_assert_msg(!strcmp(unit, cases[i].unit ? cases[i].unit : "kept"), "%s: %s",
			cases[i].path, unit);
	}
}
END_TEST

/* A name may take 255 bytes; what takes more is none. */
START_TEST(units_long)
{
	char path[2 * CGROUP_UNIT_MAX], name[300], unit[CGROUP_UNIT_MAX], want[2 * CGROUP_UNIT_MAX];

	memset(name, 'n', sizeof(name));
	strcpy(name + 255 - strlen(".service"), ".service");
	snprintf(path, sizeof(path), "/user@1.service/%s", name);
	snprintf(want, sizeof(want), "user@1.service/%s", name);
	ck_assert_int_eq(cgroup_unit(path, unit), 0);
	ck_assert_str_eq(unit, want);
	memset(name, 'n', sizeof(name));
	strcpy(name + 256 - strlen(".service"), ".service");
	snprintf(path, sizeof(path), "/%s", name);
	ck_assert_int_eq(cgroup_unit(path, unit), -ENOENT);
	memcpy(name, "user@", 5);
	strcpy(name + 255 - strlen(".service"), ".service");
	snprintf(path, sizeof(path), "/%s/%s", name, name);
	snprintf(want, sizeof(want), "%s/%s", name, name);
	ck_assert_int_eq(cgroup_unit(path, unit), 0);
	ck_assert_str_eq(unit, want);
}
END_TEST

START_TEST(containers)
{
	static const struct {
		const char *path, *label;
	} cases[] = {
		/* Docker: cgroupfs and systemd, below a parent, ECS, in a container */
		{ "/docker/" HEX64, "docker:" HEX12 },
		{ "/system.slice/docker-" HEX64 ".scope", "docker:" HEX12 },
		{ "/system.slice/docker-" HEX64 ".scope/init.scope", "docker:" HEX12 },
		{ "/ours.slice/ours-web.slice/docker-" HEX64 ".scope", "docker:" HEX12 },
		{ "/parent/" HEX64, "oci:" HEX12 },
		{ "/ecs/" HEX12 "/" HEX64, "oci:" HEX12 },
		{ USER_MANAGER "/user.slice/docker-" HEX64 ".scope", "docker:" HEX12 },
		{ "/docker/" HEX64 "/docker/ff" HEX64, "docker:" HEX12 },
		{ "/docker/" HEX64 "/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" HEX64
		  ".scope",
			"docker:" HEX12 },
		{ "/system.slice/docker.service", NULL },
		{ "/docker", NULL },
		{ "/docker/buildkit", NULL },
		/* Podman: systemd with either OCI runtime, without root, cgroupfs, Quadlet */
		{ "/machine.slice/libpod-" HEX64 ".scope", "podman:" HEX12 },
		{ "/machine.slice/libpod-" HEX64 ".scope/container", "podman:" HEX12 },
		{ USER_MANAGER "/user.slice/libpod-" HEX64 ".scope/container", "podman:" HEX12 },
		{ "/machine.slice/machine-libpod_pod_" HEX64 ".slice/libpod-" HEX64 ".scope",
			"podman:" HEX12 },
		{ "/libpod_parent/libpod-" HEX64, "podman:" HEX12 },
		{ "/system.slice/web.service/libpod-payload-" HEX64, "podman:" HEX12 },
		{ "/machine.slice/libpod-conmon-" HEX64 ".scope", NULL },
		{ "/libpod_parent/conmon", NULL },
		{ "/system.slice/web.service/runtime", NULL },
		/* containerd, by itself and for Kubernetes; CRI-O */
		{ "/k8s.io/" HEX64, "containerd:" HEX12 },
		{ "/default/" HEX64, "oci:" HEX12 },
		{ "/system.slice/nerdctl-" HEX64 ".scope", "containerd:" HEX12 },
		{ POD_SLICE "/cri-containerd-" HEX64 ".scope", "containerd:" HEX12 },
		{ POD_SLICE "/docker-" HEX64 ".scope", "docker:" HEX12 },
		{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_
		  ".slice:cri-containerd:" HEX64,
			"containerd:" HEX12 },
		{ POD_SLICE "/crio-" HEX64 ".scope", "crio:" HEX12 },
		{ POD_SLICE "/crio-" HEX64 ".scope/container", "crio:" HEX12 },
		{ "/kubepods/burstable/pod" UID "/crio-" HEX64, "crio:" HEX12 },
		{ "/kubepods/burstable/pod" UID "/" HEX64, "oci:" HEX12 },
		{ "/kubepods/besteffort/pod" UID "/kata_" HEX64, "kata:" HEX12 },
		{ "/kata_overhead/" HEX64, "kata:" HEX12 },
		{ POD_SLICE "/crio-conmon-" HEX64 ".scope", "pod:" UID },
		{ POD_SLICE, "pod:" UID },
		{ "/kubepods.slice", NULL },
		{ "/kubepods.slice/kubepods-burstable.slice", NULL },
		/* LXC, LXD, Incus, Proxmox */
		{ "/lxc.payload.web", "lxc:web" },
		{ "/lxc.payload.web/system.slice/docker-" HEX64 ".scope", "lxc:web" },
		{ "/lxc.payload/web/init.scope", "lxc:web" },
		{ "/lxc/101/ns/system.slice/x.service", "lxc:101" },
		{ "/lxc/web", "lxc:web" },
		{ "/user.slice/user-1000.slice/session-1.scope/lxc.payload.my-box", "lxc:my-box" },
		{ "/lxc.monitor.web", NULL },
		{ "/lxc.monitor/101", NULL },
		{ "/lxc.pivot", NULL },
		{ "/lxc", NULL },
		{ "/lxc.payload.", NULL },
		/* systemd-nspawn and machined */
		{ "/machine.slice/systemd-nspawn@web.service", "nspawn:web" },
		{ "/machine.slice/systemd-nspawn@web.service/payload/system.slice/a.service",
			"nspawn:web" },
		{ "/machine.slice/systemd-nspawn@my\\x2dbox.service/payload", "nspawn:my-box" },
		{ "/machine.slice/systemd-nspawn@web.service/supervisor", NULL },
		{ "/machine.slice/machine-web.scope/payload/init.scope", "machine:web" },
		{ "/machine.slice/machine-my\\x2dbox.scope", "machine:my-box" },
		{ "/machine.slice/machine-web.scope/supervisor", NULL },
		{ "/machine.slice/systemd-vmspawn@vm.service", "vmspawn:vm" },
		/* guests */
		{ "/machine.slice/machine-qemu\\x2d1\\x2dname.scope", "libvirt:name" },
		{ "/machine.slice/machine-qemu\\x2d12\\x2dmy\\x2dguest.scope/libvirt/vcpu0",
			"libvirt:my-guest" },
		{ "/machine.slice/machine-lxc\\x2d5\\x2dbox.scope", "libvirt:box" },
		{ "/machine/qemu-1-name.libvirt-qemu/emulator", "libvirt:name" },
		{ "/machine/name.libvirt-lxc", "libvirt:name" },
		{ "/machine.slice/machine-qemu.scope", "machine:qemu" },
		{ "/machine.slice/machine-qemu\\x2d1\\x2d.scope", "machine:qemu-1-" },
		{ "/qemu.slice/100.scope", "qemu:100" },
		{ "/qemu.slice/helper.scope", NULL },
		{ "/firecracker/vm-7", "firecracker:vm-7" },
		/* none */
		{ "/", NULL },
		{ "/user.slice/user-1000.slice/session-3.scope", NULL },
		{ "/system.slice/docker-proxy.service", NULL },
		{ "/system.slice/docker-" HEX64 ".service", NULL },
		{ "/x/0123456789abcdef", NULL },
		{ "/x/" HEX64 "0", NULL },
		{ "/x/G" HEX64, NULL },
		/* in a namespace, removed, bytes of any kind, escapes that are none */
		{ "/../../docker-" HEX64 ".scope", "docker:" HEX12 },
		{ "/../" HEX64, "oci:" HEX12 },
		{ "/docker/../" HEX64, "docker:" HEX12 },
		{ "/docker/" HEX64 " (deleted)", "docker:" HEX12 },
		{ "/lxc.payload.\x1b[31m\xff \"", "lxc:\x1b[31m\xff \"" },
		{ "/machine.slice/machine-a\\x0a\\x00\\xzz\\x2.scope",
			"machine:a\n\\x00\\xzz\\x2" },
		{ "/a::" HEX64, NULL },
		{ "/:docker:", NULL },
		{ "/:::::", NULL },
	};
	struct container container;
	char label[300];

	for (size_t i = 0; i < COUNT(cases); i++) {
		memset(&container, 0xa5, sizeof(container));
		struct container before = container;
		int err = container_find(cases[i].path, &container);
		ck_assert_msg(err == (cases[i].label ? 0 : -ENOENT), "%s: %d", cases[i].path, err);
		if (err) {
			ck_assert_mem_eq(&container, &before, sizeof(before));
			continue;
		}
		container_label(&container, label, sizeof(label));
		ck_assert_msg(!strcmp(label, cases[i].label), "%s: %s", cases[i].path, label);
	}
}
END_TEST

START_TEST(pods)
{
	static const char *const in[] = { POD_SLICE, POD_SLICE "/cri-containerd-" HEX64 ".scope",
		"/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" HEX64 ".scope",
		"/kubepods/pod" UID "/" HEX64, "/kubepods/besteffort/pod" UID,
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
		"kubelet-kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" HEX64 ".scope",
		"/system.slice/containerd.service/kubepods-burstable-pod" UID_
		".slice:cri-containerd:" HEX64,
		"/docker/" HEX64 "/kubepods/burstable/pod" UID "/" HEX64 };
	static const char *const out[] = { "/", "/pod" UID, "/kubepods/podcast",
		"/kubepods/burstable", "/kubepods/pod" UID UID, "/kubepods/pod" UID "\x1b",
		"/kubepods-podx.slice", "/kubepods-pod", "/system.slice/podman.service" };
	char pod[CONTAINER_POD_MAX];

	for (size_t i = 0; i < COUNT(in); i++) {
		ck_assert_msg(container_pod(in[i], pod) == 0, "%s", in[i]);
		ck_assert_msg(!strcmp(pod, UID), "%s: %s", in[i], pod);
	}
	for (size_t i = 0; i < COUNT(out); i++) {
		strcpy(pod, "kept");
		ck_assert_msg(container_pod(out[i], pod) == -ENOENT, "%s: %s", out[i], pod);
		ck_assert_str_eq(pod, "kept");
	}
	/* static pods: the hash of their file */
	ck_assert_int_eq(container_pod("/kubepods/podf0123456789abcdef0123456789abcde", pod), 0);
	ck_assert_str_eq(pod, "f0123456789abcdef0123456789abcde");
}
END_TEST

/* Pieces of real names in any order and any bytes: no crash, and labels that end. */
START_TEST(random_paths)
{
	static const char *const pieces[] = { "/", "..", "docker", "docker-", HEX64, ".scope",
		".slice", "kubepods", "-pod", "pod", UID, UID_, ":cri-containerd:", "lxc.payload.",
		"machine-", "\\x2d", "\\x", "qemu", "user@1.service", ".service", "_", ":",
		" (deleted)", "\xff", "supervisor" };
	unsigned seed = 1;
	struct container container;
	char path[CGROUP_PATH_MAX], label[300], unit[CGROUP_UNIT_MAX], pod[CONTAINER_POD_MAX];
	size_t found = 0, units_found = 0, pods_found = 0;

	for (size_t round = 0; round < 200000; round++) {
		strcpy(path, "/");
		for (size_t i = 0; i < 8; i++)
			strcat(path, pieces[(size_t)rand_r(&seed) % COUNT(pieces)]);
		if (!container_find(path, &container)) {
			container_label(&container, label, sizeof(label));
			ck_assert_ptr_nonnull(strchr(label, ':'));
			found++;
		}
		units_found += !cgroup_unit(path, unit);
		pods_found += !container_pod(path, pod);
	}
	ck_assert_uint_gt(found, 100);
	ck_assert_uint_gt(units_found, 100);
	ck_assert_uint_gt(pods_found, 10);
}
END_TEST

/* This very process: the path must be one of those that its file has. */
START_TEST(own)
{
	struct root root;
	struct proc proc;
	char path[CGROUP_PATH_MAX], text[16 * CGROUP_PATH_MAX], needle[CGROUP_PATH_MAX + 2];

	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert_int_eq(proc_open(&proc, &root, getpid()), 0);
	ssize_t len = cgroup_read(&proc, path, sizeof(path));
	int fd = openat(proc.fd, "cgroup", O_RDONLY | O_CLOEXEC);
	proc_close(&proc);
	root_close(&root);
	if (fd < 0) {
		ck_assert_int_eq(len, -ENOENT);
		tap_skip("this kernel has no control groups");
		return;
	}
	ssize_t text_len = read(fd, text, sizeof(text) - 1);
	close(fd);
	ck_assert_int_gt(text_len, 0);
	text[text_len] = '\0';
	snprintf(needle, sizeof(needle), ":%s\n", path);
	ck_assert_int_ge(len, 1);
	ck_assert_msg(strstr(text, needle) != NULL, "%s is not in %s", path, text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cgroup");
	TCase *tcase = temp_case(suite, "cgroup");

	tcase_add_test(tcase, texts);
	tcase_add_test(tcase, read_longest);
	tcase_add_test(tcase, units);
	tcase_add_test(tcase, units_long);
	tcase_add_test(tcase, containers);
	tcase_add_test(tcase, pods);
	tcase_add_test(tcase, random_paths);
	tcase_add_test(tcase, own);
	return tap_run(suite);
}
