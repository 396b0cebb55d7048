/* Bias, activation and dropout in one kernel, and their gradient in another:
 *
 *     Y = dropout(f(X + b))
 *     dX = f'(X + b) dropout(dY),   db = sum of dX over the rows
 *
 * where X may be a mean over heads, of which dX then receives a share each.
 *
 * The forward kernel reads and writes one matrix each. The backward kernel reads two matrices (or
 * one if there is no f) and writes one. */

#include "kernels/cuda/act_drop.cuh"
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/guard.cuh"

namespace
{

template <typename E> struct forward {
	struct floats x, b, y;
	E then;
	struct guard guard;
	int heads; /* of x, whose mean is taken; 1: there is no mean */
	int64_t d; /* columns of a head */

	/* As head_mean.cu adds them. */
	template <int W> __device__ void mean(int64_t row, int64_t col, float (&v)[W]) const
	{
		float head[W];
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = 0.0f;
		for (int k = 0; k < heads; k++) {
			x.get<W>(row, k * d + col, head);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] += head[i];
		}
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] /= static_cast<float>(heads);
	}
	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		if (heads == 1)
			x.get<W>(row, col, v);
		else
			mean<W>(row, col, v);
		if (b.data) {
			float add[W];
			b.get<W>(col, add);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] += add[i];
		}
		then.template value<W>(row, col, v);
		guard.check(col, v);
		y.put<W>(row, col, v);
	}
};

/* g = f'(X + b) dropout(dY) for a pack, which is stored if dX is needed. It is an element-wise
 * kernel by itself if db is not needed; otherwise gradient_sums calls it. HEADS: dX has several
 * heads, whose mean was taken. Without them the sums need 64 registers in place of 107. */
template <typename T, typename E, bool HEADS> struct gradient {
	const T *y, *dy;
	T *dx;
	int64_t ld, ld_dx;
	E then;
	int heads;     /* of dx, each of which gets a share */
	int64_t d;     /* columns of a head */
	bool in_packs; /* the columns of each head of dx begin at a pack */

	template <int W> struct packs {
		struct held<T, W> dy, y;
	};
	template <int W> __device__ void fetch(int64_t row, int64_t col, packs<W> &h) const
	{
		h.dy.read(dy + row * ld + col);
		if constexpr (E::READS)
			h.y.read(y + row * ld + col);
	}
	template <int W>
	__device__ void put(int64_t row, int64_t col, const packs<W> &h, float (&g)[W]) const
	{
		float at[W] = {};
		h.dy.get(g);
		if constexpr (E::READS)
			h.y.get(at);
		then.template gradient<W>(row, col, at, g);
		if (!dx)
			return;
		if constexpr (HEADS)
			put_heads<W>(dx + row * ld_dx, col, g);
		else
			store<W>(dx + row * ld_dx + col, g);
	}
	/* Columns from d on are padding of dY, and in dX they belong to the next head. */
	template <int W> __device__ void put_heads(T *to, int64_t col, const float (&g)[W]) const
	{
		float share[W];
#pragma unroll
		for (int i = 0; i < W; i++)
			share[i] = g[i] / static_cast<float>(heads);
		for (int k = 0; k < heads; k++) {
			if (in_packs) {
				store<W>(to + k * d + col, share);
				continue;
			}
#pragma unroll
			for (int i = 0; i < W; i++)
				if (col + i < d)
					to[k * d + col + i] = narrow<T>(share[i]);
		}
	}
	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		packs<W> h;
		float g[W];
		fetch<W>(row, col, h);
		put<W>(row, col, h, g);
	}
};

template <typename T, typename E, bool HEADS> struct gradient_sums {
	struct gradient<T, E, HEADS> of;
	float *db;

	template <int W> using held = typename gradient<T, E, HEADS>::template packs<W>;
	struct nothing {
	};
	template <int W> __device__ struct nothing numbers(int64_t) const
	{
		return {};
	}
	template <int W> __device__ void fetch(int64_t row, int64_t col, held<W> &h) const
	{
		of.template fetch<W>(row, col, h);
	}
	template <int W>
	__device__ void use(int64_t row, int64_t col, const struct nothing &, const held<W> &h,
	                    float (&acc)[1][W]) const
	{
		float g[W];
		of.template put<W>(row, col, h, g);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[0][i] += g[i];
	}
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		db[col] = sum[0];
	}
};

} // namespace

template <typename T, typename E, bool HEADS>
constexpr bool fetches_first<gradient_sums<T, E, HEADS>> = true;

namespace
{

/* Whether both matrices are read in packs: those of `many` must not begin within a head. */
bool in_packs(const struct hg__mat &many, const struct hg__mat &one)
{
	return many.cols == one.cols ? wide(one) : wide(many) && wide(one) && one.cols % 8 == 0;
}

template <typename E> hg_status run(hg_context *ctx, const struct hg__epilogue_args *a)
{
	return walk(ctx, "epilogue", a->y.rows, a->y.cols, in_packs(a->x, a->y),
	            forward<E>{floats_of(a->x), floats_of(a->b), floats_of(a->y),
	                       act_drop_of<E>(a->act_drop), guard_of(a->overflow, a->y.cols),
	                       static_cast<int>(hg__heads_of_mean(&a->x, &a->y)), a->y.cols});
}

template <typename T, typename E, bool HEADS>
hg_status run_gradient(hg_context *ctx, const struct hg__epilogue_back_args *a,
                       const struct hg__mat &many)
{
	const struct gradient<T, E, HEADS> g = {
		data_of<const T>(a->y), data_of<const T>(a->dy), data_of<T>(a->dx), a->dy.ld, a->dx.ld,
		    act_drop_of<E>(a->act_drop),
		    static_cast<int>(hg__heads_of_mean(&many, &a->dy)), a->dy.cols, in_packs(many, a->dy)
	};
	/* as in the ops apart, so that db has their bits */
	const bool packs = wide(a->dy);
	if (!a->db.data)
		return walk(ctx, "epilogue_back", a->dy.rows, a->dy.cols, packs, g);
	return columns<1>(ctx, "epilogue_back", a->dy.rows, a->dy.cols, packs,
	                  gradient_sums<T, E, HEADS>{g, data_of<float>(a->db)});
}

template <typename E> hg_status run_back(hg_context *ctx, const struct hg__epilogue_back_args *a)
{
	return with_float(ctx, "epilogue_back", a->dy.dtype, [&](auto zero) {
		using T = decltype(zero);
		const struct hg__mat &many = a->dx.data ? a->dx : a->dy;
		return hg__heads_of_mean(&many, &a->dy) == 1 ? run_gradient<T, E, false>(ctx, a, many)
		                                             : run_gradient<T, E, true>(ctx, a, many);
	});
}

/* [no f, then each f in the order of hg__act][without dropout, with dropout]. */
constexpr struct {
	hg_status (*forward)(hg_context *, const struct hg__epilogue_args *);
	hg_status (*backward)(hg_context *, const struct hg__epilogue_back_args *);
} table[1 + HG__ACT_EPILOGUES][2] = {
#define BOTH(f)                                               \
	{{run<act_drop<f, false>>, run_back<act_drop<f, false>>}, \
	 {run<act_drop<f, true>>, run_back<act_drop<f, true>>}},
    BOTH(identity)
#define HG_FUNCTION(...)
#define HG_EPILOGUE_FUNCTION(name, ...) BOTH(acts::name)
#include "kernels/functions.def"
};
static_assert(every(table,
                    [](const auto &row) {
	                    return row[0].forward && row[0].backward && row[1].forward &&
	                           row[1].backward;
                    }),
              "a hole");

/* Whether `many` has the layout of `one`, or the columns of several heads of that. */
bool are_heads(const struct hg__mat &many, const struct hg__mat &one)
{
	return alike(many, one) ||
	       (many.rows == one.rows && many.cols != one.cols && hg__heads_of_mean(&many, &one) > 0 &&
	        is_float(many) && is_float(one));
}

} // namespace

HG__NO_WORKSPACE(epilogue, epilogue_args)

extern "C" hg_status hg__cuda_epilogue(hg_context *ctx, const struct hg__epilogue_args *a)
{
	HG__TRY(hg__has_number(ctx, "epilogue", "activation", a->act_drop.act, 1 + HG__ACT_EPILOGUES));
	if (!are_heads(a->x, a->y))
		return misfit(ctx, "epilogue", HG__FLOATS, a->x, a->y);
	if (a->b.data && (a->b.cols != a->y.cols || !is_float(a->b)))
		return misfit(ctx, "epilogue", HG__FLOATS, a->y, a->b);
	return table[a->act_drop.act][a->act_drop.p > 0.0f].forward(ctx, a);
}

size_t hg__cuda_epilogue_back_workspace(const hg_context *, const struct hg__epilogue_back_args *a)
{
	return a->db.data ? hg__reduction_bytes(a->dy.rows, a->dy.cols) : 0;
}

extern "C" hg_status hg__cuda_epilogue_back(hg_context *ctx, const struct hg__epilogue_back_args *a)
{
	HG__TRY(
	    hg__has_number(ctx, "epilogue_back", "activation", a->act_drop.act, 1 + HG__ACT_EPILOGUES));
	const bool typed =
	    (!a->y.data || a->y.dtype == a->dy.dtype) && (!a->dx.data || a->dx.dtype == a->dy.dtype);
	if (!typed || !alike(a->dy, a->y) || (a->dx.data && !are_heads(a->dx, a->dy)))
		return misfit(ctx, "epilogue_back", HG__ONE_FLOAT, a->y, a->dy, a->dx);
	if (a->db.data && (a->db.dtype != HG_F32 || a->db.cols != a->dy.cols))
		return misfit(ctx, "epilogue_back", HG__FLOATS, a->dy, a->db);
	return table[a->act_drop.act][a->act_drop.p > 0.0f].backward(ctx, a);
}
