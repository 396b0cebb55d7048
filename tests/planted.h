#ifndef HG_TESTS_PLANTED_H
#define HG_TESTS_PLANTED_H

#include "graphs.h"
#include "halfgraph/train.h"

/* A planted task: nodes to classify, whose features (and edges, if the caller's list has
 * communities) tell their classes. And training runs on it. */
struct planted {
	int64_t n, d, classes;
	struct coo edges;
	int32_t *label;              /* [n]: i % classes */
	float *x;                    /* [n, d] */
	uint8_t *train, *val, *test; /* [n], or NULL: there is no such split */
};

/* How features are drawn. Column c of a node of class c % classes is larger by `signal`. */
struct planted_features {
	double noise, signal; /* noise: standard deviation */
	double zeros;         /* this share of the features is 0 */
};

/* Takes the list of edges. No node is in a split, so every node trains. */
struct planted planted_make(struct coo edges, int64_t d, int64_t classes,
                            struct planted_features features);
/* The first `train` nodes train, the next `val` validate, the others test. A split without a node
 * is NULL. */
void planted_split(struct planted *p, int64_t train, int64_t val);
/* Node i becomes node name[i]; name is a permutation. */
void planted_rename(struct planted *p, const int32_t *name);
void planted_free(struct planted *p);

struct planted_run {
	hg_context *ctx;
	hg_graph *graph, *x_sparse;
	hg_tensor *x;
	hg_train_data data;
	hg_train *train;
	hg_train_report report;
};

/* Brings the task to a device: features as a tensor of type `state`, or as a sparse matrix. Takes
 * the context. */
void planted_open(struct planted_run *r, hg_context *ctx, const struct planted *p, hg_dtype state,
                  int sparse);
/* After planted_open: creates the training run. */
void planted_begin(struct planted_run *r, const hg_train_config *config);
/* All three: planted_open, planted_begin and hg_train_run, whose status must be no error. */
void planted_train(struct planted_run *r, hg_context *ctx, const struct planted *p,
                   const hg_train_config *config, int sparse);
void planted_close(struct planted_run *r);

#endif
