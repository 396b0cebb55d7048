#ifndef HG_DOCTOR_FINDING_H
#define HG_DOCTOR_FINDING_H

#include "doctor/result.h"

HG_EXTERN_C_BEGIN

/* A finding, and what only the doctor needs to know of it. */
struct hg__finding {
	hg_finding reported;
	int64_t position;              /* of the task at fault in replay->replayed, or one below */
	int32_t value;                 /* the value at fault; -1: none */
	const struct hg__entry *entry; /* the entry at fault; NULL: none */
	const struct hg__op *op;       /* the op at fault; NULL: none */
	int operand_rounded;           /* HG_CAUSE_ZERO: rounding made the operand 0 */
	double gradient;               /* HG_CAUSE_OPTIMISER: of the element, without the loss scale */
	int is_moment;                 /* it is about a moment of the optimiser */
};
/* Positions of findings before the first and after the last task. */
#define HG__BEFORE_STEP ((int64_t)-1)
#define HG__AFTER_STEP INT64_MAX

/* A new finding with the defaults of all fields; NULL if its list is full. */
struct hg__finding *hg__finding_new(struct hg__replay *replay, enum hg__finding_kind kind,
                                    hg_cause cause);
/* Sets the element. */
HG_NODISCARD hg_status hg__finding_set_element(struct hg__replay *replay,
                                               struct hg__finding *finding,
                                               const struct hg__rows *rows, int64_t row,
                                               int64_t col);
/* Describes a finding at an element of a result: names, element, sum, operands. */
HG_NODISCARD hg_status hg__finding_describe(struct hg__replay *replay, struct hg__finding *finding,
                                            const struct hg__result *result, int64_t row,
                                            int64_t col, const struct hg__sum *sum,
                                            const struct hg__f16_sum *f16);

/* operands.c: lists the operands that the op has at the element, where it is no sum. */
HG_NODISCARD hg_status hg__list_operands(struct hg__replay *replay, const struct hg__result *result,
                                         hg_finding *f);
/* Two gradients of one tensor at one element: the one so far, and the one that is added to it. */
struct hg__gradient_pair {
	int32_t entry[2];  /* whose backward passes made them; -1: unknown */
	int contributions; /* so far */
	double value[2];
};
/* operands.c: lists both. */
HG_NODISCARD hg_status hg__list_gradients(struct hg__replay *replay, hg_finding *f,
                                          const struct hg__gradient_pair *pair);
/* operands.c: the operand of the logarithm or root at fault if it is negative; else NULL. */
const double *hg__negative_operand(const hg_finding *f);

/* heads.c: sets the attention head of the element's column. */
void hg__set_head(const struct hg__replay *replay, int32_t value, hg_finding *f);

/* attribution.c: the op and layer of an entry; of a fused chain, those of the op at fault. */
struct hg__fault {
	const struct hg__task *task;
	int backward;
	int operand; /* whose gradient it is; -1: the output, or what is intermediate */
	int64_t row, col;
	double before_epilogue; /* the sum of the aggregation at the element */
	double limit;           /* a number of this size does not fit into the element */
};
struct hg__origin {
	const struct hg__op *op;
	const char *layer;
};
HG_NODISCARD hg_status hg__attribute(struct hg__replay *replay, const struct hg__fault *fault,
                                     struct hg__origin *origin);

/* chain.c: how the fault spread. */
HG_NODISCARD hg_status hg__trace_chain(struct hg__replay *replay, struct hg__finding *finding);
/* weight_growth.c: turns an overflow into HG_CAUSE_OPTIMISER if the updates have enlarged a weight
 * too far. */
HG_NODISCARD hg_status hg__check_weight_growth(const struct hg__replay *replay,
                                               struct hg__finding *finding);
/* sentence.c */
HG_NODISCARD hg_status hg__write_sentence(struct hg__replay *replay, struct hg__finding *finding);
/* remedy.c */
HG_NODISCARD hg_status hg__list_remedies(struct hg__replay *replay, struct hg__finding *finding);

/* Is it a finding about a running statistic? Findings about other parameters have no op. */
static inline int hg__is_running_statistic_finding(const hg_finding *f)
{
	return f->cause == HG_CAUSE_INPUT && f->evaluation && *f->op;
}

HG_EXTERN_C_END
#endif
