/* The variants of aggregation that can be requested by name (hg__spmm_args.variant;
 * spmm_variants.def describes each). They exist to be measured against AUTO, which training uses,
 * and never run unless they are requested. */
#ifndef HG_KERNELS_SPMM_VARIANTS_H
#define HG_KERNELS_SPMM_VARIANTS_H

#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

enum hg__spmm_variant {
	HG__SPMM_AUTO,
#define HG_SPMM_VARIANT(id, ...) HG__SPMM_##id,
#include "kernels/spmm_variants.def"
#undef HG_SPMM_VARIANT
	HG__SPMM_VARIANTS
};

enum hg__spmm_share {
	HG__SHARE_EDGES,
	HG__SHARE_GROUPS,
	HG__SHARE_ROWS,
	HG__SHARE_TILES,
	HG__SHARE_PARTS
};
enum hg__spmm_write { HG__WRITE_STAGED, HG__WRITE_ATOMIC_F16, HG__WRITE_ATOMIC_F32 };
enum hg__spmm_scale { HG__SCALE_ROW, HG__SCALE_PRE, HG__SCALE_POST, HG__SCALE_BATCH };

#define HG__UNSAFE 1    /* does not keep its error bound */
#define HG__UNORDERED 2 /* may give different bits in another run */

struct hg__spmm_spec {
	const char *name, *what;
	enum hg__spmm_share share;
	int columns; /* columns of one load */
	enum hg__spmm_write write;
	enum hg__spmm_scale scale;
	hg_accumulate accumulate; /* the accumulation that a call must request */
	hg_accumulate bound;
	int group;      /* most edges of a group; 0: the variant has no groups */
	unsigned flags; /* HG__UNSAFE, HG__UNORDERED */
	enum hg__spmm_variant next;
};
/* [HG__SPMM_VARIANTS]; the first is AUTO, which accepts every call. */
extern const struct hg__spmm_spec hg__spmm_specs[];

/* Returns why this variant cannot compute this call on this device, as text for the log; NULL if it
 * can. */
const char *hg__spmm_refuses(const hg_context *ctx, const struct hg__spmm_args *a,
                             enum hg__spmm_variant variant);
/* The variant that runs: the requested one, or the first of its replacements that can compute the
 * call. The log gets one line, once in each context, for each variant that cannot (level INFO) and
 * for each that runs (DEBUG). */
enum hg__spmm_variant hg__spmm_pick(hg_context *ctx, const struct hg__spmm_args *a);

/* Builds the plan of a GROUPS variant: the edges of each row in groups of `group`, the last of a
 * row shorter, and an item of its own for the rows before the first edge. It has the format of
 * csr.h, so all kernels that process plans can process it. item_work = group. It is freed by
 * hg__plan_free. */
HG_NODISCARD hg_status hg__spmm_groups(hg_context *ctx, int64_t rows, const int64_t *host_rowptr,
                                       int group, struct hg__plan **plan);

HG_EXTERN_C_END
#endif
