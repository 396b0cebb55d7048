#ifndef HG_BENCH_PEER_H
#define HG_BENCH_PEER_H

#include "core/csr.h"
#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* Somebody else's kernels on the same matrices. Descriptors, workspace and preparation are made
 * beforehand and not timed. */
struct peer_way {
	const char *name;
	hg_dtype dtype; /* of all matrices; sums are f32 */
	int algorithm;
};
struct peer_graph; /* what all ways share on one graph: a handle, 32-bit row pointers */
struct peer;       /* one way, on matrices at hand */

struct peers {
	const char *name;
	const struct peer_way *spmm_ways, *sddmm_ways; /* the name NULL ends them */
	hg_status (*open)(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
	                  struct peer_graph **graph);
	void (*close)(struct peer_graph *graph);
	/* Y = A X, the entries of A in values [m];  values[e] = <A[i, :], B[j, :]>. HG_ERR_UNSUPPORTED:
	 * this release refuses the way; the context says how. */
	hg_status (*spmm)(struct peer_graph *graph, const struct peer_way *way, void *values,
	                  struct hg__mat x, struct hg__mat y, struct peer **peer);
	hg_status (*sddmm)(struct peer_graph *graph, const struct peer_way *way, void *values,
	                   struct hg__mat a, struct hg__mat b, struct peer **peer);
	hg_status (*run)(void *peer);
	void (*free)(struct peer *peer);
};

#ifdef HG_HAVE_CUDA
extern const struct peers peers_cusparse;
#endif

HG_EXTERN_C_END
#endif
