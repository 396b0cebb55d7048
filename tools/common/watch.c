#define _POSIX_C_SOURCE 200809L
#include "watch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof signals / sizeof signals[0])

/* watching: the work checks `interrupted` from time to time. holding: it writes a file. */
static volatile sig_atomic_t interrupted, watching, holding;

static struct {
	int show, shown;
	char what[32];
	double began, printed; /* seconds */
} state;

/* Ends the program at once if the work does not check `interrupted`, or if this is the second
 * signal and no file is being written. */
static void on_signal(int number)
{
	(void)number;
	if (!watching || (interrupted && !holding))
		_exit(TOOL_INTERRUPTED);
	interrupted = 1;
}

static void fill_set(sigset_t *set)
{
	(void)sigemptyset(set);
	for (size_t k = 0; k < SIGNALS; k++)
		(void)sigaddset(set, signals[k]);
}

void watch_block(void)
{
	sigset_t set;
	fill_set(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

void watch_unblock(void)
{
	sigset_t set;
	fill_set(&set);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* A hang-up that nohup ignores stays ignored. (A shell without job control ignores SIGINT for what
 * it starts in the background; that one can still be sent on purpose.) */
void watch_install(void)
{
	struct sigaction action = {.sa_handler = on_signal}, found;
	(void)sigemptyset(&action.sa_mask);
	for (size_t k = 0; k < SIGNALS; k++)
		if (signals[k] != SIGHUP || sigaction(SIGHUP, NULL, &found) || found.sa_handler != SIG_IGN)
			(void)sigaction(signals[k], &action, NULL);
	watch_unblock();
}

/* Show progress ten times a second at most, once the same work has taken a second. */
static int show_step(void *user, const char *what, int64_t done, int64_t total)
{
	(void)user;
	const double t = state.show ? tool_seconds() : 0;
	if (state.show && strncmp(state.what, what, sizeof state.what - 1) != 0) {
		snprintf(state.what, sizeof state.what, "%s", what);
		state.began = t;
	}
	if (state.show && t - state.began > 1 && t - state.printed > 0.1) {
		const double part = total > 0 ? (double)done / (double)total : 0;
		if (part > 0)
			fprintf(stderr, "\r\033[K%s %3.0f %%, %.0f s left", state.what, 100 * part,
			        (t - state.began) * (1 - part) / part);
		else
			fprintf(stderr, "\r\033[K%s, %.0f s", state.what, t - state.began);
		state.printed = t;
		state.shown = 1;
	}
	return interrupted;
}

void watch_begin(int show)
{
	watching = 1;
	state.show = show && isatty(STDERR_FILENO);
}

void watch_hold(void)
{
	holding = 1;
}

void watch_release(void)
{
	holding = 0;
}

void watch_end(void)
{
	watching = 0;
	if (state.shown)
		fputs("\r\033[K", stderr);
	state.shown = 0;
}

const hg_progress *watch_progress(void)
{
	static const hg_progress watcher = {show_step, NULL};
	return &watcher;
}

int watch_interrupted(void)
{
	return interrupted;
}
