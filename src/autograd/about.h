#ifndef HG_AUTOGRAD_ABOUT_H
#define HG_AUTOGRAD_ABOUT_H

#include "autograd/opkit.h"

HG_EXTERN_C_BEGIN

/* What an op says of itself to the code that explains its results (doctor/), which therefore knows
 * no op by its name. All of it is optional. Of an op that says nothing the doctor tells the place,
 * the numbers and the cause, but neither addends nor operands. */

/* ---- one element as a sum ---- */

/* Addends of one element of a result, or of the gradient of an operand. "x" below is factor, "n",
 * "c" and "e" are what is summed over. */
enum hg__over {
	HG__OVER_NOTHING = 0, /* it is no sum, or one of another form */
	/* sum over columns c of x a[i, c] b[c, j], or of x a[i, c] b[j, c] if b is transposed; c runs
	 * from first, count columns */
	HG__OVER_COLUMNS = 1,
	/* sum over rows n of x a[n, i] b[n, j]; n runs from first, count rows */
	HG__OVER_ROWS = 2,
	/* the aggregation `edges` at row i, column j */
	HG__OVER_EDGES = 3,
	/* sum over columns c of x row_scale[p] col_scale[q] a[p, c] b[q, c], where edge i of edges.csr
	 * leads from q to p; c as above */
	HG__OVER_ENDS = 4,
	/* sum over the edges e of row i of edges.csr, to n, of f'(own[i, own_j] + b[n, other_j]) a[e,
	 * j], where f is a leaky relu of this slope */
	HG__OVER_SLOPES = 5
};

/* What a fused node adds to its aggregation: factor (1 + eps) x[row, col]. x.data NULL: nothing.
 * eps.data NULL: 0. */
struct hg__added {
	struct hg__mat x, eps;
	int64_t row, col;
	double factor;
};

/* b.data NULL: it is 1. Where the sum is one of halves, `halves` is 1, and the node says how they
 * are added (node->accumulate). */
struct hg__terms {
	enum hg__over over;
	struct hg__mat a, b, own;
	int64_t i, j, own_j, other_j, first, count;
	int transposed, halves;
	double factor;
	float slope;
	struct hg__aggregate edges;
	struct hg__added self, bias;
};

/* Element (row, col) of the result (operand -1) or of the gradient of an operand. */
struct hg__element {
	int operand;
	int64_t row, col;
};

/* ---- the rest ---- */

enum hg__about_traits {
	HG__RESCALES = 1u, /* all its numbers are the operand's, times factors of its own */
	/* the columns of operand 0 are units, each with weights of its own */
	HG__UNITS = 2u,
	/* linear in operand 0, and about as large as that and the weights */
	HG__PROPORTIONAL = 4u,
	HG__NEIGHBOURS = 8u, /* a sum over neighbours, or of that and more */
	/* a loss that is 0 only in the limit, of probabilities that go to 1 */
	HG__ENTROPY = 16u,
	HG__EXPONENTIAL = 32u, /* its gradient is as large as its result */
	HG__SHARES = 64u,      /* shares of 1 */
	HG__SUMS_ROW = 128u,   /* a sum along the row of operand 0 */
	/* an element is made of one row of operand 0 and one of operand 1: those of an edge's ends.
	 * Without an operand 1, the first columns of operand 0 are those of the destination */
	HG__JOINS_ENDS = 256u
};

/* What a row of the result is. */
enum hg__rows_are {
	HG__ROWS_INHERITED = 0, /* what those of the operands with as many rows are */
	HG__ROWS_NODES = 1,
	HG__ROWS_EDGES = 2,
	HG__ROWS_GRAPHS = 3
};

/* The operand at which the op has a pole or ends: see critical_operand. */
enum hg__critical {
	HG__NOT_CRITICAL = 0,
	HG__DIVISOR = 1,
	HG__LOGARITHM = 2,
	HG__ROOT = 3,
	HG__VARIANCE = 4 /* no operand: of numbers of operand 0; `norm` says which */
};

/* What a part of a fused node brings to it, or an operand of one. */
enum hg__brings { HG__BRINGS_NOTHING = 0, HG__BRINGS_SELF = 1, HG__BRINGS_BIAS = 2 };

struct hg__named {
	const char *name; /* "slope" */
	double value;
};
#define HG__MOST_NAMED 2

/* 1 / sqrt(variance + eps) of an element: aux[0][row, col] 2^-shift. momentum: of the running
 * statistics, 0 where there are none. */
struct hg__norm_at {
	int64_t row, col;
	int shift;
	double eps, momentum;
};

/* Columns that are attention heads: of the destinations of edges, of their sources, of both (those
 * of the destinations first), or of neither. */
enum hg__head_of { HG__OF_NEITHER = 0, HG__OF_DESTINATION = 1, HG__OF_SOURCE = 2, HG__OF_BOTH = 3 };
struct hg__heads_in {
	int64_t heads;
	enum hg__head_of of;
};

struct hg__about {
	unsigned traits;
	/* What the element of an operand is called that goes into one element of the result: at its
	 * row and column, or one for a row, a column, or all. NULL: no one element of it does. An
	 * elementwise op of one operand calls it "x". */
	const char *operand[HG__MAX_IN];
	unsigned addends;       /* bit i: a result is there without operand i, which is added to it */
	enum hg__rows_are rows; /* of an op that has a graph */
	unsigned edges;         /* bit i: the rows of operand i are edges of the graph */
	enum hg__critical critical;
	int critical_operand;
	/* Backward, numbers of the size of the result's gradient cancel each other: below this share of
	 * the largest of them a gradient is nothing but their rounding. */
	double noise;
	/* As a part of a fused node; and the operands of a fused node. */
	enum hg__brings brings, operand_brings[HG__MAX_IN];
	/* terms: set where there is a sum, else left at HG__OVER_NOTHING. Of a fused node self and bias
	 * are set in any case. */
	hg_status (*sum)(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t);
	/* Its constants, HG__MOST_NAMED at most; returns how many. Of a function of the list
	 * (hg__op.act) its record says that already. */
	int (*constants)(const struct hg__node *node, struct hg__named *named);
	/* HG__VARIANCE: where the element is divided; 0: it is not, being a sum over many. */
	int (*norm)(const struct hg__call *c, const struct hg__element *e, struct hg__norm_at *at);
	/* Heads in the columns of the result (operand -1), or of an operand with so many columns; 0:
	 * they are none. */
	int (*heads)(const struct hg__node *node, int operand, int64_t cols, struct hg__heads_in *in);
	/* The share of elements that a dropout keeps, of dropout and of a node that may end with it. */
	double (*kept)(const struct hg__node *node);
	/* The call of a mean in the place of this sum; NULL where it is one already. */
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

/* NULL: see above. */
static inline const char *hg__operand_role(const struct hg__op *op, int i)
{
	const char *role = hg__about(op)->operand[i];
	return role || op->max_in > 1 || !(op->traits & HG__ELEMENTWISE) ? role : "x";
}

HG_EXTERN_C_END
#endif
