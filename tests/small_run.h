#ifndef HG_TESTS_SMALL_RUN_H
#define HG_TESTS_SMALL_RUN_H

#include "planted.h"

/* A training run of a few milliseconds on 90 nodes with a hub, 11 features and 3 classes: for tests
 * of what a run saves and continues from. */
enum { SMALL_N = 90, SMALL_M = 600, SMALL_D = 11, SMALL_C = 3, SMALL_EPOCHS = 40 };

/* 0: the default. */
struct small_options {
	int columns;               /* features, at most SMALL_D, which is the default */
	const char *features_note; /* of hg_train_data; NULL: none */
	hg_train_fn progress;      /* called after the run's own progress function; NULL: none */
	void *user;
};

struct small_run {
	struct planted_run run;
	hg_context *ctx; /* those of the run */
	hg_train *train;
	hg_train_report report;
	struct small_options options;
	int events;                /* how many epochs had an event */
	double loss[SMALL_EPOCHS]; /* of these epochs */
	hg_step_info step;         /* of the last one */
};

/* Dropout, weight decay, and a loss scale that moves within a few steps. */
hg_train_config small_config(const char *model, const char *policy);
/* Creates the run. Takes the context. options NULL: the defaults. */
void small_open_with(struct small_run *r, hg_context *ctx, hg_train_config config,
                     const struct small_options *options);
void small_open(struct small_run *r, hg_context *ctx, hg_train_config config);
void small_close(struct small_run *r);
/* Trains the configured epochs. */
void small_train(struct small_run *r);
/* The state of the run, which the caller frees. */
hg_state *small_state(struct small_run *r);

/* Compares two states bit for bit, names and order included. With `settings` nonzero the settings
 * too. */
void check_same_state(const hg_state *a, const hg_state *b, int settings);

/* Compares the histories of two states bit for bit; the best epochs, with their weights. */
void check_same_history(const hg_state *a, const hg_state *b);
void check_same_best(const hg_state *a, const hg_state *b);

/* Trains for 20 epochs, and for 10 and 10 in two runs: hand_over carries the state of the first of
 * these to the second. Both ways must end in the same state with the same losses. c.epochs is
 * 10. */
void check_resumed_run(hg_context *(*open)(void), hg_train_config c,
                       void (*hand_over)(struct small_run *from, struct small_run *to));

#endif
