/* ksmctl daemon: the adaptive service. One process, one loop. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "ksmctl/config.h"
#include "ksmctl/governor.h"
#include "ksmctl/journal.h"
#include "ksmctl/ksmctl.h"
#include "ksmctl/notify.h"
#include "ksmctl/privilege.h"
#include "sysfs/proc.h"

/* Process events are gathered for this long before they are looked at. */
#define GATHER_MS 250
/* The pressure trigger: some task stalled for 150 ms within 2 s. */
#define PRESSURE_TRIGGER "some 150000 2000000"

#define RESTORE_TRIES 3
#define RESTORE_WAIT_US (50 * 1000)

struct daemon {
	struct ctl *ctl;
	const char *config_path;
	bool config_given, verbose;
	struct governor governor;
	struct journal journal;
	struct state_dir dir;
	int epoll_fd, timer_fd, signal_fd, pressure_fd;
	int64_t due_ms, watchdog_ms;
	bool stopping, write_told, note_told, connector_lost_told;
	bool no_timer; /* it could not be set: the wait is bounded instead */
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int open_state(struct daemon *daemon)
{
	const char *path = daemon->governor.config.state_dir;
	pid_t holder = 0;
	int err = state_open(&daemon->dir, path, true);
	if (err && err != -EPERM)
		return ctl_fail("cannot open", path, err);
	if (!err)
		err = state_lock(&daemon->dir, &holder);
	if (err == -EPERM) {
		ctl_error(
			"%s and the files in it must belong to root and be writable by nobody else",
			path);
		return CTL_DENIED;
	}
	if (err == -EBUSY) {
		ctl_error("a daemon is running already (PID %d)", (int)holder);
		return CTL_FAILED;
	}
	return err ? ctl_fail("cannot lock", path, err) : CTL_OK;
}

static int add_fd(const struct daemon *daemon, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	return epoll_ctl(daemon->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Without PSI the looks at rest notice pressure too, a little later. */
static int open_pressure(const struct daemon *daemon)
{
	int fd = openat(
		daemon->ctl->root.fd, "proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (daemon->ctl->root.foreign ||
		write(fd, PRESSURE_TRIGGER, sizeof(PRESSURE_TRIGGER)) < 0 ||
		add_fd(daemon, fd, EPOLLPRI)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_loop(struct daemon *daemon)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGQUIT);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	daemon->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	daemon->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	daemon->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (daemon->epoll_fd < 0 || daemon->timer_fd < 0 || daemon->signal_fd < 0)
		return -errno;
	int err = add_fd(daemon, daemon->timer_fd, EPOLLIN);
	if (!err)
		err = add_fd(daemon, daemon->signal_fd, EPOLLIN);
	daemon->pressure_fd = open_pressure(daemon);
	return err;
}

/* Arm the one-shot wake-up by process events, or for the first time put it into the loop. */
static void await_events(const struct daemon *daemon, int op)
{
	int fd = daemon->governor.watch.connector.fd;
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = fd };
	if (fd >= 0 && epoll_ctl(daemon->epoll_fd, op, fd, &event) < 0 && errno == ENOENT)
		epoll_ctl(daemon->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void set_timer(struct daemon *daemon, int64_t due_ms)
{
	struct itimerspec spec = { .it_value = { .tv_sec = due_ms / 1000,
					   .tv_nsec = due_ms % 1000 * 1000000 } };
	daemon->due_ms = due_ms;
	daemon->no_timer = timerfd_settime(daemon->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0;
}

/* Tell failures once, and what changed where that was asked for. */
static void tell(struct daemon *daemon, int noted)
{
	const struct governor *governor = &daemon->governor;
	const struct policy_decision *decision = &governor->decision;
	if (governor->write_error && !daemon->write_told)
		ctl_fail("cannot write", ksm_keys[governor->write_failed].name,
			governor->write_error);
	daemon->write_told = governor->write_error != 0;
	if (noted < 0 && !daemon->note_told)
		ctl_error("cannot write the status in %s: %s", governor->config.state_dir,
			strerror(-noted));
	if (noted)
		daemon->note_told = noted < 0;
	if (!daemon->connector_lost_told && governor->watch.connector.fd < 0) {
		daemon->connector_lost_told = true;
		ctl_error("no process connector here: new processes are found by looking through "
			  "/proc");
	}
	if (noted != 1)
		return;
	char status[256];
	snprintf(status, sizeof(status), "STATUS=%s: %s", policy_phase_name(decision->phase),
		policy_reason_text(decision->reason));
	notify_send(status);
	if (daemon->verbose || decision->reason == POLICY_R_FOREIGN ||
		decision->reason == POLICY_R_STALE)
		ctl_error("%s: %s", policy_phase_name(decision->phase),
			policy_reason_text(decision->reason));
}

static void look(struct daemon *daemon)
{
	int64_t now = now_ms(), wait = governor_step(&daemon->governor, now);
	tell(daemon, journal_note(&daemon->journal, &daemon->governor, now));
	if (daemon->watchdog_ms) {
		notify_send("WATCHDOG=1");
		if (wait > daemon->watchdog_ms / 2)
			wait = daemon->watchdog_ms / 2;
	}
	await_events(daemon, EPOLL_CTL_MOD);
	set_timer(daemon, now + wait);
}

static void reload(struct daemon *daemon)
{
	struct config config;
	char line[64];
	snprintf(line, sizeof(line), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, now_ms() * 1000);
	notify_send(line);
	if (ctl_read_config(&config, daemon->config_path, daemon->config_given) == CTL_OK) {
		if (strcmp(config.state_dir, daemon->governor.config.state_dir) != 0) {
			ctl_error("state-dir changes at the next start only");
			memcpy(config.state_dir, daemon->governor.config.state_dir,
				sizeof(config.state_dir));
		}
		if (config.ksmd_nice != daemon->governor.config.ksmd_nice) {
			ctl_error("ksmd-nice changes at the next start only");
			config.ksmd_nice = daemon->governor.config.ksmd_nice;
		}
		daemon->governor.config = config;
		ctl_error("configuration read again");
	} else {
		ctl_error("the configuration stays as it was");
	}
	notify_send("READY=1");
}

static void take_signals(struct daemon *daemon)
{
	struct signalfd_siginfo info;
	while (read(daemon->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(daemon);
		else if (info.ssi_signo == SIGUSR1)
			daemon->governor.look_now = true;
		else
			daemon->stopping = true;
	}
}

static void loop(struct daemon *daemon)
{
	await_events(daemon, EPOLL_CTL_ADD);
	look(daemon);
	notify_send("READY=1");
	while (!daemon->stopping) {
		struct epoll_event events[4];
		uint64_t expirations;
		bool now = false;
		int count =
			epoll_wait(daemon->epoll_fd, events, 4, daemon->no_timer ? GATHER_MS : -1);
		if (count < 0 && errno != EINTR)
			usleep(GATHER_MS * 1000); /* a fault that stays must not cost a core */
		now = count < 0 || daemon->no_timer;
		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;
			if (fd == daemon->signal_fd) {
				take_signals(daemon);
				now = true;
			} else if (fd == daemon->timer_fd) {
				now |= read(fd, &expirations, sizeof(expirations)) > 0;
			} else if (fd == daemon->pressure_fd) {
				now = true;
			} else if (daemon->due_ms > now_ms() + GATHER_MS) {
				set_timer(daemon, now_ms() + GATHER_MS);
			}
		}
		if (now && !daemon->stopping)
			look(daemon);
	}
}

/* Put the kernel back as it was found. Returns an exit code. */
static int restore(struct daemon *daemon)
{
	enum ksm_key failed = KSM_RUN;
	if (!daemon->governor.first_known)
		return CTL_OK;
	int err = governor_restore(&daemon->governor, &failed);
	/* What failed once may be a passing fault, and nobody comes after us to put it right. */
	for (int tries = 1; err && tries < RESTORE_TRIES; tries++) {
		usleep(RESTORE_WAIT_US);
		err = governor_restore(&daemon->governor, &failed);
	}
	if (err)
		return ctl_fail("cannot restore", ksm_keys[failed].name, err);
	unlinkat(daemon->dir.fd, JOURNAL_STATUS, 0);
	err = state_drop_first(&daemon->dir);
	return err ? ctl_fail("cannot remove", "the first values", err) : CTL_OK;
}

/* Whether ksm_stat says of a process that it opted in; asked of ourselves. */
static bool kernel_tells_opted(const struct root *root)
{
	struct proc self;
	struct proc_ksm ksm = { 0 };
	if (proc_open(&self, root, getpid()))
		return false;
	if (proc_read_ksm_stat(&self, &ksm))
		ksm.present = 0;
	proc_close(&self);
	return ksm.present & PROC_KSM_MERGEABLE;
}

static int serve(struct daemon *daemon)
{
	struct governor *governor = &daemon->governor;
	const char *what;

	int code = ctl_read_config(&governor->config, daemon->config_path, daemon->config_given);
	if (!code)
		code = ctl_open(daemon->ctl);
	if (!code)
		code = open_state(daemon);
	if (code)
		return code;
	governor->root = &daemon->ctl->root;
	governor->ksm = &daemon->ctl->ksm;
	governor->dir = &daemon->dir;
	daemon->watchdog_ms = notify_watchdog_ms();
	int err = open_loop(daemon);
	if (err)
		return ctl_fail("cannot open", "the event loop", err);
	err = governor_open(governor, now_ms(), &what);
	if (err) {
		code = ctl_fail("cannot prepare", what, err);
	} else {
		err = governor_set_nice(governor);
		if (err)
			ctl_fail("cannot set the niceness of", "ksmd", err);
		err = privilege_work(!kernel_tells_opted(governor->root),
			governor->config.ksmd_nice != CONFIG_NICE_KEEP);
		if (err)
			code = ctl_fail("cannot give up", "privileges", err);
		else
			loop(daemon);
	}
	notify_send("STOPPING=1");
	int restored = restore(daemon);
	governor_close(governor);
	return code ? code : restored;
}

/* For ExecStopPost=, and for whoever finds the kernel left behind by a killed service. */
static int restore_only(struct daemon *daemon)
{
	struct governor *governor = &daemon->governor;
	/* A broken file must not keep the kernel from being restored: the default folder serves then. */
	int told = ctl_read_config(&governor->config, daemon->config_path, daemon->config_given);
	int err = state_open(&daemon->dir, governor->config.state_dir, false);
	if (err == -ENOENT)
		return told;
	if (err)
		return ctl_fail("cannot open", governor->config.state_dir, err);
	/* Held to the end, so that no service starts on values that are being restored. */
	pid_t holder = 0;
	err = state_lock(&daemon->dir, &holder);
	if (err == -EBUSY) {
		ctl_error("refused: the daemon is running (PID %d) and restores when it stops",
			(int)holder);
		return CTL_REFUSED;
	}
	if (err)
		return ctl_fail("cannot lock", governor->config.state_dir, err);
	err = state_load_first(&daemon->dir, &governor->first, &governor->first_nice);
	if (err == -ENOENT)
		return told;
	if (err)
		return ctl_fail("cannot read", "the first values", err);
	governor->first_known = true;
	int code = ctl_open(daemon->ctl);
	if (code)
		return code;
	governor->root = &daemon->ctl->root;
	governor->ksm = &daemon->ctl->ksm;
	if (ksmd_open(&governor->ksmd, governor->root))
		governor->ksmd.fd = -1;
	return restore(daemon);
}

int daemon_run(struct ctl *ctl, int argc, char **argv)
{
	enum { OPT_ROOT = 256, OPT_CHECK, OPT_PRINT, OPT_RESTORE };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "root", required_argument, NULL, OPT_ROOT },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "print-config", no_argument, NULL, OPT_PRINT },
		{ "restore", no_argument, NULL, OPT_RESTORE },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	struct daemon daemon = { .ctl = ctl, .config_path = CONFIG_FILE, .pressure_fd = -1 };
	daemon.dir.fd = daemon.dir.lock_fd = -1;
	daemon.governor.ksmd.fd = -1;
	daemon.governor.first_nice = CONFIG_NICE_KEEP;
	int c, mode = 0;
	while ((c = getopt_long(argc, argv, "+:c:v", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			daemon.config_path = optarg;
			daemon.config_given = true;
			break;
		case 'v':
			daemon.verbose = true;
			break;
		case OPT_ROOT:
			ctl->prefix = optarg;
			break;
		case '?':
		case ':':
			return ctl_bad_option("daemon", c, argv);
		default:
			mode = c;
		}
	}
	if (optind < argc)
		return ctl_usage("daemon", "daemon takes no arguments");
	if (mode == OPT_CHECK || mode == OPT_PRINT) {
		int code = ctl_read_config(
			&daemon.governor.config, daemon.config_path, daemon.config_given);
		if (!code && mode == OPT_PRINT)
			config_print(&daemon.governor.config, stdout);
		return code;
	}
	int code = mode == OPT_RESTORE ? restore_only(&daemon) : serve(&daemon);
	state_close(&daemon.dir);
	return code;
}
