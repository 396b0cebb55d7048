/* Cross-entropy with weights of the classes or label smoothing (kernels.h has the equations). The
 * lanes of a row read it a third time for the sum over the classes, which a loss without weights
 * does not need. */
#ifndef HG_KERNELS_CUDA_SOFTMAX_XENT_WEIGHTED_CUH
#define HG_KERNELS_CUDA_SOFTMAX_XENT_WEIGHTED_CUH

#include "kernels/cuda/softmax.cuh"

/* The weights of the classes: f32, or NULL where all are 1. */
struct class_weights {
	const float *weight;
	int64_t cols;
	float smoothing;

	/* Of a label that is not a class, whose loss is infinite, 1. */
	__device__ float of(int64_t c) const
	{
		return weight && c < cols ? weight[c] : 1.0f;
	}
	/* (1 - e) w[label], and e / cols */
	__device__ float keep(int64_t label) const
	{
		return (1.0f - smoothing) * of(label);
	}
	__device__ float share() const
	{
		return smoothing / static_cast<float>(cols);
	}
};

/* A sum of losses, and of the weights of their labels. */
struct weighted_total {
	double sum, weight;

	__device__ void add(const weighted_total &o)
	{
		sum += o.sum;
		weight += o.weight;
	}
};

template <typename T> struct weighted_xent {
	const T *x;
	int64_t ld, cols;
	struct counted_rows rows;
	struct class_weights weights;
	float *loss, *count;

	template <int W> __device__ void row(int64_t row, bool live, weighted_total &mine) const
	{
		const int64_t at = live ? row : 0, label = live ? rows.label_of(at) : -1,
		              end = label >= 0 ? cols : 0, step = static_cast<int64_t>(blockDim.x) * W;
		const T *logits = x + at * ld;
		const struct softmax_row s = softmax_of<W>(logits, end);
		const float log_sum = logf(s.sum);
		float smooth = 0.0f;
		for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < end; col += step) {
			float v[W];
			load<W>(logits + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				if (col + i < cols && weights.smoothing > 0.0f)
					smooth += weights.of(col + i) * (log_sum - (v[i] - s.max));
		}
		smooth = row_sum(smooth);
		if (label < 0 || threadIdx.x != 0)
			return;
		const float at_label = label < cols ? static_cast<float>(logits[label]) : -INFINITY;
		mine.sum += static_cast<double>(weights.keep(label) * (log_sum - (at_label - s.max))) +
		            static_cast<double>(weights.share()) * static_cast<double>(smooth);
		mine.weight += static_cast<double>(weights.of(label));
	}
	__device__ void finish(const weighted_total &total) const
	{
		*loss = total.weight > 0.0 ? static_cast<float>(total.sum / total.weight) : 0.0f;
		*count = static_cast<float>(total.weight);
	}
};

template <typename T> struct weighted_xent_back {
	const T *x;
	int64_t ld, cols;
	struct counted_rows rows;
	struct class_weights weights;
	struct floats dx;
	struct loss_factor loss;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t at = live ? row : 0, label = live ? rows.label_of(at) : -1,
		              end = label >= 0 ? cols : 0, step = static_cast<int64_t>(blockDim.x) * W,
		              first = static_cast<int64_t>(threadIdx.x) * W;
		const T *logits = x + at * ld;
		const struct softmax_row s = softmax_of<W>(logits, end);
		float total = 0.0f;
		for (int64_t col = first; col < end; col += step)
#pragma unroll
			for (int i = 0; i < W; i++)
				total += col + i < cols ? weights.of(col + i) : 0.0f;
		total = row_sum(total);
		const float factor = loss.value(), share = weights.share(),
		            keep = label >= 0 ? weights.keep(label) : 0.0f, slope = keep + share * total;
		for (int64_t col = first; live && col < cols; col += step) {
			float v[W] = {};
			if (label >= 0) {
				load<W>(logits + col, v);
#pragma unroll
				for (int i = 0; i < W; i++)
					v[i] =
					    (slope * (expf(v[i] - s.max) / s.sum) - (col + i == label ? keep : 0.0f) -
					     share * (col + i < cols ? weights.of(col + i) : 0.0f)) *
					    factor;
			}
			dx.put<W>(row, col, v);
		}
	}
};

#endif
