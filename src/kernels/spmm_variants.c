/* The table of aggregation variants, the choice between them, and the plans of the GROUPS
 * variants. */
#include "kernels/spmm_variants.h"

#include "core/plan_store.h"

/* ---- the table ---- */

const struct hg__spmm_spec hg__spmm_specs[] = {
    {"auto", "what training uses", HG__SHARE_EDGES, 8, HG__WRITE_STAGED, HG__SCALE_ROW, HG_ACC_F32,
     HG_ACC_F32, 0, 0, HG__SPMM_AUTO},
#define HG_SPMM_VARIANT(id, name, share, columns, write, scale, accumulate, bound, group, flags, \
                        next, what)                                                              \
	{name,                                                                                       \
	 what,                                                                                       \
	 HG__SHARE_##share,                                                                          \
	 columns,                                                                                    \
	 HG__WRITE_##write,                                                                          \
	 HG__SCALE_##scale,                                                                          \
	 HG_ACC_##accumulate,                                                                        \
	 HG_ACC_##bound,                                                                             \
	 group,                                                                                      \
	 flags,                                                                                      \
	 HG__SPMM_##next},
#include "kernels/spmm_variants.def"
#undef HG_SPMM_VARIANT
};

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

static const char *tile_refusal(const struct hg__spmm_args *a)
{
	if (!a->csr.plan || !a->csr.plan->tiles)
		return "the plan has no tiles";
	return a->w.data ? "edges have weights" : NULL;
}

const char *hg__spmm_refuses(const hg_context *ctx, const struct hg__spmm_args *a,
                             enum hg__spmm_variant variant)
{
	const struct hg__spmm_spec *spec = &hg__spmm_specs[variant];
	if (variant == HG__SPMM_AUTO)
		return NULL;
	if (ctx->backend->kind != HG_DEVICE_CUDA)
		return "it needs a GPU";
	if (a->accumulate != spec->accumulate)
		return "the call asks for another accumulation";
	if (hg__has_sum_epilogue(&a->epilogue) && spec->share != HG__SHARE_TILES &&
	    spec->share != HG__SHARE_PARTS)
		return "the call has an epilogue";
	if (spec->share == HG__SHARE_GROUPS && (!a->groups || a->groups->item_work != spec->group))
		return "the call has no plan with groups of its size";
	const char *tiles = spec->share == HG__SHARE_TILES ? tile_refusal(a) : NULL,
	           *why = tiles ? tiles : matrix_refusal(a, spec->columns);
	return why ? why : factor_refusal(a);
}

/* Each variant has two keys for hg__log_once: one says that it ran, the other that it could not. */
_Static_assert(2 * HG__SPMM_VARIANTS <= HG__LOG_DIRECTED,
               "the keys of hg__log_once must not overlap with those of other messages");

enum hg__spmm_variant hg__spmm_pick(hg_context *ctx, const struct hg__spmm_args *a)
{
	enum hg__spmm_variant variant = (enum hg__spmm_variant)a->variant;
	for (const char *why = NULL; (why = hg__spmm_refuses(ctx, a, variant)) != NULL;) {
		const enum hg__spmm_variant next = hg__spmm_specs[variant].next;
		hg__log_once(ctx, 2 * (unsigned)variant + 1, HG_LOG_INFO,
		             "spmm: variant %s cannot run (%s), so %s runs", hg__spmm_specs[variant].name,
		             why, hg__spmm_specs[next].name);
		variant = next;
	}
	hg__log_once(ctx, 2 * (unsigned)variant, HG_LOG_DEBUG, "spmm: %s: %s",
	             hg__spmm_specs[variant].name, hg__spmm_specs[variant].what);
	return variant;
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

hg_status hg__spmm_groups(hg_context *ctx, int64_t rows, const int64_t *host_rowptr, int group,
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
