#ifndef HG_BENCH_BENCH_H
#define HG_BENCH_BENCH_H

#include <math.h>

#include "device.h"
#include "halfgraph/halfgraph.h"
#include "options.h"
#include "reorder.h"
#include "report.h"

/* One run of the tool. */
struct bench {
	struct options options;
	hg_context *ctx;
	const struct device *device;
	struct report report;
	const hg_policy *policy; /* at hand */

	/* the workload */
	char graph_name[64];
	hg_graph *graph;
	struct hg__csr csr;
	struct reorder reorder;
	int64_t *rowptr; /* host, [rows + 1] */
	int64_t longest; /* the row with most edges */
	int64_t features, stored;
	int classes;
};

/* Median, least and most of the samples, in ms. */
typedef hg_status (*run_fn)(void *what);
hg_status measure(struct bench *b, run_fn run, void *what, struct timing *timing);
/* The same of times at hand; sorts. */
struct timing timing_of(double *ms, int count);

/* Rate of a copy on the device, bytes read and written, TB/s. */
hg_status copy_rate(struct bench *b, double *tb_s);
/* The gather ceiling of a matrix, reported: over the workload's edges and, where --reorder moved
 * them, over those of the graph as it came. NAN where the device has none. */
struct ceiling {
	double ms, unordered;
};
#define CEILING_NONE ((struct ceiling){(double)NAN, (double)NAN})
hg_status ceiling(struct bench *b, const char *op, struct hg__mat x, struct ceiling *ceiling);

/* Matrices of one case, freed together. */
struct mats {
	hg_tensor *tensor[12];
	int count;
};
hg_status mat_new(struct bench *b, struct mats *mats, hg_dtype dtype, int64_t rows, int64_t cols,
                  struct hg__mat *mat);
/* Filled with numbers uniform in [low, high); `stream` tells matrices apart. */
hg_status mat_random(struct bench *b, struct mats *mats, hg_dtype dtype, int64_t rows, int64_t cols,
                     uint64_t stream, double low, double high, struct hg__mat *mat);
void mats_free(struct mats *mats);

/* The commands. */
hg_status bench_spmm(struct bench *b);
hg_status bench_sddmm(struct bench *b);
hg_status bench_gemm(struct bench *b);
hg_status bench_edge_softmax(struct bench *b);
hg_status bench_epoch(struct bench *b);
hg_status bench_ops(struct bench *b);

#endif
