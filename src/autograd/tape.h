#ifndef HG_AUTOGRAD_TAPE_H
#define HG_AUTOGRAD_TAPE_H

#include "autograd/op.h"
#include "autograd/param.h"

HG_EXTERN_C_BEGIN

/* The inside of a tape. tape.c makes and frees it and its leaves; record.c adds nodes; fuse.c makes
 * one of several; plan.c finds what is alive, what needs a gradient and for how long; arena.c
 * places the buffers; memory.c adds up what else a run takes; tasks.c turns nodes into calls;
 * compile.c does these in order; run.c replays the calls; print.c shows all of it.
 *
 * Time is counted in positions. With F nodes alive, numbered 0 .. F-1 in recording order:
 *
 *     i          forward of node i
 *     F          between forward and backward
 *     2F - i     backward of node i
 *     2F + 1     after the run, when the user reads what was kept */

enum hg__kind { HG__INPUT = 0, HG__VARIABLE = 1, HG__PARAM = 2, HG__RESULT = 3, HG__AUX = 4 };

/* A buffer of the arena: alive from position first to position last, both included. */
enum hg__use {
	HG__USE_VALUE = 0,
	HG__USE_GRAD = 1,
	HG__USE_PART = 2 /* a contribution to a gradient, before it is added */
};
struct hg__span {
	enum hg__use use;
	int32_t value, first, last;
	hg_dtype dtype;
	size_t bytes, offset; /* both multiples of HG__ALIGN */
	/* observe_stay.c: the last position at which it is needed; after it, up to `last`, it stays for
	 * an observer, who may look at it from `ready` on (-1: nobody does). */
	int32_t until, ready;
};

/* Why a value is f32 although the policy stores halves: a set, because several reasons can hold at
 * once and each of them limits where the value may be narrowed again (narrows in record.c). */
enum hg__f32_reason {
	/* The user asked for it: the result of hg_cast, or of a node that reads such a result. It is
	 * never narrowed. */
	HG__F32_CAST = 1,
	/* It was promoted: as a half it overflowed in an earlier step, or no bound proves that it fits.
	 * It is never narrowed. */
	HG__F32_PROMOTED = 2,
	/* An operand is promoted or rescaled, at any distance. The value is narrowed only where a proof
	 * or the weights say that it fits, not behind a guard of its own. */
	HG__F32_OPERAND = 4
};

struct hg__value {
	enum hg__kind kind;
	hg_dtype dtype;
	int64_t rows, cols;
	int32_t node; /* that makes it; -1: a leaf */
	int32_t cast_view
	    [2]; /* [HG_F16], [HG_F32]: the value with these numbers in that type; -1: not made */
	/* the value that owns the gradient: itself, but for the f32 face of a parameter */
	int32_t root;
	const char *name;
	const hg_tensor *tensor; /* INPUT, VARIABLE */
	hg_param *param;         /* PARAM */
	/* on |value|, assuming of the weights what policy.h says, and without; INFINITY if unknown */
	double bound, unconditional;
	/* on the sum of |value| over the edges of a row (op.h); INFINITY if unknown */
	double sum;
	hg_graph *sum_of;                      /* of this graph */
	double least, unconditional_least;     /* no |value| is smaller (op.h); 0 if unknown */
	int sign;                              /* of all of them (op.h); 0 if unknown */
	double bound_grad, unconditional_grad; /* on |gradient| at loss scale 1 */
	/* on halves on the way to it, itself included (reach of hg__range) */
	double reach_grad, unconditional_reach_grad;
	int keep, alive;
	int shift;               /* stored x 2^-shift; bounds are those of the value */
	unsigned f32_reasons;    /* a set of enum hg__f32_reason; 0: f16, or f32 for another reason */
	int depends, reaches;    /* on a parameter or variable; the loss, both by differentiable ways */
	int grad;                /* both: a gradient is computed */
	int32_t parts;           /* contributions to the gradient */
	int32_t uses;            /* operands of needed nodes that it is (fuse.c); 0: not counted */
	int32_t span, grad_span; /* -1: not in the arena */
	struct hg_tensor view, grad_view;
};

/* A node and what recording and planning found out about it. */
struct hg__entry {
	struct hg__node node;
	unsigned grads, saves;   /* of infer */
	int alive, back;         /* runs forward; runs backward */
	int32_t position;        /* i above */
	int32_t fused_into;      /* the entry that has taken this one in; -1: none */
	const char *title;       /* of a node that took others in: their names; NULL: the op's own */
	const struct hg__op *op; /* as recorded, with its layer, whatever the node has become since */
	const char *scope;
	const char *because;   /* where the bound comes from, in words */
	int first[HG__MAX_IN]; /* operand i gives the first contribution to its gradient */
	/* bit i: operand i's contribution is added to the gradient by the op itself */
	unsigned adds;
	/* where operand i is made again for backward; -1: it is kept, or not needed */
	int32_t recompute[HG__MAX_IN];
	/* where the gradient of an operand goes first if it must be added; -1: straight into the
	 * gradient */
	int32_t part_span[HG__MAX_IN];
};

/* A node ready to run. add[i].data set: din[i] is a part that is then added to it, or the first
 * one, copied into it in its type. */
struct hg__task {
	struct hg__call call;
	int32_t entry;
	int recompute; /* in the backward: run forward, for the next one */
	struct hg__mat add[HG__MAX_IN];
	int first[HG__MAX_IN];
};

/* Called after every node that ran, with what it ran on; the tape is none other for it, but its
 * steps are not captured. Not part of the public interface: tests and diagnosis. A failing status
 * ends the run. */
struct hg__hook {
	hg_status (*after)(void *user, const hg_tape *tape, int32_t entry, int backward,
	                   const struct hg__call *call);
	void *user;
};

enum hg__stage { HG__RECORDING = 0, HG__COMPILED = 1, HG__FORWARDED = 2 };

/* What may stay in the arena for an observer: a little (observe_stay.c), nothing, everything. */
enum hg__room { HG__ROOM_LITTLE = 0, HG__ROOM_NONE = 1, HG__ROOM_ALL = 2 };

/* Different tapes of one set of parameters have different tags, up to this many. */
#define HG__TAPE_TAGS 2047u

struct hg_tape {
	hg_context *ctx;
	hg_params *params;
	hg_mode mode;
	/* hg_cast, which recording calls by itself: each op's file needs record.c, so record.c can name
	 * no
	 * op */
	hg_var (*cast)(hg_tape *tape, hg_var x, hg_dtype dtype);
	enum hg__stage stage;
	uint32_t tag; /* carried by the ids of its variables */
	hg_status status;
	char message[HG__MESSAGE];

	struct hg__value *value;
	struct hg__entry *entry;
	char **text; /* names and scopes */
	int64_t values, value_capacity, entries, entry_capacity, texts, text_capacity;
	const char *scope;
	int64_t random; /* nodes so far that draw random numbers */

	int32_t output;
	int trains; /* has a backward */
	int keeps;  /* every value and gradient has memory of its own (keep.c) */
	int32_t alive;
	struct hg__span *span;
	int64_t spans, span_capacity;
	void *arena;
	hg_tape *arena_owner; /* whose arena this is; NULL: its own */
	size_t arena_bytes, workspace_bytes;
	struct hg__task *forward, *backward;
	int64_t forwards, backwards, recomputes;
	int64_t store_guards;     /* results whose elements are compared as they are stored */
	const char *largest_name; /* of the arena's buffers */
	size_t largest_bytes;
	const struct hg__hook *hook;
	int stays; /* something lasts longer than it is needed, for an observer's sake */
	enum hg__room room;
	/* observe.h, while a step of its owner's is queued; NULL: nobody looks */
	struct hg__watch *watch;
	size_t watch_bytes; /* device memory of all its watches */
};

/* tape.c: a mistake in recording sticks, the first one stays; fail writes its sentence, stick takes
 * it from the context. Both return status. Afterwards nothing sticks: what is compiled is good. */
hg_status hg__tape_fail(hg_tape *tape, hg_status status, const char *format, ...) HG_PRINTF(3, 4);
hg_status hg__tape_stick(hg_tape *tape, hg_status status);
/* may be recorded on; else, if it is compiled, the context says that `what` cannot */
int hg__tape_open(hg_tape *tape, const char *what);
/* place of a variable's value; -1 if it is not this tape's */
int32_t hg__tape_index(const hg_tape *tape, hg_var var);
hg_var hg__tape_var(const hg_tape *tape, int32_t value);
/* make room for one more */
HG_NODISCARD hg_status hg__tape_grow(hg_tape *tape, void **array, size_t size, int64_t count,
                                     int64_t *capacity);
HG_NODISCARD hg_status hg__tape_text(hg_tape *tape, const char *text, const char **copy);
HG_NODISCARD hg_status hg__tape_value(hg_tape *tape, const struct hg__value *value, int32_t *index);
/* tape.c: the f32 master of a parameter as a value of its own. */
HG_NODISCARD hg_status hg__tape_master(hg_tape *tape, int32_t param, int32_t *index);

/* tape.c: how near the numbers of a constant input come to 0, and their sign, looked at once; of
 * others nothing is known. */
HG_NODISCARD hg_status hg__tape_least(hg_tape *tape, int32_t index);

/* record.c: what the range rules of a node may use, its operands being on the tape: bounds that
 * hold for all weights, or for those that are assumed. */
enum hg__assumption { HG__UNCONDITIONAL = 0, HG__ASSUMED = 1 };
HG_NODISCARD hg_status hg__tape_range(const hg_tape *tape, const struct hg__node *node,
                                      enum hg__assumption assumption, struct hg__range *r);

/* compile.c: node->counted of a loss. */
HG_NODISCARD hg_status hg__tape_count_rows(hg_tape *tape, struct hg__node *node);
/* compile.c: r->din: bounds on the gradients that a node stores, in the types part [n_in], where
 * that of its result is at most dout. */
HG_NODISCARD hg_status hg__tape_range_back(const hg_tape *tape, const struct hg__node *node,
                                           enum hg__assumption assumption, double dout,
                                           const hg_dtype *part, struct hg__range *r);

/* record.c: entry->node has got another op and other operands, on values of the types that it had:
 * what backward needs of it and its verdict. In f32 that stays what it is: f32 by wish, or
 * promoted. What it keeps for backward, and has not got, is made. *fits 0: the policy will not have
 * the new node as it is. */
HG_NODISCARD hg_status hg__tape_refit(hg_tape *tape, struct hg__entry *entry, int *fits);

/* promote.c: have a node that overflowed, with those that it took in, stored x 2^-*shift on every
 * tape that is recorded from now on, where a power of two restores the proof and all that read it
 * can do with it; else (*shift 0) run in f32. *news 0: it does already. Which node was first to
 * make something that is not finite: runs forward; -1: none does. */
HG_NODISCARD hg_status hg__tape_promote(hg_tape *tape, int32_t entry, int *shift, int *news);
HG_NODISCARD hg_status hg__tape_first_bad(hg_tape *tape, int32_t *entry);
/* promotion.c: may the result of this node be stored x 2^-k? */
int hg__may_rescale(const hg_tape *tape, const struct hg__node *node);
/* While it is recorded: is it one of those, and how is it to be stored? */
const struct hg__promotion *hg__promotion_of(const hg_tape *tape, const struct hg__node *node);
/* What names a node of this op behind the first `before` lines, and the entry with that name; NULL:
 * there is none. */
struct hg__promotion hg__promotion_name(const hg_tape *tape, const struct hg__op *op,
                                        const char *scope, int64_t before);
struct hg__promotion *hg__promotion_find(const hg_params *params, const struct hg__promotion *name);

/* fuse.c: chains of nodes that one node can do become that node, unless the context wants separate
 * ops. */
HG_NODISCARD hg_status hg__tape_fuse(hg_tape *tape);

/* plan.c: what is alive, what needs a gradient, from when to when. */
HG_NODISCARD hg_status hg__tape_lives(hg_tape *tape);
/* arena.c: offsets, so that spans alive at the same time do not overlap; the bytes needed. */
HG_NODISCARD hg_status hg__arena_place(hg_context *ctx, struct hg__span *span, int64_t count,
                                       size_t *bytes);
/* memory.c: what the tape's run takes of the device, in bytes; see hg_plan_info. */
void hg__tape_memory(const hg_tape *tape, hg_plan_info *info);
/* tasks.c: before it is compiled: let a tape run in the arena of another one that is compiled, if
 * that is large enough. They take turns: what one holds is gone once the other has run, and the
 * borrower is not run once the arena_owner is freed. */
void hg__tape_borrow(hg_tape *tape, hg_tape *arena_owner);
/* Bytes of the arena that are the tape's own. */
size_t hg__tape_own_bytes(const hg_tape *tape);

/* memory.c: bytes that compiling still has to allocate: the arena, the workspace, what libraries
 * will take. */
size_t hg__tape_needs(const hg_tape *tape);
/* memory.c: is there room for the arena, the workspace, what libraries will take and `graphs` bytes
 * of graph caches? Else HG_ERR_NOMEM. */
HG_NODISCARD hg_status hg__tape_room(hg_tape *tape, size_t graphs);
/* memory.c: HG_ERR_NOMEM, told with the tensors that ask for most. `free_bytes` SIZE_MAX:
 * unknown. */
hg_status hg__tape_no_memory(hg_tape *tape, size_t needed, size_t free_bytes);
/* tasks.c: graphs prepared, the arena allocated, calls built, workspace reserved. */
HG_NODISCARD hg_status hg__tape_tasks(hg_tape *tape);

/* keep.c: the same nodes once more, compiled, in which every value and every gradient keeps memory
 * of its own to the end: what a run left can be read, all of it. Names and scopes stay those of
 * `from`, which is compiled and outlives the copy. */
HG_NODISCARD hg_status hg__tape_copy_kept(const hg_tape *from, hg_tape **copy);
/* run.c: what guards have seen of a forward pass that no step came behind is forgotten. */
HG_NODISCARD hg_status hg__overflow_clear(hg_params *params);
/* run.c: pieces of a backward. Before its first node; after each: contributions that could not be
 * written straight into a gradient are added to it. */
HG_NODISCARD hg_status hg__tape_back_begin(hg_tape *tape);
HG_NODISCARD hg_status hg__tape_add_parts(const hg_tape *tape, const struct hg__task *task);

/* Bytes of a value's numbers in a type, rows padded. */
static inline size_t hg__value_bytes(const struct hg__value *value, hg_dtype dtype)
{
	return (size_t)(value->rows * hg__leading(value->cols)) * hg_dtype_size(dtype);
}

/* Gradients of parameters are f32, whatever the working copy; all others have the value's own
 * type. */
static inline hg_dtype hg__grad_dtype(const struct hg__value *value)
{
	return value->kind == HG__PARAM ? HG_F32 : value->dtype;
}

/* The type in which a node gives the gradient of operand i. Weights and biases are sums over all
 * rows: f32. A parameter in the place of features gets what features get, where kernels want one
 * type, and is widened on its way into the gradient. */
static inline hg_dtype hg__part_dtype(const struct hg__node *node, int i,
                                      const struct hg__value *operand)
{
	const int wide = node->op->traits & HG__WIDE_SUMS && node->accumulate == HG_ACC_F32,
	          one_type = i == 0 && !wide;
	return one_type || node->op->traits & HG__ELEMENTWISE ? operand->dtype
	                                                      : hg__grad_dtype(operand);
}

static inline int hg__is_float(hg_dtype dtype)
{
	return dtype == HG_F16 || dtype == HG_F32;
}

/* tasks.c: does a guard compare the result of this node as it is stored (kernels/overflow.h)? It
 * does where neither a proof nor the weights bound the result, on tapes that train and may be
 * recorded again. */
int hg__is_store_guarded(const hg_tape *tape, const struct hg__node *node);
/* explain.c: of the gradient of a value. */
hg_verdict hg__gradient_verdict(const hg_tape *tape, const struct hg__value *value);
/* explain.c: on |gradient|, or a half on the way to it, at a loss scale; INFINITY: it may overflow
 * there. */
double hg__bound_of_gradient(const struct hg__value *value, double scale);
/* print.c: what a entry is called: its op, or the ops that it took in. */
const char *hg__entry_title(const struct hg__entry *entry);
const char *hg__accumulate_name(hg_accumulate accumulate);
/* print.c: "conv2/spmm", or a leaf's own name. Where a layer has several of a kind,
 * "conv0/linear (mlp1.weight)" by the weight that it reads, or "conv0/dropout #2" by its place. */
const char *hg__value_name(const hg_tape *tape, const struct hg__value *value, char *buffer,
                           size_t size);

/* run.c. NULL: off. The hook is borrowed. */
void hg__tape_hook(hg_tape *tape, const struct hg__hook *hook);

HG_EXTERN_C_END
#endif
