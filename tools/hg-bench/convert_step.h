#ifndef HG_BENCH_CONVERT_STEP_H
#define HG_BENCH_CONVERT_STEP_H

#include "bench.h"
#include "halfgraph/graph_stream.h"

/* Measures and reports training steps of a GCN on the graph of a stream that holds a list, without
 * and with a refill before each. */
hg_status convert_step(struct bench *b, hg_graph_stream *stream);

#endif
