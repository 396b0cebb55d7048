/* Read the column of ids of a text with a heading. */
#include "import/row_ids.h"

#include <stdlib.h>
#include <string.h>

#include "import/number.h"

int hg__row_ids_begin(struct hg__row_ids *ids, const char *heading)
{
	static const char *const names[] = {"id", "node_id", "graph_id", "new_id"};
	char word[sizeof ids->heading] = "";
	const char *at = heading + (*heading == '"');
	const size_t length = strcspn(at, "\", \t");
	if (length >= sizeof word)
		return 0;
	memcpy(word, at, length);
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (hg__same_word(word, names[k]))
			memcpy(ids->heading, names[k], strlen(names[k]) + 1);
	return *ids->heading != 0;
}

hg_status hg__row_ids_add(struct hg__row_ids *ids, const struct lines *lines, const char *line,
                          const char **at)
{
	int64_t id = 0;
	HG__TRY(hg__lines_integer(lines, line, "expected a whole number as the id",
	                          "expected an id of 64 bits", at, &id));
	if (!**at)
		return hg__lines_fail(lines, "there is nothing after the id", line);
	if (ids->count == ids->room) {
		const int64_t room = ids->room + ids->room / 2 + 1024;
		HG__TRY(hg__data_grow((void **)&ids->id, room, sizeof *ids->id, "ids", lines->message));
		HG__TRY(hg__data_grow((void **)&ids->line, room, sizeof *ids->line, "ids", lines->message));
		ids->room = room;
	}
	ids->id[ids->count] = id;
	ids->line[ids->count++] = lines->number;
	return HG_OK;
}

void hg__row_ids_free(struct hg__row_ids *ids)
{
	free(ids->id);
	free(ids->line);
	*ids = (struct hg__row_ids){0};
}
