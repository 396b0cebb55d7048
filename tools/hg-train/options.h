#ifndef HG_TRAIN_OPTIONS_H
#define HG_TRAIN_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

/* What the command line asks for. NULL (names), -1 (integers) and NaN (numbers): not given, the model's default holds. */
struct options {
	const char *data, *model, *precision, *device, *json;
	const char *norm, *aggregate, *readout, *sparse_features, *row_normalize;
	int64_t layers, hidden, heads, out_heads, epochs, patience, eval_every, seed, seeds, threads, together;
	double dropout, attention_dropout, lr, weight_decay, lambda, loss_scale;
	int no_self_loops, eager, print_plan, help, version;
};

/* 0, or -1 after writing one line that names the option into message. */
int options_parse(struct options *o, int argc, char **argv, char *message, size_t size);
/* The page that --help shows. */
void options_help(FILE *out);

#endif
