#ifndef HG_BENCH_OPTIONS_H
#define HG_BENCH_OPTIONS_H

#include <stdint.h>

#include "about.h"
#include "halfgraph/ops_attention.h"
#include "halfgraph/policy.h"

#define MOST 16 /* values of one list */
#define READOUT_UNSET (-1)

/* The commands, in the order of options.command. */
enum { COMMANDS = 11 };
extern const struct tool_row command_names[COMMANDS];

/* The names of the scores of attention. */
extern const char *const attention_scores[HG_SCORE_COUNT];

/* The parsed command line. */
struct options {
	int command; /* index into the table of commands */
	const char *graph, *variant, *peer, *json, *model, *reorder;
	hg_policy policy[MOST];
	int64_t features[MOST], heads[MOST], hidden, layers, batch, repeat, threads, seed;
	int64_t models[MOST], branches;
	int policies, widths, head_counts, model_counts;
	int device, norm, aggregate; /* hg_device, hg_norm */
	int readout;                 /* 0: none; 1 + hg_reduce; READOUT_UNSET until main sets it */
	double lambda, dropout;
	unsigned scores; /* bit k: the hg_score k */
	int observe;     /* 0 on, 1 off, 2 each step */
	int weights, separate, dense, on_host, algorithms, spoil, help;
};

/* Returns 0, or 2 after a sentence on stderr that names the option. */
int options_parse(int argc, char **argv, struct options *options);
/* Whether --model asks for this one. */
int options_have_model(const struct options *options, const char *model);
/* What --help says, and the man page. */
extern const struct tool_about options_about;

#endif
