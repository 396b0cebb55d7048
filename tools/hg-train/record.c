/* What a page shows of a run, noted while it trains. */
#include "record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One more element of `size` bytes; NULL: memory ran out, and the array stays. */
static void *grown(void *array, int64_t count, int64_t *room, size_t size)
{
	if (count < *room)
		return array;
	const int64_t more = *room ? 2 * *room : 16;
	void *longer = realloc(array, (size_t)more * size);
	if (longer)
		*room = more;
	return longer;
}

struct seed_record *record_seed(struct record *r, int64_t seed, int fold)
{
	for (int i = 0; i < r->seeds; i++)
		if (r->seed[i].seed == seed && r->seed[i].fold == fold)
			return &r->seed[i];
	int64_t room = r->seed_room;
	struct seed_record *seeds = grown(r->seed, r->seeds, &room, sizeof *seeds);
	if (!seeds) {
		r->failed = 1;
		return NULL;
	}
	r->seed = seeds;
	r->seed_room = (int)room;
	seeds[r->seeds] = (struct seed_record){.seed = seed,
	                                       .fold = fold,
	                                       .val = (double)NAN,
	                                       .test = (double)NAN,
	                                       .final_loss = (double)NAN};
	return &seeds[r->seeds++];
}

void record_epoch(struct record *r, int64_t seed, int fold, const struct epoch_row *row)
{
	struct seed_record *s = record_seed(r, seed, fold);
	struct epoch_row *rows = s ? grown(s->row, s->rows, &s->room, sizeof *rows) : NULL;
	if (!rows) {
		r->failed = 1;
		return;
	}
	s->row = rows;
	rows[s->rows++] = *row;
}

void record_event(struct record *r, int64_t seed, int fold, const hg_train_event *e)
{
	struct epoch_row row = {.loss = e->loss,
	                        .train = e->train_metric,
	                        .val = e->val_metric,
	                        .test = e->test_metric,
	                        .scale = (double)e->step.loss_scale,
	                        .ms = e->epoch_ms,
	                        .epoch = e->epoch,
	                        .step = e->step.steps - 1,
	                        .applied = e->step.applied};
	(void)snprintf(row.outcome, sizeof row.outcome, "%s", hg_step_reason_text(e->step.reason));
	record_epoch(r, seed, fold, &row);
}

void record_setting(struct record *r, const char *name, const char *value)
{
	struct setting *at = NULL;
	for (int i = 0; i < r->settings; i++)
		if (strcmp(r->setting[i].name, name) == 0)
			at = &r->setting[i];
	if (!at) {
		int64_t room = r->setting_room;
		struct setting *longer = grown(r->setting, r->settings, &room, sizeof *longer);
		if (!longer) {
			r->failed = 1;
			return;
		}
		r->setting = longer;
		r->setting_room = (int)room;
		at = &longer[r->settings++];
	}
	(void)snprintf(at->name, sizeof at->name, "%s", name);
	(void)snprintf(at->value, sizeof at->value, "%s", value);
}

void record_integer(struct record *r, const char *name, int64_t value)
{
	char text[32];
	if (strcmp(name, "data.targets") == 0)
		(void)snprintf(text, sizeof text, "#%016" PRIx64, (uint64_t)value);
	else
		(void)snprintf(text, sizeof text, "%" PRId64, value);
	record_setting(r, name, text);
}

const char *record_find(const struct record *r, const char *name)
{
	for (int i = 0; i < r->settings; i++)
		if (strcmp(r->setting[i].name, name) == 0)
			return r->setting[i].value;
	return NULL;
}

/* Enumerators, as the options of hg-train name them. */
static const struct {
	const char *name;
	int least;
	const char *word[8];
} words[] = {{"policy.state", HG_F16, {"f16", "f32", NULL}},
             {"policy.accumulate", HG_ACC_F32, {"f32", "f16 in batches", "f16", NULL}},
             {"policy.unproved", HG_UNPROVED_GUARD, {"guard", "promote", "refuse", NULL}},
             {"optim.kind", HG_SGD, {"sgd", "adam", "adamw", NULL}},
             {"model.norm",
              HG_NORM_NONE,
              {"none", "left", "right", "both", "in", "weighted", "weighted-mean", NULL}},
             {"model.aggregate", HG_NORM_NONE, {"sum", "left", "mean", NULL}},
             {"model.readout", -1, {"none", "sum", "mean", "max", NULL}},
             {"model.feature_norm", HG_BATCH_NORM, {"batch", "layer", NULL}},
             {"train.loss", HG_LOSS_CROSS_ENTROPY, {"cross-entropy", "bce", "mse", "mae", NULL}}};

/* NULL: the setting is a number, or has no such word. */
static const char *word_of(const hg_setting *s)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (int k = 0; strcmp(words[i].name, s->name) == 0 && words[i].word[k]; k++)
			if (s->integer == words[i].least + k)
				return words[i].word[k];
	return NULL;
}

void record_state(struct record *r, const hg_state *state)
{
	for (int64_t i = 0; i < state->settings; i++) {
		const hg_setting *s = &state->setting[i];
		const char *word = s->kind == HG_SETTING_INTEGER ? word_of(s) : NULL;
		char value[64];
		if (word || s->kind == HG_SETTING_TEXT) {
			record_setting(r, s->name, word ? word : s->text);
		} else if (s->kind == HG_SETTING_INTEGER) {
			record_integer(r, s->name, s->integer);
		} else {
			(void)snprintf(value, sizeof value, s->real == rint(s->real) ? "%.10g" : "%.7g",
			               s->real);
			record_setting(r, s->name, value);
		}
	}
}

void record_free(struct record *r)
{
	for (int i = 0; i < r->seeds; i++)
		free(r->seed[i].row);
	free(r->seed);
	free(r->setting);
	free(r->name);
	*r = (struct record){0};
}
