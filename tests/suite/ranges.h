#ifndef HG_TESTS_SUITE_RANGES_H
#define HG_TESTS_SUITE_RANGES_H

#include "autograd/tape.h"
#include "harness.h"

/* Tests whether the range rules are theorems. Every op of the table is recorded on a tape, as a
 * user would do it, for random and adversarial small cases; the tape states a verdict and a bound.
 * Then the kernels run, and their stored results are compared with the bound.
 *
 * A case is one graph, one set of operands, attributes, types, accumulation and mode, and one
 * incoming gradient. It runs forward, and on a TRAIN tape backward, with bounds of its own. A graph
 * is used for RANGES_PER_GRAPH cases, everything else is drawn anew for each. */

#define RANGES_PER_GRAPH 8

/* ---- numbers ---- */

/* The pattern of the numbers of a case. Signs by row or by column are the same in every operand, so
 * that the terms of a product have the same sign. */
enum ranges_pattern {
	RANGES_NORMAL,      /* random */
	RANGES_UNIFORM,     /* random in [-A, A], and often -A or A */
	RANGES_SAME_SIGN,   /* all A */
	RANGES_BY_ROW,      /* +A or -A by row */
	RANGES_BY_COLUMN,   /* +A or -A by column */
	RANGES_ALTERNATING, /* A and -A in turn, along rows and columns */
	RANGES_ONE_HOT,     /* one element is A, the others are 0 */
	RANGES_ZERO,        /* all 0 */
	RANGES_NEAR,        /* A and its neighbours in the type: columns that are almost constant */
	RANGES_SPREAD,      /* random, of all magnitudes */
	RANGES_PATTERNS
};

/* A matrix in host memory as the device holds it. sign: +1, 0 (any) or -1 (no: absolute values). */
void ranges_fill(struct hg__mat *mat, enum ranges_pattern pattern, double amplitude,
                 enum hg__fill fill, double scale);
/* The largest |x|. *others: how many are not finite. */
double ranges_amax(const struct hg__mat *mat, int64_t *others);
/* 1 if every |x| that is not 0 is at least `least`, and has this sign. */
int ranges_keeps(const struct hg__mat *mat, double least, int sign);
/* Draws a magnitude for numbers of a type: mostly ordinary, sometimes the largest or almost 0. */
double ranges_amplitude(hg_dtype dtype);

/* ---- graphs ---- */

/* A small graph that is difficult: empty rows, duplicates, a hub with more edges than a batch; with
 * or without weights; one graph or a batch. lined_up: its weights are positive, and some rows and
 * columns attain what rules say of the largest degrees. counted: its weights say how often edges
 * count, so they are not negative either. */
hg_graph *ranges_graph(hg_context *ctx, int lined_up, int counted);

/* ---- attributes ---- */

/* Other constants than the sample's, if the op has some, as extreme as it allows. */
void ranges_attr(const struct hg__op *op, unsigned char attr[HG__ATTR_BYTES]);
/* 1 if the bound of this op may be at most RANGES_LOOSE times the result where all terms line
 * up. */
int ranges_is_linear(const struct hg__op *op, const unsigned char attr[HG__ATTR_BYTES]);

/* ---- one case ---- */

/* The memory of a case. It is copied to the device and back in one piece each. */
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
	/* running statistics, by number of columns */
	hg_param *buffer[RANGES_POLICIES][2][RANGES_COLS + 1];
	hg_graph *graph;
};
void ranges_world_open(struct ranges_world *w, hg_context *ctx);
void ranges_world_close(struct ranges_world *w);

/* What is drawn before the case is recorded. */
struct ranges_plan {
	const struct hg__op *op;
	struct hg__sample sample;
	/* lined_up: all numbers are at their bounds, with signs for which the terms add up */
	int policy, lined_up;
	hg_mode mode;
	unsigned wide;   /* bit i: operand i is a parameter, if that makes its gradient f32 */
	int knows_least; /* the tape is told the least magnitudes of the operands, and their signs */
};
struct ranges_case {
	const struct ranges_plan *plan;
	hg_tape *tape;
	const struct hg__entry *line;
	struct hg_tensor view[HG__MAX_IN];
	/* in host memory */
	struct hg__mat in[HG__MAX_IN], out, aux[HG__MAX_AUX], dout, din[HG__MAX_IN];
	struct hg__call call; /* on the device */
	double amax[HG__MAX_IN];
};
/* Draws the operands, records the case, runs it forward and backward, and downloads the results. */
void ranges_case_open(struct ranges_case *c, struct ranges_world *w,
                      const struct ranges_plan *plan);
void ranges_case_close(struct ranges_case *c);

/* ---- one op ---- */

#define RANGES_LOOSE 4.0

/* the results of a case: the gradients of the operands, and Y */
enum { RANGES_OUT = HG__MAX_IN, RANGES_RESULTS };
struct ranges_score {
	/* the number of bounds, and of those that promise nothing (INFINITY, or beyond f16) */
	int64_t cases, claims, unknown;
	/* finite results that are nearer to 0 than the tape says, or of another sign */
	int64_t wrong;
	int64_t cramped; /* results in f16 that are proved, but have no headroom */
	/* forward results that are proved; cases of a linear op in which all terms line up */
	int64_t proved, lined_up;
	/* the largest measured / bound; the largest bound / measured where all terms of a linear op
	 * line up */
	double tightest, loosest;
	/* the largest measured / bound of each result, away from the ends of the types; -1: there was
	 * no bound */
	double reached[RANGES_RESULTS];
	char where[320], loose[320];
};

/* Runs `count` cases of this op with this record, which is op itself or a copy with another
 * rule. */
void ranges_run(hg_context *ctx, const struct hg__op *op, int64_t count,
                struct ranges_score *score);
/* The number of cases of an op in a test: HG_TEST_CASES, or else 100,000; on a GPU, where a launch
 * takes 5 us, 3,000; under sanitizers 1,000. */
int64_t ranges_count(const hg_context *ctx);

#endif
