/* The two kernels of an optimiser step, for all parameters at once and without the host:
 *
 *     grad_check    g = grad / scale;  nonfinite, first_nonfinite, grad_sq = sum g^2 (f64); clip
 *                   and bias corrections (kernels/optim.h)
 *     optim_update  if nonfinite == 0 and no guard has found an overflow, with
 *                   g = grad / scale * clip and t = applied + 1:
 *         SGD       g += decay p;  m = momentum m + g;  p -= lr (nesterov ? g + momentum m : m)
 *                   (m starts at 0)
 *         Adam      g += decay p;  m += (1 - b1)(g - m);  v = b2 v + (1 - b2) g^2;
 *                   p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *         AdamW     p *= 1 - lr decay, then Adam without decay
 *                   Then the transition of the loss scale, step += 1, and the record of the step.
 *
 * Whether a step is skipped, and how much it is clipped, depends on all gradients, so there are two
 * kernels. In the first, the last block to finish decides (totals.cuh). Work is cut into chunks of
 * CHUNK elements of storage, one block each; a chunk belongs to one tensor. Padding does not
 * change.
 *
 * Work of one thread that does not depend on gradients runs in block 0, beside the other blocks
 * instead of after them: bias corrections in the first kernel, the transition and the record in the
 * second. */

#include "kernels/cuda/totals.cuh"
#include "kernels/optim.h"

namespace
{

/* Four elements per thread, 16 bytes where rows are whole packs. 90,000 parameters are 90 blocks,
 * and no thread waits for more than one round of loads. */
constexpr int PER_THREAD = 4;
constexpr int64_t CHUNK = static_cast<int64_t>(BLOCK) * PER_THREAD;
static_assert(CHUNK == HG__OPTIM_CHUNK, "a block takes a chunk");

template <int W> __device__ void read(const float *p, float (&x)[W])
{
	if constexpr (W == 1) {
		x[0] = *p;
	} else {
		const float4 four = *reinterpret_cast<const float4 *>(p);
		x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
	}
}
template <int W> __device__ void write(float *p, const float (&x)[W])
{
	if constexpr (W == 1)
		*p = x[0];
	else
		*reinterpret_cast<float4 *>(p) = make_float4(x[0], x[1], x[2], x[3]);
}
template <int W> __device__ void write(__half *p, const float (&x)[W])
{
	if constexpr (W == 1) {
		*p = __float2half_rn(x[0]);
	} else {
		const __half2 h[2] = {__floats2half2_rn(x[0], x[1]), __floats2half2_rn(x[2], x[3])};
		uint2 bits;
		memcpy(&bits, h, sizeof bits);
		*reinterpret_cast<uint2 *>(p) = bits;
	}
}

/* Blocks of both kernels: block 0, and one per chunk. */
int64_t block_count(const struct hg__optim_args *a)
{
	int64_t blocks = 1;
	for (int64_t i = 0; i < a->count; i++)
		blocks += hg__optim_chunks(&a->host[i]);
	return blocks;
}
unsigned blocks_of(const struct hg__optim_args *a)
{
	return grid_for(block_count(a), 1);
}

/* The tensor and first element of a block's chunk. Each warp searches by itself, 32 tensors at a
 * time, for the first tensor whose chunks, added to those before it, exceed the chunk number. */
struct chunk_start {
	int64_t tensor, first;
};
__device__ struct chunk_start chunk_of(const struct hg__optim_tensor *tensors, int64_t count,
                                       int chunk)
{
	const int lane = static_cast<int>(threadIdx.x % 32);
	for (int64_t base = 0;; base += 32) {
		const int mine =
		    base + lane < count ? static_cast<int>(hg__optim_chunks(&tensors[base + lane])) : 0;
		int end = mine;
#pragma unroll
		for (int step = 1; step < 32; step *= 2) {
			const int before = __shfl_up_sync(0xffffffffu, end, step);
			end += lane >= step ? before : 0;
		}
		const unsigned beyond = __ballot_sync(0xffffffffu, chunk < end);
		if (beyond) {
			const int found = __ffs(static_cast<int>(beyond)) - 1;
			return {base + found, (chunk - __shfl_sync(0xffffffffu, end - mine, found)) * CHUNK};
		}
		chunk -= __shfl_sync(0xffffffffu, end, 31);
	}
}

/* Pack k of this thread in the chunk: storage i .. i+W-1, of which the first `live` are elements
 * and not padding. live 0: there is no such pack. */
struct span {
	int64_t i;
	int live;
};
template <int W>
__device__ struct span span_of(const struct hg__optim_tensor &t, int64_t first, int k)
{
	const int64_t i = first + (static_cast<int64_t>(k) * BLOCK + threadIdx.x) * W;
	if (i >= t.rows * t.ld)
		return {i, 0};
	if (t.cols == t.ld)
		return {i, W};
	/* A 32-bit division takes a fifth of the time. */
	const int64_t col =
	    i <= INT32_MAX && t.ld <= INT32_MAX
	        ? static_cast<int64_t>(static_cast<unsigned>(i) % static_cast<unsigned>(t.ld))
	        : i % t.ld;
	const int64_t left = t.cols - col;
	return {i, left < 0 ? 0 : left < W ? static_cast<int>(left) : W};
}

/* ---- check ---- */

struct grad_total {
	double square;
	/* number of tensors from the first one with a non-finite gradient to the last; 0: there is none
	 */
	int64_t nonfinite, rank;

	__device__ void add(const grad_total &o)
	{
		square += o.square;
		nonfinite += o.nonfinite;
		rank = rank > o.rank ? rank : o.rank;
	}
};

template <int W>
__device__ void check_chunk(const struct hg__optim_tensor &t, int64_t first, float scale,
                            grad_total &mine)
{
#pragma unroll
	for (int k = 0; k < PER_THREAD / W; k++) {
		const struct span s = span_of<W>(t, first, k);
		float g[W] = {};
		if (s.live > 0)
			read<W>(t.grad + s.i, g);
#pragma unroll
		for (int j = 0; j < W; j++) {
			const float x = j < s.live ? g[j] / scale : 0.0f;
			mine.square += static_cast<double>(x) * static_cast<double>(x);
			mine.nonfinite += !(fabsf(x) < INFINITY);
		}
	}
}

struct record_check {
	struct hg__step *step;
	hg_optim_config config;
	int64_t count;

	__device__ void finish(const grad_total &total) const
	{
		if (step->stop)
			return;
		step->nonfinite = total.nonfinite;
		step->first_nonfinite = total.rank > 0 ? count - total.rank : -1;
		step->grad_sq = total.square;
		hg__step_decide(step, &config);
	}
};

__global__ void __launch_bounds__(BLOCK)
    check_kernel(const struct hg__optim_tensor *tensors, struct record_check record,
                 struct partial_results<grad_total> at)
{
	after_previous();
	grad_total mine = {};
	const float scale = record.step->scale.scale;
	if (blockIdx.x > 0) {
		const struct chunk_start p =
		    chunk_of(tensors, record.count, static_cast<int>(blockIdx.x) - 1);
		const struct hg__optim_tensor t = tensors[p.tensor];
		if (t.ld % 4 == 0)
			check_chunk<4>(t, p.first, scale, mine);
		else
			check_chunk<1>(t, p.first, scale, mine);
		mine.rank = mine.nonfinite > 0 ? record.count - p.tensor : 0;
	} else if (threadIdx.x == 0) {
		hg__step_begin(record.step, &record.config);
	}
	fold_blocks(mine, at, blockIdx.x, gridDim.x, record);
}

/* ---- update ---- */

/* Each returns the new p and updates m and v in place. If a tensor has no moment (m = 0, momentum =
 * 0, see rates_for), m becomes g. */
struct sgd {
	static __device__ float update(const struct hg__rates &r, float p, float grad, float &m,
	                               float &)
	{
		const float g = grad + r.decay * p;
		m = r.momentum * m + g;
		return p - r.lr * (r.nesterov ? g + r.momentum * m : m);
	}
};

__device__ float moments(const struct hg__rates &r, float p, float grad, float &m, float &v,
                         float decay, float shrink)
{
	const float g = grad + decay * p;
	m = m + r.rest1 * (g - m);
	v = r.beta2 * v + r.rest2 * g * g;
	return p * shrink - r.size * (m / (sqrtf(v) / r.root2 + r.eps));
}
struct adam {
	static __device__ float update(const struct hg__rates &r, float p, float grad, float &m,
	                               float &v)
	{
		return moments(r, p, grad, m, v, r.decay, 1.0f);
	}
};
struct adamw {
	static __device__ float update(const struct hg__rates &r, float p, float grad, float &m,
	                               float &v)
	{
		return moments(r, p, grad, m, v, 0.0f, 1.0f - r.lr * r.decay);
	}
};

__device__ struct hg__rates rates_for(const hg_optim_config &config,
                                      const struct hg__optim_group *groups,
                                      const struct hg__step *step, const struct hg__optim_tensor &t)
{
	struct hg__rates r = hg__rates_of(&config, &groups[t.group], step);
	r.momentum = t.m ? r.momentum : 0.0f;
	r.nesterov = t.m ? r.nesterov : 0;
	return r;
}

/* Updates the master weights, and narrows the working copy from them once. Padding keeps its value.
 * All loads are in flight before the first value is used. */
template <typename M, int W>
__device__ void update_chunk(const struct hg__optim_args &a, const struct hg__optim_tensor &t,
                             int64_t tensor, int64_t first)
{
	constexpr int PACKS = PER_THREAD / W;
	struct span s[PACKS];
	float p[PACKS][W], g[PACKS][W], m[PACKS][W] = {}, v[PACKS][W] = {};
#pragma unroll
	for (int k = 0; k < PACKS; k++) {
		s[k] = span_of<W>(t, first, k);
		if (s[k].live == 0)
			continue;
		read<W>(t.master + s[k].i, p[k]);
		read<W>(t.grad + s[k].i, g[k]);
		if (t.m)
			read<W>(t.m + s[k].i, m[k]);
		if (t.v)
			read<W>(t.v + s[k].i, v[k]);
	}
	const struct hg__rates r = rates_for(a.config, a.groups, a.step, t);
	if (hg__step_is_bad(a.step))
		return;
	bool beyond = false;
#pragma unroll
	for (int k = 0; k < PACKS; k++) {
		if (s[k].live == 0)
			continue;
#pragma unroll
		for (int j = 0; j < W; j++)
			if (j < s[k].live) {
				p[k][j] = M::update(r, p[k][j], g[k][j] / r.scale * r.clip, m[k][j], v[k][j]);
				beyond |= !(fabsf(p[k][j]) <= t.reach);
			}
		write<W>(t.master + s[k].i, p[k]);
		if (t.m)
			write<W>(t.m + s[k].i, m[k]);
		if (t.v)
			write<W>(t.v + s[k].i, v[k]);
		if (t.working && t.working_dtype == HG_F16)
			write<W>(static_cast<__half *>(t.working) + s[k].i, p[k]);
		else if (t.working)
			write<W>(static_cast<float *>(t.working) + s[k].i, p[k]);
	}
	if (beyond) /* rare; the smallest tensor number wins, in any order */
		atomicMin(&a.step->outgrown, static_cast<int>(tensor));
}

/* Prefetches the cache line of *p. hg__step_close reads one value after the other, and would
 * otherwise wait for memory each time. */
__device__ void prefetch(const void *p)
{
	asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(p)));
}
__device__ void close_step(const struct hg__optim_args &a)
{
	prefetch(&a.step->scale.steps);
	prefetch(&a.step->config.growth_interval);
	prefetch(&a.step->nonfinite);
	if (a.notes)
		prefetch(&a.notes->taken);
	if (a.loss)
		prefetch(a.loss);
	hg__step_close(a.step, a.loss, a.notes, a.stops);
}

template <typename M>
__global__ void __launch_bounds__(BLOCK)
    update_kernel(const __grid_constant__ struct hg__optim_args a)
{
	after_previous();
	if (blockIdx.x == 0) {
		if (threadIdx.x == 0)
			close_step(a);
		return;
	}
	const struct chunk_start p = chunk_of(a.tensors, a.count, static_cast<int>(blockIdx.x) - 1);
	const struct hg__optim_tensor t = a.tensors[p.tensor];
	if (t.ld % 4 == 0)
		update_chunk<M, 4>(a, t, p.tensor, p.first);
	else
		update_chunk<M, 1>(a, t, p.tensor, p.first);
}

template <typename M> hg_status launch_update(hg_context *ctx, const struct hg__optim_args *a)
{
	return launch(ctx, "optim_update", update_kernel<M>, blocks_of(a), BLOCK, *a);
}

/* In the order of hg_optim_kind. */
constexpr hg_status (*updates[HG__OPTIMISERS])(hg_context *, const struct hg__optim_args *) = {
    launch_update<sgd>, launch_update<adam>, launch_update<adamw>};
static_assert(every(updates, [](auto update) { return update != nullptr; }), "a hole");

} // namespace

size_t hg__cuda_grad_check_workspace(const hg_context *, const struct hg__optim_args *a)
{
	return static_cast<size_t>(block_count(a)) * sizeof(grad_total);
}

extern "C" hg_status hg__cuda_grad_check(hg_context *ctx, const struct hg__optim_args *a)
{
	const unsigned blocks = blocks_of(a);
	struct partial_results<grad_total> at;
	HG__TRY(reserve_partials(ctx, blocks, &at));
	return launch(ctx, "grad_check", check_kernel, blocks, BLOCK, a->tensors,
	              record_check{a->step, a->config, a->count}, at);
}

HG__NO_WORKSPACE(optim_update, optim_args)

extern "C" hg_status hg__cuda_optim_update(hg_context *ctx, const struct hg__optim_args *a)
{
	HG__TRY(hg__has_number(ctx, "optim_update", "optimiser", a->config.kind, HG__OPTIMISERS));
	return updates[a->config.kind](ctx, a);
}
