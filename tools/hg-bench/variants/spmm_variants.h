/* The variants of aggregation (spmm) that hg-bench measures beside the kernel that training uses
 * (spmm_variants.def describes each). They are no part of the library. */
#ifndef HG_BENCH_SPMM_VARIANTS_H
#define HG_BENCH_SPMM_VARIANTS_H

#include "core/plan_tiles.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

enum spmm_variant_id {
#define SPMM_VARIANT(id, ...) SPMM_##id,
#include "spmm_variants.def"
#undef SPMM_VARIANT
	SPMM_VARIANTS
};

enum spmm_share { SHARE_EDGES, SHARE_GROUPS, SHARE_ROWS, SHARE_TILES, SHARE_PARTS };
enum spmm_write { WRITE_STAGED, WRITE_ATOMIC_F16, WRITE_ATOMIC_F32 };
enum spmm_scale { SCALE_ROW, SCALE_PRE, SCALE_POST, SCALE_BATCH };

#define VARIANT_UNSAFE 1    /* does not keep its error bound */
#define VARIANT_UNORDERED 2 /* may give different bits in another run */

struct spmm_variant {
	const char *name, *what, *source;
	enum spmm_share share;
	int columns; /* columns of one load */
	enum spmm_write write;
	enum spmm_scale scale;
	hg_accumulate accumulate; /* the accumulation that a call must request */
	hg_accumulate bound;
	int group;      /* most edges of a group; 0: the variant has no groups */
	unsigned flags; /* VARIANT_UNSAFE, VARIANT_UNORDERED */
};
extern const struct spmm_variant spmm_variants[SPMM_VARIANTS];

/* Returns why a variant cannot compute this call on this device; NULL if it can. */
const char *spmm_variant_refuses(const hg_context *ctx, const struct hg__spmm_args *a,
                                 enum spmm_variant_id id);

/* A call, ready to be computed by a variant. args.csr has the plan that the variant needs: that of
 * the graph, or one that belongs to the call. The struct points into itself, so it must not be
 * copied. */
struct spmm_variant_call {
	hg_context *ctx;
	enum spmm_variant_id id;
	struct hg__spmm_args args;
	struct hg__plan plan;    /* ROWS: every row an item; TILES: the graph's plan with other tiles */
	struct hg__plan *groups; /* GROUPS */
	struct hg__tiles *tiles; /* TILES */
};
/* Makes a call ready. *why is the reason why the variant cannot compute it, else NULL. The caller
 * frees the call in either case, and after an error. */
HG_NODISCARD hg_status spmm_variant_open(hg_context *ctx, enum spmm_variant_id id,
                                         const struct hg__spmm_args *args,
                                         const int64_t *host_rowptr, struct spmm_variant_call *call,
                                         const char **why);
/* Queues a call for which open found no *why. `call` is a struct spmm_variant_call. */
HG_NODISCARD hg_status spmm_variant_run(void *call);
void spmm_variant_close(struct spmm_variant_call *call);

/* Builds the plan of a GROUPS variant: the edges of each row in groups of `group`, the last of a
 * row shorter, and an item of its own for the rows before the first edge. It has the format of
 * csr.h, so all kernels that process plans can process it. item_work = group. It is freed by
 * hg__plan_free. */
HG_NODISCARD hg_status spmm_variant_groups(hg_context *ctx, int64_t rows,
                                           const int64_t *host_rowptr, int group,
                                           struct hg__plan **plan);

/* Queues the call of a variant that does not refuse it, on a GPU (spmm.cu). */
HG_NODISCARD hg_status spmm_variant_cuda(hg_context *ctx, const struct hg__spmm_args *a,
                                         enum spmm_variant_id id);

HG_EXTERN_C_END
#endif
