#ifndef HALFGRAPH_TAPE_H
#define HALFGRAPH_TAPE_H

#include "halfgraph/context.h"
#include "halfgraph/export.h"
#include "halfgraph/param.h"
#include "halfgraph/policy.h"
#include "halfgraph/status.h"
#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/* A tape: record once per model and shape -> compile (check, plan memory) -> run as often as you
 * like.
 *
 * Recording functions (ops.h) return variables, not statuses. The first mistake is kept, with its
 * sentence; every later call on that tape is then a no-op that returns an invalid variable, and
 * hg_tape_compile (or hg_tape_status) reports it. So a model reads as an expression, and one check
 * catches all. A recording call on a tape that is compiled does nothing: its variable is invalid,
 * the context has the sentence, and the tape stays good. */
typedef struct hg_tape hg_tape;
typedef struct hg_var {
	int32_t id; /* < 0: invalid */
} hg_var;

/* EVAL: no dropout, running statistics, no gradients planned */
typedef enum hg_mode { HG_TRAIN = 0, HG_EVAL = 1 } hg_mode;

/* The tape borrows params (and with them context and policy) and the graphs and tensors recorded on
 * it: it must be freed before all of them. */
HG_API HG_NODISCARD hg_status hg_tape_create(hg_params *params, hg_mode mode, hg_tape **tape);
HG_API void hg_tape_free(hg_tape *tape);

/* A constant input: borrowed, read at every run, never written. `amax` bounds |x| for the range
 * proofs; pass a negative number if unknown (it is then measured now, once). */
HG_API hg_var hg_tape_input(hg_tape *tape, const hg_tensor *x, const char *name, double amax);
/* The same, but f16 or f32, free to change between runs, and a gradient is computed for it, in its
 * type; read it with hg_tape_grad. */
HG_API hg_var hg_tape_variable(hg_tape *tape, const hg_tensor *x, const char *name);
HG_API hg_var hg_tape_param(hg_tape *tape, hg_param *param);

/* Name the layer that the following calls belong to, for errors, plans and reports ("conv2"). NULL
 * ends it. Before compile. */
HG_API void hg_tape_scope(hg_tape *tape, const char *scope);
/* Keep a variable's value readable after a run (its memory is then not reused). Before compile.
 * HG_ERR_STATE on the tape for a value that is stored x 2^-k since it overflowed once
 * (hg_policy.replan): its hg_cast to f32 can be kept. */
HG_API void hg_tape_keep(hg_tape *tape, hg_var var);

/* HG_OK, or the first mistake of the recording. A call on a compiled tape is no part of it and
 * never changes it. */
HG_API HG_NODISCARD hg_status hg_tape_status(const hg_tape *tape);

/* Check the recording, make one node of chains that one kernel can do, give every value and
 * gradient its place in one arena, allocate it, if there is room for all that a run needs. `output`
 * is the loss [1, 1] for a training tape that will run backward, or any variable for a forward-only
 * one; not one that is stored x 2^-k (hg_tape_keep). HG_ERR_NOMEM names what is needed, what is
 * free, and the largest tensors. */
HG_API HG_NODISCARD hg_status hg_tape_compile(hg_tape *tape, hg_var output);
/* After a step in which a guard tripped, on the tape of that step: node, hg_step_info.tripped, is
 * remembered with the parameters. On every tape that is recorded from now on its result is stored
 * x 2^-*shift, or, with *shift 0, it is f32; hg_policy.replan says how *shift is chosen. shift may
 * be
 * NULL. This tape stays as it is. hg_train does all of it by itself. HG_ERR_ARG: no such node, or
 * its
 * result is no half. */
HG_API HG_NODISCARD hg_status hg_tape_replan(hg_tape *tape, int32_t node, int *shift);
/* Asynchronous on a GPU. backward: gradients of loss_scale * loss; parameter gradients are
 * overwritten, not added to. */
HG_API HG_NODISCARD hg_status hg_tape_forward(hg_tape *tape);
HG_API HG_NODISCARD hg_status hg_tape_backward(hg_tape *tape);

/* Borrowed view of a value (output, kept, input or parameter) or a gradient (of hg_tape_variable).
 * NULL if there is none. Valid until the tape is freed. */
HG_API const hg_tensor *hg_tape_value(hg_tape *tape, hg_var var);
HG_API const hg_tensor *hg_tape_grad(hg_tape *tape, hg_var var);
/* The scalar at `var` ([1, 1]), read back: synchronises. */
HG_API HG_NODISCARD hg_status hg_tape_scalar(hg_tape *tape, hg_var var, double *value);

/* What the plan says. state_bytes: activations and their gradients in the state type, before
 * sharing; arena_bytes: after sharing.
 *
 * total_bytes is the device memory that the context holds with this tape and has still to take for
 * its first run: graphs (what they cache included), inputs, parameters, arena, workspace, libraries
 * (cuBLASLt's workspace), observers of its steps (observe.h; none before hg_step_create), and
 * others: whatever else it holds now, such as optimisers and other tapes. */
typedef struct hg_plan_info {
	size_t size;
	size_t state_bytes, arena_bytes, param_bytes, input_bytes, largest_bytes;
	int32_t nodes, proved, guarded, promoted, exact;
	const char *largest_name;
	size_t graph_bytes, workspace_bytes, library_bytes, other_bytes, total_bytes, observer_bytes;
	/* tensors that a step converts from f16 to f32 or back: forward, and backward */
	int32_t casts, casts_back;
	/* results that are stored x 2^-k, since they overflowed once (hg_policy.replan) */
	int32_t rescaled;
} hg_plan_info;
#define HG_PLAN_INFO_INIT                                                                \
	{                                                                                    \
		sizeof(hg_plan_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}
HG_API HG_NODISCARD hg_status hg_tape_plan(const hg_tape *tape, hg_plan_info *info);

/* Nodes, dtypes, shapes, verdicts and the memory plan as text, a line at a time. */
typedef void (*hg_write_fn)(void *user, const char *line);
HG_API HG_NODISCARD hg_status hg_tape_print(const hg_tape *tape, hg_write_fn write, void *user);

/* One tensor of a step, and why its narrowing to f16 cannot overflow, or what guards it. Texts are
 * the tape's.
 *
 *     |x| <= bound, rounding included: for all weights where bound = sure, else while they are as
 *                  large as was assumed at most (policy.h)
 *     headroom = log2(65520 / (2^-shift bound))
 *
 * A gradient's bound is that at loss scale 1, of a half also one on the halves on the way to it:
 * sums in f16 before they are scaled, and what a fused op stores between two of its parts. It is
 * proved where it holds at the largest scale of the policy; else it holds up to scale 2^headroom,
 * and beyond that the step's finite check guards it. */
typedef enum hg_guard {
	HG_GUARD_NONE =
	    0, /* nothing looks at it: proved, or in f32, or on a tape that does not train */
	HG_GUARD_WEIGHTS = 1, /* the bound holds while the weights do, which every step compares */
	HG_GUARD_STORED = 2,  /* every element is compared as it is stored */
	HG_GUARD_STEP =
	    3 /* the finite check of the step's gradients; theirs lowers the loss scale as well */
} hg_guard;
#define HG_NARROWING_NAME 96
typedef struct hg_narrowing {
	size_t size;
	int32_t node;           /* of hg_tape_print; -1: an input or the working copy of a weight */
	int backward;           /* 1: the gradient of that node's result */
	const char *op, *layer; /* "spmm+bias_add+relu", "conv1"; "input" or "weight", and its name */
	const char *because;    /* the rule with its numbers */
	hg_dtype state;
	hg_accumulate accumulate;
	double bound, sure;
	hg_evidence evidence; /* of bound */
	double headroom;      /* bits; INFINITY in f32 */
	hg_verdict verdict;
	int32_t shift; /* stored x 2^-shift */
	hg_guard guard;
	/* "conv1/spmm+bias_add+relu", "conv0.weight", "gradient of conv0/linear (mlp1.weight)": no
	 * two have the same */
	char name[HG_NARROWING_NAME];
} hg_narrowing;
#define HG_NARROWING_INIT                                                      \
	{                                                                          \
		sizeof(hg_narrowing), -1, 0, "", "", "", HG_F32, HG_ACC_F32, 0.0, 0.0, \
		    HG_EVIDENCE_UNKNOWN, 0.0, HG_EXACT, 0, HG_GUARD_NONE, ""           \
	}
/* Of a compiled tape: first what is read, then results in the order of the step, then gradients. */
HG_API int64_t hg_tape_narrowings(const hg_tape *tape);
HG_API HG_NODISCARD hg_status hg_tape_narrowing(const hg_tape *tape, int64_t index,
                                                hg_narrowing *narrowing);
/* All of them as a table, a line at a time. */
HG_API HG_NODISCARD hg_status hg_tape_explain(const hg_tape *tape, hg_write_fn write, void *user);

HG_EXTERN_C_END
#endif
