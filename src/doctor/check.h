#ifndef HG_DOCTOR_CHECK_H
#define HG_DOCTOR_CHECK_H

#include "doctor/finding.h"
#include "doctor/scan.h"
#include "doctor/widen.h"

HG_EXTERN_C_BEGIN

/* The checks of a replay, in the order of the step, and the searches that they consist of. Each
 * adds what it finds to the lists of findings. */

/* ---- before the step ---- */

/* check_inputs.c: labels, weights of graphs, parameters; and all leaves. */
HG_NODISCARD hg_status hg__check_inputs(struct hg__replay *replay);
/* check_leaves.c: features, targets and other tensors that the tape reads. */
HG_NODISCARD hg_status hg__check_leaves(struct hg__replay *replay);
/* check_leaves.c: if the finding is about an edge of the feature matrix, it becomes one about an
 * element of the features. */
HG_NODISCARD hg_status hg__edge_to_feature(struct hg__replay *replay, struct hg__finding *finding,
                                           const hg_graph *graph);
/* check_leaves.c: a finding about a tensor with elements that are not finite; NULL: there is no
 * room for it. */
HG_NODISCARD hg_status hg__report_input(struct hg__replay *replay, const char *name,
                                        const struct hg__rows *rows, const struct hg__scan *seen,
                                        const struct hg__mat *mat, int32_t value,
                                        struct hg__finding **finding);
/* check_update.c: moments of the optimiser. */
HG_NODISCARD hg_status hg__check_moments(struct hg__replay *replay);
/* working_copies.c: parameters whose working copy is all 0. */
HG_NODISCARD hg_status hg__check_working_copies(struct hg__replay *replay);

/* ---- during the step ---- */

/* check_results.c: after a task ran. The wide run of a backward task was opened before the task
 * ran, and operands_finite is from before it, too. */
HG_NODISCARD hg_status hg__check_forward(struct hg__replay *replay, const struct hg__task *task);
HG_NODISCARD hg_status hg__check_backward(struct hg__replay *replay, const struct hg__task *task,
                                          struct hg__wide *wide, int operands_finite);
/* check_results.c: after the tape added the contribution of a backward task to the gradient of an
 * operand. before: that gradient before the addition; data NULL: it is the first contribution. */
HG_NODISCARD hg_status hg__check_addition(struct hg__replay *replay, const struct hg__task *task,
                                          int operand, const struct hg__mat *before);

/* tensor_list.c: adds a tensor to the report's list, or updates it. *index: its index from 1; 0: it
 * is new. */
HG_NODISCARD hg_status hg__list_tensor(struct hg__replay *replay, const hg_doctor_tensor *tensor,
                                       const struct hg__scan *seen, int *index);
/* nonfinite.c: elements that are not finite. operands_finite 0: only those that the op introduced
 * itself count. */
HG_NODISCARD hg_status hg__find_nonfinite(struct hg__replay *replay,
                                          const struct hg__result *result,
                                          const struct hg__scan *seen, int operands_finite);
/* bad_score.c: a result that is not finite because an input is not. If it is attention whose scores
 * are no numbers, the finding about the input tells the first such score. */
HG_NODISCARD hg_status hg__note_bad_score(struct hg__replay *replay,
                                          const struct hg__result *result,
                                          const struct hg__scan *seen);
/* gradient_sum.c: elements where two finite gradients have a sum that is not finite. */
HG_NODISCARD hg_status hg__find_overflowed_addition(struct hg__replay *replay,
                                                    const struct hg__result *result,
                                                    struct hg__scan *seen,
                                                    const struct hg__mat *before,
                                                    struct hg__gradient_pair *pair);
/* underflow.c: results of which most was rounded to zero. operand_underflowed: an operand already
 * was, so this one is no finding of its own. *underflows: it was rounded to zero. */
HG_NODISCARD hg_status hg__find_underflow(struct hg__replay *replay,
                                          const struct hg__result *result,
                                          const struct hg__scan *seen, int operand_underflowed,
                                          int *underflows);
/* underflow.c: was more than half of a tensor's sum of |wide| rounded to zero? */
int hg__underflows(const struct hg__scan *seen);
/* underflow.c: a finding about the largest element that was rounded to zero. */
HG_NODISCARD hg_status hg__report_underflow(struct hg__replay *replay,
                                            const struct hg__result *result,
                                            const struct hg__deviation *largest, int64_t zeroed);
/* underflow_rescaled.c: results that were rounded to zero because they are stored x 2^-k. */
HG_NODISCARD hg_status hg__find_rescaled_underflow(struct hg__replay *replay,
                                                   const struct hg__result *result,
                                                   const struct hg__scan *seen, int *underflows);
/* converged.c: has the run converged so far that a gradient of this size (at the loss scale)
 * changes nothing any more? */
int hg__is_converged(const struct hg__replay *replay, double gradient);
/* swamping.c: sums in f16 that ignored addends. */
HG_NODISCARD hg_status hg__find_swamping(struct hg__replay *replay, const struct hg__result *result,
                                         const struct hg__scan *seen);
/* swamping.c: did the sum behind this deviation ignore its addends? */
HG_NODISCARD hg_status hg__is_swamped(const struct hg__result *result,
                                      const struct hg__deviation *deviation, int *swamped);

/* cause.c: why is an element not finite? */
struct hg__bad_element {
	const struct hg__result *result;
	int64_t row, col;
	double wide;               /* what it would be if the type could hold it */
	const struct hg__sum *sum; /* behind the element */
};
struct hg__reason {
	hg_cause cause;
	hg_zero zero;
};
HG_NODISCARD hg_status hg__cause_of(const struct hg__replay *replay,
                                    const struct hg__bad_element *element,
                                    struct hg__reason *reason);
/* rounded_operand.c: element (row, col) of a result divides by an operand, or takes its root or
 * logarithm. Is that operand 0 only because it was rounded when it was stored? */
HG_NODISCARD hg_status hg__operand_was_rounded(const struct hg__replay *replay,
                                               const struct hg__result *result, int64_t row,
                                               int64_t col, int *rounded);

/* ---- after the step ---- */

/* check_update.c: the optimiser's step. */
HG_NODISCARD hg_status hg__check_update(struct hg__replay *replay);
/* running_statistics.c: all running statistics, when the run's own state is back in place. */
HG_NODISCARD hg_status hg__check_statistics(struct hg__replay *replay);
/* running_statistics.c: the ones that a norm reads in an evaluation, after it ran. *bad 1: they
 * made its result bad. */
HG_NODISCARD hg_status hg__check_norm(struct hg__replay *replay, const struct hg__task *task,
                                      int *bad);
/* running_statistics.c: does a norm of the tape keep its running statistics in this parameter? */
int hg__is_running_statistic(const struct hg__replay *replay, const hg_param *param);

HG_EXTERN_C_END
#endif
