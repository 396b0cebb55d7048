/* Matrix products: C = 2^shift op(A) op(B) + bias with op(A) [m, k], op(B) [k, n], C [m, n], bias
 * [1, n], and sums[c] = sum over k of B[k, c].
 *
 * There are three implementations; the first one that accepts the call computes it:
 *
 *     tall       halves, with thousands of rows and short other sides: gemm_tall.cu, column sums
 *                included
 *     cuBLASLt   the library is column-major, so it computes C^T = op(B)^T op(A)^T on the same
 *                memory: a row-major [r, c] matrix is a column-major [c, r] one. B is its first
 *                operand, and the bias runs along the rows of its result, where the BIAS epilogue
 *                adds it before the one narrowing
 *     generic    one warp per element; for k = 0, for a bias whose type differs from C's, and for
 *                shapes or alignments that cuBLASLt declines
 *
 * f32 operands are multiplied in full f32, not in TF32. Partial sums of a split k stay in f32
 * (reduction scheme "compute type").
 *
 * The algorithm follows from rules on shape and alignment, never from a timing at run time: two
 * runs whose timings differ would choose differently, and their sums would then differ in the last
 * bits. Measurements are made beforehand, by hg-bench over the list that `pick` selects from, and
 * their results are the rules here:
 *
 *     in general   the algorithm that the library proposes first
 *     long k       the same algorithm with k split into more pieces, where it would otherwise leave
 *                  more than half of the GPU idle (more_pieces)
 *     sums         a separate kernel. cuBLASLt's own epilogue for them (BGRADA) excludes every
 *                  algorithm that splits k well. On an H200, dW [64, 2.4 M] [2.4 M, 47] with db
 *                  takes 3.96 ms that way, and 0.72 ms with a separate pass over B */

#include <cstring>

#include "kernels/cuda/gemm_norm.cuh"
#include "kernels/cuda/gemm_tall.cuh"
#include "kernels/cuda/launch.cuh"

struct shape {
	int64_t m, n, k;
};

static struct shape shape_of(const struct hg__gemm_args *a)
{
	return {a->trans_a ? a->a.cols : a->a.rows, a->trans_b ? a->b.rows : a->b.cols,
	        a->trans_a ? a->a.rows : a->a.cols};
}

/* ---- generic ---- */

template <typename T>
static __global__ void __launch_bounds__(BLOCK)
    generic_gemm(const struct hg__gemm_args a, struct shape s)
{
	after_previous();
	const T *x = static_cast<const T *>(a.a.data), *y = static_cast<const T *>(a.b.data);
	/* elements from one k to the next */
	const int64_t step_x = a.trans_a ? a.a.ld : 1, step_y = a.trans_b ? 1 : a.b.ld;
	const int lane = static_cast<int>(threadIdx.x % 32);
	for (int64_t i = global_thread() / 32; i < s.m * s.n; i += global_threads() / 32) {
		const int64_t row = i / s.n, col = i % s.n;
		const T *xi = x + row * (a.trans_a ? 1 : a.a.ld), *yi = y + col * (a.trans_b ? a.b.ld : 1);
		float sum = 0.0f;
		for (int64_t p = lane; p < s.k; p += 32)
			sum += widen(xi[p * step_x]) * widen(yi[p * step_y]);
		sum = lanes_sum<32>(sum);
		if (lane != 0)
			continue;
		sum = ldexpf(sum, a.shift);
		if (a.bias.data)
			sum += element(a.bias, 0, col);
		if (a.c.dtype == HG_F16)
			static_cast<__half *>(a.c.data)[row * a.c.ld + col] = __float2half_rn(sum);
		else
			static_cast<float *>(a.c.data)[row * a.c.ld + col] = sum;
	}
}

static hg_status run_generic(hg_context *ctx, const struct hg__gemm_args *a, struct shape s)
{
	return with_float(ctx, "gemm", a->a.dtype, [&](auto zero) {
		return launch(ctx, "gemm", generic_gemm<decltype(zero)>, grid_for(s.m * s.n, BLOCK / 32),
		              BLOCK, *a, s);
	});
}

/* ---- cuBLASLt: descriptors and algorithm of each problem, found once and kept ---- */

/* Everything that the choice of an algorithm may depend on. All members are integers of one size,
 * so that memcmp can compare keys. */
struct key {
	int64_t m, n, k, lda, ldb, ldc, type, type_c, trans_a, trans_b, bias, pick, align_a, align_b,
	    align_c, align_bias;
};

struct hg__gemm_plans {
	struct key key;
	cublasLtMatmulDesc_t op;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algo;
	/* Fraction of the GPU that the algorithm keeps busy; above 1, the number of times it fills the
	 * GPU. */
	float waves;
	bool accepted; /* false: cuBLASLt has no algorithm; this is kept as well */
	struct hg__gemm_plans *next;
};

/* The largest power of two that divides an address, at most 256, which is cuBLASLt's own limit. */
static int64_t alignment(const void *p)
{
	const uintptr_t bits = reinterpret_cast<uintptr_t>(p) | 256u;
	return static_cast<int64_t>(bits & (~bits + 1));
}

static struct key key_of(const struct hg__gemm_args *a, struct shape s)
{
	return {s.m,
	        s.n,
	        s.k,
	        a->a.ld,
	        a->b.ld,
	        a->c.ld,
	        a->a.dtype,
	        a->c.dtype,
	        a->trans_a != 0,
	        a->trans_b != 0,
	        a->bias.data != nullptr,
	        a->pick,
	        alignment(a->a.data),
	        alignment(a->b.data),
	        alignment(a->c.data),
	        alignment(a->bias.data)};
}

static cudaDataType_t cuda_type(int64_t dtype)
{
	return dtype == HG_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static hg_status lt_status(hg_context *ctx, cublasStatus_t status, const char *what)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return HG_OK;
	HG__TRY(hg__same_process(ctx));
	return hg__fail(ctx, status == CUBLAS_STATUS_ALLOC_FAILED ? HG_ERR_NOMEM : HG_ERR_DEVICE,
	                "gemm: %s: %s", what, cublasLtGetStatusString(status));
}
#define HG__LT(ctx, what, call) HG__TRY(lt_status((ctx), (call), (what)))

static hg_status set_bias(hg_context *ctx, const struct hg__gemm_args *a,
                          struct hg__gemm_plans *plan)
{
	return lt_status(ctx,
	                 cublasLtMatmulDescSetAttribute(plan->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
	                                                &a->bias.data, sizeof a->bias.data),
	                 "bias");
}

static hg_status describe_problem(hg_context *ctx, const struct hg__gemm_args *a,
                                  struct hg__gemm_plans *plan)
{
	const struct key &k = plan->key;
	const cublasOperation_t first = k.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
	                        second = k.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
	HG__LT(ctx, "operation", cublasLtMatmulDescCreate(&plan->op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	HG__LT(ctx, "transposition",
	       cublasLtMatmulDescSetAttribute(plan->op, CUBLASLT_MATMUL_DESC_TRANSA, &first,
	                                      sizeof first));
	HG__LT(ctx, "transposition",
	       cublasLtMatmulDescSetAttribute(plan->op, CUBLASLT_MATMUL_DESC_TRANSB, &second,
	                                      sizeof second));
	if (k.bias) {
		const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
		const cudaDataType_t type = cuda_type(k.type_c);
		HG__LT(ctx, "bias",
		       cublasLtMatmulDescSetAttribute(plan->op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
		                                      sizeof epilogue));
		HG__LT(ctx, "bias",
		       cublasLtMatmulDescSetAttribute(plan->op, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type,
		                                      sizeof type));
		HG__TRY(set_bias(ctx, a, plan));
	}
	HG__LT(ctx, "layout of B",
	       cublasLtMatrixLayoutCreate(&plan->a, cuda_type(k.type), static_cast<uint64_t>(a->b.cols),
	                                  static_cast<uint64_t>(a->b.rows), k.ldb));
	HG__LT(ctx, "layout of A",
	       cublasLtMatrixLayoutCreate(&plan->b, cuda_type(k.type), static_cast<uint64_t>(a->a.cols),
	                                  static_cast<uint64_t>(a->a.rows), k.lda));
	HG__LT(ctx, "layout of C",
	       cublasLtMatrixLayoutCreate(&plan->c, cuda_type(k.type_c), static_cast<uint64_t>(k.n),
	                                  static_cast<uint64_t>(k.m), k.ldc));
	return HG_OK;
}

static hg_status set_preference(hg_context *ctx, cublasLtMatmulPreference_t preference,
                                const struct key &k)
{
	const struct {
		cublasLtMatmulPreferenceAttributes_t name;
		uint32_t value;
	} settings[] = {
	    {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
	    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(k.align_b)},
	    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(k.align_a)},
	    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(k.align_c)},
	    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(k.align_c)},
	};
	for (const auto &s : settings)
		HG__LT(ctx, "preference",
		       cublasLtMatmulPreferenceSetAttribute(preference, s.name, &s.value, sizeof s.value));
	HG__LT(ctx, "preference",
	       cublasLtMatmulPreferenceSetAttribute(preference,
	                                            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
	                                            &LT_WORKSPACE_BYTES, sizeof LT_WORKSPACE_BYTES));
	return HG_OK;
}

/* A setting of an algorithm, or 0 if it has none of that name. */
static int32_t setting(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t name)
{
	int32_t value = 0;
	size_t written = 0;
	return cublasLtMatmulAlgoConfigGetAttribute(algo, name, &value, sizeof value, &written) ==
	               CUBLAS_STATUS_SUCCESS
	           ? value
	           : 0;
}

/* The k from which a split is considered. A split of k needs a second kernel, about 3 us, that adds
 * the pieces. A multiprocessor that gets its share of the memory bandwidth (4.3 TB/s / 132 = 33 kB
 * per us) reads the 128 halves of one k of a 64 x 64 tile in 8 ns. With this k, one block alone
 * takes 130 us, and half of that pays for the second kernel many times over. */
constexpr int64_t LONG_K = 16384;
/* The smallest k of a piece: 8 us of work, against the 3 us of the second kernel. */
constexpr int64_t LEAST_RUN = 1024;

/* Splits k in the algorithm of the heuristic into as many pieces as fill the GPU once. The
 * algorithm stays unchanged if it already keeps half of the GPU busy, or if the library refuses the
 * split. */
static void more_pieces(hg__cuda_state *state, struct hg__gemm_plans *plan)
{
	const int64_t most = plan->key.k / LEAST_RUN,
	              now = setting(&plan->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
	if (plan->key.k < LONG_K || !(plan->waves > 0.0f && plan->waves < 0.5f))
		return;
	const int64_t wanted =
	    static_cast<int64_t>(static_cast<float>(now > 1 ? now : 1) / plan->waves);
	const int32_t pieces = static_cast<int32_t>(wanted < most ? wanted : most);
	const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	cublasLtMatmulAlgo_t algo = plan->algo;
	cublasLtMatmulHeuristicResult_t result = {};
	const bool fits =
	    cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &pieces,
	                                         sizeof pieces) == CUBLAS_STATUS_SUCCESS &&
	    cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
	                                         sizeof scheme) == CUBLAS_STATUS_SUCCESS &&
	    cublasLtMatmulAlgoCheck(state->lt, plan->op, plan->a, plan->b, plan->c, plan->c, &algo,
	                            &result) == CUBLAS_STATUS_SUCCESS &&
	    result.workspaceSize <= LT_WORKSPACE_BYTES && result.wavesCount > plan->waves;
	if (!fits)
		return;
	plan->algo = algo;
	plan->waves = result.wavesCount;
}

/* The number of algorithms that a measurement can choose from. */
constexpr int PICKS = 16;

static hg_status choose_algorithm(hg_context *ctx, hg__cuda_state *state,
                                  struct hg__gemm_plans *plan)
{
	const int wanted = plan->key.pick > 0 ? PICKS : 1,
	          index = plan->key.pick > 0 ? static_cast<int>(plan->key.pick) - 1 : 0;
	cublasLtMatmulPreference_t preference = nullptr;
	HG__LT(ctx, "preference", cublasLtMatmulPreferenceCreate(&preference));
	cublasLtMatmulHeuristicResult_t results[PICKS] = {};
	int found = 0;
	const hg_status status = set_preference(ctx, preference, plan->key);
	if (status >= 0 && cublasLtMatmulAlgoGetHeuristic(state->lt, plan->op, plan->a, plan->b,
	                                                  plan->c, plan->c, preference, wanted, results,
	                                                  &found) != CUBLAS_STATUS_SUCCESS)
		found = 0;
	/* an object in host memory, whose destruction cannot fail in a way that matters */
	(void)cublasLtMatmulPreferenceDestroy(preference);
	plan->accepted = index < found;
	if (!plan->accepted)
		return status;
	plan->algo = results[index].algo;
	plan->waves = results[index].wavesCount;
	if (plan->key.pick == 0)
		more_pieces(state, plan);
	return status;
}

static void log_choice(hg_context *ctx, const struct hg__gemm_plans *plan)
{
	const long long m = plan->key.m, n = plan->key.n, k = plan->key.k;
	if (plan->accepted)
		hg__log(ctx, HG_LOG_DEBUG,
		        "gemm: %lld x %lld x %lld: cuBLASLt's algorithm %d, tile %d, stages %d, k in %d "
		        "pieces, %.2f waves",
		        m, n, k, static_cast<int>(setting(&plan->algo, CUBLASLT_ALGO_CONFIG_ID)),
		        static_cast<int>(setting(&plan->algo, CUBLASLT_ALGO_CONFIG_TILE_ID)),
		        static_cast<int>(setting(&plan->algo, CUBLASLT_ALGO_CONFIG_STAGES_ID)),
		        static_cast<int>(setting(&plan->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)),
		        static_cast<double>(plan->waves));
	else
		hg__log(ctx, HG_LOG_DEBUG, "gemm: cuBLASLt declines %lld x %lld x %lld", m, n, k);
}

void hg__gemm_plans_free(hg_context *ctx, struct hg__gemm_plans *plan)
{
	while (plan) {
		struct hg__gemm_plans *next = plan->next;
		if (plan->op)
			(void)cublasLtMatmulDescDestroy(plan->op);
		for (cublasLtMatrixLayout_t layout : {plan->a, plan->b, plan->c})
			if (layout)
				(void)cublasLtMatrixLayoutDestroy(layout);
		hg__host_free(ctx, plan, sizeof *plan);
		plan = next;
	}
}

/* cuBLASLt's workspace. Other products store their parts in it as well, which is safe because calls
 * on one stream follow one another. */
static_assert(TALL_SCRATCH_BYTES <= LT_WORKSPACE_BYTES, "parts of a tall product");
static_assert(LINEAR_SCRATCH_BYTES <= LT_WORKSPACE_BYTES, "parts of linear_back");
static hg_status reserve_workspace(hg_context *ctx, hg__cuda_state *state)
{
	return state->lt_workspace ? HG_OK
	                           : hg__device_alloc(ctx, LT_WORKSPACE_BYTES, "workspace of products",
	                                              &state->lt_workspace);
}

/* The plan of a problem, from the context's list or new. A model has a few dozen problems, so
 * searching the list takes less time than a launch. */
static hg_status find_plan(hg_context *ctx, hg__cuda_state *state, const struct hg__gemm_args *a,
                           struct shape s, struct hg__gemm_plans **plan)
{
	const struct key key = key_of(a, s);
	for (*plan = state->plans; *plan; *plan = (*plan)->next)
		if (memcmp(&(*plan)->key, &key, sizeof key) == 0)
			return HG_OK;
	if (ctx->of) /* nothing would free the plan */
		return hg__fail(ctx, HG_ERR_INTERNAL,
		                "gemm: a product on a branch that has not run on its context before");
	HG__TRY(reserve_workspace(ctx, state));
	void *memory = nullptr;
	HG__TRY(
	    hg__host_alloc(ctx, 1, sizeof(struct hg__gemm_plans), "plan of a matrix product", &memory));
	struct hg__gemm_plans *made = static_cast<struct hg__gemm_plans *>(memory);
	made->key = key;
	hg_status status = describe_problem(ctx, a, made);
	if (status >= 0)
		status = choose_algorithm(ctx, state, made);
	if (status < 0) {
		hg__gemm_plans_free(ctx, made);
		return status;
	}
	log_choice(ctx, made);
	made->next = state->plans;
	state->plans = made;
	*plan = made;
	return HG_OK;
}

/* Runs the product. CUBLAS_STATUS_NOT_SUPPORTED sets `accepted` to false and is not an error,
 * because the heuristic can propose an algorithm that does not run. */
static hg_status run_lt(hg_context *ctx, hg__cuda_state *state, const struct hg__gemm_args *a,
                        struct hg__gemm_plans *plan)
{
	const float factor = ldexpf(1.0f, a->shift), zero = 0.0f;
	if (a->bias.data)
		HG__TRY(set_bias(ctx, a, plan));
	const cublasStatus_t status =
	    cublasLtMatmul(state->lt, plan->op, &factor, a->b.data, plan->a, a->a.data, plan->b, &zero,
	                   a->c.data, plan->c, a->c.data, plan->c, &plan->algo, state->lt_workspace,
	                   LT_WORKSPACE_BYTES, stream_of(ctx));
	plan->accepted = status != CUBLAS_STATUS_NOT_SUPPORTED;
	return plan->accepted ? lt_status(ctx, status, "product") : HG_OK;
}

static hg_status check_shapes(hg_context *ctx, const struct hg__gemm_args *a, struct shape s)
{
	const int64_t k = a->trans_b ? a->b.cols : a->b.rows;
	if (a->a.dtype != a->b.dtype || (a->c.dtype != HG_F32 && a->c.dtype != a->a.dtype))
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "gemm: A of %s, B of %s, C of %s; supported are A and B of one type, and C "
		                "of that type or f32",
		                hg_dtype_name(a->a.dtype), hg_dtype_name(a->b.dtype),
		                hg_dtype_name(a->c.dtype));
	if (k != s.k || a->c.rows != s.m || a->c.cols != s.n || !is_float(a->a))
		return misfit(ctx, "gemm", HG__FLOATS, a->a, a->b, a->c);
	if (a->sums.data &&
	    (a->trans_b || a->bias.data || a->sums.dtype != HG_F32 || a->sums.cols != s.n))
		return hg__fail(ctx, HG_ERR_INTERNAL,
		                "gemm: column sums of a transposed B, beside a bias, or not f32 [1, %lld]",
		                static_cast<long long>(s.n));
	return HG_OK;
}

/* Rounds the width of the product up to whole vectors of columns. The padding of a state matrix
 * holds no values, so the product may write it. Rows of 47 halves (ld 48) are then read and written
 * 16 bytes at a time instead of 2. This is done only where ld shows that the columns behind the
 * last one are padding. */
static bool is_padded(const struct hg__mat &m, int64_t whole)
{
	return !m.data || (m.ld == hg__leading(m.cols) && m.ld >= whole);
}
static struct hg__gemm_args in_whole_vectors(const struct hg__gemm_args *a, struct shape *s)
{
	struct hg__gemm_args padded = *a;
	const int64_t whole = (s->n + 7) / 8 * 8;
	if (a->trans_b || a->c.dtype != HG_F16 || !is_padded(a->b, whole) || !is_padded(a->c, whole) ||
	    !is_padded(a->bias, whole))
		return padded;
	padded.b.cols = padded.c.cols = s->n = whole;
	if (a->bias.data)
		padded.bias.cols = whole;
	return padded;
}

/* The product without column sums. */
static hg_status run_product(hg_context *ctx, const struct hg__gemm_args *given, struct shape s)
{
	const struct hg__gemm_args padded = in_whole_vectors(given, &s), *a = &padded;
	if (s.m == 0 || s.n == 0)
		return HG_OK;
	if (s.k == 0 || (a->bias.data && a->bias.dtype != a->c.dtype))
		return run_generic(ctx, a, s);
	hg__cuda_state *state = static_cast<hg__cuda_state *>(ctx->state);
	struct hg__gemm_plans *plan = nullptr;
	HG__TRY(find_plan(ctx, state, a, s, &plan));
	if (plan->accepted)
		HG__TRY(run_lt(ctx, state, a, plan));
	if (!plan->accepted && a->pick > 0)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "gemm: algorithm %d was asked for, cuBLASLt does not propose that many, or "
		                "does not run it",
		                a->pick);
	return plan->accepted ? HG_OK : run_generic(ctx, a, s);
}

hg_status hg__cuda_gemm_scratch(hg_context *ctx, void **scratch)
{
	hg__cuda_state *state = static_cast<hg__cuda_state *>(ctx->state);
	HG__TRY(reserve_workspace(ctx, state));
	*scratch = state->lt_workspace;
	return HG_OK;
}

static hg_status run_tall(hg_context *ctx, const struct hg__gemm_args *a, struct shape s)
{
	void *scratch;
	HG__TRY(hg__cuda_gemm_scratch(ctx, &scratch));
	hg__log(ctx, HG_LOG_DEBUG, "gemm: %lld x %lld x %lld: tall", static_cast<long long>(s.m),
	        static_cast<long long>(s.n), static_cast<long long>(s.k));
	return hg__cuda_gemm_tall(ctx, a, scratch);
}

/* cuBLASLt and tall products have memory of their own. The gradient of weights, A^T B, may bring
 * column sums of B; it asks for as much as those of the wider operand take, with or without them,
 * so that the memory of a model follows from its shapes alone. */
size_t hg__cuda_gemm_workspace(const hg_context *, const struct hg__gemm_args *a)
{
	const struct shape s = shape_of(a);
	if (a->statistics.x.data)
		return hg__cuda_gemm_norm_bytes(s.n);
	return a->trans_a ? hg__reduction_bytes(s.k, s.m > s.n ? s.m : s.n) : 0;
}

/* A product with a batch norm on the way. */
static hg_status run_norm(hg_context *ctx, const struct hg__gemm_args *a)
{
	if (!a->trans_a)
		return hg__cuda_gemm_norm(ctx, a);
	struct hg__linear_back_args gradient = {};
	gradient.x = a->a;
	gradient.w = a->c;
	gradient.dy = a->b;
	gradient.dw = a->c;
	gradient.db = a->sums;
	gradient.shift = a->shift;
	gradient.normalise = a->normalise;
	return hg__cuda_linear_norm(ctx, &gradient);
}

hg_status hg__cuda_gemm(hg_context *ctx, const struct hg__gemm_args *a)
{
	const struct shape s = shape_of(a);
	HG__TRY(check_shapes(ctx, a, s));
	if (a->normalise.mean || a->statistics.x.data)
		return run_norm(ctx, a);
	if (hg__cuda_gemm_is_tall(a))
		return run_tall(ctx, a, s);
	if (!a->sums.data)
		return run_product(ctx, a, s);
	struct hg__gemm_args without = *a;
	without.sums = {};
	const struct hg__colsum_args sums = {a->b, a->sums, {}};
	HG__TRY(run_product(ctx, &without, s));
	return hg__cuda_colsum(ctx, &sums);
}
