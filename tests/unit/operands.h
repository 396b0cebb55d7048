#ifndef HG_TESTS_OPERANDS_H
#define HG_TESTS_OPERANDS_H

#include <stdlib.h>
#include <string.h>

#include "core/csr.h"
#include "graphs.h"
#include "harness.h"
#include "kernels/cpu/backend.h"

/* Matrices and a graph for tests that call the CPU kernels directly. */

/* ---- operands ---- */

#define POOL 512
static struct {
	void *memory[POOL];
	int count;
	unsigned char *out; /* the results of the kernels of a case, one after the other */
	size_t bytes, room;
} pool;

static inline void *take(size_t bytes)
{
	CHECK(pool.count < POOL);
	void *memory = calloc(bytes + 64, 1);
	CHECK(memory);
	return pool.memory[pool.count++] = memory;
}

static inline void pool_clear(void)
{
	while (pool.count)
		free(pool.memory[--pool.count]);
	free(pool.out);
	pool.out = NULL;
	pool.bytes = pool.room = 0;
}

static inline size_t size_of(hg_dtype dtype)
{
	return hg_dtype_size(dtype);
}

static inline void set(struct hg__mat *m, int64_t r, int64_t c, double x)
{
	const int64_t at = r * m->ld + c;
	if (m->dtype == HG_F16)
		((hg_half *)m->data)[at] = hg_half_from_double(x);
	else if (m->dtype == HG_F32)
		((float *)m->data)[at] = (float)x;
	else if (m->dtype == HG_I32)
		((int32_t *)m->data)[at] = (int32_t)x;
	else
		((uint8_t *)m->data)[at] = (uint8_t)x;
}

static inline double get(const struct hg__mat *m, int64_t r, int64_t c)
{
	const int64_t at = r * m->ld + c;
	if (m->dtype == HG_F16)
		return (double)hg_half_to_float(((const hg_half *)m->data)[at]);
	if (m->dtype == HG_F32)
		return (double)((const float *)m->data)[at];
	return m->dtype == HG_I32 ? ((const int32_t *)m->data)[at] : ((const uint8_t *)m->data)[at];
}

/* The padding is NaN, which must not reach a result. */
static inline struct hg__mat empty(hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct hg__mat m = {NULL, rows, cols, dtype == HG_U8 ? cols : hg__leading(cols), dtype};
	m.data = take((size_t)(rows * m.ld) * size_of(dtype));
	memset(m.data, 0xFF, (size_t)(rows * m.ld) * size_of(dtype));
	return m;
}

static inline struct hg__mat normal(hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct hg__mat m = empty(dtype, rows, cols);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			set(&m, r, c, test_normal());
	return m;
}

static inline struct hg__mat filled(hg_dtype dtype, int64_t rows, int64_t cols, double x)
{
	struct hg__mat m = empty(dtype, rows, cols);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			set(&m, r, c, x);
	return m;
}

static inline struct hg__mat below(hg_dtype dtype, int64_t rows, int64_t cols, int64_t low,
                                   int64_t high)
{
	struct hg__mat m = empty(dtype, rows, cols);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			set(&m, r, c, (double)(low + test_below(high - low)));
	return m;
}

static inline void keep_bytes(const void *data, size_t bytes)
{
	if (pool.bytes + bytes > pool.room) {
		pool.room = 2 * (pool.bytes + bytes);
		pool.out = realloc(pool.out, pool.room);
		CHECK(pool.out);
	}
	memcpy(pool.out + pool.bytes, data, bytes);
	pool.bytes += bytes;
}

/* Appends a result to pool.out, without its padding. */
static inline void keep(const struct hg__mat *m)
{
	for (int64_t r = 0; r < m->rows; r++)
		keep_bytes((const char *)m->data + (size_t)(r * m->ld) * size_of(m->dtype),
		           (size_t)m->cols * size_of(m->dtype));
}

/* ---- a graph with a hub, isolated nodes and duplicates ---- */

enum { NODES = 300, EDGES = 2400 };

struct graph {
	hg_graph *graph;
	struct hg__csr csr, csr_t;
	float *row_scale, *col_scale;
};

static inline struct graph make_graph(hg_context *ctx)
{
	struct graph g;
	struct coo edges = coo_empty(NODES, NODES);
	for (int e = 0; e < EDGES; e++) {
		const int64_t dst = e % 3 == 0 ? 7 : test_below(NODES - 10);
		coo_add(&edges, dst, e % 5 == 0 ? 11 : test_below(NODES - 10));
	}
	g.graph = coo_graph(ctx, edges);
	CHECK_OK(hg__graph_csr(g.graph, &g.csr));
	CHECK_OK(hg__graph_csr_t(g.graph, 1, &g.csr_t));
	CHECK(g.csr.plan && g.csr.plan->splits > 0);
	g.row_scale = take(NODES * sizeof(float));
	g.col_scale = take(NODES * sizeof(float));
	for (int i = 0; i < NODES; i++) {
		g.row_scale[i] = (float)test_uniform();
		g.col_scale[i] = (float)test_uniform();
	}
	return g;
}

#endif
