#ifndef HG_TRAIN_RESULTS_H
#define HG_TRAIN_RESULTS_H

#include "folds.h"
#include "judged.h"
#include "learnt.h"
#include "metrics.h"
#include "observed.h"
#include "options.h"
#include "record.h"
#include "timing.h"

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
	int validated, tested; /* the dataset has such a set */
	hg_rows_advice rows;   /* how the features were prepared */
	hg_device device;
	char device_name[96];
	int runs;    /* runs with a report: finished runs, or the first one even if interrupted */
	int folds;   /* of every seed; 1 without --folds */
	int several; /* there may be more than one run */
	const struct folds *cross; /* of --folds */
	/* epochs of a later, interrupted run, which is left out because it would distort the mean; 0:
	 * none */
	int left_out;
	hg_train_report *report; /* [seeds * folds], seed by seed */
	struct metrics *metrics; /* of each of them */
	/* the smallest headroom of a value in f16, in bits, and its tensor; "": not measured */
	double headroom;
	char headroom_at[96];
	int64_t overflows; /* steps whose forward pass overflowed */
	int observe_every; /* steps between two observations */
	int interrupted;
	const char *saved; /* where the state after the last epoch was written; NULL: nowhere */
	/* where the model of the best epoch and its weights were written; NULL: nowhere */
	const char *saved_best, *exported;
	/* the run with the best validation metric, the first of several, whose model that is */
	int best_run;
	struct bad_step bad;
	int unlearnt;             /* runs that learnt nothing */
	struct learning learning; /* of the last such run */
	/* for the page: */
	struct record record; /* epochs of all runs, and the settings, which JSON has too */
	struct judged judged; /* of the first run, as what follows */
	struct observed observed;
	struct timing timing;
};

struct statistics {
	double accuracy_mean, accuracy_std, epoch_ms; /* NaN where there is no test set */
	double metric_mean, metric_std;               /* the same of the run's metric */
	size_t peak_bytes, state_bytes, arena_bytes;
	int64_t skipped, steps, nonfinite_logits;
	double prepare_share; /* the largest of any run */
	/* captured: the last epoch of the last run was; together: most epochs without a wait */
	int finite, captured, together;
	/* casts: the most in a forward pass of any run; replans: the sum over all runs */
	int casts, replans;
	int rescaled, promoted; /* the most of any run */
};
/* The seed and the fold of a run; the fold is -1 without --folds. */
int64_t results_seed(const struct results *r, int run);
int results_fold(const struct results *r, int run);
/* Mean and sample standard deviation over the runs; the median of the median epoch times; the
 * largest of the byte counts. */
struct statistics results_statistics(const struct results *r);
/* The set that measures: the test set, or the validation set where there is no test set; index of
 * struct metrics. */
int results_measured(const struct results *r);
/* Is the report, of a run that is not counted yet, the first or better than those before it on the
 * validation set? A metric that is not defined is the worst. */
int results_best(const struct results *r, const hg_train_report *report);
/* Note the settings of the run from its state, and those that a state does not have. */
void results_settings(struct results *r, const hg_state *state);
/* Print the summary for people. */
void results_print(const struct results *r, FILE *out);

/* Write JSON lines; with out NULL they do nothing. They return 0, or -1 if writing failed. */
int json_epoch(FILE *out, int64_t seed, int fold, const hg_train_config *config,
               const hg_train_event *event);
/* The run that `report` is of, the next one of r. */
int json_run(FILE *out, const struct results *r, const hg_train_report *report);
int json_summary(FILE *out, const struct results *r);

#endif
