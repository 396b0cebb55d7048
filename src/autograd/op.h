#ifndef HG_AUTOGRAD_OP_H
#define HG_AUTOGRAD_OP_H

#include "halfgraph/graph.h"
#include "halfgraph/tape.h"
#include "kernels/kernels.h"
#include "precision/range.h"

HG_EXTERN_C_BEGIN

/* An op: what a node of the tape means. One record per op, in autograd/ops/NAME.c with its equation
 * on top; one line in ops.def, or, of a function of one operand, in kernels/functions.def. A record
 * is complete or the registry test refuses it. Ops never read a policy: state type and accumulation
 * come resolved, in the call. */

#define HG__MAX_IN 5
#define HG__MAX_AUX 2
#define HG__ATTR_BYTES 64

enum hg__op_traits {
	HG__LINEAR = 1u,      /* in operand 0, the others fixed: the adjoint identity is tested */
	HG__GRAPH = 2u,       /* needs a graph */
	HG__TRANSPOSE = 4u,   /* its backward needs the transpose */
	HG__ELEMENTWISE = 8u, /* out[i, c] depends on in[.][i, c] alone */
	HG__LOSS = 16u,       /* output f32 [1, 1] */
	HG__RANDOM = 32u,     /* draws from the step's random stream */
	HG__BATCH = 64u,      /* needs the graph's batch pointers */
	/* without operand 1 on an unweighted graph its backward needs no csr_t.edge (spmm): the tape
	 * then saves its memory */
	HG__UNIT_EDGES = 128u,
	/* cheap, and its result much larger than its operands: backward makes it again instead of
	 * keeping it (plan.c) */
	HG__RECOMPUTE = 256u,
	/* sums in f32 are written in f32 where operand 0 is a parameter (a dense matrix under sparse
	 * features): not narrowed on the way */
	HG__WIDE_SUMS = 512u,
	/* asks how near its last operand comes to 0, and its sign: a constant is looked at once */
	HG__DIVIDES = 1024u,
	/* its forward hands call->overflow to the kernel that stores the result; results of others are
	 * looked
	 * at by a pass of their own */
	HG__GUARDS_STORE = 2048u,
	HG__CASTS = 4096u /* its result holds the numbers of operand 0 in another float type */
};

struct hg__shape {
	int64_t rows, cols;
	hg_dtype dtype;
	int present; /* 0: HG_NONE */
};

struct hg__node {
	const struct hg__op *op;
	int32_t in[HG__MAX_IN]; /* value ids, -1: none */
	int n_in;
	int32_t out, aux[HG__MAX_AUX]; /* value ids */
	hg_graph *graph;
	hg_param *buffer[2]; /* running statistics */
	const char *scope;   /* owned by the tape; "" outside any */
	uint64_t rng_key;    /* seed and place on the tape; the same for the same recording */
	/* a loss, once compiled: rows that count in every run, 0 where it is not known */
	int64_t counted;
	hg_accumulate accumulate;
	hg_verdict verdict;
	int by_weights; /* guarded by the weights alone (precision/range.h) */
	/* bound on |out| by the range rules alone, without the limit of a guard */
	double rule_bound[HG__ASSUMPTIONS];
	/* the result is stored x 2^-shift, so that it fits; everything said of it is said of the result
	 * itself */
	int shift;
	/* a half or an error, whatever the policy says (halfgraph/shadow.h) */
	int shadow;
	_Alignas(8) unsigned char attr[HG__ATTR_BYTES]; /* the op's own struct */
};

/* Recording: shapes in, shapes out. Also says what backward will need. */
struct hg__infer {
	hg_tape *tape;
	const struct hg__node *node;
	hg_mode mode;
	/* the type this node runs in: operands in op->same already have it, state results get it */
	hg_dtype state;
	struct hg__shape in[HG__MAX_IN];
	struct hg__shape out, aux[HG__MAX_AUX]; /* aux: small results kept for backward */
	unsigned grads;                         /* bit i: operand i can have a gradient */
	unsigned saves;                         /* bits HG__SAVE_*: what backward reads */
};
#define HG__SAVE_IN(i) (1u << (i))
#define HG__SAVE_OUT (1u << 8)
#define HG__SAVE_AUX(i) (1u << (16 + (i)))
#define HG__BACK_AUX(i) \
	(1u << (24 + (i))) /* not saved: written and read by backward alone, and in memory only then */

/* A run of one node, forward or backward. Absent operands have data NULL (node->in[i] < 0 tells
 * too); din[i].data NULL: nobody wants that gradient. din of a parameter is f32 (a sum over many
 * rows), but for elementwise ops, and for operand 0 of those without HG__WIDE_SUMS; all others have
 * their operand's type. Every present din is written in full (the tape adds up contributions), or
 * added to where `adds` says so.
 * Backward: what `saves` did not name has its shape and data NULL, so that a forgotten bit cannot
 * read reused memory. */
struct hg__call {
	hg_context *ctx;
	const struct hg__kernels *k;
	const struct hg__node *node;
	hg_mode mode;
	struct hg__mat in[HG__MAX_IN], out, aux[HG__MAX_AUX];
	struct hg__mat dout, din[HG__MAX_IN];
	/* bit i: din[i] holds a gradient already, to which this one is added (op->adds) */
	unsigned adds;
	struct hg__csr csr, csr_t; /* csr_t only with HG__TRANSPOSE on a tape with gradients */
	const int64_t *batch_ptr;
	const int32_t *batch_id;
	struct hg__mat buffer[2];
	const int64_t *step;
	/* not 0: what lasts from step to step stays as it is (kernels/step.h) */
	const int32_t *stop;
	struct hg__overflow_flag overflow; /* forward: the guard of the result (HG__GUARDS_STORE) */
	/* in[i] is stored x 2^-shift[i], out x 2^-shift_out; gradients are stored as they are */
	int shift[HG__MAX_IN], shift_out;
	/* not NULL: kernels are only planned. Addresses then only say which operands are present */
	struct hg__planned *planned;
};

/* What planning learns of the kernels that an op would run. */
struct hg__planned {
	size_t workspace; /* the most that one of them takes */
};

static inline hg_status hg__plan_kernel(struct hg__planned *planned, size_t workspace)
{
	planned->workspace = hg__larger(planned->workspace, workspace);
	return HG_OK;
}

/* Runs a kernel for an op: HG__RUN(c, gemm, &args). While the tape is planned it does not run, but
 * says how much workspace it will take. Ops run kernels, copies included, in no other way, so an op
 * builds the arguments of its kernels in one place, and a plan knows each of them. */
#define HG__RUN(c, name, args)                                                              \
	((c)->planned ? hg__plan_kernel((c)->planned, (c)->k->name.workspace((c)->ctx, (args))) \
	              : (c)->k->name.run((c)->ctx, (args)))

/* Test inputs. The battery gives the extents; the op says what operands it wants. */
struct hg__extent {
	int64_t n, m, graphs, d; /* of the graph at hand (square), and the feature width to try */
	int heads;
	hg_dtype state;
};
enum hg__fill {
	HG__FILL_NORMAL = 0,
	HG__FILL_UNIFORM01 = 1,
	HG__FILL_LABELS = 2,
	HG__FILL_MASK = 3,
	HG__FILL_POSITIVE = 4,
	HG__FILL_CONST = 5
};
struct hg__sample {
	const char *what; /* "weighted, norm both" */
	hg_status expect; /* HG_OK, or the error that recording must return: bad samples */
	int use_graph;    /* 0: no graph although the op asks for one (a bad sample) */
	struct {
		struct hg__shape shape;
		enum hg__fill fill;
		/* FILL_NORMAL: sigma; FILL_CONST: the value; FILL_LABELS: number of classes */
		double scale;
		int variable; /* a gradient is wanted and checked */
	} in[HG__MAX_IN];
	int n_in;
	int buffers; /* number of running-statistics buffers [1, cols of operand 0] */
	unsigned char attr[HG__ATTR_BYTES];
};

struct hg__cost {
	double bytes, flops;
};
struct hg__about;
struct hg__range;      /* range_rule.h */
struct hg__derivation; /* range_rule.h */
struct hg__gradients;  /* range_rule.h */

struct hg__op {
	const char *name;
	const char *words; /* what it does, for who has never read `name`: "sum over neighbours" */
	unsigned traits;
	int min_in, max_in;
	/* Not 0: the op is Y = f(X) with the function 1 + HG__ACT_... of the list
	 * (kernels/functions.def). Its attr is a hg__act_attr, the constant from low to high; no name:
	 * it has none. */
	int act;
	struct hg__constant {
		const char *name, *expected; /* "slope", "0 <= slope <= 1" */
		float low, high;
	} constant;
	/* Bit i: operand i is one of those that share one float type, the state type of the node. Where
	 * they come in different ones (a promoted f32 activation meets f16), the tape inserts casts
	 * before infer: f32 is narrowed where its bound proves it safe, else the others are widened.
	 * Operands outside the mask (labels, masks, f32 gains) are left alone. */
	unsigned same;
	/* Bit i: the gradient of operand i is that of the result, as it is. Where such an operand has
	 * no other use the tape gives both one place: backward may find din[i] on dout, and has nothing
	 * to do for it then. */
	unsigned passes;
	/* Bit i: backward can add the gradient of operand i to what is there (call->adds), rounded
	 * once, where the tape would else add a part of its own. */
	unsigned adds;
	/* Bit i: operand i may be stored x 2^-call->shift[i]. Others are made f32 first. */
	unsigned rescaled;
	/* Optional (NULL: never): may the result of this node be stored x 2^-call->shift_out? */
	int (*rescales)(const struct hg__node *node);
	hg_status (*infer)(struct hg__infer *s);
	/* The range rules: what is known of the result and of the gradients (range_rule.h). */
	struct hg__known (*range)(const struct hg__range *r, struct hg__derivation *how);
	void (*range_back)(const struct hg__range *r, struct hg__gradients *grad);
	/* They do nothing but HG__RUN: that plans their workspace, too. */
	hg_status (*forward)(const struct hg__call *c);
	hg_status (*backward)(const struct hg__call *c);
	/* Optional (NULL): called once when the tape compiles, operands' shapes and graph set: have the
	 * graph build what it caches (norms, weights in the state type), so that a run allocates
	 * nothing. */
	hg_status (*prepare)(const struct hg__call *c);
	/* Sample i of this op for these extents; 0 when there are no more. Good and deliberately bad
	 * ones. */
	int (*sample)(int i, const struct hg__extent *extent, struct hg__sample *sample);
	void (*cost)(const struct hg__call *c, struct hg__cost *cost);
	/* Optional (NULL): the call (forward, or backward's for operand 0) as one of spmm in f16
	 * arithmetic, all but sample and record; left alone if it sums in f32. */
	hg_status (*probe)(const struct hg__call *c, int backward, struct hg__probe *probe);
	const struct hg__about *about; /* optional (NULL): what explains its results, about.h */
};

/* The table. */
#define HG_OP(name) extern const struct hg__op hg__op_##name;
#include "autograd/ops.def"
#undef HG_OP
const struct hg__op *const *hg__op_list(size_t *count);
/* Is the record complete? HG_ERR_INTERNAL names the first hole in why[HG__MESSAGE]: a missing
 * function, traits that contradict, a range rule that leaves a bound unset, too few samples. Needs
 * no tape, graph or device. */
HG_NODISCARD hg_status hg__op_check(const struct hg__op *op, char *why);

/* Record one node: what every public op does, and what the battery calls with samples. attr may be
 * NULL (zeros). buffers: two
 * pointers, either may be NULL, or NULL for none. The result is invalid after a mistake, this one
 * or an earlier one of the same tape. */
hg_var hg__record(hg_tape *tape, const struct hg__op *op, hg_graph *graph, const hg_var *in,
                  int n_in, hg_param *const *buffers, const void *attr, size_t attr_bytes);
/* The same for a shadow op (halfgraph/shadow.h). */
hg_var hg__record_shadow(hg_tape *tape, const struct hg__op *op, hg_graph *graph, const hg_var *in,
                         int n_in);
/* Fail while recording: the sentence becomes "OP: ... (layer SCOPE)". Returns status. */
hg_status hg__infer_fail(const struct hg__infer *s, hg_status status, const char *format, ...)
    HG_PRINTF(3, 4);

HG_EXTERN_C_END
#endif
