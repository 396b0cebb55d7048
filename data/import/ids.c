/* Number nodes by their ids. */
#include "import/ids.h"

#include <stdlib.h>
#include <string.h>

void hg__ids_free(struct hg__ids *ids)
{
	free(ids->group);
	free(ids->at);
	free(ids->text);
	free(ids->order);
	if (ids->node)
		free(ids->from);
	free(ids->node);
	*ids = (struct hg__ids){0};
}

/* Is the text a number of 64 bits as printf writes it? */
static int is_number(const char *text, int64_t *number)
{
	const char *c = text + (*text == '-');
	uint64_t x = 0;
	const size_t digits = strspn(c, "0123456789");
	if (digits == 0 || digits > 18 || c[digits] || (*c == '0' && (digits > 1 || c > text)))
		return 0;
	for (; *c; c++)
		x = 10 * x + (uint64_t)(*c - '0');
	*number = *text == '-' ? -(int64_t)x : (int64_t)x;
	return 1;
}

static hg_status add_text(struct hg__ids *ids, const char *id, int64_t *at, char *message)
{
	const int64_t bytes = (int64_t)strlen(id) + 1;
	if (ids->used + bytes > ids->text_room) {
		const int64_t room = ids->text_room + ids->text_room / 2 + bytes + 1024;
		HG__TRY(hg__data_grow((void **)&ids->text, room, 1, "node ids", message));
		ids->text_room = room;
	}
	*at = ids->used;
	memcpy(ids->text + ids->used, id, (size_t)bytes);
	ids->used += bytes;
	return HG_OK;
}

/* The numbers so far become texts. */
static hg_status turn_to_texts(struct hg__ids *ids, char *message)
{
	ids->are_texts = 1;
	for (int64_t k = 0; k < ids->count; k++) {
		char digits[24];
		HG__TRY(add_text(ids, hg__data_digits(ids->at[k], 0, digits), &ids->at[k], message));
	}
	return HG_OK;
}

hg_status hg__ids_add(struct hg__ids *ids, const char *id, int32_t group, char *message)
{
	int64_t at = 0;
	if (ids->count == ids->room) {
		const int64_t room = ids->room + ids->room / 2 + 1024;
		HG__TRY(hg__data_grow((void **)&ids->at, room, sizeof *ids->at, "node ids", message));
		HG__TRY(hg__data_grow((void **)&ids->group, room, sizeof *ids->group, "graphs of nodes",
		                      message));
		ids->room = room;
	}
	if (!ids->are_texts && !is_number(id, &at))
		HG__TRY(turn_to_texts(ids, message));
	if (ids->are_texts)
		HG__TRY(add_text(ids, id, &at, message));
	ids->at[ids->count] = at;
	ids->group[ids->count++] = group;
	return HG_OK;
}

const char *hg__ids_text(const struct hg__ids *ids, int64_t k, char digits[24])
{
	return ids->are_texts ? ids->text + ids->at[k] : hg__data_digits(ids->at[k], 0, digits);
}

/* ---- the order ---- */

struct key {
	const char *text; /* NULL: the id is a number */
	int64_t number;
	int32_t group, position;
};

static struct key key_of(const struct hg__ids *ids, int64_t k)
{
	return (struct key){.text = ids->are_texts ? ids->text + ids->at[k] : NULL,
	                    .number = ids->are_texts ? 0 : ids->at[k],
	                    .group = ids->group[k],
	                    .position = (int32_t)k};
}

static int compare(const struct key *x, const struct key *y)
{
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->text)
		return strcmp(x->text, y->text);
	return (x->number > y->number) - (x->number < y->number);
}

static int ascending(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	const int order = compare(x, y);
	return order != 0 ? order : (x->position > y->position) - (x->position < y->position);
}

static int are_ascending(const struct hg__ids *ids)
{
	for (int64_t k = 1; k < ids->count; k++) {
		const struct key before = key_of(ids, k - 1), key = key_of(ids, k);
		if (compare(&before, &key) >= 0)
			return 0;
	}
	return 1;
}

static hg_status sort_keys(struct hg__ids *ids, int64_t *again, char *message)
{
	struct key *keys = NULL;
	HG__TRY(hg__data_alloc(ids->count, sizeof *keys, "node ids", (void **)&keys, message));
	for (int64_t k = 0; k < ids->count; k++)
		keys[k] = key_of(ids, k);
	qsort(keys, (size_t)ids->count, sizeof *keys, ascending);
	for (int64_t k = 0; k < ids->count; k++) {
		ids->order[k] = keys[k].position;
		if (k > 0 && *again < 0 && compare(&keys[k - 1], &keys[k]) == 0)
			*again = keys[k].position;
	}
	free(keys);
	return HG_OK;
}

static hg_status sort(struct hg__ids *ids, int64_t *again, char *message)
{
	HG__TRY(
	    hg__data_alloc(ids->count, sizeof *ids->order, "node ids", (void **)&ids->order, message));
	if (!are_ascending(ids))
		return sort_keys(ids, again, message);
	for (int64_t k = 0; k < ids->count; k++)
		ids->order[k] = (int32_t)k;
	return HG_OK;
}

/* ---- the nodes ---- */

static int in_groups(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	return x->group != y->group ? (x->group > y->group) - (x->group < y->group)
	                            : (x->position > y->position) - (x->position < y->position);
}

/* Texts number the nodes of a group in the order of the file. */
static hg_status number_texts(struct hg__ids *ids, char *message)
{
	struct key *keys = NULL;
	HG__TRY(
	    hg__data_alloc(ids->count, sizeof *ids->node, "node ids", (void **)&ids->node, message));
	ids->from = NULL;
	HG__TRY(
	    hg__data_alloc(ids->count, sizeof *ids->from, "node ids", (void **)&ids->from, message));
	HG__TRY(hg__data_alloc(ids->count, sizeof *keys, "node ids", (void **)&keys, message));
	for (int64_t k = 0; k < ids->count; k++)
		keys[k] = key_of(ids, k);
	qsort(keys, (size_t)ids->count, sizeof *keys, in_groups);
	for (int64_t k = 0; k < ids->count; k++) {
		ids->from[k] = keys[k].position;
		ids->node[keys[k].position] = (int32_t)k;
	}
	free(keys);
	return HG_OK;
}

hg_status hg__ids_sort(struct hg__ids *ids, int64_t *again, char *message)
{
	*again = -1;
	HG__TRY(sort(ids, again, message));
	ids->from = ids->order;
	return ids->are_texts ? number_texts(ids, message) : HG_OK;
}

/* Where an id is in `order`; -1: nowhere. */
static int64_t rank_of(const struct hg__ids *ids, const char *id, int32_t group)
{
	struct key wanted = {.text = ids->are_texts ? id : NULL, .group = group};
	if (!ids->are_texts && !is_number(id, &wanted.number))
		return -1;
	for (int64_t low = 0, high = ids->count; low < high;) {
		const int64_t middle = low + (high - low) / 2;
		const struct key found = key_of(ids, ids->order[middle]);
		const int order = compare(&wanted, &found);
		if (order == 0)
			return middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

int64_t hg__ids_find(const struct hg__ids *ids, const char *id, int32_t group)
{
	const int64_t rank = rank_of(ids, id, group);
	return rank < 0 ? -1 : ids->order[rank];
}

int64_t hg__ids_node(const struct hg__ids *ids, const char *id, int32_t group)
{
	const int64_t rank = rank_of(ids, id, group);
	return rank < 0 || !ids->node ? rank : ids->node[ids->order[rank]];
}
