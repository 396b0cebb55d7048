/** @file
 * The doctor finds out what went wrong first. It replays a training step op by op, keeps every
 * tensor, and computes each op once more in f32 (the wide run) on the same operands. A finding is
 * about the first op that makes something bad of good operands.
 *
 * The run itself is never changed: weights, moments, statistics, gradients, loss scale and counters
 * have the same bits afterwards.
 *
 * Owner     A doctor borrows what it was made from; free the doctor first. Reports, findings and
 *           their texts belong to the doctor and live until its next call.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_DOCTOR_H
#define HALFGRAPH_DOCTOR_H

#include "halfgraph/optim.h"
#include "halfgraph/progress.h"
#include "halfgraph/tape.h"
#include "halfgraph/train.h"

HG_EXTERN_C_BEGIN

/** Causes of a finding. */
typedef enum hg_cause {
	/** a feature, label, edge weight or parameter was bad before the step began or does not fit
	 * f16; or a running statistic has a value that its column cannot have had (op, layer: the norm;
	 * wide: the batch's statistic, NaN if it is unknown) */
	HG_CAUSE_INPUT = 0,
	/** a partial sum in f16 overflowed although the sum itself would fit. A gradient's sum fits at
	 * the loss scale in force, or at loss scale 1 if its partial sums fit at no scale */
	HG_CAUSE_ACCUMULATION = 1,
	HG_CAUSE_STORE = 2,      /**< forward: the result does not fit its type, however it is summed */
	HG_CAUSE_LOSS_SCALE = 3, /**< backward: an overflow that does not happen at loss scale 1 */
	HG_CAUSE_EXPLOSION = 4,  /**< backward: an overflow at loss scale 1 as well */
	/** numbers are rounded to zero: most of a tensor, of its rows, or of columns of features; units
	 * of a gradient; or a whole working copy of a parameter */
	HG_CAUSE_UNDERFLOW = 5,
	/** a sum in f16 is so large that it ignores addends below half a unit in its last place */
	HG_CAUSE_SWAMPING = 6,
	/** a division by zero or nearly zero (also by a variance), or a logarithm or root of a number
	 * that has none */
	HG_CAUSE_ZERO = 7,
	/** the gradients are good, and weights or moments are bad after the update; or an op overflows
	 * because the updates of this run have enlarged its weights (grown) */
	HG_CAUSE_OPTIMISER = 8,
	HG_CAUSE_COUNT = 9 /**< number of the above */
} hg_cause;

/** A cause as one word, for programs.
 * @param cause  a cause.
 * @return "loss-scale", for example; constant, never NULL. */
HG_API const char *hg_cause_name(hg_cause cause);

/** A cause as a phrase, for people.
 * @param cause  a cause.
 * @return "backward overflow caused by the loss scale", for example; constant, never NULL. */
HG_API const char *hg_cause_text(hg_cause cause);

/** What was zero or nearly zero, if the cause is HG_CAUSE_ZERO. */
typedef enum hg_zero {
	HG_ZERO_NONE = 0,      /**< another cause */
	HG_ZERO_QUOTIENT = 1,  /**< a divisor */
	HG_ZERO_LOGARITHM = 2, /**< the operand of a logarithm */
	HG_ZERO_ROOT = 3,      /**< the operand of a root, or of its derivative */
	HG_ZERO_VARIANCE = 4   /**< a variance, by whose root a norm divides */
} hg_zero;

/** What the rows of the tensor at fault are. */
typedef enum hg_row_kind {
	HG_ROW_NODE = 0,   /**< a node */
	HG_ROW_EDGE = 1,   /**< an edge */
	HG_ROW_GRAPH = 2,  /**< a graph of a batch */
	HG_ROW_WEIGHT = 3, /**< a row of a parameter */
	HG_ROW_SCALAR = 4  /**< the only one */
} hg_row_kind;

/** What an addend of a sum is. */
typedef enum hg_term_kind {
	HG_TERM_ADDEND = 0, /**< a term of the sum itself: a neighbour, a column */
	HG_TERM_OWN = 1,    /**< the node's own term, (1 + eps) X of a GIN, in a fused op node */
	HG_TERM_BIAS = 2,   /**< the bias, in a fused op node */
	HG_TERM_BEFORE = 3  /**< the gradient so far, to which a contribution is added */
} hg_term_kind;

/** One addend of a sum. The values of all addends add up to the result, before the epilogue (relu,
 * dropout). */
typedef struct hg_term {
	int64_t row;     /**< row of the operand, such as a neighbour */
	int64_t col;     /**< column of the operand, such as an input feature */
	double factor;   /**< what the operand is multiplied by */
	double operand;  /**< the element of the operand */
	double value;    /**< factor * operand */
	hg_term_kind is; /**< what kind of addend it is */
} hg_term;

/** An edge of attention (hg_attention) at one head, computed in f64 from the operands. */
typedef struct hg_attended_edge {
	int64_t row;   /**< destination; -1: there is no edge */
	int64_t col;   /**< source */
	int32_t head;  /**< the attention head */
	double score;  /**< the score; kernels compute it in f32, which may not hold it */
	double weight; /**< softmax of the scores, times the mask of dropout; NaN: a score is bad */
} hg_attended_edge;

/** An operand of an op that is not a sum, at the element at fault: the x of an exp, a divisor, a
 * factor, the variance or eps of a norm, one of two gradients that are added. */
typedef struct hg_operand {
	const char *role; /**< "x", "divisor", "factor", "variance", "gradient" */
	/** "scores/softmax", "gradient of left/scale", "conv0.gamma"; "" for a constant */
	const char *tensor;
	int64_t row;  /**< of the tensor; -1 for a constant */
	int64_t col;  /**< of the tensor; -1 for a constant */
	double value; /**< the number */
} hg_operand;

/** One tensor on the path on which a fault spreads to the loss and on to the weights. */
typedef struct hg_chain_link {
	/** op node whose result, or (backward) whose result's gradient, the fault has reached; -1: a
	 * parameter or an input */
	int32_t node;
	int backward;      /**< 1: a gradient */
	const char *op;    /**< of that op node; or the name of a parameter */
	const char *layer; /**< of that op node; or "" */
	const char *name;  /**< as hg_finding.tensor; no two links have the same */
	int64_t bad;       /**< elements that are not finite; 0: they are finite, but wrong */
	int64_t count;     /**< elements of the tensor */
} hg_chain_link;

/** Bytes of hg_remedy.failure, with its terminating 0. */
#define HG_DOCTOR_FAILURE 200

/** What to change, as the user would type it, and the outcome if it was tried. */
typedef struct hg_remedy {
	/** "--precision fp16", "--aggregate mean", "--loss-scale 1024", for a run of train.h; "" if no
	 * option helps (bad data), and for a tape of your own */
	const char *option;
	/** the same in C: "policy = hg_policy_fp16()", "hg_log_softmax(tape, x)"; or "" */
	const char *call;
	const char *why;   /**< why it should help */
	int tried;         /**< 1: a run with it was made */
	int worked;        /**< 1: that run trained without a finding */
	double loss_first; /**< first finite loss of that run; NaN: there was none */
	double loss_last;  /**< last loss of that run */
	/** why the run did not work, or why none was made (another finding has to be fixed by hand
	 * first), without a full stop; or "" */
	char failure[HG_DOCTOR_FAILURE];
} hg_remedy;

/** A running sum after some of its terms, on the scale of the result. */
typedef struct hg_running {
	int64_t taken; /**< terms so far */
	double half;   /**< the running sum in f16; NaN if the op does not sum in f16 */
	double wide;   /**< the same terms added in f64 */
} hg_running;

/** Largest number of addends that a finding lists. */
#define HG_DOCTOR_TOP 8
/** Largest number of operands that a finding lists. */
#define HG_DOCTOR_OPERANDS 6

/** What went wrong, where and why. */
typedef struct hg_finding {
	size_t size;
	hg_cause cause; /**< why */
	hg_zero zero;   /**< what was zero; HG_CAUSE_ZERO only */
	int64_t step;   /**< number of the step, from 0 */
	int backward;   /**< 1: in the backward pass */
	int32_t node;   /**< op node (hg_tape_print); -1: an input, a parameter or the optimiser */
	/** "spmm"; of a fused op node, the op at fault; "" if there is none */
	const char *op;
	const char *layer; /**< "conv2", or "" */
	/** "conv2/spmm", "gradient of conv1/linear", "features", "conv1.weight" */
	const char *tensor;
	hg_row_kind row_is; /**< what row is; HG_ROW_WEIGHT: row and col are those of the parameter */
	/** row of the first bad element (underflow: of the largest one that was rounded to zero) */
	int64_t row;
	int64_t col;  /**< column of that element: a feature, or a head of an edge */
	int32_t head; /**< the attention head that the column belongs to; -1: none */
	/** "destination" or "source" if one tensor holds the heads of both ends; else "" */
	const char *head_of;
	/** 1: it is about evaluations: their forward pass, or running statistics that only they read */
	int evaluation;
	int64_t edge_row; /**< HG_ROW_EDGE: destination of the edge; else -1 */
	int64_t edge_col; /**< HG_ROW_EDGE: source of the edge; else -1 */
	double got;       /**< the element as it is stored */
	double wide;      /**< computed from the same operands: sums in f64, everything else in f32 */
	/** if the element is not finite: the largest magnitude that the type would have to hold so that
	 * all elements with this fault fit, f16 partial sums included; else NaN */
	double largest;
	/** the limit that the element crossed: 65520 (f32: 2^128), the smallest half, half a unit of
	 * the partial sum, or 0 */
	double limit;
	int64_t bad;   /**< elements with the same fault; swamping: at least 1, of those sampled */
	int64_t count; /**< elements of the tensor; swamping: of those sampled */
	double scale;  /**< loss scale in force */
	/** the result is stored x 2^-shift (hg_policy.replan); all numbers here are of the value */
	int32_t shift;
	int64_t terms; /**< addends of the element; 0: it is not a sum */
	/** f16 sums: number of addends when the sum overflowed, the last one included; swamping: number
	 * of addends in the largest running sum that ignored one; else 0 */
	int64_t partial_at;
	double partial;             /**< the last finite running sum there, in f16 */
	double partial_factor;      /**< partial * partial_factor is on the scale of the result */
	int64_t ignored;            /**< swamping: addends that the sum ignored, alone or as a batch */
	double ignored_share;       /**< swamping: their share of the sum of |addends| */
	hg_term top[HG_DOCTOR_TOP]; /**< [tops], the largest addends first */
	int tops;                   /**< number of addends in top */
	/** 1: the addends are in one row of the operand, in different columns; 0: in different rows */
	int along_columns;
	hg_operand operand[HG_DOCTOR_OPERANDS]; /**< [operands] */
	int operands;                           /**< number of operands */
	/** columns of features of which the upload rounded more than half (by sum) to 0; else 0 */
	int64_t columns;
	/** the weight that the updates have enlarged most, "conv0.weight"; or "" */
	const char *grown;
	/** its growth: geometric mean of its magnitudes, divided by that when the doctor was created */
	double grown_by;
	const hg_chain_link *chain; /**< [links], the origin first */
	int links;                  /**< number of links */
	hg_remedy *remedy;          /**< [remedies], the best first */
	int remedies;               /**< number of remedies */
	const char *sentence;       /**< hg_finding_sentence with place NULL, and the cause */
	const char *op_words;       /**< what op does: "sum over neighbours"; or "" */
	/** [runnings], the running sum in the order of its terms: about 200 points, with those around
	 * partial_at */
	const hg_running *running;
	int runnings;   /**< number of points; 0: the element is not a sum */
	int over_edges; /**< 1: the addends are values of edges, and the row of a term is its edge */
	int attended;   /**< 1: the sum is one over edges with attention */
	/** [tops], if attended: the edges of the addends in top. The factor of an addend is the weight
	 * of its edge, or in gradients of scores the gradient of its score */
	hg_attended_edge edge[HG_DOCTOR_TOP];
	/** 1: an edge of that sum, or of the first sum that a bad input reached, has a score that is
	 * NaN or beyond f32, so that all weights of its row are NaN. A score of -inf is none */
	int has_bad_score;
	hg_attended_edge bad_score; /**< the first such edge */
} hg_finding;

/** Names the row of a finding for the reader, instead of "node 5".
 * @param user     the pointer given with the function.
 * @param finding  the finding.
 * @param name     receives the text with its terminating 0.
 * @param room     bytes of name. */
typedef void (*hg_place_fn)(void *user, const hg_finding *finding, char *name, size_t room);

/** Writes a finding as one sentence: where, what and why, without a full stop and without the
 * cause's name: "step 3: conv0/spmm (result of spmm in conv0) at node 5, feature 2 is inf: ...".
 * @param finding  the finding.
 * @param place    names the row; NULL: by its number.
 * @param user     passed to place.
 * @param text     receives the sentence, cut if it does not fit.
 * @param size     bytes of text.
 * @return the length of the whole sentence. */
HG_API int hg_finding_sentence(const hg_finding *finding, hg_place_fn place, void *user, char *text,
                               size_t size);

/** Writes a finding as a headline: what happened and what to do. "Fix" stands before a remedy that
 * was tried and works: "fp16 overflow while summing 3007 neighbours of node 777. Fix: --precision
 * fp16".
 * @param finding  the finding.
 * @param place    names the row; NULL: by its number.
 * @param user     passed to place.
 * @param text     receives the headline, cut if it does not fit.
 * @param size     bytes of text.
 * @return the length of the whole headline. */
HG_API int hg_finding_headline(const hg_finding *finding, hg_place_fn place, void *user, char *text,
                               size_t size);

/** A tensor of the examined step. */
typedef struct hg_doctor_tensor {
	const char *name;  /**< "conv2/spmm", or "gradient of ..." */
	const char *op;    /**< of a gradient: the op whose backward pass made it */
	const char *layer; /**< "conv2", or "" */
	/** op node whose result, or whose result's gradient, it is; -1: an input or a parameter, or the
	 * gradient of one */
	int32_t node;
	int backward;       /**< 1: a gradient */
	hg_dtype dtype;     /**< HG_F16 or HG_F32 */
	int64_t rows;       /**< of the tensor */
	int64_t cols;       /**< of the tensor */
	int64_t zeros;      /**< elements that are 0 */
	int64_t subnormals; /**< elements that are subnormal halves: bin[0] */
	int64_t nonfinite;  /**< elements that are not finite */
	double amax;        /**< max |x| of the finite elements */
	double bound;       /**< on |x|, by the range rules at this loss scale; INFINITY: none */
	/** log2(65520 / amax), f32: log2(2^128 / amax), in bits; INFINITY if amax is 0, 0 if an element
	 * is not finite */
	double headroom;
	hg_verdict verdict; /**< why it may be stored in f16 */
	/** elements by magnitude: 0: 0 < |x| < 2^-14; k = 1 to 30: 2^(k-15) <= |x| < 2^(k-14); 31:
	 * above 65504 or not finite. f32 tensors: clamped into the same bins */
	int64_t bin[32];
	int32_t in[8]; /**< op nodes of the operands; -1: an input or parameter, or none */
	/** stored x 2^-shift (hg_policy.replan): amax and bound are those of the value, all other
	 * numbers are about what is stored */
	int32_t shift;
} hg_doctor_tensor;

/** What an examination found. */
typedef struct hg_doctor_report {
	size_t size;
	int64_t step;      /**< number of the examined step, from 0 */
	double loss;       /**< of that step; NaN for an evaluation, which computes none */
	double loss_scale; /**< in force in that step */
	/** [findings], in the order of the step; at the same op node, what is not finite comes before
	 * silent faults */
	const hg_finding *finding;
	int findings;                   /**< number of findings; 0: healthy */
	const hg_doctor_tensor *tensor; /**< [tensors], in the order of the step */
	int tensors;                    /**< number of tensors */
	double headroom;                /**< least headroom of all f16 tensors, in bits; NaN: none */
	const char *headroom_at;        /**< the tensor with it */
} hg_doctor_report;

/** A doctor. */
typedef struct hg_doctor hg_doctor;

/** How a doctor examines. */
typedef struct hg_doctor_config {
	size_t size;
	/** 1 (default): silent faults, which are finite (swamping and underflow), are findings too; 0:
	 * only what is not finite */
	int silent;
	/** most findings, at least 1; default 8. Silent faults are left out first */
	int most_findings;
	/** the compact host array [n, d] from which the features of a training run (data.input.x) were
	 * uploaded, borrowed; NULL (default): unknown, so features that became 0 are not found */
	const void *features;
	hg_dtype features_dtype; /**< HG_F16 or HG_F32 */
	/** called before every op node of a replay; stopping leaves the run as it was; or NULL
	 * (default) */
	const hg_progress *progress;
} hg_doctor_config;
/** The defaults of the fields. */
#define HG_DOCTOR_CONFIG_INIT  \
	HG__INIT(hg_doctor_config, \
	         HG__SET(silent, 1) HG__SET(most_findings, 8) HG__SET(features_dtype, HG_F32))

/** Records the same on a tape as the training loop of your own does.
 * @param user  the pointer given with the function.
 * @param tape  the tape to record on.
 * @return the loss. */
typedef hg_var (*hg_doctor_record_fn)(void *user, hg_tape *tape);

/** Creates a doctor for a training loop of your own.
 * @param params  the parameters, borrowed.
 * @param optim   the optimiser, borrowed; NULL: the update is not examined.
 * @param record  called once, during this call.
 * @param user    passed to record.
 * @param config  copied; NULL: HG_DOCTOR_CONFIG_INIT.
 * @param doctor  receives the doctor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, config's size is not set, a field is out of its
 *         range, optim has other params, or what was recorded is not a loss); HG_ERR_DTYPE
 *         (features_dtype is neither f16 nor f32); the first error of the recording; HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_doctor_create(hg_params *params, hg_optim *optim,
                                               hg_doctor_record_fn record, void *user,
                                               const hg_doctor_config *config, hg_doctor **doctor);

/** Creates a doctor for a run of train.h. It uses the run's own tape, as it is when a step is
 * examined.
 * @param train   the run, borrowed.
 * @param config  copied; NULL: HG_DOCTOR_CONFIG_INIT.
 * @param doctor  receives the doctor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, config's size is not set, or a field is out of its
 *         range); HG_ERR_DTYPE (features_dtype is neither f16 nor f32); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_doctor_create_train(hg_train *train,
                                                     const hg_doctor_config *config,
                                                     hg_doctor **doctor);

/** Frees a doctor with its reports.
 * @param doctor  a doctor or NULL. */
HG_API void hg_doctor_free(hg_doctor *doctor);

/** Examines one step from the present state. Findings are not an error.
 *
 * Cost      Memory for every tensor of the step, a copy of the parameters and the operands of one
 *           op in f32, which is freed before this returns. Time: that of a few steps, and the host
 *           reads every tensor once.
 * @param doctor  the doctor.
 * @param back    0: the next step; 1: the last one, which must have been skipped, so that the
 *                present state is the one before it, except for the loss scale and the counters.
 * @param report  receives the report, borrowed until the doctor's next call.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or back is neither 0 nor 1); HG_ERR_STATE (back 1
 *         and the last step was not skipped or none was taken, the watcher asked to stop, or the
 *         run has no tape because recording it again failed); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_doctor_examine(hg_doctor *doctor, int back,
                                                const hg_doctor_report **report);

/** Examines the forward pass of an evaluation with the present weights and running statistics
 * (after hg_train_run: those of the best epoch). It finds what is not finite there, which no
 * training step shows. In the first steps of a run, the running statistics of a batch norm are not
 * yet those of the data; an overflow for that reason is a finding as well.
 * @param doctor  a doctor from hg_doctor_create_train.
 * @param report  receives the report, borrowed until the doctor's next call.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_STATE (the doctor is not of a training run,
 *         or the watcher asked to stop); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_doctor_examine_evaluation(hg_doctor *doctor,
                                                           const hg_doctor_report **report);

/** How remedies are tried (hg_doctor_try). */
typedef struct hg_doctor_trial {
	size_t size;
	/** of the run with the findings; its progress is called for every epoch of every run */
	const hg_train_config *config;
	const hg_train_data *data; /**< of the run with the findings */
	int64_t steps;             /**< of each run; default 200 */
	/** the state from which each run begins (hg_train_set_state), for findings of a run that began
	 * from a checkpoint. The loss may then rise by 0.05, because dropout changes it by about that
	 * where little is left to learn. NULL (default): each run begins with the seed's weights */
	const hg_state *from;
	/** receives the outcome of a run with nothing changed, made before all others: if that run
	 * works, a remedy that works proves nothing. NULL (default): no such run */
	hg_remedy *control;
	/** most runs, at least 1; default 12: one finding has 8 remedies at most, and the next ones may
	 * name 4 others */
	int most;
	/** as in hg_doctor_config; NULL (default): the features on the device are used, which may have
	 * been rounded to f16 */
	const void *features;
	hg_dtype features_dtype; /**< HG_F16 or HG_F32 */
} hg_doctor_trial;
/** The defaults of the fields; config and data are to be set. */
#define HG_DOCTOR_TRIAL_INIT \
	HG__INIT(hg_doctor_trial, HG__SET(steps, 200) HG__SET(most, 12) HG__SET(features_dtype, HG_F32))

/** Tries remedies: trains with each option once, in a run of its own, and writes the outcome into
 * every remedy with this option. An option works if the last step is applied, its loss is finite
 * and smaller than the first finite loss (or larger by 0.05 at most, see trial->from), and the
 * next step has no finding.
 *
 * The options of the first finding are tried first, in their order, then the other options of the
 * next findings, until trial->most runs are made. If a finding cannot be fixed by any option, its
 * fault would be in every run, so nothing is tried. Most options change the config;
 * "--row-normalize on" makes features for the run, divided as hg_dataset_row_normalize does.
 * Options that do neither stay untried, as does a run that does not fit into memory. The run with
 * the findings and its data keep every bit.
 *
 * Cost      Up to trial->most + 1 training runs of trial->steps steps.
 * @param context   the context to run in.
 * @param trial     how; start from HG_DOCTOR_TRIAL_INIT.
 * @param findings  [count], of one report; their remedies are written.
 * @param count     number of findings, at least 0.
 * @return HG_OK; HG_INFO_STOPPED (the config's progress stopped a run; that one and later ones stay
 *         untried); HG_ERR_ARG (a pointer is NULL, a size is not set, count is negative, or steps
 *         or most is out of range); HG_ERR_DTYPE (features_dtype is neither f16 nor f32);
 *         HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_doctor_try(hg_context *context, const hg_doctor_trial *trial,
                                            const hg_finding *findings, int count);

HG_EXTERN_C_END
#endif
