/* The terminal of --watch: takes it, draws on it, reads its keys, and gives it back as it was. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/watch_screen.h"

#include <curses.h>
#include <langinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* Below these heights things are left out, so that the table keeps its room. */
#define GRAPH_ROWS 3
#define LINES_FOR_GRAPH 18
#define LINES_FOR_FIGURES 8
#define LINES_FOR_KEYS 10
/* Rows before the table can be this wide, and no wider. */
#define CELLS_MAX 1024

static SCREEN *screen;
static bool utf8;

int watch_screen_open(void)
{
	const char *term = getenv("TERM");

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
		error("--watch needs a terminal; DELAY without it prints lines anywhere");
		return STAT_FAILED;
	}
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		error("--watch does not know this terminal: TERM is '%s'", term ? term : "");
		return STAT_FAILED;
	}
	if (!tigetstr("cup")) {
		watch_screen_close();
		error("--watch cannot move the cursor of this terminal: TERM is '%s'",
			term ? term : "");
		return STAT_FAILED;
	}
	utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	return 0;
}

void watch_screen_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

static bool has_graph(void)
{
	return LINES >= LINES_FOR_GRAPH;
}

/* Lines above the table's headings. */
static int header_lines(void)
{
	return LINES < LINES_FOR_FIGURES ? 1 : has_graph() ? 3 + 1 + GRAPH_ROWS : 3;
}

size_t watch_screen_page(void)
{
	int rows = LINES - header_lines() - 1 - (LINES >= LINES_FOR_KEYS);
	return rows > 0 ? (size_t)rows : 0;
}

size_t watch_screen_width(void)
{
	return COLS > 0 ? (size_t)COLS : 0;
}

/* Text from its cell `skip` on, cut to the cells there are, and blanks up to the end. */
static void put(int y, int x, int width, const char *text, size_t skip)
{
	wchar_t cells[CELLS_MAX];
	mbstate_t state = { 0 };
	size_t len = strlen(text), at = 0;
	int used = 0;

	if (y < 0 || y >= LINES || x < 0 || x >= COLS)
		return;
	if (width > COLS - x)
		width = COLS - x;
	while (len && at + 2 < CELLS_MAX) {
		wchar_t c;
		size_t bytes = mbrtowc(&c, text, len, &state);
		if (bytes == 0 || bytes > len) { /* no character here */
			memset(&state, 0, sizeof(state));
			bytes = 1;
			c = L'?';
		}
		text += bytes;
		len -= bytes;
		int cell = wcwidth(c);
		if (cell < 0) {
			c = L'?';
			cell = 1;
		}
		if (skip) {
			skip -= skip < (size_t)cell ? skip : (size_t)cell;
			continue;
		}
		if (used + cell > width)
			break;
		used += cell;
		cells[at++] = c;
	}
	while (used < width && at + 1 < CELLS_MAX) {
		cells[at++] = L' ';
		used++;
	}
	cells[at] = L'\0';
	mvaddnwstr(y, x, cells, (int)at);
}

/* A figure, or "-" where it is not known. buf is of INTERVAL_CELL_MAX. */
static const char *figure(const struct rates *rates, enum rates_key key, char *buf)
{
	const char *cell = rates ? interval_cell(rates, key, INTERVAL_SHORT, buf) : NULL;
	return cell ? cell : "-";
}

static const char *run_words(const struct rates *rates)
{
	if (!rates || !rates->known[RATES_RUN])
		return "-";
	switch (rates->value[RATES_RUN]) {
	case KSM_RUN_STOP:
		return "0, stopped";
	case KSM_RUN_MERGE:
		return "1, merging";
	case KSM_RUN_UNMERGE:
		return "2, unmerged";
	default:
		return "waiting for memory to go offline";
	}
}

static void draw_title(const struct watch_picture *picture)
{
	const struct watch_view *view = picture->view;
	char line[256], now[16] = "", unread[48] = "";
	time_t t = time(NULL);
	struct tm tm;

	if (localtime_r(&t, &tm))
		strftime(now, sizeof(now), "%H:%M:%S", &tm);
	if (picture->unreadable)
		snprintf(unread, sizeof(unread), " (%zu unreadable)", picture->unreadable);
	snprintf(line, sizeof(line), "ksmstat %s%s  every %g s  by %s%s  %zu processes%s", now,
		view->paused ? "  PAUSED" : "", (double)view->delay_ns / 1e9, view->sort->name,
		view->reverse ? " reversed" : "", picture->processes, unread);
	attron(A_BOLD);
	put(0, 0, COLS, line, 0);
	attroff(A_BOLD);
}

static void draw_figures(const struct rates *rates)
{
	char line[256], a[INTERVAL_CELL_MAX], b[INTERVAL_CELL_MAX], c[INTERVAL_CELL_MAX],
		d[INTERVAL_CELL_MAX], e[INTERVAL_CELL_MAX], ratio[INTERVAL_CELL_MAX] = "-";
	bool up = rates && rates->known[RATES_DELTA] && rates->value[RATES_DELTA] > 0;

	if (rates && rates->known[RATES_SHARED] && rates->known[RATES_SHARING] &&
		rates->value[RATES_SHARED] > 0)
		snprintf(ratio, sizeof(ratio), "%.2f",
			(double)rates->value[RATES_SHARING] / (double)rates->value[RATES_SHARED]);
	snprintf(line, sizeof(line), "saving %s (%s%s)  profit %s  shared %s  sharing/shared %s",
		figure(rates, RATES_SAVING, a), up ? "+" : "", figure(rates, RATES_DELTA, b),
		figure(rates, RATES_PROFIT, c), figure(rates, RATES_SHARED, d), ratio);
	put(1, 0, COLS, line, 0);
	snprintf(line, sizeof(line),
		"ksmd %s%%  scanned %s/s  merged %s/s  broken %s/s  scans %s  run %s",
		figure(rates, RATES_KSMD, a), figure(rates, RATES_SCANNED, b),
		figure(rates, RATES_MERGED, c), figure(rates, RATES_BROKEN, d),
		figure(rates, RATES_FULL_SCANS, e), run_words(rates));
	put(2, 0, COLS, line, 0);
}

/* A graph below its caption. */
static void draw_graph(const struct watch_history *history, int x, int width, const char *caption)
{
	char line[3 * CELLS_MAX + 1];

	put(3, x, width, caption, 0);
	for (int row = 0; row < GRAPH_ROWS; row++) {
		watch_history_row(
			history, (size_t)width, GRAPH_ROWS, (size_t)row, utf8, line, sizeof(line));
		put(4 + row, x, width, line, 0);
	}
}

static void draw_graphs(const struct watch_picture *picture)
{
	int width = (COLS - 2) / 2;
	char line[128], cell[INTERVAL_CELL_MAX];
	struct rates most = { 0 };

	if (width < 1 || width > CELLS_MAX)
		return;
	most.known[RATES_SAVING] = most.known[RATES_KSMD] = true;
	most.value[RATES_SAVING] = watch_history_max(picture->saving, (size_t)width);
	most.value[RATES_KSMD] = watch_history_max(picture->ksmd, (size_t)width);
	snprintf(line, sizeof(line), "saving, up to %s", figure(&most, RATES_SAVING, cell));
	draw_graph(picture->saving, 0, width, line);
	snprintf(line, sizeof(line), "ksmd, up to %s%%", figure(&most, RATES_KSMD, cell));
	draw_graph(picture->ksmd, width + 2, width, line);
}

static void draw_help(int from)
{
	static const char *const help[] = {
		"< >           sort by the column to the left, to the right",
		"r             turn the order round",
		"b             rows of programs (or what --by says), or of processes",
		"space         pause, go on",
		"+ -           longer, shorter delay",
		"arrows, PgUp, PgDn, Home, End   move the table",
		"? h           this help",
		"q, Esc        leave",
	};
	for (size_t i = 0; i < sizeof(help) / sizeof(*help); i++)
		put(from + (int)i, 0, COLS, help[i], 0);
}

static void draw_table(const struct watch_picture *picture)
{
	const struct watch_view *view = picture->view;
	int from = header_lines();
	size_t page = watch_screen_page();

	if (view->help) {
		draw_help(from);
		return;
	}
	if (picture->line_count) {
		attron(A_REVERSE);
		put(from, 0, COLS, picture->lines[0], view->shift);
		attroff(A_REVERSE);
	}
	for (size_t i = 0; i < page && view->top + i + 1 < picture->line_count; i++)
		put(from + 1 + (int)i, 0, COLS, picture->lines[view->top + i + 1], view->shift);
}

void watch_screen_draw(const struct watch_picture *picture)
{
	erase();
	draw_title(picture);
	if (LINES >= LINES_FOR_FIGURES)
		draw_figures(picture->rates);
	if (has_graph())
		draw_graphs(picture);
	draw_table(picture);
	if (LINES >= LINES_FOR_KEYS)
		put(LINES - 1, 0, COLS,
			"q quit  < > sort  r reverse  b group  space pause  +/- delay  ? help", 0);
	refresh();
}

int watch_screen_key(void)
{
	int key = getch();

	switch (key) {
	case ERR:
		return WATCH_KEY_NONE;
	case KEY_UP:
		return WATCH_KEY_UP;
	case KEY_DOWN:
		return WATCH_KEY_DOWN;
	case KEY_LEFT:
		return WATCH_KEY_LEFT;
	case KEY_RIGHT:
		return WATCH_KEY_RIGHT;
	case KEY_PPAGE:
		return WATCH_KEY_PAGE_UP;
	case KEY_NPAGE:
		return WATCH_KEY_PAGE_DOWN;
	case KEY_HOME:
		return WATCH_KEY_HOME;
	case KEY_END:
		return WATCH_KEY_END;
	default:
		return key < 256 ? key : 0;
	}
}

void watch_screen_resize(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE);
}

void watch_screen_stop(void)
{
	endwin();
	kill(getpid(), SIGSTOP);
	watch_screen_resize();
}
