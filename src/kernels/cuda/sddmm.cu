#include "kernels/cuda/parts.cuh"

/* Sampled products: one number (or one a head) for each edge (i, j) from row i of A and row j of B.
 *
 *     dot   E[edge p, k] = scale * r_i * s_j * sum over c in head k of A[i, c] * B[j, c]
 *     add   E[edge p, k] = A[i, k] + B[j, k]
 *
 * A sub-warp walks an item of the plan, so the row of an edge is known without a search and A's row stays in the first-level cache. */

struct sddmm_problem {
	struct item_plan plan;
	const int32_t *col;
	const int64_t *edge;
	const void *a, *b;
	void *e;
	int64_t lda, ldb, lde, cols, head_cols;
	int heads, e_half;
	float scale;
	const float *row_scale, *col_scale;
};

/* Where the edge value of CSR entry p lies. */
static __device__ inline int64_t edge_of(const struct sddmm_problem &p, int64_t entry)
{
	return p.edge ? p.edge[entry] : entry;
}

static __device__ inline void put_dot(const struct sddmm_problem &p, int64_t entry, int32_t i, int32_t j, int head, float dot)
{
	float value = p.scale * dot;
	if (p.row_scale)
		value *= p.row_scale[i];
	if (p.col_scale)
		value *= p.col_scale[j];
	const int64_t at = edge_of(p, entry) * p.lde + head;
	if (p.e_half)
		static_cast<__half *>(p.e)[at] = __float2half_rn(value);
	else
		static_cast<float *>(p.e)[at] = value;
}

/* Sums over `lanes` neighbouring lanes (a power of two), the same bits in each. The whole warp takes part. */
template <int U> static __device__ inline void lanes_total(float (&x)[U], int lanes)
{
	for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
		for (int u = 0; u < U; u++)
			x[u] += __shfl_xor_sync(0xffffffffu, x[u], step);
}

/* Every lane of the warp goes on until the last sub-warp is through its item, so that shuffles always see whole warps; who is through has steps of 0 edges. */
static __device__ inline bool any_lane(bool more)
{
	return __any_sync(0xffffffffu, more);
}
static __device__ inline bool advance(struct cursor &at, const struct item_plan &p, int n)
{
	at.e += n;
	return at.e < at.end || at.next(p);
}

/* ---- dot, packs: a lane owns 8 columns of A and B, and `group` lanes own a head ---- */

/* Padding past the last column is masked bit by bit: it may hold anything, NaN too. */
template <typename T> static __device__ inline void mask_padding(raw<T, 8> &r, int64_t left)
{
	constexpr int elements = 4 / sizeof(T);
#pragma unroll
	for (size_t q = 0; q < sizeof r.q / sizeof r.q[0]; q++) {
		unsigned *word = reinterpret_cast<unsigned *>(&r.q[q]);
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const int64_t first = (static_cast<int64_t>(q) * 4 + i) * elements;
			if (first >= left)
				word[i] = 0;
			else if (elements == 2 && first + 1 >= left)
				word[i] &= 0xffffu; /* the lower half is the first */
		}
	}
}

template <typename T> static __global__ void __launch_bounds__(BLOCK) dot_packs(const struct sddmm_problem p, int group)
{
	constexpr int U = gathers<T, 8>;
	struct cursor at = {};
	bool more = own_piece() < p.plan.items && at.open(p.plan, own_piece());
	const int lane = static_cast<int>(threadIdx.x), lanes = static_cast<int>(blockDim.x);
	const int64_t width = static_cast<int64_t>(lanes) * 8;
	const int32_t *col = p.col + at.base;
	int32_t id[U], next[U]; /* column ids of this step, and of the next one: loaded while this step's gathers are under way */
#pragma unroll
	for (int u = 0; u < U; u++)
		next[u] = u < at.stop ? __ldg(col + u) : 0;
	while (any_lane(more)) {
		const int n = more ? at.step(U) : 0;
#pragma unroll
		for (int u = 0; u < U; u++)
			id[u] = next[u];
		float dot[U] = {};
		for (int64_t start = 0; start < p.cols; start += width) {
			const int64_t c = start + lane * 8, left = p.cols - c;
			raw<T, 8> a = {}, b[U];
			if (n > 0 && left > 0)
				a = fetch<8>(static_cast<const T *>(p.a) + at.row * p.lda + c);
#pragma unroll
			for (int u = 0; u < U; u++) {
				b[u] = {};
				if (u < n && left > 0)
					b[u] = fetch<8>(static_cast<const T *>(p.b) + id[u] * p.ldb + c);
			}
#pragma unroll
			for (int u = 0; u < U; u++)
				next[u] = at.e + n + u < at.stop ? __ldg(col + at.e + n + u) : 0;
			if (left < 8)
				mask_padding(a, left);
			float x[8], y[8];
			unpack(a, x);
#pragma unroll
			for (int u = 0; u < U; u++) {
				if (left < 8)
					mask_padding(b[u], left);
				unpack(b[u], y);
#pragma unroll
				for (int i = 0; i < 8; i++)
					dot[u] += x[i] * y[i];
			}
			if (p.heads == 1 && start + width < p.cols)
				continue;
			const int head = p.heads == 1 ? 0 : static_cast<int>(c) / static_cast<int>(p.head_cols);
			lanes_total(dot, group);
#pragma unroll
			for (int u = 0; u < U; u++) { /* the lanes of a head share the stores */
				if (u < n && ((lane ^ u) & (group - 1)) == 0 && head < p.heads)
					put_dot(p, at.base + at.e + u, at.row, id[u], head, dot[u]);
				dot[u] = 0.0f;
			}
		}
		more = more && advance(at, p.plan, n);
	}
}

/* ---- dot, any shape: the lanes share the columns of one head, an element at a time ---- */

template <typename T> static __global__ void __launch_bounds__(BLOCK, 2) dot_elements(const struct sddmm_problem p)
{
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
				const float x = n > 0 ? widen(static_cast<const T *>(p.a)[at.row * p.lda + c]) : 0.0f;
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

/* ---- add: units of work are (edge, pack of heads), neighbouring lanes take neighbouring units ---- */

template <typename T, int W> static __global__ void __launch_bounds__(BLOCK) add_items(const struct sddmm_problem p)
{
	struct cursor at;
	if (own_piece() >= p.plan.items || !at.open(p.plan, own_piece()))
		return;
	const int packs = static_cast<int>((p.cols + W - 1) / W);
	do {
		const T *a = static_cast<const T *>(p.a) + at.row * p.lda;
		const int units = (at.end - at.begin) * packs;
#pragma unroll 4
		for (int t = static_cast<int>(threadIdx.x); t < units; t += static_cast<int>(blockDim.x)) {
			const int offset = packs == 1 ? t : t / packs, c = (t - offset * packs) * W;
			const int64_t entry = at.base + at.begin + offset;
			float x[W], y[W];
			unpack(fetch<W>(a + c), x);
			unpack(fetch<W>(static_cast<const T *>(p.b) + __ldg(p.col + entry) * p.ldb + c), y);
#pragma unroll
			for (int i = 0; i < W; i++)
				x[i] += y[i];
			store<W>(static_cast<T *>(p.e) + edge_of(p, entry) * p.lde + c, x);
		}
		at.e = at.end;
	} while (at.next(p.plan));
}

/* ---- launch ---- */

static struct sddmm_problem problem_of(const struct hg__csr &csr, const struct hg__mat &a, const struct hg__mat &b, const struct hg__mat &e)
{
	struct sddmm_problem p = {};
	p.plan = plan_of(csr);
	p.col = csr.col;
	p.edge = csr.edge;
	p.a = a.data;
	p.lda = a.ld;
	p.b = b.data;
	p.ldb = b.ld;
	p.e = e.data;
	p.lde = e.ld;
	p.e_half = e.dtype == HG_F16;
	p.cols = a.cols;
	return p;
}

static bool is_power_of_two(int64_t x)
{
	return x > 0 && (x & (x - 1)) == 0;
}

hg_status hg__cuda_sddmm_dot(hg_context *ctx, const struct hg__sddmm_dot_args *a)
{
	if (a->csr.m == 0 || a->e.cols == 0)
		return HG_OK;
	if (!a->csr.plan || a->a.dtype != a->b.dtype || a->a.cols != a->b.cols || a->heads < 1 || a->a.cols % a->heads || a->e.dtype > HG_F32)
		return hg__fail(ctx, HG_ERR_INTERNAL, "sddmm_dot: A [%lld] type %d, B [%lld] type %d, %d heads", static_cast<long long>(a->a.cols),
		                static_cast<int>(a->a.dtype), static_cast<long long>(a->b.cols), static_cast<int>(a->b.dtype), a->heads);
	struct sddmm_problem p = problem_of(a->csr, a->a, a->b, a->e);
	p.heads = a->heads;
	p.head_cols = p.cols / p.heads;
	p.scale = a->scale;
	p.row_scale = a->row_scale;
	p.col_scale = a->col_scale;
	const int64_t lanes_a_head = p.head_cols / 8;
	/* without columns there are no packs, and the empty sums are written by the kernel that goes head by head */
	const bool packs =
	    p.cols > 0 && wide(a->a) && wide(a->b) && (p.heads == 1 || (p.head_cols % 8 == 0 && is_power_of_two(lanes_a_head) && lanes_a_head <= 32));
	return with_float(ctx, "sddmm_dot", a->a.dtype, [&](auto zero) {
		using T = decltype(zero);
		struct edge_grid g = edge_grid_of(p.plan.items, packs ? (p.cols + 7) / 8 : p.head_cols);
		g.grid.y = 1; /* the kernels loop over what 32 lanes do not cover */
		if (packs)
			dot_packs<T><<<g.grid, g.block, 0, stream_of(ctx)>>>(p, p.heads == 1 ? static_cast<int>(g.block.x) : static_cast<int>(lanes_a_head));
		else
			dot_elements<T><<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		return launched(ctx, "sddmm_dot");
	});
}

hg_status hg__cuda_sddmm_add(hg_context *ctx, const struct hg__sddmm_add_args *a)
{
	if (a->csr.m == 0 || a->e.cols == 0)
		return HG_OK;
	if (!a->csr.plan || a->a.dtype != a->b.dtype || a->a.dtype != a->e.dtype)
		return hg__fail(ctx, HG_ERR_INTERNAL, "sddmm_add: A type %d, B type %d, E type %d", static_cast<int>(a->a.dtype), static_cast<int>(a->b.dtype),
		                static_cast<int>(a->e.dtype));
	const struct sddmm_problem p = problem_of(a->csr, a->a, a->b, a->e);
	return with_float(ctx, "sddmm_add", a->a.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(wide(a->a) && wide(a->b) && wide(a->e), [&](auto width) {
			constexpr int W = decltype(width)::value;
			/* 16 lanes: half a warp stays busy where rows are short, and 16 units of 16 bytes are two lines of memory where they are not. */
			const struct edge_grid g = edge_grid_of(p.plan.items, 16);
			add_items<T, W><<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
			return launched(ctx, "sddmm_add");
		});
	});
}
