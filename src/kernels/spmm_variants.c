#include "kernels/spmm_variants.h"

#include "core/buffer.h"

/* ---- the table ---- */

const struct hg__spmm_way hg__spmm_ways[] = {
    {"auto", "what training uses", HG__SHARE_EDGES, 8, HG__WRITE_STAGED, HG__SCALE_ROW, HG_ACC_F32, HG_ACC_F32, 0, 0, HG__SPMM_AUTO},
#define HG_SPMM_VARIANT(id, name, share, columns, write, scale, accumulate, bound, group, flags, next, what) \
	{name, what, HG__SHARE_##share, columns, HG__WRITE_##write, HG__SCALE_##scale, HG_ACC_##accumulate, HG_ACC_##bound, group, flags, HG__SPMM_##next},
#include "kernels/spmm_variants.def"
#undef HG_SPMM_VARIANT
};

static const char *refuses_matrix(const struct hg__spmm_args *a, int columns)
{
	if (!a->x.data)
		return "there is no X to load";
	if (a->x.dtype != HG_F16 || a->y.dtype != HG_F16)
		return "X and Y are not f16";
	if (a->x.ld % columns || a->y.ld % columns || hg__leading(a->y.cols) % columns)
		return "rows are too narrow for its loads";
	return NULL;
}

/* One factor an edge at most, of 16-byte alignment: it is read four at a time. */
static const char *refuses_factors(const struct hg__spmm_args *a)
{
	if (a->w.data && (a->heads > 1 || a->w.ld != 1))
		return "edges have more than one weight";
	if ((uintptr_t)a->w.data % 16)
		return "weights do not begin at a multiple of 16 bytes";
	if (a->col_scale && !a->scale_first)
		return "columns are scaled edge by edge";
	return NULL;
}

const char *hg__spmm_refuses(const hg_context *ctx, const struct hg__spmm_args *a, enum hg__spmm_variant variant)
{
	const struct hg__spmm_way *way = &hg__spmm_ways[variant];
	if (variant == HG__SPMM_AUTO)
		return NULL;
	if (ctx->backend->kind != HG_DEVICE_CUDA)
		return "it is a way of the GPU";
	if (a->accumulate != way->accumulate)
		return "sums are asked for in another arithmetic";
	if (way->share == HG__SHARE_GROUPS && (!a->groups || a->groups->item_work != way->group))
		return "the call brings no groups of its size";
	const char *why = refuses_matrix(a, way->columns);
	return why ? why : refuses_factors(a);
}

/* Two lines of the log for each variant: that it ran, and that it could not. */
_Static_assert(2 * HG__SPMM_VARIANTS <= 64, "hg__log_once counts to 64");

enum hg__spmm_variant hg__spmm_pick(hg_context *ctx, const struct hg__spmm_args *a)
{
	enum hg__spmm_variant variant = (enum hg__spmm_variant)a->variant;
	for (const char *why = NULL; (why = hg__spmm_refuses(ctx, a, variant)) != NULL;) {
		const enum hg__spmm_variant next = hg__spmm_ways[variant].next;
		hg__log_once(ctx, 2 * (unsigned)variant + 1, HG_LOG_INFO, "spmm: not %s (%s), but %s", hg__spmm_ways[variant].name, why, hg__spmm_ways[next].name);
		variant = next;
	}
	hg__log_once(ctx, 2 * (unsigned)variant, HG_LOG_DEBUG, "spmm: %s: %s", hg__spmm_ways[variant].name, hg__spmm_ways[variant].what);
	return variant;
}

/* ---- groups ---- */

enum { EDGE, ROW, SPLIT, FIRST, LAST, ARRAYS };
static const size_t array_size[ARRAYS] = {sizeof(int64_t), sizeof(int32_t), sizeof(int32_t), sizeof(int64_t), sizeof(int64_t)};

static int64_t groups_of(const int64_t *rowptr, int64_t row, int64_t group)
{
	return (rowptr[row + 1] - rowptr[row] + group - 1) / group;
}

/* items, splits, empty. Rows before the first edge are an item. */
static void count_groups(int64_t rows, const int64_t *rowptr, struct hg__plan *plan)
{
	plan->items = rows > 0 && rowptr[1] == 0;
	for (int64_t row = 0; row < rows; row++) {
		const int64_t groups = groups_of(rowptr, row, plan->item_work);
		plan->items += groups;
		plan->splits += groups > 1;
		plan->empty += groups == 0;
	}
}

/* Rows behind the last edge of a row are finished by its last group: the next item begins at a row with edges. */
static void cut_groups(int64_t rows, const int64_t *rowptr, const struct hg__plan *plan, struct hg__buffer *array)
{
	int64_t *edge = array[EDGE].data, *first = array[FIRST].data, *last = array[LAST].data, item = 0, split = 0;
	int32_t *item_row = array[ROW].data, *split_row = array[SPLIT].data;
	if (rows > 0 && rowptr[1] == 0)
		item_row[item++] = 0;
	for (int64_t row = 0; row < rows; row++) {
		const int64_t groups = groups_of(rowptr, row, plan->item_work);
		if (groups > 1) {
			split_row[split] = (int32_t)row;
			first[split] = item;
			last[split++] = item + groups - 1;
		}
		for (int64_t k = 0; k < groups; k++, item++) {
			item_row[item] = (int32_t)row;
			edge[item] = rowptr[row] + k * plan->item_work;
		}
	}
	item_row[item] = (int32_t)rows;
	edge[item] = rows > 0 ? rowptr[rows] : 0;
}

static hg_status upload_groups(hg_context *ctx, struct hg__buffer *array, struct hg__plan *plan)
{
	const int64_t count[ARRAYS] = {plan->items + 1, plan->items + 1, plan->splits, plan->splits, plan->splits};
	struct hg__buffer device[ARRAYS] = {{0}};
	hg_status status = HG_OK;
	for (int i = 0; i < ARRAYS && status == HG_OK; i++)
		status = hg__buffer_upload(ctx, count[i], array_size[i], array[i].data, "groups", &device[i]);
	plan->item_edge = device[EDGE].data;
	plan->item_row = device[ROW].data;
	plan->split_row = device[SPLIT].data;
	plan->split_first = device[FIRST].data;
	plan->split_last = device[LAST].data;
	return status;
}

hg_status hg__spmm_groups(hg_context *ctx, int64_t rows, const int64_t *host_rowptr, int group, struct hg__plan **plan)
{
	struct hg__plan counted = {.item_work = group};
	struct hg__buffer array[ARRAYS] = {{0}}, result = {0};
	*plan = NULL;
	count_groups(rows, host_rowptr, &counted);
	const int64_t count[ARRAYS] = {counted.items + 1, counted.items + 1, counted.splits, counted.splits, counted.splits};
	hg_status status = hg__buffer_host(ctx, 1, sizeof counted, "groups", &result);
	for (int i = 0; i < ARRAYS && status == HG_OK; i++)
		status = hg__buffer_host(ctx, count[i], array_size[i], "groups", &array[i]);
	if (status == HG_OK) {
		struct hg__plan *built = result.data;
		*built = counted;
		cut_groups(rows, host_rowptr, built, array);
		status = upload_groups(ctx, array, built);
	}
	for (int i = 0; i < ARRAYS; i++)
		hg__buffer_free(ctx, &array[i]);
	if (status < 0)
		hg__plan_free(ctx, result.data);
	else
		*plan = result.data;
	return status;
}
