/* A thread that does one piece of work after another while the caller does something else. */
#ifndef HG_CORE_AHEAD_H
#define HG_CORE_AHEAD_H

#include <pthread.h>

#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/* The work must not fail, and neither it nor the caller may write what the other one uses. */
struct hg__ahead {
	int runs;     /* 0: there is no thread, and who asks for work does it */
	long process; /* which began it; a fork of that has no such thread */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* guarded by the mutex */
	void (*work)(void *user);
	void *user;
	int asked; /* work is wanted or being done */
	int quits;
};

/* Starts the thread. Where the system gives none, the caller does all work. */
void hg__ahead_begin(struct hg__ahead *ahead);
/* Asks for work; what was asked for before must have been waited for. */
void hg__ahead_ask(struct hg__ahead *ahead, void (*work)(void *user), void *user);
/* Waits for the work that was asked for, if there is any. */
void hg__ahead_wait(struct hg__ahead *ahead);
/* Waits for the thread to end. Without a thread it does nothing.
 *
 * In a fork of the process that began the thread there is none, and all calls know that. */
void hg__ahead_end(struct hg__ahead *ahead);

HG_EXTERN_C_END
#endif
