#ifndef HG_TRAIN_OPTIONS_H
#define HG_TRAIN_OPTIONS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "about.h"
#include "training.h"

/* The most runs of --compare: as many as there are colours of curves. */
enum { COMPARED_MOST = 8 };

struct options {
	struct training training;
	const char *json, *save, *save_best, *resume, *import, *export, *metric;
	const char *go_on; /* --continue: the checkpoint to resume, if it exists, and to save */
	/* the dataset of --evaluate or --predict, the model, and the file for predictions */
	const char *evaluate, *predict, *checkpoint, *output;
	struct {
		int wanted, layer, of_nodes; /* as in hg_predict_config */
	} embed;
	const char *html, *trace; /* what is written about a run */
	/* --compare, and the files after it */
	int compare, compared;
	const char *run[COMPARED_MOST];
	/* -1: not given, the model's default holds */
	int64_t patience, eval_every, save_every, batch_size, together, seeds, observe;
	const char *config, *save_config;
	json_t *given, *held; /* the options that were given (config.h); what they point to */
	int folds, features_on_host, print_plan, explain, doctor, help, version;
};

/* Returns 0, or -1 with one line that names the option in `message`. options_free ends its use,
 * also after a failure. */
int options_parse(struct options *o, int argc, char **argv, char *message, size_t size);
void options_free(struct options *o);
/* 1: a run is trained. 0: only a checkpoint is used (predict.h). */
int options_train(const struct options *o);
/* What --help and the man page say. */
struct tool_about options_about(void);

#endif
