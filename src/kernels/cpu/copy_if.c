/* Copies a list of arrays of f32 if a flag in device memory is set. */
#include "kernels/cpu/rows.h"

HG__NO_WORKSPACE(copy_if, copy_if_args)

hg_status HG__CPU(copy_if)(hg_context *ctx, const struct hg__copy_if_args *a)
{
	(void)ctx;
	for (int64_t i = 0; *a->flag && i < a->count; i++)
		memcpy(a->pieces[i].to, a->pieces[i].from, (size_t)a->pieces[i].count * sizeof(float));
	return HG_OK;
}
