/* Examine a dataset, and make the report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/report.h"

/* ---- making a report ---- */

hg_status hg__report_add(const struct hg__exam *exam, hg_fitness_finding finding)
{
	struct hg__report *r = exam->report;
	const char **const texts[] = {&finding.option, &finding.call, &finding.refusal};
	for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
		*texts[k] = *texts[k] ? *texts[k] : "";
	if (r->open.findings == r->room) {
		const int64_t room = r->room + r->room / 2 + 16;
		HG__TRY(hg__data_grow((void **)&r->finding, room, sizeof *r->finding, "findings",
		                      exam->message));
		r->room = room;
		r->open.finding = r->finding;
	}
	r->finding[r->open.findings++] = finding;
	if (finding.severity > r->open.verdict)
		r->open.verdict = finding.severity;
	return HG_OK;
}

hg_status hg__report_refusal(const struct hg__exam *exam, hg_fitness_kind kind,
                             hg_severity severity, const char *sentence)
{
	struct hg__report *r = exam->report;
	char *copy = NULL;
	HG__TRY(hg__data_copy_text(sentence, &copy, exam->message));
	r->refusal[r->refusals++] = copy; /* no more than parts: UNREADY only where none is broken */
	return hg__report_add(
	    exam, (hg_fitness_finding){.kind = kind, .severity = severity, .at = -1, .refusal = copy});
}

void hg_fitness_free(hg_fitness *report)
{
	struct hg__report *r = (struct hg__report *)report;
	if (!r)
		return;
	for (int k = 0; k < r->refusals; k++)
		free(r->refusal[k]);
	free(r->finding);
	free(r->column);
	free(r);
}

/* How bad a finding is among those of its kind. */
static double badness(const hg_fitness_finding *f)
{
	const int by_value = f->kind == HG_FITNESS_OVERFLOW || f->kind == HG_FITNESS_SPREAD;
	if (by_value || f->kind == HG_FITNESS_UNTRAINED)
		return by_value ? f->value : (double)f->count;
	return f->of > 0 ? (double)f->count / (double)f->of : 0.0;
}

static int compare_findings(const void *a, const void *b)
{
	const hg_fitness_finding *x = a, *y = b;
	const double bad_x = badness(x), bad_y = badness(y);
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (bad_x != bad_y)
		return bad_x > bad_y ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* ---- examining ---- */

/* Values that are not finite are found column by column, so that they are known all; a check that
 * fails because of them needs no line of its own. */
static hg_status examine_rules(struct hg__exam *exam)
{
	for (int part = 0; part < HG__PARTS; part++) {
		char why[HG_DATA_MESSAGE] = "";
		const hg_status status =
		    hg__check_part(exam->d, (enum hg__part)part, exam->broken, exam->origin, why);
		if (status == HG_ERR_NOMEM)
			return hg__data_fail(exam->message, status, "%s", why);
		if (status == HG_OK)
			continue;
		exam->broken |= 1u << part;
		if (part != HG__PART_VALUES && part != HG__PART_WEIGHTS)
			HG__TRY(hg__report_refusal(exam, HG_FITNESS_REFUSED, HG_SEVERITY_REFUSED, why));
	}
	return HG_OK;
}

static hg_status examine_all(struct hg__exam *exam)
{
	hg_fitness *open = &exam->report->open;
	const hg_dataset *d = exam->d;
	open->batch = d->graph_ptr != NULL;
	open->sparse = d->feat_rowptr != NULL;
	open->nodes = d->nodes;
	open->edges = d->edges;
	open->graphs = d->graphs;
	HG__TRY(examine_rules(exam));
	HG__TRY(hg__examine_columns(exam));
	HG__TRY(hg__examine_rows(exam));
	HG__TRY(hg__examine_labels(exam));
	HG__TRY(hg__examine_graph(exam));
	if (open->findings)
		qsort(exam->report->finding, (size_t)open->findings, sizeof *exam->report->finding,
		      compare_findings);
	return HG_OK;
}

static hg_status new_report(struct hg__report **report, char *message)
{
	HG__TRY(hg__data_alloc(1, sizeof **report, "a report", (void **)report, message));
	**report = (struct hg__report){.room = 0};
	return HG_OK;
}

hg_status hg_dataset_fitness(const hg_dataset *d, const char *origin, const hg_progress *progress,
                             hg_fitness **report, char *message)
{
	struct hg__exam exam = {.d = d, .progress = progress, .message = message};
	if (report)
		*report = NULL;
	if (!d || !report)
		return hg__data_fail(message, HG_ERR_ARG, "dataset_fitness: %s is NULL",
		                     d ? "report" : "dataset");
	exam.origin = origin ? origin : d->name ? d->name : "dataset";
	HG__TRY(new_report(&exam.report, message));
	const hg_status status = examine_all(&exam);
	if (status < 0)
		hg_fitness_free(&exam.report->open);
	else
		*report = &exam.report->open;
	return status;
}

/* A report of a file that is no dataset, with the reader's message. */
static hg_status report_unread(const char *why, hg_fitness **report, char *message)
{
	struct hg__exam exam = {.message = message};
	HG__TRY(new_report(&exam.report, message));
	const hg_status status =
	    hg__report_refusal(&exam, HG_FITNESS_REFUSED, HG_SEVERITY_REFUSED, why);
	if (status < 0)
		hg_fitness_free(&exam.report->open);
	else
		*report = &exam.report->open;
	return status;
}

hg_status hg_file_fitness(const char *path, const hg_progress *progress, hg_fitness **report,
                          char *message)
{
	char why[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	if (report)
		*report = NULL;
	if (!path || !report)
		return hg__data_fail(message, HG_ERR_ARG, "file_fitness: %s is NULL",
		                     path ? "report" : "path");
	HG__TRY(hg__data_step(progress, "reading", 0, 0, message));
	hg_status status = hg__dataset_read_unchecked(path, &d, why);
	if (status == HG_ERR_FORMAT || status == HG_ERR_RANGE)
		return report_unread(why, report, message);
	if (status < 0)
		return hg__data_fail(message, status, "%s", why);
	status = hg_dataset_fitness(d, path, progress, report, message);
	hg_dataset_free(d);
	return status;
}
