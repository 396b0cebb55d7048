#ifndef HG_TRAIN_PAGE_H
#define HG_TRAIN_PAGE_H

#include "html.h"
#include "results.h"

/* The pages of hg-train. Each part prints a section of its own, or nothing if there is nothing to
 * show. */

struct comparison {
	const struct record *run; /* [runs] */
	int runs;
};

/* The whole page of a run, of struct results; and of several runs, of struct comparison. */
void page_run_print(FILE *out, const void *results);
void page_compare_print(FILE *out, const void *comparison);

extern const char *const page_train_style[]; /* lines, then NULL */

/* page_numbers.c: a value of a metric, "93.04 %" or "0.8123"; a dash for NaN. */
void page_metric(FILE *out, const char *metric, double value);
/* The mean and, of several, the deviation. */
void page_metric_mean(FILE *out, const char *metric, double mean, double deviation, int64_t of);
/* "12.34 ms", "5.6 us"; "12.3 MiB". A dash for NaN. */
void page_duration(FILE *out, double us);
void page_bytes(FILE *out, double bytes);
/* "12 %" of a whole; a dash where there is no whole. */
void page_share(FILE *out, double part, double whole);
/* "accuracy", "ROC-AUC": a metric for people. */
const char *page_metric_name(const char *metric);

/* page_run.c: which of several runs a figure is of, " of the first seed"; "" of a single one. */
const char *page_first_of(const struct results *r);

void page_settings(FILE *out, const struct results *r);
/* The curves of all runs over each other; of one run also its validation and training. */
void page_curves(FILE *out, const struct record *run, int runs, const char *note);
/* Every epoch as a row; of long runs some. */
void page_epochs(FILE *out, const struct record *r);
void page_seeds(FILE *out, const struct results *r);
/* page_folds.c: a cross-validation, in place of the seeds. */
void page_folds(FILE *out, const struct results *r);
void page_metrics(FILE *out, const struct results *r);
void page_judged(FILE *out, const struct results *r);
/* Parts of page_judged. */
void page_classes(FILE *out, const struct judged *j);
void page_labels(FILE *out, const struct judged *j);
void page_targets(FILE *out, const struct judged *j);
void page_times(FILE *out, const struct timing *t);
void page_observed(FILE *out, const struct results *r);

#endif
