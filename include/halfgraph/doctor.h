#ifndef HALFGRAPH_DOCTOR_H
#define HALFGRAPH_DOCTOR_H

#include "halfgraph/optim.h"
#include "halfgraph/progress.h"
#include "halfgraph/tape.h"
#include "halfgraph/train.h"

HG_EXTERN_C_BEGIN

/* What went wrong first. A doctor replays a training step op by op, every tensor kept, beside a
 * wider shadow: each op once more in f32, on the operands that it really had. The first op that
 * makes something bad of good operands is the origin. The run itself is never changed: weights,
 * moments, statistics, gradients, loss scale and counters have the bits afterwards that they had
 * before. */

typedef enum hg_cause {
	/* a feature, label, edge weight or parameter was bad before the step began, or is no half; a
	 * running statistic that its column cannot have had (op, layer: of the norm; wide: the
	 * batch's, NaN where it is not known) */
	HG_CAUSE_INPUT = 0,
	/* a partial sum in f16 overflowed, the sum itself would have fitted; of a gradient: as it is,
	 * or at loss scale 1, where its partial sums fit at no scale */
	HG_CAUSE_ACCUMULATION = 1,
	HG_CAUSE_STORE = 2,      /* forward: the result is beyond its type, however it is summed */
	HG_CAUSE_LOSS_SCALE = 3, /* backward: overflow that is none at loss scale 1 */
	HG_CAUSE_EXPLOSION = 4,  /* backward: beyond its type at loss scale 1 as well */
	/* rounded to zero: most of a tensor, of its rows, or of columns of features; units of a
	 * gradient; all of a parameter's working copy */
	HG_CAUSE_UNDERFLOW = 5,
	HG_CAUSE_SWAMPING = 6, /* a sum in f16 is too large for addends below half a unit of it */
	/* division by zero or nearly zero (a vanishing variance, too), log or root of what has none */
	HG_CAUSE_ZERO = 7,
	/* good gradients, bad weights or moments after the update; or an overflow of what reads weights
	 * that the updates of this run have blown up (grown) */
	HG_CAUSE_OPTIMISER = 8,
	HG_CAUSE_COUNT = 9
} hg_cause;
HG_API const char *hg_cause_name(hg_cause cause); /* "loss-scale", for programs */
/* "backward overflow caused by the loss scale", for people */
HG_API const char *hg_cause_text(hg_cause cause);

/* What was zero, or nearly, where the cause is HG_CAUSE_ZERO. */
typedef enum hg_zero {
	HG_ZERO_NONE = 0,
	HG_ZERO_QUOTIENT = 1,  /* divided by it */
	HG_ZERO_LOGARITHM = 2, /* the logarithm of it */
	HG_ZERO_ROOT = 3,      /* its root, or the slope of that */
	HG_ZERO_VARIANCE = 4   /* divided by its root */
} hg_zero;

/* What a row of the tensor at fault is. */
typedef enum hg_row_kind {
	HG_ROW_NODE = 0,
	HG_ROW_EDGE = 1,
	HG_ROW_GRAPH = 2,
	HG_ROW_WEIGHT = 3,
	HG_ROW_SCALAR = 4
} hg_row_kind;

/* What an addend is: one of the sum's own (a neighbour, a column); or what a fused node adds to
 * them:
 * the node's own term, (1 + eps) X of a GIN, and the bias; or the gradient that was there before,
 * to
 * which another part is added. */
typedef enum hg_term_kind {
	HG_TERM_ADDEND = 0,
	HG_TERM_OWN = 1,
	HG_TERM_BIAS = 2,
	HG_TERM_BEFORE = 3
} hg_term_kind;

/* One addend of a sum: value = factor * operand, as it counts in the result: the values of all
 * addends
 * add up to it, but for what follows the sum (relu, dropout). */
typedef struct hg_term {
	int64_t row, col; /* of the operand: a neighbour's row, an input feature's */
	double factor, operand, value;
	hg_term_kind is;
} hg_term;

/* What the op had at the element at fault, where that says more than addends do: the x of an exp, a
 * divisor, a factor, the variance and eps of a norm, two gradients that are added. */
typedef struct hg_operand {
	const char *role; /* "x", "divisor", "factor", "variance", "gradient" */
	/* "scores/softmax", "gradient of left/scale", "conv0.gamma"; "" for a constant */
	const char *tensor;
	int64_t row, col; /* of the tensor; -1 for a constant */
	double value;
} hg_operand;

/* A place on the way of what is not finite (or is wrong) to the loss and on to the weights. */
typedef struct hg_chain_link {
	/* whose result, or (backward) whose result's gradient, is reached; -1: a parameter or an
	 * input */
	int32_t node;
	int backward;
	const char *op, *layer; /* of that node; a parameter: its name, "" */
	const char *name;       /* as hg_finding.tensor names it: no two links have the same */
	/* elements that are not finite, of all; 0: finite, but made of what is wrong */
	int64_t bad, count;
} hg_chain_link;

#define HG_DOCTOR_FAILURE 200
/* What to change, as the user would type it, and what came of it. */
typedef struct hg_remedy {
	/* "--precision fp16", "--aggregate mean", "--loss-scale 1024"; of a run of train.h. "" where no
	 * option helps (a bad file), and for a tape of one's own */
	const char *option;
	/* the same in C: "policy = hg_policy_fp16()", "hg_log_softmax(tape, x)"; "" likewise */
	const char *call;
	const char *why;
	int tried, worked; /* tried: a run with it was made; worked: it trained without a finding */
	double loss_first, loss_last; /* the first that was a number (NaN: none was), and the last */
	/* Tried, and did not work: why not; not tried, since another finding has to be mended by hand
	 * first: that. Without a full stop; else "". */
	char failure[HG_DOCTOR_FAILURE];
} hg_remedy;

/* A sum on its way: behind `taken` of its terms, in the measure of the result. half: the running
 * sum in fp16, NaN where the op does not sum in fp16; wide: the same terms added in f64. */
typedef struct hg_running {
	int64_t taken;
	double half, wide;
} hg_running;

#define HG_DOCTOR_TOP 8
#define HG_DOCTOR_OPERANDS 6
typedef struct hg_finding {
	size_t size;
	hg_cause cause;
	hg_zero zero;
	int64_t step; /* number of the step, from 0 */
	int backward;
	/* of the tape (hg_tape_print); -1: an input, a parameter or the optimiser */
	int32_t node;
	/* "spmm", "conv2": of a node that does the work of several ops, the one at fault; "" where
	 * there is none */
	const char *op, *layer;
	/* "conv2/spmm", "gradient of conv1/linear", "features", "conv1.weight" */
	const char *tensor;
	hg_row_kind row_is; /* HG_ROW_WEIGHT: row and col are those of the parameter */
	/* the element, the first one that is bad: a node and a feature; an edge and a head. Underflow:
	 * the largest one that is lost */
	int64_t row, col;
	/* where a column is an attention head, which; -1: it is a feature, or a column */
	int32_t head;
	/* "destination" or "source", where one tensor holds the heads of both ends; else "" */
	const char *head_of;
	/* it is one of evaluations: of their forward pass, or running statistics that only they read */
	int evaluation;
	int64_t edge_row, edge_col; /* HG_ROW_EDGE: its end points, row <- column; else -1 */
	/* as stored; what it is from the same operands in f64, where it is a sum, else in f32 */
	double got, wide;
	/* what is not finite: the largest size that the type would have to hold for all elements with
	 * this fault, of their wide values and, in f16 sums, of the partial ones; else NaN */
	double largest;
	/* what was crossed: 65520 (f32: 2^128), the smallest half, half a unit of the partial sum, 0 */
	double limit;
	/* elements of the tensor with the same fault, of all; swamping: 1 or more, those that were
	 * looked at */
	int64_t bad, count;
	double scale; /* loss scale in force */
	/* the result is stored x 2^-shift (hg_policy.replan); all numbers here are those of the result
	 * itself */
	int32_t shift;
	/* sums: */
	int64_t terms; /* addends of the element; 0: no sum */
	int64_t
	    /* sums in f16: addends taken in when the sum overflowed, that one included; swamping: when
	     * an addend did not change the sum that was the largest of such; else 0 */
	    partial_at;
	double partial; /* the last finite running sum there, as it stood in f16 */
	/* what follows it: partial * partial_factor is in the measure of the result and of the
	 * addends */
	double partial_factor;
	int64_t ignored;            /* swamping: addends that changed nothing, or whose batch did not */
	double ignored_share;       /* and their sizes, of those of all */
	hg_term top[HG_DOCTOR_TOP]; /* the largest addends first */
	int tops;
	/* the addends stand in one row of the operand, in different columns; 0: in different rows */
	int along_columns;
	hg_operand operand[HG_DOCTOR_OPERANDS]; /* [operands] */
	int operands;
	/* features that became zero at their upload: columns that lost more than half of their mass;
	 * else 0 */
	int64_t columns;
	/* the weight that the updates have made larger than any other, "conv0.weight"; "": none is */
	const char *grown;
	double grown_by; /* the geometric mean of its sizes, by that of when the doctor was made */
	const hg_chain_link *chain; /* [links], the origin first */
	int links;
	hg_remedy *remedy; /* [remedies], the best first */
	int remedies;
	const char *sentence; /* hg_finding_sentence with rows by their numbers, and the cause */
	const char *op_words; /* what `op` does, in plain words: "sum over neighbours"; or "" */
	/* The sum on its way, the first term first, the last one last: some 200 points at most, and
	 * those around partial_at. [runnings]; 0 where the element is no sum. */
	const hg_running *running;
	int runnings;
} hg_finding;

/* Where, what and why as one sentence, without a full stop and the cause's name: "step 3:
 * conv0/spmm (result of spmm in conv0) at node 5, feature 2 is inf: ...". Into text [size], cut
 * where it does not fit; returns the length that it has. place writes into name [room] what the
 * reader calls the row of the element, instead of "node 5"; NULL: that. */
typedef void (*hg_place_fn)(void *user, const hg_finding *finding, char *name, size_t room);
HG_API int hg_finding_sentence(const hg_finding *finding, hg_place_fn place, void *user, char *text,
                               size_t size);
/* The same as a headline: what happened and what to do, from what was tried: "fp16 overflow
 * while summing 3007 neighbours of node 777. Fix: --precision fp16". text, size, place and what
 * is returned: as above. */
HG_API int hg_finding_headline(const hg_finding *finding, hg_place_fn place, void *user, char *text,
                               size_t size);

/* A tensor of the step, as it was seen. bin[k], k = 0 .. 31: elements by the exponent bits of a
 * half: bin 0 subnormals (zeros apart), 1 .. 30 normal with 2^(k-15) <= |x| < 2^(k-14), 31 beyond
 * 65504 or not finite. f32 tensors: clamped into the same bins. */
typedef struct hg_doctor_tensor {
	/* "conv2/spmm"; "gradient of ..." with the op whose backward made it */
	const char *name, *op, *layer;
	/* whose result, or whose result's gradient, it is; -1: an input or a parameter, or the gradient
	 * of one */
	int32_t node;
	int backward;
	hg_dtype dtype;
	int64_t rows, cols, zeros, subnormals, nonfinite;
	double amax, bound,
	    /* of the finite elements; the bound of the range rules at this loss scale, INFINITY if
	     * none; bits: log2(65520 / amax) (f32: 2^128), INFINITY for zeros, 0 where an element is
	     * not finite */
	    headroom;
	hg_verdict verdict;
	int64_t bin[32];
	int32_t in[8]; /* tape nodes of the operands; -1: a leaf or none */
	/* stored x 2^-shift (hg_policy.replan): amax and bound are those of the value, all else is that
	 * of what is stored */
	int32_t shift;
} hg_doctor_tensor;

typedef struct hg_doctor_report {
	size_t size;
	int64_t step;            /* that was examined */
	double loss, loss_scale; /* loss: NaN of an evaluation, which computes none */
	/* [findings], the first to happen first; of what one node did, what is not finite before what
	 * is silent */
	const hg_finding *finding;
	int findings;
	const hg_doctor_tensor *tensor; /* [tensors] in the order of the step */
	int tensors;
	double headroom; /* the smallest of all f16 tensors, bits; NaN: there is none */
	const char *headroom_at;
} hg_doctor_report;

typedef struct hg_doctor hg_doctor;

typedef struct hg_doctor_config {
	size_t size;
	int silent; /* 1: look for swamping and underflow too, not only for what is not finite */
	/* at least 1; where there are more, what is not finite is kept before what is silent */
	int most_findings;
	/* What a training run's data.input.x was uploaded from: a compact host array [n, d], f16 or
	 * f32, borrowed. NULL: not known, so that nobody sees what became 0 then. */
	const void *features;
	hg_dtype features_dtype;
	/* told before every node of a replay; one that is stopped leaves the run as it was. NULL:
	 * unwatched */
	const hg_progress *progress;
} hg_doctor_config;
#define HG_DOCTOR_CONFIG_INIT                        \
	{                                                \
		sizeof(hg_doctor_config), 1, 8, 0, HG_F32, 0 \
	}

/* For a loop of your own: `record` records on a tape what the loop's tape has, and returns the
 * loss; it is called once, now. optim may be NULL: the update is not examined then. config NULL:
 * HG_DOCTOR_CONFIG_INIT. All are borrowed: free the doctor before them. */
typedef hg_var (*hg_doctor_record_fn)(void *user, hg_tape *tape);
HG_API HG_NODISCARD hg_status hg_doctor_create(hg_params *params, hg_optim *optim,
                                               hg_doctor_record_fn record, void *user,
                                               const hg_doctor_config *config, hg_doctor **doctor);
/* For a run of train.h: its own tape, as it is when a step is examined. Borrows it. */
HG_API HG_NODISCARD hg_status hg_doctor_create_train(hg_train *train,
                                                     const hg_doctor_config *config,
                                                     hg_doctor **doctor);
HG_API void hg_doctor_free(hg_doctor *doctor);

/* Examine one step from the state at hand. back 0: the next step. back 1: the last one, which must
 * have been skipped (HG_ERR_STATE else), so that the state before it is the state at hand but for
 * the loss scale and the counter. The report is the doctor's, until the next call. HG_INFO_* never;
 * findings are no error. Cost: memory for every tensor of the step, for a copy of the parameters
 * and for the operands of one op in f32, given back before this returns; a few steps' time and
 * every tensor read by the host once. */
HG_API HG_NODISCARD hg_status hg_doctor_examine(hg_doctor *doctor, int back,
                                                const hg_doctor_report **report);
/* Examine the forward pass of an evaluation with the weights and running statistics at hand, of
 * a training run (HG_ERR_STATE else): what is not finite there, which no step of training shows.
 * After hg_train_run: that of the best epoch. In its first steps a batch norm's running
 * statistics are not yet those of the data, and what overflows for that is a finding as well. */
HG_API HG_NODISCARD hg_status hg_doctor_examine_evaluation(hg_doctor *doctor,
                                                           const hg_doctor_report **report);

/* Try what remedies say: each option once, in a run of its own from the beginning, and note in
 * every remedy that names it whether it worked: the last step was applied with a finite loss, no
 * larger than the first finite one and not the same, and the next one has no finding. What no
 * option mends stays in every run, so that nothing is tried beside it. The first finding's remedies
 * come first, as they are listed, then what the next ones name besides, until
 * `most` runs have been made. Types, sums, norms, factors and rates are said by the config,
 * "--row-normalize on" by features of the run's own, divided as hg_dataset_row_normalize does; what
 * neither can say stays untried, as does a run that does not fit into memory. The findings, the
 * data and the run that they are of keep every bit. */
typedef struct hg_doctor_trial {
	size_t size;
	/* of the run with the findings; its progress is called for every epoch of every run */
	const hg_train_config *config;
	const hg_train_data *data;
	int64_t steps; /* of each run */
	/* Where each run begins, as hg_train_set_state puts it in: whose findings come from a
	 * checkpoint wants remedies that help from there. NULL: with the weights that the seed
	 * makes. The loss may then rise by 0.05, as dropout has it where there is little left to
	 * learn. */
	const hg_state *from;
	/* Out: the run once more, nothing changed, before all others: what works of itself proves no
	 * remedy. NULL: nobody asks. */
	hg_remedy *control;
	/* Runs, at least 1; usually 12: one finding has 8 remedies at most, and the next ones may name
	 * 4 others. */
	int most;
	/* As in hg_doctor_config. NULL: what is on the device is taken, where a half has lost digits
	 * already. */
	const void *features;
	hg_dtype features_dtype;
} hg_doctor_trial;
#define HG_DOCTOR_TRIAL_INIT                                    \
	{                                                           \
		sizeof(hg_doctor_trial), 0, 0, 200, 0, 0, 12, 0, HG_F32 \
	}
/* findings: [count]. HG_INFO_STOPPED where progress stops a run: what did not come to an end stays
 * untried. */
HG_API HG_NODISCARD hg_status hg_doctor_try(hg_context *context, const hg_doctor_trial *trial,
                                            const hg_finding *findings, int count);

HG_EXTERN_C_END
#endif
