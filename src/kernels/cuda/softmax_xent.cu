/* Cross-entropy with softmax, over the rows that count:
 *
 *     loss = mean of log(sum exp(x - max)) - (x[label] - max)
 *     dX[i, c] = (softmax(X)[i, c] - [c == label i]) * dloss / count, 0 in rows that do not count
 *
 * Labels are below the number of classes, which is checked when the op is recorded. With weights or
 * label smoothing: softmax_xent_weighted.cuh. */

#include "kernels/cuda/softmax.cuh"
#include "kernels/cuda/softmax_xent_weighted.cuh"

namespace
{

/* The largest number of packs of a row that a lane keeps in registers: up to 4 * 32 lanes * 8 =
 * 1024 columns are read once. Few lanes with several packs each share the work per row, and leave
 * fewer lanes idle: 47 columns are 6 packs, for 2 lanes and not for 8. */
constexpr int HELD = 4;

struct row_split {
	/* packs: per lane; with more than HELD the kernel loops over the row instead. cols: the columns
	 * of the row if each lane had one pack */
	int64_t packs, cols;
};
struct row_split row_split_of(int64_t cols, bool by_eight)
{
	const int64_t width = by_eight ? 8 : 1, packs = cols > 0 ? (cols + width - 1) / width : 1;
	int64_t lanes = 1;
	while (lanes < 32 && packs > HELD * lanes)
		lanes *= 2;
	return {(packs + lanes - 1) / lanes, lanes * width};
}

/* Calls f(P) with P an integral constant: `packs` if it is at most HELD, otherwise 0. */
template <int P, typename F> hg_status with_packs(int64_t packs, F f)
{
	if constexpr (P == 0)
		return f(int_constant<0>{});
	else
		return packs == P ? f(int_constant<P>{}) : with_packs<P - 1>(packs, f);
}

/* P packs of a row: lane, lane + lanes, ... Only the last one can have padding, or not exist.
 * Padding becomes -inf, which changes neither the maximum nor the sum. */
template <int P, int W> struct held_row {
	float x[P][W];

	static __device__ int column(int p)
	{
		return static_cast<int>((p * blockDim.x + threadIdx.x) * W);
	}
	template <typename T> __device__ void read(const T *row, int cols)
	{
#pragma unroll
		for (int p = 0; p < P; p++) {
			const int col = column(p);
			if (p + 1 < P || col < cols)
				load<W>(row + col, x[p]);
			if (p + 1 == P)
#pragma unroll
				for (int i = 0; i < W; i++)
					x[p][i] = col + i < cols ? x[p][i] : -INFINITY;
		}
	}
	/* x := exp(x - max). fmaxf ignores a NaN, but the NaN makes the sum NaN. */
	__device__ struct softmax_row exponentials()
	{
		struct softmax_row s = {-INFINITY, 0.0f};
#pragma unroll
		for (int p = 0; p < P; p++)
#pragma unroll
			for (int i = 0; i < W; i++)
				s.max = fmaxf(s.max, x[p][i]);
		s.max = row_max(s.max);
#pragma unroll
		for (int p = 0; p < P; p++)
#pragma unroll
			for (int i = 0; i < W; i++) {
				x[p][i] = expf(x[p][i] - s.max);
				s.sum += x[p][i];
			}
		s.sum = row_sum(s.sum);
		return s;
	}
};

/* Rows that do not count need not be read. But if all rows fit in a cache, waiting for the label
 * costs more than reading them. On an H200: half of 50 MB. */
constexpr int64_t CACHED = 24 << 20;

template <typename T> struct logits {
	const T *x;
	int64_t ld, cols;
	struct counted_rows rows;
	bool eager;
};
template <typename T>
struct logits<T> logits_of(const struct hg__mat &x, const struct hg__mat &label,
                           const struct hg__mat &mask, const int64_t *live) {
	return {data_of<const T>(x), x.ld, x.cols, counted_of(label, mask, live),
	        x.rows *x.ld *static_cast<int64_t>(sizeof(T)) <= CACHED};
}

/* P packs per lane, or any number of them if P = 0. A row that is not live reads row 0, so that all
 * loads can start before anything is known. */
template <typename T, int P>
struct softmax_xent {
	struct logits<T> in;
	float *loss, *count;

	template <int W> __device__ void row(int64_t row, bool live, loss_total &mine) const
	{
		const int64_t at = live ? row : 0, found = in.rows.label_of(at), label = live ? found : -1;
		const T *x = in.x + at * in.ld;
		struct softmax_row s;
		float at_label = -INFINITY; /* a label that is not a class has probability 0 */
		if constexpr (P > 0) {
			struct held_row<P, W> held = {
			};
			if (in.eager || label >= 0)
				held.read(x, static_cast<int>(in.cols));
			if (label >= 0 && label < in.cols)
				at_label = widen(x[label]);
			s = held.exponentials();
		} else {
			if (label >= 0 && label < in.cols)
				at_label = widen(x[label]);
			s = softmax_of<W>(x, label >= 0 ? in.cols : 0);
		}
		if (label < 0 || threadIdx.x != 0)
			return;
		mine.sum += static_cast<double>(logf(s.sum) - (at_label - s.max));
		mine.count++;
	}
	__device__ void finish(const loss_total &total) const
	{
		total.write(loss, count, 1);
	}
};

template <typename T, int P> struct softmax_xent_back {
	struct logits<T> in;
	struct floats dx;
	struct loss_factor loss;

	/* Turns e = exp(x - max) of a pack into its gradient, and stores it. */
	template <int W>
	__device__ void put(int64_t row, int64_t col, int64_t label, float over_sum, float factor,
	                    float (&e)[W]) const
	{
		const int hot = static_cast<int>(label - col);
#pragma unroll
		for (int i = 0; i < W; i++)
			e[i] = label >= 0 ? (e[i] * over_sum - (i == hot ? 1.0f : 0.0f)) * factor : 0.0f;
		dx.put<W>(row, col, e);
	}
	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t at = live ? row : 0, label = in.rows.label_of(at);
		const T *x = in.x + at * in.ld;
		if constexpr (P > 0) {
			struct held_row<P, W> held = {
			};
			if (in.eager || label >= 0)
				held.read(x, static_cast<int>(in.cols));
			const float factor = loss.value(), over_sum = 1.0f / held.exponentials().sum;
#pragma unroll
			for (int p = 0; p < P; p++)
				if (live && held.column(p) < in.cols)
					put<W>(row, held.column(p), label, over_sum, factor, held.x[p]);
		} else {
			const struct softmax_row s = softmax_of<W>(x, label >= 0 ? in.cols : 0);
			const float factor = loss.value(), over_sum = 1.0f / s.sum;
			for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; live && col < in.cols;
			     col += static_cast<int64_t>(blockDim.x) * W) {
				float v[W];
				load<W>(x + col, v);
#pragma unroll
				for (int i = 0; i < W; i++)
					v[i] = expf(v[i] - s.max);
				put<W>(row, col, label, over_sum, factor, v);
			}
		}
	}
};

bool is_weighted(const struct hg__mat &weight, float smoothing)
{
	return weight.data || smoothing > 0.0f;
}

hg_status run_weighted(hg_context *ctx, const struct hg__softmax_xent_args *a)
{
	return with_float(ctx, "softmax_xent", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return row_totals<weighted_total>(
		    ctx, "softmax_xent", a->x.rows, a->x.cols, wide(a->x),
		    weighted_xent<T>{data_of<const T>(a->x),
		                     a->x.ld,
		                     a->x.cols,
		                     counted_of(a->label, a->mask, a->live),
		                     {data_of<const float>(a->weight), a->x.cols, a->smoothing},
		                     data_of<float>(a->loss),
		                     data_of<float>(a->count)});
	});
}

hg_status run_weighted_back(hg_context *ctx, const struct hg__softmax_xent_back_args *a)
{
	return with_float(ctx, "softmax_xent_back", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(ctx, "softmax_xent_back", a->x.rows, a->x.cols, wide(a->x),
		                weighted_xent_back<T>{
		                    data_of<const T>(a->x),
		                    a->x.ld,
		                    a->x.cols,
		                    counted_of(a->label, a->mask, a->live),
		                    {data_of<const float>(a->weight), a->x.cols, a->smoothing},
		                    floats_of(a->dx),
		                    {data_of<const float>(a->count), data_of<const float>(a->dloss)}});
	});
}

} // namespace

size_t hg__cuda_softmax_xent_workspace(const hg_context *, const struct hg__softmax_xent_args *a)
{
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

extern "C" hg_status hg__cuda_softmax_xent(hg_context *ctx, const struct hg__softmax_xent_args *a)
{
	HG__TRY(hg__has_type(ctx, "softmax_xent", "labels", a->label.dtype, HG_I32));
	if (a->label.rows != a->x.rows || (a->mask.data && a->mask.rows != a->x.rows))
		return rows_differ(ctx, "softmax_xent", a->x, a->label);
	if (a->weight.data)
		HG__TRY(hg__has_type(ctx, "softmax_xent", "weights", a->weight.dtype, HG_F32));
	if (is_weighted(a->weight, a->smoothing))
		return run_weighted(ctx, a);
	const struct row_split g = row_split_of(a->x.cols, wide(a->x));
	return with_float(ctx, "softmax_xent", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_packs<HELD>(g.packs, [&](auto packs) {
			return row_totals<loss_total>(ctx, "softmax_xent", a->x.rows, g.cols, wide(a->x),
			                              softmax_xent<T, decltype(packs)::value>{
			                                  logits_of<T>(a->x, a->label, a->mask, a->live),
			                                  data_of<float>(a->loss), data_of<float>(a->count)});
		});
	});
}

HG__NO_WORKSPACE(softmax_xent_back, softmax_xent_back_args)

extern "C" hg_status hg__cuda_softmax_xent_back(hg_context *ctx,
                                                const struct hg__softmax_xent_back_args *a)
{
	HG__TRY(hg__has_type(ctx, "softmax_xent_back", "labels", a->label.dtype, HG_I32));
	if (a->label.rows != a->x.rows)
		return rows_differ(ctx, "softmax_xent_back", a->x, a->label);
	if (!alike(a->x, a->dx))
		return misfit(ctx, "softmax_xent_back", HG__FLOATS, a->x, a->dx);
	if (a->weight.data)
		HG__TRY(hg__has_type(ctx, "softmax_xent_back", "weights", a->weight.dtype, HG_F32));
	if (is_weighted(a->weight, a->smoothing))
		return run_weighted_back(ctx, a);
	const struct row_split g = row_split_of(a->x.cols, wide(a->x));
	return with_float(ctx, "softmax_xent_back", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_packs<HELD>(g.packs, [&](auto packs) {
			return each_row(ctx, "softmax_xent_back", a->x.rows, g.cols, wide(a->x),
			                softmax_xent_back<T, decltype(packs)::value>{
			                    logits_of<T>(a->x, a->label, a->mask, a->live),
			                    floats_of(a->dx),
			                    {data_of<const float>(a->count), data_of<const float>(a->dloss)}});
		});
	});
}
