#ifndef HG_H5CONVERT_H
#define HG_H5CONVERT_H

#include <jansson.h>
#include <stddef.h>

#include "halfgraph/data.h"

/* What the command line asks for. */
struct options {
	const char *from, *output, *synthetic, *inspect, *seal;
	const char *name, *features_dtype, *reorder, *folds;
	const char **inputs;
	int input_count;
	int header; /* an hg_header */
	int symmetrize, self_loops, largest_component, row_normalize, clip, json, quiet, help, version,
	    list_formats;
	hg_planted_config planted;
	int64_t classes;  /* planted.classes */
	int64_t fold, of; /* of folds, "F/K" */
};

/* 0, or -1 with one line in message. options->inputs points into argv and a new array: free it. */
int options_parse(int argc, char **argv, struct options *options, char *message);
void options_help(void);

/* What a file holds, for people or as one JSON object. Returns an exit code. */
int inspect(const char *path, int json);

/* What a reordering did: lines for people, nothing where nothing was searched for; or one JSON
 * object with the counts of the dataset. 0 without memory. */
void order_print(const hg_order_report *report);
int order_json(const hg_dataset *d, const hg_order_report *report, const char *path);
/* {"near_miss": ..., ...}; NULL without memory. */
json_t *locality_json(const hg_locality *locality);
/* JSON knows no text but UTF-8; NULL becomes null. */
json_t *json_text(const char *text);

#endif
