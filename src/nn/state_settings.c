/* The settings of a run: one table of fields for each struct that holds some. */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "core/typed.h"
#include "halfgraph/train.h"
#include "halfgraph/version.h"
#include "nn/state.h"

struct field {
	const char *name;
	enum { INT, INT64, FLOAT, DOUBLE, TEXT } type; /* enumerators have the size of int */
	size_t place;
	const struct words *words; /* of an enumerator; NULL: it is a number */
	int later;                 /* 1: states of version 0.1.0 lack it, where it was 0 */
};

/* What a message calls the values of an enumerator, from `least` on: as they are typed in the
 * options of hg-train. A NULL ends them. */
struct words {
	int least;
	const char *word[8];
};
static const struct words types = {HG_F16, {"f16", "f32", NULL}},
                          sums = {HG_ACC_F32, {"f32", "f16 in batches", "f16", NULL}},
                          unproved = {HG_UNPROVED_GUARD, {"guard", "promote", "refuse", NULL}},
                          optimizers = {HG_SGD, {"sgd", "adam", "adamw", NULL}},
                          norms = {HG_NORM_NONE,
                                   {"none", "left", "right", "both", "in", "weighted",
                                    "weighted-mean", NULL}},
                          aggregates = {HG_NORM_NONE, {"sum", "left", "mean", NULL}},
                          readouts = {-1, {"none", "sum", "mean", "max", NULL}},
                          feature_norms = {HG_BATCH_NORM, {"batch", "layer", NULL}},
                          depths = {HG_READOUT_LAYERS, {"layers", "last", "all", NULL}};

/* words: NULL or the address of one of the above */
#define POLICY_WORDS(field, words)                                  \
	{                                                               \
		"policy." #field, INT, offsetof(hg_policy, field), words, 0 \
	}
#define POLICY(field, type)                                         \
	{                                                               \
		"policy." #field, type, offsetof(hg_policy, field), NULL, 0 \
	}
static const struct field policy_fields[] = {POLICY(name, TEXT),
                                             POLICY_WORDS(state, &types),
                                             POLICY_WORDS(accumulate, &sums),
                                             POLICY_WORDS(unproved, &unproved),
                                             POLICY(replan, INT),
                                             POLICY(loss_scale.enabled, INT),
                                             POLICY(loss_scale.init_scale, FLOAT),
                                             POLICY(loss_scale.growth_factor, FLOAT),
                                             POLICY(loss_scale.backoff_factor, FLOAT),
                                             POLICY(loss_scale.growth_interval, INT),
                                             POLICY(loss_scale.min_scale, FLOAT),
                                             POLICY(loss_scale.max_scale, FLOAT),
                                             POLICY(loss_scale.hysteresis, INT)};

#define OPTIM_WORDS(field, words)                                        \
	{                                                                    \
		"optim." #field, INT, offsetof(hg_optim_config, field), words, 0 \
	}
#define OPTIM(field, type)                                               \
	{                                                                    \
		"optim." #field, type, offsetof(hg_optim_config, field), NULL, 0 \
	}
static const struct field optim_fields[] = {OPTIM_WORDS(kind, &optimizers),
                                            OPTIM(lr, FLOAT),
                                            OPTIM(weight_decay, FLOAT),
                                            OPTIM(momentum, FLOAT),
                                            OPTIM(nesterov, INT),
                                            OPTIM(beta1, FLOAT),
                                            OPTIM(beta2, FLOAT),
                                            OPTIM(eps, FLOAT),
                                            OPTIM(clip_norm, FLOAT)};

#define MODEL_WORDS(field, words)                                        \
	{                                                                    \
		"model." #field, INT, offsetof(hg_model_config, field), words, 0 \
	}
#define MODEL(field, type)                                               \
	{                                                                    \
		"model." #field, type, offsetof(hg_model_config, field), NULL, 0 \
	}
#define MODEL_LATER(field, type, words)                                   \
	{                                                                     \
		"model." #field, type, offsetof(hg_model_config, field), words, 1 \
	}
static const struct field model_fields[] = {MODEL(name, TEXT),
                                            MODEL(in_features, INT64),
                                            MODEL(out_features, INT64),
                                            MODEL(layers, INT),
                                            MODEL(hidden, INT),
                                            MODEL(heads, INT),
                                            MODEL(dropout, FLOAT),
                                            MODEL_WORDS(norm, &norms),
                                            MODEL(eps_learnable, INT),
                                            MODEL_WORDS(aggregate, &aggregates),
                                            MODEL(lambda, FLOAT),
                                            MODEL(negative_slope, FLOAT),
                                            MODEL(attention_dropout, FLOAT),
                                            MODEL(out_heads, INT),
                                            MODEL_WORDS(readout, &readouts),
                                            MODEL_LATER(feature_norm, INT, &feature_norms),
                                            MODEL_LATER(hops, INT, NULL),
                                            MODEL_LATER(teleport, FLOAT, NULL),
                                            MODEL_LATER(readout_layers, INT, &depths),
                                            MODEL_LATER(edge_features, INT64, NULL)};
static const struct words schedules = {
    HG_SCHEDULE_CONSTANT, {"constant", "step", "cosine", "one-cycle", "plateau", NULL}};
#define SCHEDULE(field, type, words)                                            \
	{                                                                           \
		"schedule." #field, type, offsetof(hg_schedule_config, field), words, 1 \
	}
static const struct field schedule_fields[] = {
    SCHEDULE(kind, INT, &schedules),  SCHEDULE(warmup, INT64, NULL), SCHEDULE(every, INT64, NULL),
    SCHEDULE(total, INT64, NULL),     SCHEDULE(patience, INT, NULL), SCHEDULE(factor, DOUBLE, NULL),
    SCHEDULE(least, DOUBLE, NULL),    SCHEDULE(start, DOUBLE, NULL), SCHEDULE(rise, DOUBLE, NULL),
    SCHEDULE(threshold, DOUBLE, NULL)};
/* A constant rate without a warm-up has these alone: of it, states of version 0.1.0 lack nothing
 * that is not 0. */
#define CONSTANT_FIELDS 2

static const struct words losses = {HG_LOSS_CROSS_ENTROPY,
                                    {"cross-entropy", "bce", "mse", "mae", NULL}};
static const struct field train_fields[] = {
    {"train.loss", INT, offsetof(hg_train_config, loss), &losses, 1},
    {"train.raw_targets", INT, offsetof(hg_train_config, raw_targets), NULL, 1},
    {"train.batch_graphs", INT64, offsetof(hg_train_config, batch_graphs), NULL, 1},
    {"train.label_smoothing", FLOAT, offsetof(hg_train_config, label_smoothing), NULL, 1}};
_Static_assert(sizeof(hg_norm) == sizeof(int) && sizeof(hg_dtype) == sizeof(int),
               "enumerators are read as int");

static hg_status check_added(hg_context *ctx, hg_status status, const char *name)
{
	return status < 0 ? hg__fail(ctx, status, "state: setting %s: %s", name, hg_status_text(status))
	                  : HG_OK;
}

/* The kind of a field's setting. */
static hg_setting_kind kind_of(const struct field *f)
{
	return f->type == FLOAT || f->type == DOUBLE ? HG_SETTING_REAL
	       : f->type == TEXT                     ? HG_SETTING_TEXT
	                                             : HG_SETTING_INTEGER;
}

/* Reads a field of a struct and widens it. */
static hg_setting read_field(const struct field *f, const void *from)
{
	const unsigned char *at = (const unsigned char *)from + f->place;
	hg_setting s = {.kind = kind_of(f)};
	int small = 0;
	float real = 0.0f;
	const char *text = NULL;
	(void)snprintf(s.name, sizeof s.name, "%s", f->name);
	if (f->type == INT64)
		memcpy(&s.integer, at, sizeof s.integer);
	else if (f->type == DOUBLE)
		memcpy(&s.real, at, sizeof s.real);
	else
		memcpy(f->type == INT     ? (void *)&small
		       : f->type == FLOAT ? (void *)&real
		                          : (void *)&text,
		       at, f->type == TEXT ? sizeof text : sizeof small);
	if (f->type == INT)
		s.integer = small;
	if (f->type == FLOAT)
		s.real = (double)real;
	(void)snprintf(s.text, sizeof s.text, "%s", text ? text : "");
	return s;
}

static hg_status note_fields(hg_state *state, hg_context *ctx, const struct field *fields,
                             size_t count, const void *from)
{
	for (size_t k = 0; k < count; k++) {
		const hg_setting s = read_field(&fields[k], from);
		HG__TRY(check_added(ctx, hg_state_add_setting(state, &s), s.name));
	}
	return HG_OK;
}
#define NOTE_ALL(state, ctx, fields, from) \
	note_fields(state, ctx, fields, sizeof(fields) / sizeof((fields)[0]), from)

hg_status hg__state_note_text(hg_state *state, hg_context *ctx, const char *name, const char *text)
{
	const struct field f = {name, TEXT, 0, NULL, 0};
	return note_fields(state, ctx, &f, 1, &text);
}

hg_status hg__state_note_integer(hg_state *state, hg_context *ctx, const char *name, int64_t value)
{
	const struct field f = {name, INT64, 0, NULL, 0};
	return note_fields(state, ctx, &f, 1, &value);
}

hg_status hg__state_note_model(hg_state *state, hg_context *ctx, const hg_model_config *config)
{
	return NOTE_ALL(state, ctx, model_fields, config);
}

hg_status hg__state_note_train(hg_state *state, hg_context *ctx, const hg_train_config *config)
{
	return NOTE_ALL(state, ctx, train_fields, config);
}

hg_status hg__state_note_real(hg_state *state, hg_context *ctx, const char *name, double value)
{
	hg_setting s = {.kind = HG_SETTING_REAL, .real = value};
	(void)snprintf(s.name, sizeof s.name, "%s", name);
	return check_added(ctx, hg_state_add_setting(state, &s), s.name);
}

hg_status hg__state_note_context(hg_state *state, hg_context *ctx, uint64_t seed)
{
	HG__TRY(hg__state_note_text(state, ctx, "library", hg_version_string()));
	HG__TRY(hg__state_note_text(state, ctx, "device",
	                            hg_context_device(ctx) == HG_DEVICE_CUDA ? "cuda" : "cpu"));
	HG__TRY(hg__state_note_integer(state, ctx, "seed", (int64_t)seed));
	return hg__state_note_integer(state, ctx, "separate_ops", ctx->separate_ops);
}

hg_status hg__state_note_optim(hg_state *state, const hg_optim *optim)
{
	hg_context *ctx = optim->params->ctx;
	HG__TRY(hg__state_note_context(state, ctx, optim->params->seed));
	HG__TRY(NOTE_ALL(state, ctx, policy_fields, &optim->params->policy));
	HG__TRY(NOTE_ALL(state, ctx, optim_fields, &optim->config));
	const hg_schedule_config *schedule = &optim->schedule;
	return schedule->kind || schedule->warmup
	           ? NOTE_ALL(state, ctx, schedule_fields, schedule)
	           : note_fields(state, ctx, schedule_fields, CONSTANT_FIELDS, schedule);
}

/* ---- reading them back ---- */

const char *hg__state_origin(const hg_state *state)
{
	return state->origin ? state->origin : "the state";
}

static int fits(const struct field *f, const hg_setting *s)
{
	return s->kind == kind_of(f) &&
	       (f->type != INT || (s->integer >= INT_MIN && s->integer <= INT_MAX));
}

static void write_field(const struct field *f, const hg_setting *s, void *to)
{
	unsigned char *at = (unsigned char *)to + f->place;
	const int small = f->type == INT ? (int)s->integer : 0;
	const float real = (float)s->real;
	const char *text = s->text;
	switch (f->type) {
	case INT:
		memcpy(at, &small, sizeof small);
		break;
	case INT64:
		memcpy(at, &s->integer, sizeof s->integer);
		break;
	case FLOAT:
		memcpy(at, &real, sizeof real);
		break;
	case DOUBLE:
		memcpy(at, &s->real, sizeof s->real);
		break;
	case TEXT:
		memcpy(at, &text, sizeof text);
		break;
	}
}

static hg_status read_fields(const hg_state *state, hg_context *ctx, const struct field *fields,
                             size_t count, void *to)
{
	for (size_t k = 0; k < count; k++) {
		const hg_setting *s = hg_state_find_setting(state, fields[k].name);
		if (!s && fields[k].later)
			continue; /* the default is what the version before it did */
		if (!s || !fits(&fields[k], s))
			return hg__fail(ctx, HG_ERR_ARG, "%s: the setting %s is %s: not the state of a run",
			                hg__state_origin(state), fields[k].name,
			                s ? "of another type" : "missing");
		write_field(&fields[k], s, to);
	}
	return HG_OK;
}
#define READ_ALL(state, ctx, fields, to) \
	read_fields(state, ctx, fields, sizeof(fields) / sizeof((fields)[0]), to)

hg_status hg__state_read_policy(const hg_state *state, hg_context *ctx, hg_policy *policy)
{
	return READ_ALL(state, ctx, policy_fields, policy);
}

hg_status hg__state_read_model(const hg_state *state, hg_context *ctx, hg_model_config *config)
{
	const hg_setting *name = hg_state_find_setting(state, "model.name");
	*config = hg_model_config_default(name ? name->text : NULL);
	return READ_ALL(state, ctx, model_fields, config);
}

/* ---- as text ---- */

static const struct field *find_field(const char *name)
{
	static const struct {
		const struct field *field;
		size_t count;
	} tables[] = {{policy_fields, sizeof policy_fields / sizeof *policy_fields},
	              {optim_fields, sizeof optim_fields / sizeof *optim_fields},
	              {model_fields, sizeof model_fields / sizeof *model_fields},
	              {schedule_fields, sizeof schedule_fields / sizeof *schedule_fields},
	              {train_fields, sizeof train_fields / sizeof *train_fields}};
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (size_t k = 0; k < tables[t].count; k++)
			if (strcmp(tables[t].field[k].name, name) == 0)
				return &tables[t].field[k];
	return NULL;
}

/* The word for the value of an enumerator; NULL: it has none, or is a number. */
static const char *find_word(const hg_setting *s)
{
	const struct field *field = find_field(s->name);
	const struct words *words = field ? field->words : NULL;
	const char *const *word = words ? words->word : NULL;
	for (int64_t value = words ? words->least : 0; word && *word && value < s->integer; value++)
		word++;
	return word && s->integer >= words->least ? *word : NULL;
}

/* A float as a person types it, "0.01"; otherwise nine digits. */
static void real_text(double x, char *text, size_t size)
{
	char typed[HG__TYPED];
	if ((double)(float)x == x)
		(void)snprintf(text, size, "%s", hg__typed((float)x, typed));
	else
		(void)hg__print(text, size, "%.9g", x);
}

void hg__setting_text(const hg_setting *s, char *text, size_t size)
{
	const char *word = s && s->kind == HG_SETTING_INTEGER ? find_word(s) : NULL;
	if (!s)
		(void)snprintf(text, size, "not known");
	else if (s->kind == HG_SETTING_TEXT)
		(void)snprintf(text, size, "%s", s->text);
	else if (s->kind == HG_SETTING_REAL)
		real_text(s->real, text, size);
	else if (word)
		(void)snprintf(text, size, "%s", word);
	else
		(void)snprintf(text, size, "%lld", (long long)s->integer);
}

int hg__setting_is_later(const char *name)
{
	const struct field *field = find_field(name);
	return field && field->later;
}
