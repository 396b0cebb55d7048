/* One name for one result, for messages and tables: "conv0/linear (mlp1.weight)". */
#include <stdio.h>
#include <string.h>

#include "autograd/tape.h"

const char *hg__entry_title(const struct hg__entry *entry)
{
	return entry->title ? entry->title : entry->node.op->name;
}

static int is_namesake(const hg_tape *tape, int64_t k, int64_t l)
{
	const struct hg__entry *a = &tape->recording.entry[k], *b = &tape->recording.entry[l];
	return k != l && hg__is_alive(&tape->plan, k) && hg__is_alive(&tape->plan, l) &&
	       strcmp(a->node.scope, b->node.scope) == 0 &&
	       strcmp(hg__entry_title(a), hg__entry_title(b)) == 0;
}

/* The name of the first parameter that an entry reads; "" if it reads none. */
static const char *weight_of(const struct hg__recording *recording, const struct hg__entry *entry)
{
	for (int i = 0; i < entry->node.n_in; i++) {
		const int32_t in = entry->node.in[i];
		if (in >= 0 && recording->value[in].kind == HG__PARAM)
			return recording->value[in].param->name;
	}
	return "";
}

/* A parameter's name without its layer: "mlp1.weight" of "conv0.mlp1.weight". */
static const char *strip_layer(const char *layer, const char *name)
{
	const size_t length = strlen(layer);
	return length && strncmp(name, layer, length) == 0 && name[length] == '.' ? name + length + 1
	                                                                          : name;
}

/* Entries of one layer with the same ops get different names: by their weights if these differ, or
 * else by number. */
static void tell_apart(const hg_tape *tape, int64_t own, char *buffer, size_t size)
{
	const struct hg__recording *recording = &tape->recording;
	const struct hg__entry *entry = &recording->entry[own];
	const char *weight = weight_of(recording, entry);
	int others = 0, before = 0, unique = *weight != 0;
	for (int64_t k = 0; k < recording->entries; k++) {
		if (!is_namesake(tape, own, k))
			continue;
		others++;
		before += k < own;
		unique &= strcmp(weight_of(recording, &recording->entry[k]), weight) != 0;
	}
	if (others && unique)
		snprintf(buffer, size, " (%s)", strip_layer(entry->node.scope, weight));
	else if (others)
		snprintf(buffer, size, " #%d", before + 1);
}

const char *hg__value_name(const hg_tape *tape, const struct hg__value *value, char *buffer,
                           size_t size)
{
	if (value->node < 0) {
		snprintf(buffer, size, "%s", value->name);
		return buffer;
	}
	const struct hg__entry *entry = &tape->recording.entry[value->node];
	snprintf(buffer, size, "%s%s%s", entry->node.scope, *entry->node.scope ? "/" : "",
	         hg__entry_title(entry));
	const size_t length = strlen(buffer);
	tell_apart(tape, value->node, buffer + length, size - length);
	return buffer;
}
