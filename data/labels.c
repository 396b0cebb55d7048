/* Derive the numbers of classes from the labels where a file does not declare them. */
#include <inttypes.h>

#include "internal.h"

/* The number of classes is the largest label plus 1. It may not exceed the number of labelled rows;
 * beyond that the largest label is taken for a mistake (an id, or a missing value written as
 * 999999999). */
hg_status hg__data_count_classes(hg_dataset *d, const char *origin, const char *hint, char *message)
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
	                     " classes of %" PRId64 " labelled %ss; if that is intended, %s",
	                     origin, row, widest, d->label[widest], d->classes, labelled, row, hint);
}

hg_status hg__data_count_edge_classes(hg_dataset *d, const char *origin, const char *hint,
                                      char *message)
{
	int64_t labelled = 0, widest = -1;
	for (int64_t e = 0; e < d->edges; e++) {
		labelled += d->edge_label[e] >= 0;
		if (d->edge_label[e] >= 0 && (widest < 0 || d->edge_label[e] > d->edge_label[widest]))
			widest = e;
	}
	d->edge_classes = widest < 0 ? 0 : d->edge_label[widest] + 1;
	if (d->edge_classes <= labelled)
		return HG_OK;
	return hg__data_fail(message, HG_ERR_FORMAT,
	                     "%s: edge labels: edge %" PRId64 " has label %" PRId32
	                     ", which makes %" PRId32 " labels of %" PRId64
	                     " labelled edges; if that is intended, %s",
	                     origin, widest, d->edge_label[widest], d->edge_classes, labelled, hint);
}
