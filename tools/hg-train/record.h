#ifndef HG_TRAIN_RECORD_H
#define HG_TRAIN_RECORD_H

#include <stddef.h>

#include "halfgraph/train.h"

/* What a page shows of a run: it is noted while the run trains, or read from its JSON lines. */

struct epoch_row {
	/* val, test: NaN where there was no evaluation; scale: in force for the next step */
	double loss, train, val, test, scale, ms;
	int64_t epoch, step;
	int64_t applied; /* 0: the step was skipped */
	char outcome[56];
};
/* Doubles from one row to the next, for page_series. */
#define EPOCH_STRIDE ((int64_t)(sizeof(struct epoch_row) / sizeof(double)))
_Static_assert(sizeof(struct epoch_row) % sizeof(double) == 0, "rows are read as doubles");

/* One seed, or one fold of it. */
struct seed_record {
	int64_t seed;
	int fold;              /* -1: without folds */
	struct epoch_row *row; /* [rows] */
	int64_t rows, room;
	/* of the summary; known 0: the run has none for this seed, because it was interrupted */
	int known;
	int64_t epochs, best_epoch, skipped;
	double val, test, final_loss;
};

struct setting {
	char name[64], value[128];
};

struct record {
	char *name; /* what tells it from others: the name of its file; NULL for the only one */
	struct seed_record *seed; /* [seeds], of a cross-validation [seeds times folds] */
	int seeds, seed_room;
	struct setting *setting; /* [settings] */
	int settings, setting_room;
	/* of the summary, if it has one */
	int complete, finite, learnt, interrupted;
	char metric[32], loss[32];
	double test_mean, test_std, epoch_ms, peak_bytes;
	int64_t skipped;
	int failed; /* memory ran out: the page cannot be written */
};

/* The record of a seed and fold, added if there is none yet; NULL: memory ran out. */
struct seed_record *record_seed(struct record *r, int64_t seed, int fold);
void record_epoch(struct record *r, int64_t seed, int fold, const struct epoch_row *row);
/* Note an epoch of a run that trains. */
void record_event(struct record *r, int64_t seed, int fold, const hg_train_event *event);
/* Add a setting, or replace its value. */
void record_setting(struct record *r, const char *name, const char *value);
/* The same for an integer. The fingerprint of the targets is shown as such, not as a number. */
void record_integer(struct record *r, const char *name, int64_t value);
/* The value of a setting; NULL: it has none of this name. */
const char *record_find(const struct record *r, const char *name);
/* Add all settings of the state of a run. */
void record_state(struct record *r, const hg_state *state);
void record_free(struct record *r);

/* record_read.c: read the JSON lines of hg-train. Lines of other events are passed over. `message`
 * [HG_DATA_MESSAGE] names file, line and what is wrong. */
hg_status record_read(struct record *r, const char *path, char *message);

#endif
