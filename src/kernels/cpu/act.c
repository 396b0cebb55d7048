#include "kernels/cpu/acts.h"

hg_status HG__CPU(act)(hg_context *ctx, const struct hg__act_args *a)
{
	return HG__CPU(map)(ctx, hg__activations[a->act].forward, &a->p, a->x, (struct hg__mat){0}, a->y);
}

hg_status HG__CPU(act_back)(hg_context *ctx, const struct hg__act_back_args *a)
{
	return HG__CPU(map)(ctx, hg__activations[a->act].backward, &a->p, a->y, a->dy, a->dx);
}
