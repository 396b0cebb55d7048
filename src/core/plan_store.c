/* Memory of plans: allocation in host memory, upload to the device, size and release. */
#include "core/plan_store.h"

#include "core/plan_dense.h"
#include "core/plan_parts.h"
#include "core/plan_tiles.h"

static const struct {
	const char *name;
	size_t size;
} arrays[HG__PLAN_ARRAYS] = {
    [HG__PLAN_EDGE] = {"plan: item_edge", sizeof(int64_t)},
    [HG__PLAN_ROW] = {"plan: item_row", sizeof(int32_t)},
    [HG__PLAN_SLOT] = {"plan: item_slot", sizeof(int32_t)},
    [HG__PLAN_SPLIT] = {"plan: split_row", sizeof(int32_t)},
    [HG__PLAN_FIRST] = {"plan: split_first", sizeof(int64_t)},
    [HG__PLAN_LAST] = {"plan: split_last", sizeof(int64_t)},
};

/* Number of elements of one of the arrays. */
static int64_t count_of(int array, int64_t items, int64_t splits)
{
	return array == HG__PLAN_EDGE || array == HG__PLAN_ROW || array == HG__PLAN_SLOT ? items + 1
	                                                                                 : splits;
}

/* The same for a stored plan. That of some rows has no arrays of items, because items are pieces of
 * neighbouring rows. */
static int64_t stored_count(int array, int has_items, int64_t items, int64_t splits)
{
	const int of_items = array == HG__PLAN_EDGE || array == HG__PLAN_ROW;
	return of_items && !has_items ? 0 : count_of(array, items, splits);
}

void hg__host_plan_free(hg_context *ctx, struct hg__host_plan *p)
{
	for (int i = 0; i < HG__PLAN_ARRAYS; i++)
		hg__buffer_free(ctx, &p->memory[i]);
}

hg_status hg__host_plan_alloc(hg_context *ctx, int64_t items, int64_t splits,
                              struct hg__host_plan *p)
{
	const struct hg__host_plan none = {0};
	hg_status status = HG_OK;
	*p = none;
	for (int i = 0; i < HG__PLAN_ARRAYS && status == HG_OK; i++)
		status = hg__buffer_host(ctx, count_of(i, items, splits), arrays[i].size, arrays[i].name,
		                         &p->memory[i]);
	if (status < 0)
		hg__host_plan_free(ctx, p);
	p->edge = p->memory[HG__PLAN_EDGE].data;
	p->row = p->memory[HG__PLAN_ROW].data;
	p->slot = p->memory[HG__PLAN_SLOT].data;
	p->split = p->memory[HG__PLAN_SPLIT].data;
	p->first = p->memory[HG__PLAN_FIRST].data;
	p->last = p->memory[HG__PLAN_LAST].data;
	return status;
}

static hg_status upload_arrays(hg_context *ctx, const struct hg__host_plan *p,
                               struct hg__plan *plan)
{
	struct hg__buffer device[HG__PLAN_ARRAYS] = {{0}};
	hg_status status = HG_OK;
	for (int i = 0; i < HG__PLAN_ARRAYS && status == HG_OK; i++)
		status = hg__buffer_upload(ctx, stored_count(i, !p->of_row, p->items, p->splits),
		                           arrays[i].size, p->memory[i].data, arrays[i].name, &device[i]);
	plan->item_edge = device[HG__PLAN_EDGE].data;
	plan->item_row = device[HG__PLAN_ROW].data;
	plan->item_slot = device[HG__PLAN_SLOT].data;
	plan->split_row = device[HG__PLAN_SPLIT].data;
	plan->split_first = device[HG__PLAN_FIRST].data;
	plan->split_last = device[HG__PLAN_LAST].data;
	return status;
}

/* Numbers parts as the CSR numbers its rows and entries. */
static void renumber_parts(const struct hg__host_plan *p, const int64_t *rowptr, int64_t parts,
                           struct hg__plan_part *part)
{
	for (int64_t i = 0; i < parts; i++) {
		const int32_t row = p->of_row[part[i].row];
		part[i].range += (uint64_t)(p->of_ptr[row] - rowptr[part[i].row]);
		part[i].row = row;
	}
}

/* Lists the parts by length and uploads them. */
static hg_status add_parts(hg_context *ctx, const struct hg__host_plan *p, int64_t rows,
                           const int64_t *rowptr, int near, struct hg__plan *plan)
{
	const struct hg__part_source source = {p->items,
	                                       hg__parts_count(p->items, p->edge, p->row, rows, rowptr),
	                                       p->edge, p->row, rowptr};
	struct hg__buffer host, device = {0};
	HG__TRY(hg__buffer_host(ctx, source.parts, sizeof(struct hg__plan_part), "plan: parts", &host));
	hg_status status = hg__parts_order(ctx, &source, near, host.data, plan->part_class);
	if (status == HG_OK && p->of_row)
		renumber_parts(p, rowptr, source.parts, host.data);
	if (status == HG_OK)
		status = hg__buffer_upload(ctx, source.parts, sizeof(struct hg__plan_part), host.data,
		                           "plan: parts", &device);
	hg__buffer_free(ctx, &host);
	plan->part = device.data;
	plan->parts = status == HG_OK ? source.parts : 0;
	return status;
}

hg_status hg__plan_store(hg_context *ctx, const struct hg__host_plan *p, int64_t rows,
                         const int64_t *rowptr, enum hg__part_order order, struct hg__plan **plan)
{
	struct hg__buffer result;
	*plan = NULL;
	HG__TRY(hg__buffer_host(ctx, 1, sizeof(struct hg__plan), "plan", &result));
	struct hg__plan *built = result.data;
	built->items = p->items;
	built->splits = p->splits;
	built->slots = p->slot[p->items];
	built->item_work = p->work;
	hg_status status = upload_arrays(ctx, p, built);
	if (status == HG_OK && order != HG__PARTS_NONE)
		status = add_parts(ctx, p, rows, rowptr, order == HG__PARTS_NEAR, built);
	if (status < 0)
		hg__plan_free(ctx, built);
	else
		*plan = built;
	return status;
}

size_t hg__plan_array_bytes(int64_t items, int64_t splits)
{
	size_t bytes = 0;
	for (int i = 0; i < HG__PLAN_ARRAYS; i++)
		bytes += (size_t)count_of(i, items, splits) * arrays[i].size;
	return bytes;
}

size_t hg__plan_bytes(const struct hg__plan *plan)
{
	if (!plan)
		return 0;
	size_t bytes = (size_t)plan->parts * sizeof(struct hg__plan_part);
	for (int i = 0; i < HG__PLAN_ARRAYS && !plan->by_row; i++)
		if (i != HG__PLAN_SLOT || plan->item_slot)
			bytes += (size_t)stored_count(i, plan->item_edge != NULL, plan->items, plan->splits) *
			         arrays[i].size;
	return bytes + hg__tiles_bytes(plan->tiles) + hg__dense_bytes(plan->dense) +
	       hg__plan_bytes(plan->counted) + hg__plan_bytes(plan->rest);
}

void hg__plan_free(hg_context *ctx, struct hg__plan *plan)
{
	if (!plan)
		return;
	void *const device[HG__PLAN_ARRAYS] = {plan->item_edge, plan->item_row,    plan->item_slot,
	                                       plan->split_row, plan->split_first, plan->split_last};
	for (int i = 0; i < HG__PLAN_ARRAYS && !plan->by_row; i++)
		hg__device_free(ctx, device[i],
		                (size_t)count_of(i, plan->items, plan->splits) * arrays[i].size);
	hg__device_free(ctx, plan->part, (size_t)plan->parts * sizeof(struct hg__plan_part));
	hg__tiles_free(ctx, plan->tiles);
	hg__dense_free(ctx, plan->dense);
	hg__plan_free(ctx, plan->counted);
	hg__plan_free(ctx, plan->rest);
	hg__host_free(ctx, plan, sizeof *plan);
}
