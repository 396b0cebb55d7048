/* The graph: isolated nodes, and what its hubs do to sums in fp16. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/report.h"

/* From 2048 = 2^11 on halves are even integers, so a sum of fp16 that begins at 0 ignores further
 * addends of 1: 2048 + 1 rounds to 2048. Equal addends of another size behave alike. */
#define MOST_EQUAL_ADDENDS 2048

/* Outgoing edges of each node, self loops aside; a forward sum takes incoming edges, a backward sum
 * outgoing ones. */
static hg_status count_outgoing(const struct hg__exam *exam, int64_t **outgoing)
{
	const hg_dataset *d = exam->d;
	HG__TRY(
	    hg__data_alloc(d->nodes, sizeof **outgoing, "degrees", (void **)outgoing, exam->message));
	memset(*outgoing, 0, (size_t)d->nodes * sizeof **outgoing);
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
			(*outgoing)[d->col[e]] += d->col[e] != i;
	return HG_OK;
}

static hg_status judge_degrees(const struct hg__exam *exam, const int64_t *outgoing)
{
	const hg_dataset *d = exam->d;
	hg_fitness *open = &exam->report->open;
	int64_t hubs = 0, hub = -1;
	for (int64_t i = 0; i < d->nodes; i++) {
		int64_t incoming = 0;
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
			incoming += d->col[e] != i;
		const int64_t most = incoming > outgoing[i] ? incoming : outgoing[i];
		open->isolated += most == 0;
		hubs += most > MOST_EQUAL_ADDENDS;
		if (most > open->most_neighbours) {
			open->most_neighbours = most;
			hub = i;
		}
	}
	if (hubs)
		HG__TRY(hg__report_add(exam, (hg_fitness_finding){.kind = HG_FITNESS_HUB,
		                                                  .at = hg_dataset_node(d, hub),
		                                                  .count = hubs,
		                                                  .of = d->nodes,
		                                                  .value = (double)open->most_neighbours,
		                                                  .option = "--precision fp16",
		                                                  .call = "hg_policy_fp16"}));
	if (!open->isolated)
		return HG_OK;
	const int one_graph = !d->graph_ptr;
	return hg__report_add(
	    exam, (hg_fitness_finding){.kind = HG_FITNESS_ISOLATED,
	                               .at = -1,
	                               .count = open->isolated,
	                               .of = d->nodes,
	                               .option = one_graph ? "--largest-component" : "--self-loops",
	                               .call = one_graph ? "hg_dataset_largest_component"
	                                                 : "hg_dataset_self_loops"});
}

/* The largest |x| of the features that fits fp16. */
static double largest_feature(const hg_fitness *open)
{
	double largest = 0;
	for (int64_t j = 0; j < open->columns; j++)
		largest = fmax(largest, fmax(fabs(open->column[j].least), fabs(open->column[j].most)));
	return fmin(largest, HG__HALF_MAX);
}

/* The bound on a sum over neighbours that is not divided by anything, such as a GIN's. */
static hg_status judge_sums(const struct hg__exam *exam)
{
	const hg_dataset *d = exam->d;
	const double x = largest_feature(&exam->report->open);
	double most = 0;
	int64_t at = -1;
	for (int64_t i = 0; i < d->nodes; i++) {
		double sum = 0;
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
			sum += d->weight ? fabs((double)d->weight[e]) : 1.0;
		if (sum * x > most) {
			most = sum * x;
			at = i;
		}
	}
	if (!(most > HG__HALF_MAX))
		return HG_OK;
	return hg__report_add(exam, (hg_fitness_finding){.kind = HG_FITNESS_SUM,
	                                                 .at = hg_dataset_node(d, at),
	                                                 .value = most,
	                                                 .option = "--row-normalize",
	                                                 .call = "hg_dataset_row_normalize"});
}

hg_status hg__examine_graph(const struct hg__exam *exam)
{
	int64_t *outgoing = NULL;
	if (!hg__holds(exam, HG__PART_GRAPH))
		return HG_OK;
	HG__TRY(hg__data_step(exam->progress, "checking the graph", 0, 0, exam->message));
	hg_status status = count_outgoing(exam, &outgoing);
	if (status == HG_OK)
		status = judge_degrees(exam, outgoing);
	free(outgoing);
	if (status == HG_OK && hg__holds(exam, HG__PART_WEIGHTS))
		status = judge_sums(exam);
	return status;
}
