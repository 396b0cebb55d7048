#include "kernels/cpu/rows.h"

hg_status HG__CPU(attention)(hg_context *ctx, const struct hg__attention_args *a)
{
	(void)a;
	return hg__fail(ctx, HG_ERR_UNSUPPORTED, "attention: not yet");
}
HG__NO_WORKSPACE(attention, attention_args)
hg_status HG__CPU(attention_back)(hg_context *ctx, const struct hg__attention_back_args *a)
{
	(void)a;
	return hg__fail(ctx, HG_ERR_UNSUPPORTED, "attention: not yet");
}
HG__NO_WORKSPACE(attention_back, attention_back_args)
hg_status HG__CPU(attention_weights)(hg_context *ctx, const struct hg__attention_weights_args *a)
{
	(void)a;
	return hg__fail(ctx, HG_ERR_UNSUPPORTED, "attention: not yet");
}
HG__NO_WORKSPACE(attention_weights, attention_weights_args)
