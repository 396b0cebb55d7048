#include <math.h>

#include "doctor/replay.h"

/* Is there anything left to learn? That a gradient vanishes in f16 is no loss where in fp32 it
 * would change nothing, either:
 *
 *     a loss of 0 has none;
 *     a cross-entropy below 2^-24 is that of probabilities that are 1 in f32;
 *     below 2^-24 of what the run has had it changes nothing that the earlier ones made;
 *     and one that in fp32 moves no weight: g, the sum of the sizes of the loss's own gradient
 *     times the largest number of the forward pass, is the most that a weight can get that is
 *     multiplied with one of them. Adam divides it by |g| + eps, so it is nothing below eps; SGD
 *     takes lr g away, which is nothing below 2^-24 of the weight. */
#define RESOLUTION 0x1p-24

static double largest_forward(const struct hg__replay *replay)
{
	double most = 1.0;
	for (int i = 0; i < replay->tensors; i++)
		if (!replay->tensor[i].backward)
			most = fmax(most, replay->tensor[i].amax);
	return most;
}

/* Of the sizes that weights had when the doctor was made, the smallest; 0: nobody knows. */
static double smallest_weight(const struct hg__replay *replay)
{
	const double *size = replay->growth ? replay->growth->size.data : NULL;
	double least = 0.0;
	for (int64_t i = 0; size && i < replay->growth->count; i++)
		least = size[i] > 0.0 && (least == 0.0 || size[i] < least) ? size[i] : least;
	return least;
}

static double highest_rate(const hg_optim *optim)
{
	double most = 0.0;
	for (int i = 0; i < optim->groups; i++)
		most = fmax(most, (double)optim->group[i].lr);
	return most;
}

static int moves_nothing(const struct hg__replay *replay)
{
	const hg_optim *optim = replay->optim;
	if (!optim || !(replay->pull > 0.0))
		return 0;
	const double g = replay->pull / (double)replay->step.scale.scale * largest_forward(replay);
	if (optim->config.kind != HG_SGD)
		return g < (double)optim->config.eps;
	return g * highest_rate(optim) <
	       (1.0 - (double)optim->config.momentum) * RESOLUTION * smallest_weight(replay);
}

int hg__is_learnt(const struct hg__replay *replay, double size)
{
	const int32_t node = replay->tape->value[replay->tape->plan.output].node;
	const struct hg__op *op = node >= 0 ? replay->tape->entry[node].node.op : NULL;
	const int entropy = op && hg__about(op)->traits & HG__ENTROPY;
	return replay->loss == 0.0 || (entropy && replay->loss >= 0.0 && replay->loss < RESOLUTION) ||
	       size < RESOLUTION * replay->steepest * (double)replay->step.scale.scale ||
	       moves_nothing(replay);
}
