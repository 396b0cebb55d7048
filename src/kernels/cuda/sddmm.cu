#include "kernels/cuda/edges.cuh"

/* Sampled products: one number (or one a head) for each edge (i, j) from row i of A and row j of B.
 *
 *     dot   E[edge p, k] = scale * r_i * s_j * sum over c in head k of A[i, c] * B[j, c]
 *     add   E[edge p, k] = A[i, k] + B[j, k]
 *
 * A warp takes an item of the plan in batches of 32 edges (edges.cuh): lane l holds column id and row of the batch's edge l, and with one head it ends with that
 * edge's value: a batch is one line of ids in and one line of values out. Ids and values pass by once: streaming accesses leave the caches to A and B. */

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
		__stcs(static_cast<__half *>(p.e) + at, __float2half_rn(value));
	else
		__stcs(static_cast<float *>(p.e) + at, value);
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

/* ---- dot, packs: a lane owns 8 columns of A and B; L lanes own an edge at a time, `group` of them a head ---- */

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

/* What a lane reads of A and B: 8 columns from column c on, `left` of them real. */
template <typename T> struct dot_columns {
	const char *a, *b;
	unsigned pitch_a, pitch_b; /* bytes from row to row */
	int left;

	__device__ dot_columns(const struct sddmm_problem &p, int c)
	    : a(reinterpret_cast<const char *>(static_cast<const T *>(p.a) + c)), b(reinterpret_cast<const char *>(static_cast<const T *>(p.b) + c)),
	      pitch_a(static_cast<unsigned>(p.lda * sizeof(T))), pitch_b(static_cast<unsigned>(p.ldb * sizeof(T))), left(static_cast<int>(p.cols) - c)
	{
	}
	static __device__ raw<T, 8> row(const char *data, int32_t i, unsigned pitch, bool live)
	{
		raw<T, 8> r = {};
		if (live)
			r = fetch<8>(reinterpret_cast<const T *>(data + static_cast<int64_t>(i) * pitch));
		return r;
	}
	__device__ raw<T, 8> row_a(int32_t i, bool live) const
	{
		return row(a, i, pitch_a, live && left > 0);
	}
	__device__ raw<T, 8> row_b(int32_t j, bool live) const
	{
		return row(b, j, pitch_b, live && left > 0);
	}
	/* For a width that 8 does not divide, the last lane's packs have padding. */
	template <int V> __device__ void mask(raw<T, 8> (&r)[V], bool ragged) const
	{
		if (ragged && left < 8)
#pragma unroll
			for (int v = 0; v < V; v++)
				mask_padding(r[v], left);
	}
};

template <typename T> static __device__ inline void add_products(float &dot, const float (&x)[8], const raw<T, 8> &bits)
{
	float y[8];
	unpack(bits, y);
#pragma unroll
	for (int i = 0; i < 8; i++)
		dot = fmaf(x[i], y[i], dot); /* a product of halves is exact: one rounding either way */
}

/* Sums over sub-warps of L lanes, of one number for each of V edges: lane l ends with edge l % V's. Each step halves the edges that a lane still has, so V - 1
 * shuffles (and log2(L / V) more) do what V butterflies of log2(L) would. */
template <int L, int V> static __device__ inline float lanes_transposed(float (&x)[V])
{
	const int lane = own_lane();
#pragma unroll
	for (int half = V / 2; half > 0; half /= 2) {
		const bool high = lane & half;
#pragma unroll
		for (int i = 0; i < half; i++) {
			const float keep = high ? x[i + half] : x[i], give = high ? x[i] : x[i + half];
			x[i] = keep + __shfl_xor_sync(ALL_LANES, give, half);
		}
	}
#pragma unroll
	for (int step = V; step < L; step *= 2)
		x[0] += __shfl_xor_sync(ALL_LANES, x[0], step);
	return x[0];
}

/* A batch of n edges, lane l edge l: its column id and its row. */
struct dot_batch {
	int64_t first;
	int n;
	int32_t id, row;
	bool one; /* all of one row */
};

/* Row i of A in registers, from batch to batch; i < 0: none. */
struct dot_row {
	int32_t i;
	float x[8];
};

/* dot[v] += the lane's columns of edge k + v of the batch. The V gathers of B are in flight together. While a batch is of one row, that row of A stays in
 * registers; else each edge fetches its own, which the first-level cache mostly has. */
template <typename T, int V>
static __device__ inline void dot_step(const struct dot_columns<T> &lane, const struct dot_batch &batch, int k, bool ragged, struct dot_row &held,
                                       float (&dot)[V])
{
	raw<T, 8> y[V], r[1];
#pragma unroll
	for (int v = 0; v < V; v++)
		y[v] = lane.row_b(__shfl_sync(ALL_LANES, batch.id, k + v), k + v < batch.n);
	if (batch.one) {
		const int32_t i = __shfl_sync(ALL_LANES, batch.row, 0);
		if (i != held.i) {
			r[0] = lane.row_a(i, true);
			lane.mask(r, ragged);
			unpack(r[0], held.x);
			held.i = i;
		}
		lane.mask(y, ragged);
#pragma unroll
		for (int v = 0; v < V; v++)
			add_products(dot[v], held.x, y[v]);
	} else {
		held.i = -1;
		lane.mask(y, ragged);
#pragma unroll
		for (int v = 0; v < V; v++) {
			r[0] = lane.row_a(__shfl_sync(ALL_LANES, batch.row, k + v), k + v < batch.n);
			lane.mask(r, ragged);
			unpack(r[0], held.x);
			add_products(dot[v], held.x, y[v]);
		}
	}
}

/* The heads of edge k + v, each summed over its `group` lanes, which share the stores. */
template <int V>
static __device__ inline void put_heads(const struct sddmm_problem &p, const struct dot_batch &batch, int k, int seat, int c, int group, float (&dot)[V])
{
	const int head = c / static_cast<int>(p.head_cols);
	const bool scaled = p.row_scale || p.col_scale;
	lanes_total(dot, group);
#pragma unroll
	for (int v = 0; v < V; v++) {
		const int32_t i = scaled ? __shfl_sync(ALL_LANES, batch.row, k + v) : 0, j = scaled ? __shfl_sync(ALL_LANES, batch.id, k + v) : 0;
		if (k + v < batch.n && ((seat ^ v) & (group - 1)) == 0 && head < p.heads)
			put_dot(p, batch.first + k + v, i, j, head, dot[v]);
		dot[v] = 0.0f;
	}
}

/* Gathers in flight a lane: 128 bytes, of which 290 lanes hide the latency of device memory (parts.cuh); half of it with 32 lanes, whose walk over the columns
 * needs the registers. */
template <typename T, int L> constexpr int DOT_GATHERS = sizeof(T) == 2 && L < 32 ? 8 : 4;

/* All edges of a batch. Sub-warp s of L lanes takes edges s * L .. s * L + L - 1, V at a time. */
template <typename T, int L, bool ONE>
static __device__ inline void dot_edges(const struct sddmm_problem &p, const struct dot_batch &batch, int group, struct dot_row &held)
{
	constexpr int V = L < DOT_GATHERS<T, L> ? L : DOT_GATHERS<T, L>;
	const int seat = own_lane() % L, sub = own_lane() - seat;
	const bool ragged = p.cols % 8 != 0;
	float mine = 0.0f;
#pragma unroll 1
	for (int t = 0; t < L && t < batch.n; t += V) { /* where the first sub-warp has no edge left, none has */
		float dot[V] = {};
		for (int start = 0; start == 0 || (L == 32 && start < p.cols); start += 8 * L) { /* 32 lanes go over wider rows several times */
			if (L == 32 && p.cols > 8 * L)
				held.i = -1;
			const int c = start + 8 * seat;
			dot_step<T, V>(dot_columns<T>(p, c), batch, sub + t, ragged, held, dot);
			if (!ONE)
				put_heads(p, batch, sub + t, seat, c, group, dot);
		}
		if (ONE) {
			const float sum = lanes_transposed<L>(dot);
			mine = seat / V * V == t ? sum : mine;
		}
	}
	if (ONE && own_lane() < batch.n)
		put_dot(p, batch.first + own_lane(), batch.row, batch.id, 0, mine);
}

/* Three blocks of eight warps a multiprocessor leave 80 registers a lane: 8 packs in flight take 32 of them. */
template <typename T, int L, bool ONE> static __global__ void __launch_bounds__(BLOCK, 3) dot_packs(const struct sddmm_problem p, int group)
{
	if (own_warp() >= p.plan.items)
		return;
	const struct warp_item it(p.plan, own_warp());
	const int32_t *col = p.col + it.base;
	struct row_window window;
	window.open(p.plan, it.base, it.row);
	struct dot_row held = {-1, {}};
	int32_t next = own_lane() < it.stop ? __ldcs(col + own_lane()) : 0;
	for (int e = 0; e < it.stop; e += 32) {
		struct dot_batch batch = {it.base + e, it.stop - e < 32 ? it.stop - e : 32, next, 0, false};
		next = e + 32 + own_lane() < it.stop ? __ldcs(col + e + 32 + own_lane()) : 0;
		batch.row = window.rows_of(p.plan, it.base, e, batch.n, &batch.one);
		dot_edges<T, L, ONE>(p, batch, group, held);
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

/* ---- add: lane l takes edge l of a batch and W neighbouring heads of it ---- */

/* W numbers as they lie in memory: one access of up to 16 bytes, or two of 16. */
template <int BYTES> struct word_of {
	using type = uint4;
};
template <> struct word_of<8> {
	using type = uint2;
};
template <> struct word_of<4> {
	using type = unsigned;
};
template <> struct word_of<2> {
	using type = unsigned short;
};
template <typename T, int W> struct heads_of {
	using word = typename word_of<sizeof(T) * W>::type;
	static constexpr int WORDS = sizeof(T) * W / sizeof(word);
	word q[WORDS];

	static __device__ heads_of read(const T *p)
	{
		heads_of r;
#pragma unroll
		for (int i = 0; i < WORDS; i++)
			r.q[i] = __ldg(reinterpret_cast<const word *>(p) + i);
		return r;
	}
	__device__ void write(T *p) const
	{
#pragma unroll
		for (int i = 0; i < WORDS; i++)
			__stcs(reinterpret_cast<word *>(p) + i, q[i]);
	}
	/* this + b, in f32, narrowed once */
	__device__ heads_of plus(const heads_of &b) const
	{
		T x[W], y[W];
		memcpy(static_cast<void *>(x), q, sizeof q);
		memcpy(static_cast<void *>(y), b.q, sizeof q);
#pragma unroll
		for (int i = 0; i < W; i++)
			x[i] = narrow<T>(widen(x[i]) + widen(y[i]));
		heads_of r;
		memcpy(r.q, static_cast<const void *>(x), sizeof q);
		return r;
	}
};

/* Batches whose ids, then whose gathers, are in flight together: the ids alone are 8 * 128 bytes a warp, 32 kB for the 32 warps that a multiprocessor has at
 * least, what the latency of device memory asks for (parts.cuh). */
template <typename T, int W> constexpr int ADD_BATCHES = sizeof(T) * W > 8 ? 4 : 8;

template <typename T, int W> static __global__ void __launch_bounds__(BLOCK) add_items(const struct sddmm_problem p, int packs)
{
	constexpr int U = ADD_BATCHES<T, W>;
	using bits = heads_of<T, W>;
	const int64_t work = packs == 1 ? own_warp() : own_warp() / packs;
	if (work >= p.plan.items)
		return;
	const struct warp_item it(p.plan, work);
	const int64_t c = packs == 1 ? 0 : (own_warp() - work * packs) * W;
	const int lane = own_lane();
	const T *a = static_cast<const T *>(p.a) + c, *b = static_cast<const T *>(p.b) + c;
	T *out = static_cast<T *>(p.e) + c;
	struct row_window window;
	window.open(p.plan, it.base, it.row);
	int32_t held = -1; /* the row whose numbers x has */
	bits x = {};
	for (int start = 0; start < it.stop; start += 32 * U) {
		int32_t id[U];
		bits y[U];
#pragma unroll
		for (int u = 0; u < U; u++)
			id[u] = start + 32 * u + lane < it.stop ? __ldcs(p.col + it.base + start + 32 * u + lane) : 0;
#pragma unroll
		for (int u = 0; u < U; u++)
			y[u] = bits::read(b + id[u] * p.ldb);
#pragma unroll
		for (int u = 0; u < U; u++) {
			const int e = start + 32 * u, n = it.stop - e < 32 ? it.stop - e : 32;
			if (n <= 0)
				break;
			bool one;
			const int32_t row = window.rows_of(p.plan, it.base, e, n, &one);
			if (lane >= n)
				continue;
			if (row != held)
				x = bits::read(a + row * p.lda);
			held = row;
			x.plus(y[u]).write(out + edge_of(p, it.base + e + lane) * p.lde);
		}
	}
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

/* Call f(L) with L an integral constant, the smallest power of two up to 32 that has `units` lanes, or 32. */
template <int L = 1, typename F> static hg_status with_lanes(int64_t units, F f)
{
	if constexpr (L < 32)
		if (units > L)
			return with_lanes<2 * L>(units, f);
	return f(int_constant<L>{});
}

/* Can packs do it? Heads of 8 to 256 columns, a power of two, or one head of any width; rows whose length in bytes fits 32 bits. Without columns there are no
 * packs, and the empty sums are written by the kernel that goes head by head. */
static bool packs_fit(const struct hg__sddmm_dot_args *a, int64_t lanes_a_head)
{
	constexpr int64_t MOST = UINT32_MAX / sizeof(float) / 2;
	if (a->a.cols == 0 || !wide(a->a) || !wide(a->b) || a->a.ld > MOST || a->b.ld > MOST)
		return false;
	return a->heads == 1 || (a->a.cols / a->heads % 8 == 0 && is_power_of_two(lanes_a_head) && lanes_a_head <= 32);
}

template <typename T> static hg_status dot(hg_context *ctx, const struct sddmm_problem &p, bool packs)
{
	if (!packs) {
		struct edge_grid g = edge_grid_of(p.plan.items, p.head_cols);
		g.grid.y = 1; /* the kernel loops over what 32 lanes do not cover */
		dot_elements<T><<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		return launched(ctx, "sddmm_dot");
	}
	const unsigned blocks = grid_for(p.plan.items, WARPS);
	return with_lanes((p.cols + 7) / 8, [&](auto lanes) {
		constexpr int L = decltype(lanes)::value;
		if (p.heads == 1)
			dot_packs<T, L, true><<<blocks, BLOCK, 0, stream_of(ctx)>>>(p, L);
		else
			dot_packs<T, L, false><<<blocks, BLOCK, 0, stream_of(ctx)>>>(p, static_cast<int>(p.head_cols / 8));
		return launched(ctx, "sddmm_dot");
	});
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
	const bool packs = packs_fit(a, p.head_cols / 8);
	return with_float(ctx, "sddmm_dot", a->a.dtype, [&](auto zero) { return dot<decltype(zero)>(ctx, p, packs); });
}

/* Do rows begin at multiples of `width` elements? A and B may be columns in the middle of wider rows. */
static bool in_packs(const struct hg__mat &m, int64_t width)
{
	return m.ld % width == 0 && reinterpret_cast<uintptr_t>(m.data) % (static_cast<size_t>(width) * hg_dtype_size(m.dtype)) == 0;
}

/* Call f(W): all heads of an edge in one access where they lie without padding, else packs of 8, else one by one. A last pack of 8 may reach into what stands beside
 * its columns, and what is made of that goes into E's padding. */
template <typename F> static hg_status with_heads(const struct hg__sddmm_add_args *a, F f)
{
	const int64_t ld = a->e.ld;
	const auto fits = [&](int64_t width) { return in_packs(a->a, width) && in_packs(a->b, width) && in_packs(a->e, width); };
	if (fits(8))
		return f(int_constant<8>{});
	if (a->e.cols == ld && ld == 4 && fits(4))
		return f(int_constant<4>{});
	if (a->e.cols == ld && ld == 2 && fits(2))
		return f(int_constant<2>{});
	return f(int_constant<1>{});
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
		return with_heads(a, [&](auto heads) {
			constexpr int W = decltype(heads)::value;
			const int64_t packs = (p.cols + W - 1) / W;
			add_items<T, W><<<grid_for(p.plan.items * packs, WARPS), BLOCK, 0, stream_of(ctx)>>>(p, static_cast<int>(packs));
			return launched(ctx, "sddmm_add");
		});
	});
}
