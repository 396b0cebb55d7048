/* Orders of the nodes of a graph: the methods, the symmetric graph that they work on, and the
 * memory, threads and progress reports of a search. Neighbouring nodes that share neighbours make
 * aggregation faster. */
#ifndef HG_ORDER_ORDER_H
#define HG_ORDER_ORDER_H

#include "core/buffer.h"
#include "halfgraph/order.h"
#ifdef _OPENMP
#include <omp.h>
#endif

HG_EXTERN_C_BEGIN

/* Resources of a search. Memory comes from the context's hooks, or from malloc where there is no
 * context. */
struct hg__order_work {
	hg_context *ctx;
	const hg_progress *progress;
	int threads; /* the most threads to use; no result depends on the number */
};
/* Allocates zeroed memory. */
HG_NODISCARD hg_status hg__order_alloc(const struct hg__order_work *work, int64_t count,
                                       size_t size, struct hg__buffer *memory);
void hg__order_free(const struct hg__order_work *work, struct hg__buffer *memory);
/* The calling thread's number, below work->threads. */
static inline int hg__order_thread(void)
{
#ifdef _OPENMP
	return omp_get_thread_num();
#else
	return 0;
#endif
}
/* All passes over the edges read some value of each edge's node, at random addresses. Prefetching
 * it this many edges ahead hides most of the latency. */
enum { HG__AHEAD = 16 };
static inline void hg__order_prefetch(const void *memory)
{
#if defined(__GNUC__)
	__builtin_prefetch(memory);
#else
	(void)memory;
#endif
}
/* Reports progress. HG_ERR_STATE if the progress callback asks to stop. */
HG_NODISCARD hg_status hg__order_progress(const struct hg__order_work *work, const char *what,
                                          int64_t done, int64_t total);

/* A symmetric graph: edges without direction. The neighbours of i are entries ptr[i] .. ptr[i+1]-1
 * of each side. The first side holds the edges as given. If their pattern is not symmetric, a
 * second side holds them reversed. */
struct hg__side {
	const int64_t *ptr;
	const int32_t *id;
	const float *weight; /* NULL: all weights are 1 */
};
struct hg__symmetric {
	int64_t n;
	int sides;
	struct hg__side side[2];
	struct hg__buffer ptr_memory, id_memory, weight_memory; /* memory that this graph owns */
};
HG_NODISCARD hg_status hg__symmetric_make(const struct hg__order_work *work, int64_t n,
                                          const int64_t *rowptr, const int32_t *col,
                                          struct hg__symmetric *symmetric);
void hg__symmetric_free(const struct hg__order_work *work, struct hg__symmetric *symmetric);
static inline int64_t hg__symmetric_degree(const struct hg__symmetric *symmetric, int64_t i)
{
	int64_t degree = 0;
	for (int s = 0; s < symmetric->sides; s++)
		degree += symmetric->side[s].ptr[i + 1] - symmetric->side[s].ptr[i];
	return degree;
}

/* The methods. Each writes a permutation of the nodes to order [n]. */
HG_NODISCARD hg_status hg__order_degree(const struct hg__order_work *work,
                                        const struct hg__symmetric *symmetric, int32_t *order);
HG_NODISCARD hg_status hg__order_leading(const struct hg__order_work *work,
                                         const struct hg__symmetric *symmetric, int32_t *order);
HG_NODISCARD hg_status hg__order_rcm(const struct hg__order_work *work,
                                     const struct hg__symmetric *symmetric, int32_t *order);
HG_NODISCARD hg_status hg__order_community(const struct hg__order_work *work,
                                           const struct hg__symmetric *symmetric, int32_t *order);

/* hg_order_find and hg_order_check with memory and error messages from a context. With ctx NULL
 * they use malloc and keep no message. */
HG_NODISCARD hg_status hg__order_find(hg_context *ctx, const hg_order_config *config, int64_t n,
                                      const int64_t *rowptr, const int32_t *col, int32_t *order,
                                      hg_order_report *report);
HG_NODISCARD hg_status hg__order_check(const struct hg__order_work *work, int64_t n,
                                       const int32_t *order, int32_t *position);

/* Sorts 0 .. n-1 by key in [0, keys): a stable counting sort. */
HG_NODISCARD hg_status hg__order_by_key(const struct hg__order_work *work, int64_t n, int64_t keys,
                                        const int32_t *key, int32_t *order);

HG_NODISCARD hg_status hg__locality(const struct hg__order_work *work, int64_t n,
                                    const int64_t *rowptr, const int32_t *col, const int32_t *order,
                                    hg_locality *locality);

HG_EXTERN_C_END
#endif
