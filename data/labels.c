/* How many classes there are, where nothing says so but the labels. */
#include <inttypes.h>

#include "internal.h"

/* One more than the largest label: a class then has a row, on average, or that label is a mistake
 * (an id, a missing value written as 999999999). */
hg_status hg__data_count_classes(hg_dataset *d, const char *origin, const char *say, char *message)
{
	const int64_t rows = hg__data_labelled(d);
	const char *row = d->graph_ptr ? "graph" : "node";
	int64_t labelled = 0, widest = -1;
	for (int64_t i = 0; d->label && i < rows; i++) {
		labelled += d->label[i] >= 0;
		if (d->label[i] >= 0 && (widest < 0 || d->label[i] > d->label[widest]))
			widest = i;
	}
	d->classes = widest < 0 ? 0 : d->label[widest] + 1;
	if (d->classes <= labelled)
		return HG_OK;
	return hg__data_fail(message, HG_ERR_FORMAT,
	                     "%s: labels: %s %" PRId64 " has label %" PRId32 ", which makes %" PRId32
	                     " classes of %" PRId64 " labelled %ss; if it is meant, %s",
	                     origin, row, widest, d->label[widest], d->classes, labelled, row, say);
}
