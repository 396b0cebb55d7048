/* The thread that runs ahead of its caller. */
#define _POSIX_C_SOURCE 200809L
#include "core/ahead.h"

#include <signal.h>

#include "core/process.h"

/* Waits until there is work. Returns 0 if there will be none. Holds the mutex. */
static int wait_for_work(struct hg__ahead *a)
{
	while (!a->quits && !a->asked)
		(void)pthread_cond_wait(&a->changed, &a->mutex);
	return !a->quits;
}

static void *run(void *user)
{
	struct hg__ahead *a = user;
	(void)pthread_mutex_lock(&a->mutex);
	while (wait_for_work(a)) {
		(void)pthread_mutex_unlock(&a->mutex);
		a->work(a->user);
		(void)pthread_mutex_lock(&a->mutex);
		a->asked = 0;
		(void)pthread_cond_broadcast(&a->changed);
	}
	(void)pthread_mutex_unlock(&a->mutex);
	return NULL;
}

/* A thread inherits the mask of who makes it. Signals are for the threads of the host program, so
 * this one takes none. Returns 1 if it was started. */
static int start(struct hg__ahead *a)
{
	sigset_t all, before;
	(void)sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
		return 0;
	const int started = pthread_create(&a->thread, NULL, run, a) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static int runs_here(const struct hg__ahead *a)
{
	return a->runs && a->process == hg__process();
}

void hg__ahead_begin(struct hg__ahead *a)
{
	*a = (struct hg__ahead){.process = hg__process()};
	if (pthread_mutex_init(&a->mutex, NULL) != 0)
		return;
	if (pthread_cond_init(&a->changed, NULL) != 0) {
		(void)pthread_mutex_destroy(&a->mutex);
		return;
	}
	a->runs = start(a);
	if (a->runs)
		return;
	(void)pthread_cond_destroy(&a->changed);
	(void)pthread_mutex_destroy(&a->mutex);
}

void hg__ahead_ask(struct hg__ahead *a, void (*work)(void *user), void *user)
{
	if (!runs_here(a)) {
		work(user);
		return;
	}
	(void)pthread_mutex_lock(&a->mutex);
	a->work = work;
	a->user = user;
	a->asked = 1;
	(void)pthread_cond_broadcast(&a->changed);
	(void)pthread_mutex_unlock(&a->mutex);
}

void hg__ahead_wait(struct hg__ahead *a)
{
	if (!runs_here(a))
		return;
	(void)pthread_mutex_lock(&a->mutex);
	while (a->asked)
		(void)pthread_cond_wait(&a->changed, &a->mutex);
	(void)pthread_mutex_unlock(&a->mutex);
}

void hg__ahead_end(struct hg__ahead *a)
{
	if (!runs_here(a))
		return;
	hg__ahead_wait(a);
	(void)pthread_mutex_lock(&a->mutex);
	a->quits = 1;
	(void)pthread_cond_broadcast(&a->changed);
	(void)pthread_mutex_unlock(&a->mutex);
	(void)pthread_join(a->thread, NULL);
	(void)pthread_cond_destroy(&a->changed);
	(void)pthread_mutex_destroy(&a->mutex);
	a->runs = 0;
}
