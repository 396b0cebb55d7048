#ifndef HG_TRAINING_H
#define HG_TRAINING_H

#include <stdint.h>

#include "commandline.h"
#include "dataset.h"
#include "halfgraph/halfgraph.h"

/* What the command line asks of a training run, whichever tool makes it. NULL (names), -1
 * (integers) and NaN (numbers): not given, the model's default holds. */
struct training {
	const char *data, *model, *precision, *unproved, *device;
	const char *norm, *aggregate, *readout, *sparse_features, *row_normalize;
	int64_t layers, hidden, heads, out_heads, epochs, seed, threads;
	double dropout, attention_dropout, lr, weight_decay, clip, lambda, loss_scale;
	int no_self_loops, eager;
};

/* The options that fill it; a tool puts its own beside them (struct tool_line). */
extern const struct tool_option training_options[];
extern const size_t training_option_count;
void training_defaults(struct training *t);
/* What only the whole of a command line tells: 0, or -1 through tool_refuse. */
int training_check(struct tool_line *line, const struct training *t);

/* The model's defaults, and on top what the command line says. */
hg_status training_config(const struct training *t, const hg_dataset *d, hg_train_config *config);
/* A seed is its context's. */
hg_status training_context(const struct training *t, uint64_t seed, hg_log_fn log, void *user,
                           hg_context **ctx);
/* An option that was not given leaves the field as it is. */
void training_set_int(int *field, int64_t value);
void training_set_float(float *field, double value);

#endif
