#ifndef HG_BENCH_BENCH_H
#define HG_BENCH_BENCH_H

#include <math.h>

#include "device.h"
#include "halfgraph/policy.h"
#include "options.h"
#include "reorder.h"
#include "report.h"

/* The state of one run of the tool. */
struct bench {
	struct options options;
	hg_context *ctx;
	const struct device *device;
	struct report report;
	const hg_policy *policy; /* the current policy */

	/* the workload */
	char graph_name[64];
	hg_graph *graph;
	struct hg__csr csr;
	struct reorder reorder;
	int64_t *rowptr; /* host, [rows + 1] */
	int64_t longest; /* the row with the most edges */
	int64_t features, stored;
	int classes;
};

/* Median, least and most of the samples, in ms. */
typedef hg_status (*run_fn)(void *what);
hg_status measure(struct bench *b, run_fn run, void *what, struct timing *timing);
/* The same for given times, which this sorts. */
struct timing timing_of(double *ms, int count);

/* The rate of a copy on the device, bytes read plus bytes written, TB/s. */
hg_status copy_rate(struct bench *b, double *tb_s);
/* Measure and report the gather ceiling of a matrix: over the workload's edges and, if --reorder
 * moved the nodes, over the edges in the original order. NAN if the device has no ceiling. */
struct ceiling {
	double ms, unordered;
};
#define CEILING_NONE ((struct ceiling){(double)NAN, (double)NAN})
hg_status ceiling(struct bench *b, const char *op, struct hg__mat x, struct ceiling *ceiling);

/* The matrices of one case, freed together. */
struct mats {
	hg_tensor *tensor[16];
	int count;
};
hg_status mat_new(struct bench *b, struct mats *mats, hg_dtype dtype, int64_t rows, int64_t cols,
                  struct hg__mat *mat);
/* A matrix of numbers uniform in [low, high); `stream` selects the random numbers. */
hg_status mat_random(struct bench *b, struct mats *mats, hg_dtype dtype, int64_t rows, int64_t cols,
                     uint64_t stream, double low, double high, struct hg__mat *mat);
void mats_free(struct mats *mats);

/* The commands. */
hg_status bench_spmm(struct bench *b);
hg_status bench_sddmm(struct bench *b);
hg_status bench_gemm(struct bench *b);
hg_status bench_convert(struct bench *b);
hg_status bench_edge_softmax(struct bench *b);
hg_status bench_attention(struct bench *b);
hg_status bench_epoch(struct bench *b);
hg_status bench_batches(struct bench *b);
hg_status bench_group(struct bench *b);
hg_status bench_ops(struct bench *b);

#endif
