/* The table of aggregation variants, the calls that each can compute, and the plans that they need
 * beside that of the graph. */
#include "spmm_variants.h"

#include "core/plan_store.h"

/* ---- the table ---- */

const struct spmm_variant spmm_variants[SPMM_VARIANTS] = {
#define SPMM_VARIANT(id, name, share, columns, write, scale, accumulate, bound, group, flags, \
                     source, what)                                                            \
	{name,           what,          source,        SHARE_##share,                             \
	 columns,        WRITE_##write, SCALE_##scale, HG_ACC_##accumulate,                       \
	 HG_ACC_##bound, group,         flags},
#include "spmm_variants.def"
#undef SPMM_VARIANT
};

/* ---- who computes what ---- */

static int is_of_the_library(const struct spmm_variant *v)
{
	return v->share == SHARE_TILES || v->share == SHARE_PARTS;
}

/* What only the library's own kernels do as they store. */
static const char *store_refusal(const struct hg__spmm_args *a)
{
	if (hg__has_sum_epilogue(&a->epilogue))
		return "the call has an epilogue";
	return a->overflow.word ? "the call checks for overflow" : NULL;
}

static const char *matrix_refusal(const struct hg__spmm_args *a, int columns)
{
	if (!a->x.data)
		return "there is no X to load";
	if (a->x.dtype != HG_F16 || a->y.dtype != HG_F16)
		return "X and Y are not f16";
	if (a->x.ld % columns || a->y.ld % columns || hg__leading(a->y.cols) % columns)
		return "rows are too narrow for its loads";
	return NULL;
}

/* A variant reads at most one factor for each edge, four at a time, so weights must be aligned to
 * 16 bytes. */
static const char *factor_refusal(const struct hg__spmm_args *a)
{
	if (a->w.data && (a->heads > 1 || a->w.ld != 1))
		return "edges have more than one weight";
	if ((uintptr_t)a->w.data % 16)
		return "weights do not begin at a multiple of 16 bytes";
	if (a->col_scale && !a->scale_first)
		return "columns are scaled edge by edge";
	return NULL;
}

const char *spmm_variant_refuses(const hg_context *ctx, const struct hg__spmm_args *a,
                                 enum spmm_variant_id id)
{
	const struct spmm_variant *v = &spmm_variants[id];
	if (ctx->backend->kind != HG_DEVICE_CUDA)
		return "it needs a GPU";
	if (a->accumulate != v->accumulate)
		return "the call asks for another accumulation";
	if (v->share == SHARE_TILES && a->w.data)
		return "edges have weights";
	const char *store = is_of_the_library(v) ? NULL : store_refusal(a),
	           *why = store ? store : matrix_refusal(a, v->columns);
	return why ? why : factor_refusal(a);
}

/* ---- a call ---- */

/* Builds tiles even if they do not pay, and even if they take all memory. */
static hg_status add_tiles(struct spmm_variant_call *call, const int64_t *host_rowptr)
{
	const struct hg__csr *csr = &call->args.csr;
	const struct hg__tile_terms any = {0, 0, call->args.y.cols};
	HG__TRY(hg__tiles_build(call->ctx, csr, host_rowptr, &any, &call->tiles));
	call->plan = *csr->plan;
	call->plan.tiles = call->tiles;
	return HG_OK;
}

/* Puts the plan that the variant needs into args.csr. */
static hg_status add_plan(struct spmm_variant_call *call, const int64_t *host_rowptr)
{
	const struct spmm_variant *v = &spmm_variants[call->id];
	struct hg__csr *csr = &call->args.csr;
	if (v->share == SHARE_GROUPS) {
		HG__TRY(spmm_variant_groups(call->ctx, csr->rows, host_rowptr, v->group, &call->groups));
		csr->plan = call->groups;
	}
	if (v->share == SHARE_ROWS)
		call->plan = hg__plan_by_row(csr);
	if (v->share == SHARE_TILES)
		HG__TRY(add_tiles(call, host_rowptr));
	if (v->share == SHARE_ROWS || v->share == SHARE_TILES)
		csr->plan = &call->plan;
	return HG_OK;
}

hg_status spmm_variant_open(hg_context *ctx, enum spmm_variant_id id,
                            const struct hg__spmm_args *args, const int64_t *host_rowptr,
                            struct spmm_variant_call *call, const char **why)
{
	*call = (struct spmm_variant_call){.ctx = ctx, .id = id, .args = *args};
	*why = spmm_variant_refuses(ctx, args, id);
	if (*why)
		return HG_OK;
	HG__TRY(add_plan(call, host_rowptr));
	if (spmm_variants[id].share == SHARE_TILES && !call->tiles)
		*why = "the graph has no rows, or its tiles do not fit into memory";
	return HG_OK;
}

hg_status spmm_variant_run(void *call)
{
	const struct spmm_variant_call *c = call;
#ifdef HG_HAVE_CUDA
	return spmm_variant_cuda(c->ctx, &c->args, c->id);
#else
	return hg__fail(c->ctx, HG_ERR_UNSUPPORTED, "spmm: %s needs a GPU", spmm_variants[c->id].name);
#endif
}

void spmm_variant_close(struct spmm_variant_call *call)
{
	hg__plan_free(call->ctx, call->groups);
	hg__tiles_free(call->ctx, call->tiles);
	call->groups = NULL;
	call->tiles = NULL;
}

/* ---- groups ---- */

static int64_t groups_of(const int64_t *rowptr, int64_t row, int64_t group)
{
	return (rowptr[row + 1] - rowptr[row] + group - 1) / group;
}

/* Counts items and splits. The rows before the first edge form an item. */
static void count_groups(int64_t rows, const int64_t *rowptr, int32_t group,
                         struct hg__host_plan *p)
{
	p->items = rows > 0 && rowptr[1] == 0;
	p->splits = 0;
	for (int64_t row = 0; row < rows; row++) {
		const int64_t groups = groups_of(rowptr, row, group);
		p->items += groups;
		p->splits += groups > 1;
	}
}

/* Cuts rows into groups. Empty rows after a row are finished by that row's last group, so every
 * item except the first begins at a row with edges. */
static void cut_groups(int64_t rows, const int64_t *rowptr, int32_t group,
                       const struct hg__host_plan *p)
{
	int64_t item = 0, split = 0;
	if (rows > 0 && rowptr[1] == 0)
		p->row[item++] = 0;
	for (int64_t row = 0; row < rows; row++) {
		const int64_t groups = groups_of(rowptr, row, group);
		if (groups > 1) {
			p->split[split] = (int32_t)row;
			p->first[split] = item;
			p->last[split++] = item + groups - 1;
		}
		for (int64_t k = 0; k < groups; k++, item++) {
			p->row[item] = (int32_t)row;
			p->edge[item] = rowptr[row] + k * group;
		}
	}
	p->row[item] = (int32_t)rows;
	p->edge[item] = rows > 0 ? rowptr[rows] : 0;
}

hg_status spmm_variant_groups(hg_context *ctx, int64_t rows, const int64_t *host_rowptr, int group,
                              struct hg__plan **plan)
{
	struct hg__host_plan counted, p;
	*plan = NULL;
	count_groups(rows, host_rowptr, group, &counted);
	HG__TRY(hg__host_plan_alloc(ctx, counted.items, counted.splits, &p));
	p.items = counted.items;
	p.splits = counted.splits;
	p.work = group;
	cut_groups(rows, host_rowptr, group, &p);
	const hg_status status =
	    hg__plan_store(ctx, &p, rows, host_rowptr,
	                   ctx->backend->wants_parts ? HG__PARTS_ALL : HG__PARTS_NONE, plan);
	hg__host_plan_free(ctx, &p);
	return status;
}
