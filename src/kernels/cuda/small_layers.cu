/* Several layers of graph convolution on a batch of small graphs (kernels/small_layers.h), forward.
 * A warp takes one bin after the other through all layers (small_layers.cuh). */

#include "kernels/cuda/small_layers.cuh"

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
};

template <int WIDE, bool GUARDS, bool ANY_SELF>
__global__ void __launch_bounds__(THREADS, blocks_at_once(WIDE))
    forward_kernel(const __grid_constant__ forward_args g)
{
	extern __shared__ __align__(16) unsigned char memory[];
	const int warp = static_cast<int>(threadIdx.x / 32), blocks = static_cast<int>(gridDim.x);
	__half *w = reinterpret_cast<__half *>(memory);
	float4 *b = reinterpret_cast<float4 *>(w + g.all.matrices * weights<WIDE>::HALVES);
	__half *strip = reinterpret_cast<__half *>(
	    reinterpret_cast<unsigned char *>(b + g.all.count * weights<WIDE>::BIASES) +
	    warp * STRIP_BYTES);
	after_previous();
	load_weights<WIDE>(g.all, w, b);
	__syncthreads();
	const int64_t step = g.step ? *g.step : 0;
	const int bins = g.first[g.bins + 1];
	for (int k = static_cast<int>(blockIdx.x) + warp * blocks; k < bins; k += WARPS * blocks) {
		const struct bin bin = {g.first[k], g.first[k + 1] - g.first[k]};
		struct by_node<WIDE> h;
		struct adjacency a;
		load_bin(g.x, bin, h);
		build_adjacency(g.a, bin, strip, a);
#pragma unroll 1
		for (int l = 0; l < g.all.count; l++) {
			const struct kept<WIDE> keep = {
				kept_at<WIDE>(g.kept, g.all, k, l), false, step
			};
			const struct layer &of = g.all.of[l];
			run_any<GUARDS, ANY_SELF>(of, a, w + of.w * weights<WIDE>::HALVES,
			                          b + l * weights<WIDE>::BIASES, bin, keep, g.word, h);
			if (of.y)
				store_bin(rows_of(of.y, of.y_ld, of.out), bin, h);
		}
	}
}

template <int WIDE, bool GUARDS> const void *kernel_of(const struct layers &all)
{
	return any_self(all) ? reinterpret_cast<const void *>(forward_kernel<WIDE, GUARDS, true>)
	                     : reinterpret_cast<const void *>(forward_kernel<WIDE, GUARDS, false>);
}
template <int WIDE> hg_status run(hg_context *ctx, const struct forward_args &g)
{
	constexpr int BLOCKS = MULTIPROCESSORS * blocks_at_once(WIDE);
	const unsigned blocks = static_cast<unsigned>(g.bins < BLOCKS ? g.bins : BLOCKS);
	const void *kernel = g.word ? kernel_of<WIDE, true>(g.all) : kernel_of<WIDE, false>(g.all);
	const size_t shared = weights<WIDE>::bytes(g.all) + WARPS * STRIP_BYTES;
	struct forward_args copy = g;
	void *args[] = {&copy};
	HG__CUDA(ctx, "small_layers",
	         cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
	                              static_cast<int>(shared)));
	return cuda_status(ctx, queue_kernel(ctx, kernel, 1, blocks, THREADS, args, shared),
	                   "small_layers");
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
	if (g.bins == 0)
		return HG_OK;
	return hg__small_width_of(a) == 64 ? run<4>(ctx, g) : run<2>(ctx, g);
}

HG__NO_WORKSPACE(small_layers, small_layers_args)
