#ifndef HG_TESTS_TRAIN_TASK_H
#define HG_TESTS_TRAIN_TASK_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planted.h"

/* What the tests of hg_train share: a task of four planted communities, configurations, a progress
 * function, and an allocator that fails. */

enum { N = 320, M = 3200, D = 12, C = 4, EPOCHS = 60 };

/* The same task for every case. */
static inline struct planted task_make(void)
{
	test_reseed(11);
	const struct planted_features features = {.noise = 0.7, .signal = 1.5, .zeros = 0.5};
	struct planted task = planted_make(coo_communities(N, M, C), D, C, features);
	planted_split(&task, 80, 80);
	return task;
}

static inline hg_train_config config_of(const char *model, const char *policy)
{
	hg_train_config c = hg_train_config_default(model);
	CHECK_OK(hg_policy_parse(policy, &c.policy));
	c.epochs = EPOCHS;
	c.optim.lr = 0.01f;
	c.model.hidden = 16;
	c.model.heads = 4;
	return c;
}

/* What a progress function has seen: the last epoch, and the accuracies of the epoch whose accuracy
 * on the validation split is the highest. It stops the run after epoch `stop_at`. */
struct watch {
	int stop_at, last;
	double best_val, best_test;
	int best_epoch;
};

static inline int watch_epoch(void *user, const hg_train_event *e)
{
	struct watch *w = user;
	w->last = e->epoch;
	if (e->val_accuracy > w->best_val) {
		w->best_val = e->val_accuracy;
		w->best_test = e->test_accuracy;
		w->best_epoch = e->epoch;
	}
	return e->epoch == w->stop_at;
}

/* An allocator that counts bytes. It fails when it is told to, and where 1 GiB or more is asked
 * for. */
struct memory {
	int64_t until; /* how many allocations succeed before one fails; < 0: none fails */
	int64_t bytes; /* allocated and not freed */
	size_t last;   /* size of the piece that was freed last */
};

static inline void *memory_alloc(void *user, size_t bytes, int device)
{
	struct memory *m = user;
	(void)device;
	if (bytes >> 30 || (m->until >= 0 && m->until-- == 0))
		return NULL;
	m->bytes += (int64_t)bytes;
	return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static inline void memory_free(void *user, void *memory, size_t bytes, int device)
{
	struct memory *m = user;
	(void)device;
	m->bytes -= (int64_t)bytes;
	m->last = bytes;
	free(memory);
}

static inline hg_context *memory_context(struct memory *memory)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	config.device = HG_DEVICE_CPU;
	config.threads = 1;
	config.allocator = (hg_allocator){memory_alloc, memory_free, memory};
	CHECK_OK(hg_context_create(&config, &ctx));
	return ctx;
}

#endif
