#include "reorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "commandline.h"
#include "halfgraph/order.h"
#include "json.h"
#include "tool.h"
#include "watch.h"

/* Measure the locality of the original order. */
static hg_status measure_original(struct bench *b)
{
	hg_order_report *r = &b->reorder.report;
	const hg_locality none = HG_LOCALITY_INIT;
	r->method = TOOL_ORIGINAL;
	r->before = none;
	HG__TRY(hg_graph_locality(b->graph, &r->before));
	r->after = r->before;
	return HG_OK;
}

static hg_status permute(struct bench *b, const int32_t *order)
{
	hg_graph *better;
	const double begin = tool_seconds();
	HG__TRY(hg_graph_permute(b->graph, order, NULL, &better));
	b->reorder.permute_seconds = tool_seconds() - begin;
	b->reorder.unordered = b->graph;
	b->graph = better;
	return HG_OK;
}

static hg_status order_find(struct bench *b, const char *method, int32_t *order)
{
	const hg_order_report none = HG_ORDER_REPORT_INIT;
	hg_order_config config = HG_ORDER_CONFIG_INIT;
	config.method = method;
	config.progress = watch_progress();
	b->reorder.report = none;
	watch_begin(1);
	const hg_status status = hg_graph_order(b->graph, &config, order, &b->reorder.report);
	watch_end();
	return watch_interrupted()
	           ? hg__fail(b->ctx, HG_ERR_STATE, "--reorder %s was interrupted", method)
	           : status;
}

hg_status reorder_make(struct bench *b, const char *method)
{
	if (strcmp(method, TOOL_ORIGINAL) == 0)
		return measure_original(b);
	const int64_t n = hg_graph_rows(b->graph);
	int32_t *order = malloc((size_t)n * sizeof *order + 1);
	hg_status status = order ? order_find(b, method, order)
	                         : hg__fail(b->ctx, HG_ERR_NOMEM,
	                                    "no memory for an order of %lld nodes", (long long)n);
	/* auto may find nothing better */
	if (status == HG_OK && strcmp(b->reorder.report.method, TOOL_ORIGINAL) != 0)
		status = permute(b, order);
	free(order);
	return status;
}

void reorder_free(struct bench *b)
{
	hg_graph_free(b->reorder.unordered);
	b->reorder.unordered = NULL;
}

static void print_locality(const char *when, const hg_locality *l)
{
	printf("#   %-7s near miss %.3f, far miss %.3f, tile reuse %.2f, about %.1f ps per edge\n",
	       when, l->near_miss, l->far_miss, l->tile_reuse, l->gather_ps);
}

void reorder_print(const struct reorder *r)
{
	if (!r->report.method)
		return;
	printf("# order: %s, found in %.2f s, graph rebuilt in %.2f s\n", r->report.method,
	       r->report.seconds, r->permute_seconds);
	print_locality(r->unordered ? "before:" : "as is:", &r->report.before);
	if (r->unordered)
		print_locality("after:", &r->report.after);
}

static void put_locality(struct json *j, const char *when, const hg_locality *l)
{
	const struct {
		const char *name;
		double value;
	} figures[] = {{"near_miss", l->near_miss},
	               {"far_miss", l->far_miss},
	               {"tile_reuse", l->tile_reuse},
	               {"gather_ps", l->gather_ps}};
	for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++) {
		char key[32];
		snprintf(key, sizeof key, "%s%s", figures[k].name, when);
		json_number(j, key, figures[k].value);
	}
}

void reorder_json(const struct reorder *r, struct json *j)
{
	if (!r->report.method)
		return;
	json_text(j, "order", r->report.method);
	json_number(j, "order_seconds", r->report.seconds);
	put_locality(j, "", &r->report.after);
	put_locality(j, "_before", &r->report.before);
}
