/* The settings of a run: one table of fields for each struct that holds some. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "core/typed.h"
#include "halfgraph/version.h"
#include "nn/state.h"

struct field {
	const char *name;
	enum { INT, INT64, FLOAT, TEXT } type; /* enumerators have the size of int */
	size_t place;
	const struct words *words; /* of an enumerator; NULL: it is a number */
	int later;                 /* 1: states of version 0.1.0 lack it, where it was 0 */
};

/* What a message calls the values of an enumerator, from `least` on: as they are typed in the
 * options of hg-train. A NULL ends them. */
struct words {
	int least;
	const char *word[6];
};
static const struct words types = {HG_F16, {"f16", "f32", NULL}},
                          sums = {HG_ACC_F32, {"f32", "f16 in batches", "f16", NULL}},
                          unproved = {HG_UNPROVED_GUARD, {"guard", "promote", "refuse", NULL}},
                          optimizers = {HG_SGD, {"sgd", "adam", "adamw", NULL}},
                          norms = {HG_NORM_NONE, {"none", "left", "right", "both", "in", NULL}},
                          aggregates = {HG_NORM_NONE, {"sum", "left", "mean", NULL}},
                          readouts = {-1, {"none", "sum", "mean", "max", NULL}},
                          feature_norms = {HG_BATCH_NORM, {"batch", "layer", NULL}};

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
#define MODEL_LATER(field, words)                                        \
	{                                                                    \
		"model." #field, INT, offsetof(hg_model_config, field), words, 1 \
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
                                            MODEL_LATER(feature_norm, &feature_norms)};
_Static_assert(sizeof(hg_norm) == sizeof(int) && sizeof(hg_dtype) == sizeof(int),
               "enumerators are read as int");

static hg_status check_added(hg_context *ctx, hg_status status, const char *name)
{
	return status < 0 ? hg__fail(ctx, status, "state: setting %s: %s", name, hg_status_text(status))
	                  : HG_OK;
}

/* Reads a field of a struct and widens it. */
static hg_setting read_field(const struct field *f, const void *from)
{
	const unsigned char *at = (const unsigned char *)from + f->place;
	hg_setting s = {.kind = f->type == FLOAT  ? HG_SETTING_REAL
	                        : f->type == TEXT ? HG_SETTING_TEXT
	                                          : HG_SETTING_INTEGER};
	int small = 0;
	float real = 0.0f;
	const char *text = NULL;
	(void)snprintf(s.name, sizeof s.name, "%s", f->name);
	if (f->type == INT64)
		memcpy(&s.integer, at, sizeof s.integer);
	else
		memcpy(f->type == INT     ? (void *)&small
		       : f->type == FLOAT ? (void *)&real
		                          : (void *)&text,
		       at, f->type == TEXT ? sizeof text : sizeof small);
	if (f->type == INT)
		s.integer = small;
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

hg_status hg__state_note_optim(hg_state *state, const hg_optim *optim)
{
	hg_context *ctx = optim->params->ctx;
	HG__TRY(hg__state_note_text(state, ctx, "library", hg_version_string()));
	HG__TRY(hg__state_note_text(state, ctx, "device",
	                            hg_context_device(ctx) == HG_DEVICE_CUDA ? "cuda" : "cpu"));
	HG__TRY(hg__state_note_integer(state, ctx, "seed", (int64_t)ctx->seed));
	HG__TRY(hg__state_note_integer(state, ctx, "separate_ops", ctx->separate_ops));
	HG__TRY(NOTE_ALL(state, ctx, policy_fields, &optim->params->policy));
	return NOTE_ALL(state, ctx, optim_fields, &optim->config);
}

/* ---- as text ---- */

static const struct field *find_field(const char *name)
{
	static const struct {
		const struct field *field;
		size_t count;
	} tables[] = {{policy_fields, sizeof policy_fields / sizeof *policy_fields},
	              {optim_fields, sizeof optim_fields / sizeof *optim_fields},
	              {model_fields, sizeof model_fields / sizeof *model_fields}};
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

/* ---- comparing ---- */

static int same_setting(const hg_setting *a, const hg_setting *b)
{
	if (!b) {
		const struct field *field = find_field(a->name);
		return field && field->later && a->integer == 0;
	}
	return a->kind == b->kind && a->integer == b->integer && a->real >= b->real &&
	       a->real <= b->real && strcmp(a->text, b->text) == 0;
}

const hg_setting *hg__state_difference(const hg_state *ours, const hg_state *theirs,
                                       const char *prefix)
{
	for (int64_t i = 0; i < ours->settings; i++) {
		const hg_setting *s = &ours->setting[i];
		if (strncmp(s->name, prefix, strlen(prefix)) == 0 &&
		    !same_setting(s, hg_state_find_setting(theirs, s->name)))
			return s;
	}
	return NULL;
}
