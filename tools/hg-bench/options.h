#ifndef HG_BENCH_OPTIONS_H
#define HG_BENCH_OPTIONS_H

#include <stdint.h>

#include "halfgraph/ops_attention.h"
#include "halfgraph/policy.h"

#define MOST 16 /* values of one list */

/* The names and help texts of the commands, in the order of options.command. */
struct command_name {
	const char *name, *help;
};

/* The names of the scores of attention. */
extern const char *const attention_scores[HG_SCORE_COUNT];

/* The parsed command line. */
struct options {
	const struct command_name *commands;
	int command_count;
	int command; /* index into the table of commands */
	const char *graph, *variant, *peer, *json, *model, *reorder;
	hg_policy policy[MOST];
	int64_t features[MOST], heads[MOST], hidden, layers, repeat, threads, seed;
	int policies, widths, head_counts;
	int device, norm, aggregate; /* hg_device, hg_norm */
	double lambda, dropout;
	unsigned scores; /* bit k: the hg_score k */
	int observe;     /* 0 on, 1 off, 2 each step */
	int weights, separate, dense, algorithms, spoil, help;
};

/* Returns 0, or 2 after a sentence on stderr that names the option. */
int options_parse(int argc, char **argv, const struct command_name *commands, int count,
                  struct options *options);
void options_help(const struct command_name *commands, int count);

#endif
