#include "spmm_direct.h"

/* The graph's own weights in the type that the op would choose: f32 if sums are f32. */
static hg_status own_weights(struct bench *b, hg_accumulate accumulate, struct hg__mat *w)
{
	const hg_dtype dtype = accumulate == HG_ACC_F32 ? HG_F32 : HG_F16;
	const void *own = NULL;
	HG__TRY(hg__graph_weight(b->graph, dtype, &own));
	*w = (struct hg__mat){(void *)(uintptr_t)own, b->csr.m, 1, 1, dtype};
	return HG_OK;
}

/* Build tiles even if they do not pay, and even if they take all memory. */
static hg_status add_tiles(struct bench *b, struct spmm_direct *direct)
{
	const struct hg__tile_terms any = {0, 0, direct->args.y.cols};
	HG__TRY(hg__tiles_build(b->ctx, &b->csr, b->rowptr, &any, &direct->tiles));
	direct->plan = *b->csr.plan;
	direct->plan.tiles = direct->tiles;
	direct->args.csr.plan = &direct->plan;
	return HG_OK;
}

hg_status spmm_direct_open(struct bench *b, enum hg__spmm_variant variant, hg_norm norm,
                           struct hg__mat x, struct hg__mat w, struct hg__mat y,
                           struct spmm_direct *direct, const char **why)
{
	const struct hg__spmm_spec *row = &hg__spmm_specs[variant];
	*direct = (struct spmm_direct){.ctx = b->ctx};
	struct hg__spmm_args *a = &direct->args;
	*a = (struct hg__spmm_args){.csr = b->csr,
	                            .x = x,
	                            .w = w,
	                            .y = y,
	                            .heads = (int)w.cols,
	                            .scale_first = hg__norm_is_root(norm),
	                            .alpha = 1.0f,
	                            .accumulate = row->accumulate,
	                            .variant = (int)variant};
	if (!w.data)
		HG__TRY(own_weights(b, row->accumulate, &a->w));
	a->heads = a->w.data ? (int)a->w.cols : 1;
	HG__TRY(hg__graph_norm(b->graph, norm, &a->row_scale, &a->col_scale));
	if (row->group && b->ctx->backend->kind == HG_DEVICE_CUDA)
		HG__TRY(hg__spmm_groups(b->ctx, b->csr.rows, b->rowptr, row->group, &direct->groups));
	a->groups = direct->groups;
	if (row->share == HG__SHARE_TILES && !a->w.data)
		HG__TRY(add_tiles(b, direct));
	*why = hg__spmm_refuses(b->ctx, a, variant);
	return HG_OK;
}

hg_status spmm_direct_run(void *direct)
{
	const struct spmm_direct *w = direct;
	return w->ctx->backend->kernels->spmm(w->ctx, &w->args);
}

void spmm_direct_close(struct spmm_direct *direct)
{
	hg__plan_free(direct->ctx, direct->groups);
	hg__tiles_free(direct->ctx, direct->tiles);
	direct->groups = NULL;
	direct->tiles = NULL;
}
