#ifndef HG_BENCH_CONVERT_SUMS_H
#define HG_BENCH_CONVERT_SUMS_H

#include "bench.h"
#include "halfgraph/graph_stream.h"

/* Measures and reports one sum over neighbours on streams that gather and scatter and hold the same
 * list, for each width; and for how many of them on a list scattering takes less time, where it
 * saves `saved` ms of the conversion. */
hg_status convert_sums(struct bench *b, hg_graph_stream *gather, hg_graph_stream *scatter,
                       double saved);

#endif
