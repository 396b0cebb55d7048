/* The two kernels of an optimiser step, for all parameters at once and without a word from the host:
 *
 *     grad_check    g = grad / scale;  nonfinite, first_nonfinite, grad_sq = sum g^2 (f64); clip and bias corrections (kernels/optim.h)
 *     optim_update  if nonfinite == 0, with g = grad / scale * clip and t = applied + 1
 *         SGD       g += decay p;  m = momentum m + g;  p -= lr (nesterov ? g + momentum m : m)                 (m starts at 0)
 *         Adam      g += decay p;  m += (1 - b1)(g - m);  v = b2 v + (1 - b2) g^2;  p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *         AdamW     p *= 1 - lr decay, then Adam without decay
 *                   then the loss scale's transition; step += 1; a note of it all
 *
 * Whether a step is skipped, and how much it is clipped, follows from all gradients, so there are two kernels; in each the last block to finish has the last
 * word (totals.cuh). Work is cut into chunks of CHUNK elements of storage, one block each; a chunk belongs to one tensor. Padding is not changed. */

#include "kernels/cuda/totals.cuh"
#include "kernels/optim.h"

namespace
{

/* Eight elements a thread: where rows are whole packs, one pack. */
constexpr int PER_THREAD = 8;
constexpr int64_t CHUNK = static_cast<int64_t>(BLOCK) * PER_THREAD;
static_assert(CHUNK == HG__OPTIM_CHUNK, "a block takes a chunk");

int64_t all_chunks(const struct hg__optim_args *a)
{
	int64_t chunks = 0;
	for (int64_t i = 0; i < a->count; i++)
		chunks += hg__optim_chunks(&a->host[i]);
	return chunks;
}

/* A block's chunk: its tensor and first element. All threads look up sizes, BLOCK tensors at a time, and count them off together. */
struct place {
	int64_t tensor, first;
};
__device__ struct place place_of(const struct hg__optim_tensor *tensors, int64_t count, int64_t chunk)
{
	__shared__ int64_t chunks[BLOCK];
	for (int64_t base = 0;; base += BLOCK) {
		const int64_t mine = base + threadIdx.x;
		__syncthreads(); /* the round before may still be reading */
		chunks[threadIdx.x] = mine < count ? hg__optim_chunks(&tensors[mine]) : 0;
		__syncthreads();
		for (int i = 0; i < BLOCK; i++) {
			if (chunk < chunks[i])
				return {base + i, chunk * CHUNK};
			chunk -= chunks[i];
		}
	}
}

/* f.pack<W>(i, live) for this thread's packs of the chunk: storage i .. i+W-1, of which the first `live` are no padding. */
template <int W, typename F> __device__ void each_pack(const struct hg__optim_tensor &t, int64_t first, const F &f)
{
#pragma unroll
	for (int k = 0; k < PER_THREAD / W; k++) {
		const int64_t i = first + (static_cast<int64_t>(k) * BLOCK + threadIdx.x) * W, left = t.cols - i % t.ld;
		if (i < t.rows * t.ld && left > 0)
			f.template pack<W>(i, left < W ? static_cast<int>(left) : W);
	}
}
template <typename F> __device__ void each_element(const struct hg__optim_tensor &t, int64_t first, const F &f)
{
	if (t.ld % 8 == 0)
		each_pack<8>(t, first, f);
	else
		each_pack<1>(t, first, f);
}

/* ---- check ---- */

struct grad_total {
	double square;
	int64_t nonfinite, rank; /* tensors from the first one with a non-finite gradient to the last; 0: there is none */

	__device__ void add(const grad_total &o)
	{
		square += o.square;
		nonfinite += o.nonfinite;
		rank = rank > o.rank ? rank : o.rank;
	}
};
static_assert(sizeof(grad_total) == sizeof(double) + 2 * sizeof(int64_t), "what hg__optim_bytes counts");

struct look {
	const float *grad;
	float scale;
	grad_total *mine;

	template <int W> __device__ void pack(int64_t i, int live) const
	{
		float g[W];
		load<W>(grad + i, g);
#pragma unroll
		for (int k = 0; k < W; k++) {
			const float x = k < live ? g[k] / scale : 0.0f;
			mine->square += static_cast<double>(x) * static_cast<double>(x);
			mine->nonfinite += !(fabsf(x) < INFINITY);
		}
	}
};

struct record_check {
	struct hg__step *step;
	hg_optim_config config;
	int64_t count;

	__device__ void finish(const grad_total &total) const
	{
		step->nonfinite = total.nonfinite;
		step->first_nonfinite = total.rank > 0 ? count - total.rank : -1;
		step->grad_sq = total.square;
		hg__step_decide(step, &config);
	}
};

/* One block more than no chunk at all: the result has to be written. */
__global__ void __launch_bounds__(BLOCK)
    check_kernel(const struct hg__optim_tensor *tensors, int64_t chunks, struct record_check record, struct meeting<grad_total> at)
{
	grad_total mine = {};
	const float scale = record.step->scale.scale;
	if (chunks > 0) {
		const struct place p = place_of(tensors, record.count, blockIdx.x);
		each_element(tensors[p.tensor], p.first, look{tensors[p.tensor].grad, scale, &mine});
		mine.rank = mine.nonfinite > 0 ? record.count - p.tensor : 0;
	}
	fold(mine, at, blockIdx.x, gridDim.x, record);
}

/* ---- update ---- */

/* Each returns the new p and updates m and v in place. Without a moment (m = 0, momentum = 0, see rates_for) m is g. */
struct sgd {
	static __device__ float update(const struct hg__rates &r, float p, float grad, float &m, float &)
	{
		const float g = grad + r.decay * p;
		m = r.momentum * m + g;
		return p - r.lr * (r.nesterov ? g + r.momentum * m : m);
	}
};

__device__ float moments(const struct hg__rates &r, float p, float grad, float &m, float &v, float decay, float shrink)
{
	const float g = grad + decay * p;
	m = m + r.rest1 * (g - m);
	v = r.beta2 * v + r.rest2 * g * g;
	return p * shrink - r.size * (m / (sqrtf(v) / r.root2 + r.eps));
}
struct adam {
	static __device__ float update(const struct hg__rates &r, float p, float grad, float &m, float &v)
	{
		return moments(r, p, grad, m, v, r.decay, 1.0f);
	}
};
struct adamw {
	static __device__ float update(const struct hg__rates &r, float p, float grad, float &m, float &v)
	{
		return moments(r, p, grad, m, v, 0.0f, 1.0f - r.lr * r.decay);
	}
};

__device__ struct hg__rates rates_for(const hg_optim_config &config, const struct hg__optim_group *groups, const struct hg__step *step,
                                      const struct hg__optim_tensor &t)
{
	struct hg__rates r = hg__rates_of(&config, &groups[t.group], step);
	r.momentum = t.m ? r.momentum : 0.0f;
	r.nesterov = t.m ? r.nesterov : 0;
	return r;
}

/* The master's new value, and the working copy narrowed from it once. What is no element keeps its value. */
template <typename M> struct renew {
	struct hg__optim_tensor t;
	struct hg__rates r;

	template <int W> __device__ void pack(int64_t i, int live) const
	{
		float p[W], g[W], m[W] = {}, v[W] = {};
		load<W>(t.master + i, p);
		load<W>(t.grad + i, g);
		if (t.m)
			load<W>(t.m + i, m);
		if (t.v)
			load<W>(t.v + i, v);
#pragma unroll
		for (int k = 0; k < W; k++)
			if (k < live)
				p[k] = M::update(r, p[k], g[k] / r.scale * r.clip, m[k], v[k]);
		store<W>(t.master + i, p);
		if (t.m)
			store<W>(t.m + i, m);
		if (t.v)
			store<W>(t.v + i, v);
		if (t.working)
			floats{t.working, t.ld, t.working_dtype == HG_F16}.put<W>(i, p);
	}
};

template <typename M> __global__ void __launch_bounds__(BLOCK) update_kernel(const struct hg__optim_args a, int64_t chunks, unsigned *counter)
{
	if (chunks > 0 && a.step->nonfinite == 0) {
		const struct place p = place_of(a.tensors, a.count, blockIdx.x);
		const struct hg__optim_tensor t = a.tensors[p.tensor];
		each_element(t, p.first, renew<M>{t, rates_for(a.config, a.groups, a.step, t)});
	}
	if (is_last(counter, gridDim.x) && threadIdx.x == 0)
		hg__step_close(a.step, a.loss, a.notes);
}

template <typename M> hg_status update(hg_context *ctx, const struct hg__optim_args *a)
{
	const int64_t chunks = all_chunks(a);
	update_kernel<M><<<grid_for(chunks, 1), BLOCK, 0, stream_of(ctx)>>>(*a, chunks, counters_of(ctx));
	return launched(ctx, "optim_update");
}

/* In the order of hg_optim_kind. */
constexpr hg_status (*updates[])(hg_context *, const struct hg__optim_args *) = {update<sgd>, update<adam>, update<adamw>};

} // namespace

extern "C" hg_status hg__cuda_grad_check(hg_context *ctx, const struct hg__optim_args *a)
{
	const int64_t chunks = all_chunks(a);
	const unsigned blocks = grid_for(chunks, 1);
	struct meeting<grad_total> at;
	HG__TRY(meet(ctx, blocks, &at));
	check_kernel<<<blocks, BLOCK, 0, stream_of(ctx)>>>(a->tensors, chunks, record_check{a->step, a->config, a->count}, at);
	return launched(ctx, "grad_check");
}

extern "C" hg_status hg__cuda_optim_update(hg_context *ctx, const struct hg__optim_args *a)
{
	return updates[a->config.kind](ctx, a);
}
