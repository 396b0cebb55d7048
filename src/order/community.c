/* The order by communities. First, level by level, nodes form communities, these form communities
 * of communities, and so on until they no longer merge. Then, from the top level down, each level's
 * nodes are ordered inside their community. At last the nodes of the graph itself are ordered more
 * finely inside each group. */
#include "order/community.h"

/* A level has at most 19/20 of the nodes of the level below. Real graphs needed at most 5
 * levels. */
enum { LEVELS = 12 };

struct level {
	struct hg__symmetric symmetric;
	struct hg__buffer volume; /* double [n] */
	struct hg__buffer label;  /* int32 [n]: the community, which is a node of the level above */
	struct hg__buffer order;  /* int32 [n] */
};

static void levels_free(const struct hg__order_work *work, struct level *level, int count)
{
	for (int l = 0; l < count; l++) {
		if (l > 0) /* the graph of the lowest level is the caller's */
			hg__symmetric_free(work, &level[l].symmetric);
		hg__order_free(work, &level[l].volume);
		hg__order_free(work, &level[l].label);
		hg__order_free(work, &level[l].order);
	}
}

static void add_volumes(const struct level *low, struct level *high)
{
	double *sum = high->volume.data;
	for (int64_t i = 0; i < low->symmetric.n; i++)
		sum[((const int32_t *)low->label.data)[i]] += ((const double *)low->volume.data)[i];
}

static hg_status allocate_level(const struct hg__order_work *work, struct level *l)
{
	HG__TRY(hg__order_alloc(work, l->symmetric.n, sizeof(double), &l->volume));
	HG__TRY(hg__order_alloc(work, l->symmetric.n, sizeof(int32_t), &l->label));
	return hg__order_alloc(work, l->symmetric.n, sizeof(int32_t), &l->order);
}

/* Builds the levels. On return, also after a failure, *count levels have arrays. The communities of
 * the topmost level do not merge. */
static hg_status build_levels(const struct hg__order_work *work, struct level *level, int *count)
{
	*count = 1;
	HG__TRY(allocate_level(work, &level[0]));
	for (int64_t i = 0; i < level[0].symmetric.n; i++)
		((double *)level[0].volume.data)[i] = (double)hg__symmetric_degree(&level[0].symmetric, i);
	while (*count < LEVELS) {
		struct level *low = &level[*count - 1], *high = &level[*count];
		int64_t communities = 0;
		HG__TRY(hg__community_find(work, &low->symmetric, low->volume.data, low->label.data,
		                           &communities));
		if (communities > low->symmetric.n - low->symmetric.n / 20 ||
		    communities == low->symmetric.n)
			break;
		HG__TRY(hg__community_merge(work, &low->symmetric, low->label.data, communities,
		                            &high->symmetric));
		++*count;
		HG__TRY(allocate_level(work, high));
		add_volumes(low, high);
	}
	return HG_OK;
}

/* Orders the topmost level, and then each lower level inside the communities above it. */
static hg_status order_levels(const struct hg__order_work *work, struct level *level, int top)
{
	HG__TRY(hg__community_chain(work, &level[top].symmetric, level[top].volume.data, NULL, 1, NULL,
	                            level[top].order.data));
	for (int l = top - 1; l > 0; l--)
		HG__TRY(hg__community_chain(work, &level[l].symmetric, level[l].volume.data,
		                            level[l].label.data, level[l + 1].symmetric.n,
		                            level[l + 1].order.data, level[l].order.data));
	if (top > 0)
		HG__TRY(hg__community_by_parent(work, level[0].symmetric.n, level[0].label.data,
		                                level[1].symmetric.n, level[1].order.data,
		                                level[0].order.data));
	return HG_OK;
}

/* Replaces label[0], the community of each node, by the node's ancestor on level `above`: the final
 * refinement works inside these largest groups. */
static void lift_labels(struct level *level, int above)
{
	int32_t *label = level[0].label.data;
	for (int l = 1; l < above; l++)
		for (int64_t i = 0; i < level[0].symmetric.n; i++)
			label[i] = ((const int32_t *)level[l].label.data)[label[i]];
}

hg_status hg__order_community(const struct hg__order_work *work,
                              const struct hg__symmetric *symmetric, int32_t *order)
{
	struct level level[LEVELS] = {{.symmetric = *symmetric}};
	int count = 0;
	hg_status status = build_levels(work, level, &count);
	if (status == HG_OK)
		status = order_levels(work, level, count - 1);
	if (status == HG_OK && count > 1) {
		lift_labels(level, count - 1);
		status = hg__community_refine(work, symmetric, level[0].label.data,
		                              level[count - 1].symmetric.n, level[0].order.data);
	}
	for (int64_t k = 0; status == HG_OK && k < symmetric->n; k++)
		order[k] = ((const int32_t *)level[0].order.data)[k];
	levels_free(work, level, count);
	return status;
}
