/* Measures the rounding error of an aggregation on a sample of rows, in f64:
 *
 *     swamped = max over rows i of the sample and columns c of
 *               |Y[i, c] - sum of t| / sum of |t|,    t = alpha r_i w s_j X[j, c]
 *
 * A block takes one row of the sample. A lane has a column, 32 at a time, and a warp takes every
 * eighth edge. */

#include "kernels/observe.h"

#include "kernels/cuda/totals.cuh"

namespace
{

constexpr int WARPS = BLOCK / 32;

struct shadow {
	double sum, size; /* sum of t and of |t|, without alpha r */
};

/* The sums over the edges of this warp. UNROLL gathers are in flight, because samples contain hubs.
 */
__device__ struct shadow add_edges(const struct hg__probe &p, int32_t row, int64_t col)
{
	constexpr int UNROLL = 4;
	const int64_t head = p.heads > 1 ? col / (p.y.cols / p.heads) : 0, end = p.rowptr[row + 1];
	struct shadow s = {0.0, 0.0};
#pragma unroll UNROLL
	for (int64_t e = p.rowptr[row] + threadIdx.y; e < end; e += WARPS) {
		const int32_t j = p.col[e];
		const double w =
		    p.w.data ? static_cast<double>(element(p.w, p.edge ? p.edge[e] : e, head)) : 1.0;
		const double scale = p.col_scale ? static_cast<double>(p.col_scale[j]) : 1.0;
		const double t = w * scale * static_cast<double>(element(p.x, j, col));
		s.sum += t;
		s.size += fabs(t);
	}
	return s;
}

/* The relative error in one column, or 0 if it is not defined. */
__device__ float deviation(const struct hg__probe &p, int32_t row, int64_t col,
                           const struct shadow &s)
{
	const double factor =
	    static_cast<double>(p.alpha) * (p.row_scale ? static_cast<double>(p.row_scale[row]) : 1.0);
	const double size = fabs(factor) * s.size,
	             off = fabs(static_cast<double>(element(p.y, row, col)) - factor * s.sum) / size;
	return size > 0.0 && size < INFINITY && off < INFINITY ? static_cast<float>(off) : 0.0f;
}

__global__ void __launch_bounds__(BLOCK)
    spmm_probe_kernel(const __grid_constant__ struct hg__spmm_probe_args a)
{
	after_previous();
	__shared__ struct shadow part[WARPS][32];
	if (!hg__is_due(&a.due))
		return;
	const struct hg__probe p = a.probes[blockIdx.y];
	if (blockIdx.x >= p.samples)
		return;
	const int32_t row = p.sample[blockIdx.x];
	float most = 0.0f;
	for (int64_t first = 0; first < p.y.cols; first += 32) {
		const int64_t col = first + threadIdx.x;
		struct shadow s = {0.0, 0.0};
		if (col < p.y.cols)
			s = add_edges(p, row, col);
		part[threadIdx.y][threadIdx.x] = s;
		__syncthreads();
		if (threadIdx.y == 0 && col < p.y.cols) {
			for (int warp = 1; warp < WARPS; warp++) {
				s.sum += part[warp][threadIdx.x].sum;
				s.size += part[warp][threadIdx.x].size;
			}
			most = fmaxf(most, deviation(p, row, col, s));
		}
		__syncthreads(); /* the next columns use the same shared memory */
	}
	if (threadIdx.y != 0)
		return;
	/* non-negative floats compare like their bits */
	const unsigned bits = __reduce_max_sync(0xffffffffu, __float_as_uint(most));
	if (threadIdx.x == 0)
		atomicMax(reinterpret_cast<unsigned long long *>(&a.counts[p.record].swamped),
		          static_cast<unsigned long long>(hg__swamped(bits, row)));
}

} // namespace

HG__NO_WORKSPACE(spmm_probe, spmm_probe_args)

extern "C" hg_status hg__cuda_spmm_probe(hg_context *ctx, const struct hg__spmm_probe_args *a)
{
	if (a->count == 0 || a->samples == 0)
		return HG_OK;
	return launch(ctx, "spmm_probe", spmm_probe_kernel,
	              dim3(static_cast<unsigned>(a->samples), static_cast<unsigned>(a->count)),
	              dim3(32, WARPS), *a);
}
