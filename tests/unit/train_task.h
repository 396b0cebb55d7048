#ifndef HG_TESTS_TRAIN_TASK_H
#define HG_TESTS_TRAIN_TASK_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "halfgraph/train.h"
#include "harness.h"

/* Training runs on four planted communities: three of four edges stay in their community, features
 * are the community plus noise. */

enum { N = 320, M = 3200, D = 12, C = 4, EPOCHS = 60 };

struct task {
	int32_t dst[M], src[M], label[N];
	float x[N][D];
	uint8_t train[N], val[N], test[N];
};

static inline void task_make(struct task *t)
{
	test_reseed(11);
	memset(t, 0, sizeof *t);
	coo_move(coo_communities(N, M, C), t->dst, t->src);
	for (int i = 0; i < N; i++) {
		t->label[i] = i % C;
		(i < 80 ? t->train : i < 160 ? t->val : t->test)[i] = 1;
		for (int c = 0; c < D; c++)
			t->x[i][c] = test_uniform() < 0.5
			                 ? 0.0f
			                 : (float)(test_normal() * 0.7 + (c % C == i % C ? 1.5 : 0.0));
	}
}

struct run {
	hg_context *ctx;
	hg_graph *x_sparse;
	hg_tensor *x;
	hg_train_data data;
	hg_train *train;
	hg_train_report report;
};

/* The task on a context's device. Takes the context. */
static inline void run_data(struct run *r, hg_context *ctx, const struct task *t, hg_dtype state,
                            int sparse)
{
	memset(r, 0, sizeof *r);
	r->ctx = ctx;
	r->data = (hg_train_data)HG_TRAIN_DATA_INIT;
	r->report = (hg_train_report)HG_TRAIN_REPORT_INIT;
	CHECK_OK(hg_graph_from_coo(ctx, N, N, M, t->dst, t->src, NULL, NULL, &r->data.input.graph));
	if (sparse) {
		int32_t row[N * D], col[N * D];
		float value[N * D];
		int64_t m = 0;
		for (int32_t i = 0; i < N * D; i++) {
			if (t->x[i / D][i % D] == 0.0f)
				continue;
			row[m] = i / D;
			col[m] = i % D;
			value[m++] = t->x[i / D][i % D];
		}
		CHECK_OK(hg_graph_from_coo(ctx, N, D, m, row, col, value, NULL, &r->x_sparse));
	} else {
		CHECK_OK(hg_tensor_create(ctx, state, N, D, &r->x));
		CHECK_OK(hg_tensor_upload(r->x, t->x, HG_F32));
	}
	r->data.input.x = r->x;
	r->data.input.x_sparse = r->x_sparse;
	r->data.labels = t->label;
	r->data.train_mask = t->train;
	r->data.val_mask = t->val;
	r->data.test_mask = t->test;
}

static inline void run_close(struct run *r)
{
	hg_train_free(r->train);
	hg_tensor_free(r->x);
	hg_graph_free(r->x_sparse);
	hg_graph_free(r->data.input.graph);
	hg_context_free(r->ctx);
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

static inline void run_all(struct run *r, hg_context *ctx, const struct task *t,
                           const hg_train_config *c, int sparse)
{
	run_data(r, ctx, t, c->policy.state, sparse);
	CHECK_MSG(hg_train_create(ctx, c, &r->data, &r->train) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_MSG(hg_train_run(r->train, &r->report) >= 0, "%s", hg_context_error(ctx));
}

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

/* An allocator that counts, and fails when it is told to or asked for 1 GiB. */
struct memory {
	int64_t until; /* allocations left before one fails; < 0: none does */
	int64_t bytes;
	size_t last; /* bytes of what was given back last */
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
