#ifndef HG_BENCH_INPUTS_H
#define HG_BENCH_INPUTS_H

#include "bench.h"
#include "halfgraph/train.h"

/* What a model trains on: random features and labels of the graph of a run, all of them learnt. */
struct inputs {
	hg_tensor *x;
	hg_graph *x_sparse;
	int32_t *label; /* of each node, or with a readout of each graph */
	uint8_t *mask;
};

/* The width of the features, the graph's own or that of --features. */
int64_t input_width(const struct bench *b);
hg_status inputs_make(struct bench *b, int64_t width, struct inputs *in);
void inputs_free(struct inputs *in);

/* Calls run for each model that is asked for, with each policy (b->policy). The graph must have
 * something to train on. */
hg_status models_run(struct bench *b, hg_status (*run)(struct bench *b, const char *model));

/* The run that the options describe, without its number of epochs. */
hg_train_config train_config_of(const struct bench *b, const char *model, int64_t width);
hg_train_data train_data_of(const struct bench *b, const struct inputs *in);

#endif
