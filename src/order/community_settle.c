/* The fine order: each node moves to the mean place of its neighbours, inside its group. Neighbours
 * further away than the group is long do not count: they are the noise that no order can help. Only
 * the order of the means counts, so nothing contracts. */
#include <stdlib.h>

#include "order/community.h"

/* The means of 4 sweeps reach 4 neighbourhoods far; more changed the modelled cost of no tested
 * graph by 1 %. */
enum { SWEEPS = 4 };

#define REACH 2.5

struct want {
	double x;
	int32_t node;
};

static int by_want(const void *a, const void *b)
{
	const struct want *u = a, *v = b;
	if (u->x < v->x || u->x > v->x)
		return u->x < v->x ? -1 : 1;
	return (u->node > v->node) - (u->node < v->node);
}

struct settle {
	const struct hg__symmetric *symmetric;
	int32_t *order, *place;
	struct want *want;    /* [n] */
	float *radius;        /* [n] how far away neighbours still count */
	const int64_t *begin; /* [groups + 1] */
	int64_t groups;
};

/* The mean place of i's neighbours within its radius, and the next radius: 5/2 of their mean
 * distance, which is 5/4 of the band if they fill a band evenly, and less if few of them lie far
 * out. */
static double mean_place(const struct settle *v, int32_t i, int64_t low, int64_t high)
{
	const int64_t own = v->place[i], radius = (int64_t)v->radius[i];
	int64_t sum = 0, distance = 0, count = 0;
	for (int s = 0; s < v->symmetric->sides; s++) {
		const struct hg__side *side = &v->symmetric->side[s];
		const int64_t end = side->ptr[i + 1];
		for (int64_t e = side->ptr[i]; e < end; e++) {
			if (e + HG__AHEAD < end)
				hg__order_prefetch(&v->place[side->id[e + HG__AHEAD]]);
			const int64_t p = v->place[side->id[e]], away = p > own ? p - own : own - p;
			const int near = p >= low && p < high && away <= radius;
			sum += near ? p : 0;
			distance += near ? away : 0;
			count += near;
		}
	}
	if (count == 0)
		return (double)own;
	const double next = REACH * (double)distance / (double)count;
	v->radius[i] = (float)(next < (double)radius ? next : (double)radius);
	return (double)sum / (double)count;
}

/* All groups look at the places of the sweep before. */
static void sweep(const struct hg__order_work *work, struct settle *v)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(work->threads)
	for (int64_t g = 0; g < v->groups; g++) {
		const int64_t begin = v->begin[g], end = v->begin[g + 1], length = end - begin;
		for (int64_t k = begin; k < end; k++)
			v->want[k] = (struct want){mean_place(v, v->order[k], begin - length, end + length),
			                           v->order[k]};
		qsort(v->want + begin, (size_t)length, sizeof *v->want, by_want);
		for (int64_t k = begin; k < end; k++)
			v->order[k] = v->want[k].node;
	}
	for (int64_t k = 0; k < v->symmetric->n; k++)
		v->place[v->order[k]] = (int32_t)k;
}

static hg_status run(const struct hg__order_work *work, struct settle *v)
{
	for (int64_t k = 0; k < v->symmetric->n; k++)
		v->place[v->order[k]] = (int32_t)k;
	for (int64_t i = 0; i < v->symmetric->n; i++)
		v->radius[i] = (float)v->symmetric->n;
	for (int k = 0; k < SWEEPS; k++) {
		HG__TRY(hg__order_step(work, "fine order", k, SWEEPS));
		sweep(work, v);
	}
	return HG_OK;
}

/* begin [groups + 1] <- where another group begins in the order. */
static int64_t find_groups(int64_t n, const int32_t *group, const int32_t *order, int64_t *begin)
{
	int64_t groups = 0;
	for (int64_t k = 0; k < n; k++)
		if (k == 0 || group[order[k]] != group[order[k - 1]])
			begin[groups++] = k;
	begin[groups] = n;
	return groups;
}

hg_status hg__community_settle(const struct hg__order_work *work,
                               const struct hg__symmetric *symmetric, const int32_t *group,
                               int64_t groups, int32_t *order)
{
	struct hg__buffer place, want = {0}, begin = {0}, radius = {0};
	HG__TRY(hg__order_alloc(work, symmetric->n, sizeof(int32_t), &place));
	hg_status status = hg__order_alloc(work, symmetric->n, sizeof(struct want), &want);
	if (status == HG_OK)
		status = hg__order_alloc(work, groups + 1, sizeof(int64_t), &begin);
	if (status == HG_OK)
		status = hg__order_alloc(work, symmetric->n, sizeof(float), &radius);
	if (status == HG_OK) {
		struct settle v = {symmetric,
		                   order,
		                   place.data,
		                   want.data,
		                   radius.data,
		                   begin.data,
		                   find_groups(symmetric->n, group, order, begin.data)};
		status = run(work, &v);
	}
	hg__order_free(work, &radius);
	hg__order_free(work, &begin);
	hg__order_free(work, &want);
	hg__order_free(work, &place);
	return status;
}
