/* The table of variants of dot products on edges, the calls that each can compute, and their error
 * bounds. */
#include "sddmm_variants.h"

#include "precision/bound.h"

/* ---- the table ---- */

const struct sddmm_variant sddmm_variants[SDDMM_VARIANTS] = {
#define SDDMM_VARIANT(id, name, multiply, columns, accumulate, source, what) \
	{name, what, source, MULTIPLY_##multiply, columns, HG_ACC_##accumulate},
#include "sddmm_variants.def"
#undef SDDMM_VARIANT
};

/* ---- who computes what ---- */

/* Whether the library's tiles can compute a call on a GPU. Without CUDA there is none to ask. */
static int tiles_fit(const struct hg__sddmm_dot_args *a)
{
#ifdef HG_HAVE_CUDA
	return sddmm_tiles_fit_cuda(a);
#else
	(void)a;
	return 0;
#endif
}

/* A lane loads columns of one head only, and nothing behind the last one, because padding may hold
 * a NaN. */
static int loads_fit(const struct hg__sddmm_dot_args *a, int columns)
{
	return a->a.cols / a->heads % columns == 0 && a->a.ld % columns == 0 && a->b.ld % columns == 0;
}

const char *sddmm_variant_refuses(const hg_context *ctx, const struct hg__sddmm_dot_args *a,
                                  enum sddmm_variant_id id)
{
	const struct sddmm_variant *v = &sddmm_variants[id];
	if (ctx->backend->kind != HG_DEVICE_CUDA)
		return "it needs a GPU";
	if (a->a.dtype != HG_F16 || a->b.dtype != HG_F16)
		return "A and B are not f16";
	if (v->multiply == MULTIPLY_TILES)
		return tiles_fit(a) ? NULL : "tiles need one head, or heads of a multiple of 32 columns";
	return loads_fit(a, v->columns) ? NULL : "heads are not a multiple of its loads";
}

/* ---- a call ---- */

hg_status sddmm_variant_run(void *call)
{
	const struct sddmm_variant_call *c = call;
#ifdef HG_HAVE_CUDA
	return sddmm_variant_cuda(c->ctx, &c->args, c->id);
#else
	return hg__fail(c->ctx, HG_ERR_UNSUPPORTED, "sddmm_dot: %s needs a GPU",
	                sddmm_variants[c->id].name);
#endif
}

/* The longest path of an f16 sum: half of the columns of a lane (a half2 has two sums), one
 * addition for each shuffle, and the addition of the two sums. Each fused product may also round
 * near 0. */
static double bound_f16(int columns, int64_t width, double magnitude)
{
	const int lanes = sddmm_lanes(width, columns), loads = lanes * columns;
	int64_t longest = (width + loads - 1) / loads * (columns / 2) + 1;
	for (int step = lanes / 2; step > 0; step /= 2)
		longest++;
	const struct hg__sum_f16 sum = {longest, 0, 1, 1.0, magnitude, (double)width};
	return hg__bound_sum_f16(&sum);
}

double sddmm_variant_bound(enum sddmm_variant_id id, hg_dtype to, int64_t width, double magnitude,
                           double exact)
{
	const struct sddmm_variant *v = &sddmm_variants[id];
	return v->accumulate == HG_ACC_F32
	           ? hg__bound_sum(to, hg__depth_dot(HG_F16, (double)width) + 2, magnitude, exact)
	           : bound_f16(v->columns, width, magnitude);
}
