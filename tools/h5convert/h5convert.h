#ifndef HG_H5CONVERT_H
#define HG_H5CONVERT_H

#include <jansson.h>
#include <stddef.h>

#include "about.h"
#include "halfgraph/data.h"

/* The most positional encodings of one run. */
enum { ENCODINGS = 4 };

/* The parts of --split: a file, "random:0.6/0.2/0.2:SEED", "per-class:20/30/rest:SEED" or
 * "folds:10:SEED". */
struct split {
	enum { SPLIT_RANDOM, SPLIT_PER_CLASS, SPLIT_FOLDS, SPLIT_FILE } kind;
	double fraction[3];
	int64_t count[3]; /* -1: the rest; of folds the first, their number */
	uint64_t seed;
	int has_seed; /* 1: the text names the seed */
};

/* The parsed command line. */
struct options {
	const char *from, *output, *synthetic, *inspect, *seal, *export, *check;
	const char *name, *features_dtype, *reorder, *folds, *positional;
	const char *features, *labels, *split,
	    *target; /* features: with --synthetic the number of columns */
	struct split split_parts;
	const char **inputs;
	int input_count;
	int header; /* an hg_header */
	int symmetrize, self_loops, largest_component, row_normalize, standardize, clip, json, quiet,
	    help, version, list_formats;
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
/* What --help and the man page say. */
extern const struct tool_about options_about;

/* Returns 0 where --split is none of its forms. */
int split_parse(const char *text, struct split *split);
/* Is --features (0), --labels (1) or --split (2) given as a file? */
int attach_is_file(const struct options *o, int which);
/* What the options give: files, which belong to the input as it is; features of the graph; a random
 * split. */
hg_status attach_files(const struct options *o, hg_dataset *d, char *message);
hg_status attach_made_features(const struct options *o, hg_dataset *d, char *message);
hg_status attach_split(const struct options *o, hg_dataset *d, char *message);

/* Describe a file, for people or as one JSON object. Returns an exit code. */
int inspect(const char *path, int json);

/* Print the fitness of the dataset in `path`, for people or as lines of JSON. Returns an exit
 * code. */
int fitness_print(const char *path, const hg_fitness *report);
int fitness_json(const char *path, const hg_fitness *report);

/* Report a reordering: lines for people, none where no search was made; or one JSON object with the
 * counts of the dataset, which returns 0 if memory ran out. */
void order_print(const hg_order_report *report);
int order_json(const hg_dataset *d, const hg_order_report *report, const char *path);
/* {"near_miss": ..., ...}; NULL if memory ran out. */
json_t *locality_json(const hg_locality *locality);
/* Text as a JSON string. JSON allows only UTF-8, so other bytes are escaped; NULL becomes null. */
json_t *json_text(const char *text);

#endif
