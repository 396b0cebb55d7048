/* Several layers of graph convolution on a batch of small graphs (kernels/small_layers.h), forward.
 * A warp takes one bin after the other through all layers (small_layers.cuh). */

#include "kernels/cuda/small_layers.cuh"

namespace
{

using namespace small;

/* Two blocks for each of an H200's 132 multiprocessors. */
constexpr int BLOCKS = 264;

struct forward_args {
	struct layers all;
	struct entries a;
	const int32_t *first;
	int bins;
	struct rows x, y;
	uint16_t *kept;
	const int64_t *step;
	unsigned long long *word;
};

template <bool GUARDS>
__global__ void __launch_bounds__(THREADS, 2) forward_kernel(const __grid_constant__ forward_args g)
{
	extern __shared__ __align__(16) unsigned char memory[];
	const int warp = static_cast<int>(threadIdx.x / 32), blocks = static_cast<int>(gridDim.x);
	__half *w = reinterpret_cast<__half *>(memory);
	float4 *b = reinterpret_cast<float4 *>(w + g.all.count * WEIGHT_HALVES);
	__half *strip = reinterpret_cast<__half *>(
	    reinterpret_cast<unsigned char *>(b + g.all.count * BIASES) + warp * STRIP_BYTES);
	after_previous();
	load_weights(g.all, w, b);
	__syncthreads();
	const int64_t step = g.step ? *g.step : 0;
	const int bins = g.first[g.bins + 1];
	for (int k = static_cast<int>(blockIdx.x) + warp * blocks; k < bins; k += WARPS * blocks) {
		const struct bin bin = {g.first[k], g.first[k + 1] - g.first[k]};
		struct by_node h;
		struct adjacency a;
		load_bin(g.x, bin, h);
		build_adjacency(g.a, bin, strip, a);
#pragma unroll 1
		for (int l = 0; l < g.all.count; l++) {
			const int64_t at = (static_cast<int64_t>(k) * g.all.count + l) * TILES * 32;
			run_any<GUARDS>(g.all.of[l], a, w + l * WEIGHT_HALVES, b + l * BIASES, bin,
			                kept{g.kept ? g.kept + at : nullptr, false, step}, g.word, h);
		}
		store_bin(g.y, bin, h);
	}
}

size_t shared_bytes(int layers)
{
	return static_cast<size_t>(layers) *
	           (WEIGHT_HALVES * sizeof(__half) + BIASES * sizeof(float4)) +
	       static_cast<size_t>(WARPS) * STRIP_BYTES;
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
	g.y = rows_of(a->y);
	g.kept = static_cast<uint16_t *>(a->kept.data);
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
	const unsigned blocks = static_cast<unsigned>(g.bins < BLOCKS ? g.bins : BLOCKS);
	void *args[] = {&g};
	const void *kernel = g.word ? reinterpret_cast<const void *>(forward_kernel<true>)
	                            : reinterpret_cast<const void *>(forward_kernel<false>);
	const size_t shared = shared_bytes(a->layers);
	HG__CUDA(ctx, "small_layers",
	         cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
	                              static_cast<int>(shared)));
	return cuda_status(ctx, queue_kernel(ctx, kernel, 1, blocks, THREADS, args, shared),
	                   "small_layers");
}

HG__NO_WORKSPACE(small_layers, small_layers_args)
