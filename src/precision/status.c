/* Names and texts of the status codes, from the one list in status.h. */
#include "halfgraph/status.h"

#include <stddef.h>

struct entry {
	hg_status status;
	const char *name, *text;
};

static const struct entry *find_status(hg_status status)
{
	static const struct entry table[] = {
#define HG_STATUS_ENTRY(name, value, text) {name, #name, text},
	    HG_STATUS_LIST(HG_STATUS_ENTRY)
#undef HG_STATUS_ENTRY
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (table[i].status == status)
			return &table[i];
	return NULL;
}

const char *hg_status_name(hg_status status)
{
	const struct entry *entry = find_status(status);
	return entry ? entry->name : "HG_UNKNOWN";
}

const char *hg_status_text(hg_status status)
{
	const struct entry *entry = find_status(status);
	return entry ? entry->text : "unknown status";
}
