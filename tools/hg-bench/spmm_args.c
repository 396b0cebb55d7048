#include "spmm_args.h"

/* The graph's own weights in the type that the op would choose: f32 if sums are f32. */
static hg_status own_weights(struct bench *b, hg_accumulate accumulate, struct hg__mat *w)
{
	const hg_dtype dtype = accumulate == HG_ACC_F32 ? HG_F32 : HG_F16;
	const void *own = NULL;
	HG__TRY(hg__graph_weight(b->graph, dtype, &own));
	*w = (struct hg__mat){(void *)(uintptr_t)own, b->csr.m, 1, 1, dtype};
	return HG_OK;
}

hg_status spmm_args_of(struct bench *b, hg_accumulate accumulate, hg_norm norm, struct hg__mat x,
                       struct hg__mat w, struct hg__mat y, struct hg__spmm_args *args)
{
	*args = (struct hg__spmm_args){.csr = b->csr,
	                               .x = x,
	                               .w = w,
	                               .y = y,
	                               .scale_first = hg__norm_is_root(norm),
	                               .alpha = 1.0f,
	                               .accumulate = accumulate};
	if (!w.data)
		HG__TRY(own_weights(b, accumulate, &args->w));
	args->heads = args->w.data ? (int)args->w.cols : 1;
	return hg__graph_norm(b->graph, norm, &args->row_scale, &args->col_scale);
}
