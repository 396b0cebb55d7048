#include "kernels/cuda/launch.cuh"

hg_status hg__cuda_attention(hg_context *ctx, const struct hg__attention_args *)
{
	return hg__fail(ctx, HG_ERR_UNSUPPORTED, "attention: not yet");
}
HG__NO_WORKSPACE(attention, attention_args)
hg_status hg__cuda_attention_back(hg_context *ctx, const struct hg__attention_back_args *)
{
	return hg__fail(ctx, HG_ERR_UNSUPPORTED, "attention: not yet");
}
HG__NO_WORKSPACE(attention_back, attention_back_args)
hg_status hg__cuda_attention_weights(hg_context *ctx, const struct hg__attention_weights_args *)
{
	return hg__fail(ctx, HG_ERR_UNSUPPORTED, "attention: not yet");
}
HG__NO_WORKSPACE(attention_weights, attention_weights_args)
