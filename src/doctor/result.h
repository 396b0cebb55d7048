#ifndef HG_DOCTOR_RESULT_H
#define HG_DOCTOR_RESULT_H

#include "doctor/host.h"
#include "doctor/replay.h"
#include "doctor/sum.h"

HG_EXTERN_C_BEGIN

/* A result of a task: its output, the gradient of an operand, or what its backward pass makes on
 * the way to the gradients. */
enum { HG__OUTPUT = -1, HG__INTERMEDIATE = -2 };
struct hg__result {
	const struct hg__task *task;
	int64_t position;      /* of the task in replay->replayed */
	int backward, operand; /* operand: its index, or one of the above */
	int32_t value;         /* the value that it is, or whose gradient it is */
	struct hg__mat stored;
	struct hg__mat wide; /* of the wide run; data NULL: what it should be is unknown */
};

/* What a value holds. */
struct hg__mat hg__value_mat(const hg_tape *tape, int32_t value);
/* Is everything finite that a task reads? */
int hg__operands_finite(const struct hg__replay *replay, const struct hg__task *task, int backward);
/* The name of a result: "conv2/spmm", "gradient of ...". */
HG_NODISCARD hg_status hg__result_name(struct hg__replay *replay, const struct hg__result *result,
                                       const char **name);
/* The sum behind an element of a result. A gradient that was there before is one of its addends.
 * What is intermediate has no sum. */
HG_NODISCARD hg_status hg__sum_of_result(const struct hg__replay *replay,
                                         const struct hg__result *result, int64_t row, int64_t col,
                                         struct hg__sum *sum);

HG_EXTERN_C_END
#endif
