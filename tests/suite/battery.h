#ifndef HG_TESTS_SUITE_BATTERY_H
#define HG_TESTS_SUITE_BATTERY_H

#include "autograd/op.h"
#include "harness.h"
#include "oracle/oracle.h"

/* The battery: every op of the table, on every sample it offers, on small graphs with everything
 * that hurts, against the oracle. Nothing in here knows an op by name, except battery_options,
 * which translates an op's options for the oracle.
 *
 * That CPU and CUDA agree, and that relabelled nodes permute the output, follows: each result is
 * within its bound of the exact one. */

struct battery_graph {
	const char *name;
	int weighted;
	/* Not 0: tried in this width alone, by ops that ask for no edges and mix rows or columns. Some
	 * kernels take matrices of many rows another way than small ones: many blocks with a share
	 * each, or batch_norm what registers hold: 4,096 rows of a block, or of a cluster with one row
	 * a thread; 32,768 of a cluster. */
	int64_t width;
	hg_graph *graph;
	struct oracle_graph o;
	int64_t *rowptr, *ptr;
	int32_t *dst, *src;
	double *weight;
};
/* Graph k of the collection on this context; 0 when there are no more. */
int battery_graph_new(hg_context *ctx, int k, struct battery_graph *g);
void battery_graph_free(struct battery_graph *g);

/* One op on one sample: operands on the device and, exactly the same numbers, for the oracle. */
struct battery_case {
	hg_context *ctx;
	const struct hg__kernels *kernels;
	const struct hg__op *op;
	const struct battery_graph *g;
	struct hg__sample sample;
	hg_mode mode;
	hg_params *params; /* owns the running statistics */
	hg_tape *tape;     /* where infer leaves its sentence */
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

/* The worst err / bound of a run and where it was; count: elements compared. unordered, set before:
 * two runs may give different bits. */
struct battery_score {
	double worst;
	char where[256];
	int64_t count, samples;
	int unordered;
	double sum_u;  /* set before: of oracle_call, for sums of halves in f32 */
	double enough; /* set before: beyond it no more cases are run; 0: all are */
};
/* Forward and backward of one case, compared; run twice and compared bit by bit. `label` names the
 * case in `where`. */
void battery_case_run(struct battery_case *c, const char *label, struct battery_score *score);
/* Measured magnitudes against the op's range rules, both directions (after a run). */
void battery_case_range(const struct battery_case *c, const char *label);

/* Everything for one op with this table of kernels. */
void battery_op(hg_context *ctx, const struct hg__kernels *kernels, const struct hg__op *op,
                struct battery_score *score);

/* The oracle's view of an op's options. */
void battery_options(const struct hg__node *node, struct oracle_call *o);

#endif
