/* Planted tasks and training runs on them. */
#include "planted.h"

#include <stdlib.h>
#include <string.h>

static void *array_of(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);
	CHECK(memory != NULL);
	return memory;
}

struct planted planted_make(struct coo edges, int64_t d, int64_t classes,
                            struct planted_features features)
{
	const int64_t n = edges.rows;
	struct planted p = {.n = n, .d = d, .classes = classes, .edges = edges};
	p.label = array_of(n, sizeof *p.label);
	p.x = array_of(n * d, sizeof *p.x);
	for (int64_t i = 0; i < n; i++) {
		p.label[i] = (int32_t)(i % classes);
		for (int64_t c = 0; c < d; c++) {
			if (features.zeros > 0.0 && test_uniform() < features.zeros)
				continue;
			const double signal = c % classes == i % classes ? features.signal : 0.0;
			p.x[i * d + c] = (float)(features.noise * test_normal() + signal);
		}
	}
	return p;
}

static uint8_t *split_of(int64_t n, int64_t first, int64_t last)
{
	if (first >= last)
		return NULL;
	uint8_t *mask = array_of(n, 1);
	memset(mask + first, 1, (size_t)(last - first));
	return mask;
}

void planted_split(struct planted *p, int64_t train, int64_t val)
{
	CHECK(train + val <= p->n && !p->train && !p->val && !p->test);
	p->train = split_of(p->n, 0, train);
	p->val = split_of(p->n, train, train + val);
	p->test = split_of(p->n, train + val, p->n);
}

static void rename_rows(void *rows, size_t size, const int32_t *name, int64_t n)
{
	if (!rows)
		return;
	char *old = array_of(n, size);
	memcpy(old, rows, (size_t)n * size);
	for (int64_t i = 0; i < n; i++)
		memcpy((char *)rows + (size_t)name[i] * size, old + (size_t)i * size, size);
	free(old);
}

void planted_rename(struct planted *p, const int32_t *name)
{
	for (int64_t e = 0; e < p->edges.m; e++) {
		p->edges.dst[e] = name[p->edges.dst[e]];
		p->edges.src[e] = name[p->edges.src[e]];
	}
	rename_rows(p->label, sizeof *p->label, name, p->n);
	rename_rows(p->x, (size_t)p->d * sizeof *p->x, name, p->n);
	rename_rows(p->train, 1, name, p->n);
	rename_rows(p->val, 1, name, p->n);
	rename_rows(p->test, 1, name, p->n);
}

void planted_free(struct planted *p)
{
	coo_free(&p->edges);
	free(p->label);
	free(p->x);
	free(p->train);
	free(p->val);
	free(p->test);
	*p = (struct planted){0};
}

static hg_graph *sparse_features(hg_context *ctx, const struct planted *p)
{
	struct coo list = coo_empty(p->n, p->d);
	for (int64_t i = 0; i < p->n * p->d; i++)
		if (p->x[i] != 0.0f)
			coo_add_weighted(&list, i / p->d, i % p->d, p->x[i]);
	return coo_graph(ctx, list);
}

void planted_open(struct planted_run *r, hg_context *ctx, const struct planted *p, hg_dtype state,
                  int sparse)
{
	*r = (struct planted_run){
	    .ctx = ctx, .data = HG_TRAIN_DATA_INIT, .report = HG_TRAIN_REPORT_INIT};
	r->graph = coo_to_graph(ctx, &p->edges);
	if (sparse) {
		r->x_sparse = sparse_features(ctx, p);
	} else {
		CHECK_OK(hg_tensor_create(ctx, state, p->n, p->d, &r->x));
		CHECK_OK(hg_tensor_upload(r->x, p->x, HG_F32));
	}
	r->data.input.graph = r->graph;
	r->data.input.x = r->x;
	r->data.input.x_sparse = r->x_sparse;
	r->data.labels = p->label;
	r->data.train_mask = p->train;
	r->data.val_mask = p->val;
	r->data.test_mask = p->test;
}

void planted_begin(struct planted_run *r, const hg_train_config *config)
{
	CHECK_MSG(hg_train_create(r->ctx, config, &r->data, &r->train) == HG_OK, "%s",
	          hg_context_error(r->ctx));
}

void planted_train(struct planted_run *r, hg_context *ctx, const struct planted *p,
                   const hg_train_config *config, int sparse)
{
	planted_open(r, ctx, p, config->policy.state, sparse);
	planted_begin(r, config);
	CHECK_MSG(hg_train_run(r->train, &r->report) >= 0, "%s", hg_context_error(ctx));
}

void planted_close(struct planted_run *r)
{
	hg_train_free(r->train);
	hg_tensor_free(r->x);
	hg_graph_free(r->x_sparse);
	hg_graph_free(r->graph);
	hg_context_free(r->ctx);
	*r = (struct planted_run){0};
}
