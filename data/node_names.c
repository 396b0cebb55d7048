/* Names of nodes: checking them, and moving them with their nodes. */
#include "node_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/texts.h"

hg_status hg__node_names_check(const hg_dataset *d, const char *origin, char *message)
{
	if (!d->node_name && d->node_name_bytes == 0)
		return HG_OK;
	const int64_t count =
	    d->node_name_bytes < 0 ? -1 : hg__texts_count(d->node_name, d->node_name_bytes);
	if (count != d->nodes)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: names of nodes: there are %" PRId64 ", expected %" PRId64
		                     ", each with a terminating 0",
		                     origin, count < 0 ? 0 : count, d->nodes);
	return HG_OK;
}

/* begin[i] is where the name of node i begins; begin[nodes] is the end of all. */
static hg_status find_begins(const hg_dataset *d, int64_t **begin, char *message)
{
	int64_t node = 0;
	HG__TRY(
	    hg__data_alloc(d->nodes + 1, sizeof **begin, "names of nodes", (void **)begin, message));
	(*begin)[0] = 0;
	for (int64_t k = 0; k < d->node_name_bytes; k++)
		if (d->node_name[k] == 0)
			(*begin)[++node] = k + 1;
	return HG_OK;
}

hg_status hg__node_names_gather(const hg_dataset *d, const int32_t *from, int64_t count,
                                hg_dataset *to, char *message)
{
	int64_t *begin = NULL, bytes = 0;
	if (!d->node_name)
		return HG_OK;
	HG__TRY(find_begins(d, &begin, message));
	for (int64_t k = 0; k < count; k++)
		bytes += begin[from[k] + 1] - begin[from[k]];
	const hg_status status =
	    hg__data_alloc(bytes, 1, "names of nodes", (void **)&to->node_name, message);
	to->node_name_bytes = 0;
	for (int64_t k = 0; k < count && status == HG_OK; k++) {
		const int64_t length = begin[from[k] + 1] - begin[from[k]];
		memcpy(to->node_name + to->node_name_bytes, d->node_name + begin[from[k]], (size_t)length);
		to->node_name_bytes += length;
	}
	free(begin);
	return status;
}

hg_status hg__node_names_copy(const hg_dataset *d, char **copy, int64_t *bytes, char *message)
{
	*bytes = 0;
	if (!d->node_name)
		return HG_OK;
	HG__TRY(hg__data_alloc(d->node_name_bytes, 1, "names of nodes", (void **)copy, message));
	if (d->node_name_bytes > 0)
		memcpy(*copy, d->node_name, (size_t)d->node_name_bytes);
	*bytes = d->node_name_bytes;
	return HG_OK;
}

const char *hg_dataset_node_name(const hg_dataset *d, int64_t i)
{
	return d && i >= 0 ? hg__texts_at(d->node_name, d->node_name_bytes, i) : NULL;
}
