#ifndef HG_AUTOGRAD_ABOUT_H
#define HG_AUTOGRAD_ABOUT_H

#include "autograd/opkit.h"

HG_EXTERN_C_BEGIN

/* A description of an op for the code that explains its results (doctor/). That code never compares
 * op names; it reads this description instead. Everything here is optional: for an op without a
 * description the doctor reports the place, the numbers and the cause of a fault, but neither
 * addends nor operands. */

/* ---- one element as a sum ---- */

/* How one element of a result, or of the gradient of an operand, is a sum:
 *
 *     COLUMNS    sum over c of factor a[i, c] b[c, j], or b[j, c] if `transposed`;
 *                c = first, ..., first + count - 1
 *     ROWS       sum over n of factor a[n, i] b[n, j]; n = first, ..., first + count - 1
 *     EDGES      element (i, j) of the aggregation `edges`
 *     ENDS       sum over c of factor row_scale[p] col_scale[q] a[p, c] b[q, c]; c as in COLUMNS.
 *                Edge i of edges.csr leads from node q to node p
 *     SLOPES     sum over the edges e of row i of edges.csr of f'(own[i, own_j] + b[n, other_j])
 *                a[e, j]. n is the column of edge e, and f is a leaky relu with this slope
 *     ATTENTION  a sum over the edges of node i, in column j, with the weights p of `attention`
 *                (kernels/attention.h): the result, or a gradient, as attention.as says */
enum hg__over {
	HG__OVER_NOTHING = 0, /* the element is not a sum, or has none of these forms */
	HG__OVER_COLUMNS = 1,
	HG__OVER_ROWS = 2,
	HG__OVER_EDGES = 3,
	HG__OVER_ENDS = 4,
	HG__OVER_SLOPES = 5,
	HG__OVER_ATTENTION = 6
};

/* A term that a fused node adds to its aggregation or attention: factor (1 + eps) x[row, col]. If
 * x.data is NULL there is no such term; if eps.data is NULL, eps is 0. */
struct hg__added {
	struct hg__mat x, eps;
	int64_t row, col;
	double factor;
};

/* What an element (i, j) of attention is. With the names of kernels/attention.h:
 *
 *     RESULT  Y[i, j], the sum over the edges (i, n) of mask p V[n, j]
 *     Q       dQ[i, j], the sum over the edges (i, n) of ds times the derivative of s by Q[i, j]
 *     K       dK[i, j], the sum over the edges (n, i) of ds times the derivative of s by K[i, j]
 *     V       dV[i, j], the sum over the edges (n, i) of mask p dY[n, j]
 *
 * If an operand has several uses, its gradient is the sum of all of them, in this order. With
 * `mean` the result is the mean of its heads: column j is that of each head. */
enum hg__attended_as { HG__AS_RESULT = 1, HG__AS_Q = 2, HG__AS_K = 4, HG__AS_V = 8 };
struct hg__attended {
	struct hg__attention of;
	struct hg__mat log_sum, y; /* left by the forward pass */
	struct hg__mat dy;         /* for gradients */
	const struct hg__csr *csr, *csr_t;
	unsigned as; /* the uses, enum hg__attended_as */
	int mean;    /* RESULT only */
};

/* The terms of a sum. If b.data is NULL, all elements of b are 1. */
struct hg__terms {
	enum hg__over over;
	struct hg__mat a, b, own;
	int64_t i, j, own_j, other_j, first, count;
	int transposed;
	int halves; /* 1: the sum may run in f16, as node->accumulate says; 0: it runs in f32 */
	double factor;
	float slope;
	struct hg__aggregate edges;
	struct hg__attended attention;
	struct hg__added self, bias; /* the node's own term (GIN) and the bias */
};

/* Element (row, col) of the result (operand -1) or of the gradient of an operand. */
struct hg__element {
	int operand;
	int64_t row, col;
};

/* ---- the rest ---- */

enum hg__about_traits {
	/* multiplies operand 0 by factors, so its result is zero only if those or the operand are */
	HG__RESCALES = 1u,
	/* the columns of operand 0 are units of a layer, each with weights of its own */
	HG__UNITS = 2u,
	/* linear in operand 0: if that is divided by a number, so is the result */
	HG__PROPORTIONAL = 4u,
	HG__NEIGHBOURS = 8u, /* the result contains a sum over neighbours */
	/* a loss that approaches 0, but never reaches it, as the probabilities approach 1 */
	HG__ENTROPY = 16u,
	HG__EXPONENTIAL = 32u, /* the result is its own derivative, so both overflow together */
	HG__SHARES = 64u,      /* each row of the result adds up to 1 */
	HG__SUMS_ROW = 128u,   /* each element of the result is the sum of a row of operand 0 */
	/* An element of row e is computed from two elements, one for each end of edge e: operand 0 has
	 * those of the destinations, operand 1 those of the sources. If operand 1 is absent, operand 0
	 * has both, those of the destinations in the first half of its columns. */
	HG__JOINS_ENDS = 256u,
	HG__SUMS_EDGES = 512u /* its sums, of results or of gradients, add values of edges */
};

/* What the rows of the result stand for. */
enum hg__rows_are {
	HG__ROWS_INHERITED = 0, /* the same as the rows of each operand that has as many rows */
	HG__ROWS_NODES = 1,
	HG__ROWS_EDGES = 2,
	HG__ROWS_GRAPHS = 3
};

/* What must not be 0. It is operand critical_operand, except for HG__VARIANCE: that is computed
 * from operand 0, and `norm` says which one an element is divided by. */
enum hg__critical {
	HG__NOT_CRITICAL = 0,
	HG__DIVISOR = 1,
	HG__LOGARITHM = 2,
	HG__ROOT = 3,
	HG__VARIANCE = 4
};

/* What an op adds as a part of a fused chain: the node's own term or the bias. */
enum hg__brings { HG__BRINGS_NOTHING = 0, HG__BRINGS_SELF = 1, HG__BRINGS_BIAS = 2 };

struct hg__named {
	const char *name; /* "slope" */
	double value;
};
#define HG__MOST_NAMED 2

/* The factor 1 / sqrt(variance + eps) of an element is aux[0][row, col] 2^-shift. `momentum` is
 * that of the running statistics, or 0 if there are none. */
struct hg__norm_at {
	int64_t row, col;
	int shift;
	double eps, momentum;
};

/* The columns of a tensor that belong to attention heads, and the ends of edges that these belong
 * to. A head has `each` columns, side by side; 0 stands for one. If a tensor has the heads of both
 * ends, those of the destinations come first. */
enum hg__head_of { HG__OF_NEITHER = 0, HG__OF_DESTINATION = 1, HG__OF_SOURCE = 2, HG__OF_BOTH = 3 };
struct hg__heads_in {
	int64_t heads, each;
	enum hg__head_of of;
};

struct hg__about {
	unsigned traits;
	/* If an element of the result depends on one element of operand i: the name of that element in
	 * messages. It is the element of the same row and column, or of the same row or column if the
	 * operand has only one column or row. Otherwise NULL. The operand of an elementwise op with one
	 * operand needs no name: it is "x". */
	const char *operand[HG__MAX_IN];
	unsigned addends;       /* bit i: operand i is added, so that 0 leaves the rest of the result */
	enum hg__rows_are rows; /* for ops with a graph */
	enum hg__critical critical;
	int critical_operand;
	/* In the backward pass numbers as large as the gradient of the result cancel each other. A
	 * gradient below `noise` times the largest of them consists of rounding errors only. */
	double noise;
	enum hg__brings brings; /* what this op adds as a part of a fused chain */
	/* for an op that does the work of a fused chain: what operand i adds */
	enum hg__brings operand_brings[HG__MAX_IN];
	/* Describes the terms of an element. Leaves *t alone if the element is not a sum, but an op
	 * that does the work of a fused chain sets t->self and t->bias also then. */
	hg_status (*sum)(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t);
	/* Stores the constants of the op, HG__MOST_NAMED at most, and returns their number. Functions
	 * of one operand (hg__op.act) have theirs in the record and do not need this. */
	int (*constants)(const struct hg__node *node, struct hg__named *named);
	/* For HG__VARIANCE: finds the variance that an element is divided by. Returns 0 if there is
	 * none, because the element is a sum over many rows. */
	int (*norm)(const struct hg__call *c, const struct hg__element *e, struct hg__norm_at *at);
	/* Finds the attention heads in the columns of the result (operand -1), or of an operand that
	 * has `cols` columns. `in` is zero before. Returns 0 if its columns are not heads. */
	int (*heads)(const struct hg__node *node, int operand, int64_t cols, struct hg__heads_in *in);
	/* The probability with which dropout keeps an element, for ops that may apply dropout. */
	double (*kept)(const struct hg__node *node);
	/* The C call that computes a mean instead of this sum; NULL if the node computes a mean. */
	const char *(*mean)(const struct hg__node *node);
};

static inline const struct hg__about *hg__about(const struct hg__op *op)
{
	static const struct hg__about nothing = {.traits = 0};
	return op->about ? op->about : &nothing;
}

static inline int hg__constants_of(const struct hg__node *node,
                                   struct hg__named named[HG__MOST_NAMED])
{
	struct hg__act_attr attr;
	if (!node->op->constant.name)
		return hg__about(node->op)->constants ? hg__about(node->op)->constants(node, named) : 0;
	hg__attr_get(node, &attr, sizeof attr);
	named[0] = (struct hg__named){node->op->constant.name, (double)attr.p};
	return 1;
}

/* hg__about.operand[i], or its default. */
static inline const char *hg__operand_role(const struct hg__op *op, int i)
{
	const char *role = hg__about(op)->operand[i];
	return role || op->max_in > 1 || !(op->traits & HG__ELEMENTWISE) ? role : "x";
}

HG_EXTERN_C_END
#endif
