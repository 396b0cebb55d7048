#ifndef HG_DOCTOR_SUM_H
#define HG_DOCTOR_SUM_H

#include "autograd/about.h"
#include "halfgraph/doctor.h"

HG_EXTERN_C_BEGIN

/* One element of a result as the sum that it is, addend by addend, in the order in which kernels
 * add. */
struct hg__addend {
	int64_t row, col; /* of the operand */
	double factor, operand;
	float f, x; /* as f16 arithmetic has them: the term is f x; f is 1 where there is no product */
	hg_term_kind is;
	int cut; /* a batch of the discretized sum ends behind this one: 1; a part: 2 */
};
struct hg__sum {
	hg_context *ctx;
	struct hg__addend *addend;
	size_t bytes;
	int64_t count;
	double exact, mass; /* sum and sum of sizes of factor * operand, f64 */
	double alone;       /* exact, of HG_TERM_ADDEND alone: of a fused node, before its ending */
	float after;        /* the factor that f16 sums get last (naive) or batch by batch */
	hg_accumulate accumulate; /* that this sum really has */
	int products;             /* terms are products; else x alone */
	int known;                /* 0: no sum, or none that is enumerated here */
};

/* What the op says of an element; of a node that says nothing, HG__OVER_NOTHING. */
HG_NODISCARD hg_status hg__terms_of(const struct hg__call *call, const struct hg__element *e,
                                    struct hg__terms *terms);
/* What a fused node adds: factor * operand, both 0 where it is absent. */
HG_NODISCARD hg_status hg__added_value(hg_context *ctx, const struct hg__added *added,
                                       double *factor, double *operand);
/* The sum behind element (row, col) of a result: operand -1: of the node's output; else of the
 * gradient of that operand. */
HG_NODISCARD hg_status hg__sum_open(const struct hg__call *call, int operand, int64_t row,
                                    int64_t col, struct hg__sum *sum);
/* One more addend, of a kind of its own, behind all. */
HG_NODISCARD hg_status hg__sum_append(struct hg__sum *sum, const struct hg__addend *addend);
void hg__sum_close(struct hg__sum *sum);

/* The end points of edge e of a CSR. */
HG_NODISCARD hg_status hg__csr_ends(hg_context *ctx, const struct hg__csr *csr, int64_t e,
                                    int64_t *row, int64_t *col);

/* halves.c: the same sum in f16 once more, as the kernels make it. */
struct hg__half_sum {
	int overflowed;
	/* addends taken in when it overflowed, that one included; else when one did not change the sum
	 * that was the largest of such; 0: all did */
	int64_t at;
	double partial; /* the last finite running sum there */
	double after;   /* the factor that follows it */
	int64_t ignored;
	double share;   /* of the mass: sizes of what changed nothing */
	double missing; /* the sum of what changed nothing: by so much the result is off for it alone */
	double noise;   /* root of the sum of squares of what rounding did to the other addends */
};
/* halves.c: the largest of the exact running sums that f16 has to hold on the way, and of the
 * result; of a sum in f32 the result alone. */
double hg__sum_most(const struct hg__sum *sum);
void hg__sum_in_halves(const struct hg__sum *sum, struct hg__half_sum *half);
/* halves.c: the sum on its way, in points that are evenly spaced, and before and behind term
 * `at` (0: none). Returns how many: HG__RUNNING at most. */
enum { HG__RUNNING = 200 };
int hg__sum_running(const struct hg__sum *sum, int64_t at, hg_running *points);

HG_EXTERN_C_END
#endif
