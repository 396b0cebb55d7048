/* Find the distinct ids of an edge list. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/edges.h"

static int ascending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* ---- by marking, where the ids are dense: one bit for each number ---- */

static hg_status mark_ids(const struct edge_list *list, int64_t begin, int64_t **ids,
                          int64_t *count, char *message)
{
	const void *const ends[] = {list->source, list->destination};
	unsigned char *seen = NULL;
	const int64_t bytes = list->largest / 8 + 1;
	HG__TRY(hg__data_alloc(bytes, 1, "node ids", (void **)&seen, message));
	memset(seen, 0, (size_t)bytes);
	for (int64_t e = begin; e < list->m; e++)
		for (int k = 0; k < 2; k++) {
			const int64_t id = hg__edge_end(list, ends[k], e);
			*count += !(seen[id / 8] >> id % 8 & 1);
			seen[id / 8] = (unsigned char)(seen[id / 8] | 1 << id % 8);
		}
	const hg_status status =
	    hg__data_alloc(*count, sizeof **ids, "node ids", (void **)ids, message);
	for (int64_t id = 0, k = 0; status == HG_OK && id <= list->largest; id++)
		if (seen[id / 8] >> id % 8 & 1)
			(*ids)[k++] = id;
	free(seen);
	return status;
}

/* ---- by hashing, where they are sparse ---- */

/* An open-addressing table, at most half full; -1 is an empty place. */
struct id_set {
	int64_t *at, room, count; /* room: a power of 2 */
};

static void insert_id(struct id_set *set, int64_t id)
{
	/* the finaliser of SplitMix64 */
	uint64_t h = (uint64_t)id;
	h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
	h ^= h >> 31;
	int64_t place = (int64_t)(h & (uint64_t)(set->room - 1));
	while (set->at[place] >= 0 && set->at[place] != id)
		place = (place + 1) & (set->room - 1);
	set->count += set->at[place] < 0;
	set->at[place] = id;
}

static hg_status make_room(struct id_set *set, char *message)
{
	struct id_set larger = {.room = set->room ? 2 * set->room : 1024};
	if (2 * set->count < set->room)
		return HG_OK;
	HG__TRY(hg__data_alloc(larger.room, sizeof *set->at, "node ids", (void **)&larger.at, message));
	for (int64_t k = 0; k < larger.room; k++)
		larger.at[k] = -1;
	for (int64_t k = 0; k < set->room; k++)
		if (set->at[k] >= 0)
			insert_id(&larger, set->at[k]);
	free(set->at);
	*set = larger;
	return HG_OK;
}

/* The table becomes the array of its ids. */
static hg_status hash_ids(const struct edge_list *list, int64_t begin, int64_t **ids,
                          int64_t *count, char *message)
{
	const void *const ends[] = {list->source, list->destination};
	struct id_set set = {NULL, 0, 0};
	hg_status status = make_room(&set, message);
	for (int64_t e = begin; status == HG_OK && e < list->m; e++)
		for (int k = 0; status == HG_OK && k < 2; k++) {
			insert_id(&set, hg__edge_end(list, ends[k], e));
			status = make_room(&set, message);
		}
	if (status < 0) {
		free(set.at);
		return status;
	}
	for (int64_t k = 0; k < set.room; k++)
		if (set.at[k] >= 0)
			set.at[(*count)++] = set.at[k];
	qsort(set.at, (size_t)*count, sizeof *set.at, ascending);
	*ids = set.at;
	return hg__data_grow((void **)ids, *count, sizeof **ids, "node ids", message);
}

/* A bit for each of 8 times as many numbers as there are ends takes 2 bytes for each edge. */
hg_status hg__edges_ids(const struct edge_list *list, int64_t begin, int64_t **ids, int64_t *count,
                        char *message)
{
	const int64_t ends = 2 * (list->m - begin);
	*count = 0;
	*ids = NULL;
	return (list->largest < 8 * ends ? mark_ids : hash_ids)(list, begin, ids, count, message);
}
