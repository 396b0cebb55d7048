#ifndef HG_TRAIN_RESULTS_H
#define HG_TRAIN_RESULTS_H

#include "learnt.h"
#include "options.h"

/* What --doctor found. */
struct bad_step {
	int runs, findings; /* runs that had one, and what was found in all of them */
	int epoch;          /* of the last such run; of an evaluation: its last */
	int64_t step;
	int64_t replayed; /* steps that were, of all runs */
};

/* What all seeds gave. */
struct results {
	const struct options *options;
	const hg_dataset *dataset;
	hg_train_config config; /* of every run but for the seed */
	int64_t nodes, edges;   /* of the graph as trained on */
	int sparse;
	struct feature_rows rows; /* of the features */
	hg_device device;
	char device_name[96];
	int runs; /* with a report: finished, or the first one, interrupted */
	/* epochs of a later one that was interrupted: it would spoil the mean; 0: there is none */
	int left_out;
	hg_train_report *report; /* [seeds] */
	/* bits, the least that a value in f16 was seen to have, and whose; "": none was seen */
	double headroom;
	char headroom_at[96];
	int64_t overflows; /* steps whose forward pass overflowed */
	int observe_every; /* steps between two that were looked at */
	int interrupted;
	const char *saved; /* where the state behind the last epoch is; NULL: nowhere */
	struct bad_step bad;
	int unlearnt;             /* runs that learnt nothing */
	struct learning learning; /* of the last of them */
};

struct statistics {
	double accuracy_mean, accuracy_std, epoch_ms; /* NaN where there is no test set */
	size_t peak_bytes, state_bytes, arena_bytes;
	int64_t skipped, steps, nonfinite_logits;
	/* captured: the last run's last epoch was; together: most epochs without a wait */
	int finite, captured, together;
	/* casts: most in a forward pass of any run; replans: of all runs */
	int casts, replans;
	int rescaled, promoted; /* most of any run */
};
/* mean and sample standard deviation over the seeds; the median of the median epoch times; the
 * largest of the byte counts. */
struct statistics results_statistics(const struct results *r);
/* The summary a person reads. */
void results_print(const struct results *r, FILE *out);

/* JSON lines. out NULL: every call does nothing. Return 0, or -1 if writing failed. */
int json_epoch(FILE *out, int64_t seed, const hg_train_event *event);
int json_summary(FILE *out, const struct results *r);

#endif
