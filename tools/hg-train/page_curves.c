/* Loss, metric and loss scale over the epochs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

/* A curve for each seed of each run, and of one run for each set. */
struct curves {
	FILE *out;
	const struct record *run;
	int runs;
	struct page_series *series; /* room for all curves of a figure */
};

typedef const double *(*column_fn)(const struct epoch_row *row);

static const double *loss_of(const struct epoch_row *row)
{
	return &row->loss;
}
static const double *train_of(const struct epoch_row *row)
{
	return &row->train;
}
static const double *val_of(const struct epoch_row *row)
{
	return &row->val;
}
static const double *test_of(const struct epoch_row *row)
{
	return &row->test;
}
static const double *scale_of(const struct epoch_row *row)
{
	return &row->scale;
}

/* Adds the curves of a run; the first of them has the name. */
static int add_run(const struct curves *c, int count, const struct record *r, column_fn column,
                   const char *name, int colour)
{
	for (int i = 0; i < r->seeds; i++) {
		const struct seed_record *s = &r->seed[i];
		if (s->rows)
			c->series[count++] = (struct page_series){.name = name,
			                                          .colour = colour % PAGE_COLOURS,
			                                          .thin = r->seeds > 1 ? 1 : 0,
			                                          .y = column(s->row),
			                                          .count = s->rows,
			                                          .stride = EPOCH_STRIDE};
		name = NULL;
	}
	return count;
}

static int add_runs(const struct curves *c, column_fn column)
{
	int count = 0;
	for (int k = 0; k < c->runs; k++)
		count = add_run(c, count, &c->run[k], column, c->runs > 1 ? c->run[k].name : NULL, k);
	return count;
}

static int has_value(const struct page_series *series, int count)
{
	for (int i = 0; i < count; i++)
		for (int64_t k = 0; k < series[i].count; k++)
			if (isfinite(series[i].y[k * series[i].stride]))
				return 1;
	return 0;
}

static void print_plot(const struct curves *c, struct page_plot plot, int count)
{
	plot.axis = "epoch";
	plot.first = 1;
	plot.series = c->series;
	plot.count = count;
	if (has_value(c->series, count))
		page_plot(c->out, &plot);
}

/* ---- marks ---- */

static int is_marked(const struct epoch_row *row)
{
	return !row->applied || !isfinite(row->loss);
}

static int by_place(const void *a, const void *b)
{
	const struct page_mark *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

/* Epochs whose step was skipped, and those without a finite loss. NULL: none, or memory ran out. */
static struct page_mark *marks_of(const struct curves *c, int64_t *count)
{
	int64_t room = 0;
	*count = 0;
	for (int k = 0; k < c->runs; k++)
		for (int i = 0; i < c->run[k].seeds; i++)
			for (int64_t e = 0; e < c->run[k].seed[i].rows; e++)
				room += is_marked(&c->run[k].seed[i].row[e]);
	struct page_mark *mark = room ? calloc((size_t)room, sizeof *mark) : NULL;
	for (int k = 0; k < c->runs && mark; k++)
		for (int i = 0; i < c->run[k].seeds; i++)
			for (int64_t e = 0; e < c->run[k].seed[i].rows; e++) {
				const struct epoch_row *row = &c->run[k].seed[i].row[e];
				if (!is_marked(row))
					continue;
				struct page_mark *m = &mark[(*count)++];
				m->at = row->epoch;
				m->bad = !isfinite(row->loss);
				(void)snprintf(m->title, sizeof m->title, "%.60s%sepoch %lld: %s%s",
				               c->runs > 1 ? c->run[k].name : "", c->runs > 1 ? ", " : "",
				               (long long)row->epoch, row->outcome,
				               m->bad ? ", the loss is not a number" : "");
			}
	if (mark)
		qsort(mark, (size_t)*count, sizeof *mark, by_place);
	return mark;
}

/* ---- figures ---- */

static void print_metric(const struct curves *c)
{
	const struct record *r = c->run;
	const int percent = strcmp(r->metric, "accuracy") == 0;
	char title[96];
	int same = 1;
	for (int k = 1; k < c->runs; k++)
		same &= strcmp(c->run[k].metric, r->metric) == 0;
	if (c->runs == 1) {
		(void)snprintf(title, sizeof title, "%s", page_metric_name(r->metric));
		int count = add_run(c, 0, r, test_of, "test", 0);
		count = add_run(c, count, r, val_of, "validation", 1);
		if (r->seeds == 1) /* those of several seeds would hide one another */
			count = add_run(c, count, r, train_of, "training", 2);
		print_plot(c, (struct page_plot){.title = title, .percent = percent}, count);
		return;
	}
	if (!same)
		return;
	(void)snprintf(title, sizeof title, "validation %s", page_metric_name(r->metric));
	print_plot(c, (struct page_plot){.title = title, .percent = percent}, add_runs(c, val_of));
	(void)snprintf(title, sizeof title, "test %s", page_metric_name(r->metric));
	print_plot(c, (struct page_plot){.title = title, .percent = percent}, add_runs(c, test_of));
}

/* The one value that the scale had in all epochs; 0: it changed, or it is not known. */
static double constant_scale(const struct curves *c)
{
	double scale = 0;
	for (int k = 0; k < c->runs; k++)
		for (int i = 0; i < c->run[k].seeds; i++)
			for (int64_t e = 0; e < c->run[k].seed[i].rows; e++) {
				const struct epoch_row *row = &c->run[k].seed[i].row[e];
				scale = scale > 0 ? scale : row->scale;
				if (is_marked(row) || !(fabs(row->scale - scale) <= 0))
					return 0;
			}
	return isfinite(scale) ? scale : 0;
}

static void print_scale(const struct curves *c)
{
	const double constant = constant_scale(c);
	if (constant > 0) {
		(void)fputs("<h3>loss scale</h3>\n<p>", c->out);
		page_number(c->out, constant);
		(void)fputs(" in every epoch; no step was skipped.</p>\n", c->out);
		return;
	}
	int64_t marks = 0;
	struct page_mark *mark = marks_of(c, &marks);
	print_plot(c,
	           (struct page_plot){
	               .title = "loss scale", .logarithm = 1, .steps = 1, .mark = mark, .marks = marks},
	           add_runs(c, scale_of));
	free(mark);
}

void page_curves(FILE *out, const struct record *run, int runs, const char *note)
{
	int room = 0;
	for (int k = 0; k < runs; k++)
		room += 3 * run[k].seeds;
	const struct curves c = {out, run, runs, calloc((size_t)room + 1, sizeof(struct page_series))};
	if (!c.series || !room) {
		free(c.series);
		return;
	}
	(void)fputs("<section>\n<h2>Curves</h2>\n<p class=\"soft\">", out);
	(void)fputs(note, out);
	if (constant_scale(&c) <= 0)
		(void)fputs("Marks below the loss scale: steps that were skipped, in red where the loss "
		            "was not a number.",
		            out);
	(void)fputs("</p>\n", out);
	print_plot(&c, (struct page_plot){.title = "training loss", .logarithm = 1},
	           add_runs(&c, loss_of));
	print_metric(&c);
	print_scale(&c);
	if (runs == 1)
		page_epochs(out, run);
	(void)fputs("</section>\n", out);
	free(c.series);
}
