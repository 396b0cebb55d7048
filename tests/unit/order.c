/* Orders of the nodes, on CSR arrays of the host: what they promise on odd graphs, what they find
 * on planted ones, and how locality is measured. */
#include "halfgraph/order.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

struct graph {
	int64_t n, m, *rowptr;
	int32_t *col;
};

static void *room(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);
	CHECK(memory != NULL);
	return memory;
}

static void graph_free(struct graph *g)
{
	free(g->rowptr);
	free(g->col);
}

static int by_number(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

/* CSR of m edges dst <- src, rows sorted. */
static struct graph graph_of(int64_t n, int64_t m, const int32_t *dst, const int32_t *src)
{
	struct graph g = {n, m, room(n + 1, sizeof(int64_t)), room(m, sizeof(int32_t))};
	int64_t *next = room(n, sizeof *next);
	for (int64_t e = 0; e < m; e++)
		g.rowptr[dst[e] + 1]++;
	for (int64_t i = 0; i < n; i++) {
		g.rowptr[i + 1] += g.rowptr[i];
		next[i] = g.rowptr[i];
	}
	for (int64_t e = 0; e < m; e++)
		g.col[next[dst[e]]++] = src[e];
	for (int64_t i = 0; i < n; i++)
		qsort(g.col + g.rowptr[i], (size_t)(g.rowptr[i + 1] - g.rowptr[i]), sizeof *g.col,
		      by_number);
	free(next);
	return g;
}

/* Communities of `size` nodes; 4 of 5 edges stay inside, or (ring) reach up to `size` further. */
static struct graph planted(int64_t n, int64_t m, int64_t size, int ring, int scrambled)
{
	int32_t *name = room(n, sizeof *name), *dst = room(m, sizeof *dst), *src = room(m, sizeof *src);
	test_shuffle(n, name);
	for (int64_t i = 0; i < n && !scrambled; i++)
		name[i] = (int32_t)i;
	for (int64_t e = 0; e < m; e++) {
		const int64_t i = test_below(n),
		              near = ring ? (i + test_below(size)) % n : i / size * size + test_below(size);
		dst[e] = name[i];
		src[e] = name[test_below(5) && near < n ? near : test_below(n)];
	}
	struct graph g = graph_of(n, m, dst, src);
	free(name);
	free(dst);
	free(src);
	return g;
}

static void find(const char *method, const struct graph *g, int32_t *order, hg_order_report *report)
{
	hg_order_config config = HG_ORDER_CONFIG_INIT;
	config.method = method;
	CHECK_OK(hg_order_find(&config, g->n, g->rowptr, g->col, order, report));
	CHECK_OK(hg_order_check(g->n, order, NULL));
}

/* Nodes without edges, loops, duplicates, one direction, several components, one node, none. */
static void every_method_takes_odd_graphs(void)
{
	static const struct {
		int64_t n, m;
		int32_t dst[12], src[12];
	} odd[] = {
	    {0, 0, {0}, {0}},
	    {1, 0, {0}, {0}},
	    {1, 3, {0, 0, 0}, {0, 0, 0}},
	    {5, 0, {0}, {0}},
	    {2, 1, {1}, {0}},
	    {6, 6, {0, 0, 0, 3, 4, 4}, {1, 1, 1, 3, 5, 5}},
	    {9, 12, {0, 1, 2, 0, 3, 4, 5, 3, 6, 7, 8, 6}, {1, 2, 0, 0, 4, 5, 3, 3, 7, 8, 6, 6}},
	    {12, 11, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
	    {13, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
	};
	size_t count = 0;
	const hg_order_method *methods = hg_order_methods(&count);
	CHECK_EQ_I(count, 5);
	for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++)
		for (size_t j = 0; j < count; j++) {
			struct graph g = graph_of(odd[k].n, odd[k].m, odd[k].dst, odd[k].src);
			int32_t order[13], again[13];
			hg_order_report report = HG_ORDER_REPORT_INIT;
			find(methods[j].name, &g, order, &report);
			find(methods[j].name, &g, again, NULL);
			CHECK(memcmp(order, again, (size_t)g.n * sizeof *order) == 0);
			CHECK(report.method && report.before.near_miss >= 0 && report.after.near_miss <= 1);
			graph_free(&g);
		}
}

static void methods_do_what_they_say(void)
{
	/* a path whose nodes are 3 - 0 - 4 - 1 - 2, in both directions; a star with its hub at 5 beside
	 * it, one direction */
	static const int32_t dst[] = {3, 0, 0, 4, 4, 1, 1, 2, 5, 5, 5, 9},
	                     src[] = {0, 3, 4, 0, 1, 4, 2, 1, 6, 7, 8, 5};
	struct graph g = graph_of(10, 12, dst, src);
	int32_t order[10], place[10];
	find("rcm", &g, order, NULL);
	CHECK_OK(hg_order_check(10, order, place));
	for (int e = 0; e < 8; e++)
		CHECK(abs(place[dst[e]] - place[src[e]]) == 1);
	find("degree", &g, order, NULL);
	CHECK(order[0] == 0 || order[0] == 5);
	find("leading", &g, order, NULL);
	CHECK_OK(hg_order_check(10, order, place));
	int low = 10, high = -1; /* the four leaves of the star side by side */
	for (int i = 6; i < 10; i++) {
		low = place[i] < low ? place[i] : low;
		high = place[i] > high ? place[i] : high;
	}
	CHECK_EQ_I(high - low, 3);
	graph_free(&g);
}

/* Communities whose numbers were scattered are found again: as good as the order in which they were
 * planted. */
static void planted_communities_are_found(void)
{
	test_reseed(3);
	struct graph ideal = planted(6000, 1200000, 100, 0, 0), g = planted(6000, 1200000, 100, 0, 1);
	int32_t *order = room(g.n, sizeof *order);
	hg_locality goal = HG_LOCALITY_INIT;
	hg_order_report report = HG_ORDER_REPORT_INIT;
	CHECK_OK(hg_order_locality(ideal.n, ideal.rowptr, ideal.col, NULL, &goal));
	find("auto", &g, order, &report);
	test_note("%s: near %.3f -> %.3f (planted %.3f), tile %.2f -> %.2f (%.2f)", report.method,
	          report.before.near_miss, report.after.near_miss, goal.near_miss,
	          report.before.tile_reuse, report.after.tile_reuse, goal.tile_reuse);
	CHECK_STR(report.method, "community");
	CHECK(report.before.near_miss > 2 * goal.near_miss);
	CHECK(report.after.near_miss < 1.05 * goal.near_miss &&
	      report.after.tile_reuse > 0.95 * goal.tile_reuse);
	free(order);
	graph_free(&g);
	graph_free(&ideal);
}

/* A ring without borders between communities: at least 3/4 of what its order gains over a scattered
 * one is found. */
static void a_ring_is_found(void)
{
	test_reseed(4);
	struct graph ideal = planted(20000, 1000000, 300, 1, 0), g = planted(20000, 1000000, 300, 1, 1);
	int32_t *order = room(g.n, sizeof *order);
	hg_locality goal = HG_LOCALITY_INIT;
	hg_order_report report = HG_ORDER_REPORT_INIT;
	CHECK_OK(hg_order_locality(ideal.n, ideal.rowptr, ideal.col, NULL, &goal));
	find("community", &g, order, &report);
	test_note("near %.3f -> %.3f (planted %.3f)", report.before.near_miss, report.after.near_miss,
	          goal.near_miss);
	CHECK(report.before.near_miss - report.after.near_miss >
	      0.75 * (report.before.near_miss - goal.near_miss));
	free(order);
	graph_free(&g);
	graph_free(&ideal);
}

/* What has no better order keeps its own, and so does what has been ordered. */
static void auto_keeps_what_is_good(void)
{
	test_reseed(5);
	struct graph noise = planted(20000, 400000, 20000, 0, 1), g = planted(6000, 600000, 100, 0, 0);
	int32_t *order = room(noise.n, sizeof *order);
	hg_order_report report = HG_ORDER_REPORT_INIT;
	find("auto", &noise, order, &report);
	CHECK_STR(report.method, "original");
	for (int64_t k = 0; k < noise.n; k++)
		CHECK(order[k] == k);
	find("auto", &g, order, &report);
	CHECK_STR(report.method, "original");
	free(order);
	graph_free(&noise);
	graph_free(&g);
}

/* 2.5 million edges are worth three threads. */
static void threads_change_nothing(void)
{
	test_reseed(6);
	struct graph g = planted(30000, 2500000, 200, 1, 1);
	int32_t *one = room(g.n, sizeof *one), *three = room(g.n, sizeof *three);
	static const char *const methods[] = {"community", "leading"};
	for (int k = 0; k < 2; k++) {
		omp_set_num_threads(1);
		find(methods[k], &g, one, NULL);
		omp_set_num_threads(3);
		find(methods[k], &g, three, NULL);
		CHECK(memcmp(one, three, (size_t)g.n * sizeof *one) == 0);
	}
	free(one);
	free(three);
	graph_free(&g);
}

/* A list of lines, the last used in front: how many of m edges a cache of `lines` misses in the
 * second of two sweeps. */
static int64_t lru_misses(const struct graph *g, int64_t lines)
{
	int32_t *list = room(g->n, sizeof *list);
	int64_t held = 0, missed = 0;
	for (int64_t e = 0; e < 2 * g->m; e++) {
		const int32_t j = g->col[e % g->m];
		int64_t k = 0;
		while (k < held && list[k] != j)
			k++;
		missed += e >= g->m && (k == held || k >= lines);
		held += k == held;
		memmove(list + 1, list, (size_t)k * sizeof *list);
		list[0] = j;
	}
	free(list);
	return missed;
}

/* Working sets against a list that is searched. They are means over the sweep: exact for a random
 * one, and within 2 points here. */
static void locality_is_that_of_caches(void)
{
	test_reseed(8);
	for (int kind = 0; kind < 2; kind++) {
		struct graph g = planted(3000, 40000, 600, 1, kind);
		hg_locality found = HG_LOCALITY_INIT;
		CHECK_OK(hg_order_locality(g.n, g.rowptr, g.col, NULL, &found));
		const double expected = (double)lru_misses(&g, 1024) / (double)g.m;
		test_note("near %.4f, expected %.4f", found.near_miss, expected);
		CHECK_WITHIN(found.near_miss, expected, 0.02);
		CHECK(found.far_miss <= 0);
		int64_t different = 0; /* sources of 16 rows */
		for (int64_t i = 0; i < g.n; i += 16) {
			char seen[3000] = {0};
			for (int64_t e = g.rowptr[i]; e < g.rowptr[i + 16 < g.n ? i + 16 : g.n]; e++) {
				different += !seen[g.col[e]];
				seen[g.col[e]] = 1;
			}
		}
		CHECK_WITHIN(found.tile_reuse, (double)g.m / (double)different, 1e-12);
		graph_free(&g);
	}
}

static void rows_go_and_come_back(void)
{
	static const int32_t order[] = {2, 0, 3, 1}, twice[] = {0, 1, 1, 2}, outside[] = {0, 1, 2, 4},
	                     below[] = {0, -1, 1, 2};
	int32_t place[4];
	const float rows[4][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
	float there[4][2], back[4][2];
	CHECK_OK(hg_order_rows(4, order, sizeof rows[0], rows, there));
	CHECK(there[0][0] == 4 && there[1][1] == 1 && there[2][0] == 6 && there[3][1] == 3);
	CHECK_OK(hg_order_rows_back(4, order, sizeof rows[0], there, back));
	CHECK(memcmp(back, rows, sizeof rows) == 0);
	CHECK_OK(hg_order_check(4, order, place));
	CHECK(place[2] == 0 && place[0] == 1 && place[3] == 2 && place[1] == 3);
	CHECK_OK(hg_order_check(0, NULL, NULL));
	CHECK_STATUS(hg_order_check(4, twice, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_order_check(4, outside, place), HG_ERR_ARG);
	CHECK_STATUS(hg_order_rows(4, below, 8, rows, there), HG_ERR_ARG);
	CHECK_STATUS(hg_order_rows_back(4, order, 8, NULL, there), HG_ERR_ARG);
	CHECK_STATUS(hg_order_check(-1, order, NULL), HG_ERR_ARG);
}

static int stop_at_once(void *user, const char *what, int64_t done, int64_t total)
{
	*(int *)user += what != NULL && done >= 0 && total >= 0;
	return 1;
}

static void nonsense_is_refused(void)
{
	static const int64_t rowptr[] = {0, 1, 2, 3}, falling[] = {0, 2, 1, 3}, late[] = {1, 1, 2, 3},
	                     ptr[] = {0, 1, 3}, bad_ptr[] = {0, 2, 1, 3};
	static const int32_t col[] = {1, 2, 0}, outside[] = {1, 3, 0};
	int32_t order[3];
	int calls = 0;
	hg_order_report report = HG_ORDER_REPORT_INIT;
	const hg_progress progress = {stop_at_once, &calls};
	hg_order_config config = HG_ORDER_CONFIG_INIT;
	CHECK_OK(hg_order_find(NULL, 3, rowptr, col, order, &report));
	CHECK_STATUS(hg_order_find(&config, -1, rowptr, col, order, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_order_find(&config, 3, NULL, col, order, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_order_find(&config, 3, rowptr, NULL, order, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_order_find(&config, 3, rowptr, col, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_order_find(&config, 3, falling, col, order, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_order_find(&config, 3, late, col, order, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_order_find(&config, 3, rowptr, outside, order, NULL), HG_ERR_ARG);
	report.size = 0;
	CHECK_STATUS(hg_order_find(&config, 3, rowptr, col, order, &report), HG_ERR_ARG);
	config.method = "hilbert";
	CHECK_STATUS(hg_order_find(&config, 3, rowptr, col, order, NULL), HG_ERR_ARG);
	config.method = "community";
	config.margin = 1;
	CHECK_STATUS(hg_order_find(&config, 3, rowptr, col, order, NULL), HG_ERR_ARG);
	config.margin = 0;
	config.graphs = 3;
	config.ptr = bad_ptr;
	CHECK_STATUS(hg_order_find(&config, 3, rowptr, col, order, NULL), HG_ERR_ARG);
	config.graphs = 2;
	config.ptr = ptr;
	CHECK_OK(hg_order_find(&config, 3, rowptr, col, order, NULL));
	CHECK_EQ_I(order[0], 0);
	config.progress = &progress;
	CHECK_STATUS(hg_order_find(&config, 3, rowptr, col, order, NULL), HG_ERR_STATE);
	CHECK_EQ_I(calls, 1);
	CHECK_STATUS(hg_order_locality(3, rowptr, col, outside, NULL), HG_ERR_ARG);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_method_takes_odd_graphs), TEST(methods_do_what_they_say),
	    TEST(planted_communities_are_found), TEST(a_ring_is_found),
	    TEST(auto_keeps_what_is_good),       TEST(threads_change_nothing),
	    TEST(locality_is_that_of_caches),    TEST(rows_go_and_come_back),
	    TEST(nonsense_is_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
