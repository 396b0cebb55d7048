/* Finds a better order of the nodes: the table of methods, and the choice between them. */
#include "order/order.h"

#include <string.h>

#include "core/clock.h"
#include "core/process.h"
#include "core/rounding.h"
#include "core/versioned.h"

typedef hg_status (*method_fn)(const struct hg__order_work *work,
                               const struct hg__symmetric *symmetric, int32_t *order);

/* Public names of the methods and, in the same order, their functions. NULL: try all others and
 * choose. */
static const hg_order_method methods[] = {
    {"auto", "the cheapest of the others, or the old order if none gains enough"},
    {"community", "communities side by side, near ones next to each other"},
    {"leading", "rows with the same most popular neighbour side by side"},
    {"rcm", "breadth first from a peripheral node, by degree, reversed"},
    {"degree", "nodes with many neighbours first"},
};
static const method_fn functions[] = {NULL, hg__order_community, hg__order_leading, hg__order_rcm,
                                      hg__order_degree};
enum { METHODS = sizeof methods / sizeof methods[0] };

const hg_order_method *hg_order_methods(size_t *count)
{
	if (count)
		*count = METHODS;
	return methods;
}

/* One search for an order: its inputs and its report. */
struct search {
	struct hg__order_work work;
	hg_order_config config;
	int64_t n;
	const int64_t *rowptr;
	const int32_t *col;
	struct hg__symmetric symmetric;
	hg_order_report report;
};

static hg_status fail_order(const struct search *s, const char *text)
{
	return hg__fail(s->work.ctx, HG_ERR_ARG, "order: %s", text);
}

static hg_status check_graph(const struct search *s)
{
	if (s->n < 0 || s->n > INT32_MAX)
		return fail_order(s, "the number of nodes is not in 0 to 2147483647");
	if (!s->rowptr || s->rowptr[0] != 0)
		return fail_order(s, "rowptr is NULL or does not begin with 0");
	for (int64_t i = 0; i < s->n; i++)
		if (s->rowptr[i + 1] < s->rowptr[i])
			return fail_order(s, "rowptr decreases");
	if (s->rowptr[s->n] > 0 && !s->col)
		return fail_order(s, "col is NULL");
	for (int64_t e = 0; e < s->rowptr[s->n]; e++)
		if (s->col[e] < 0 || s->col[e] >= s->n)
			return fail_order(s, "an id in col is out of range");
	return HG_OK;
}

static hg_status check_batch(const struct search *s)
{
	const int64_t *ptr = s->config.ptr;
	if (s->config.graphs == 0 && !ptr)
		return HG_OK;
	if (s->config.graphs < 0 || s->config.graphs > INT32_MAX || !ptr || ptr[0] != 0 ||
	    ptr[s->config.graphs] != s->n)
		return fail_order(s, "the batch's pointers must go from 0 to the number of nodes");
	for (int64_t g = 0; g < s->config.graphs; g++)
		if (ptr[g + 1] < ptr[g])
			return fail_order(s, "the batch's pointers decrease");
	return HG_OK;
}

/* Keeps nodes inside their graph of a batch by a stable sort by graph. No edge leaves its graph, so
 * this changes nothing else. */
static hg_status keep_batch(const struct search *s, int32_t *order)
{
	struct hg__buffer graph, key = {0};
	if (!s->config.ptr || s->n == 0)
		return HG_OK;
	HG__TRY(hg__order_alloc(&s->work, s->n, sizeof(int32_t), &graph));
	hg_status status = hg__order_alloc(&s->work, s->n, 2 * sizeof(int32_t), &key);
	if (status == HG_OK) {
		int32_t *of = graph.data, *keys = key.data, *positions = keys + s->n;
		for (int64_t g = 0; g < s->config.graphs; g++)
			for (int64_t i = s->config.ptr[g]; i < s->config.ptr[g + 1]; i++)
				of[i] = (int32_t)g;
		for (int64_t k = 0; k < s->n; k++)
			keys[k] = of[order[k]];
		status = hg__order_by_key(&s->work, s->n, s->config.graphs, keys, positions);
		memcpy(keys, order, (size_t)s->n * sizeof *order);
		for (int64_t k = 0; status == HG_OK && k < s->n; k++)
			order[k] = keys[positions[k]];
	}
	hg__order_free(&s->work, &key);
	hg__order_free(&s->work, &graph);
	return status;
}

static hg_status apply_method(struct search *s, int method, int32_t *order, hg_locality *locality)
{
	HG__TRY(hg__order_progress(&s->work, methods[method].name, 0, 0));
	HG__TRY(functions[method](&s->work, &s->symmetric, order));
	HG__TRY(keep_batch(s, order));
	return hg__locality(&s->work, s->n, s->rowptr, s->col, order, locality);
}

/* Tries every method and keeps the cheapest order. */
static hg_status choose_method(struct search *s, int32_t *order)
{
	struct hg__buffer other;
	for (int64_t k = 0; k < s->n; k++)
		order[k] = (int32_t)k;
	s->report.method = "original";
	s->report.after = s->report.before;
	HG__TRY(hg__order_alloc(&s->work, s->n, sizeof(int32_t), &other));
	hg_status status = HG_OK;
	for (int method = 1; method < METHODS && status == HG_OK; method++) {
		hg_locality locality;
		status = apply_method(s, method, other.data, &locality);
		if (status < 0 ||
		    locality.gather_ps > (1 - s->config.margin) * s->report.before.gather_ps ||
		    locality.gather_ps >= s->report.after.gather_ps)
			continue;
		s->report.method = methods[method].name;
		s->report.after = locality;
		memcpy(order, other.data, (size_t)s->n * sizeof *order);
	}
	hg__order_free(&s->work, &other);
	return status;
}

/* One thread for each million edges, which take 30 ms. Starting threads costs some 10 us, and a
 * sweep over the edges starts them 32 times, which is 1 % of that. */
static int useful_threads(hg_context *ctx, int64_t m)
{
#ifdef _OPENMP
	const int most = omp_get_max_threads();
	return hg__threads(ctx, m / 1000000 < most ? (int)(m / 1000000) + 1 : most);
#else
	(void)ctx;
	(void)m;
	return 1;
#endif
}

static hg_status find_order(struct search *s, int32_t *order)
{
	int method = 0;
	while (method < METHODS && strcmp(methods[method].name, s->config.method) != 0)
		method++;
	if (method == METHODS)
		return fail_order(s, "unknown method, expected auto, community, leading, rcm or degree");
	HG__TRY(check_graph(s));
	HG__TRY(check_batch(s));
	s->work.threads = useful_threads(s->work.ctx, s->rowptr[s->n]);
	HG__TRY(hg__locality(&s->work, s->n, s->rowptr, s->col, NULL, &s->report.before));
	HG__TRY(hg__symmetric_make(&s->work, s->n, s->rowptr, s->col, &s->symmetric));
	s->report.method = methods[method].name;
	const hg_status status = functions[method] ? apply_method(s, method, order, &s->report.after)
	                                           : choose_method(s, order);
	hg__symmetric_free(&s->work, &s->symmetric);
	return status;
}

hg_status hg__order_find(hg_context *ctx, const hg_order_config *config, int64_t n,
                         const int64_t *rowptr, const int32_t *col, int32_t *order,
                         hg_order_report *report)
{
	const hg_order_config standard = HG_ORDER_CONFIG_INIT;
	const hg_order_report none = HG_ORDER_REPORT_INIT;
	struct search s = {{ctx, NULL, 1}, standard, n, rowptr, col, {0}, none};
	const double begin = hg__seconds();
	if (config && !hg__struct_read(&s.config, sizeof s.config, config))
		return fail_order(&s, "config->size is not set: start from HG_ORDER_CONFIG_INIT");
	if (!s.config.method || !(s.config.margin >= 0 && s.config.margin < 1) || (n > 0 && !order))
		return fail_order(&s, !order && n > 0
		                          ? "the pointer for the result is NULL"
		                          : "config has no method, or a margin outside of [0, 1)");
	struct hg__rounding rounding;
	s.work.progress = s.config.progress;
	hg__rounding_begin(&rounding);
	const hg_status status = find_order(&s, order);
	hg__rounding_end(&rounding);
	HG__TRY(status);
	s.report.seconds = hg__seconds() - begin;
	if (report && !hg__struct_write(report, &s.report, sizeof s.report))
		return fail_order(&s, "report->size is not set: start from HG_ORDER_REPORT_INIT");
	return HG_OK;
}

hg_status hg_order_find(const hg_order_config *config, int64_t n, const int64_t *rowptr,
                        const int32_t *col, int32_t *order, hg_order_report *report)
{
	return hg__order_find(NULL, config, n, rowptr, col, order, report);
}

hg_status hg_order_locality(int64_t n, const int64_t *rowptr, const int32_t *col,
                            const int32_t *order, hg_locality *locality)
{
	const struct search s = {.n = n, .rowptr = rowptr, .col = col, .work = {NULL, NULL, 1}};
	hg_locality found;
	HG__TRY(check_graph(&s));
	if (order)
		HG__TRY(hg_order_check(n, order, NULL));
	HG__TRY(hg__locality(&s.work, n, rowptr, col, order, &found));
	return locality && hg__struct_write(locality, &found, sizeof found) ? HG_OK : HG_ERR_ARG;
}
