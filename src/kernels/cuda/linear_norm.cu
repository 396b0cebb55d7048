/* The gradients of a layer with a batch norm before it, or behind it, or both, of halves with up to
 * NORM_SIDE columns on either side, in one pass over the rows (kernels.h, linear_back):
 *
 *     dV = dY, or what the norm behind makes of it;    N = X, or what the norm before makes of it
 *     dX = dV W^T,   dW = N^T dV,   db = sum dV,   dgamma, dbeta from X and dX
 *
 * Neither dV nor N is stored. A block takes ROWS rows at a time, 16 in each of its warps. Copies of
 * dY, X, and what the norm behind reads, arrive in shared memory while the rows before them are
 * computed.
 *
 *     A warp computes dV and N of its rows and leaves them in shared memory. dV is the operand of
 *     dX = dV W^T as it lies in the registers (tall_rows.cuh).
 *     For dW each warp has some tiles of 16 columns of N and 16 of dV, and reads all rows of the
 *     block, transposed on the way.
 *
 * A block stores one part of the sums, and a second kernel adds the parts in order. */

#include "kernels/cuda/gemm_norm.cuh"
#include "kernels/cuda/linear_norm_rows.cuh"

namespace
{

struct linear_gradients {
	struct half_rows x, dy, dx; /* dx.at NULL: not wanted */
	struct short_matrix w;      /* W^T */
	int64_t n;
	int k, d;
	struct norm_before before;
	struct norm_behind behind;
	bool weights, bias, sums; /* whether dW, db, and dgamma with dbeta are wanted */
	float *part;              /* [blocks][part_layout::SIZE] */
};

/* The sums of a block in memory: dW [K, D], db [D], dgamma [K], dbeta [K]. IN, OUT: k and d in
 * chunks. */
template <int IN, int OUT> struct part_layout {
	static constexpr int K = CHUNK * IN, D = CHUNK * OUT, DB = K * D, DGAMMA = DB + D,
	                     DBETA = DGAMMA + K, SIZE = DBETA + K;
	static_assert(static_cast<size_t>(SIZE) * LINEAR_PARTS * sizeof(float) <= LINEAR_SCRATCH_BYTES,
	              "room for the parts");
};

template <int IN, int OUT> struct shared_memory {
	static constexpr int WIDER = IN > OUT ? IN : OUT;
	/* Rows of a step. dV takes the place of dY, and N that of v, what the norm behind reads. */
	struct stage {
		uint4 dy[ROWS * 4 * OUT], v[ROWS * 4 * WIDER], x[ROWS * 4 * IN];
	} stage[2];
	uint4 w[IN * OUT * 4 * 32]; /* [chunk of d][block of k][j][lane] */
	struct norm_vectors before;
	struct behind_vectors behind;
};

/* ---- sums ---- */

__device__ inline void add_packs(const uint4 (&rows)[2], float (&sum)[8])
{
	float low[8], high[8];
	widen_pack(rows[0], low);
	widen_pack(rows[1], high);
#pragma unroll
	for (int i = 0; i < 8; i++)
		sum[i] = low[i] + high[i];
}

/* The sums of a warp. Those of columns are of column g of the lane's packs. */
template <int IN, int OUT> struct warp_sums {
	/* dW in tiles of [16, 16]. A warp has TILES of them, side by side; where there are fewer tiles
	 * than warps, two warps share one, and each adds half of the rows. */
	static constexpr int ALL = 4 * IN * OUT, SHARED = ALL < WARPS, TILES = SHARED ? 1 : ALL / WARPS;
	float dw[TILES][2][4], db[OUT], norm[IN][2];

	static __device__ int down(int warp)
	{
		return warp % (2 * IN);
	}
	static __device__ int across(int warp)
	{
		return warp / (2 * IN) * TILES % (2 * OUT);
	}
	/* Adds N^T dV of the rows of a block. */
	__device__ void add_weights(const uint4 *n, const uint4 *dv, int warp, int lane)
	{
		constexpr int WIDER = IN > OUT ? IN : OUT, DEPTH = SHARED ? ROWS / 2 : ROWS;
		const int begin = SHARED && warp >= ALL ? DEPTH : 0;
		const unsigned a_at =
		    shared_address(n + begin * 4 * WIDER + matrices_at<WIDER, false>(2 * down(warp), lane));
		unsigned b_at[TILES];
#pragma unroll
		for (int i = 0; i < TILES; i++)
			b_at[i] = shared_address(dv + begin * 4 * OUT +
			                         matrices_at<OUT, true>(2 * (across(warp) + i), lane));
#pragma unroll
		for (int row = 0; row < DEPTH; row += STEP) {
			const uint4 a = load_matrices<true>(a_at + row * 64 * WIDER);
#pragma unroll
			for (int i = 0; i < TILES; i++) {
				const uint4 b = load_matrices<true>(b_at[i] + row * 64 * OUT);
				multiply(dw[i][0], a, b.x, b.y);
				multiply(dw[i][1], a, b.z, b.w);
			}
		}
	}
	/* Stores the part of this block. room: shared memory that is not in use. */
	__device__ void put(float *part, float *room, int warp, int lane)
	{
		using L = part_layout<IN, OUT>;
		constexpr int COLUMNS = L::SIZE - L::DB;
		const int g = lane / 4, t = lane % 4, own = 8 * t + g;
		const int row = STEP * down(warp) + g, col = 16 * across(warp) + 2 * t;
		float *const sums = room + warp * COLUMNS, *const others = room + WARPS * COLUMNS;
		float *const flat = &dw[0][0][0];
#pragma unroll
		for (int c = 0; c < OUT; c++)
			sums[CHUNK * c + own] = db[c];
#pragma unroll
		for (int c = 0; c < IN; c++)
#pragma unroll
			for (int k = 0; k < 2; k++)
				sums[L::D + L::K * k + CHUNK * c + own] = norm[c][k];
		if (SHARED && warp >= ALL)
#pragma unroll
			for (int i = 0; i < 8; i++)
				others[(warp - ALL) * 256 + i * 32 + lane] = flat[i];
		__syncthreads();
		for (int i = 32 * warp + lane; i < COLUMNS; i += BLOCK) {
			float sum = 0.0f;
#pragma unroll
			for (int w = 0; w < WARPS; w++)
				sum += room[w * COLUMNS + i];
			part[L::DB + i] = sum;
		}
		if (SHARED && warp >= ALL)
			return;
		if (SHARED)
#pragma unroll
			for (int i = 0; i < 8; i++)
				flat[i] += others[warp * 256 + i * 32 + lane];
#pragma unroll
		for (int i = 0; i < TILES; i++)
#pragma unroll
			for (int j = 0; j < 2; j++)
#pragma unroll
				for (int half = 0; half < 2; half++)
					*reinterpret_cast<float2 *>(part + (row + 8 * half) * L::D + col + 16 * i +
					                            8 * j) =
					    make_float2(dw[i][j][2 * half], dw[i][j][2 * half + 1]);
	}
};

/* Where a lane works, and which of what it reads counts. */
struct lane_place {
	int64_t row; /* its row g of the step; row + 8 is the other one */
	int own, lane, t;
	int in_y, in_v, in_x;      /* its first pack of row g in the stage's arrays */
	int64_t live, live_behind; /* rows that count for the norm before, and for that behind */
	uint4 keep_x, keep_y;      /* the columns of its pack of the last chunk of X, and of dY */
	__half *dx;                /* of row g, from its first pack on */
	bool in_dx;                /* whether its pack of the last chunk of dX has columns */
};

/* dV of a warp's rows, in the place of dY, and what they add to db. */
template <int IN, int OUT>
__device__ void leave_gradients(const struct linear_gradients &m,
                                const struct shared_memory<IN, OUT> &s,
                                typename shared_memory<IN, OUT>::stage &stage,
                                const struct lane_place &at, struct warp_sums<IN, OUT> &sums)
{
	constexpr int WIDER = IN > OUT ? IN : OUT;
	const uint4 zero = make_uint4(0, 0, 0, 0);
#pragma unroll
	for (int c = 0; c < OUT; c++) {
		uint4 *const low = stage.dy + (at.in_y ^ 4 * c), *const high = low + 32 * OUT;
		uint4 dv[2] = {*low, *high};
		if (m.behind.x.at) {
			const uint4 *const read = stage.v + (at.in_v ^ 4 * c);
			const uint4 of[2] = {read[0], read[32 * WIDER]};
			s.behind.gradient(m.behind.relu, CHUNK * c + 8 * at.t, of, dv);
			if (at.row + 8 >= at.live_behind) {
				dv[0] = at.row < at.live_behind ? dv[0] : zero;
				dv[1] = zero;
			}
		}
		if (c + 1 == OUT) {
			dv[0] = masked(dv[0], at.keep_y);
			dv[1] = masked(dv[1], at.keep_y);
		}
		*low = dv[0];
		*high = dv[1];
		if (m.bias) {
			float sum[8];
			add_packs(dv, sum);
			sums.db[c] += sum_of_column(sum, at.lane);
		}
	}
}

/* N of a warp's rows, in the place of what the norm behind reads. */
template <int IN, int OUT>
__device__ void leave_inputs(const struct linear_gradients &m,
                             const struct shared_memory<IN, OUT> &s,
                             typename shared_memory<IN, OUT>::stage &stage, __half2 floor,
                             const struct lane_place &at)
{
	constexpr int WIDER = IN > OUT ? IN : OUT;
	const uint4 zero = make_uint4(0, 0, 0, 0);
#pragma unroll
	for (int c = 0; c < IN; c++) {
		const uint4 *const read = stage.x + (at.in_x ^ 4 * c);
		uint4 n[2] = {read[0], read[32 * IN]}, *const to = stage.v + (at.in_v ^ 4 * c);
		if (m.before.of.mean) {
			const struct column_pack<8> p = s.before.at(CHUNK * c + 8 * at.t);
			n[0] = normalised(n[0], p, floor);
			n[1] = normalised(n[1], p, floor);
			if (at.row + 8 >= at.live) {
				n[0] = at.row < at.live ? n[0] : zero;
				n[1] = zero;
			}
		}
		to[0] = c + 1 < IN ? n[0] : masked(n[0], at.keep_x);
		to[32 * WIDER] = c + 1 < IN ? n[1] : masked(n[1], at.keep_x);
	}
}

/* dX of a warp's rows, and what they add to dgamma and dbeta. */
template <int IN, int OUT>
__device__ void input_gradients(const struct linear_gradients &m,
                                const struct shared_memory<IN, OUT> &s,
                                const typename shared_memory<IN, OUT>::stage &stage,
                                const struct lane_place &at, struct warp_sums<IN, OUT> &sums)
{
#pragma unroll
	for (int b = 0; b < IN; b++) {
		float sum[4][4] = {}, dgamma[8] = {}, dbeta[8] = {};
#pragma unroll
		for (int c = 0; c < OUT; c++) {
			const uint4 *const dv = stage.dy + (at.in_y ^ 4 * c);
			multiply_chunk(sum, dv[0], dv[32 * OUT], s.w + (c * IN + b) * 128, at.lane);
		}
		uint4 stored[2];
#pragma unroll
		for (int half = 0; half < 2; half++) {
			float d[8];
#pragma unroll
			for (int i = 0; i < 8; i++)
				d[i] = sum[i / 2][2 * half + i % 2];
			stored[half] = narrow_pack(d);
			if (at.row + 8 * half < m.n && (b + 1 < IN || at.in_dx))
				*reinterpret_cast<uint4 *>(at.dx + 8 * half * m.dx.ld + CHUNK * b) = stored[half];
		}
		if (!m.sums)
			continue;
		const struct column_pack<8> p = s.before.at(CHUNK * b + 8 * at.t);
#pragma unroll
		for (int half = 0; half < 2; half++) {
			float v[8], d[8];
			if (at.row + 8 * half >= at.live)
				continue;
			widen_pack(stage.x[(at.in_x ^ 4 * b) + 32 * IN * half], v);
			widen_pack(stored[half], d);
			p.relu_gradient(m.before.relu, v, d);
#pragma unroll
			for (int i = 0; i < 8; i++) {
				dgamma[i] = __fmaf_rn(d[i], (v[i] - p.mean[i]) * p.rstd[i], dgamma[i]);
				dbeta[i] += d[i];
			}
		}
		__syncwarp();
		sums.norm[b][0] += sum_of_column(dgamma, at.lane);
		sums.norm[b][1] += sum_of_column(dbeta, at.lane);
	}
}

template <int IN, int OUT> __device__ struct lane_place place_lane(const struct linear_gradients &m)
{
	const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, t = lane % 4,
	          own = STEP * (thread / 32) + lane / 4;
	const int64_t row = static_cast<int64_t>(blockIdx.x) * ROWS + own;
	struct lane_place at = {};
	at.row = row;
	at.own = own;
	at.lane = lane;
	at.t = t;
	at.in_y = place<OUT>(own, t);
	at.in_v = place<(IN > OUT ? IN : OUT)>(own, t);
	at.in_x = place<IN>(own, t);
	at.live = rows_that_count(m.before.live, m.n);
	at.live_behind = rows_that_count(m.behind.live, m.n);
	at.keep_x = keep_first(m.k - CHUNK * (IN - 1) - 8 * t);
	at.keep_y = keep_first(m.d - CHUNK * (OUT - 1) - 8 * t);
	at.dx = m.dx.at + row * m.dx.ld + 8 * t;
	at.in_dx = CHUNK * (IN - 1) + 8 * t < m.k;
	return at;
}

template <int IN, int OUT>
__global__ void __launch_bounds__(BLOCK, 2)
    linear_kernel(const __grid_constant__ struct linear_gradients m)
{
	after_previous();
	extern __shared__ uint4 memory[];
	struct shared_memory<IN, OUT> &s = *reinterpret_cast<struct shared_memory<IN, OUT> *>(memory);
	const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
	const int64_t down = static_cast<int64_t>(gridDim.x) * ROWS;
	struct lane_place at = place_lane<IN, OUT>(m);
	struct lane_rows dy(m.dy, at.row, at.t, OUT), x(m.x, at.row, at.t, IN),
	    v(m.behind.x, at.row, at.t, OUT);
	const auto copy = [&](int64_t row, auto &stage) {
		const bool low = row < m.n, high = row + 8 < m.n;
		dy.copy<OUT, OUT>(low, high, stage.dy, at.in_y);
		x.copy<IN, IN>(low, high, stage.x, at.in_x);
		if (m.behind.x.at)
			v.copy<OUT, (IN > OUT ? IN : OUT)>(low, high, stage.v, at.in_v);
		end_copies();
	};
	copy(at.row, s.stage[0]);
	copy(at.row + down, s.stage[1]);
	if (m.dx.at)
		m.w.fill(s.w, OUT, IN, thread, BLOCK);
	if (m.before.of.mean)
		s.before.fill(m.before.of, m.k);
	if (m.behind.x.at)
		s.behind.fill(m.behind, m.d, at.live_behind);
	const __half2 floor = floor_of(m.before.relu);
	struct warp_sums<IN, OUT> sums = {
	};
	__syncthreads();
	for (int turn = 0; at.row - at.own < m.n; turn ^= 1) {
		auto &stage = s.stage[turn];
		wait_for_copies<1>();
		leave_gradients(m, s, stage, at, sums);
		__syncwarp(); /* N takes the place of what the norm behind reads */
		if (m.weights)
			leave_inputs(m, s, stage, floor, at);
		__syncthreads();
		if (m.dx.at)
			input_gradients(m, s, stage, at, sums);
		if (m.weights)
			sums.add_weights(stage.v, stage.dy, warp, at.lane);
		__syncthreads();
		at.row += down;
		at.dx += down * m.dx.ld;
		copy(at.row + down, stage);
	}
	wait_for_copies<0>();
	__syncthreads();
	sums.put(m.part + static_cast<int64_t>(blockIdx.x) * part_layout<IN, OUT>::SIZE,
	         reinterpret_cast<float *>(memory), warp, at.lane);
}

/* Where the sums go; data NULL: not wanted. */
struct sums_of {
	struct hg__mat dw;
	float *db, *dgamma, *dbeta;
	int k, d;
	float factor;
};

/* Adds the parts in order. A block has 32 numbers, and one thread per warp for each of them. */
template <int IN, int OUT>
__global__ void __launch_bounds__(BLOCK)
    linear_fold(const float *part, int parts, const struct sums_of to)
{
	after_previous();
	using L = part_layout<IN, OUT>;
	__shared__ float some[BLOCK / 32][32];
	const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32),
	          index = static_cast<int>(blockIdx.x) * 32 + lane;
	float sum = 0.0f;
#pragma unroll 16
	for (int p = warp; p < parts; p += BLOCK / 32)
		sum += part[static_cast<int64_t>(p) * L::SIZE + index];
	some[warp][lane] = sum;
	__syncthreads();
	if (warp > 0)
		return;
	for (int w = 1; w < BLOCK / 32; w++)
		sum += some[w][lane];
	if (index >= L::DB) {
		const int i = index - (index >= L::DBETA    ? L::DBETA
		                       : index >= L::DGAMMA ? L::DGAMMA
		                                            : L::DB);
		float *const at = index >= L::DBETA ? to.dbeta : index >= L::DGAMMA ? to.dgamma : to.db;
		if (at && i < (index >= L::DGAMMA ? to.k : to.d))
			at[i] = sum;
		return;
	}
	const int row = index / L::D, col = index % L::D;
	if (!to.dw.data || row >= to.k || col >= to.d)
		return;
	sum *= to.factor;
	if (to.dw.dtype == HG_F16)
		static_cast<__half *>(to.dw.data)[row * to.dw.ld + col] = __float2half_rn(sum);
	else
		static_cast<float *>(to.dw.data)[row * to.dw.ld + col] = sum;
}

struct linear_gradients gradients_of(const struct hg__linear_back_args *a, void *scratch)
{
	struct linear_gradients m = {};
	m.x = half_rows_of(a->x);
	m.dy = half_rows_of(a->dy);
	m.dx = half_rows_of(a->dx);
	m.w = short_matrix_of(a->w, true);
	m.n = a->x.rows;
	m.k = static_cast<int>(a->w.rows);
	m.d = static_cast<int>(a->w.cols);
	m.before = norm_before_of(a->normalise);
	m.weights = a->dw.data != nullptr;
	m.bias = a->db.data != nullptr;
	m.sums = a->dgamma.data != nullptr;
	m.part = static_cast<float *>(scratch);
	if (!a->through.x.data)
		return m;
	m.behind.x = half_rows_of(a->through.x);
	m.behind.of = facts_of(&a->through);
	m.behind.dgamma = data_of<const float>(a->through.dgamma);
	m.behind.dbeta = data_of<const float>(a->through.dbeta);
	m.behind.live = a->through.live;
	m.behind.over_unit = ldexpf(1.0f, -a->through.shift);
	m.behind.relu = a->through.relu != 0;
	return m;
}

template <int IN, int OUT>
hg_status queue_linear(hg_context *ctx, unsigned blocks, struct linear_gradients m)
{
	const void *kernel = reinterpret_cast<const void *>(linear_kernel<IN, OUT>);
	constexpr size_t bytes = sizeof(struct shared_memory<IN, OUT>);
	void *args[] = {&m};
	(void)stream_of(ctx); /* the attribute is that of the current device */
	HG__CUDA(ctx, "linear_back: shared memory",
	         cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
	                              static_cast<int>(bytes)));
	return cuda_status(ctx, queue_kernel(ctx, kernel, 1, blocks, BLOCK, args, bytes),
	                   "linear_back");
}

template <int IN, int OUT>
hg_status run_linear(hg_context *ctx, const struct hg__linear_back_args *a, void *scratch)
{
	const struct linear_gradients m = gradients_of(a, scratch);
	const int64_t steps = (m.n + ROWS - 1) / ROWS;
	const int parts = static_cast<int>(steps < LINEAR_PARTS ? steps : LINEAR_PARTS);
	const struct sums_of to = {
	    a->dw, data_of<float>(a->db), data_of<float>(a->dgamma), data_of<float>(a->dbeta), m.k,
	    m.d,   ldexpf(1.0f, a->shift)};
	const hg_status status = queue_linear<IN, OUT>(ctx, static_cast<unsigned>(parts), m);
	if (status < 0)
		return status;
	return launch(ctx, "linear_back: sums", linear_fold<IN, OUT>,
	              static_cast<unsigned>(part_layout<IN, OUT>::SIZE / 32), BLOCK,
	              static_cast<const float *>(scratch), parts, to);
}

bool fits(const struct hg__mat &m, int64_t rows, int64_t cols)
{
	return !m.data || (m.rows == rows && m.cols == cols);
}

} // namespace

/* The kernels need up to 107 KiB of shared memory for a block, which GPUs of compute capability 8.0
 * and 9.0 have. */
int hg__cuda_takes_norms(const hg_context *ctx, hg_dtype type, int64_t rows, int64_t k, int64_t n)
{
	static constexpr size_t bytes[2][2] = {
	    {sizeof(struct shared_memory<1, 1>), sizeof(struct shared_memory<1, 2>)},
	    {sizeof(struct shared_memory<2, 1>), sizeof(struct shared_memory<2, 2>)}};
	const int device = static_cast<const hg__cuda_state *>(ctx->state)->device;
	int most = 0;
	if (type != HG_F16 || rows <= 0 || k <= 0 || n <= 0 || k > NORM_SIDE || n > NORM_SIDE ||
	    hg__leading(k) % 8 || hg__leading(n) % 8)
		return 0;
	return cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) ==
	           cudaSuccess &&
	       bytes[k > CHUNK][n > CHUNK] <= static_cast<size_t>(most);
}

hg_status hg__cuda_linear_norm(hg_context *ctx, const struct hg__linear_back_args *a)
{
	typedef hg_status (*run)(hg_context *, const struct hg__linear_back_args *, void *);
	static constexpr run runs[2][2] = {{run_linear<1, 1>, run_linear<1, 2>},
	                                   {run_linear<2, 1>, run_linear<2, 2>}};
	const int64_t n = a->x.rows, k = a->w.rows, d = a->w.cols;
	if (n == 0 || !is_half_rows(a->x) || !is_half_rows(a->dy) || !is_half_rows(a->dx) ||
	    !is_half_rows(a->through.x) || (a->dx.data && a->w.dtype != HG_F16))
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "linear_back: a layer with a batch norm, [%lld, %lld] to %lld columns; "
		                "supported are f16 in up to %d columns, but not 1, 2 or 4",
		                static_cast<long long>(n), static_cast<long long>(k),
		                static_cast<long long>(d), NORM_SIDE);
	if (a->x.cols != k || a->dy.rows != n || a->dy.cols != d || !fits(a->dx, n, k) ||
	    !fits(a->dw, k, d) || !fits(a->through.x, n, d) ||
	    (a->dgamma.data && (!a->dbeta.data || !a->dx.data || !a->normalise.mean)))
		return misfit(ctx, "linear_back", HG__FLOATS, a->x, a->w, a->dy, a->dx, a->dw,
		              a->through.x);
	void *scratch;
	HG__TRY(hg__cuda_gemm_scratch(ctx, &scratch));
	return runs[k > CHUNK][d > CHUNK](ctx, a, scratch);
}
