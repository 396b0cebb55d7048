#ifndef HG_AUTOGRAD_OP_H
#define HG_AUTOGRAD_OP_H

#include "halfgraph/graph.h"
#include "halfgraph/tape.h"
#include "kernels/kernels.h"
#include "precision/range.h"

HG_EXTERN_C_BEGIN

/* The interface of an op. Each op has one file, autograd/ops/NAME.c, with its equation on top and
 * its record (struct hg__op) at the end, and one line in ops.def. (A function of one operand has
 * this line in kernels/functions.def.) The registry test refuses an incomplete record. Ops never
 * read a policy: the tape decides the state type and the accumulation type of each node, and the op
 * finds them in the call. */

#define HG__MAX_IN 6
#define HG__MAX_AUX 5
#define HG__ATTR_BYTES 64

enum hg__op_traits {
	/* linear in operand 0 while the others stay as they are, so the battery tests that the backward
	 * pass is the adjoint of the forward pass */
	HG__LINEAR = 1u,
	HG__GRAPH = 2u,       /* needs a graph */
	HG__TRANSPOSE = 4u,   /* its backward needs the transpose, or as op->transpose says */
	HG__ELEMENTWISE = 8u, /* out[i, c] depends on in[.][i, c] alone */
	HG__LOSS = 16u,       /* output f32 [1, 1] */
	HG__RANDOM = 32u,     /* draws from the step's random stream */
	HG__BATCH = 64u,      /* needs the graph's batch pointers */
	/* backward reads csr_t.edge only for the operands in op->edges and for the weights of the
	 * graph. Without either, the tape need not build it. */
	HG__UNIT_EDGES = 128u,
	/* the result is cheap to compute and much larger than the operands, so the tape may compute it
	 * a second time for backward instead of keeping it (plan.c) */
	HG__RECOMPUTE = 256u,
	/* both directions are attention, which may use dense counts of a batch (core/plan_dense.h) */
	HG__DENSE = 32768u,
	/* if operand 0 is a parameter (a weight matrix that sparse features multiply), its gradient is
	 * f32 where sums run in f32 */
	HG__WIDE_SUMS = 512u,
	/* the range rule needs the sign of the last operand and its distance from 0; if that operand is
	 * a constant, the tape reads it once, when the op is recorded */
	HG__DIVIDES = 1024u,
	/* forward passes call->overflow to the kernel that stores the result, which then checks each
	 * element for overflow; without this trait the tape runs a separate check after the op */
	HG__GUARDS_STORE = 2048u,
	HG__CASTS = 4096u, /* the result is operand 0 in another float type */
	/* both directions are sums of halves over neighbours, or attention, which may use tiles where
	 * every edge has weight 1 (core/plan_tiles.h); op->staged says which nodes */
	HG__TILES = 8192u,
	/* the graph's weights say how often an edge counts, so none of them may be negative */
	HG__COUNTS_EDGES = 16384u,
	/* runs on graphs that scatter, too (core/csr.h, hg__graph_scatters) */
	HG__SCATTERS = 65536u
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
	const char *scope;   /* owned by the tape; "" outside every scope */
	/* for random ops: depends on the seed and the number of random ops before this one, so the same
	 * recording draws the same numbers */
	uint64_t rng_key;
	/* for a loss on a compiled tape: the number of rows that it averages, or of elements if its
	 * mask has several columns, or the least such number (recording.h); 0: not known */
	int64_t counted;
	hg_accumulate accumulate;
	hg_verdict verdict;
	int by_weights; /* guarded, by checking the weights only (precision/range.h) */
	/* bound on |out| by the range rules alone, without the limit of a guard */
	double rule_bound[HG__ASSUMPTIONS];
	/* The result is stored x 2^-shift, so that it fits in f16. Bounds and verdict are those of the
	 * result without this factor. */
	int shift;
	int shadow; /* the result must be proved to fit in f16, or recording fails (shadow.h) */
	_Alignas(8) unsigned char attr[HG__ATTR_BYTES]; /* the op's own struct */
};

/* What op->infer reads (up to `in`) and sets: from the shapes of the operands it derives those of
 * the results, and it says what backward will read. */
struct hg__infer {
	hg_tape *tape;
	const struct hg__node *node;
	hg_mode mode;
	/* the float type of this node: operands in op->same have it already, and a result that is an
	 * activation gets it */
	hg_dtype state;
	struct hg__shape in[HG__MAX_IN];
	struct hg__shape out, aux[HG__MAX_AUX]; /* aux: small results that are kept for backward */
	unsigned grads;                         /* bit i: operand i can have a gradient */
	unsigned saves;                         /* bits HG__SAVE_*: what backward reads */
};
#define HG__SAVE_IN(i) (1u << (i))
#define HG__SAVE_OUT (1u << 8)
#define HG__SAVE_AUX(i) (1u << (16 + (i)))
/* aux[i] is not kept: only backward writes and reads it, so it has memory only then. */
#define HG__BACK_AUX(i) (1u << (24 + (i)))

/* A run of one node, forward or backward.
 *
 *     Operands     An absent operand has data NULL, and node->in[i] < 0.
 *     Backward     Matrices that `saves` does not name have a shape, but data NULL: an op that
 *                  forgot a bit fails at once, instead of reading memory that is used again.
 *     Gradients    If din[i].data is NULL, the gradient of operand i is not needed. Otherwise
 *                  backward writes every element of it, or adds to it if `adds` has bit i; the tape
 *                  adds up the gradients of several uses.
 *     Types        A gradient has the type of its operand, except that of a parameter that is
 *                  summed over many rows, which is f32. (Not f32: parameters of elementwise ops,
 *                  operand 0 of ops without HG__WIDE_SUMS, and operands in op->one_type.) */
struct hg__call {
	hg_context *ctx;
	const struct hg__kernels *k;
	const struct hg__node *node;
	hg_mode mode;
	struct hg__mat in[HG__MAX_IN], out, aux[HG__MAX_AUX];
	struct hg__mat dout, din[HG__MAX_IN];
	unsigned adds; /* bit i: add to din[i] instead of writing it (op->adds) */
	/* csr_t only with HG__TRANSPOSE on a tape with gradients, or where op->transpose says so */
	struct hg__csr csr, csr_t;
	/* of a graph that scatters; csr and csr_t then have sizes alone */
	struct hg__coo coo, coo_t;
	const int64_t *batch_ptr;
	const int32_t *batch_id;
	struct hg__mat buffer[2];
	const int64_t *step;
	/* if *stop is not 0, running statistics stay as they are (kernels/step.h) */
	const int32_t *stop;
	/* the number of rows of operand 0 that count, on the device; NULL: all (live.c) */
	const int64_t *live;
	struct hg__overflow_flag overflow; /* forward: the guard of the result (HG__GUARDS_STORE) */
	/* Of the batch norms around a node that computes with them (norms.c):
	 *
	 *     normalise   in[0] is what a norm reads, and operand 0 what this makes of it
	 *     norm_sums   backward: receive the gradients of that norm's gamma and beta
	 *     statistics  forward: if statistics.x is there, it is out, which a norm reads
	 *     through     backward: only a norm reads out, which is through.x. dout is then the
	 *                 gradient of the norm's result
	 *
	 * and of the norm itself: has_statistics, if the node that makes what it reads has computed
	 * them; has_sums, if the node that reads its result has added up its gradients. */
	struct hg__normalise normalise;
	struct hg__mat norm_sums[2];
	struct hg__batch_norm_args statistics;
	struct hg__batch_norm_back_args through;
	int has_statistics, has_sums;
	/* in[i] is stored x 2^-shift[i], and out x 2^-shift_out; gradients have no such factor */
	int shift[HG__MAX_IN], shift_out;
	/* If this is not NULL, kernels are planned instead of run, and data pointers only say which
	 * operands are present. */
	struct hg__planned *planned;
};

/* What the tape plans for the kernels of an op. */
struct hg__planned {
	size_t workspace; /* bytes: enough for each kernel, as they run one after the other */
};

static inline hg_status hg__plan_kernel(struct hg__planned *planned, size_t workspace)
{
	planned->workspace = hg__larger(planned->workspace, workspace);
	return HG_OK;
}

/* Runs a kernel for an op: HG__RUN(c, gemm, &args). While the tape is planned, it only adds the
 * workspace of the kernel to the plan. Ops run every kernel in this way, copies included, so the
 * same code that runs them also plans them, and the plan cannot miss one. */
#define HG__RUN(c, name, args)                                                              \
	((c)->planned ? hg__plan_kernel((c)->planned, (c)->k->name.workspace((c)->ctx, (args))) \
	              : (c)->k->name.run((c)->ctx, (args)))

/* Test inputs. The battery chooses the extents, and the op describes operands for them. */
struct hg__extent {
	int64_t n, m, graphs; /* nodes, edges and graphs of the test graph, which is square */
	int64_t d;            /* width of the features */
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
	hg_status expect; /* HG_OK; for a bad sample, the error that recording must return */
	int use_graph;    /* 0 for an op that needs a graph is a bad sample */
	struct {
		struct hg__shape shape;
		enum hg__fill fill;
		/* FILL_NORMAL: sigma; FILL_CONST: the value; FILL_LABELS: number of classes */
		double scale;
		int variable; /* its gradient is computed and checked */
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
	const char *words; /* what the op does, in plain words: "sum over neighbours" */
	unsigned traits;
	int min_in, max_in;
	/* For Y = f(X) with a function of kernels/functions.def: 1 + HG__ACT_...; else 0. The attr of
	 * such an op is a hg__act_attr, with the value of the constant of f. */
	int act;
	struct hg__constant {
		const char *name, *expected; /* "slope", "0 <= slope <= 1"; NULL if f has no constant */
		float low, high;
	} constant;
	/* Bit i: operand i has the float type of the node. If these operands come in different types
	 * (such as a promoted f32 activation and an f16 one), the tape inserts casts before infer: an
	 * f32 operand is narrowed if its bound proves that it fits f16, otherwise the others are
	 * widened. Operands without a bit (labels, masks, f32 gains) are left alone. */
	unsigned same;
	/* Bit i: the rows of operand i are edges of the graph. */
	unsigned edges;
	/* Bit i: the gradient of operand i has the type of the operand, also if that is a parameter. */
	unsigned one_type;
	/* Bit i: the gradient of operand i equals the gradient of the result. If the operand has no
	 * other use, the tape gives both the same memory: then din[i] is dout, and backward has nothing
	 * to do for it. */
	unsigned passes;
	/* Bit i: backward can add the gradient of operand i to an existing one (call->adds), with one
	 * rounding. Otherwise the tape stores it separately and adds it afterwards. */
	unsigned adds;
	/* Optional: the matrix that the gradient of operand i may take the place of, as a bit
	 * HG__SAVE_IN, HG__SAVE_OUT or HG__SAVE_AUX; 0: none. Backward is done with it, or with each
	 * element of it, before it writes the gradient. */
	unsigned (*replaces)(const struct hg__node *node, int i);
	/* Bit i: operand i may be stored x 2^-call->shift[i]. Other operands are converted to f32. */
	unsigned rescaled;
	/* Optional: may the result of this node be stored x 2^-call->shift_out? NULL: never. */
	int (*rescales)(const struct hg__node *node);
	hg_status (*infer)(struct hg__infer *s);
	/* The range rules: bounds on the result and on the gradients (range_rule.h). */
	struct hg__known (*range)(const struct hg__range *r, struct hg__derivation *how);
	void (*range_back)(const struct hg__range *r, struct hg__gradients *grad);
	/* Both run kernels only by HG__RUN, because they are also called to plan the workspace. */
	hg_status (*forward)(const struct hg__call *c);
	hg_status (*backward)(const struct hg__call *c);
	/* Optional, with HG__TRANSPOSE: does this node need the transpose? back: its backward runs too.
	 * NULL: every node does, if its backward runs. */
	int (*transpose)(const struct hg__node *node, int back);
	/* Optional: called once when the tape is compiled, with graph and shapes but without data. It
	 * makes the graph build what the op reads (degree factors, weights in the state type), so that
	 * a run allocates nothing. */
	hg_status (*prepare)(const struct hg__call *c);
	/* Optional, with HG__TILES: the columns that a sum of `cols` columns stages by tiles; 0 if this
	 * node has no use for tiles. NULL: every node has, and stages `cols`. */
	int64_t (*staged)(const struct hg__node *node, hg_mode mode, int64_t cols);
	/* Optional: the result is what this makes of operand 0, so that a reader can compute it as it
	 * reads that. Where one does, forward has no result to write (out.data is NULL) but its aux
	 * values (norms.c). */
	void (*as_normalised)(const struct hg__call *c, struct hg__normalise *normalise);
	/* With it: what this forward or backward call computes. */
	struct hg__batch_norm_args (*as_statistics)(const struct hg__call *c);
	struct hg__batch_norm_back_args (*as_gradients)(const struct hg__call *c);
	/* Optional: can a node with operands of these shapes compute with the batch norms before and
	 * behind it (call->normalise, norm_sums, statistics, through)? NULL: no. */
	int (*normalises)(const hg_context *ctx, const struct hg__shape *in);
	/* Sets test input i, valid or deliberately invalid; returns 0 if there are fewer. */
	int (*sample)(int i, const struct hg__extent *extent, struct hg__sample *sample);
	void (*cost)(const struct hg__call *c, struct hg__cost *cost);
	/* Optional: sets the arguments of the f16 aggregation that this call runs (backward: for the
	 * gradient of operand 0), so that the observer can compare some rows with their exact sums. The
	 * caller sets `sample` and `record`. Leaves *probe alone if the call sums in f32. */
	hg_status (*probe)(const struct hg__call *c, int backward, struct hg__probe *probe);
	const struct hg__about *about; /* optional: a description for the doctor (about.h) */
};

/* All ops. */
#define HG_OP(name) extern const struct hg__op hg__op_##name;
#include "autograd/ops.def"
#undef HG_OP
const struct hg__op *const *hg__op_list(size_t *count);
/* Checks that a record is complete, without a tape, a graph or a device. HG_ERR_INTERNAL: why
 * [HG__MESSAGE] receives the first mistake, such as a missing function, traits that contradict each
 * other, a range rule that does not set a bound, or too few samples. */
HG_NODISCARD hg_status hg__op_check(const struct hg__op *op, char *why);

/* Records one node. Every public op calls this, and so does the battery with its samples. attr
 * NULL: all zeros. buffers: two pointers, each of which may be NULL; or NULL. The result is invalid
 * if this call or an earlier one on the same tape failed. */
hg_var hg__record(hg_tape *tape, const struct hg__op *op, hg_graph *graph, const hg_var *in,
                  int n_in, hg_param *const *buffers, const void *attr, size_t attr_bytes);
/* Records a shadow op (halfgraph/shadow.h). */
hg_var hg__record_shadow(hg_tape *tape, const struct hg__op *op, hg_graph *graph, const hg_var *in,
                         int n_in);
/* Reports a mistake in the recording: the message becomes "OP: ... (layer SCOPE)". Returns
 * status. */
hg_status hg__infer_fail(const struct hg__infer *s, hg_status status, const char *format, ...)
    HG_PRINTF(3, 4);

HG_EXTERN_C_END
#endif
