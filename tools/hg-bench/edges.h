#ifndef HG_BENCH_EDGES_H
#define HG_BENCH_EDGES_H

#include <math.h>
#include <stdint.h>

#include "precision/hostdevice.h"

/* The named synthetic graphs, edge by edge: pure functions of rule, seed and edge number, with the
 * same source for host and device. (pow may differ in its last bit between the two, which moves an
 * endpoint about once in 10^10 edges.)
 *
 *    POWER      dst = scatter(floor(n u^a)), src drawn likewise; local: for 70 % of the edges
 *               src = dst + floor(2000 u) mod n
 *    RMAT       bit by bit, quadrant probabilities .57 .19 .19 .05, ids scattered
 *    PLANTED    n / block communities; dst uniform, src in the same community for 80 % of the
 *               edges, else anywhere; ids scattered unless local
 *    MOLECULE   n / block chains with branches, node t + 1 bonded to one of t-2 .. t; the remaining
 *               bonds close rings
 *    CLIQUES    n / block graphs, both ends uniform in one of them
 *    UNEQUAL    the same in n / block groups of graphs of 36 to 204 nodes, an edge for each pair of
 *               nodes alike
 *    MOLECULES  n / block groups of ten molecules of 12 to 24 nodes, each as in MOLECULE
 *    COMPOUNDS  the same of 13 to 62 nodes
 *    NEAR       n / block graphs; each node in turn gets an edge, from one of the 4 edges / n nodes
 *               of its graph whose ids are the nearest to its own, as between the pieces of an
 *               image */
enum edge_kind {
	EDGE_POWER,
	EDGE_RMAT,
	EDGE_PLANTED,
	EDGE_MOLECULE,
	EDGE_CLIQUES,
	EDGE_UNEQUAL,
	EDGE_MOLECULES,
	EDGE_COMPOUNDS,
	EDGE_NEAR,
	EDGE_KINDS
};

struct edge_rule {
	enum edge_kind kind;
	int64_t nodes, edges;
	int64_t block;   /* nodes of a community, a graph, or a group of unequal graphs */
	double exponent; /* a of POWER */
	int local;
	int symmetric; /* edges 2k and 2k+1 are the two directions of one pair */
};

/* SplitMix64 as a function of its counter. */
HG_HD static inline uint64_t edge_bits(uint64_t seed, uint64_t k)
{
	uint64_t z = seed + (k + 1) * 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* In [0, 1), 53 bits. */
HG_HD static inline double edge_uniform(uint64_t seed, uint64_t k)
{
	return (double)(edge_bits(seed, k) >> 11) * 0x1p-53;
}

/* floor(limit * u), u in [0, 1]. */
HG_HD static inline uint64_t edge_below(uint64_t limit, double u)
{
	const uint64_t id = (uint64_t)((double)limit * u);
	return id < limit ? id : limit - 1;
}

/* Knuth's multiplier is a prime and does not divide any n used here, so this is a permutation:
 * different nodes get different ids, and ids that were adjacent are scattered. */
HG_HD static inline int32_t edge_scatter(const struct edge_rule *r, uint64_t id)
{
	return (int32_t)(id * 2654435761u % (uint64_t)r->nodes);
}

HG_HD static inline void edge_power(const struct edge_rule *r, uint64_t seed, uint64_t e,
                                    int32_t *dst, int32_t *src)
{
	const uint64_t k = e * 4, n = (uint64_t)r->nodes;
	*dst = edge_scatter(r, edge_below(n, pow(edge_uniform(seed, k), r->exponent)));
	if (r->local && edge_uniform(seed, k + 2) < 0.7)
		*src = (int32_t)((*dst + (int64_t)(2000 * edge_uniform(seed, k + 3))) % r->nodes);
	else
		*src = edge_scatter(r, edge_below(n, pow(edge_uniform(seed, k + 1), r->exponent)));
}

HG_HD static inline void edge_rmat(const struct edge_rule *r, uint64_t seed, uint64_t e,
                                   int32_t *dst, int32_t *src)
{
	uint64_t row = 0, col = 0;
	for (uint64_t bit = 0; ((uint64_t)1 << bit) < (uint64_t)r->nodes; bit++) {
		const double u = edge_uniform(seed, e * 32 + bit);
		row |= (uint64_t)(u >= 0.76) << bit;
		col |= (uint64_t)((u >= 0.57 && u < 0.76) || u >= 0.95) << bit;
	}
	*dst = edge_scatter(r, row);
	*src = edge_scatter(r, col);
}

HG_HD static inline void edge_planted(const struct edge_rule *r, uint64_t seed, uint64_t e,
                                      int32_t *dst, int32_t *src)
{
	const uint64_t k = e * 4, n = (uint64_t)r->nodes, block = (uint64_t)r->block;
	const uint64_t i = edge_below(n, edge_uniform(seed, k));
	const int inside = edge_uniform(seed, k + 2) < 0.8;
	const uint64_t j = inside ? i / block * block + edge_below(block, edge_uniform(seed, k + 1))
	                          : edge_below(n, edge_uniform(seed, k + 1));
	*dst = r->local ? (int32_t)i : edge_scatter(r, i);
	*src = r->local ? (int32_t)j : edge_scatter(r, j);
}

/* Bond t of molecule g. */
HG_HD static inline void edge_molecule(const struct edge_rule *r, uint64_t seed, uint64_t e,
                                       int32_t *dst, int32_t *src)
{
	const uint64_t graphs = (uint64_t)(r->nodes / r->block), block = (uint64_t)r->block,
	               t = e / graphs, first = e % graphs * block;
	if (t + 1 < block) {
		const uint64_t reach = t < 2 ? t + 1 : 3;
		*dst = (int32_t)(first + t + 1);
		*src = (int32_t)(first + t - edge_below(reach, edge_uniform(seed, e * 4)));
	} else {
		*dst = (int32_t)(first + edge_below(block, edge_uniform(seed, e * 4)));
		*src = (int32_t)(first + edge_below(block, edge_uniform(seed, e * 4 + 1)));
	}
}

HG_HD static inline void edge_cliques(const struct edge_rule *r, uint64_t seed, uint64_t e,
                                      int32_t *dst, int32_t *src)
{
	const uint64_t graphs = (uint64_t)(r->nodes / r->block), block = (uint64_t)r->block,
	               first = e % graphs * block;
	*dst = (int32_t)(first + edge_below(block, edge_uniform(seed, e * 4)));
	*src = (int32_t)(first + edge_below(block, edge_uniform(seed, e * 4 + 1)));
}

/* UNEQUAL: the node with which graph k of a group begins. The sizes, 36, 40, 45, 50, 57, 68,
 * 100 and 204, have the mean of COLLAB, 75, and as there the large graphs have many of the
 * edges. */
enum { EDGE_UNEQUAL_GRAPHS = 8, EDGE_UNEQUAL_NODES = 600 };
HG_HD static inline int64_t edge_unequal_begin(int k)
{
	const int64_t begin[EDGE_UNEQUAL_GRAPHS + 1] = {0, 36, 76, 121, 171, 228, 296, 396, 600};
	return begin[k];
}
HG_HD static inline int64_t edge_unequal_pairs(int k)
{
	const int64_t nodes = edge_unequal_begin(k + 1) - edge_unequal_begin(k);
	return nodes * nodes;
}

/* 66,910 is the number of pairs of nodes in the graphs of a group. */
HG_HD static inline void edge_unequal(const struct edge_rule *r, uint64_t seed, uint64_t e,
                                      int32_t *dst, int32_t *src)
{
	const uint64_t groups = (uint64_t)(r->nodes / r->block);
	int64_t pair = (int64_t)edge_below(66910, edge_uniform(seed, e * 4 + 2));
	int k = 0;
	for (; pair >= edge_unequal_pairs(k); k++)
		pair -= edge_unequal_pairs(k);
	const uint64_t first = e % groups * (uint64_t)r->block + (uint64_t)edge_unequal_begin(k),
	               nodes = (uint64_t)(edge_unequal_begin(k + 1) - edge_unequal_begin(k));
	*dst = (int32_t)(first + edge_below(nodes, edge_uniform(seed, e * 4)));
	*src = (int32_t)(first + edge_below(nodes, edge_uniform(seed, e * 4 + 1)));
}

/* MOLECULES: the node with which molecule k of a group begins. The sizes, 12, 14, 16, 17, 18, 18,
 * 19, 20, 22 and 24, have the mean of QM9, 18, and nearly its deviation, 3.
 *
 * COMPOUNDS: the sizes, 13, 17, 20, 23, 26, 28, 31, 36, 44 and 62, have the mean of NCI1, 30, and
 * its deviation, 13.5; one in ten is larger than 48. */
enum { EDGE_MOLECULES_GRAPHS = 10, EDGE_MOLECULES_NODES = 180, EDGE_COMPOUNDS_NODES = 300 };
HG_HD static inline int64_t edge_molecules_begin(enum edge_kind kind, int k)
{
	const int16_t begin[2][EDGE_MOLECULES_GRAPHS + 1] = {
	    {0, 12, 26, 42, 59, 77, 95, 114, 134, 156, EDGE_MOLECULES_NODES},
	    {0, 13, 30, 50, 73, 99, 127, 158, 194, 238, EDGE_COMPOUNDS_NODES}};
	return begin[kind == EDGE_COMPOUNDS][k];
}

/* Bond t of a group: those of the chains come first. */
HG_HD static inline void edge_molecules(const struct edge_rule *r, uint64_t seed, uint64_t e,
                                        int32_t *dst, int32_t *src)
{
	const uint64_t groups = (uint64_t)(r->nodes / r->block),
	               first = e % groups * (uint64_t)r->block;
	const int64_t bond = (int64_t)(e / groups), chains = r->block - EDGE_MOLECULES_GRAPHS;
	int k = bond < chains ? 0 : (int)((bond - chains) % EDGE_MOLECULES_GRAPHS);
	while (bond < chains && edge_molecules_begin(r->kind, k + 1) - (k + 1) <= bond)
		k++;
	const int64_t within = edge_molecules_begin(r->kind, k);
	const uint64_t begin = first + (uint64_t)within,
	               nodes = (uint64_t)(edge_molecules_begin(r->kind, k + 1) - within);
	if (bond < chains) {
		const uint64_t t = (uint64_t)(bond - (within - k)), reach = t < 2 ? t + 1 : 3;
		*dst = (int32_t)(begin + t + 1);
		*src = (int32_t)(begin + t - edge_below(reach, edge_uniform(seed, e * 4)));
	} else {
		*dst = (int32_t)(begin + edge_below(nodes, edge_uniform(seed, e * 4)));
		*src = (int32_t)(begin + edge_below(nodes, edge_uniform(seed, e * 4 + 1)));
	}
}

/* The graphs of a block of this kind, and the node with which graph k of it begins. */
static inline int edge_graphs_of(enum edge_kind kind)
{
	return kind == EDGE_UNEQUAL                               ? (int)EDGE_UNEQUAL_GRAPHS
	       : kind == EDGE_MOLECULES || kind == EDGE_COMPOUNDS ? (int)EDGE_MOLECULES_GRAPHS
	                                                          : 1;
}
static inline int64_t edge_graph_begin(enum edge_kind kind, int k)
{
	return kind == EDGE_UNEQUAL                               ? edge_unequal_begin(k)
	       : kind == EDGE_MOLECULES || kind == EDGE_COMPOUNDS ? edge_molecules_begin(kind, k)
	                                                          : 0;
}

/* The ids of a graph form a ring, so that its first node has as many near ids as the others. */
HG_HD static inline void edge_near(const struct edge_rule *r, uint64_t seed, uint64_t e,
                                   int32_t *dst, int32_t *src)
{
	const uint64_t n = (uint64_t)r->nodes, block = (uint64_t)r->block, i = e % n,
	               first = i / block * block, wanted = 4 * (uint64_t)r->edges / n,
	               near = wanted < block ? wanted : block - 1;
	const uint64_t pick = edge_below(near, edge_uniform(seed, e * 4));
	/* from near / 2 ids below to as many above, itself left out */
	const uint64_t step = pick < near / 2 ? block - near / 2 + pick : pick - near / 2 + 1;
	*dst = (int32_t)i;
	*src = (int32_t)(first + (i - first + step) % block);
}

typedef void (*edge_fn)(const struct edge_rule *r, uint64_t seed, uint64_t e, int32_t *dst,
                        int32_t *src);

/* Draw edge e of a graph; a symmetric graph draws pairs. */
HG_HD static inline void edge_draw(edge_fn draw, const struct edge_rule *r, uint64_t seed,
                                   uint64_t e, int32_t *dst, int32_t *src)
{
	const int back = r->symmetric && (e & 1);
	draw(r, seed, r->symmetric ? e / 2 : e, back ? src : dst, back ? dst : src);
}

/* Element k of a random matrix: uniform in [low, high), or, with `steps`, one of low + (high - low)
 * s / steps, s = 1 .. steps. */
struct fill_rule {
	double low, high;
	int64_t steps;
};
HG_HD static inline double fill_value(const struct fill_rule *f, uint64_t seed, uint64_t k)
{
	const double u = edge_uniform(seed, k),
	             part = f->steps
	                        ? (double)(1 + edge_below((uint64_t)f->steps, u)) / (double)f->steps
	                        : u;
	return f->low + (f->high - f->low) * part;
}

#endif
