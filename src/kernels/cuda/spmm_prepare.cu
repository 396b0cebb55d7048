#include "kernels/cuda/spmm_prepare.cuh"

#include "kernels/cuda/launch.cuh"

/* ---- Z[j, c] = narrow(s_j X[j, c]) ---- */

template <typename T, int W>
static __global__ void __launch_bounds__(BLOCK) scale_rows(const T *x, int64_t ldx, const float *s, int64_t rows, int64_t packs, T *z, int64_t ldz)
{
	after_previous();
	for (int64_t i = global_thread(); i < rows * packs; i += global_threads()) {
		const int64_t row = i / packs, c = (i - row * packs) * W;
		const float factor = s[row];
		float v[W];
		load<W>(x + row * ldx + c, v);
#pragma unroll
		for (int k = 0; k < W; k++)
			v[k] = __fmul_rn(factor, v[k]);
		store<W>(z + row * ldz + c, v);
	}
}

hg_status hg__cuda_scale_rows(hg_context *ctx, const struct hg__mat *x, const float *s, const struct hg__mat *z)
{
	return with_float(ctx, "spmm", x->dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(wide(*x) && wide(*z), [&](auto width) {
			constexpr int W = decltype(width)::value;
			const int64_t packs = (x->cols + W - 1) / W;
			return launch(ctx, "spmm: scaled columns", scale_rows<T, W>, grid_for(x->rows * packs, BLOCK), BLOCK, data_of<T>(*x), x->ld, s, x->rows, packs,
			              data_of<T>(*z), z->ld);
		});
	});
}

/* ---- out[p] = w[edge p] ---- */

/* Entries a thread looks up together: every one is a line of its own, so bandwidth is a matter of loads in flight. */
constexpr int LOOKUPS = 8;

template <typename T> static __global__ void __launch_bounds__(BLOCK) lay_out(const T *w, const uint32_t *edge, int64_t m, T *out)
{
	after_previous();
	const int64_t first = static_cast<int64_t>(blockIdx.x) * BLOCK * LOOKUPS + threadIdx.x;
	uint32_t place[LOOKUPS];
	T value[LOOKUPS];
#pragma unroll
	for (int i = 0; i < LOOKUPS; i++)
		place[i] = first + i * BLOCK < m ? __ldg(edge + first + i * BLOCK) : 0;
#pragma unroll
	for (int i = 0; i < LOOKUPS; i++)
		value[i] = __ldg(w + place[i]);
#pragma unroll
	for (int i = 0; i < LOOKUPS; i++)
		if (first + i * BLOCK < m)
			out[first + i * BLOCK] = value[i];
}

hg_status hg__cuda_lay_out(hg_context *ctx, const struct hg__csr *csr, const struct hg__mat *w, void *out)
{
	return with_float(ctx, "spmm", w->dtype, [&](auto zero) {
		using T = decltype(zero);
		return launch(ctx, "spmm: weights in order", lay_out<T>, grid_for(csr->m, BLOCK * LOOKUPS), BLOCK, data_of<T>(*w), csr->edge, csr->m,
		              static_cast<T *>(out));
	});
}

/* ---- rows without edges ---- */

template <typename T, int W>
static __global__ void __launch_bounds__(BLOCK) zero_empty_rows(const int64_t *rowptr, int64_t rows, int64_t cols, T *y, int64_t ldy)
{
	after_previous();
	const float zero[W] = {};
	for (int64_t row = global_thread(); row < rows; row += global_threads())
		for (int64_t c = 0; rowptr[row] == rowptr[row + 1] && c < cols; c += W)
			store<W>(y + row * ldy + c, zero);
}

hg_status hg__cuda_zero_empty_rows(hg_context *ctx, const struct hg__csr *csr, const struct hg__mat *y)
{
	return with_float(ctx, "spmm", y->dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(wide(*y), [&](auto width) {
			constexpr int W = decltype(width)::value;
			return launch(ctx, "spmm: empty rows", zero_empty_rows<T, W>, grid_for(y->rows, BLOCK), BLOCK, csr->rowptr, y->rows, y->cols, data_of<T>(*y),
			              y->ld);
		});
	});
}
