#ifndef HG_CORE_GRAPH_STREAM_CHECK_H
#define HG_CORE_GRAPH_STREAM_CHECK_H

#include "core/refill.h"
#include "halfgraph/graph_stream.h"

HG_EXTERN_C_BEGIN

/* graph_stream_choose.c: what HG_AGGREGATION_AUTO means on this device. */
hg_aggregation hg__stream_choose(hg_device device, const hg_graph_stream_config *c);

/* What is wrong with what a stream is asked for, with a list, or with a graph that was made: a
 * status, and the text that tells. */

HG_NODISCARD hg_status hg__stream_check_config(hg_context *ctx, const hg_graph_stream_config *c);
/* HG_ERR_UNSUPPORTED: indices have 32 bits. */
hg_status hg__stream_too_large(hg_context *ctx, const hg_graph_stream_config *c);
/* Is a list what the config promised, as far as its size and its arrays tell? */
HG_NODISCARD hg_status hg__stream_check_list(hg_context *ctx, const hg_graph_stream_config *c,
                                             int64_t nodes, int64_t m, const int32_t *dst,
                                             const int32_t *src, const float *weight);
/* Did the conversion find a promise broken? Waits for the device. */
HG_NODISCARD hg_status hg__stream_check_promises(hg_context *ctx, const hg_graph_stream_config *c,
                                                 const struct hg__refill *r);

HG_EXTERN_C_END
#endif
