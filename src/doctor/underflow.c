#include <math.h>

#include "doctor/check.h"
#include "doctor/slices.h"

/* UNDERFLOW: more than half of a tensor's sum of |wide| lies in elements that were stored as zero,
 * or most of some rows or columns does (below). An f16 sum that ended at zero because it ignored
 * its addends is no underflow but swamping (swamping.c). */
#define SHARE_ZEROED 0.5

int hg__underflows(const struct hg__scan *seen)
{
	return seen->zeroed_abs_sum > SHARE_ZEROED * seen->abs_sum;
}

/* Where numbers of the size of the operand cancel each other, what is left may be nothing but their
 * rounding: a norm with eps 1e-5 leaves rstd * 2^-24 of it, a softmax of a few terms 2^-22. It is
 * no loss if that is rounded to zero. */
static int is_rounding_noise(const struct hg__replay *replay, const struct hg__result *r,
                             double size)
{
	const struct hg__node *node = r->task->call.node;
	const int index = replay->grad[node->out].tensor;
	return r->backward && index &&
	       size < hg__about(node->op)->noise * replay->tensor[index - 1].amax;
}

/* ---- rows and columns of which most was rounded to zero ---- */

/* Forward, rows are counted: it is an underflow if more than half of them are zeroed. The op must
 * multiply its operand by factors, and the rows of the operand must have normal halves. Gates,
 * exponentials and softmax are not asked, because they are meant to make some numbers 0 beside
 * 1. */
static int may_zero_rows(const struct hg__result *r)
{
	return !r->backward && hg__about(r->task->call.node->op)->traits & HG__RESCALES &&
	       r->operand == HG__OUTPUT;
}

/* Backward, columns are counted: it is an underflow if one of 8 units of a linear layer is zeroed,
 * and the weights of these units, not the loss, make their gradients small. Adam moves each weight
 * by its learning rate, however small its gradients are beside others, unless they are below its
 * eps; SGD would hardly move such weights in fp32 either. Two more conditions: the unit must have
 * an output (a dead relu has none), and there must be a loss scale at which the gradient of the
 * unit and the largest of all gradients both fit into f16, so that only the scale is to blame. */
#define UNITS_PER_ZEROED_ONE 8

static int may_zero_units(const struct hg__replay *replay, const struct hg__result *r)
{
	return r->backward && r->operand == 0 &&
	       hg__about(r->task->call.node->op)->traits & HG__UNITS && replay->optim &&
	       replay->optim->config.kind != HG_SGD && !(r->task->call.adds & 1u);
}

static double largest_gradient(const struct hg__replay *replay)
{
	double largest = 0.0;
	for (int i = 0; i < replay->tensors; i++)
		if (replay->tensor[i].backward)
			largest = fmax(largest, replay->tensor[i].amax);
	return largest;
}

static hg_status count_slices(const struct hg__replay *replay, const struct hg__result *r,
                              int columns, struct hg__slices *slices)
{
	const struct hg__mat operand = hg__value_mat(replay->tape, r->task->call.node->in[0]);
	const hg_dtype_facts *half = hg_dtype_get(HG_F16);
	struct hg__slice_query query = {
	    .stored = &r->stored, .wide = &r->wide, .operand = &operand, .columns = columns};
	if (columns) {
		query.min_operand = half->min_subnormal;
		query.min_zeroed_sum = (double)replay->step.scale.scale * (double)replay->optim->config.eps;
		query.min_zeroed_amax = largest_gradient(replay) * half->min_subnormal / half->overflow;
	} else {
		query.min_operand = half->min_normal;
	}
	return hg__slices_count(replay->ctx, &query, slices);
}

/* If enough slices are zeroed, `lost` becomes what was rounded to zero in them. */
static hg_status find_zeroed_slices(const struct hg__replay *replay, const struct hg__result *r,
                                    struct hg__scan *lost, int *underflows)
{
	const int rows = may_zero_rows(r), columns = may_zero_units(replay, r);
	struct hg__slices slices = {0};
	if (!lost->zeroed || lost->nonfinite || !(rows || columns))
		return HG_OK;
	HG__TRY(count_slices(replay, r, columns, &slices));
	*underflows = slices.zeroed > 0 &&
	              slices.zeroed * (columns ? UNITS_PER_ZEROED_ONE : 2) >= slices.count + rows;
	if (*underflows) {
		lost->zeroed = slices.zeroed_elements;
		lost->largest_zeroed = slices.largest_zeroed;
	}
	return HG_OK;
}

/* ---- the whole result ---- */

hg_status hg__report_underflow(struct hg__replay *replay, const struct hg__result *r,
                               const struct hg__deviation *largest, int64_t zeroed)
{
	struct hg__sum sum;
	const struct hg__f16_sum f16 = {.partial_factor = 1.0};
	struct hg__finding *finding = hg__finding_new(replay, HG__SILENT, HG_CAUSE_UNDERFLOW);
	if (!finding)
		return HG_OK;
	finding->reported.got = largest->stored;
	finding->reported.wide = largest->wide;
	finding->reported.bad = zeroed;
	HG__TRY(hg__sum_of_result(replay, r, largest->row, largest->col, &sum));
	const hg_status status =
	    hg__finding_describe(replay, finding, r, largest->row, largest->col, &sum, &f16);
	finding->reported.limit = ldexp(hg_dtype_get(HG_F16)->min_subnormal, finding->reported.shift);
	hg__sum_close(&sum);
	return status;
}

/* The sizes of the loss's own gradient, added up: converged.c needs them. */
static void note_loss_gradient(struct hg__replay *replay, const struct hg__result *r,
                               const struct hg__scan *seen)
{
	if (r->backward && r->task->call.node->op->traits & HG__LOSS)
		replay->loss_gradient_abs_sum += seen->abs_sum;
}

/* With an element that is not finite, the sums over the others are no measure. */
static int tensor_underflows(const struct hg__replay *replay, const struct hg__result *r,
                             const struct hg__scan *seen)
{
	const double largest = seen->largest_zeroed.by;
	return !seen->nonfinite && hg__underflows(seen) && !is_rounding_noise(replay, r, largest) &&
	       !(r->backward && hg__is_converged(replay, largest));
}

hg_status hg__find_underflow(struct hg__replay *replay, const struct hg__result *r,
                             const struct hg__scan *seen, int operand_underflowed, int *underflows)
{
	struct hg__scan lost = *seen;
	int swamped = 0;
	note_loss_gradient(replay, r, seen);
	if (r->stored.dtype != HG_F16)
		return HG_OK;
	*underflows = tensor_underflows(replay, r, seen);
	if (!*underflows)
		HG__TRY(find_zeroed_slices(replay, r, &lost, underflows));
	if (*underflows)
		HG__TRY(hg__is_swamped(r, &lost.largest_zeroed, &swamped));
	return *underflows && !operand_underflowed && !swamped
	           ? hg__report_underflow(replay, r, &lost.largest_zeroed, lost.zeroed)
	           : HG_OK;
}
