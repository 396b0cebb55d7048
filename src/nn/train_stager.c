/* The threads that fill blocks. */
#define _POSIX_C_SOURCE 200809L
#include "nn/train_stager.h"

#include <signal.h>
#include <unistd.h>

#include "core/context.h"

int hg__stager_share(const hg_context *ctx)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN),
	           threads = ctx->threads > 0 ? ctx->threads : cores;
	if (threads < 2)
		return 1;
	return threads / 2 < HG__STAGER_MOST ? (int)(threads / 2) : HG__STAGER_MOST;
}

static void fill_part(const struct hg__staging *s, int part, int parts)
{
	hg__padded_fill_part(s->padded, &s->shape, s->graph, part, parts, s->block);
}

/* Waits until another block is asked for than the one that this thread has seen last. Returns 0 if
 * there will be none. Holds the mutex. */
static int wait_for_block(struct hg__stager *s, int64_t seen)
{
	while (!s->quits && s->blocks == seen)
		(void)pthread_cond_wait(&s->changed, &s->mutex);
	return !s->quits;
}

static void *work(void *user)
{
	const struct hg__stager_thread *own = user;
	struct hg__stager *s = own->of;
	int64_t seen = 0;
	(void)pthread_mutex_lock(&s->mutex);
	while (wait_for_block(s, seen)) {
		const struct hg__staging staging = s->staging;
		const int threads = s->threads;
		seen = s->blocks;
		(void)pthread_mutex_unlock(&s->mutex);
		fill_part(&staging, own->part, threads);
		(void)pthread_mutex_lock(&s->mutex);
		if (--s->parts > 0)
			continue;
		hg__padded_fill_end(staging.padded, &staging.shape, staging.block);
		s->asked = 0;
		(void)pthread_cond_broadcast(&s->changed);
	}
	(void)pthread_mutex_unlock(&s->mutex);
	return NULL;
}

/* A thread inherits the mask of who makes it. Signals are for the threads of the host program, so
 * these take none. Returns how many were started. Holds the mutex, so that they see the number. */
static int start(struct hg__stager *s, int threads)
{
	sigset_t all, before;
	int started = 0;
	(void)sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
		return 0;
	while (started < threads) {
		struct hg__stager_thread *own = &s->thread[started];
		own->of = s;
		own->part = started;
		if (pthread_create(&own->thread, NULL, work, own) != 0)
			break;
		started++;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

void hg__stager_begin(struct hg__stager *s, int threads)
{
	*s = (struct hg__stager){.threads = 0};
	if (pthread_mutex_init(&s->mutex, NULL) != 0)
		return;
	if (pthread_cond_init(&s->changed, NULL) != 0) {
		(void)pthread_mutex_destroy(&s->mutex);
		return;
	}
	(void)pthread_mutex_lock(&s->mutex);
	s->threads = start(s, threads < HG__STAGER_MOST ? threads : HG__STAGER_MOST);
	const int started = s->threads;
	(void)pthread_mutex_unlock(&s->mutex);
	if (started)
		return;
	(void)pthread_cond_destroy(&s->changed);
	(void)pthread_mutex_destroy(&s->mutex);
}

void hg__stager_ask(struct hg__stager *s, const struct hg__staging *staging)
{
	if (!s->threads) {
		hg__padded_fill(staging->padded, &staging->shape, staging->graph, staging->block);
		return;
	}
	(void)pthread_mutex_lock(&s->mutex);
	s->staging = *staging;
	s->blocks++;
	s->parts = s->threads;
	s->asked = 1;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->mutex);
}

void hg__stager_wait(struct hg__stager *s)
{
	if (!s->threads)
		return;
	(void)pthread_mutex_lock(&s->mutex);
	while (s->asked)
		(void)pthread_cond_wait(&s->changed, &s->mutex);
	(void)pthread_mutex_unlock(&s->mutex);
}

void hg__stager_end(struct hg__stager *s)
{
	if (!s->threads)
		return;
	hg__stager_wait(s);
	(void)pthread_mutex_lock(&s->mutex);
	s->quits = 1;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->mutex);
	for (int k = 0; k < s->threads; k++)
		(void)pthread_join(s->thread[k].thread, NULL);
	(void)pthread_cond_destroy(&s->changed);
	(void)pthread_mutex_destroy(&s->mutex);
	s->threads = 0;
}
