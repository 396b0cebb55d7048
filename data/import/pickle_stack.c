/* The memory of the reader of pickles: values, containers of them, the stack, and the memo, which
 * has values by number. */
#include <inttypes.h>
#include <string.h>

#include "import/pickle_machine.h"

/* Make room for one more of `count` elements. */
static hg_status grow(struct hg__pickle *p, void **memory, int64_t count, int64_t *room,
                      size_t size)
{
	if (count < *room)
		return HG_OK;
	if (count >= INT32_MAX / 2)
		return hg__data_fail(p->message, HG_ERR_RANGE, "%s: more than %" PRId32 " values", p->path,
		                     INT32_MAX / 2);
	const int64_t wanted = *room ? 2 * *room : 1024;
	HG__TRY(hg__data_grow(memory, wanted, size, "a pickle", p->message));
	*room = wanted;
	return HG_OK;
}

hg_status hg__pickle_push_ref(struct hg__pickle *p, hg__ref ref)
{
	HG__TRY(grow(p, (void **)&p->stack, p->height, &p->stack_room, sizeof *p->stack));
	p->stack[p->height++] = ref;
	return HG_OK;
}

hg_status hg__pickle_push(struct hg__pickle *p, struct hg__pickle_value value)
{
	HG__TRY(grow(p, (void **)&p->value, p->values, &p->value_room, sizeof *p->value));
	value.at = p->opcode;
	p->value[p->values] = value;
	return hg__pickle_push_ref(p, (hg__ref)p->values++);
}

hg_status hg__pickle_append(struct hg__pickle *p, hg__ref container, hg__ref item)
{
	HG__TRY(grow(p, (void **)&p->cell, p->cells, &p->cell_room, sizeof *p->cell));
	struct hg__pickle_value *v = &p->value[container];
	const int32_t cell = (int32_t)p->cells++;
	p->cell[cell] = (struct hg__pickle_cell){item, -1};
	if (v->as.items.last < 0)
		v->as.items.first = cell;
	else
		p->cell[v->as.items.last].next = cell;
	v->as.items.last = cell;
	v->as.items.count++;
	return HG_OK;
}

hg__ref hg__pickle_item(const struct hg__pickle *p, hg__ref tuple, int64_t index)
{
	int32_t cell = p->value[tuple].as.items.first;
	while (cell >= 0 && index-- > 0)
		cell = p->cell[cell].next;
	return cell < 0 ? -1 : p->cell[cell].value;
}

hg__ref hg__pickle_get(const struct hg__pickle *p, hg__ref dict, const char *key)
{
	hg__ref found = -1;
	const size_t length = strlen(key);
	int32_t cell = p->value[dict].as.items.first;
	for (; cell >= 0; cell = p->cell[p->cell[cell].next].next) {
		const struct hg__pickle_value *k = &p->value[p->cell[cell].value];
		if (k->kind == HG__PICKLE_TEXT && (size_t)k->as.text.length == length &&
		    memcmp(k->as.text.bytes, key, length) == 0)
			found = p->cell[p->cell[cell].next].value; /* as in Python, the last one counts */
	}
	return found;
}

int64_t hg__pickle_floor(const struct hg__pickle *p)
{
	return p->marks ? p->mark[p->marks - 1] : 0;
}

hg_status hg__pickle_pop(struct hg__pickle *p, hg__ref *ref)
{
	if (p->height <= hg__pickle_floor(p))
		return hg__pickle_fail(p, p->opcode, "takes a value from an empty stack");
	*ref = p->stack[--p->height];
	return HG_OK;
}

/* The height of the last mark, which is removed. */
hg_status hg__pickle_pop_mark(struct hg__pickle *p, int64_t *height)
{
	if (p->marks == 0)
		return hg__pickle_fail(p, p->opcode, "ends a container that was not begun");
	*height = p->mark[--p->marks];
	return HG_OK;
}

/* The value on top must be of this kind; it stays. */
static hg_status peek(const struct hg__pickle *p, enum hg__pickle_kind kind, hg__ref *ref)
{
	const struct hg__pickle_value wanted = {.kind = kind};
	if (p->height <= hg__pickle_floor(p))
		return hg__pickle_fail(p, p->opcode, "takes %s from an empty stack",
		                       hg__pickle_what(&wanted));
	*ref = p->stack[p->height - 1];
	if (p->value[*ref].kind != kind)
		return hg__pickle_fail(p, p->opcode, "found %s, expected %s",
		                       hg__pickle_what(&p->value[*ref]), hg__pickle_what(&wanted));
	return HG_OK;
}

/* Append the values from `first` on to the container below them. */
hg_status hg__pickle_append_above(struct hg__pickle *p, int64_t first, enum hg__pickle_kind kind)
{
	const int64_t end = p->height;
	hg__ref container = -1;
	p->height = first;
	HG__TRY(peek(p, kind, &container));
	if (kind == HG__PICKLE_DICT && (end - first) % 2)
		return hg__pickle_fail(p, p->opcode, "a dictionary with a key, but no value for it");
	for (int64_t k = first; k < end; k++)
		HG__TRY(hg__pickle_append(p, container, p->stack[k]));
	return HG_OK;
}

/* Replace the values from `first` on by a container of them. */
hg_status hg__pickle_collect(struct hg__pickle *p, int64_t first, enum hg__pickle_kind kind)
{
	const int64_t end = p->height, count = end - first;
	if (first < hg__pickle_floor(p))
		return hg__pickle_fail(p, p->opcode, "takes a value from an empty stack");
	if (kind == HG__PICKLE_DICT && count % 2)
		return hg__pickle_fail(p, p->opcode, "a dictionary with a key, but no value for it");
	HG__TRY(hg__pickle_push(p, (struct hg__pickle_value){.kind = kind, .as.items = {-1, -1, 0}}));
	const hg__ref container = p->stack[end];
	for (int64_t k = first; k < end; k++)
		HG__TRY(hg__pickle_append(p, container, p->stack[k]));
	p->stack[first] = container;
	p->height = first + 1;
	return HG_OK;
}

/* Programs number the memo without gaps and spend at least a byte on a number. */
hg_status hg__pickle_memo_put(struct hg__pickle *p, int64_t number)
{
	if (number < 0 || number > p->size)
		return hg__pickle_fail(p, p->opcode,
		                       "memo %" PRId64 " in a file of %" PRId64 " bytes is impossible",
		                       number, p->size);
	if (p->height <= hg__pickle_floor(p))
		return hg__pickle_fail(p, p->opcode, "takes a value from an empty stack");
	const int64_t before = p->memo_room;
	while (number >= p->memo_room)
		HG__TRY(grow(p, (void **)&p->memo, p->memo_room, &p->memo_room, sizeof *p->memo));
	for (int64_t k = before; k < p->memo_room; k++)
		p->memo[k] = -1;
	p->memo[number] = p->stack[p->height - 1];
	return HG_OK;
}

hg_status hg__pickle_memo_get(struct hg__pickle *p, int64_t number)
{
	if (number < 0 || number >= p->memo_room || p->memo[number] < 0)
		return hg__pickle_fail(p, p->opcode, "memo %" PRId64 " is empty", number);
	return hg__pickle_push_ref(p, p->memo[number]);
}
