#include "graphs.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const struct named_graph graphs[] = {
    {"tiny", "a power-law graph for trying the tool", 2000, 20000, 32, 5, 1.6, 0},
    {"computers-like", "the shape of Amazon Computers", 13752, 491722, 767, 10, 1.6, 0},
    {"reddit-like", "232,965 nodes, 114.8 M edges", 232965, 114848857, 602, 41, 1.6, 0},
    {"reddit-local", "the same, 70 % of the edges near the diagonal", 232965, 114848857, 602, 41, 1.6, 1},
    {"products-like", "2,449,029 nodes, 123.7 M edges", 2449029, 123718280, 100, 47, 1.4, 0},
    {"products-local", "the same, 70 % of the edges near the diagonal", 2449029, 123718280, 100, 47, 1.4, 1},
    {"kron-21", "R-MAT, 2^21 nodes, 2^26 edges", 2097152, 67108864, 128, 16, 0.0, 0},
};

const struct named_graph *graph_list(int *count)
{
	*count = (int)(sizeof graphs / sizeof graphs[0]);
	return graphs;
}

const struct named_graph *graph_named(const char *name)
{
	for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
		if (strcmp(graphs[i].name, name) == 0)
			return &graphs[i];
	return NULL;
}

/* SplitMix64 as a function of its counter. */
static uint64_t bits(uint64_t seed, uint64_t k)
{
	uint64_t z = seed + (k + 1) * 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

double graph_uniform(uint64_t seed, uint64_t k)
{
	return (double)(bits(seed, k) >> 11) * 0x1p-53;
}

static int32_t power_law(const struct named_graph *g, double u)
{
	const uint64_t n = (uint64_t)g->nodes, id = (uint64_t)((double)n * pow(u, g->exponent));
	return (int32_t)((id < n ? id : n - 1) * 2654435761u % n);
}

static void rmat(const struct named_graph *g, uint64_t seed, uint64_t k, int32_t *dst, int32_t *src)
{
	uint64_t row = 0, col = 0;
	const uint64_t n = (uint64_t)g->nodes;
	for (uint64_t bit = 0; (1u << bit) < n; bit++) {
		const double u = graph_uniform(seed, k * 32 + bit);
		row |= (uint64_t)(u >= 0.76) << bit;
		col |= (uint64_t)((u >= 0.57 && u < 0.76) || u >= 0.95) << bit;
	}
	*dst = (int32_t)(row * 2654435761u % n);
	*src = (int32_t)(col * 2654435761u % n);
}

void graph_edges(const struct named_graph *g, uint64_t seed, int32_t *dst, int32_t *src)
{
#pragma omp parallel for schedule(static)
	for (int64_t e = 0; e < g->edges; e++) {
		const uint64_t k = (uint64_t)e * 4;
		if (g->exponent == 0.0) {
			rmat(g, seed, (uint64_t)e, &dst[e], &src[e]);
			continue;
		}
		dst[e] = power_law(g, graph_uniform(seed, k));
		if (g->local && graph_uniform(seed, k + 2) < 0.7)
			src[e] = (int32_t)((dst[e] + (int64_t)(2000 * graph_uniform(seed, k + 3))) % g->nodes);
		else
			src[e] = power_law(g, graph_uniform(seed, k + 1));
	}
}
