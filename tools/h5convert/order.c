/* Print what --reorder found, for people and for programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "h5convert.h"
#include "tool.h"

json_t *json_text(const char *text)
{
	char *printable = text ? tool_printable(text) : NULL;
	json_t *exact = text ? json_string(text) : json_null(),
	       *value = exact || !printable ? exact : json_string(printable);
	free(printable);
	return value;
}

json_t *locality_json(const hg_locality *l)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "near_miss", l->near_miss, "far_miss", l->far_miss,
	                 "tile_reuse", l->tile_reuse, "gather_ps", l->gather_ps);
}

static void print_locality(const char *name, const hg_locality *l)
{
	printf("  %-8s %5.1f %% of the gathers miss L1, %5.1f %% miss L2, %.2f edges per source of 16 "
	       "rows; about %.1f ps per edge\n",
	       name, 100 * l->near_miss, 100 * l->far_miss, l->tile_reuse, l->gather_ps);
}

void order_print(const hg_order_report *r)
{
	if (!r->method)
		return;
	printf("order: %s, found in %.2f s\n", r->method, r->seconds);
	print_locality("before", &r->before);
	print_locality("after", &r->after);
}

int order_json(const hg_dataset *d, const hg_order_report *r, const char *path)
{
	json_t *root = json_pack(
	    "{s:o, s:I, s:I, s:I, s:i, s:o, s:f, s:o, s:o}", "file", json_text(path), "nodes",
	    (json_int_t)d->nodes, "edges", (json_int_t)d->edges, "features", (json_int_t)d->features,
	    "classes", (int)d->classes, "order", json_text(r->method ? r->method : "original"),
	    "order_seconds", r->seconds, "before", r->method ? locality_json(&r->before) : json_null(),
	    "after", r->method ? locality_json(&r->after) : json_null());
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text)
		return 0;
	puts(text);
	free(text);
	return 1;
}
