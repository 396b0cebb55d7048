/* The ways to make the arrays of a graph that is refilled of its complete list (core/refill.h), and
 * what they share. Two make rows, with the same bits; refill.cu chooses. */
#ifndef HG_KERNELS_CUDA_REFILL_CUH
#define HG_KERNELS_CUDA_REFILL_CUH

#include "core/refill.h"
#include "kernels/cuda/build.cuh"

/* Edges are counted and dealt to their rows, and each row is then sorted by itself
 * (refill_rows.cu). `suits` says whether the room is small enough. */
bool refill_rows_suits(const struct hg__refill *r);
size_t refill_rows_scratch(const struct hg__refill *r);
HG_NODISCARD hg_status refill_rows(hg_context *ctx, const struct hg__refill *r);

/* The whole list is sorted (refill_sort.cu). */
HG_NODISCARD hg_status refill_sort_scratch(hg_context *ctx, const struct hg__refill *r,
                                           size_t *bytes);
HG_NODISCARD hg_status refill_sort(hg_context *ctx, const struct hg__refill *r);

/* The list stays as it is, for sums that scatter (refill_list.cu). */
HG_NODISCARD hg_status refill_list(hg_context *ctx, const struct hg__refill *r);

static __device__ inline void keep_least(uint64_t *word, uint64_t other)
{
	using word_t = unsigned long long; /* the type that 64-bit atomics need */
	if (other < HG__PROMISES_KEPT)
		atomicMin(reinterpret_cast<word_t *>(word), static_cast<word_t>(other));
}

/* What the list in place has. Self loops are edges nodes .. nodes + loops of the complete list, and
 * padding fills the rows from `nodes` on. */
struct listed {
	int64_t nodes, edges, loops, padding;
};

static __device__ inline struct listed listed_in(const struct hg__refill &r)
{
	struct listed l;
	l.nodes = hg__refill_within(r.live[0], r.nodes);
	l.edges = hg__refill_within(r.live[1], r.listed);
	l.loops = r.self_loops ? l.nodes : 0;
	l.padding = r.edges - l.edges - l.loops;
	return l;
}

/* Self loops and padding in the rows before row i. */
static __device__ inline int64_t unlisted_before(const struct hg__refill &r, const struct listed &l,
                                                 int64_t i)
{
	if (i <= l.nodes)
		return r.self_loops ? i : 0;
	const int64_t room = (i - l.nodes) * r.max_degree;
	return l.loops + (room < l.padding ? room : l.padding);
}

/* The first kernel of every way does this once: it checks the numbers of the list. */
static __device__ inline void put_counts(const struct hg__refill &r)
{
	*r.broken = hg__refill_counts_broken(&r);
	r.to.ptr[0] = 0;
	r.to.ptr[1] = hg__refill_within(r.live[0], r.nodes);
}

/* What belongs to row i, with its degrees. */
static __device__ inline void put_node(const struct hg__refill &r, int64_t i, int64_t in,
                                       int64_t out)
{
	const int64_t nodes = hg__refill_within(r.live[0], r.nodes);
	/* degree 0 counts as 1 */
	const double rows = static_cast<double>(in > 0 ? in : 1),
	             cols = static_cast<double>(out > 0 ? out : 1);
	r.to.inverse_row[i] = inverse_of_degree(rows);
	r.to.root_row[i] = root_of_degree(rows);
	r.to.inverse_col[i] = inverse_of_degree(cols);
	r.to.root_col[i] = root_of_degree(cols);
	r.to.id[i] = i < nodes ? 0 : -1;
	if (i < nodes && in > r.max_degree)
		keep_least(r.broken, hg__broken_word(HG__PROMISE_IN_DEGREE, i));
	if (i < nodes && out > r.max_degree)
		keep_least(r.broken, hg__broken_word(HG__PROMISE_OUT_DEGREE, i));
}

/* The same, when the rows of both orientations are known. */
static __device__ inline void put_node(const struct hg__refill &r, int64_t i)
{
	put_node(r, i, r.to.rowptr[i + 1] - r.to.rowptr[i], r.to.rowptr_t[i + 1] - r.to.rowptr_t[i]);
}

static __device__ inline void put_weight(const struct hg__refill &r, int64_t place, float weight)
{
	r.to.weight[place] = weight;
	static_cast<__half *>(r.to.weight_f16)[place] = __float2half_rn(weight);
}

#endif
