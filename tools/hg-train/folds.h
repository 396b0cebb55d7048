#ifndef HG_TRAIN_FOLDS_H
#define HG_TRAIN_FOLDS_H

#include <stdint.h>
#include <stdio.h>

#include "halfgraph/train.h"

/* The figures of a cross-validation: --folds trains every fold of every seed, seed by seed, and two
 * ways of choosing epochs are in use.
 *
 *    own epochs   each fold is measured at the epoch with its own best validation value
 *    one epoch    all folds of a seed are measured at one epoch: the one with the best mean
 *                 validation value over the folds, the first of several. With the held-out fold as
 *                 validation set this is what the paper on GIN reports (Xu et al. 2019)
 *
 * Measured is the test set; where there is none because the held-out fold validates, that fold. The
 * value of own epochs is then the best of each fold's curve, which no unseen data would reach. */
struct folds_choice {
	/* the mean over the seeds of: the mean over the folds; the sample deviation over the folds */
	double mean, over_folds;
	double over_seeds; /* sample deviation of the mean over the folds; 0 for one seed */
};

struct folds {
	int count; /* folds of a run; 0: no cross-validation */
	int held_out;
	int epochs;
	hg_metric metric; /* decides what is better */
	/* of the current seed [count][epochs]: NaN where an epoch was not evaluated */
	double *validation, *test;
	double *own; /* [count]: at the fold's own best epoch */
	int done;    /* folds of the current seed */
	/* one of each for every seed [seeds]; `seeds` of them are complete */
	double *own_mean, *own_std, *one_mean, *one_std;
	int *epoch; /* the one epoch, from 1; 0: none was evaluated in every fold */
	int64_t seeds;
	int partial; /* folds of the only seed, if it is not complete; else 0 */
};
/* count 0: no cross-validation, and the other calls do nothing. Returns 0, or -1 if memory ran
 * out. */
int folds_begin(struct folds *f, int count, int held_out, int64_t seeds, int epochs);
/* Note an epoch of the current fold. */
void folds_note(struct folds *f, const hg_train_event *event);
/* The current fold is trained; with the last of a seed the seed is complete. */
void folds_next(struct folds *f, const hg_train_report *report);
/* The training ends: what an interrupted first seed has counts. */
void folds_end(struct folds *f);
void folds_free(struct folds *f);

struct folds_choice folds_own(const struct folds *f);
struct folds_choice folds_one(const struct folds *f);
/* Print both for people. */
void folds_print(const struct folds *f, FILE *out);

#endif
