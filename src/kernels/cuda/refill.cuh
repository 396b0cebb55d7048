/* The two ways to make the arrays of a graph that is refilled, with the same bits, of its complete
 * list (core/refill.h), and what they share. refill.cu chooses. */
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

static __device__ inline void keep_least(uint64_t *word, uint64_t other)
{
	using word_t = unsigned long long; /* the type that 64-bit atomics need */
	if (other < HG__PROMISES_KEPT)
		atomicMin(reinterpret_cast<word_t *>(word), static_cast<word_t>(other));
}

/* The first kernel of both ways does this once: it checks the numbers of the list. */
static __device__ inline void put_counts(const struct hg__refill &r)
{
	*r.broken = hg__refill_counts_broken(&r);
	r.to.ptr[0] = 0;
	r.to.ptr[1] = hg__refill_within(r.live[0], r.nodes);
}

/* What belongs to row i, when the rows of both orientations are known. */
static __device__ inline void put_node(const struct hg__refill &r, int64_t i)
{
	const int64_t in = r.to.rowptr[i + 1] - r.to.rowptr[i],
	              out = r.to.rowptr_t[i + 1] - r.to.rowptr_t[i],
	              nodes = hg__refill_within(r.live[0], r.nodes);
	const double rows = degree(r.to.rowptr, i), cols = degree(r.to.rowptr_t, i);
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

static __device__ inline void put_weight(const struct hg__refill &r, int64_t place, float weight)
{
	r.to.weight[place] = weight;
	static_cast<__half *>(r.to.weight_f16)[place] = __float2half_rn(weight);
}

#endif
