/* Several layers of graph convolution on a batch of small graphs (kernels/small_layers.h),
 * backward. A warp takes one bin after the other: forward through all layers once more, and then
 * back, in three kernels:
 *
 *     back         dX, and the sums of dW and db over the bins of each block
 *     large_back   the same of large bins (small_layers_large.cuh), if there may be some
 *     reduce       adds the sums of the blocks of both in their order
 *
 * Layer inputs are saved for each warp and not for each bin, so they take the same memory whatever
 * the batch is: the last layers' in shared memory, the others' in the workspace, from where they
 * are fetched one layer ahead.
 *
 * The warps of a block go through backward in step, compute the gradients of one layer after the
 * other (small_layers_gradients.cuh), and add up those of parameters together
 * (small_layers_sums.cuh). */

#include "kernels/cuda/small_layers_gradients.cuh"
#include "kernels/cuda/small_layers_large.cuh"
#include "kernels/cuda/small_layers_readout.cuh"

namespace
{

using namespace small;

/* One block for each of an H200's multiprocessors, because a thread needs more than 128
 * registers. It is a constant, so that the order of sums, and with it the bits, is the same on
 * every GPU. */
constexpr int BLOCKS = 132;

/* Shared memory of a warp that holds such rows, or a strip of A. */
template <int WIDE>
constexpr size_t RING_BYTES = STATE_BYTES<WIDE> > STRIP_BYTES ? STATE_BYTES<WIDE> : STRIP_BYTES;

struct back_args {
	struct layers all;
	struct entries a, back;
	int symmetric; /* A^T = A */
	const int32_t *first;
	int bins, shared; /* shared: layers whose input is saved in shared memory */
	struct rows x, dx;
	void *kept;
	const int64_t *step; /* of dropout, or NULL */
	uint4 *saved;        /* [block][warp][layer][piece][lane] */
	float *partial;      /* [block][matrix][FLOATS of struct gradient] */
	unsigned *far;       /* for large bins: memory for each entry of A */
	struct readout readout;
};

/* ---- the kernel ---- */

struct memory {
	__half *w;
	float4 *b;
	float *slots;
	/* of this warp: the inputs of some layers, and memory that holds one after the other a strip of
	 * A, an input that was fetched, and the T of a layer */
	unsigned shared, ring;
	unsigned barriers;
	unsigned char *rest; /* for large bins */
};
constexpr size_t BARRIER_BYTES = 16;

/* of_weights: the bytes of all weights and biases. */
template <int WIDE> size_t shared_bytes(size_t of_weights, int shared, bool large)
{
	return of_weights + WARPS * RING_BYTES<WIDE> +
	       static_cast<size_t>(shared) * WARPS * STATE_BYTES<WIDE> +
	       2 * WARPS * gradient<WIDE>::SLOT * sizeof(float) + BARRIER_BYTES +
	       (large ? LARGE_BYTES<WIDE> : 0);
}
template <int WIDE>
__device__ struct memory divide(unsigned char *at, const struct layers &all, int shared)
{
	const int warp = static_cast<int>(threadIdx.x / 32);
	struct memory m;
	m.w = reinterpret_cast<__half *>(at);
	at += all.matrices * weights<WIDE>::HALVES * sizeof(__half);
	m.b = reinterpret_cast<float4 *>(at);
	at += all.count * weights<WIDE>::BIASES * sizeof(float4);
	m.ring = shared_address(at + warp * RING_BYTES<WIDE>);
	at += WARPS * RING_BYTES<WIDE>;
	m.shared = shared_address(at + warp * STATE_BYTES<WIDE>);
	at += shared * WARPS * STATE_BYTES<WIDE>;
	m.slots = reinterpret_cast<float *>(at);
	at += 2 * WARPS * gradient<WIDE>::SLOT * sizeof(float);
	m.barriers = shared_address(at);
	m.rest = at + BARRIER_BYTES;
	return m;
}

/* Where the input of layer l is saved in shared memory, if it is there, and in global memory. */
template <int WIDE>
__device__ unsigned shared_at(const struct back_args &g, const struct memory &m, int l)
{
	return m.shared + (g.all.count - 1 - l) * static_cast<int>(WARPS * STATE_BYTES<WIDE>);
}
template <int WIDE> __device__ uint4 *saved_at(const struct back_args &g, int l)
{
	const int64_t warp = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
	return g.saved + (warp * g.all.count + l) * (PIECES<WIDE> * 32) + threadIdx.x % 32;
}
__device__ bool is_in_shared(const struct back_args &g, int l)
{
	return g.all.count - 1 - l < g.shared;
}

/* Forward of one bin, once more. keep: makes the struct kept of a layer. */
template <int WIDE, bool ANY_SELF, typename A, typename Keep>
__device__ void recompute(const struct back_args &g, const struct memory &m, const struct bin &bin,
                          const A &a, const Keep &keep, struct by_node<WIDE> &h)
{
#pragma unroll 1
	for (int l = 0; l < g.all.count; l++) {
		if (is_in_shared(g, l))
			save(h, shared_at<WIDE>(g, m, l));
		else
			save(h, m.ring, saved_at<WIDE>(g, l));
		run_any<false, ANY_SELF>(g.all.of[l], a, m.w + g.all.of[l].w * weights<WIDE>::HALVES,
		                         m.b + l * weights<WIDE>::BIASES, bin, keep(l), nullptr, h);
	}
}

/* Backward of layer l from its dZ in d to the dZ of the layer before. */
template <int WIDE, bool ANY_SELF, typename A>
__device__ void layer_back(const struct back_args &g, const struct memory &m,
                           const struct block_sums<WIDE> &sums, const A &a, const struct bin &bin,
                           int l, int round, int &step, struct by_feature<WIDE> &d)
{
	const int matrix = g.all.of[l].w;
	const bool has_self = ANY_SELF && g.all.of[l].has_self, goes_on = l > 0 || g.dx.data,
	           fetches = l > 0 && !is_in_shared(g, l - 1);
	const __half *w = m.w + matrix * weights<WIDE>::HALVES;
	struct by_feature<WIDE> input;
	struct by_node<WIDE> t;
	aggregate(a, d, t);
	if (!is_in_shared(g, l))
		fetch_wait();
	restore(is_in_shared(g, l) ? shared_at<WIDE>(g, m, l) : m.ring, input);
	save(t, m.ring);
	if (has_self)
		leave_matrix(sums, matrix + 1, round, step, d, input, dz_rows<WIDE>{d});
	leave_matrix(sums, matrix, round, step, d, input, saved_rows<WIDE>{m.ring});
	if (has_self && goes_on) {
		/* T is read from memory, because registers have no room for it beside dZ. */
		flip(d, t);
		through_layer(g.all, l, w, input, d, rows_in_memory<WIDE>{m.ring},
		              rows_in_registers<WIDE>{t});
		__syncwarp();
	}
	if (fetches)
		fetch<WIDE>(saved_at<WIDE>(g, l - 1), m.ring);
	if (!has_self && goes_on)
		through_layer(g.all, l, w, input, d, rows_in_registers<WIDE>{t});
	if (l > 0 && g.all.of[l - 1].dy) {
		add_gradient(g.all.of[l - 1], bin, d);
		differentiate(g.all.of[l - 1], input, d);
	}
}

/* Backward of one bin whose layers have been computed: h is the result of the last one. a: A^T. */
template <int WIDE, bool ANY_SELF, typename A>
__device__ void bin_back(const struct back_args &g, const struct memory &m,
                         const struct block_sums<WIDE> &sums, const A &a, const struct bin &bin,
                         int round, int &step, const struct by_node<WIDE> &h)
{
	const int layers = g.all.count;
	if (!is_in_shared(g, layers - 1))
		fetch<WIDE>(saved_at<WIDE>(g, layers - 1), m.ring);
	struct by_feature<WIDE> d = {
	};
	if (g.all.of[layers - 1].dy || g.readout.dy.data) {
		struct by_node<WIDE> dy;
		struct by_feature<WIDE> y;
		if (g.readout.dy.data)
			load_readout(g.readout, bin, dy);
		else
			load_bin(rows_of_gradient(g.all.of[layers - 1]), bin, dy);
		flip(dy, d);
		flip(h, y);
		differentiate(g.all.of[layers - 1], y, d);
	}
#pragma unroll 1
	for (int l = layers - 1; l >= 0; l--)
		layer_back<WIDE, ANY_SELF>(g, m, sums, a, bin, l, round, step, d);
	if (g.dx.data) {
		struct by_node<WIDE> dx;
		flip(d, dx);
		store_bin(g.dx, bin, dx);
	}
}

/* What a block begins with, and its sums. */
template <int WIDE>
__device__ block_sums<WIDE> begin_block(const struct back_args &g, const struct memory &m)
{
	using of = gradient<WIDE>;
	float *partial = g.partial + static_cast<int64_t>(blockIdx.x) * g.all.matrices * of::FLOATS;
	load_weights<WIDE>(g.all, m.w, m.b);
	if (threadIdx.x < 2)
		barrier_init(m.barriers + 8 * threadIdx.x);
	__syncthreads();
	return {m.slots, partial, m.barriers, g.all.matrices * of::CHUNKS};
}

template <int WIDE, bool ANY_SELF>
__global__ void __launch_bounds__(THREADS, 1) back_kernel(const __grid_constant__ back_args g)
{
	extern __shared__ __align__(16) unsigned char bytes[];
	const int warp = static_cast<int>(threadIdx.x / 32), blocks = static_cast<int>(gridDim.x),
	          block = static_cast<int>(blockIdx.x);
	const struct memory m = divide<WIDE>(bytes, g.all, g.shared);
	after_previous();
	const struct block_sums<WIDE> sums = begin_block<WIDE>(g, m);
	__half *strip = reinterpret_cast<__half *>(__cvta_shared_to_generic(m.ring));
	const int bins = g.first[g.bins + 1], mine = bins > block ? (bins - block - 1) / blocks + 1 : 0,
	          rounds = mine > WARPS ? (mine + WARPS - 1) / WARPS : 1;
	int step = 0;
	for (int round = 0; round < rounds; round++) {
		const int k = block + (round * WARPS + warp) * blocks;
		const struct bin bin = {k < bins ? g.first[k] : 0,
		                        k < bins ? g.first[k + 1] - g.first[k] : 0};
		if (k >= bins || hg__bin_is_large(bin.rows)) {
			idle(sums, round, step);
			step += sums.chunks;
			continue;
		}
		const auto keep = [&](int l) {
			return kept<WIDE>{kept_at<WIDE>(g.kept, g.all, k, l), true, 0};
		};
		struct by_node<WIDE> h;
		struct adjacency a;
		load_bin(g.x, bin, h);
		build_adjacency(g.a, bin, strip, a);
		recompute<WIDE, ANY_SELF>(g, m, bin, a, keep, h);
		if (!g.symmetric)
			build_adjacency(g.back, bin, strip, a);
		bin_back<WIDE, ANY_SELF>(g, m, sums, a, bin, round, step, h);
	}
	sums.add(step - 1, 0, rounds - 1);
}

template <int WIDE>
__global__ void __launch_bounds__(THREADS, 1) large_back_kernel(const __grid_constant__ back_args g)
{
	extern __shared__ __align__(16) unsigned char bytes[];
	const struct memory m = divide<WIDE>(bytes, g.all, g.shared);
	after_previous();
	const struct block_sums<WIDE> sums = begin_block<WIDE>(g, m);
	const int64_t drawn = g.step ? *g.step : 0;
	const auto keep = [&](int) { return kept<WIDE>{nullptr, false, drawn}; };
	__half *strip = reinterpret_cast<__half *>(__cvta_shared_to_generic(m.ring));
	struct large_bins list = large_bins_of<WIDE>(g.first, g.bins, m.rest);
	int step = 0, round = 0;
	for (int k = list.next(); k >= 0; k = list.next(), round++) {
		struct large_adjacency<WIDE> a = large_part<WIDE>(m.rest, g.first[k], g.first[k + 1]);
		struct by_node<WIDE> h;
		load_bin(g.x, a.own, h);
		a.build(g.a, g.far, strip);
		recompute<WIDE, true>(g, m, a.own, a, keep, h);
		if (!g.symmetric)
			a.build(g.back, g.far, strip);
		bin_back<WIDE, true>(g, m, sums, a, a.own, round, step, h);
	}
	if (round == 0) {
		idle(sums, round++, step);
		step += sums.chunks;
	}
	sums.add(step - 1, 0, round - 1);
}

/* ---- reduce ---- */

/* A block adds 32 x 4 elements; each of its 16 warps a part of the blocks' sums. */
constexpr int PARTS = 16, ELEMENTS = 128;

template <int WIDE> __device__ void store_gradient(const struct layers &all, int e, float sum)
{
	using from = gradient<WIDE>;
	const struct matrix &of = all.matrix[e / from::FLOATS];
	const int i = e % from::FLOATS;
	if (i >= from::WIDTH * from::WIDTH) {
		const int col = i - from::WIDTH * from::WIDTH;
		if (of.db && col < of.out)
			of.db[col] = sum;
		return;
	}
	const int2 place = from::place_of(i);
	if (of.dw && place.x < of.in && place.y < of.out)
		of.dw[place.x * of.dw_ld + place.y] = sum;
}
template <int WIDE>
__global__ void __launch_bounds__(32 * PARTS)
    reduce_kernel(const __grid_constant__ layers all, const float *partial, int blocks)
{
	__shared__ float4 part[PARTS][32];
	const int lane = static_cast<int>(threadIdx.x % 32), s = static_cast<int>(threadIdx.x / 32),
	          total = all.matrices * gradient<WIDE>::FLOATS, each = (blocks + PARTS - 1) / PARTS,
	          e = (static_cast<int>(blockIdx.x) * 32 + lane) * 4,
	          end = (s + 1) * each < blocks ? (s + 1) * each : blocks;
	after_previous();
	float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
	if (e < total)
#pragma unroll 9
		for (int b = s * each; b < end; b++) {
			const float4 x =
			    *reinterpret_cast<const float4 *>(partial + static_cast<int64_t>(b) * total + e);
			sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
		}
	part[s][lane] = sum;
	__syncthreads();
	const int own = static_cast<int>(blockIdx.x) * ELEMENTS + static_cast<int>(threadIdx.x);
	if (threadIdx.x >= ELEMENTS || own >= total)
		return;
	float all_parts = 0.0f;
	for (int i = 0; i < PARTS; i++)
		all_parts += reinterpret_cast<const float *>(part[i])[threadIdx.x];
	store_gradient<WIDE>(all, own, all_parts);
}

/* ---- host ---- */

/* Blocks: as many as there are bins, at most BLOCKS. */
int blocks_of(const struct hg__small_layers_args *a)
{
	return a->bins->bins < BLOCKS ? static_cast<int>(a->bins->bins) : BLOCKS;
}
/* Those of large_back. */
int large_blocks_of(const struct hg__small_layers_args *a)
{
	return large_blocks(a, BLOCKS);
}
/* Both kernels use the same memory for saved inputs, one after the other. */
template <int WIDE> size_t saved_bytes(const struct hg__small_layers_args *a)
{
	const int blocks = blocks_of(a) > large_blocks_of(a) ? blocks_of(a) : large_blocks_of(a);
	return static_cast<size_t>(blocks) * WARPS * static_cast<size_t>(a->layers) * STATE_BYTES<WIDE>;
}
template <int WIDE> size_t workspace_bytes(const struct hg__small_layers_args *a)
{
	const int blocks = blocks_of(a) + large_blocks_of(a);
	return saved_bytes<WIDE>(a) +
	       static_cast<size_t>(blocks) * static_cast<size_t>(hg__small_matrices(a)) *
	           gradient<WIDE>::FLOATS * sizeof(float) +
	       far_bytes(a);
}
bool is_wide(const struct hg__small_layers_args *a)
{
	return hg__small_width_of(a) == 64;
}

/* The shared memory that a block can have. */
size_t most_shared(const hg_context *ctx)
{
	int bytes = 0;
	const int device = static_cast<const hg__cuda_state *>(ctx->state)->device;
	if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
	    cudaSuccess)
		(void)cudaGetLastError();
	return static_cast<size_t>(bytes);
}

template <int WIDE>
hg_status queue(hg_context *ctx, const void *kernel, const struct back_args &g, int blocks,
                bool large)
{
	const size_t most = most_shared(ctx), of_weights = weights<WIDE>::bytes(g.all);
	back_args copy = g;
	void *args[] = {&copy};
	while (copy.shared < g.all.count &&
	       shared_bytes<WIDE>(of_weights, copy.shared + 1, large) <= most)
		copy.shared++;
	const size_t shared = shared_bytes<WIDE>(of_weights, copy.shared, large);
	HG__CUDA(ctx, "small_layers_back",
	         cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
	                              static_cast<int>(shared)));
	return cuda_status(
	    ctx, queue_kernel(ctx, kernel, 1, static_cast<unsigned>(blocks), THREADS, args, shared),
	    "small_layers_back");
}
/* workspace: workspace_bytes. */
template <int WIDE>
hg_status run(hg_context *ctx, const struct hg__small_layers_args *of, struct back_args *g,
              void *workspace)
{
	const int blocks = blocks_of(of), large = large_blocks_of(of),
	          sums = g->all.matrices * gradient<WIDE>::FLOATS;
	float *partial =
	    reinterpret_cast<float *>(static_cast<unsigned char *>(workspace) + saved_bytes<WIDE>(of));
	g->saved = static_cast<uint4 *>(workspace);
	g->partial = partial;
	g->far = reinterpret_cast<unsigned *>(partial + static_cast<int64_t>(blocks + large) * sums);
	if (blocks > 0)
		HG__TRY(queue<WIDE>(ctx,
		                    any_self(g->all)
		                        ? reinterpret_cast<const void *>(back_kernel<WIDE, true>)
		                        : reinterpret_cast<const void *>(back_kernel<WIDE, false>),
		                    *g, blocks, false));
	g->partial = partial + static_cast<int64_t>(blocks) * sums;
	if (large > 0)
		HG__TRY(queue<WIDE>(ctx, reinterpret_cast<const void *>(large_back_kernel<WIDE>), *g, large,
		                    true));
	return launch(ctx, "small_layers_back: sums", reduce_kernel<WIDE>,
	              static_cast<unsigned>((sums + ELEMENTS - 1) / ELEMENTS), 32 * PARTS, g->all,
	              partial, blocks + large);
}

/* A layer has one matrix or two. */
template <int WIDE> int most_matrices(size_t most, bool large)
{
	int matrices = 0;
	while (matrices < HG__SMALL_MATRICES &&
	       shared_bytes<WIDE>(weights<WIDE>::bytes(matrices + 1, matrices + 1), 0, large) <= most)
		matrices++;
	return matrices;
}

} // namespace

hg_status hg__cuda_small_layers_back(hg_context *ctx, const struct hg__small_layers_back_args *a)
{
	const struct hg__small_layers_args *of = &a->of;
	void *workspace = nullptr;
	HG__TRY(hg__small_layers_back_supported(ctx, a));
	HG__TRY(hg__workspace(ctx, hg__cuda_small_layers_back_workspace(ctx, a), &workspace));
	struct back_args g = {};
	g.all = layers_of(of);
	g.a = entries_of(of);
	g.back = {a->csr_t.rowptr, a->csr_t.col, of->col_scale, of->row_scale, of->alpha};
	g.symmetric = a->symmetric;
	g.first = of->bins->first;
	g.bins = static_cast<int>(of->bins->bins);
	g.x = rows_of(of->x);
	g.dx = rows_of(a->dx);
	g.kept = of->kept.data;
	g.readout = readout_of(of->readout);
	for (int l = 0; l < of->layers; l++)
		if (of->layer[l].act_drop.p > 0.0f)
			g.step = of->layer[l].act_drop.step;
	return is_wide(of) ? run<4>(ctx, of, &g, workspace) : run<2>(ctx, of, &g, workspace);
}

size_t hg__cuda_small_layers_back_workspace(const hg_context *,
                                            const struct hg__small_layers_back_args *a)
{
	return is_wide(&a->of) ? workspace_bytes<4>(&a->of) : workspace_bytes<2>(&a->of);
}

/* Backward needs more shared memory than forward. */
int hg__cuda_small_matrices_most(const hg_context *ctx, int width, int bin_rows)
{
	const size_t most = most_shared(ctx);
	const bool large = hg__bin_is_large(bin_rows);
	return width == 64 ? most_matrices<4>(most, large) : most_matrices<2>(most, large);
}
