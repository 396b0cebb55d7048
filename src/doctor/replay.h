#ifndef HG_DOCTOR_REPLAY_H
#define HG_DOCTOR_REPLAY_H

#include "autograd/about.h"
#include "autograd/tape.h"
#include "doctor/report_memory.h"
#include "doctor/weight_growth.h"
#include "halfgraph/doctor.h"
#include "nn/optim/optim.h"

HG_EXTERN_C_BEGIN

/* The replay of one step (examine.c). Which file does what:
 *
 *     replay.c           runs forward and backward, one task after the other
 *     check_inputs.c     checks labels, edge weights and parameters before anything runs;
 *                        check_leaves.c: features and targets; working_copies.c: copies of weights
 *                        that are all 0
 *     check_results.c    compares what each task makes with a wide run on the same operands
 *                        (widen.c, scan.c), and lists it (tensor_list.c)
 *     nonfinite.c        finds results that are not finite although their operands are. cause.c
 *                        decides why; rounded_operand.c: was a divisor rounded to 0?;
 *                        gradient_sum.c: sums of two gradients
 *     underflow.c        finds results that were rounded to zero; slices.c: rows or columns of
 *                        them; underflow_rescaled.c: because of a power of two; converged.c: is
 *                        there anything left to learn?
 *     swamping.c         finds f16 sums that ignored their addends (sum.c, f16_sum.c)
 *     check_update.c     checks the optimiser's step; running_statistics.c: what evaluations read
 *     weight_growth.c    finds weights that a learning rate has made too large
 *     finding.c          describes a finding: element and sum; operands.c; heads.c; attribution.c:
 *                        the op of a fused chain; rows.c: what its rows are; chain.c: how it spread
 *     sentence.c, headline.c, remedy.c    say it in words, and what to do
 *     trial.c            trains with each remedy
 *
 * Findings live in the report's memory, because the tape and the saved state are gone when the
 * report is read. */

struct hg__finding;

/* What the rows of a value are; for edges, of which graph. */
struct hg__rows {
	hg_row_kind kind;
	int known;
	hg_graph *graph;
};

/* What is known of a value, or of its gradient. */
struct hg__value_info {
	int64_t bad, count;      /* elements that are not finite; all elements */
	int underflowed;         /* most of it was rounded to zero, here or in one of its operands */
	int tensor;              /* its index in the report's list, from 1; 0: it is not listed */
	double max_row_sum;      /* of a leaf: the largest sum of |x| over a row */
	int affected;            /* chain.c: the fault has spread to it */
	int32_t contribution[2]; /* of a gradient: the entries that made its last two contributions */
	int contributions;       /* how many there were */
};

/* A task that has been replayed. Findings are sorted by the position of their task in this list,
 * and chains are made of these tasks. */
struct hg__replayed {
	const struct hg__task *task;
	int backward;
	int64_t bad, count; /* of everything that it made */
};

/* Findings of elements that are not finite have a list of their own, so that silent faults never
 * take their place in a report. */
enum hg__finding_kind { HG__NONFINITE = 0, HG__SILENT = 1, HG__FINDING_KINDS = 2 };

struct hg__replay {
	hg_context *ctx;
	hg_tape *tape;
	hg_params *params;
	hg_optim *optim;                   /* NULL: the update is not examined */
	const hg_train_config *config;     /* of a training run; NULL: the tape is the user's own */
	const hg_progress *progress;       /* NULL: progress is not reported */
	struct hg__report_memory **memory; /* of the report */
	int wants_silent, most_findings;
	int evaluation; /* 1: only the forward pass of an evaluation */

	/* facts about the run, known before the replay */
	hg_graph *sparse_features;      /* NULL: none, or unknown */
	double sparse_features_row_sum; /* the largest sum of |x| over a row */
	/* dense features of a training run that were uploaded from f32 and narrowed, and the f32 array
	 * on the host, compact; NULL: none */
	const hg_tensor *narrowed;
	const float *narrowed_from;
	const struct hg__weight_sizes *initial_weights;
	double largest_loss_gradient; /* of earlier examinations, at loss scale 1; 0: unknown */
	struct hg__step step;         /* the step counters when the step begins */

	/* what the replay finds out */
	const hg_graph *bad_graph;           /* has weights that are not finite; NULL: none */
	struct hg__value_info *value, *grad; /* [values] */
	struct hg__rows *rows;               /* [values] */
	struct hg__replayed *replayed;       /* [replayed_count], in the order of the step */
	int64_t replayed_count;
	hg_doctor_tensor *tensor;
	int tensors, tensor_room;
	struct hg__finding *finding[HG__FINDING_KINDS]; /* [most_findings] each */
	int findings[HG__FINDING_KINDS];
	double loss;
	double loss_gradient_abs_sum; /* of the loss's own gradient, at the loss scale */

	/* of the task that runs now */
	struct hg__mat before[HG__MAX_IN]; /* the gradients to which it adds its own */
	int intermediate_bad;              /* what its backward pass makes on the way is not finite */
};

/* Runs the step and checks every task. */
HG_NODISCARD hg_status hg__replay_run(struct hg__replay *replay);

/* rows.c: fills replay->rows. */
void hg__rows_infer(struct hg__replay *replay);
/* rows.c: the two ends of edge e of a graph. */
HG_NODISCARD hg_status hg__edge_ends(hg_context *ctx, hg_graph *graph, int64_t e, int64_t *row,
                                     int64_t *col);

/* A cast that the tape recorded by itself so that types fit; the user did not write it. */
static inline int hg__is_implicit_cast(const hg_tape *tape, int64_t entry)
{
	const struct hg__node *node = &tape->recording.entry[entry].node;
	if (!(node->op->traits & HG__CASTS))
		return 0;
	return tape->recording.value[node->in[0]].cast_view[tape->recording.value[node->out].dtype] ==
	       node->out;
}
/* The value itself, or the operand of the implicit casts that made it. */
static inline int32_t hg__before_casts(const hg_tape *tape, int32_t value)
{
	while (tape->recording.value[value].node >= 0 &&
	       hg__is_implicit_cast(tape, tape->recording.value[value].node))
		value = tape->recording.entry[tape->recording.value[value].node].node.in[0];
	return value;
}
static inline const struct hg__entry *hg__entry_of(const struct hg__replay *replay,
                                                   const struct hg__task *task)
{
	return &replay->tape->recording.entry[task->entry];
}

HG_EXTERN_C_END
#endif
