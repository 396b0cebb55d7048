#ifndef HG_TESTS_TRAIN_TASK_H
#define HG_TESTS_TRAIN_TASK_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planted.h"

/* What the tests of hg_train share: a task of four planted communities, configurations, a progress
 * function. */

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

#endif
