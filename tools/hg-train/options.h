#ifndef HG_TRAIN_OPTIONS_H
#define HG_TRAIN_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

#include "training.h"

struct options {
	struct training training;
	const char *json, *save, *resume;
	/* -1: not given, the model's default holds */
	int64_t patience, eval_every, together, seeds, observe;
	int print_plan, explain, doctor, help, version;
};

/* Returns 0, or -1 with one line that names the option in `message`. */
int options_parse(struct options *o, int argc, char **argv, char *message, size_t size);
/* Print the text of --help. */
void options_help(FILE *out);

#endif
