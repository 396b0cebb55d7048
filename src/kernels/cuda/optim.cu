/* The three kernels of an optimiser step, for all parameters at once and without a word from the host:
 *
 *     grad_check    g = grad / scale;  nonfinite, first_nonfinite, grad_sq = sum g^2 (f64)
 *     optim_update  if nonfinite == 0, with t = applied + 1
 *         SGD       g += decay p;  m = momentum m + g;  p -= lr (nesterov ? g + momentum m : m)                 (m starts at 0)
 *         Adam      g += decay p;  m += (1 - b1)(g - m);  v = b2 v + (1 - b2) g^2;  p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *         AdamW     p *= 1 - lr decay, then Adam without decay
 *     scale_update  the loss scale's transition; step += 1; a note of it all
 *
 * Work is cut into chunks of CHUNK elements of storage, one block each; a chunk belongs to one tensor. Padding is neither looked at nor written. */

#include "kernels/cuda/totals.cuh"
#include "precision/scaler.h"

namespace
{

/* Eight elements a thread: the search for the tensor and the powers of beta are paid once for 2048 elements. */
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

/* f(i) for this thread's elements of the chunk. */
template <typename F> __device__ void each_element(const struct hg__optim_tensor &t, int64_t first, F f)
{
#pragma unroll
	for (int k = 0; k < PER_THREAD; k++) {
		const int64_t i = first + k * BLOCK + threadIdx.x;
		if (i < t.rows * t.ld && i % t.ld < t.cols)
			f(i);
	}
}

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

__global__ void check_kernel(const struct hg__optim_tensor *tensors, int64_t count, const struct hg__step *step, grad_total *partial)
{
	const struct place p = place_of(tensors, count, blockIdx.x);
	const float scale = step->scale.scale;
	const float *grad = tensors[p.tensor].grad;
	grad_total mine = {};
	each_element(tensors[p.tensor], p.first, [&](int64_t i) {
		const float g = grad[i] / scale;
		mine.square += static_cast<double>(g) * static_cast<double>(g);
		mine.nonfinite += !(fabsf(g) < INFINITY);
	});
	mine.rank = mine.nonfinite > 0 ? count - p.tensor : 0;
	const grad_total total = block_total(mine);
	if (threadIdx.x == 0)
		partial[blockIdx.x] = total;
}

struct record_check {
	struct hg__step *step;
	int64_t count;

	__device__ void finish(const grad_total &total) const
	{
		step->nonfinite = total.nonfinite;
		step->first_nonfinite = total.rank > 0 ? count - total.rank : -1;
		step->grad_sq = total.square;
	}
};

/* The numbers of one step of one tensor: rest = 1 - beta, root2 = sqrt(1 - beta2^t), size = lr / (1 - beta1^t). */
struct rates {
	float scale, lr, decay, momentum, beta2, rest1, rest2, eps, root2, size;
	int nesterov;
};
__device__ struct rates rates_of(const hg_optim_config &c, const struct hg__optim_group &group, const hg_loss_scale &scale)
{
	const double t = static_cast<double>(scale.applied + 1), beta1 = static_cast<double>(c.beta1), beta2 = static_cast<double>(c.beta2);
	struct rates r;
	r.scale = scale.scale;
	r.lr = group.lr;
	r.decay = group.weight_decay;
	r.momentum = c.momentum;
	r.beta2 = c.beta2;
	r.rest1 = static_cast<float>(1.0 - beta1);
	r.rest2 = static_cast<float>(1.0 - beta2);
	r.eps = c.eps;
	r.root2 = static_cast<float>(sqrt(1.0 - pow(beta2, t)));
	r.size = static_cast<float>(static_cast<double>(group.lr) / (1.0 - pow(beta1, t)));
	r.nesterov = c.nesterov;
	return r;
}

struct sgd {
	static __device__ float update(const struct rates &r, const struct hg__optim_tensor &t, int64_t i)
	{
		float g = t.grad[i] / r.scale + r.decay * t.master[i];
		if (t.m) {
			t.m[i] = r.momentum * t.m[i] + g;
			g = r.nesterov ? g + r.momentum * t.m[i] : t.m[i];
		}
		return t.master[i] - r.lr * g;
	}
};

__device__ float moments(const struct rates &r, const struct hg__optim_tensor &t, int64_t i, float decay, float shrink)
{
	const float p = t.master[i], g = t.grad[i] / r.scale + decay * p, m = t.m[i] + r.rest1 * (g - t.m[i]), v = r.beta2 * t.v[i] + r.rest2 * g * g;
	t.m[i] = m;
	t.v[i] = v;
	return p * shrink - r.size * (m / (sqrtf(v) / r.root2 + r.eps));
}

struct adam {
	static __device__ float update(const struct rates &r, const struct hg__optim_tensor &t, int64_t i)
	{
		return moments(r, t, i, r.decay, 1.0f);
	}
};
struct adamw {
	static __device__ float update(const struct rates &r, const struct hg__optim_tensor &t, int64_t i)
	{
		return moments(r, t, i, 0.0f, 1.0f - r.lr * r.decay);
	}
};

/* The working copy of an element, narrowed once. */
__device__ void refresh(const struct hg__optim_tensor &t, int64_t i, float p)
{
	if (!t.working)
		return;
	if (t.working_dtype == HG_F16)
		static_cast<__half *>(t.working)[i] = narrow<__half>(p);
	else
		static_cast<float *>(t.working)[i] = p;
}

template <typename M>
__global__ void update_kernel(hg_optim_config config, const struct hg__optim_tensor *tensors, int64_t count, const struct hg__optim_group *groups,
                              const struct hg__step *step)
{
	__shared__ struct rates r;
	if (step->nonfinite != 0)
		return;
	const struct place p = place_of(tensors, count, blockIdx.x);
	const struct hg__optim_tensor t = tensors[p.tensor];
	if (threadIdx.x == 0)
		r = rates_of(config, groups[t.group], step->scale);
	__syncthreads();
	each_element(t, p.first, [&](int64_t i) {
		const float w = M::update(r, t, i);
		t.master[i] = w;
		refresh(t, i, w);
	});
}

template <typename M> hg_status update(hg_context *ctx, const struct hg__optim_args *a)
{
	const int64_t chunks = all_chunks(a);
	if (chunks == 0)
		return HG_OK;
	update_kernel<M><<<static_cast<unsigned>(chunks), BLOCK, 0, stream_of(ctx)>>>(a->config, a->tensors, a->count, a->groups, a->step);
	return launched(ctx, "optim_update");
}

/* In the order of hg_optim_kind. */
constexpr hg_status (*updates[])(hg_context *, const struct hg__optim_args *) = {update<sgd>, update<adam>, update<adamw>};

__global__ void scale_kernel(struct hg__step *step, const float *loss, struct hg__step_notes *notes)
{
	step->reason = static_cast<int32_t>(hg__loss_scale_step(&step->scale, &step->config, step->nonfinite != 0));
	step->step++;
	if (notes)
		notes->note[notes->taken++ % HG__NOTES] = hg__step_note_of(step, *loss);
}

} // namespace

extern "C" hg_status hg__cuda_grad_check(hg_context *ctx, const struct hg__optim_args *a)
{
	const int64_t chunks = all_chunks(a);
	void *memory;
	static_assert(sizeof(grad_total) == sizeof(double) + 2 * sizeof(int64_t), "what hg__optim_bytes counts");
	HG__TRY(hg__workspace(ctx, hg__optim_bytes(a->host, a->count), &memory));
	grad_total *partial = static_cast<grad_total *>(memory);
	if (chunks > 0) {
		check_kernel<<<static_cast<unsigned>(chunks), BLOCK, 0, stream_of(ctx)>>>(a->tensors, a->count, a->step, partial);
		HG__TRY(launched(ctx, "grad_check"));
	}
	return fold(ctx, "grad_check", partial, chunks, record_check{a->step, a->count});
}

extern "C" hg_status hg__cuda_optim_update(hg_context *ctx, const struct hg__optim_args *a)
{
	return updates[a->config.kind](ctx, a);
}

extern "C" hg_status hg__cuda_scale_update(hg_context *ctx, const struct hg__optim_args *a)
{
	scale_kernel<<<1, 1, 0, stream_of(ctx)>>>(a->step, a->loss, a->notes);
	return launched(ctx, "scale_update");
}
