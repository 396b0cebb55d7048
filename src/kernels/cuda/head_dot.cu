/* Dot products of each head of a row with a vector, in f32. This is half of additive attention, or
 * both halves if there is a second vector B.
 *
 *     S[i, k] = sum over c of X[i, k*d + c] * A[0, k*d + c]
 *
 * Backward, for vectors v with h heads:
 *
 *     dX[i, k*d + c] = sum over vectors v of dS[i, v*h + k] * v[0, k*d + c]
 *     dv[0, k*d + c] = sum over i of dS[i, v*h + k] * X[i, k*d + c]    (f32)
 *
 * The forward and the backward pass are one kernel each. It reads X once for both vectors, and the
 * backward kernel writes dX in the same pass.
 *
 * A pack of 8 columns never spans two heads. Packs are used where 8 divides d, or where there is
 * one head, whose last pack may have padding. */

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

/* a / b of numbers that are not negative. If both fit 32 bits, the division takes a fifth of the
 * time. */
static __device__ inline int64_t quotient(int64_t a, int64_t b)
{
	return (a | b) <= UINT32_MAX
	           ? static_cast<int64_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b))
	           : a / b;
}

/* The head of a column. One head needs no division, and its padding counts as part of it. */
static __device__ inline int64_t head_of(int64_t col, int64_t d, int heads)
{
	return heads == 1 ? 0 : quotient(col, d);
}

static bool packs_fit(const struct hg__mat &x, int64_t d, int heads)
{
	return d % 8 == 0 || (heads == 1 && wide(x));
}

/* The forward pass, with one sub-warp for each row and head: item = row * heads + k. V: vectors. */
template <typename T, int V> struct head_dot {
	const T *x;
	int64_t ld, d;
	struct floats a[V], s;
	int heads;

	template <int W> __device__ void row(int64_t item, bool live) const
	{
		const int64_t i = heads == 1 ? item : quotient(item, heads), k = item - i * heads;
		float sum[V] = {}, v[W], w[V][W];
		for (int64_t c = static_cast<int64_t>(threadIdx.x) * W; live && c < d;
		     c += static_cast<int64_t>(blockDim.x) * W) {
			load<W>(x + i * ld + k * d + c, v);
#pragma unroll
			for (int n = 0; n < V; n++)
				a[n].get<W>(k * d + c, w[n]);
#pragma unroll
			for (int n = 0; n < V; n++)
#pragma unroll
				for (int j = 0; j < W; j++)
					sum[n] = c + j < d ? fmaf(v[j], w[n][j], sum[n]) : sum[n];
		}
#pragma unroll
		for (int n = 0; n < V; n++) {
			const float all[1] = {row_sum(sum[n])};
			if (live && threadIdx.x == 0)
				s.put<1>(i, n * heads + k, all);
		}
	}
};

/* A pack as loaded. */
template <typename T, int V, int W> struct pack_of_row {
	struct alignas(W == 8 ? 16 : sizeof(T)) bits {
		T v[W];
	} x, dx;
	float ds[V];

	static __device__ float get(const bits &b, int i)
	{
		return widen(b.v[i]);
	}
	static __device__ void read(const T *p, bits &b)
	{
		if constexpr (W == 1) {
			b.v[0] = *p;
		} else {
			uint4 words[W * sizeof(T) / sizeof(uint4)];
#pragma unroll
			for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
				words[i] = reinterpret_cast<const uint4 *>(p)[i];
			memcpy(static_cast<void *>(&b), words, sizeof words);
		}
	}
};

/* The backward pass: dX if it is needed, and the gradients of the vectors if they are. */
template <typename T, int V> struct head_dot_back {
	const T *x;
	int64_t ld_x, ld_dx, d;
	struct floats a[V], ds;
	T *dx;
	float *da[V];
	int heads;
	bool sums, add;

	template <int W> using held = pack_of_row<T, V, W>;

	/* The columns of the vectors. */
	template <int W> struct columns_of {
		float by[V][W];
	};
	template <int W> __device__ struct columns_of<W> numbers(int64_t col) const {
		struct columns_of<W> c = {
		};
#pragma unroll
		for (int n = 0; n < V; n++)
			if (dx)
				a[n].get<W>(col, c.by[n]);
		return c;
	} template <int W> __device__ void fetch(int64_t row, int64_t col, held<W> &h) const
	{
		const int64_t head = head_of(col, d, heads);
#pragma unroll
		for (int n = 0; n < V; n++) {
			float g[1];
			ds.get<1>(row, n * heads + head, g);
			h.ds[n] = g[0];
		}
		if (sums)
			held<W>::read(x + row * ld_x + col, h.x);
		if (add)
			held<W>::read(dx + row * ld_dx + col, h.dx);
	}
	template <int W>
	__device__ void use(int64_t row, int64_t col, const struct columns_of<W> &c, const held<W> &h,
	                    float (&acc)[V][W]) const
	{
		if (sums)
#pragma unroll
			for (int n = 0; n < V; n++)
#pragma unroll
				for (int i = 0; i < W; i++)
					acc[n][i] = fmaf(h.ds[n], held<W>::get(h.x, i), acc[n][i]);
		if (dx)
			put<W>(row, col, c, h);
	}
	template <int W>
	__device__ void put(int64_t row, int64_t col, const struct columns_of<W> &c,
	                    const held<W> &h) const
	{
		float v[W] = {};
		if (add)
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = held<W>::get(h.dx, i);
#pragma unroll
		for (int n = 0; n < V; n++)
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = fmaf(h.ds[n], c.by[n][i], v[i]);
		store<W>(dx + row * ld_dx + col, v);
	}
	/* dX alone, as an element-wise kernel (map.cuh). */
	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		held<W> h;
		fetch<W>(row, col, h);
		put<W>(row, col, numbers<W>(col), h);
	}
	__device__ void finish(int64_t col, const float (&sum)[V]) const
	{
#pragma unroll
		for (int n = 0; n < V; n++)
			if (da[n])
				da[n][col] = sum[n];
	}
};

} // namespace

template <typename T, int V> constexpr bool fetches_first<head_dot_back<T, V>> = true;

namespace
{

/* The number of vectors, 1 or 2; 0: the operands do not fit. */
int vectors_of(const struct hg__mat &s, const struct hg__mat &b, int heads)
{
	const int count = heads > 0 && s.cols == heads                             ? 1
	                  : heads > 0 && s.cols == 2 * static_cast<int64_t>(heads) ? 2
	                                                                           : 0;
	return count == 2 && !is_float(b) ? 0 : count;
}

/* Calls f(V). */
template <typename F> hg_status with_vectors(int count, F f)
{
	return count == 2 ? f(int_constant<2>{}) : f(int_constant<1>{});
}

template <typename T, int V>
hg_status run_head_dot(hg_context *ctx, const struct hg__head_dot_args *a)
{
	const int64_t d = a->x.cols / a->heads;
	struct head_dot<T, V> f = {
		data_of<const T>(a->x), a->x.ld, d, {floats_of(a->a)}, floats_of(a->s), a->heads
	};
	if constexpr (V == 2)
		f.a[1] = floats_of(a->b);
	/* d = 0: the empty sum is 0 and must be written. */
	return each_row(ctx, "head_dot", a->x.rows * a->heads, d > 0 ? d : 1,
	                packs_fit(a->x, d, a->heads), f);
}

template <typename T, int V>
hg_status run_head_dot_back(hg_context *ctx, const struct hg__head_dot_back_args *a)
{
	const struct hg__mat &shape = a->dx.data ? a->dx : a->x;
	const int64_t d = shape.cols / a->heads;
	struct head_dot_back<T, V> f = {
		data_of<const T>(a->x), a->x.ld, a->dx.ld, d, {floats_of(a->a)},
		    floats_of(a->ds), data_of<T>(a->dx), {data_of<float>(a->da)}, a->heads,
		    false, a->add != 0
	};
	if constexpr (V == 2) {
		f.a[1] = floats_of(a->b);
		f.da[1] = data_of<float>(a->db);
	}
	f.sums = a->da.data || a->db.data;
	const bool by_eight = packs_fit(shape, d, a->heads);
	if (f.sums)
		return columns<V>(ctx, "head_dot_back", a->ds.rows, shape.cols, by_eight, f);
	return a->dx.data ? walk(ctx, "head_dot_back", a->ds.rows, shape.cols, by_eight, f) : HG_OK;
}

} // namespace

HG__NO_WORKSPACE(head_dot, head_dot_args)

extern "C" hg_status hg__cuda_head_dot(hg_context *ctx, const struct hg__head_dot_args *a)
{
	const int vectors = vectors_of(a->s, a->b, a->heads);
	if (vectors == 0 || a->x.cols % a->heads != 0 || a->a.cols != a->x.cols ||
	    (vectors == 2 && a->b.cols != a->x.cols) || !is_float(a->a))
		return misfit(ctx, "head_dot", HG__FLOATS, a->x, a->a, a->b, a->s);
	if (a->s.rows != a->x.rows || !is_float(a->s))
		return misfit(ctx, "head_dot", HG__FLOATS, a->x, a->a, a->b, a->s);
	return with_float(ctx, "head_dot", a->x.dtype, [&](auto zero) {
		return with_vectors(vectors, [&](auto count) {
			return run_head_dot<decltype(zero), decltype(count)::value>(ctx, a);
		});
	});
}

size_t hg__cuda_head_dot_back_workspace(const hg_context *, const struct hg__head_dot_back_args *a)
{
	return a->da.data || a->db.data ? hg__reduction_bytes(a->x.rows, a->x.cols) : 0;
}

/* Of x and the vectors, only those that the requested gradients need must be present. */
extern "C" hg_status hg__cuda_head_dot_back(hg_context *ctx, const struct hg__head_dot_back_args *a)
{
	const int vectors = vectors_of(a->ds, a->b, a->heads);
	const struct hg__mat &shape = a->dx.data ? a->dx : a->x;
	if (vectors == 0 || shape.cols % a->heads != 0 || !is_float(a->ds))
		return misfit(ctx, "head_dot_back", HG__FLOATS, a->x, a->a, a->b, a->ds, a->dx);
	if (a->dx.data && (a->da.data || a->db.data) &&
	    (a->x.dtype != a->dx.dtype || a->x.cols != a->dx.cols))
		return misfit(ctx, "head_dot_back", HG__ONE_FLOAT, a->x, a->dx);
	return with_float(ctx, "head_dot_back", shape.dtype, [&](auto zero) {
		return with_vectors(vectors, [&](auto count) {
			return run_head_dot_back<decltype(zero), decltype(count)::value>(ctx, a);
		});
	});
}
