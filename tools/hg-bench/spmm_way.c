#include "spmm_way.h"

/* The graph's own weights, f32 where sums are, as the op takes them. */
static hg_status own_weights(struct bench *b, hg_accumulate accumulate, struct hg__mat *w)
{
	const hg_dtype dtype = accumulate == HG_ACC_F32 ? HG_F32 : HG_F16;
	const void *own = NULL;
	HG__TRY(hg__graph_weight(b->graph, dtype, &own));
	*w = (struct hg__mat){(void *)(uintptr_t)own, b->csr.m, 1, 1, dtype};
	return HG_OK;
}

/* Whatever they are worth, and if they take all the memory there is. */
static hg_status add_tiles(struct bench *b, struct spmm_way *way)
{
	const struct hg__tile_terms any = {0, 0, way->args.y.cols};
	HG__TRY(hg__tiles_build(b->ctx, &b->csr, b->rowptr, &any, &way->tiles));
	way->plan = *b->csr.plan;
	way->plan.tiles = way->tiles;
	way->args.csr.plan = &way->plan;
	return HG_OK;
}

hg_status spmm_way_open(struct bench *b, enum hg__spmm_variant variant, hg_norm norm,
                        struct hg__mat x, struct hg__mat w, struct hg__mat y, struct spmm_way *way,
                        const char **why)
{
	const struct hg__spmm_way *row = &hg__spmm_ways[variant];
	*way = (struct spmm_way){.ctx = b->ctx};
	struct hg__spmm_args *a = &way->args;
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
		HG__TRY(hg__spmm_groups(b->ctx, b->csr.rows, b->rowptr, row->group, &way->groups));
	a->groups = way->groups;
	if (row->share == HG__SHARE_TILES && !a->w.data)
		HG__TRY(add_tiles(b, way));
	*why = hg__spmm_refuses(b->ctx, a, variant);
	return HG_OK;
}

hg_status spmm_way_run(void *way)
{
	const struct spmm_way *w = way;
	return w->ctx->backend->kernels->spmm(w->ctx, &w->args);
}

void spmm_way_close(struct spmm_way *way)
{
	hg__plan_free(way->ctx, way->groups);
	hg__tiles_free(way->ctx, way->tiles);
	way->groups = NULL;
	way->tiles = NULL;
}
