/* The thread that fills blocks. */
#define _POSIX_C_SOURCE 200809L
#include "nn/train_stager.h"

#include <signal.h>

static void fill(const struct hg__staging *s)
{
	hg__padded_fill(s->padded, &s->shape, s->graph, s->block);
}

static void *work(void *user)
{
	struct hg__stager *s = user;
	(void)pthread_mutex_lock(&s->mutex);
	while (!s->quits) {
		if (!s->asked) {
			(void)pthread_cond_wait(&s->changed, &s->mutex);
			continue;
		}
		const struct hg__staging staging = s->staging;
		(void)pthread_mutex_unlock(&s->mutex);
		fill(&staging);
		(void)pthread_mutex_lock(&s->mutex);
		s->asked = 0;
		(void)pthread_cond_broadcast(&s->changed);
	}
	(void)pthread_mutex_unlock(&s->mutex);
	return NULL;
}

/* A thread inherits the mask of who makes it. Signals are for the threads of the host program, so
 * this one takes none. */
static int start(struct hg__stager *s)
{
	sigset_t all, before;
	(void)sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
		return 0;
	const int started = pthread_create(&s->thread, NULL, work, s) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

void hg__stager_begin(struct hg__stager *s)
{
	*s = (struct hg__stager){.threaded = 0};
	if (pthread_mutex_init(&s->mutex, NULL) != 0)
		return;
	if (pthread_cond_init(&s->changed, NULL) != 0) {
		(void)pthread_mutex_destroy(&s->mutex);
		return;
	}
	s->threaded = start(s);
	if (s->threaded)
		return;
	(void)pthread_cond_destroy(&s->changed);
	(void)pthread_mutex_destroy(&s->mutex);
}

void hg__stager_ask(struct hg__stager *s, const struct hg__staging *staging)
{
	if (!s->threaded) {
		fill(staging);
		return;
	}
	(void)pthread_mutex_lock(&s->mutex);
	s->staging = *staging;
	s->asked = 1;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->mutex);
}

void hg__stager_wait(struct hg__stager *s)
{
	if (!s->threaded)
		return;
	(void)pthread_mutex_lock(&s->mutex);
	while (s->asked)
		(void)pthread_cond_wait(&s->changed, &s->mutex);
	(void)pthread_mutex_unlock(&s->mutex);
}

void hg__stager_end(struct hg__stager *s)
{
	if (!s->threaded)
		return;
	hg__stager_wait(s);
	(void)pthread_mutex_lock(&s->mutex);
	s->quits = 1;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->mutex);
	(void)pthread_join(s->thread, NULL);
	(void)pthread_cond_destroy(&s->changed);
	(void)pthread_mutex_destroy(&s->mutex);
	s->threaded = 0;
}
