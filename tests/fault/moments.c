/* Signals at random moments, to the service, to verbs that write, to what runs long, and to what draws on a terminal. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/fault/memory.h"
#include "tests/fault/serve.h"
#include "tests/fault/tell.h"

/*
 * $FAULT_SEED repeats a series, as far as moments can be repeated. SIGSTOP stands for a stop of 5 ms and more,
 * with SIGCONT behind it.
 */

enum { WORDS_MAX = 8, SENT_MAX = 4, MOMENT_MAX_US = 60 * 1000, STOPPED_US = 5000 };

static uint64_t seed;
static long sent_count;

/* xorshift64* */
static unsigned pick(unsigned count)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (unsigned)((seed * 0x2545f4914f6cdd1dULL) >> 33) % (count ? count : 1);
}

struct kind {
	const char *name;
	const char *program;
	const char *words[WORDS_MAX];
	int moment_us; /* how long it may go on before the first signal */
	int signals[10];
	int ends[6];  /* signals at which it ends by itself, when it listens */
	int codes[4]; /* exit codes that are documented for it, 0 apart; then no more */
	bool serves, writes, draws;
};

static const struct kind kinds[] = {
	{ .name = "ksmctl daemon",
		.moment_us = 80 * 1000,
		.signals = { SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGPIPE, SIGWINCH, SIGSTOP,
			SIGALRM, SIGHUP },
		.ends = { SIGTERM, SIGINT, SIGQUIT },
		.serves = true },
	{ .name = "ksmctl start",
		.program = "ksmctl",
		.words = { "--root", "TREE", "start", "777", "33" },
		.moment_us = 6000,
		.signals = { SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM, SIGSTOP },
		.writes = true },
	{ .name = "ksmctl set",
		.program = "ksmctl",
		.words = { "--root", "TREE", "set", "pages_to_scan=9", "sleep_millisecs=7",
			"smart_scan=0", "run=0" },
		.moment_us = 6000,
		.signals = { SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM, SIGSTOP },
		.writes = true },
	{ .name = "ksmctl run",
		.program = "ksmctl",
		.words = { "run", "--", "sleep", "0.02" },
		.moment_us = 15 * 1000,
		.signals = { SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM, SIGSTOP,
			SIGWINCH } },
	{ .name = "ksmstat --estimate",
		.program = "ksmstat",
		.words = { "-J", "--estimate", "--settle", "0.02", "-p", "PID" },
		.moment_us = 40 * 1000,
		.signals = { SIGINT, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGALRM, SIGSTOP,
			SIGWINCH },
		.codes = { 130 } },
	{ .name = "ksmstat DELAY COUNT",
		.program = "ksmstat",
		.words = { "--root", "TREE", "-J", "0.1", "2" },
		.moment_us = 250 * 1000,
		.signals = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGALRM, SIGSTOP,
			SIGWINCH },
		.ends = { SIGTERM, SIGINT, SIGHUP },
		.codes = { 130 } },
	{ .name = "ksmstat DELAY",
		.program = "ksmstat",
		.words = { "--root", "TREE", "-J", "0.1" },
		.moment_us = 250 * 1000,
		.signals = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGALRM, SIGSTOP,
			SIGWINCH },
		.ends = { SIGTERM, SIGINT, SIGHUP } },
	{ .name = "ksmstat --watch",
		.program = "ksmstat",
		.words = { "--root", "TREE", "--watch", "0.1" },
		.moment_us = 150 * 1000,
		.signals = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH, SIGSTOP, SIGWINCH },
		.ends = { SIGTERM, SIGINT, SIGHUP, SIGQUIT },
		.draws = true },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

struct sent {
	int signals[SENT_MAX + 2];
	size_t count;
};

static bool holds(const int *signals, size_t count, int signal)
{
	for (size_t i = 0; i < count; i++) {
		if (signals[i] == signal && signal)
			return true;
	}
	return false;
}

static void send_one(const struct run *run, struct sent *sent, int signal)
{
	if (!run->pid || kill(run->pid, signal) < 0)
		return;
	sent->signals[sent->count++] = signal;
	sent_count++;
	if (signal == SIGSTOP) {
		usleep(STOPPED_US + pick(STOPPED_US * 4));
		kill(run->pid, SIGCONT);
	}
}

/* A terminal of its own, which is read so that nobody waits for it. */
struct terminal {
	int fd, its_fd;
	struct termios before;
	char text[1 << 16];
	size_t len;
};

static bool terminal_open(struct terminal *terminal)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	terminal->len = 0;
	terminal->its_fd = -1;
	terminal->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	return terminal->fd >= 0 && !grantpt(terminal->fd) && !unlockpt(terminal->fd) &&
	       (terminal->its_fd = open(ptsname(terminal->fd), O_RDWR | O_NOCTTY | O_CLOEXEC)) >=
		       0 &&
	       ioctl(terminal->fd, TIOCSWINSZ, &size) == 0 &&
	       tcgetattr(terminal->its_fd, &terminal->before) == 0;
}

static void terminal_close(struct terminal *terminal)
{
	if (terminal->its_fd >= 0)
		close(terminal->its_fd);
	if (terminal->fd >= 0)
		close(terminal->fd);
}

/* In a bare change of root there may be none. */
static bool terminal_can(void)
{
	struct terminal terminal;
	bool can = terminal_open(&terminal);
	terminal_close(&terminal);
	return can;
}

static void terminal_read(struct terminal *terminal)
{
	struct pollfd in = { .fd = terminal->fd, .events = POLLIN };
	while (poll(&in, 1, 0) == 1 && in.revents & POLLIN) {
		if (terminal->len > sizeof(terminal->text) / 2) { /* the end is what counts */
			memmove(terminal->text, terminal->text + sizeof(terminal->text) / 4,
				terminal->len - sizeof(terminal->text) / 4);
			terminal->len -= sizeof(terminal->text) / 4;
		}
		ssize_t n = read(terminal->fd, terminal->text + terminal->len,
			sizeof(terminal->text) - terminal->len - 1);
		if (n <= 0)
			break;
		terminal->len += (size_t)n;
	}
	terminal->text[terminal->len] = '\0';
}

/* It has its settings back, the cursor shows, and the screen of the shell is there. */
static void judge_terminal(const struct run *run, struct terminal *terminal)
{
	struct termios now;
	terminal_read(terminal);
	tcgetattr(terminal->its_fd, &now);
	if (now.c_lflag != terminal->before.c_lflag || now.c_iflag != terminal->before.c_iflag ||
		now.c_oflag != terminal->before.c_oflag)
		tell_problem_of(run, "the terminal is left with other settings");
	const char *last[2] = { NULL, NULL };
	static const char *const words[] = { "\033[?1049h", "\033[?1049l" };
	for (size_t i = 0; i < 2; i++) {
		for (const char *p = terminal->text; (p = strstr(p, words[i])); p++)
			last[i] = p;
	}
	if (last[0] > last[1])
		tell_problem_of(run, "the other screen is left");
}

/* Wait, and read its terminal meanwhile. Returns false when it had to be killed. */
static bool wait_end(struct run *run, struct terminal *terminal)
{
	for (int ms = 0; terminal && ms < 5000 && !run_ends(run, 10); ms += 10)
		terminal_read(terminal);
	run_wait(run);
	return !run->hung;
}

static void pause_us(struct run *run, unsigned us, struct terminal *terminal)
{
	for (; us > 10000; us -= 10000) {
		if (run_ends(run, 10))
			return;
		if (terminal)
			terminal_read(terminal);
	}
	usleep(us);
}

/* The service: nothing but what it was asked for, the kernel as found, at the next start's end at the latest. */
static void judge_service(const struct run *run, const struct sent *sent)
{
	if (serve_failures(run) < 0)
		tell_problem_of(run, "an odd line");
	if (WIFSIGNALED(run->status) && WTERMSIG(run->status) == SIGALRM) {
		int code = serve_again(pick(2) ? "--restore" : NULL);
		if (code || !serve_as_found())
			tell_problem_of(run, "killed, and then %d, or not as found", code);
	} else if (!serve_as_found()) {
		tell_problem_of(run, "not as found after signal %d and %zu more", sent->signals[0],
			sent->count - 1);
	}
}

static void judge_knobs(const struct run *run, const struct ksm_state *asked)
{
	struct ksm_state now;
	enum ksm_key key, other;
	tree_read(&serve.tree, &now);
	if (!tree_same(&now, asked, &key) &&
		(!run->status || !tree_same(&now, &serve.tree.found, &other)))
		tell_problem_of(run, "status %x, and %s is %" PRId64, run->status,
			ksm_keys[key].name, now.value[key]);
}

static void judge(const struct kind *kind, const struct run *run, const struct sent *sent)
{
	int status = run->status, by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (run->hung)
		tell_problem_of(run, "it hangs after signal %d", sent->signals[0]);
	else if (by && !holds(sent->signals, sent->count, by))
		tell_problem_of(run, "ended by signal %d, which nobody sent", by);
	else if (!by && WEXITSTATUS(status) && !holds(kind->codes, 4, WEXITSTATUS(status)))
		tell_problem_of(run, "exit code %d", WEXITSTATUS(status));
	/* A line is whole, or was never begun. */
	const char *out = run_text(run->out_fd);
	if (*out && !by && out[strlen(out) - 1] != '\n')
		tell_problem_of(run, "half a line");
	if (!kind->serves && *run_text(run->err_fd))
		tell_problem_of(run, "it says something");
}

static pid_t child;

static void start(const struct kind *kind, struct run *run)
{
	static char program[PATH_MAX + 16], pid[16];
	static const char *argv[WORDS_MAX + 2];
	if (kind->serves) {
		serve_begin(run, NULL);
		return;
	}
	snprintf(program, sizeof(program), "%s/%s", serve.build, kind->program);
	snprintf(pid, sizeof(pid), "%d", (int)child);
	argv[0] = program;
	for (size_t i = 0; i < WORDS_MAX; i++) {
		const char *word = kind->words[i];
		argv[i + 1] = word && !strcmp(word, "TREE")  ? serve.tree.root
			      : word && !strcmp(word, "PID") ? pid
							     : word;
	}
	argv[WORDS_MAX + 1] = NULL;
	run->argv = argv;
	run_start(run);
}

static void run_one(const struct kind *kind, const struct ksm_state *asked)
{
	static struct terminal terminal;
	struct terminal *its = kind->draws ? &terminal : NULL;
	struct run run = { 0 };
	struct sent sent = { 0 };
	size_t choices = 0;
	while (choices < sizeof(kind->signals) / sizeof(*kind->signals) && kind->signals[choices])
		choices++;
	serve_reset();
	if (its) {
		if (!terminal_open(its)) {
			tell_problem("no terminal");
			return;
		}
		run.terminal_fd = its->its_fd;
	}
	if (its && pick(2)) { /* just when it takes the terminal, or gives it back */
		int signal = kind->signals[pick((unsigned)choices)];
		signal = signal == SIGSTOP ? SIGHUP : signal;
		run.fault = (struct fault){ "tcsetattr", NULL, 1 + pick(8), 1, 0, signal };
		sent.signals[sent.count++] = signal;
		sent_count++;
	}
	start(kind, &run);
	pause_us(&run, pick((unsigned)kind->moment_us), its);
	for (unsigned left = 1 + pick(kind->writes ? 1 : SENT_MAX - 1); left; left--) {
		send_one(&run, &sent, kind->signals[pick((unsigned)choices)]);
		if (left > 1)
			pause_us(&run, pick(MOMENT_MAX_US), its);
	}
	if (*kind->ends) /* it would go on */
		send_one(&run, &sent, kind->ends[0]);
	wait_end(&run, its);
	judge(kind, &run, &sent);
	if (kind->serves)
		judge_service(&run, &sent);
	else
		judge_knobs(&run, asked);
	if (its) {
		judge_terminal(&run, its);
		terminal_close(its);
	}
	run_close(&run);
}

/* The knobs after a run that nobody disturbs. */
static void undisturbed(const struct kind *kind, struct ksm_state *asked)
{
	*asked = serve.tree.found;
	if (!kind->writes)
		return;
	struct run run = { 0 };
	serve_reset();
	start(kind, &run);
	run_wait(&run);
	run_close(&run);
	tree_read(&serve.tree, asked);
}

int main(void)
{
	const char *given = getenv("FAULT_SEED");
	static const int runs[KINDS] = { 60, 60, 40, 30, 40, 20, 20, 40 };
	serve_setup();
	if (given)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return EXIT_FAILURE;
	seed |= 1;
	setenv("TERM", "xterm", 1);
	child = memory_child(16 << 20);
	for (size_t i = 0; i < KINDS; i++) {
		struct ksm_state asked;
		uint64_t first = seed;
		int count = runs[i] * (serve.exhaustive ? 20 : 1), done = 0;
		sent_count = 0;
		if (kinds[i].draws && !terminal_can()) {
			tell_skip(kinds[i].name, "no terminal can be made here");
			continue;
		}
		undisturbed(&kinds[i], &asked);
		for (; done < count && !tell_has_problem(); done++)
			run_one(&kinds[i], &asked);
		tell_verdict("%s: %d runs, %ld signals (FAULT_SEED=%#" PRIx64 ")", kinds[i].name,
			done, sent_count, first);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tree_remove(&serve.tree);
	return tell_end();
}
