#ifndef HG_TESTS_FAULTS_SETUP_H
#define HG_TESTS_FAULTS_SETUP_H

#include "graphs.h"
#include "halfgraph/halfgraph.h"

/* A small training set-up, with one planted fault or without it. The planters (input.c,
 * accumulation.c, ...) use the public API alone. They compute what the doctor should report by
 * their own arithmetic, so that no code is shared between the doctor and what judges it. */

/* first .. last, both included */
struct range {
	int64_t first, last;
};
struct range only(int64_t i);
struct range any(void);

/* What the doctor should report. If several elements fail in the same way, each of them is right,
 * and row and col are ranges. */
struct expected {
	struct range row, col;
	const char *tensor;         /* of INPUT and OPTIMISER: name of the leaf; NULL: not compared */
	int64_t edge_row, edge_col; /* of an edge; -1: not compared */
	/* Of a sum: the number of its terms, the row of the largest term, and the number of terms after
	 * which the running sum in f16 overflows or stops growing. 0 or -1: not compared. */
	int64_t terms, top_row, stops_at;
	double top;  /* absolute value of the largest term */
	double wide; /* the exact result; NaN: not compared */
	/* set by the test: the number of the step and the loss scale in force */
	int64_t step;
	double scale;
};

enum { SETUP_TENSORS = 8, SETUP_GRAPHS = 4 };
struct setup {
	int planted; /* 0: the same set-up without its fault */
	/* A remedy, which replaces the planter's policy and loss scale; "" and 0: none. */
	struct {
		char precision[32];
		float scale;
	} remedy;
	hg_context *ctx;
	hg_policy policy;
	hg_optim_config rates;
	hg_params *params;
	hg_optim *optim;
	hg_graph *graph[SETUP_GRAPHS];
	hg_tensor *tensor[SETUP_TENSORS];
	int graphs, tensors;
	hg_var (*record)(void *setup, hg_tape *tape);

	/* a model on a graph: features x [nodes, IN], labels [nodes or graphs] */
	hg_model_config config;
	hg_model *model;
	hg_train *train;
	hg_model_input input;
	hg_tensor *labels;
	int64_t nodes, targets;
	float *x;
	int32_t *label;

	/* An element that is overwritten after the doctor has recorded its tape. tensor NULL: none. */
	struct {
		hg_tensor *tensor;
		int64_t row, col;
		float value;
	} later;

	int steps; /* training steps during which the doctor examines; 0: it examines only the first */
	struct expected expected;
};

/* Widths of the models. Features are wider than hidden units, so that every layer multiplies first
 * and then aggregates. */
enum { IN = 16, HIDDEN = 8, CLASSES = 2 };

void setup_open(struct setup *s, hg_context *ctx, int planted);
void setup_close(struct setup *s);

/* ---- parts, which the set-up owns ---- */

/* values NULL: zeros */
hg_tensor *setup_tensor(struct setup *s, hg_dtype dtype, int64_t rows, int64_t cols,
                        const float *values);
hg_tensor *setup_labels(struct setup *s, int64_t rows, const int32_t *label);
/* Makes a graph of a list of edges (tests/graphs.h) and frees the list. */
hg_graph *setup_graph(struct setup *s, struct coo list);
/* Hub 0 with edges from and to the leaves 1 .. n. */
hg_graph *setup_star(struct setup *s, int64_t leaves);
/* Only the edges from the hub to the leaves. Forward, each leaf copies the hub; backward, the hub
 * sums the gradients of the leaves. */
hg_graph *setup_fan(struct setup *s, int64_t leaves);
/* A ring of n - 1 nodes with self loops, and the lone node n - 1, whose only edge is its self loop:
 * the last edge of the graph. */
hg_graph *setup_ring(struct setup *s, int64_t n);
/* A batch of `count` graphs, each a path of sizes[g] nodes with self loops. */
hg_graph *setup_batch(struct setup *s, int count, const int64_t *sizes);
/* Every row has an edge from every column. */
hg_graph *setup_full(struct setup *s, int64_t rows, int64_t cols);

/* Creates s->params with s->policy on the first call. A parameter starts with `value` in every
 * element. */
hg_params *setup_params(struct setup *s);
hg_param *setup_param(struct setup *s, const char *name, int64_t rows, int64_t cols, unsigned flags,
                      float value);
/* Parameter `name` [n, n], the identity. */
void setup_identity(struct setup *s, const char *name, int64_t n);
/* Parameters of a layer norm: gamma 1 and beta 0. A batch norm has mean and var as well. */
void setup_layer_norm(struct setup *s, int64_t cols);
void setup_batch_norm(struct setup *s, int64_t cols);
/* Sets an element of a parameter. row -1: all rows; col -1: all columns. */
void setup_set(struct setup *s, const char *param, int64_t row, int64_t col, float value);
/* The same for a tensor, at once or after the doctor has recorded its tape. */
void setup_write(hg_tensor *tensor, int64_t row, int64_t col, float value);
void setup_write_later(struct setup *s, hg_tensor *tensor, int64_t row, int64_t col, float value);

/* ---- a model ---- */

/* Model `name` of `layers` layers on `graph`: no dropout, mean aggregation, labels i mod CLASSES,
 * features 0, loss scale 1024. The planter then changes config, policy, x and label, calls
 * setup_build, and changes weights. */
void setup_model(struct setup *s, const char *name, int layers, hg_graph *graph);
void setup_build(struct setup *s);
/* The same with hg_train. */
void setup_build_train(struct setup *s);
/* Replaces x by a sparse matrix [nodes, features], a weighted list of edges. */
void setup_sparse(struct setup *s, int64_t features, struct coo list);
/* Every node has the features (1, 0, 0, ...): U = X W is the first row of W at every node. */
void setup_constant(struct setup *s);
/* Features uniform in [0.1, 1.1). */
void setup_varied(struct setup *s);
/* Only this row has a label. */
void setup_label_only(struct setup *s, int64_t row, int32_t label);
/* The layers of a GCN before `layer` get weights 0 and biases 1, so that they return 1
 * everywhere. */
void setup_ones_below(struct setup *s, int layer);

/* Sets the policy and its initial loss scale. */
void setup_policy(struct setup *s, hg_policy policy, float scale);

/* Sums the terms in f16, one after the other. Returns the number of terms after which the sum
 * overflows, or after which it does not change any more. */
int64_t setup_half_sum_stop(int64_t n, const double *term);
/* x rounded to f16 by arithmetic: to 11 significant bits, or to a multiple of 2^-24 if x is
 * subnormal. INFINITY from 65520. */
double setup_half(double x);

#endif
