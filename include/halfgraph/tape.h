/** @file
 * A tape: record a computation once per model and shape, compile it (check, fuse, plan memory), and
 * run it as often as needed.
 *
 * Recording functions (ops.h) return variables instead of statuses. The tape keeps the first
 * error with its message. Every later recording call on that tape does nothing and returns an
 * invalid variable, and hg_tape_compile or hg_tape_status reports the error. A model therefore
 * reads as an expression, and one check covers all of it.
 *
 *     hg_tape_create, hg_tape_input / _variable / _param, ops, hg_tape_compile,
 *     then for every step: hg_tape_forward, hg_tape_backward, hg_optim_step (or an hg_step, step.h)
 *
 * Owner     A tape borrows its params (and with them context and policy) and the graphs and tensors
 *           recorded on it. Free the tape before all of them.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_TAPE_H
#define HALFGRAPH_TAPE_H

#include "halfgraph/context.h"
#include "halfgraph/export.h"
#include "halfgraph/param.h"
#include "halfgraph/policy.h"
#include "halfgraph/status.h"
#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/** A recorded computation. */
typedef struct hg_tape hg_tape;

/** A value on a tape: a plain number, copied freely, valid as long as its tape. */
typedef struct hg_var {
	int32_t id; /**< below 0: invalid */
} hg_var;

/** The operand that is not there, for optional operands. */
#define HG_NONE (hg_none())
/** Gives the variable that HG_NONE stands for. It belongs to no tape.
 * @return an invalid variable, which ops accept where an operand is optional. */
HG_API hg_var hg_none(void);

/** What a tape is for. */
typedef enum hg_mode {
	HG_TRAIN = 0, /**< forward and backward pass, dropout, batch statistics */
	HG_EVAL = 1   /**< forward pass only: no dropout, running statistics, no gradients planned */
} hg_mode;

/** Creates an empty tape.
 * @param params  the parameters the tape may use, borrowed. Their policy is the tape's policy.
 * @param mode    HG_TRAIN or HG_EVAL.
 * @param tape    receives the tape, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or an unknown mode); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_tape_create(hg_params *params, hg_mode mode, hg_tape **tape);

/** Frees a tape with its arena and every view of its values.
 * @param tape  a tape or NULL. */
HG_API void hg_tape_free(hg_tape *tape);

/** Records a constant input. Every forward pass reads it; no pass writes it or computes a gradient
 * for it.
 *
 * Errors    Kept by the tape: HG_ERR_ARG (x is NULL or of another context), HG_ERR_NOMEM.
 * @param tape  the tape.
 * @param x     the tensor, borrowed, of any type. Its contents may change between runs as long as
 *              what the proofs assume stays true: amax, the sign and the least magnitude of its
 *              elements, and labels below the number of classes.
 * @param name  its name in messages and reports, copied; NULL for none.
 * @param amax  a bound on |x| for the range proofs; negative: the largest |x| is measured now.
 * @return the variable, or an invalid one. */
HG_API hg_var hg_tape_input(hg_tape *tape, const hg_tensor *x, const char *name, double amax);

/** Records an input that has a gradient. Its contents may change freely between runs, so nothing is
 * known about its size.
 *
 * Errors    Kept by the tape: HG_ERR_ARG (x is NULL or of another context), HG_ERR_DTYPE (x is
 *           neither f16 nor f32), HG_ERR_NOMEM.
 * @param tape  the tape.
 * @param x     the tensor, borrowed, f16 or f32. hg_tape_grad gives its gradient, in the same type.
 * @param name  its name in messages and reports, copied; NULL for none.
 * @return the variable, or an invalid one. */
HG_API hg_var hg_tape_variable(hg_tape *tape, const hg_tensor *x, const char *name);

/** Records a parameter; ops read its working copy (param.h). The same parameter may be recorded
 * more than once and gives the same variable.
 *
 * Errors    Kept by the tape: HG_ERR_ARG (param is NULL or not one of the tape's params).
 * @param tape   the tape.
 * @param param  a parameter of the tape's params, borrowed.
 * @return the variable, or an invalid one. */
HG_API hg_var hg_tape_param(hg_tape *tape, hg_param *param);

/** Names the layer that the following calls belong to ("conv2"), for messages, plans and reports.
 * It has no effect on a compiled tape.
 * @param tape   the tape.
 * @param scope  the name, copied; NULL ends the layer. */
HG_API void hg_tape_scope(hg_tape *tape, const char *scope);

/** Keeps the value of a variable readable after a run (hg_tape_value); its memory is then not
 * reused in the step. Call it before hg_tape_compile.
 *
 * Errors    Kept by the tape: HG_ERR_ARG (not a variable of this tape), HG_ERR_STATE (the value is
 *           stored x 2^-k because it overflowed earlier, hg_policy.replan; keep its hg_cast to
 *           f32).
 * @param tape  the tape.
 * @param var   the variable. */
HG_API void hg_tape_keep(hg_tape *tape, hg_var var);

/** The state of the recording. A failed call on a compiled tape does not change it.
 * @param tape  the tape.
 * @return HG_OK, or the status of the first error; HG_ERR_ARG for NULL. */
HG_API HG_NODISCARD hg_status hg_tape_status(const hg_tape *tape);

/** Checks the recording, fuses chains of ops that one kernel can do, plans the memory of every
 * value and gradient in one arena, and allocates the arena.
 * @param tape    the tape; it can be compiled once.
 * @param output  the loss, f32 [1, 1], for a tape that will run backward; any variable for a tape
 *                that only runs forward.
 * @return HG_OK; the first error of the recording; HG_ERR_ARG (output is not a variable of this
 *         tape); HG_ERR_STATE (compiled already, or output is stored x 2^-k, see hg_tape_keep);
 *         HG_ERR_RANGE (a label of hg_softmax_xent is not below the number of columns);
 *         HG_ERR_NOMEM (the message names what is needed, what is free and the largest tensors). */
HG_API HG_NODISCARD hg_status hg_tape_compile(hg_tape *tape, hg_var output);

/** Handles an overflow behind a guard: on tapes recorded from now on, the result of this op node is
 * stored x 2^-shift or in f32 (hg_policy.replan says which). The tape itself does not change;
 * record and compile a new one. hg_train does all of this by itself.
 * @param tape   the tape of the step that overflowed.
 * @param node   the op node, from hg_step_info.overflow_node.
 * @param shift  receives k of 2^-k, or 0 for f32; may be NULL.
 * @return HG_OK; HG_ERR_ARG (no op node of this number that gives f16); HG_ERR_STATE (the tape is
 *         not compiled); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_tape_replan(hg_tape *tape, int32_t node, int *shift);

/** Runs the forward pass. Asynchronous on a GPU.
 *
 * Cost      No allocation and no host synchronisation.
 * @param tape  a compiled tape.
 * @return HG_OK; the first error of the recording; HG_ERR_STATE (not compiled); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tape_forward(hg_tape *tape);

/** Runs the backward pass: gradients of loss_scale * loss. Gradients of parameters are overwritten,
 * not added to. Asynchronous on a GPU.
 *
 * Cost      No allocation and no host synchronisation.
 * @param tape  a compiled HG_TRAIN tape whose output is a loss, after hg_tape_forward. Each forward
 *              pass serves one backward pass, which reuses its memory.
 * @return HG_OK; the first error of the recording; HG_ERR_STATE (an HG_EVAL tape, not compiled, the
 *         output is not f32 [1, 1], or no forward pass has run); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tape_backward(hg_tape *tape);

/** The value of a variable after hg_tape_forward.
 * @param tape  a compiled tape.
 * @param var   the output, a variable given to hg_tape_keep, an input or a parameter.
 * @return a view, borrowed until the tape is freed; NULL if the tape keeps no value for var. */
HG_API const hg_tensor *hg_tape_value(hg_tape *tape, hg_var var);

/** The gradient of a variable after hg_tape_backward, multiplied by the loss scale.
 * @param tape  a compiled tape.
 * @param var   a variable from hg_tape_variable. (Parameters: hg_param_grad.)
 * @return a view, borrowed until the tape is freed; NULL if var has no gradient to read. */
HG_API const hg_tensor *hg_tape_grad(hg_tape *tape, hg_var var);

/** Reads back a scalar, such as the loss. Waits for the device.
 * @param tape   a compiled tape.
 * @param var    a variable of shape [1, 1] that hg_tape_value can give.
 * @param value  receives the number.
 * @return HG_OK; HG_ERR_ARG (value is NULL, not a variable of this tape); HG_ERR_STATE (it has no
 *         value); HG_ERR_SHAPE (not [1, 1]); HG_ERR_DTYPE (neither f16 nor f32); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tape_scalar(hg_tape *tape, hg_var var, double *value);

/** The memory plan and the verdicts of a tape, in numbers. */
typedef struct hg_plan_info {
	size_t size;
	size_t state_bytes;   /**< activations and their gradients, before they share memory */
	size_t arena_bytes;   /**< the same, after they share memory */
	size_t param_bytes;   /**< masters, working copies and gradients of the parameters */
	size_t input_bytes;   /**< tensors recorded as inputs and variables */
	size_t largest_bytes; /**< the largest tensor of the plan */
	int32_t nodes;        /**< op nodes that run, after fusion */
	int32_t proved;       /**< results of op nodes with the verdict HG_PROVED */
	int32_t guarded;      /**< ... HG_GUARDED */
	int32_t promoted;     /**< ... HG_PROMOTED */
	int32_t exact;        /**< ... HG_EXACT */
	/** name of the largest tensor; owned by the tape */
	const char *largest_name;
	size_t graph_bytes;     /**< graphs with what they cache */
	size_t workspace_bytes; /**< scratch memory of the kernels */
	size_t library_bytes;   /**< workspace of libraries (cuBLASLt) */
	size_t other_bytes;     /**< all else the context holds, such as optimisers and other tapes */
	/** device memory the context holds with this tape and still has to take for its first run */
	size_t total_bytes;
	size_t observer_bytes; /**< observers (observe.h); 0 before hg_step_create */
	int32_t casts;         /**< conversions between f16 and f32 of whole tensors, forward pass */
	int32_t casts_back;    /**< ... backward pass */
	int32_t rescaled;      /**< results stored x 2^-k after an overflow (hg_policy.replan) */
} hg_plan_info;
/** An empty hg_plan_info with its size set. */
#define HG_PLAN_INFO_INIT HG__INIT_ZERO(hg_plan_info)

/** Reads the plan of a tape.
 * @param tape  a compiled tape.
 * @param info  receives the plan; start from HG_PLAN_INFO_INIT.
 * @return HG_OK; HG_ERR_ARG (info is NULL or its size is not set); HG_ERR_STATE (not compiled). */
HG_API HG_NODISCARD hg_status hg_tape_plan(const hg_tape *tape, hg_plan_info *info);

/** Receives one line of text, without a newline. The line is valid during the call.
 * @param user  the pointer given with the function.
 * @param line  the text. */
typedef void (*hg_write_fn)(void *user, const char *line);

/** Writes op nodes, types, shapes, verdicts and, once compiled, the memory plan.
 * @param tape   the tape, compiled or not.
 * @param write  called once per line.
 * @param user   passed to write.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL). */
HG_API HG_NODISCARD hg_status hg_tape_print(const hg_tape *tape, hg_write_fn write, void *user);

/** What checks a tensor while training runs. */
typedef enum hg_guard {
	/** nothing: it is proved, it is in f32, or the tape does not train */
	HG_GUARD_NONE = 0,
	/** its bound holds while the weights stay within theirs, which every step compares */
	HG_GUARD_WEIGHTS = 1,
	/** every element is checked when it is stored */
	HG_GUARD_STORED = 2,
	/** the finite check on the gradients of the step, which also lowers the loss scale */
	HG_GUARD_STEP = 3
} hg_guard;
/** Room for a tensor's name in hg_narrowing, with its terminating 0. */
#define HG_NARROWING_NAME 96

/** One tensor of a step, and why storing it in f16 cannot overflow, or what guards it.
 *
 *     |x| <= bound, rounding included.  headroom = log2(65520 / (2^-shift bound)).
 *
 * The bound on a gradient is the one at loss scale 1. For an f16 gradient it also covers the halves
 * on the way to it: sums in f16 before they are scaled, and what a fused op stores between two of
 * its parts. It is proved where it holds at the largest loss scale of the policy; else it holds up
 * to scale 2^headroom, and above that the finite check of the step guards it. */
typedef struct hg_narrowing {
	size_t size;
	int32_t node;        /**< as in hg_tape_print; -1: an input or the working copy of a weight */
	int backward;        /**< 1: the gradient of that op node's result */
	const char *op;      /**< "spmm+bias_add+relu", or "input" or "weight"; owned by the tape */
	const char *layer;   /**< "conv1", or the name of the input or weight; owned by the tape */
	const char *because; /**< the rule with its numbers; owned by the tape */
	hg_dtype state;      /**< type in which it is stored */
	hg_accumulate accumulate; /**< how its sums run */
	double bound; /**< on |x|, for weights as large as the tape assumes (HG_WEIGHT_ROOM) */
	double sure;  /**< on |x|, for all weights; equal to bound where weights do not matter */
	hg_evidence evidence; /**< where bound comes from */
	double headroom;      /**< in bits; INFINITY in f32 */
	hg_verdict verdict;   /**< why it may be stored in f16 */
	int32_t shift;        /**< stored x 2^-shift */
	hg_guard guard;       /**< what checks it */
	/** "conv1/spmm+bias_add+relu", "conv0.weight", "gradient of conv0/linear (mlp1.weight)": no two
	 * tensors of a tape have the same name */
	char name[HG_NARROWING_NAME];
} hg_narrowing;
/** An empty hg_narrowing with its size set. */
#define HG_NARROWING_INIT                                                              \
	HG__INIT(hg_narrowing,                                                             \
	         HG__SET(node, -1) HG__SET(op, "") HG__SET(layer, "") HG__SET(because, "") \
	             HG__SET(state, HG_F32) HG__SET(accumulate, HG_ACC_F32)                \
	                 HG__SET(evidence, HG_EVIDENCE_UNKNOWN) HG__SET(verdict, HG_EXACT) \
	                     HG__SET(guard, HG_GUARD_NONE))

/** Number of tensors that hg_tape_narrowing describes: first what is read (inputs, weights), then
 * results in the order of the step, then gradients.
 * @param tape  a compiled tape.
 * @return the number; 0 for a tape that is not compiled. */
HG_API int64_t hg_tape_narrowings(const hg_tape *tape);

/** Describes one tensor of a step.
 * @param tape       a compiled tape.
 * @param index      0 to hg_tape_narrowings - 1.
 * @param narrowing  receives the description; start from HG_NARROWING_INIT.
 * @return HG_OK; HG_ERR_ARG (no such index, narrowing is NULL or its size is not set); HG_ERR_STATE
 *         (not compiled). */
HG_API HG_NODISCARD hg_status hg_tape_narrowing(const hg_tape *tape, int64_t index,
                                                hg_narrowing *narrowing);

/** Writes all narrowings as a table, in the order of hg_tape_narrowing, and a summary.
 * @param tape   a compiled tape.
 * @param write  called once per line.
 * @param user   passed to write.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_STATE (not compiled). */
HG_API HG_NODISCARD hg_status hg_tape_explain(const hg_tape *tape, hg_write_fn write, void *user);

HG_EXTERN_C_END
#endif
