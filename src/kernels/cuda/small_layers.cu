/* Several layers of graph convolution on a batch of small graphs (kernels/small_layers.h), forward.
 * A warp takes one bin after the other through all layers (small_layers.cuh), and a kernel of their
 * own large bins, each of which takes a block (small_layers_large.cuh). */

#include "kernels/cuda/small_layers_large.cuh"
#include "kernels/cuda/small_layers_readout.cuh"

namespace
{

using namespace small;

/* The blocks that fit a multiprocessor. Rows of 64 columns take more than 128 registers a
 * thread. */
constexpr int blocks_at_once(int wide)
{
	return wide == 4 ? 1 : 2;
}
constexpr int MULTIPROCESSORS = 132; /* of an H200 */

struct forward_args {
	struct layers all;
	struct entries a;
	const int32_t *first;
	int bins;
	struct rows x;
	void *kept;
	const int64_t *step;
	unsigned long long *word;
	unsigned *far; /* for large bins: memory for each entry of A */
	struct readout readout;
};

/* Shared memory of a warp, for a strip of A and then for the rows that are read out. */
template <int WIDE>
constexpr size_t OWN_BYTES = STATE_BYTES<WIDE> > STRIP_BYTES ? STATE_BYTES<WIDE> : STRIP_BYTES;

/* The shared memory of a block. rest: what is left behind the weights and biases. */
template <int WIDE> struct memory {
	__half *w;
	float4 *b;
	unsigned char *rest;

	__device__ memory(unsigned char *at, const struct layers &all)
	{
		w = reinterpret_cast<__half *>(at);
		b = reinterpret_cast<float4 *>(w + all.matrices * weights<WIDE>::HALVES);
		rest = reinterpret_cast<unsigned char *>(b + all.count * weights<WIDE>::BIASES);
	}
};

/* One bin through all layers. own: the rows of this warp; h: those of X. keep: makes the struct
 * kept of a layer. */
template <int WIDE, bool GUARDS, bool ANY_SELF, typename A, typename Keep>
__device__ void run_bin(const struct forward_args &g, const struct memory<WIDE> &m, const A &a,
                        const struct bin &own, const Keep &keep, struct by_node<WIDE> &h)
{
#pragma unroll 1
	for (int l = 0; l < g.all.count; l++) {
		const struct layer &of = g.all.of[l];
		run_any<GUARDS, ANY_SELF>(of, a, m.w + of.w * weights<WIDE>::HALVES,
		                          m.b + l * weights<WIDE>::BIASES, own, keep(l), g.word, h);
		if (of.y)
			store_bin(rows_of(of.y, of.y_ld, of.out), own, h);
	}
}

template <int WIDE, bool GUARDS, bool ANY_SELF>
__global__ void __launch_bounds__(THREADS, blocks_at_once(WIDE))
    forward_kernel(const __grid_constant__ forward_args g)
{
	extern __shared__ __align__(16) unsigned char bytes[];
	const struct memory<WIDE> m(bytes, g.all);
	const int warp = static_cast<int>(threadIdx.x / 32), blocks = static_cast<int>(gridDim.x);
	unsigned char *own = m.rest + warp * OWN_BYTES<WIDE>;
	after_previous();
	load_weights<WIDE>(g.all, m.w, m.b);
	__syncthreads();
	if (g.readout.y.data)
		read_out_empty(g.readout);
	const int64_t step = g.step ? *g.step : 0;
	const int bins = g.first[g.bins + 1];
	for (int k = static_cast<int>(blockIdx.x) + warp * blocks; k < bins; k += WARPS * blocks) {
		const struct bin bin = {g.first[k], g.first[k + 1] - g.first[k]};
		const auto keep = [&](int l) {
			return kept<WIDE>{kept_at<WIDE>(g.kept, g.all, k, l), false, step};
		};
		struct by_node<WIDE> h;
		struct adjacency a;
		if (hg__bin_is_large(bin.rows))
			continue;
		load_bin(g.x, bin, h);
		build_adjacency(g.a, bin, reinterpret_cast<__half *>(own), a);
		run_bin<WIDE, GUARDS, ANY_SELF>(g, m, a, bin, keep, h);
		if (!g.readout.y.data)
			continue;
		save(h, shared_address(own));
		read_out<WIDE>(g.readout, bin, own, 0, 1, g.word);
		__syncwarp();
	}
}

/* Elements that dropout keeps are drawn again by backward. */
template <int WIDE, bool GUARDS>
__global__ void __launch_bounds__(THREADS, blocks_at_once(WIDE))
    large_kernel(const __grid_constant__ forward_args g)
{
	extern __shared__ __align__(16) unsigned char bytes[];
	const struct memory<WIDE> m(bytes, g.all);
	after_previous();
	load_weights<WIDE>(g.all, m.w, m.b);
	const int64_t step = g.step ? *g.step : 0;
	const auto keep = [&](int) { return kept<WIDE>{nullptr, false, step}; };
	const int warp = static_cast<int>(threadIdx.x / 32);
	__half *strip = reinterpret_cast<__half *>(m.rest + LARGE_BYTES<WIDE> + warp * STRIP_BYTES);
	struct large_bins list = large_bins_of<WIDE>(g.first, g.bins, m.rest);
	for (int k = list.next(); k >= 0; k = list.next()) {
		struct large_adjacency<WIDE> a = large_part<WIDE>(m.rest, g.first[k], g.first[k + 1]);
		struct by_node<WIDE> h;
		load_bin(g.x, a.own, h);
		a.build(g.a, g.far, strip);
		run_bin<WIDE, GUARDS, true>(g, m, a, a.own, keep, h);
		if (!g.readout.y.data)
			continue;
		save(h, shared_address(a.rows + warp * STATE_BYTES<WIDE>));
		__syncthreads();
		read_out<WIDE>(g.readout, a.all, a.rows, warp, WARPS, g.word);
		__syncthreads();
	}
}

template <int WIDE, bool GUARDS> const void *kernel_of(const struct layers &all)
{
	return any_self(all) ? reinterpret_cast<const void *>(forward_kernel<WIDE, GUARDS, true>)
	                     : reinterpret_cast<const void *>(forward_kernel<WIDE, GUARDS, false>);
}
hg_status zero(hg_context *ctx, const struct hg__mat &y)
{
	const size_t bytes = static_cast<size_t>(y.rows * y.ld) * sizeof(__half);
	return bytes ? ctx->backend->fill(ctx, y.data, 0, bytes) : HG_OK;
}
hg_status queue(hg_context *ctx, const void *kernel, int blocks, const struct forward_args &g,
                size_t shared)
{
	struct forward_args copy = g;
	void *args[] = {&copy};
	HG__CUDA(ctx, "small_layers",
	         cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
	                              static_cast<int>(shared)));
	return cuda_status(
	    ctx, queue_kernel(ctx, kernel, 1, static_cast<unsigned>(blocks), THREADS, args, shared),
	    "small_layers");
}
/* large: the blocks for large bins. */
template <int WIDE> hg_status run(hg_context *ctx, const struct forward_args &g, int large)
{
	constexpr int BLOCKS = MULTIPROCESSORS * blocks_at_once(WIDE);
	const size_t of_weights = weights<WIDE>::bytes(g.all);
	const void *large_one = g.word ? reinterpret_cast<const void *>(large_kernel<WIDE, true>)
	                               : reinterpret_cast<const void *>(large_kernel<WIDE, false>);
	HG__TRY(queue(ctx, g.word ? kernel_of<WIDE, true>(g.all) : kernel_of<WIDE, false>(g.all),
	              g.bins < BLOCKS ? g.bins : BLOCKS, g, of_weights + WARPS * OWN_BYTES<WIDE>));
	return large ? queue(ctx, large_one, large, g,
	                     of_weights + LARGE_BYTES<WIDE> + WARPS * STRIP_BYTES)
	             : HG_OK;
}

} // namespace

hg_status hg__cuda_small_layers(hg_context *ctx, const struct hg__small_layers_args *a)
{
	HG__TRY(hg__small_layers_supported(ctx, a));
	struct forward_args g = {};
	g.all = layers_of(a);
	g.a = entries_of(a);
	g.first = a->bins->first;
	g.bins = static_cast<int>(a->bins->bins);
	g.x = rows_of(a->x);
	g.kept = a->kept.data;
	for (int l = 0; l < a->layers; l++) {
		const struct hg__small_layer &of = a->layer[l];
		if (of.act_drop.p > 0.0f)
			g.step = of.act_drop.step;
		if (of.inner.word)
			g.word = reinterpret_cast<unsigned long long *>(of.inner.word);
		if (of.result.word)
			g.word = reinterpret_cast<unsigned long long *>(of.result.word);
	}
	g.readout = readout_of(a->readout);
	if (a->readout.result.word)
		g.word = reinterpret_cast<unsigned long long *>(a->readout.result.word);
	if (g.bins == 0) /* no graph has a node */
		return g.readout.y.data ? zero(ctx, a->readout.y) : HG_OK;
	void *workspace = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_small_layers_workspace(ctx, a), &workspace));
	g.far = static_cast<unsigned *>(workspace);
	return hg__small_width_of(a) == 64
	           ? run<4>(ctx, g, large_blocks(a, MULTIPROCESSORS * blocks_at_once(4)))
	           : run<2>(ctx, g, large_blocks(a, MULTIPROCESSORS * blocks_at_once(2)));
}

size_t hg__cuda_small_layers_workspace(const hg_context *, const struct hg__small_layers_args *a)
{
	return far_bytes(a);
}
