#ifndef HG_TESTS_SUITE_BATTERY_H
#define HG_TESTS_SUITE_BATTERY_H

#include "autograd/op.h"
#include "graphs.h"
#include "oracle/oracle.h"

/* The battery: every op of the table, on each of its samples, on small graphs with everything that
 * is difficult, compared with the oracle. Only battery_options, which translates the options of an
 * op for the oracle, knows ops by name.
 *
 * Every result is within its bound of the exact one. So CPU and CUDA agree, and relabelled nodes
 * permute the output, without a test of their own. */

struct battery_graph {
	const char *name;
	int weighted;
	/* Its weights say how often edges count, as ops with HG__COUNTS_EDGES want it; others do not
	 * use it. */
	int counted;
	/* Not 0: the only width in which this graph is used, and only by ops that need no edges and
	 * combine rows or columns. Some kernels treat matrices of many rows in another way than small
	 * ones: with many blocks that have a share each, or, in batch_norm, in the registers of one
	 * block (up to 4,096 rows) or of one cluster (up to 32,768). */
	int64_t width;
	hg_graph *graph;
	struct host_csr csr;
	int64_t *ptr;          /* of the batch */
	int dense;             /* 1: it gets dense counts, where the device wants them */
	double *weight;        /* csr.weight in f64 */
	struct oracle_graph o; /* points to the arrays above */
};
/* Makes graph k of the collection. Returns 0 if there is none. */
int battery_graph_new(hg_context *ctx, int k, struct battery_graph *g);
void battery_graph_free(struct battery_graph *g);

/* One op on one sample: operands on the device, and exactly the same numbers for the oracle. */
struct battery_case {
	hg_context *ctx;
	const struct hg__kernels *kernels;
	const struct hg__op *op;
	const struct battery_graph *g;
	struct hg__sample sample;
	hg_mode mode;
	hg_params *params; /* owns the running statistics */
	hg_tape *tape;     /* infer writes its message there */
	struct hg__node node;
	struct hg__infer infer;
	struct hg__call call;
	hg_tensor *in[HG__MAX_IN], *out, *aux[HG__MAX_AUX], *dout, *din[HG__MAX_IN], *step;
	struct oracle_call o;
	double running[2][512];
};
void battery_case_open(struct battery_case *c, hg_context *ctx, const struct hg__kernels *kernels,
                       const struct hg__op *op, const struct battery_graph *g,
                       const struct hg__sample *sample, hg_dtype state, hg_accumulate accumulate,
                       hg_mode mode);
void battery_case_close(struct battery_case *c);

struct battery_score {
	double worst;           /* the largest err / bound of a run */
	char where[256];        /* the element that has it */
	int64_t count, samples; /* elements that were compared; samples that were used */
	/* The caller sets these before the run. */
	int unordered; /* 1: two runs may give different bits */
	double sum_u;  /* sum_u of oracle_call, for sums of halves in f32 */
	double enough; /* no more cases are run when `worst` exceeds it; 0: all are run */
};
/* Runs one case forward and backward, compares the results with the oracle's, runs it again and
 * compares the bits. `label` names the case in `where`. */
void battery_case_run(struct battery_case *c, const char *label, struct battery_score *score);
/* After battery_case_run: compares the measured magnitudes with the range rules of the op, in both
 * directions. */
void battery_case_range(const struct battery_case *c, const char *label);

/* All cases of one op with this table of kernels. */
void battery_op(hg_context *ctx, const struct hg__kernels *kernels, const struct hg__op *op,
                struct battery_score *score);

/* Translates the options of an op for the oracle. */
void battery_options(const struct hg__node *node, struct oracle_call *o);

#endif
