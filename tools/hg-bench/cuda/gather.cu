#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cuda/gather.cuh"
#include "kernels/cuda/launch.cuh"
#include "precision/bound.h"

/* The gather ceiling: the time of a kernel that only reads column ids and gathers rows, whatever is
 * done with the rows afterwards.
 *
 *    out[part, chunk] = sum over the edges of a chunk, over the columns of a part, of X[col e, c]
 *        (f32; one number per chunk, so that the compiler cannot remove the loads)
 *
 * Work is divided by edges: equal chunks of edges, no rows, no balancing, no output. A sub-warp of
 * L lanes takes a chunk; a lane owns 16 bytes of the row and has U gathers in flight. A row that is
 * wider than L lanes is gathered in parts, one after the other, so that a part of the table may fit
 * into the cache. Which launch shape is fastest depends on graph and width, so all shapes are
 * tried. */

constexpr double SAMPLE_MS = 20; /* of one sample: long compared with a launch and the clock */
constexpr int LANES = 6;         /* L = 1, 2, 4 .. 32 */
constexpr int DEPTHS = 3;
static const int depth_of[DEPTHS] = {4, 8, 16};
/* multiples of 32 and of every depth, so that only the last chunk has a remainder */
static const int64_t chunk_of[] = {128, 512, 2048};

struct problem {
	const int32_t *col;
	const char *x;
	int64_t m, chunks, row_bytes;
	int edges; /* of a chunk */
	int units; /* 16-byte pieces of a row */
	float *out;
};

/* The f32 sums of a lane, one per column that it owns. */
template <typename T> struct columns;
template <> struct columns<__half> {
	float v[8] = {};
	__device__ void add(const uint4 &raw)
	{
		const __half2 *h = reinterpret_cast<const __half2 *>(&raw);
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float2 f = __half22float2(h[i]);
			v[2 * i] += f.x;
			v[2 * i + 1] += f.y;
		}
	}
	__device__ float total() const
	{
		return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
	}
};
template <> struct columns<float> {
	float v[4] = {};
	__device__ void add(const uint4 &raw)
	{
		v[0] += __uint_as_float(raw.x);
		v[1] += __uint_as_float(raw.y);
		v[2] += __uint_as_float(raw.z);
		v[3] += __uint_as_float(raw.w);
	}
	__device__ float total() const
	{
		return (v[0] + v[1]) + (v[2] + v[3]);
	}
};

/* The next ids of a sub-warp. SHUFFLED: each lane loads its share, coalesced, and the lanes
 * exchange them by shuffles. Otherwise every lane loads all ids, 16 bytes at a time; this is one
 * request, because the addresses are equal. */
template <int L, int U, bool SHUFFLED> struct ids {
	static constexpr int AHEAD = SHUFFLED && L > U ? L : U; /* ids loaded at a time */
	static constexpr int HELD = SHUFFLED ? AHEAD / L : U;   /* ids in a lane's registers */
	int32_t id[HELD];

	__device__ void load(const int32_t *col, int lane)
	{
		if (SHUFFLED) {
#pragma unroll
			for (int k = 0; k < HELD; k++)
				id[k] = __ldcs(col + k * L + lane);
		} else {
#pragma unroll
			for (int k = 0; k < HELD; k += 4) {
				const int4 four = __ldg(reinterpret_cast<const int4 *>(col + k));
				id[k] = four.x;
				id[k + 1] = four.y;
				id[k + 2] = four.z;
				id[k + 3] = four.w;
			}
		}
	}
	__device__ int32_t get(int u, unsigned mask) const
	{
		return SHUFFLED ? __shfl_sync(mask, id[u / L], u % L, L) : id[u];
	}
};

/* [part = blockIdx.y]; sub-warps stride over the chunks, so that chunks processed at the same time
 * are adjacent. */
template <typename T, int L, int U, bool SHUFFLED>
static __global__ void __launch_bounds__(BLOCK) gather_kernel(const struct problem p)
{
	using id_buffer = ids<L, U, SHUFFLED>;
	constexpr int B = id_buffer::AHEAD;
	const int lane = threadIdx.x % L, unit = blockIdx.y * L + lane;
	const unsigned mask = (L == 32 ? 0xFFFFFFFFu : (1u << L) - 1) << (threadIdx.x % 32 / L * L);
	const char *x =
	    /* a lane beyond the row repeats the last piece, which causes no additional traffic */
	    p.x + static_cast<int64_t>(unit < p.units ? unit : p.units - 1) * 16;
	const int64_t stride = static_cast<int64_t>(gridDim.x) * (BLOCK / L);
	for (int64_t chunk = static_cast<int64_t>(blockIdx.x) * (BLOCK / L) + threadIdx.x / L;
	     chunk < p.chunks; chunk += stride) {
		const int64_t begin = chunk * p.edges, end = min(begin + p.edges, p.m);
		columns<T> sum;
		id_buffer now, next;
		int64_t e = begin;
		if (e + B <= end)
			now.load(p.col + e, lane);
		for (; e + B <= end; e += B) {
			if (e + 2 * B <= end)
				next.load(p.col + e + B, lane);
#pragma unroll
			for (int group = 0; group < B; group += U) {
				uint4 raw[U];
#pragma unroll
				for (int u = 0; u < U; u++)
					raw[u] = __ldg(reinterpret_cast<const uint4 *>(x + now.get(group + u, mask) *
					                                                       p.row_bytes));
#pragma unroll
				for (int u = 0; u < U; u++)
					sum.add(raw[u]);
			}
			now = next;
		}
		for (; e < end; e++)
			sum.add(__ldg(reinterpret_cast<const uint4 *>(x + p.col[e] * p.row_bytes)));
		float total = unit < p.units ? sum.total() : 0.0f;
#pragma unroll
		for (int step = L / 2; step > 0; step /= 2)
			total += __shfl_down_sync(mask, total, step, L);
		if (lane == 0)
			p.out[blockIdx.y * p.chunks + chunk] = total;
	}
}

typedef void (*gather_fn)(struct problem);
struct forms {
	gather_fn form[LANES][DEPTHS][2];
};
template <typename T, int L> static constexpr void put_lanes(struct forms &f, int i)
{
	f.form[i][0][0] = gather_kernel<T, L, 4, false>;
	f.form[i][0][1] = gather_kernel<T, L, 4, true>;
	f.form[i][1][0] = gather_kernel<T, L, 8, false>;
	f.form[i][1][1] = gather_kernel<T, L, 8, true>;
	f.form[i][2][0] = gather_kernel<T, L, 16, false>;
	f.form[i][2][1] = gather_kernel<T, L, 16, true>;
}
template <typename T> static constexpr struct forms forms_of()
{
	struct forms f = {};
	put_lanes<T, 1>(f, 0);
	put_lanes<T, 2>(f, 1);
	put_lanes<T, 4>(f, 2);
	put_lanes<T, 8>(f, 3);
	put_lanes<T, 16>(f, 4);
	put_lanes<T, 32>(f, 5);
	return f;
}
/* By type, in the order of hg_dtype. */
static const struct forms kernels[2] = {forms_of<__half>(), forms_of<float>()};

/* A launch shape. */
struct shape {
	int lanes, depth, shuffled, chunk; /* indices into the lists above */
	/* as many blocks as fit on the device at once, instead of one per piece of work */
	int resident;
};

struct launch {
	gather_fn kernel;
	dim3 grid;
	struct problem problem;
};

struct setting {
	hg_context *ctx;
	const struct hg__csr *csr;
	struct hg__mat x;
	int64_t row_bytes;
	int units, processors;
	float *out;
};

static hg_status launch_of(const struct setting *s, const struct shape *shape,
                           struct launch *launch)
{
	const int lanes = 1 << shape->lanes;
	launch->kernel = kernels[s->x.dtype].form[shape->lanes][shape->depth][shape->shuffled];
	launch->problem = {s->csr->col,  static_cast<const char *>(s->x.data),     s->csr->m, 0,
	                   s->row_bytes, static_cast<int>(chunk_of[shape->chunk]), s->units,  s->out};
	launch->problem.chunks = (s->csr->m + launch->problem.edges - 1) / launch->problem.edges;
	const unsigned parts = static_cast<unsigned>((s->units + lanes - 1) / lanes);
	unsigned blocks = grid_for(launch->problem.chunks, BLOCK / lanes);
	if (shape->resident) {
		int per_processor = 1;
		HG__CUDA(s->ctx, "gather: occupancy",
		         cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, launch->kernel,
		                                                       BLOCK, 0));
		blocks = std::min(blocks, static_cast<unsigned>(per_processor * s->processors));
	}
	launch->grid = dim3(blocks, parts);
	return HG_OK;
}

/* Take samples of `runs` launches each, in ms per launch. Returns the least; all are stored if
 * `each` is given. */
static hg_status sample(hg_context *ctx, const struct launch *launch, int samples, int runs,
                        double *each, double *least)
{
	struct marks *marks = nullptr;
	hg_status status = device_cuda.marks_create(ctx, 2, &marks);
	*least = INFINITY;
	for (int i = 0; status == HG_OK && i <= samples; i++) { /* the first one warms up */
		double ms = 0;
		status = device_cuda.mark(ctx, marks, 0);
		for (int r = 0; r < runs; r++)
			launch->kernel<<<launch->grid, BLOCK, 0, stream_of(ctx)>>>(launch->problem);
		if (status == HG_OK)
			status = launched(ctx, "gather");
		if (status == HG_OK)
			status = device_cuda.mark(ctx, marks, 1);
		if (status == HG_OK)
			status = device_cuda.elapsed(ctx, marks, 0, 1, &ms);
		if (i == 0)
			continue;
		*least = std::min(*least, ms / runs);
		if (each)
			each[i - 1] = ms / runs;
	}
	device_cuda.marks_free(marks);
	return status;
}

/* Find the fastest of all shapes with two samples each. Parts of a half or a quarter of the row are
 * tried, too. */
static hg_status fastest(const struct setting *s, struct shape *best, int *tried)
{
	double best_ms = INFINITY;
	int whole = 0;
	while ((1 << whole) < s->units && whole < LANES - 1)
		whole++;
	for (int part = 0; part <= std::min(whole, 2); part++)
		for (int other = 0; other < DEPTHS * 3 * 2 * 2; other++) {
			const struct shape shape = {whole - part, other % DEPTHS, other / DEPTHS % 2,
			                            other / DEPTHS / 2 % 3, other / DEPTHS / 6};
			struct launch launch;
			double ms;
			HG__TRY(launch_of(s, &shape, &launch));
			HG__TRY(sample(s->ctx, &launch, 2, 1, nullptr, &ms));
			++*tried;
			if (ms < best_ms) {
				best_ms = ms;
				*best = shape;
			}
		}
	return HG_OK;
}

/* Add the columns of one row in f64: the sum and the sum of magnitudes. */
static void row_sum(hg_dtype dtype, const unsigned char *row, int64_t bytes, double *sum,
                    double *magnitude)
{
	const int64_t size = static_cast<int64_t>(hg_dtype_size(dtype));
	for (int64_t at = 0; at < bytes; at += size) {
		float full;
		hg_half half;
		memcpy(&half, row + at, sizeof half);
		if (dtype == HG_F16)
			full = hg_half_to_float(half);
		else
			memcpy(&full, row + at, sizeof full);
		*sum += static_cast<double>(full);
		*magnitude += fabs(static_cast<double>(full));
	}
}

/* Compute one chunk again in f64 from the same memory. An f32 sum of N terms has an error of at
 * most gamma_N(2^-24) sum|x|. */
static hg_status verify_chunk(const struct setting *s, const struct launch *launch, int64_t chunk)
{
	const struct problem &p = launch->problem;
	const struct hg__backend *backend = s->ctx->backend;
	const int64_t begin = chunk * p.edges, count = std::min<int64_t>(p.edges, p.m - begin),
	              bytes = static_cast<int64_t>(s->units) * 16;
	std::vector<int32_t> id(static_cast<size_t>(count));
	std::vector<unsigned char> row(static_cast<size_t>(bytes));
	double exact = 0, magnitude = 0, found = 0;
	HG__TRY(backend->copy_out(s->ctx, id.data(), p.col + begin, id.size() * sizeof(int32_t)));
	for (int64_t e = 0; e < count; e++) {
		HG__TRY(backend->copy_out(s->ctx, row.data(),
		                          p.x + id[static_cast<size_t>(e)] * p.row_bytes, row.size()));
		row_sum(s->x.dtype, row.data(), bytes, &exact, &magnitude);
	}
	for (unsigned part = 0; part < launch->grid.y; part++) {
		float out;
		HG__TRY(backend->copy_out(s->ctx, &out, p.out + part * p.chunks + chunk, sizeof out));
		found += static_cast<double>(out);
	}
	const double terms = static_cast<double>(count * bytes) /
	                     static_cast<double>(hg_dtype_size(s->x.dtype)),
	             bound = hg__bound_sum_f32(terms, magnitude);
	if (fabs(found - exact) <= bound)
		return HG_OK;
	return hg__fail(s->ctx, HG_ERR_INTERNAL,
	                "gather: chunk %lld sums up to %.9g, expected %.9g +- %.3g",
	                static_cast<long long>(chunk), found, exact, bound);
}

static hg_status measure(const struct setting *s, int repeat, struct gather *result)
{
	struct shape best = {};
	struct launch launch;
	double ms;
	HG__TRY(fastest(s, &best, &result->shapes));
	HG__TRY(launch_of(s, &best, &launch));
	HG__TRY(sample(s->ctx, &launch, 1, 1, nullptr, &ms));
	const int runs = ms < SAMPLE_MS ? static_cast<int>(SAMPLE_MS / std::max(ms, 0.002)) + 1 : 1;
	HG__TRY(sample(s->ctx, &launch, repeat, runs, result->ms_each, &ms));
	(void)snprintf(result->shape, sizeof result->shape,
	               "%d lanes, %u parts, %d deep, %s ids, chunks of %lld%s", 1 << best.lanes,
	               launch.grid.y, depth_of[best.depth], best.shuffled ? "shuffled" : "shared",
	               static_cast<long long>(chunk_of[best.chunk]), best.resident ? ", resident" : "");
	const int64_t last = launch.problem.chunks - 1, some[] = {0, last / 3, last / 3 * 2, last};
	for (int64_t chunk : some)
		HG__TRY(verify_chunk(s, &launch, chunk));
	return HG_OK;
}

/* Rows that are not whole pieces of 16 bytes (1, 2 or 4 columns) have no ceiling: result->shapes is
 * 0. */
hg_status gather_measure(hg_context *ctx, const struct hg__csr *csr, struct hg__mat x, int repeat,
                         struct gather *result)
{
	const int64_t size = static_cast<int64_t>(hg_dtype_size(x.dtype)), row_bytes = x.ld * size,
	              used = (x.cols * size + 15) / 16;
	*result = {};
	if (row_bytes % 16 || csr->m == 0 || x.dtype > HG_F32)
		return HG_OK;
	struct setting s = {ctx, csr, x, row_bytes, static_cast<int>(used), 0, nullptr};
	HG__CUDA(ctx, "gather: device",
	         cudaDeviceGetAttribute(&s.processors, cudaDevAttrMultiProcessorCount,
	                                static_cast<const hg__cuda_state *>(ctx->state)->device));
	/* room for the most chunks and the most parts */
	const size_t bytes =
	    static_cast<size_t>((csr->m + chunk_of[0] - 1) / chunk_of[0] * used) * sizeof(float);
	void *out = nullptr;
	HG__TRY(hg__device_alloc(ctx, bytes, "gather: result", &out));
	s.out = static_cast<float *>(out);
	const hg_status status = measure(&s, repeat, result);
	hg__device_free(ctx, out, bytes);
	return status;
}
