#ifndef HG_TESTS_FAULTS_WORLD_H
#define HG_TESTS_FAULTS_WORLD_H

#include "halfgraph/halfgraph.h"

/* A small training set-up with or without one planted fault. The planters (input.c, accumulation.c
 * ...) know the public API alone: what is right about a fault follows from how it was made, in
 * their own arithmetic, and not from any code that the doctor could share. */

/* first .. last, both included */
struct among {
	int64_t first, last;
};
struct among only(int64_t i);
struct among anywhere(void);

/* What a doctor should say. Where several elements fail alike, any of them is right. */
struct answer {
	struct among row, col;
	const char *tensor;         /* INPUT, OPTIMISER: the leaf's name; NULL: not asked */
	int64_t edge_row, edge_col; /* of an edge; -1: not asked */
	/* a sum: its addends, the place and value of the largest, the number of them at which the
	 * running half ended; 0 or -1: not asked */
	int64_t terms, top_row, ended;
	double top;  /* |value| */
	double wide; /* the exact value; NaN: not asked */
	/* of the test: the number of the step, the loss scale in force */
	int64_t step;
	double scale;
};

enum { WORLD_TENSORS = 8, WORLD_GRAPHS = 4 };
struct world {
	int sick; /* plant it; 0: the same set-up in good health */
	/* a remedy: in place of the planter's policy and loss scale; "", 0: none */
	struct {
		char precision[32];
		float scale;
	} cure;
	hg_context *ctx;
	hg_policy policy;
	hg_optim_config rates;
	hg_params *params;
	hg_optim *optim;
	hg_graph *graph[WORLD_GRAPHS];
	hg_tensor *tensor[WORLD_TENSORS];
	int graphs, tensors;
	hg_var (*record)(void *world, hg_tape *tape);

	/* a model on a graph: features x [nodes, IN], labels [nodes or graphs] */
	hg_model_config config;
	hg_model *model;
	hg_train *train;
	hg_model_input input;
	hg_tensor *labels;
	int64_t nodes, targets;
	float *x;
	int32_t *label;

	/* what is spoiled once the doctor has recorded its tape; tensor NULL: nothing */
	struct {
		hg_tensor *tensor;
		int64_t row, col;
		float value;
	} late;

	int steps; /* of training to be looked at; 0: the first alone */
	struct answer answer;
};

/* Widths of the models: wider features than hidden units, so that every layer multiplies first and
 * then aggregates. */
enum { IN = 16, HIDDEN = 8, CLASSES = 2 };

void world_open(struct world *w, hg_context *ctx, int sick);
void world_close(struct world *w);

/* ---- parts, owned by the world ---- */
/* NULL: zeros */
hg_tensor *world_tensor(struct world *w, hg_dtype dtype, int64_t rows, int64_t cols,
                        const float *values);
hg_tensor *world_labels(struct world *w, int64_t rows, const int32_t *label);
hg_graph *world_graph(struct world *w, int64_t rows, int64_t cols, int64_t m, const int32_t *dst,
                      const int32_t *src, const float *weight);
/* Hub 0 and leaves 1 .. n: hub <- leaf, leaf <- hub. Its rows: the hub's n edges first, then one a
 * leaf. */
hg_graph *world_star(struct world *w, int64_t leaves);
/* leaf <- hub only: forward each leaf copies the hub, backward the hub adds up the leaves. */
hg_graph *world_fan(struct world *w, int64_t leaves);
/* n - 1 nodes in a ring with self loops, and one, the last, with nothing but a self loop: the
 * loner. Edges: three a node of the ring (ascending), then the loner's. */
hg_graph *world_ring(struct world *w, int64_t n);
/* Paths of so many nodes with self loops, one graph of a batch each. */
hg_graph *world_batch(struct world *w, int count, const int64_t *sizes);
/* rows that each gather all of cols */
hg_graph *world_full(struct world *w, int64_t rows, int64_t cols);

/* Opens w->params with w->policy where they are not open yet; a parameter starts with `value`
 * everywhere. */
hg_params *world_params(struct world *w);
hg_param *world_param(struct world *w, const char *name, int64_t rows, int64_t cols, unsigned flags,
                      float value);
/* One element, or with row, col < 0 all rows, all columns of it. */
void world_set(struct world *w, const char *param, int64_t row, int64_t col, float value);
/* Spoil an element of a tensor now, or, after late(), once the doctor has recorded. */
void world_spoil(hg_tensor *tensor, int64_t row, int64_t col, float value);
void world_spoil_later(struct world *w, hg_tensor *tensor, int64_t row, int64_t col, float value);

/* ---- a model ---- */

/* Model `name` of `layers` layers on `graph`: no dropout, mean aggregation, labels i mod CLASSES,
 * features 0, loss scale 1024. The planter then changes config, policy, x and label, calls
 * world_build, and changes weights. */
void world_model(struct world *w, const char *name, int layers, hg_graph *graph);
void world_build(struct world *w);
/* The same as a run of hg_train. */
void world_build_train(struct world *w);
/* In place of x: what is stored of the features, as a weighted matrix [nodes, features]. */
void world_sparse(struct world *w, int64_t features, int64_t m, const int32_t *row,
                  const int32_t *col, const float *value);
/* The features of everybody are (1, 0, 0, ...): U = X W is the first row of W, at every node. */
void world_constant(struct world *w);
/* Features uniform in [0.1, 1.1). */
void world_varied(struct world *w);
/* Only this row has a label. */
void world_label_only(struct world *w, int64_t row, int32_t label);
/* Layers before `layer` of a GCN say 1 everywhere: weights 0, biases 1. */
void world_ones_below(struct world *w, int layer);

/* The policy, and the loss scale it begins with. */
void world_policy(struct world *w, hg_policy policy, float scale);

/* Sum of terms in halves, one after the other: how many were taken in when it overflowed, else when
 * it last grew. */
int64_t world_half_sum_ends(int64_t n, const double *term);
/* x rounded to a half, by arithmetic: 11 bits, or multiples of 2^-24; INFINITY from 65520. */
double world_half(double x);

#endif
