#ifndef HG_TRAIN_RESULTS_H
#define HG_TRAIN_RESULTS_H

#include "learnt.h"
#include "options.h"

/* What --doctor found. */
struct bad_step {
	int runs, findings; /* runs with a bad step, and the findings in all of them */
	int epoch;          /* in the last such run; for an evaluation the last epoch */
	int64_t step;
	int64_t replayed; /* steps replayed in all runs */
};

/* The results of all seeds. */
struct results {
	const struct options *options;
	const hg_dataset *dataset;
	hg_train_config config; /* of every run, except for the seed */
	int64_t nodes, edges;   /* of the graph as used for training */
	int sparse;
	hg_rows_advice rows; /* how the features were prepared */
	hg_device device;
	char device_name[96];
	int runs; /* runs with a report: finished runs, or the first one even if interrupted */
	/* epochs of a later, interrupted run, which is left out because it would distort the mean; 0:
	 * none */
	int left_out;
	hg_train_report *report; /* [seeds] */
	/* the smallest headroom of a value in f16, in bits, and its tensor; "": not measured */
	double headroom;
	char headroom_at[96];
	int64_t overflows; /* steps whose forward pass overflowed */
	int observe_every; /* steps between two observations */
	int interrupted;
	const char *saved; /* where the state after the last epoch was written; NULL: nowhere */
	struct bad_step bad;
	int unlearnt;             /* runs that learnt nothing */
	struct learning learning; /* of the last such run */
};

struct statistics {
	double accuracy_mean, accuracy_std, epoch_ms; /* NaN where there is no test set */
	size_t peak_bytes, state_bytes, arena_bytes;
	int64_t skipped, steps, nonfinite_logits;
	/* captured: the last epoch of the last run was; together: most epochs without a wait */
	int finite, captured, together;
	/* casts: the most in a forward pass of any run; replans: the sum over all runs */
	int casts, replans;
	int rescaled, promoted; /* the most of any run */
};
/* Mean and sample standard deviation over the seeds; the median of the median epoch times; the
 * largest of the byte counts. */
struct statistics results_statistics(const struct results *r);
/* Print the summary for people. */
void results_print(const struct results *r, FILE *out);

/* Write JSON lines; with out NULL they do nothing. They return 0, or -1 if writing failed. */
int json_epoch(FILE *out, int64_t seed, const hg_train_event *event);
int json_summary(FILE *out, const struct results *r);

#endif
