#include <math.h>

#include "doctor/check.h"

/* Has the run converged? Then it is no loss that a gradient is rounded to zero, because in fp32 it
 * would change nothing either. That is so
 *
 *     if the loss is 0, so there is no gradient;
 *     if the loss is a cross-entropy below 2^-24: all probabilities are 1 in f32;
 *     if the gradient is below 2^-24 of the largest gradient that the loss has had in this run: it
 *         cannot change what the earlier ones made;
 *     if it moves no weight in fp32. Let g be the sum of |.| of the loss's own gradient, times the
 *         largest number of the forward pass. A weight that is multiplied by one of these numbers
 *         gets a gradient of g at most. Adam divides it by |g| + eps, so a g below eps moves
 *         nothing; SGD subtracts lr g, which is nothing below 2^-24 of the weight. */
#define F32_RESOLUTION 0x1p-24

static double largest_of_forward(const struct hg__replay *replay)
{
	double largest = 1.0;
	for (int i = 0; i < replay->tensors; i++)
		if (!replay->tensor[i].backward)
			largest = fmax(largest, replay->tensor[i].amax);
	return largest;
}

/* The smallest size that a parameter had when the doctor was created; 0: unknown. */
static double smallest_weight(const struct hg__replay *replay)
{
	const struct hg__weight_sizes *sizes = replay->initial_weights;
	double least = 0.0;
	for (int64_t i = 0; sizes && i < sizes->count; i++) {
		const double size = hg__weight_size(sizes, i);
		least = size > 0.0 && (least == 0.0 || size < least) ? size : least;
	}
	return least;
}

static int moves_no_weight(const struct hg__replay *replay)
{
	const hg_optim *optim = replay->optim;
	if (!optim || !(replay->loss_gradient_abs_sum > 0.0))
		return 0;
	const double g = replay->loss_gradient_abs_sum / (double)replay->step.scale.scale *
	                 largest_of_forward(replay);
	if (optim->config.kind != HG_SGD)
		return g < (double)optim->config.eps;
	return g * hg__highest_rate(optim) <
	       (1.0 - (double)optim->config.momentum) * F32_RESOLUTION * smallest_weight(replay);
}

int hg__is_converged(const struct hg__replay *replay, double gradient)
{
	const int32_t node = replay->tape->recording.value[replay->tape->plan.output].node;
	const struct hg__op *op = node >= 0 ? replay->tape->recording.entry[node].node.op : NULL;
	const int is_entropy = op && hg__about(op)->traits & HG__ENTROPY;
	return replay->loss == 0.0 ||
	       (is_entropy && replay->loss >= 0.0 && replay->loss < F32_RESOLUTION) ||
	       gradient <
	           F32_RESOLUTION * replay->largest_loss_gradient * (double)replay->step.scale.scale ||
	       moves_no_weight(replay);
}
