/* What the softmax kernels, the losses and the scores share: the softmax of a row, the rows that
 * count, and means over them. */
#ifndef HG_KERNELS_CUDA_SOFTMAX_CUH
#define HG_KERNELS_CUDA_SOFTMAX_CUH

#include "kernels/cuda/rows.cuh"

/* max and sum exp(x - max) of a row, in all its lanes. If a value is NaN, both are NaN. */
struct softmax_row {
	float max, sum;
};
template <int W, typename T>
static __device__ struct softmax_row softmax_of(const T *x, int64_t cols)
{
	const int64_t step = static_cast<int64_t>(blockDim.x) * W;
	struct softmax_row s = {-INFINITY, 0.0f};
	float pack[W];
	for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < cols; col += step) {
		load<W>(x + col, pack);
#pragma unroll
		for (int i = 0; i < W; i++)
			if (col + i < cols)
				s.max = max_nan(s.max, pack[i]);
	}
	s.max = row_max(s.max);
	for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < cols; col += step) {
		load<W>(x + col, pack);
#pragma unroll
		for (int i = 0; i < W; i++)
			if (col + i < cols)
				s.sum += expf(pack[i] - s.max);
	}
	s.sum = row_sum(s.sum);
	return s;
}

/* Which rows count: those with mask != 0 and label >= 0, if there is a mask or label, and of these
 * only the first *live. label: i32 [n, 1] or NULL; mask: u8 [n, 1] or NULL; live: NULL for all. */
struct counted_rows {
	const int32_t *label;
	const uint8_t *mask;
	int64_t ld_label, ld_mask;
	const int64_t *live;

	/* The label, or a negative number if the row does not count. Label and mask are loaded
	 * unconditionally, so that neither waits for the other. */
	__device__ int64_t label_of(int64_t row) const
	{
		const int64_t found = label[row * ld_label];
		return counts(row) ? found : -1;
	}
	__device__ bool counts(int64_t row) const
	{
		return (!mask || mask[row * ld_mask] != 0) && (!live || row < *live);
	}
};
static inline struct counted_rows counted_of(const struct hg__mat &label,
                                             const struct hg__mat &mask, const int64_t *live)
{
	return {data_of<const int32_t>(label), data_of<const uint8_t>(mask), label.ld, mask.ld, live};
}

/* dloss / count, the factor of all gradients; 0 if nothing counts. */
struct loss_factor {
	const float *count, *dloss;

	__device__ float value() const
	{
		const float n = count ? *count : 1.0f, d = *dloss;
		return n > 0.0f ? d / n : 0.0f;
	}
};

/* A sum of f32 values in f64. Over millions of rows it is accurate enough that the order of the sum
 * does not affect the f32 result. */
struct loss_total {
	double sum;
	int64_t count;

	__device__ void add(const loss_total &o)
	{
		sum += o.sum;
		count += o.count;
	}
	/* Writes the mean, where each counted row has `each` values. */
	__device__ void write(float *loss, float *out_count, int64_t each) const
	{
		const double n = static_cast<double>(count * each);
		*loss = count * each > 0 ? static_cast<float>(sum / n) : 0.0f;
		*out_count = static_cast<float>(n);
	}
};

/* Labels or a mask with another number of rows than X. */
static inline hg_status rows_differ(hg_context *ctx, const char *kernel, const struct hg__mat &x,
                                    const struct hg__mat &other)
{
	return hg__fail(ctx, HG_ERR_INTERNAL, "%s: X has %lld rows, its labels or mask have %lld",
	                kernel, static_cast<long long>(x.rows), static_cast<long long>(other.rows));
}

#endif
