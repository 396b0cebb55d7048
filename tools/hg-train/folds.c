/* Choose epochs in a cross-validation. */
#include "folds.h"

#include <math.h>
#include <stdlib.h>

#include "task.h"

int folds_begin(struct folds *f, int count, int held_out, int64_t seeds, int epochs)
{
	const size_t folds = (size_t)count, runs = (size_t)seeds;
	*f = (struct folds){.count = count, .held_out = held_out, .epochs = epochs};
	if (!count)
		return 0;
	f->validation = calloc(folds * (size_t)epochs, sizeof *f->validation);
	f->test = calloc(folds * (size_t)epochs, sizeof *f->test);
	f->own = calloc(folds, sizeof *f->own);
	f->own_mean = calloc(runs, sizeof *f->own_mean);
	f->own_std = calloc(runs, sizeof *f->own_std);
	f->one_mean = calloc(runs, sizeof *f->one_mean);
	f->one_std = calloc(runs, sizeof *f->one_std);
	f->epoch = calloc(runs, sizeof *f->epoch);
	const int have = f->validation && f->test && f->own && f->own_mean && f->own_std &&
	                 f->one_mean && f->one_std && f->epoch;
	for (size_t k = 0; have && k < folds * (size_t)epochs; k++)
		f->validation[k] = f->test[k] = (double)NAN;
	return have ? 0 : -1;
}

void folds_free(struct folds *f)
{
	void *owned[] = {f->validation, f->test,     f->own,     f->own_mean,
	                 f->own_std,    f->one_mean, f->one_std, f->epoch};
	for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
		free(owned[k]);
	*f = (struct folds){0};
}

void folds_note(struct folds *f, const hg_train_event *event)
{
	if (!f->count || event->epoch > f->epochs)
		return;
	const size_t at = (size_t)f->done * (size_t)f->epochs + (size_t)event->epoch - 1;
	f->validation[at] = event->val_metric;
	f->test[at] = event->test_metric;
}

/* Mean and sample deviation of every stride-th of `count` values; NaN where one of them is. */
static double mean_of(const double *value, int64_t count, size_t stride, double *deviation)
{
	double sum = 0, squares = 0;
	for (int64_t k = 0; k < count; k++)
		sum += value[(size_t)k * stride];
	const double mean = count ? sum / (double)count : (double)NAN;
	for (int64_t k = 0; k < count; k++)
		squares += pow(value[(size_t)k * stride] - mean, 2);
	*deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0.0;
	return mean;
}

/* The epoch, from 1, with the best mean over the folds, the first of several; 0: there is none. */
static int best_epoch(const struct folds *f)
{
	const double sign = hg_metric_rises(f->metric) ? 1 : -1;
	double best = -HUGE_VAL, deviation;
	int epoch = 0;
	for (int e = 0; e < f->epochs; e++) {
		const double mean = mean_of(f->validation + e, f->done, (size_t)f->epochs, &deviation);
		if (sign * mean > best) { /* false for NaN */
			best = sign * mean;
			epoch = e + 1;
		}
	}
	return epoch;
}

static void choose(struct folds *f)
{
	const double *measured = f->held_out ? f->validation : f->test;
	const int64_t s = f->seeds++;
	const int epoch = best_epoch(f);
	f->epoch[s] = epoch;
	f->one_mean[s] = f->one_std[s] = (double)NAN;
	if (epoch)
		f->one_mean[s] = mean_of(measured + epoch - 1, f->done, (size_t)f->epochs, &f->one_std[s]);
	f->own_mean[s] = mean_of(f->own, f->done, 1, &f->own_std[s]);
}

void folds_next(struct folds *f, const hg_train_report *report)
{
	if (!f->count)
		return;
	f->metric = report->metric;
	f->own[f->done++] = f->held_out ? report->best_val_metric : report->test_metric;
	if (f->done < f->count)
		return;
	choose(f);
	f->done = 0;
	for (size_t k = 0; k < (size_t)f->count * (size_t)f->epochs; k++)
		f->validation[k] = f->test[k] = (double)NAN;
}

void folds_end(struct folds *f)
{
	if (!f->count || f->seeds || !f->done)
		return;
	f->partial = f->done;
	choose(f);
}

static struct folds_choice over_seeds(const struct folds *f, const double *mean, const double *std)
{
	double unused;
	struct folds_choice c = {0};
	c.mean = mean_of(mean, f->seeds, 1, &c.over_seeds);
	c.over_folds = mean_of(std, f->seeds, 1, &unused);
	return c;
}

struct folds_choice folds_own(const struct folds *f)
{
	return over_seeds(f, f->own_mean, f->own_std);
}

struct folds_choice folds_one(const struct folds *f)
{
	return over_seeds(f, f->one_mean, f->one_std);
}

static void print_choice(const struct folds *f, const char *name, const struct folds_choice *c,
                         FILE *out)
{
	char value[32], folds[32], seeds[32];
	task_value(f->metric, c->mean, value);
	task_deviation(f->metric, c->over_folds, folds);
	task_deviation(f->metric, c->over_seeds, seeds);
	fprintf(out, "  %-15s ", name);
	if (isnan(c->mean))
		fputs("not defined", out);
	else
		fprintf(out, "%s +- %s over folds", value, folds);
	if (!isnan(c->mean) && f->seeds > 1)
		fprintf(out, ", +- %s over %lld seeds", seeds, (long long)f->seeds);
}

void folds_print(const struct folds *f, FILE *out)
{
	const struct folds_choice own = folds_own(f), one = folds_one(f);
	const char *name = hg_metric_name(f->metric);
	fprintf(out, "  folds           %d", f->partial ? f->partial : f->count);
	if (f->partial)
		fprintf(out, " of %d", f->count);
	fprintf(out,
	        f->held_out ? ": %s of the one held out, which also validates\n"
	                    : ": %s of the one held out, while the next one validates\n",
	        name);
	print_choice(f, "own epochs", &own, out);
	fputs(": each fold at its own best\n", out);
	print_choice(f, "one epoch", &one, out);
	fputs(": all folds at ", out);
	if (f->seeds == 1 && f->epoch[0])
		fprintf(out, "%d, ", f->epoch[0]);
	fprintf(out, "the best on average%s\n", f->held_out ? ", as in the paper on GIN" : "");
}
