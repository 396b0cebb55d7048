#ifndef HG_TESTS_SUITE_RANGES_H
#define HG_TESTS_SUITE_RANGES_H

#include "autograd/tape.h"
#include "harness.h"

/* Are the range rules theorems? Every op of the table on random and on adversarial small cases,
 * recorded on a tape as a user would: the verdict and the bound are the tape's own. Then the
 * kernels run, and what they have stored is held against them.
 *
 * A case is one graph, one set of operands, attributes, types, accumulation and mode, and one
 * incoming gradient, run forward, and backward on a TRAIN tape, with bounds of its own. Graphs are
 * drawn anew for every RANGES_PER_GRAPH cases, all else for each. */

#define RANGES_PER_GRAPH 8

/* ---- numbers ---- */

/* How the numbers of a case lie. Signs by row or by column are the same in every operand, so that
 * products line up. */
enum ranges_pattern {
	RANGES_NORMAL,      /* random */
	RANGES_UNIFORM,     /* random in [-A, A], many of them at the ends */
	RANGES_SAME_SIGN,   /* all A */
	RANGES_BY_ROW,      /* +A or -A by row */
	RANGES_BY_COLUMN,   /* +A or -A by column */
	RANGES_ALTERNATING, /* A, -A, A ... along rows and columns */
	RANGES_ONE_HOT,     /* A once, else 0 */
	RANGES_ZERO,        /* all 0 */
	RANGES_NEAR,        /* A and the numbers next to it: columns that are almost constant */
	RANGES_SPREAD,      /* of all magnitudes */
	RANGES_PATTERNS
};

/* A matrix in host memory as the device holds it. sign: +1, 0 (any) or -1 (no: absolute values). */
void ranges_fill(struct hg__mat *mat, enum ranges_pattern pattern, double amplitude,
                 enum hg__fill fill, double scale);
/* max |x|, and how many are not finite. */
double ranges_amax(const struct hg__mat *mat, int64_t *others);
/* Is every |x| at least this much, and of this sign, if it is not 0? */
int ranges_keeps(const struct hg__mat *mat, double least, int sign);
/* A magnitude for numbers of a type: mostly ordinary, sometimes the largest or next to nothing. */
double ranges_amplitude(hg_dtype dtype);

/* ---- graphs ---- */

/* A small graph with something that hurts: empty rows, duplicates, a hub of more edges than a
 * batch; weighted or not, a batch of graphs or one. lined_up: its weights are positive, and rows
 * and columns are there that attain what is said of the largest degrees. */
hg_graph *ranges_graph(hg_context *ctx, int lined_up);

/* ---- attributes ---- */

/* Other constants than the sample's, where the op has any, as wild as it allows. */
void ranges_attr(const struct hg__op *op, unsigned char attr[HG__ATTR_BYTES]);
/* Shall this op be no looser than RANGES_LOOSE where everything lines up? */
int ranges_is_linear(const struct hg__op *op, const unsigned char attr[HG__ATTR_BYTES]);

/* ---- one case ---- */

/* Memory of a case: what the device gets and gives back in one piece each way. */
struct ranges_arena {
	hg_context *ctx;
	char *host, *device;
	size_t used, bytes;
};
struct hg__mat ranges_place(struct ranges_arena *arena, hg_dtype dtype, int64_t rows, int64_t cols);
struct hg__mat ranges_on_device(const struct ranges_arena *arena, struct hg__mat mat);

enum { RANGES_POLICIES = 4, RANGES_COLS = 512 };
struct ranges_world {
	hg_context *ctx;
	struct ranges_arena arena;
	hg_params *params[RANGES_POLICIES];
	hg_param *buffer[RANGES_POLICIES][2][RANGES_COLS + 1]; /* running statistics by columns */
	hg_graph *graph;
};
void ranges_world_open(struct ranges_world *w, hg_context *ctx);
void ranges_world_close(struct ranges_world *w);

/* What is drawn before anything is recorded. */
struct ranges_plan {
	const struct hg__op *op;
	struct hg__sample sample;
	int policy, lined_up; /* lined_up: all numbers at their bounds, with signs that add up */
	hg_mode mode;
	unsigned wide; /* bit i: operand i's gradient is a parameter's, if the op makes those f32 */
	int looks;     /* the tape knows how near the operands come to 0, and their signs */
};
struct ranges_case {
	const struct ranges_plan *plan;
	hg_tape *tape;
	const struct hg__entry *line;
	struct hg_tensor view[HG__MAX_IN];
	struct hg__mat in[HG__MAX_IN], out, dout, din[HG__MAX_IN]; /* in host memory */
	struct hg__call call;                                      /* on the device */
	double amax[HG__MAX_IN];
};
/* Draw the operands, record, run both ways and bring the results back. */
void ranges_case_open(struct ranges_case *c, struct ranges_world *w,
                      const struct ranges_plan *plan);
void ranges_case_close(struct ranges_case *c);

/* ---- one op ---- */

#define RANGES_LOOSE 4.0

/* results of a case: the operands' gradients, Y */
enum { RANGES_OUT = HG__MAX_IN, RANGES_RESULTS };
struct ranges_score {
	/* bounds asked for; of these INFINITY, or beyond f16: nothing is claimed */
	int64_t cases, claims, unknown;
	/* finite results nearer to 0 than is claimed, or of another sign */
	int64_t wrong;
	int64_t cramped; /* results in f16 that are proved and told to have no headroom */
	/* forward results with this verdict; cases of a linear op where everything lines up */
	int64_t proved, lined_up;
	/* worst measured / bound; loosest bound / measured where everything lines up in a linear op */
	double tightest, loosest;
	/* largest measured / bound of each result, away from the ends of the types; -1: no claim was
	 * made of it */
	double reached[RANGES_RESULTS];
	char where[320], loose[320];
};

/* `count` cases of this op with this record: op itself, or a copy of it with another rule. */
void ranges_run(hg_context *ctx, const struct hg__op *op, int64_t count,
                struct ranges_score *score);
/* Cases of an op in a test: 100,000, or HG_TEST_CASES; on a GPU, where a launch takes 5 us, 3,000,
 * and under sanitizers 1,000. */
int64_t ranges_count(const hg_context *ctx);

#endif
