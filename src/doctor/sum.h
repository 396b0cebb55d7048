#ifndef HG_DOCTOR_SUM_H
#define HG_DOCTOR_SUM_H

#include "autograd/about.h"
#include "halfgraph/doctor.h"

HG_EXTERN_C_BEGIN

/* One element of a result, written out as the sum that it is: all addends, in the order in which
 * the kernels add them. */
struct hg__addend {
	int64_t row, col; /* of the operand */
	double factor, operand;
	/* the same as f16 arithmetic has them: the term is f x, or x alone (hg__sum.products) */
	float f, x;
	hg_term_kind is;
	int ends;              /* enum hg__sum_ends: what ends after this addend */
	hg_attended_edge edge; /* hg__sum.attended; of an HG_TERM_ADDEND only */
};
/* A discretized sum consists of batches; its row may also be cut into parts, each the share that
 * one item of the work plan has of the row. The end of a part is also the end of a batch. */
enum hg__sum_ends { HG__ENDS_NOTHING = 0, HG__ENDS_BATCH = 1, HG__ENDS_PART = 2 };
struct hg__sum {
	hg_context *ctx;
	struct hg__addend *addend;
	size_t bytes;
	int64_t count;
	double exact, abs_sum;  /* sum of factor * operand, and of its |.|, in f64 */
	double before_epilogue; /* the same sum over HG_TERM_ADDEND only */
	/* by what an f16 sum is multiplied: at its end (naive), or each batch at its end
	 * (discretized) */
	float last_factor;
	hg_accumulate accumulate;   /* how the kernel really adds this sum */
	int products;               /* the terms are products f x; else x alone */
	int enumerated;             /* 0: it is no sum, or none that the op describes; no addends */
	int attended;               /* it is a sum over edges with attention */
	int has_bad_score;          /* one of those edges has a score that is not finite */
	hg_attended_edge bad_score; /* the first of them */
};

/* What the op says of an element (autograd/about.h); HG__OVER_NOTHING if it says nothing. */
HG_NODISCARD hg_status hg__terms_of(const struct hg__call *call, const struct hg__element *e,
                                    struct hg__terms *terms);
/* What a fused chain adds to its aggregation: factor * operand; both are 0 if it adds nothing. */
HG_NODISCARD hg_status hg__added_value(hg_context *ctx, const struct hg__added *added,
                                       double *factor, double *operand);
/* The sum behind element (row, col) of the result (operand -1) or of the gradient of an
 * operand. */
HG_NODISCARD hg_status hg__sum_open(const struct hg__call *call, int operand, int64_t row,
                                    int64_t col, struct hg__sum *sum);
/* Adds one more addend at the end. */
HG_NODISCARD hg_status hg__sum_append(struct hg__sum *sum, const struct hg__addend *addend);
void hg__sum_close(struct hg__sum *sum);

/* The two ends of edge e of a CSR matrix. */
HG_NODISCARD hg_status hg__csr_ends(hg_context *ctx, const struct hg__csr *csr, int64_t e,
                                    int64_t *row, int64_t *col);

/* f16_sum.c: the same sum computed once more in f16, rounding by rounding, as the kernel does it.
 * An addend (or the sum of a batch or part) is ignored if the running sum is the same after it. */
struct hg__f16_sum {
	int overflowed;
	/* The number of addends taken when the sum overflowed, that one included. If it did not: when
	 * an addend was ignored by the largest running sum that ignored one; 0: none was ignored. */
	int64_t partial_at;
	double partial;        /* the last finite running sum there */
	double partial_factor; /* partial * partial_factor is on the scale of the result */
	int64_t ignored;       /* addends */
	double ignored_share;  /* their share of abs_sum */
	double ignored_sum;    /* their sum: the error of the result because of them */
	double rounding_noise; /* root of the sum of squared rounding errors of all other additions */
};
void hg__sum_in_f16(const struct hg__sum *sum, struct hg__f16_sum *f16);
/* f16_sum.c: the largest |.| of the exact running sums that f16 has to hold on the way, and of the
 * result. Of a sum in f32 it is the result alone. */
double hg__sum_largest_partial(const struct hg__sum *sum);
/* f16_sum.c: points of the running sum, evenly spaced, with the ones before and after term `at`
 * (0: no such term). Returns how many; HG__CURVE_POINTS at most. */
enum { HG__CURVE_POINTS = 200 };
int hg__sum_curve(const struct hg__sum *sum, int64_t at, hg_running *points);

HG_EXTERN_C_END
#endif
