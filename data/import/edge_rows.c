/* Give edges what a source says of them. */
#include "import/edge_rows.h"

#include <inttypes.h>

hg_status hg__import_edge_rows(const hg_import_config *config, const char *shown,
                               struct hg__edge_data *list, const int64_t *origin, hg_dataset *d,
                               char *message)
{
	struct hg__edge_data data = {0};
	int64_t differing = 0;
	const hg_status status =
	    hg__edge_data_gather(list, origin, list->edges, HG__BEYOND_NEW, &data, &differing, message);
	hg__edge_data_free(list);
	HG__TRY(status);
	hg__edge_data_give(d, &data);
	if (differing)
		hg__import_note(config,
		                "%s: %" PRId64 " of the edges that were merged had other labels or "
		                "attributes than the first, whose stay",
		                shown, differing);
	return HG_OK;
}
