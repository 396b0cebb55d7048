#ifndef HG_BENCH_PEER_H
#define HG_BENCH_PEER_H

#include "core/csr.h"
#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* Kernels of another library on the same matrices. Descriptors, workspace and preprocessing are
 * made beforehand and not timed. */
struct peer_variant {
	const char *name;
	hg_dtype dtype; /* of all matrices; sums are f32 */
	int algorithm;
};
struct peer_graph; /* what all variants share on one graph: a handle, 32-bit row pointers */
struct peer;       /* one variant on given matrices */

struct peers {
	const char *name;
	const struct peer_variant *spmm_variants, *sddmm_variants; /* terminated by the name NULL */
	hg_status (*open)(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
	                  struct peer_graph **graph);
	void (*close)(struct peer_graph *graph);
	/* Prepare Y = A X with the entries of A in values [m], or values[e] = <A[i, :], B[j, :]>.
	 * HG_ERR_UNSUPPORTED: this release refuses the variant; the context has the message. */
	hg_status (*spmm)(struct peer_graph *graph, const struct peer_variant *variant, void *values,
	                  struct hg__mat x, struct hg__mat y, struct peer **peer);
	hg_status (*sddmm)(struct peer_graph *graph, const struct peer_variant *variant, void *values,
	                   struct hg__mat a, struct hg__mat b, struct peer **peer);
	hg_status (*run)(void *peer);
	void (*free)(struct peer *peer);
};

#ifdef HG_HAVE_CUDA
extern const struct peers peers_cusparse;
#endif

HG_EXTERN_C_END
#endif
