/* What rounding to fp16 does to each column of the features, and to the weights of the edges. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/report.h"
#include "precision/half.h"

/* Up to this share of its values a column is as its other values are. */
#define STRAY 0.01
/* fitness.h derives it. */
#define MOST_NOISE 0.125

/* One value. Until hg__examine_columns finishes, mean, error and deviation hold sums. */
typedef void (*see_fn)(hg_fitness_column *c, float x);

static void see_value(hg_fitness_column *c, float x)
{
	c->values++;
	if (!isfinite(x)) {
		c->nonfinite++;
		return;
	}
	const int first = c->values - c->nonfinite == 1;
	c->least = first || (double)x < c->least ? (double)x : c->least;
	c->most = first || (double)x > c->most ? (double)x : c->most;
	c->mean += (double)x;
	c->nonzero += x != 0.0f;
	const hg_half half = hg__half_from_float(x);
	const unsigned magnitude = half & 0x7FFFu;
	if (magnitude == 0x7C00u) {
		c->overflow++;
		return;
	}
	const double error = (double)hg__half_to_float(half) - (double)x;
	c->error += error * error;
	c->vanish += magnitude == 0 && x != 0.0f;
	c->subnormal += magnitude > 0 && magnitude < 0x0400u && error != 0.0;
}

static void see_deviation(hg_fitness_column *c, float x)
{
	const double from_mean = (double)x - c->mean;
	if (isfinite(x))
		c->deviation += from_mean * from_mean;
}

/* The `missing` values that are not stored are zeros. */
static void finish_values(hg_fitness_column *c, int64_t missing)
{
	const int stored = c->values > c->nonfinite;
	c->values += missing;
	if (missing > 0) {
		c->least = stored && c->least < 0.0 ? c->least : 0.0;
		c->most = stored && c->most > 0.0 ? c->most : 0.0;
	}
	const int64_t finite = c->values - c->nonfinite, rounded = finite - c->overflow;
	c->mean = finite > 0 ? c->mean / (double)finite : 0.0;
	c->error = rounded > 0 ? sqrt(c->error / (double)rounded) : 0.0;
	c->deviation = (double)missing * c->mean * c->mean;
}

static void finish_deviation(hg_fitness_column *c)
{
	const int64_t finite = c->values - c->nonfinite;
	c->deviation = finite > 0 ? sqrt(c->deviation / (double)finite) : 0.0;
}

/* ---- the passes ---- */

static hg_status pass_features(const struct hg__exam *exam, see_fn see, const char *what)
{
	const hg_dataset *d = exam->d;
	hg_fitness_column *column = exam->report->column;
	const int64_t columns = exam->report->open.columns;
	int64_t since = HG__SLAB;
	for (int64_t i = 0; i < d->nodes; i++) {
		const int64_t begin = d->feat ? 0 : d->feat_rowptr[i],
		              end = d->feat ? columns : d->feat_rowptr[i + 1];
		for (int64_t k = begin; k < end; k++) {
			if (d->feat)
				see(&column[k], hg__data_feature(d, i * d->features + k));
			else if (d->feat_col[k] < columns)
				see(&column[d->feat_col[k]], d->feat_value ? d->feat_value[k] : 1.0f);
		}
		since += end - begin + 1;
		if (since >= HG__SLAB) {
			HG__TRY(hg__data_step(exam->progress, what, i, d->nodes, exam->message));
			since = 0;
		}
	}
	return HG_OK;
}

static hg_status measure_features(const struct hg__exam *exam)
{
	hg_fitness_column *column = exam->report->column;
	const int64_t columns = exam->report->open.columns;
	HG__TRY(pass_features(exam, see_value, "checking features"));
	for (int64_t j = 0; j < columns; j++)
		finish_values(&column[j], exam->d->nodes - column[j].values);
	HG__TRY(pass_features(exam, see_deviation, "checking their spread"));
	for (int64_t j = 0; j < columns; j++)
		finish_deviation(&column[j]);
	return HG_OK;
}

static void measure_weights(const hg_dataset *d, hg_fitness_column *c)
{
	for (int64_t e = 0; e < d->edges; e++)
		see_value(c, d->weight[e]);
	finish_values(c, 0);
	for (int64_t e = 0; e < d->edges; e++)
		see_deviation(c, d->weight[e]);
	finish_deviation(c);
}

/* ---- the findings ---- */

static double largest(const hg_fitness_column *c)
{
	return fmax(fabs(c->least), fabs(c->most));
}

/* A remedy as an option and as a call. */
struct remedy {
	const char *option, *call;
};

/* Would the column keep its spread with mean 0 and deviation 1? Not if values far away from the
 * others make the deviation: the others then lie close together, at `far` deviations from 0, where
 * halves differ by at most 2^-10 * far and rounding errors have a deviation of that / sqrt(12). */
static int standardizing_helps(const hg_fitness_column *c)
{
	const double far = fmax(fabs(c->low - c->mean), fabs(c->high - c->mean));
	return c->low == c->high ||
	       far * 0x1p-10 / sqrt(12.0) <= MOST_NOISE * (c->high - c->low) / QUARTILES_OF_NORMAL;
}

/* What brings a column into the range of halves. A few large values are clipped; a sum of 1 for
 * each row keeps sparse features sparse; other features want mean 0 and deviation 1. */
static struct remedy remedy_of(const struct hg__exam *exam, hg_fitness_kind kind,
                               const hg_fitness_column *c)
{
	static const struct remedy clip = {"--clip", "hg_dataset_features_to"},
	                           rows = {"--row-normalize", "hg_dataset_row_normalize"},
	                           columns = {"--standardize", "hg_dataset_standardize"},
	                           none = {"", ""};
	if (kind == HG_FITNESS_OVERFLOW && (double)c->overflow < STRAY * (double)c->values)
		return clip;
	if (kind == HG_FITNESS_OVERFLOW && exam->d->feat_rowptr && c->least >= 0.0)
		return rows;
	return kind == HG_FITNESS_SPREAD && !standardizing_helps(c) ? none : columns;
}

static hg_status add_column(const struct hg__exam *exam, hg_fitness_finding f,
                            const hg_fitness_column *c)
{
	/* sums of fp16 alone round weights */
	static const struct remedy of_weights = {"--precision fp16", "hg_policy_fp16"};
	f.weights = f.at < 0;
	if (f.kind == HG_FITNESS_NONFINITE)
		return hg__report_add(exam, f);
	if (f.weights)
		f.severity = HG_SEVERITY_NOTE;
	const struct remedy remedy = f.weights ? of_weights : remedy_of(exam, f.kind, c);
	f.option = remedy.option;
	f.call = remedy.call;
	return hg__report_add(exam, f);
}

static hg_fitness_finding finding(hg_fitness_kind kind, int loss, int64_t at, int64_t count,
                                  int64_t of, double value)
{
	return (hg_fitness_finding){.kind = kind,
	                            .severity = loss ? HG_SEVERITY_LOSS : HG_SEVERITY_NOTE,
	                            .at = at,
	                            .count = count,
	                            .of = of,
	                            .value = value};
}

static hg_status judge_spread(const struct hg__exam *exam, int64_t at,
                              const struct hg__values *values, hg_fitness_column *c)
{
	HG__TRY(hg__count_distinct(values, c, exam->message));
	return add_column(
	    exam, finding(HG_FITNESS_SPREAD, 1, at, c->distinct_half, c->distinct, c->noise), c);
}

/* Column `at`, or the weights, -1. */
static hg_status judge(const struct hg__exam *exam, int64_t at, const struct hg__values *values,
                       hg_fitness_column *c)
{
	const int64_t finite = c->values - c->nonfinite;
	hg__measure_noise(values, c);
	if (c->nonfinite > 0) {
		hg_fitness_finding f = finding(HG_FITNESS_NONFINITE, 1, at, c->nonfinite, c->values, 0);
		f.severity = HG_SEVERITY_REFUSED;
		HG__TRY(add_column(exam, f, c));
	}
	if (c->overflow > 0)
		HG__TRY(add_column(
		    exam, finding(HG_FITNESS_OVERFLOW, 1, at, c->overflow, finite, largest(c)), c));
	if (c->vanish > 0 && 2 * c->vanish >= c->nonzero)
		return add_column(exam,
		                  finding(HG_FITNESS_VANISH, 1, at, c->vanish, c->nonzero, largest(c)), c);
	if (c->least < c->most && c->noise > MOST_NOISE)
		return judge_spread(exam, at, values, c);
	if ((double)c->vanish > STRAY * (double)c->nonzero)
		return add_column(exam,
		                  finding(HG_FITNESS_VANISH, 0, at, c->vanish, c->nonzero, largest(c)), c);
	if (2 * (c->vanish + c->subnormal) > c->nonzero)
		return add_column(
		    exam,
		    finding(HG_FITNESS_SUBNORMAL, 0, at, c->vanish + c->subnormal, c->nonzero, largest(c)),
		    c);
	return HG_OK;
}

/* One finding for all columns that tell nothing. */
static hg_status judge_constants(const struct hg__exam *exam)
{
	const hg_fitness_column *column = exam->report->column;
	const int64_t columns = exam->report->open.columns;
	hg_fitness_finding f = finding(HG_FITNESS_CONSTANT, 0, -1, 0, columns, 0);
	for (int64_t j = 0; exam->d->nodes > 1 && j < columns; j++)
		if (column[j].nonfinite == 0 && !(column[j].least < column[j].most)) {
			f.value = f.count ? f.value : column[j].least;
			f.at = f.count++ ? f.at : j;
		}
	return f.count ? hg__report_add(exam, f) : HG_OK;
}

/* Columns of features, whose values are `sorted` if they are stored sparse and not all exact. */
static hg_status judge_columns(const struct hg__exam *exam, const struct hg__by_column *sorted)
{
	const hg_dataset *d = exam->d;
	const int wide = d->feat && d->feat_dtype == HG_F32;
	for (int64_t j = 0; j < exam->report->open.columns; j++) {
		struct hg__values values = {NULL, 0, 1};
		if (wide)
			values = (struct hg__values){(const float *)d->feat + j, d->nodes, d->features};
		else if (sorted->value)
			values = (struct hg__values){sorted->value + sorted->begin[j],
			                             sorted->begin[j + 1] - sorted->begin[j], 1};
		HG__TRY(judge(exam, j, &values, &exam->report->column[j]));
	}
	return judge_constants(exam);
}

static int all_exact(const struct hg__exam *exam)
{
	int64_t j = 0;
	const int64_t columns = exam->report->open.columns;
	while (j < columns && exam->report->column[j].error == 0.0)
		j++;
	return j == columns;
}

static hg_status examine_features(const struct hg__exam *exam)
{
	const hg_dataset *d = exam->d;
	struct hg__report *report = exam->report;
	struct hg__by_column sorted = {NULL, NULL};
	const int64_t columns = d->features < HG_FITNESS_COLUMNS ? d->features : HG_FITNESS_COLUMNS;
	HG__TRY(hg__data_alloc(columns, sizeof *report->column, "facts of columns",
	                       (void **)&report->column, exam->message));
	memset(report->column, 0, (size_t)columns * sizeof *report->column);
	report->open.column = report->column;
	report->open.columns = columns;
	HG__TRY(measure_features(exam));
	if (d->features > columns)
		HG__TRY(hg__report_add(
		    exam, finding(HG_FITNESS_UNSEEN, 1, columns, d->features - columns, d->features, 0)));
	if (d->feat_rowptr && !all_exact(exam))
		HG__TRY(hg__sort_by_column(d, columns, &sorted, exam->message));
	const hg_status status = judge_columns(exam, &sorted);
	hg__by_column_free(&sorted);
	return status;
}

hg_status hg__examine_columns(const struct hg__exam *exam)
{
	const hg_dataset *d = exam->d;
	hg_fitness *open = &exam->report->open;
	if (hg__holds(exam, HG__PART_GRAPH) && d->weight) {
		open->weighted = 1;
		measure_weights(d, &open->weight);
		HG__TRY(judge(exam, -1, &(struct hg__values){d->weight, d->edges, 1}, &open->weight));
	}
	return hg__holds(exam, HG__PART_GRAPH) && hg__holds(exam, HG__PART_FEATURES) &&
	               (d->feat || d->feat_rowptr)
	           ? examine_features(exam)
	           : HG_OK;
}
