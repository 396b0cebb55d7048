#ifndef HG_H5CONVERT_H
#define HG_H5CONVERT_H

#include <jansson.h>
#include <stddef.h>

#include "halfgraph/data.h"

/* The most positional encodings of one run. */
enum { ENCODINGS = 4 };

/* The parsed command line. */
struct options {
	const char *from, *output, *synthetic, *inspect, *seal;
	const char *name, *features_dtype, *reorder, *folds, *positional;
	const char **inputs;
	int input_count;
	int header; /* an hg_header */
	int symmetrize, self_loops, largest_component, row_normalize, clip, json, quiet, help, version,
	    list_formats;
	hg_planted_config planted;
	int64_t classes;  /* planted.classes */
	int64_t fold, of; /* the parts of `folds`, "F/K" */
	struct {
		hg_positional kind;
		int64_t columns;
	} encoding[ENCODINGS]; /* the parts of `positional` */
	int encodings;
};

/* Returns 0, or -1 with one line in message. options->inputs is a new array of pointers into argv,
 * which the caller frees. */
int options_parse(int argc, char **argv, struct options *options, char *message);
void options_help(void);

/* Describe a file, for people or as one JSON object. Returns an exit code. */
int inspect(const char *path, int json);

/* Report a reordering: lines for people, none where no search was made; or one JSON object with the
 * counts of the dataset, which returns 0 if memory ran out. */
void order_print(const hg_order_report *report);
int order_json(const hg_dataset *d, const hg_order_report *report, const char *path);
/* {"near_miss": ..., ...}; NULL if memory ran out. */
json_t *locality_json(const hg_locality *locality);
/* Text as a JSON string. JSON allows only UTF-8, so other bytes are escaped; NULL becomes null. */
json_t *json_text(const char *text);

#endif
