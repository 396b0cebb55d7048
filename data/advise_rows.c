/* Are the features a bag of words whose rows should be divided by their sums?
 *
 * A row sum is the length of a text, or how active a customer was. Division removes that, and makes
 * every entry small, 1/sum. At the usual learning rate and weight decay this helps if rows are
 * short and share few entries, and hides the signal if rows are long and alike. Whether the values
 * are stored sparse or dense does not matter. For features that are not negative and mostly zero,
 * these decide:
 *
 *    entries    of a row that are not zero, on average
 *    overlap    mean cosine of two rows: |mean of x_i / |x_i||^2, in one pass
 *    counts     integers, some of them above 1
 *
 * Validation accuracy with division minus that without, in points (GCN and GAT with the models'
 * defaults, 200 and 300 epochs, 3 to 5 seeds; planted datasets of 2,400 to 3,000 nodes, 20 labels
 * per class):
 *
 *    dataset                   entries  overlap    GCN           GAT
 *    Citeseer                       32      .05   +2.8          +4.3
 *    Cora                           18      .06   +1.3          +0.9
 *    planted words               19-26  .04-.05   +0.2 to +0.9  +0.9 to +2.0
 *    planted purchases           23-55  .04-.09   -0.8 to -0.1
 *    planted words               15-19  .15-.33    0.0 to +0.2
 *    Twitch DE                      20      .20   -1.0          -1.4
 *    planted words                  65      .40   +0.2
 *    planted purchases          89-126  .17-.21   -2.7 to  0.0  -6.3
 *    planted words             105-165  .06-.26   -0.2 to +0.6
 *    planted purchases             164      .08   -14.2
 *    Amazon Computers              270      .34   -15.2         -7.8
 *    planted purchases         242-358  .40-.61   -21 to -6.5   -74 to -69
 *    planted counts, words       81-95  .11-.15   +2.0 to +5.7  +2.0
 *    planted counts, purchases  34-241  .15-.56   -0.6 to +39
 *
 * Counts gain whatever their overlap, or lose little, because large numbers hurt more than small
 * ones. The spread of the row sums does not matter: their standard deviation is 0.75 of the mean in
 * Computers, 0.32 in Cora and 0.19 in Citeseer. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/versioned.h"
#include "internal.h"

/* Between the datasets that gain and those that lose in the table above. */
#define MOST_ENTRIES 64.0
#define MOST_OVERLAP 0.1
/* If more than half of the cells are not zero, the values are measurements rather than words. */
#define MOST_DENSITY 0.5
/* Sums that are 1 except for rounding: f16 rounds each entry by 2^-11 relatively, also where the
 * values are then stored as f32. */
#define ROUNDED 0x1p-10

struct row_facts {
	int64_t entries, rows; /* entries that are not zero; rows that have some */
	double least, most;    /* the least and largest sum of such a row */
	double overlap;
	int negative, fractions, above_1;
};

/* Entry k of row i: its column and value. */
static float entry_of(const hg_dataset *d, int64_t i, int64_t k, int64_t *column)
{
	if (d->feat) {
		*column = k;
		return hg__data_feature(d, i * d->features + k);
	}
	const int64_t e = d->feat_rowptr[i] + k;
	*column = d->feat_col[e];
	return d->feat_value ? d->feat_value[e] : 1.0f;
}

/* mean [features] += row i, scaled to length 1. */
static void measure_row(const hg_dataset *d, int64_t i, struct row_facts *l, double *mean)
{
	const int64_t count = d->feat ? d->features : d->feat_rowptr[i + 1] - d->feat_rowptr[i];
	const int64_t before = l->entries;
	double sum = 0, squares = 0;
	int64_t column;
	for (int64_t k = 0; k < count; k++) {
		const double x = (double)entry_of(d, i, k, &column);
		l->entries += x != 0.0;
		l->negative |= x < 0.0;
		l->fractions |= x != floor(x);
		l->above_1 |= x > 1.0;
		sum += fabs(x);
		squares += x * x;
	}
	if (l->entries == before)
		return;
	l->least = l->rows++ ? fmin(l->least, sum) : sum;
	l->most = fmax(l->most, sum);
	for (int64_t k = 0; k < count; k++) {
		const double x = (double)entry_of(d, i, k, &column);
		mean[column] += x / sqrt(squares);
	}
}

static hg_status measure_rows(const hg_dataset *d, struct row_facts *l, char *message)
{
	double *mean = NULL;
	HG__TRY(
	    hg__data_alloc(d->features, sizeof *mean, "mean of the features", (void **)&mean, message));
	for (int64_t c = 0; c < d->features; c++)
		mean[c] = 0.0;
	for (int64_t i = 0; i < d->nodes; i++)
		measure_row(d, i, l, mean);
	for (int64_t c = 0; l->rows && c < d->features; c++)
		l->overlap += mean[c] / (double)l->rows * (mean[c] / (double)l->rows);
	free(mean);
	return HG_OK;
}

static void decide(hg_rows_advice *advice, int normalize, const char *format, ...) HG_PRINTF(3, 4);
static void decide(hg_rows_advice *advice, int normalize, const char *format, ...)
{
	char line[HG_DATA_MESSAGE];
	va_list args;
	advice->normalize = normalize;
	va_start(args, format);
	hg__data_say(line, format, args);
	va_end(args);
	line[sizeof advice->why - 1] = 0;
	memcpy(advice->why, line, strlen(line) + 1);
}

static int adds_up_to_1(double sum)
{
	return fabs(sum - 1.0) <= ROUNDED;
}

static void judge(const hg_dataset *d, const struct row_facts *l, hg_rows_advice *rows)
{
	const double cells = (double)l->rows * (double)d->features;
	const double entries = l->rows ? (double)l->entries / (double)l->rows : 0.0;
	const int short_rows = entries <= MOST_ENTRIES, few_shared = l->overlap <= MOST_OVERLAP;
	if (!l->rows)
		decide(rows, 0, "all are zero");
	else if (l->negative)
		decide(rows, 0, "not a bag of words: some are negative");
	else if (adds_up_to_1(l->least) && adds_up_to_1(l->most))
		decide(rows, 0, "each row adds up to 1 already");
	else if ((double)l->entries > MOST_DENSITY * cells)
		decide(rows, 0, "not a bag of words: most are not zero");
	else if (!l->fractions && l->above_1)
		decide(rows, 1, "counts, whose rows add up to %.6g to %.6g", l->least, l->most);
	else
		decide(rows, short_rows && few_shared,
		       "%s bag of words: %.1f entries per row%s, overlap %.2f%s",
		       short_rows && few_shared ? "a" : "not a", entries, short_rows ? "" : " (many)",
		       l->overlap, few_shared ? "" : " (much)");
}

hg_status hg_dataset_advise_rows(const hg_dataset *d, hg_rows_advice *advice, char *message)
{
	hg_rows_advice ours = HG_ROWS_ADVICE_INIT;
	struct row_facts facts = {.entries = 0};
	if (!d || !advice)
		return hg__data_fail(message, HG_ERR_ARG, "advise_rows: %s is NULL",
		                     d ? "advice" : "dataset");
	if (d->feat || d->feat_rowptr)
		HG__TRY(measure_rows(d, &facts, message));
	judge(d, &facts, &ours);
	return hg__struct_write(advice, &ours, sizeof ours)
	           ? HG_OK
	           : hg__data_fail(message, HG_ERR_ARG,
	                           "advise_rows: advice.size is not set (start from "
	                           "HG_ROWS_ADVICE_INIT)");
}
