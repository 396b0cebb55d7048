/* The variants of dot products on edges (sddmm_dot) that hg-bench measures beside the kernel that
 * training uses (sddmm_variants.def describes each). They are no part of the library. */
#ifndef HG_BENCH_SDDMM_VARIANTS_H
#define HG_BENCH_SDDMM_VARIANTS_H

#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

enum sddmm_variant_id {
#define SDDMM_VARIANT(id, ...) SDDMM_##id,
#include "sddmm_variants.def"
#undef SDDMM_VARIANT
	SDDMM_VARIANTS
};

enum sddmm_multiply { MULTIPLY_LANES, MULTIPLY_TILES };

struct sddmm_variant {
	const char *name, *what, *source;
	enum sddmm_multiply multiply;
	int columns;              /* columns of one load */
	hg_accumulate accumulate; /* F32, or F16_NAIVE: one f16 sum */
};
extern const struct sddmm_variant sddmm_variants[SDDMM_VARIANTS];

/* Lanes of a sub-warp for heads of `width` columns: a power of two, at most 32. */
static inline int sddmm_lanes(int64_t width, int columns)
{
	int lanes = 1;
	while (lanes < 32 && (int64_t)lanes * columns < width)
		lanes *= 2;
	return lanes;
}

/* Returns why a variant cannot compute this call on this device; NULL if it can. */
const char *sddmm_variant_refuses(const hg_context *ctx, const struct hg__sddmm_dot_args *a,
                                  enum sddmm_variant_id id);

/* A call for a variant that does not refuse it. */
struct sddmm_variant_call {
	hg_context *ctx;
	enum sddmm_variant_id id;
	struct hg__sddmm_dot_args args;
};
/* Queues it. `call` is a struct sddmm_variant_call. */
HG_NODISCARD hg_status sddmm_variant_run(void *call);

/* Error bound of one result, stored as type `to`: a dot product of `width` columns, times the scale
 * of the call. exact is the exact result, magnitude the sum of the magnitudes of its terms. The
 * bound of an f16 sum holds while nothing overflows. */
double sddmm_variant_bound(enum sddmm_variant_id id, hg_dtype to, int64_t width, double magnitude,
                           double exact);

/* Queues the call of a variant that does not refuse it, on a GPU; whether the library's tiles can
 * compute a call (sddmm.cu). */
HG_NODISCARD hg_status sddmm_variant_cuda(hg_context *ctx, const struct hg__sddmm_dot_args *a,
                                          enum sddmm_variant_id id);
HG_NODISCARD int sddmm_tiles_fit_cuda(const struct hg__sddmm_dot_args *a);

HG_EXTERN_C_END
#endif
