#define _POSIX_C_SOURCE 200809L
#include "watch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof signals / sizeof signals[0])

static volatile sig_atomic_t interrupted;
static struct sigaction old_actions[SIGNALS];

static struct {
	int show, shown;
	char what[32];
	double began, printed; /* seconds */
} state;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
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

static void install_handlers(int flags, struct sigaction *old)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
	sigemptyset(&action.sa_mask);
	for (size_t k = 0; k < SIGNALS; k++)
		sigaction(signals[k], &action, old ? &old[k] : NULL);
}

static void restore_handlers(void)
{
	for (size_t k = 0; k < SIGNALS; k++)
		sigaction(signals[k], &old_actions[k], NULL);
}

void watch_begin(int show)
{
	install_handlers((int)SA_RESETHAND,
	                 old_actions); /* the second Ctrl-C ends the program at once */
	state.show = show && isatty(STDERR_FILENO);
}

void watch_hold(void)
{
	install_handlers(0, NULL);
}

void watch_release(void)
{
	if (interrupted)
		restore_handlers();
	else
		install_handlers((int)SA_RESETHAND, NULL);
}

void watch_end(void)
{
	restore_handlers();
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
