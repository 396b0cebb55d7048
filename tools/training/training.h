#ifndef HG_TRAINING_H
#define HG_TRAINING_H

#include <stdint.h>

#include "commandline.h"
#include "dataset.h"

/* The options of a training run, common to all tools with training. NULL (names), -1 (integers) and
 * NaN (numbers) mean: not given, the model's default holds. */
struct training {
	const char *data, *model, *precision, *unproved, *device;
	const char *norm, *aggregate, *feature_norm, *readout, *sparse_features, *row_normalize;
	const char *task, *loss, *readout_layers, *optimizer, *schedule, *class_weights;
	int64_t layers, hidden, heads, out_heads, hops, epochs, seed, threads;
	int64_t warmup, lr_step, lr_patience;
	double dropout, attention_dropout, lr, weight_decay, clip, lambda, teleport, loss_scale;
	double momentum, beta1, beta2, eps, lr_factor, lr_least, label_smoothing;
	int no_self_loops, eager, raw_targets, nesterov;
	int64_t fold;         /* -1: the splits of the dataset */
	const char *validate; /* NULL: next */
};

/* The table of these options; a tool adds its own table (struct tool_line). */
extern const struct tool_option training_options[];
extern const size_t training_option_count;
void training_defaults(struct training *t);
/* Check the combination of options. Returns 0, or -1 through tool_refuse. */
int training_check(struct tool_line *line, const struct training *t);

/* 1: the fold that is held out validates. */
int training_held_out(const struct training *t);

/* The model's defaults, overridden by the options. */
hg_status training_config(const struct training *t, const hg_dataset *d, hg_train_config *config,
                          char *message);
/* Create a context with this seed. */
hg_status training_context(const struct training *t, uint64_t seed, hg_log_fn log, void *user,
                           hg_context **ctx);
/* An option that was not given leaves the field unchanged. */
void training_set_int(int *field, int64_t value);
void training_set_float(float *field, double value);

#endif
