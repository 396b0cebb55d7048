/* --inspect: what edges have beside a weight. */
#include "inspect_edges.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* So many columns or labels are printed for people. */
#define SHOWN 12

int edge_facts_measure(const hg_dataset *d, struct edge_facts *f)
{
	*f = (struct edge_facts){.columns = d->edges > 0 ? d->edge_features : 0,
	                         .listed = d->edge_classes < LISTED ? d->edge_classes : LISTED};
	f->low = malloc(((size_t)f->columns + 1) * sizeof *f->low);
	f->high = malloc(((size_t)f->columns + 1) * sizeof *f->high);
	f->per_class = calloc((size_t)f->listed + 1, sizeof *f->per_class);
	if (!f->low || !f->high || !f->per_class)
		return 0;
	for (int64_t k = 0; k < d->edges * f->columns; k++) {
		const int64_t c = k % f->columns;
		const float x = d->edge_feat[k];
		f->low[c] = k < f->columns || x < f->low[c] ? x : f->low[c];
		f->high[c] = k < f->columns || x > f->high[c] ? x : f->high[c];
	}
	for (int64_t e = 0; d->edge_label && e < d->edges; e++)
		if (d->edge_label[e] < 0)
			f->unlabelled++;
		else if (d->edge_label[e] < f->listed)
			f->per_class[d->edge_label[e]]++;
	return 1;
}

void edge_facts_free(struct edge_facts *f)
{
	free(f->low);
	free(f->high);
	free(f->per_class);
	*f = (struct edge_facts){0};
}

void edge_facts_print(const hg_dataset *d, const struct edge_facts *f)
{
	if (d->edge_feat) {
		printf("  edge feat  %" PRId64 " columns, f32", d->edge_features);
		for (int64_t c = 0; c < f->columns && c < SHOWN; c++)
			printf("%s %.6g to %.6g", c ? "," : ":", (double)f->low[c], (double)f->high[c]);
		puts(f->columns > SHOWN ? ", ..." : "");
	}
	if (d->edge_label) {
		printf("  edge label %" PRId32 " labels:", d->edge_classes);
		for (int32_t c = 0; c < f->listed && c < SHOWN; c++)
			printf(" %" PRId64, f->per_class[c]);
		printf("%s", d->edge_classes > SHOWN ? " ..." : "");
		if (f->unlabelled)
			printf(", %" PRId64 " unlabelled", f->unlabelled);
		putchar('\n');
	}
}

static json_t *reals(const float *values, int64_t count)
{
	json_t *array = json_array();
	for (int64_t k = 0; array && k < count && k < LISTED; k++)
		if (json_array_append_new(array, json_real((double)values[k])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *counts(const struct edge_facts *f)
{
	json_t *array = json_array();
	for (int32_t c = 0; array && c < f->listed; c++)
		if (json_array_append_new(array, json_integer(f->per_class[c])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

int edge_facts_json(const hg_dataset *d, const struct edge_facts *f, json_t *object)
{
	/* a member that is NULL, because memory ran out, is refused */
	return json_object_set_new(object, "edge_features", json_integer(d->edge_features)) == 0 &&
	       json_object_set_new(object, "edge_feature_min", reals(f->low, f->columns)) == 0 &&
	       json_object_set_new(object, "edge_feature_max", reals(f->high, f->columns)) == 0 &&
	       json_object_set_new(object, "edge_classes", json_integer(d->edge_classes)) == 0 &&
	       json_object_set_new(object, "edge_class_counts", counts(f)) == 0 &&
	       json_object_set_new(object, "edges_unlabelled", json_integer(f->unlabelled)) == 0;
}
