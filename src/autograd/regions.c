/* The regions of a tape (region.h): which there are, and when their nodes run. */
#include "autograd/fuse.h"
#include "autograd/tape.h"

/* Are regions of use here? A tape that does not train has no step whose loss could show a number
 * that is not finite, and such a number spreads over its bin (kernels/small_layers.h). */
static int wants_regions(const hg_tape *tape)
{
	return tape->plan.trains && !tape->plan.keeps && !tape->ctx->separate_ops;
}

static hg_status add_region(hg_tape *tape, const struct hg__region *region)
{
	struct hg__tape_plan *plan = &tape->plan;
	void *list = plan->region;
	const hg_status grown = hg__host_grow(tape->ctx, &list, sizeof *plan->region, plan->regions,
	                                      &plan->region_capacity, "regions");
	plan->region = list;
	HG__TRY(grown);
	plan->region[plan->regions++] = *region;
	return HG_OK;
}

static void take(const struct hg__region *region, char *taken)
{
	for (int l = 0; l < region->layers; l++)
		for (int i = 0; i < region->layer[l].nodes; i++)
			taken[region->layer[l].node[i]] = 1;
	if (region->readout >= 0)
		taken[region->readout] = 1;
}

/* From the last entry to the first, so that a region is found from its end and is as long as it can
 * be. taken: a mark for each entry that is in a region already. */
static hg_status find_regions(hg_tape *tape, char *taken)
{
	struct hg__region region;
	for (int64_t k = tape->recording.entries - 1; k >= 0; k--) {
		if (!hg__is_needed(&tape->recording, k) || taken[k])
			continue;
		HG__TRY(hg__region_find(tape, taken, (int32_t)k, &region));
		if (!region.layers)
			continue;
		HG__TRY(add_region(tape, &region));
		take(&region, taken);
	}
	return HG_OK;
}

hg_status hg__tape_regions(hg_tape *tape)
{
	const size_t entries = (size_t)tape->recording.entries;
	void *taken = NULL;
	if (!wants_regions(tape))
		return HG_OK;
	HG__TRY(hg__host_alloc(tape->ctx, entries, 1, "regions", &taken));
	const hg_status found = find_regions(tape, taken);
	hg__host_free(tape->ctx, taken, entries);
	return found;
}

/* One node of a region. */
static void place_node(const struct hg__recording *recording, struct hg__tape_plan *plan,
                       int32_t number, int32_t entry)
{
	const struct hg__region *region = &plan->region[number];
	const struct hg__planned_entry *back = &plan->entry[hg__region_back(region)],
	                               *first = &plan->entry[hg__region_first(region)];
	struct hg__planned_entry *planned = &plan->entry[entry];
	planned->region = number;
	planned->position = first->position;
	planned->position_back = back->position_back;
	plan->value[recording->entry[entry].node.out].inside = 1;
}

/* What is read out is in memory, with its whole gradient. */
static void place_readout(const struct hg__recording *recording, struct hg__tape_plan *plan,
                          int32_t number)
{
	const int32_t readout = plan->region[number].readout;
	if (readout < 0)
		return;
	place_node(recording, plan, number, readout);
	plan->value[recording->entry[readout].node.out].inside = 0;
}

/* The result of layer l is in memory. So is its gradient, without the part that comes through the
 * next layer. */
static void place_stored(const struct hg__recording *recording, struct hg__tape_plan *plan,
                         const struct hg__region *region, int l)
{
	struct hg__planned_value *value =
	    &plan->value[recording->entry[region->layer[l].result].node.out];
	value->inside = 0;
	value->partial = l + 1 < region->layers;
}

void hg__place_regions(const struct hg__recording *recording, struct hg__tape_plan *plan)
{
	for (int32_t r = 0; r < (int32_t)plan->regions; r++) {
		place_readout(recording, plan, r);
		for (int l = 0; l < plan->region[r].layers; l++) {
			const struct hg__region_layer *layer = &plan->region[r].layer[l];
			for (int i = 0; i < layer->nodes; i++)
				place_node(recording, plan, r, layer->node[i]);
			if (layer->stored)
				place_stored(recording, plan, &plan->region[r], l);
		}
	}
}
