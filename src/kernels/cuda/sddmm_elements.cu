/* Dot products on edges for any shape. The lanes of a sub-warp share the columns of one head, and
 * read one element at a time. */

#include "kernels/cuda/sddmm.cuh"

/* Whether any sub-warp still has edges. All lanes of a warp stay in the loop until the last
 * sub-warp has finished its item, because the shuffles need whole warps. A finished sub-warp has
 * steps of 0 edges. */
static __device__ inline bool any_lane(bool more)
{
	return __any_sync(0xffffffffu, more);
}
static __device__ inline bool advance(struct cursor &at, const struct item_plan &p, int n)
{
	at.e += n;
	return at.e < at.end || at.next(p);
}

template <typename T>
static __global__ void __launch_bounds__(BLOCK, 2) dot_elements(const struct sddmm_problem p)
{
	after_previous();
	constexpr int U = 4;
	struct cursor at = {};
	bool more = own_piece() < p.plan.items && at.open(p.plan, own_piece());
	const int lane = static_cast<int>(threadIdx.x), lanes = static_cast<int>(blockDim.x);
	const int32_t *col = p.col + at.base;
	while (any_lane(more)) {
		const int n = more ? at.step(U) : 0;
		int32_t id[U];
#pragma unroll
		for (int u = 0; u < U; u++)
			id[u] = u < n ? __ldg(col + at.e + u) : 0;
		for (int head = 0; head < p.heads; head++) {
			float dot[U] = {};
			for (int64_t c = head * p.head_cols + lane; c < (head + 1) * p.head_cols; c += lanes) {
				const float x =
				    n > 0 ? widen(static_cast<const T *>(p.a)[at.row * p.lda + c]) : 0.0f;
#pragma unroll
				for (int u = 0; u < U; u++)
					if (u < n)
						dot[u] += x * widen(static_cast<const T *>(p.b)[id[u] * p.ldb + c]);
			}
			lanes_total(dot, lanes);
#pragma unroll
			for (int u = 0; u < U; u++)
				if (u < n && ((lane ^ u) & (lanes - 1)) == 0)
					put_dot(p, at.base + at.e + u, at.row, id[u], head, dot[u]);
		}
		more = more && advance(at, p.plan, n);
	}
}

hg_status hg__sddmm_elements(hg_context *ctx, const struct sddmm_problem &p, hg_dtype dtype)
{
	struct edge_grid g = edge_grid_of(p.plan.items, p.head_cols);
	g.grid.y = 1; /* the kernel itself loops over the columns beyond 32 lanes */
	return with_float(ctx, "sddmm_dot", dtype, [&](auto zero) {
		return launch(ctx, "sddmm_dot", dot_elements<decltype(zero)>, g.grid, g.block, p);
	});
}
