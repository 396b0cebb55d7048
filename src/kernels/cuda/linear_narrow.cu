/* The gradients of a layer of halves with D outputs, D at most four, in one pass over the rows:
 *
 *     dX [n, k] = dY [n, D] W^T,    dW [k, D] = 2^shift X^T dY,    db [D] = sum of the rows of dY
 *
 * So few columns are no work for tensor cores: a thread has eight columns of X in registers, with W
 * and its sums for them, and goes through the rows of its block. A block stores one part of the
 * sums, and a second kernel adds the parts in order. A head of 2 classes on 4,096 graphs of 32
 * columns took 19 us on an H200 with two products of cuBLASLt and a sum. */

#include "kernels/cuda/linear_narrow.cuh"

#include "kernels/cuda/gemm_norm.cuh"
#include "kernels/cuda/launch.cuh"

namespace
{

/* Two blocks for each of 132 multiprocessors. The number is the same on all devices, because the
 * bits of the sums depend on it. */
constexpr int64_t PARTS = 264;
constexpr int MOST_OUT = 4, MOST_IN = 256;
static_assert(static_cast<size_t>(PARTS * MOST_OUT * (MOST_IN + 1)) * sizeof(float) <=
                  LINEAR_SCRATCH_BYTES,
              "room for the parts");

struct narrow_layer {
	const __half *x, *w, *dy;
	__half *dx;  /* NULL: not wanted */
	float *part; /* [parts][D * k + D]: dW by columns, and db */
	int64_t n, each, ldx, ldw, lddy, lddx;
	int k;
};

/* A thread is (pack of columns, place of a row). */
template <int D>
__global__ void __launch_bounds__(BLOCK)
    narrow_kernel(const __grid_constant__ struct narrow_layer m)
{
	after_previous();
	__shared__ float room[BLOCK * 8], bias[BLOCK];
	const int packs = static_cast<int>(blockDim.x), places = static_cast<int>(blockDim.y),
	          pack = static_cast<int>(threadIdx.x), place = static_cast<int>(threadIdx.y),
	          thread = place * packs + pack;
	const int64_t begin = blockIdx.x * m.each, end = begin + m.each < m.n ? begin + m.each : m.n;
	const bool exists = 8 * pack < m.k;
	float w[D][8] = {}, dw[D][8] = {}, db[D] = {};
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < D; j++)
			w[j][i] = 8 * pack + i < m.k ? widen(m.w[(8 * pack + i) * m.ldw + j]) : 0.0f;
	for (int64_t row = begin + place; row < end && exists; row += places) {
		float x[8], dx[8] = {}, dy[D];
		load<8>(m.x + row * m.ldx + 8 * pack, x);
#pragma unroll
		for (int j = 0; j < D; j++) {
			dy[j] = widen(m.dy[row * m.lddy + j]);
			db[j] += dy[j];
#pragma unroll
			for (int i = 0; i < 8; i++) {
				dx[i] = __fmaf_rn(dy[j], w[j][i], dx[i]);
				dw[j][i] = __fmaf_rn(x[i], dy[j], dw[j][i]);
			}
		}
		if (m.dx)
			store<8>(m.dx + row * m.lddx + 8 * pack, dx);
	}
	float *const part = m.part + static_cast<int64_t>(blockIdx.x) * D * (m.k + 1);
#pragma unroll
	for (int j = 0; j < D; j++) {
		__syncthreads(); /* another thread may still be reading the sums of output j - 1 */
#pragma unroll
		for (int i = 0; i < 8; i++)
			room[(place * packs + pack) * 8 + i] = dw[j][i];
		if (pack == 0)
			bias[place] = db[j];
		__syncthreads();
		for (int c = thread; c <= m.k; c += BLOCK) {
			float sum = 0.0f;
			for (int p = 0; p < places; p++)
				sum += c < m.k ? room[p * packs * 8 + c] : bias[p];
			part[c < m.k ? j * m.k + c : D * m.k + j] = sum;
		}
	}
}

/* Where the sums go. */
struct narrow_sums {
	struct hg__mat dw;
	float *db; /* NULL: not wanted */
	float factor;
	int k, out;
};

/* Adds the parts in order. A block has 32 numbers, and one thread per warp for each of them. */
__global__ void __launch_bounds__(BLOCK)
    narrow_fold(const float *part, int parts, const struct narrow_sums to)
{
	after_previous();
	__shared__ float some[BLOCK / 32][32];
	const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32),
	          index = static_cast<int>(blockIdx.x) * 32 + lane, size = to.out * (to.k + 1);
	float sum = 0.0f;
#pragma unroll 16
	for (int p = warp; p < parts; p += BLOCK / 32)
		sum += index < size ? part[static_cast<int64_t>(p) * size + index] : 0.0f;
	some[warp][lane] = sum;
	__syncthreads();
	if (warp > 0 || index >= size)
		return;
	for (int v = 1; v < BLOCK / 32; v++)
		sum += some[v][lane];
	if (index >= to.out * to.k) {
		if (to.db)
			to.db[index - to.out * to.k] = sum;
		return;
	}
	if (!to.dw.data)
		return;
	const int64_t at = index % to.k * to.dw.ld + index / to.k;
	sum *= to.factor;
	if (to.dw.dtype == HG_F16)
		static_cast<__half *>(to.dw.data)[at] = __float2half_rn(sum);
	else
		static_cast<float *>(to.dw.data)[at] = sum;
}

typedef void (*narrow_fn)(struct narrow_layer);

} // namespace

bool hg__cuda_linear_narrow_takes(const struct hg__linear_back_args *a)
{
	const int64_t k = a->w.rows, d = a->w.cols;
	return a->x.dtype == HG_F16 && a->dy.dtype == HG_F16 && a->w.dtype == HG_F16 && a->w.data &&
	       a->x.data && a->dw.data && a->x.rows > 0 && k > 0 && k <= MOST_IN && d > 0 &&
	       d <= MOST_OUT && wide(a->x) && wide(a->dx) && a->x.cols == k && a->dy.cols == d &&
	       a->dy.rows == a->x.rows && (!a->dx.data || (a->dx.dtype == HG_F16 && a->dx.cols == k));
}

hg_status hg__cuda_linear_narrow(hg_context *ctx, const struct hg__linear_back_args *a)
{
	static constexpr narrow_fn kernels[MOST_OUT] = {narrow_kernel<1>, narrow_kernel<2>,
	                                                narrow_kernel<3>, narrow_kernel<4>};
	const int k = static_cast<int>(a->w.rows), out = static_cast<int>(a->w.cols);
	unsigned packs = 1;
	while (8 * packs < static_cast<unsigned>(k))
		packs *= 2;
	const dim3 block(packs, BLOCK / packs);
	const int64_t n = a->x.rows, wanted = (n + block.y - 1) / block.y,
	              most = wanted < PARTS ? wanted : PARTS, each = (n + most - 1) / most,
	              parts = (n + each - 1) / each;
	void *scratch;
	HG__TRY(hg__cuda_gemm_scratch(ctx, &scratch));
	const struct narrow_layer m = {data_of<const __half>(a->x),
	                               data_of<const __half>(a->w),
	                               data_of<const __half>(a->dy),
	                               data_of<__half>(a->dx),
	                               static_cast<float *>(scratch),
	                               n,
	                               each,
	                               a->x.ld,
	                               a->w.ld,
	                               a->dy.ld,
	                               a->dx.ld,
	                               k};
	HG__TRY(launch(ctx, "linear_back: narrow", kernels[out - 1], static_cast<unsigned>(parts),
	               block, m));
	const struct narrow_sums to = {a->dw, static_cast<float *>(a->db.data), ldexpf(1.0f, a->shift),
	                               k, out};
	return launch(ctx, "linear_back: narrow, sums", narrow_fold, grid_for(out * (k + 1), 32), BLOCK,
	              static_cast<const float *>(scratch), static_cast<int>(parts), to);
}
