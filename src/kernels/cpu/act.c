/* Functions of one operand, element by element: Y = f(X), and dX = f'(X) dY, for each f in
 * kernels/functions.def. */
#include "kernels/cpu/acts.h"

HG__NO_WORKSPACE(act, act_args)

hg_status HG__CPU(act)(hg_context *ctx, const struct hg__act_args *a)
{
	HG__TRY(hg__has_number(ctx, "act", "function", (int)a->act, HG__ACT_COUNT));
	const struct hg__activation *f = &hg__activations[a->act];
	return HG__CPU(map)(ctx, "act", f->forward, &a->p, f->keeps_zero, a->x, (struct hg__mat){0},
	                    a->y);
}

HG__NO_WORKSPACE(act_back, act_back_args)

hg_status HG__CPU(act_back)(hg_context *ctx, const struct hg__act_back_args *a)
{
	HG__TRY(hg__has_number(ctx, "act_back", "function", (int)a->act, HG__ACT_COUNT));
	const struct hg__activation *f = &hg__activations[a->act];
	return HG__CPU(map)(ctx, "act_back", f->backward, &a->p, f->keeps_zero_back, a->y, a->dy,
	                    a->dx);
}
