#ifndef HG_AUTOGRAD_RECORDING_H
#define HG_AUTOGRAD_RECORDING_H

#include "autograd/op.h"
#include "autograd/param.h"

HG_EXTERN_C_BEGIN

/* The recording of a tape: its values, and its entries in the order in which the user called the
 * ops. tape.c adds leaves; record.c, types.c and promotion.c record op nodes. When the tape is
 * compiled, fuse.c joins chains of nodes into one, and compile.c counts the rows of losses; nothing
 * changes after that. */

enum hg__kind { HG__INPUT = 0, HG__VARIABLE = 1, HG__PARAM = 2, HG__RESULT = 3, HG__AUX = 4 };

/* Why a value is f32 although the policy stores halves: a set, because several reasons can hold at
 * once and each of them limits where the value may be narrowed again (can_narrow in types.c). */
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
	int32_t node; /* the entry that makes it; -1: a leaf */
	/* [HG_F16], [HG_F32]: the value that holds the same numbers in that type; -1: none yet */
	int32_t cast_view[2];
	/* the value that owns the gradient: this one, except for the f32 view of a parameter */
	int32_t root;
	const char *name;
	const hg_tensor *tensor;                 /* INPUT, VARIABLE */
	hg_param *param;                         /* PARAM */
	struct hg__known known[HG__ASSUMPTIONS]; /* of the value itself, as stored x 2^shift */
	/* device: rows from *live on are padding of a graph that changes (live.c); NULL: all count */
	const int64_t *live;
	int keep;
	int shift;            /* stored x 2^-shift */
	unsigned f32_reasons; /* a set of enum hg__f32_reason; 0: f16, or f32 for another reason */
	/* how often nodes that are needed read it, before chains are fused (fuse.c); 0: not counted */
	int32_t uses;
};

/* An entry of the tape: a node, and what recording found out about it. */
struct hg__entry {
	struct hg__node node;
	unsigned grads, saves;   /* from the op's infer */
	int32_t fused_into;      /* the entry whose node now does the work of this one; -1: none */
	const char *title;       /* of a fused node: the names of its ops; NULL: the op's own name */
	const struct hg__op *op; /* op and layer as recorded; fusing changes those in `node` */
	const char *scope;
	const char *because; /* the rule behind the bound, as text */
};

/* Tapes of one set of parameters get different tags, up to this many. */
#define HG__TAPE_TAGS 2047u

struct hg__recording {
	/* at least so many rows or elements count in a loss, whatever labels and masks hold when the
	 * tape is compiled; 0: as many as these say, if they are constants */
	int64_t counted;
	/* hg_cast, which recording calls by itself. It is a pointer because the file of each op needs
	 * record.c, and no two files may need each other. */
	hg_var (*cast)(hg_tape *tape, hg_var x, hg_dtype dtype);
	uint32_t tag; /* part of the ids of the tape's variables */
	/* the first mistake, HG_OK if there is none, and its message */
	hg_status status;
	char message[HG__MESSAGE];
	struct hg__value *value;
	struct hg__entry *entry;
	char **text; /* names and scopes */
	int64_t values, value_capacity, entries, entry_capacity, texts, text_capacity;
	const char *scope; /* of the nodes that are recorded next */
	int64_t random;    /* nodes so far that draw random numbers */
};

/* The shape and type of a value; absent for NULL. */
static inline struct hg__shape hg__value_shape(const struct hg__value *value)
{
	const struct hg__shape absent = {0, 0, HG_F32, 0};
	if (!value)
		return absent;
	const struct hg__shape shape = {value->rows, value->cols, value->dtype, 1};
	return shape;
}

/* Operand i of a node; NULL: it is absent. */
static inline const struct hg__value *hg__operand(const struct hg__recording *recording,
                                                  const struct hg__node *node, int i)
{
	return i < node->n_in && node->in[i] >= 0 ? &recording->value[node->in[i]] : NULL;
}

/* The value that owns the gradient of operand i of an entry; the operand is there. */
static inline int32_t hg__root_of(const struct hg__recording *recording, int64_t entry, int i)
{
	return recording->value[recording->entry[entry].node.in[i]].root;
}

/* Bytes of a value in a type, with padded rows. */
static inline size_t hg__value_bytes(const struct hg__value *value, hg_dtype dtype)
{
	return (size_t)(value->rows * hg__leading(value->cols)) * hg_dtype_size(dtype);
}

/* Gradients of parameters are f32, whatever the type of the working copy. Other gradients have the
 * type of their value. */
static inline hg_dtype hg__grad_dtype(const struct hg__value *value)
{
	return value->kind == HG__PARAM ? HG_F32 : value->dtype;
}

/* The type in which a node writes the gradient of operand i. Gradients of weights and biases are
 * sums over all rows, so they are f32. Where operand 0 is a parameter, or another one of which the
 * op says so, its gradient has the type of features, because the kernels want one type there, and
 * it is widened when it is added. */
static inline hg_dtype hg__part_dtype(const struct hg__node *node, int i,
                                      const struct hg__value *operand)
{
	const int wide = node->op->traits & HG__WIDE_SUMS && node->accumulate == HG_ACC_F32,
	          one_type = (i == 0 && !wide) || node->op->one_type >> i & 1u;
	return one_type || node->op->traits & HG__ELEMENTWISE ? operand->dtype
	                                                      : hg__grad_dtype(operand);
}

static inline int hg__is_float(hg_dtype dtype)
{
	return dtype == HG_F16 || dtype == HG_F32;
}

/* tape.c: the first mistake in recording stays; later ones are dropped. fail writes the message;
 * stick takes it from the context. Both return status. After compiling neither has an effect. */
hg_status hg__tape_fail(hg_tape *tape, hg_status status, const char *format, ...) HG_PRINTF(3, 4);
hg_status hg__tape_stick(hg_tape *tape, hg_status status);
/* Fails with the first mistake, if there is one. */
hg_status hg__tape_mistake(const hg_tape *tape);
/* Can nodes be recorded? If the tape is compiled already, the message says that `what` cannot
 * be. */
int hg__tape_open(hg_tape *tape, const char *what);
/* The index of a variable's value; -1 if the variable is not of this tape. */
int32_t hg__tape_index(const hg_tape *tape, hg_var var);
hg_var hg__tape_var(const hg_tape *tape, int32_t value);
HG_NODISCARD hg_status hg__tape_text(hg_tape *tape, const char *text, const char **copy);
HG_NODISCARD hg_status hg__tape_value(hg_tape *tape, const struct hg__value *value, int32_t *index);
/* tape.c: the f32 master of a parameter as a value of its own. */
HG_NODISCARD hg_status hg__tape_master(hg_tape *tape, int32_t param, int32_t *index);

void hg__recording_free(hg_context *ctx, struct hg__recording *recording);

/* tape.c: reads a constant input once, for the smallest |x| and the sign of its elements. Nothing
 * is known of other values. */
HG_NODISCARD hg_status hg__tape_least(hg_tape *tape, int32_t index);

/* types.c: is operand i stored x 2^-k although the op of this node cannot read that? */
int hg__cannot_read(const hg_tape *tape, const struct hg__node *node, int i);
/* types.c: the type in which a node runs; and a set of enum hg__f32_reason for its result. */
hg_dtype hg__node_type(const hg_tape *tape, const struct hg__node *node);
unsigned hg__f32_reasons_of(const struct hg__recording *recording, const struct hg__node *node,
                            hg_dtype dtype);
/* types.c: brings the operands in op->same to one type, with casts where none exist yet. Other
 * operands stay as they are, unless the op cannot read how they are stored: then they become
 * f32. */
HG_NODISCARD hg_status hg__unify_operands(hg_tape *tape, struct hg__node *node, hg_dtype dtype);

/* promotion.c: can the result of this node be stored x 2^-k? */
int hg__may_rescale(const hg_tape *tape, const struct hg__node *node);
/* While a node is recorded: its entry in the list of promotions; NULL: it is not in the list. */
const struct hg__promotion *hg__promotion_of(const hg_tape *tape, const struct hg__node *node);
/* The name by which a node of this op is listed, if `before` entries come before it; and the entry
 * of the list with that name, NULL if there is none. */
struct hg__promotion hg__promotion_name(const struct hg__recording *recording,
                                        const struct hg__op *op, const char *scope, int64_t before);
struct hg__promotion *hg__promotion_find(const hg_params *params, const struct hg__promotion *name);

/* record.c: after fusing, entry->node has another op and other operands, on values of the same
 * types. This function infers again what backward needs, decides the verdict and appends what the
 * new op keeps for backward. A node in f32 keeps its verdict, because it is f32 by a cast or a
 * promotion. *fits 0: the policy or a reader does not accept the new node. */
HG_NODISCARD hg_status hg__tape_refit(hg_tape *tape, struct hg__entry *entry, int *fits);

/* live.c: sets the `live` of each value whose rows are the nodes of a graph that changes. */
void hg__tape_live(struct hg__recording *recording);

/* fuse.c: chains of nodes that one kernel can do become one node, unless the context asks for
 * separate ops. */
HG_NODISCARD hg_status hg__tape_fuse(hg_tape *tape);

/* names.c: the name of an entry: its op, or the ops that were fused into it. */
const char *hg__entry_title(const struct hg__entry *entry);
/* names.c: "conv2/spmm", or a leaf's own name. Where a layer has several nodes of one kind,
 * "conv0/linear (mlp1.weight)" by the weight that the node reads, or "conv0/dropout #2" by
 * number. */
const char *hg__value_name(const hg_tape *tape, const struct hg__value *value, char *buffer,
                           size_t size);

HG_EXTERN_C_END
#endif
