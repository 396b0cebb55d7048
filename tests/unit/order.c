/* Orders of the nodes, on CSR arrays in host memory: what they promise on unusual graphs, what they
 * find on planted ones, and how locality is measured. */
#include "halfgraph/order.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"

static void *room(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);
	CHECK(memory != NULL);
	return memory;
}

/* Communities of `size` nodes: 4 of 5 edges stay in their community. With ring nonzero there are no
 * communities, and 4 of 5 edges come from the `size` nodes that follow. With scrambled nonzero the
 * nodes are renamed at random. */
static struct host_csr planted(int64_t n, int64_t m, int64_t size, int ring, int scrambled)
{
	int32_t *name = room(n, sizeof *name);
	struct coo list = coo_empty(n, n);
	test_shuffle(n, name);
	for (int64_t i = 0; i < n && !scrambled; i++)
		name[i] = (int32_t)i;
	for (int64_t e = 0; e < m; e++) {
		const int64_t i = test_below(n),
		              near = ring ? (i + test_below(size)) % n : i / size * size + test_below(size);
		coo_add(&list, name[i], name[test_below(5) && near < n ? near : test_below(n)]);
	}
	free(name);
	return host_csr_sort(list);
}

static void find(const char *method, const struct host_csr *g, int32_t *order,
                 hg_order_report *report)
{
	hg_order_config config = HG_ORDER_CONFIG_INIT;
	config.method = method;
	CHECK_OK(hg_order_find(&config, g->rows, g->rowptr, g->col, order, report));
	CHECK_OK(hg_order_check(g->rows, order, NULL));
}

/* Graphs with isolated nodes, loops, duplicates, one direction, several components, one node, no
 * node. */
static void every_method_orders_unusual_graphs(void)
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
			struct coo list = coo_empty(odd[k].n, odd[k].n);
			for (int64_t e = 0; e < odd[k].m; e++)
				coo_add(&list, odd[k].dst[e], odd[k].src[e]);
			struct host_csr g = host_csr_sort(list);
			int32_t order[13], again[13];
			hg_order_report report = HG_ORDER_REPORT_INIT;
			find(methods[j].name, &g, order, &report);
			find(methods[j].name, &g, again, NULL);
			CHECK(memcmp(order, again, (size_t)g.rows * sizeof *order) == 0);
			CHECK(report.method && report.before.near_miss >= 0 && report.after.near_miss <= 1);
			host_csr_free(&g);
		}
}

static void methods_have_their_property(void)
{
	/* The path 3 - 0 - 4 - 1 - 2 in both directions, and a star of the nodes 6 .. 9 around node 5
	 * in one direction. */
	static const int32_t path[] = {3, 0, 4, 1, 2};
	struct coo list = coo_empty(10, 10);
	for (int k = 0; k < 4; k++)
		coo_add(&list, path[k], path[k + 1]);
	coo_add_transpose(&list);
	for (int i = 6; i < 9; i++)
		coo_add(&list, 5, i);
	coo_add(&list, 9, 5);
	struct host_csr g = host_csr_sort(list);
	int32_t order[10], place[10];
	find("rcm", &g, order, NULL);
	CHECK_OK(hg_order_check(10, order, place));
	for (int k = 0; k < 4; k++)
		CHECK(abs(place[path[k]] - place[path[k + 1]]) == 1);
	find("degree", &g, order, NULL);
	CHECK(order[0] == 0 || order[0] == 5);
	find("leading", &g, order, NULL);
	CHECK_OK(hg_order_check(10, order, place));
	int low = 10, high = -1; /* the four leaves of the star are side by side */
	for (int i = 6; i < 10; i++) {
		low = place[i] < low ? place[i] : low;
		high = place[i] > high ? place[i] : high;
	}
	CHECK_EQ_I(high - low, 3);
	host_csr_free(&g);
}

/* Communities whose nodes were renamed at random are found again. The order is about as good as the
 * one in which they were planted. */
static void planted_communities_are_found(void)
{
	test_reseed(3);
	struct host_csr ideal = planted(6000, 1200000, 100, 0, 0),
	                g = planted(6000, 1200000, 100, 0, 1);
	int32_t *order = room(g.rows, sizeof *order);
	hg_locality goal = HG_LOCALITY_INIT;
	hg_order_report report = HG_ORDER_REPORT_INIT;
	CHECK_OK(hg_order_locality(ideal.rows, ideal.rowptr, ideal.col, NULL, &goal));
	find("auto", &g, order, &report);
	test_note("%s: near %.3f -> %.3f (planted %.3f), tile %.2f -> %.2f (%.2f)", report.method,
	          report.before.near_miss, report.after.near_miss, goal.near_miss,
	          report.before.tile_reuse, report.after.tile_reuse, goal.tile_reuse);
	CHECK_STR(report.method, "community");
	CHECK(report.before.near_miss > 2 * goal.near_miss);
	CHECK(report.after.near_miss < 1.05 * goal.near_miss &&
	      report.after.tile_reuse > 0.95 * goal.tile_reuse);
	free(order);
	host_csr_free(&g);
	host_csr_free(&ideal);
}

/* A ring has no borders between communities. The order that is found gains at least 3/4 of what the
 * original order gains over a random one. */
static void order_of_a_ring_is_found(void)
{
	test_reseed(4);
	struct host_csr ideal = planted(20000, 1000000, 300, 1, 0),
	                g = planted(20000, 1000000, 300, 1, 1);
	int32_t *order = room(g.rows, sizeof *order);
	hg_locality goal = HG_LOCALITY_INIT;
	hg_order_report report = HG_ORDER_REPORT_INIT;
	CHECK_OK(hg_order_locality(ideal.rows, ideal.rowptr, ideal.col, NULL, &goal));
	find("community", &g, order, &report);
	test_note("near %.3f -> %.3f (planted %.3f)", report.before.near_miss, report.after.near_miss,
	          goal.near_miss);
	CHECK(report.before.near_miss - report.after.near_miss >
	      0.75 * (report.before.near_miss - goal.near_miss));
	free(order);
	host_csr_free(&g);
	host_csr_free(&ideal);
}

/* A graph that has no better order keeps its own, and so does one that is well ordered. */
static void auto_keeps_a_good_order(void)
{
	test_reseed(5);
	struct host_csr noise = planted(20000, 400000, 20000, 0, 1),
	                g = planted(6000, 600000, 100, 0, 0);
	int32_t *order = room(noise.rows, sizeof *order);
	hg_order_report report = HG_ORDER_REPORT_INIT;
	find("auto", &noise, order, &report);
	CHECK_STR(report.method, "original");
	for (int64_t k = 0; k < noise.rows; k++)
		CHECK(order[k] == k);
	find("auto", &g, order, &report);
	CHECK_STR(report.method, "original");
	free(order);
	host_csr_free(&noise);
	host_csr_free(&g);
}

/* With 2.5 million edges the search uses three threads. */
static void threads_change_nothing(void)
{
	test_reseed(6);
	struct host_csr g = planted(30000, 2500000, 200, 1, 1);
	int32_t *one = room(g.rows, sizeof *one), *three = room(g.rows, sizeof *three);
	static const char *const methods[] = {"community", "leading"};
	for (int k = 0; k < 2; k++) {
		omp_set_num_threads(1);
		find(methods[k], &g, one, NULL);
		omp_set_num_threads(3);
		find(methods[k], &g, three, NULL);
		CHECK(memcmp(one, three, (size_t)g.rows * sizeof *one) == 0);
	}
	free(one);
	free(three);
	host_csr_free(&g);
}

/* Simulates a cache of `lines` lines that drops the line that was used least recently. Returns how
 * many of the m edges miss it in the second of two sweeps. */
static int64_t lru_misses(const struct host_csr *g, int64_t lines)
{
	int32_t *list = room(g->rows, sizeof *list);
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

/* The library computes the rate of misses from mean working sets, which is exact for a random graph
 * and within 0.02 of the simulated cache here. */
static void locality_is_that_of_a_simulated_cache(void)
{
	test_reseed(8);
	for (int kind = 0; kind < 2; kind++) {
		struct host_csr g = planted(3000, 40000, 600, 1, kind);
		hg_locality found = HG_LOCALITY_INIT;
		CHECK_OK(hg_order_locality(g.rows, g.rowptr, g.col, NULL, &found));
		const double expected = (double)lru_misses(&g, 1024) / (double)g.m;
		test_note("near %.4f, expected %.4f", found.near_miss, expected);
		CHECK_WITHIN(found.near_miss, expected, 0.02);
		CHECK(found.far_miss <= 0);
		int64_t different = 0; /* sources of each 16 rows, counted once */
		for (int64_t i = 0; i < g.rows; i += 16) {
			char seen[3000] = {0};
			for (int64_t e = g.rowptr[i]; e < g.rowptr[i + 16 < g.rows ? i + 16 : g.rows]; e++) {
				different += !seen[g.col[e]];
				seen[g.col[e]] = 1;
			}
		}
		CHECK_WITHIN(found.tile_reuse, (double)g.m / (double)different, 1e-12);
		host_csr_free(&g);
	}
}

static void rows_are_permuted_and_restored(void)
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

static void mistakes_are_refused(void)
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
	    TEST(every_method_orders_unusual_graphs),
	    TEST(methods_have_their_property),
	    TEST(planted_communities_are_found),
	    TEST(order_of_a_ring_is_found),
	    TEST(auto_keeps_a_good_order),
	    TEST(threads_change_nothing),
	    TEST(locality_is_that_of_a_simulated_cache),
	    TEST(rows_are_permuted_and_restored),
	    TEST(mistakes_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
