/* --features, --labels and --split: what a dataset that comes without them gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5convert.h"

/* "degree", "one-hot-degree" or "constant"; -1: it is the name of a file. */
static int made_features(const char *text)
{
	static const char *const words[] = {"constant", "degree", "one-hot-degree"};
	for (int k = 0; k < 3; k++)
		if (strcmp(text, words[k]) == 0)
			return k;
	return -1;
}

/* Number k of a split, "0.6" or "20" or "rest", up to the slash, colon or end. Returns its length,
 * or 0. */
static size_t parse_part(const char *text, int per_class, struct split *split, int k)
{
	const size_t length = strcspn(text, "/:");
	const int rest = length == 4 && strncmp(text, "rest", 4) == 0;
	if (rest) {
		split->count[k] = -1;
		split->fraction[k] = -1;
		return length;
	}
	const size_t digits = strspn(text, per_class ? "0123456789" : ".0123456789");
	if (digits == 0 || digits != length || digits > 9)
		return 0;
	if (per_class) {
		split->count[k] = strtol(text, NULL, 10);
		return length;
	}
	/* a decimal point in every locale, so strtod will not do */
	double value = 0, place = 1;
	int points = 0;
	for (size_t c = 0; c < length; c++) {
		if (text[c] == '.') {
			points++;
			continue;
		}
		value = 10 * value + (text[c] - '0');
		place *= points ? 10 : 1;
	}
	split->fraction[k] = value / place;
	return points < 2 && length > (size_t)points ? length : 0;
}

/* At most one fraction may be the rest. */
static int finish_fractions(struct split *split)
{
	double sum = 0;
	int rest = -1;
	for (int k = 0; k < 3; k++) {
		if (split->fraction[k] >= 0)
			sum += split->fraction[k];
		else if (rest >= 0)
			return 0;
		else
			rest = k;
	}
	if (rest >= 0)
		split->fraction[rest] = sum < 1 ? 1 - sum : 0;
	return sum <= 1 + 1e-9;
}

int split_parse(const char *text, struct split *split)
{
	static const char *const kinds[] = {"random:", "per-class:", "folds:"};
	*split = (struct split){.kind = SPLIT_RANDOM};
	while (split->kind < SPLIT_FILE &&
	       strncmp(text, kinds[split->kind], strlen(kinds[split->kind])) != 0)
		split->kind++;
	if (split->kind == SPLIT_FILE)
		return 1;
	const int fractions = split->kind == SPLIT_RANDOM, parts = split->kind == SPLIT_FOLDS ? 1 : 3;
	const char *at = text + strlen(kinds[split->kind]);
	for (int k = 0; k < parts; k++) {
		const size_t length = parse_part(at, !fractions, split, k);
		if (!length || (k < parts - 1 && at[length] != '/'))
			return 0;
		at += length + (k < parts - 1);
	}
	if (*at == ':') {
		const size_t digits = strspn(at + 1, "0123456789");
		if (digits == 0 || digits > 18)
			return 0;
		split->seed = strtoull(at + 1, NULL, 10);
		split->has_seed = 1;
		at += 1 + digits;
	}
	const int rests = (split->count[0] < 0) + (split->count[1] < 0) + (split->count[2] < 0);
	if (split->kind == SPLIT_FOLDS)
		return *at == 0 && split->count[0] >= 2;
	return *at == 0 && rests < 2 && (!fractions || finish_fractions(split));
}

int attach_is_file(const struct options *o, int which)
{
	const char *const text[] = {o->features, o->labels, o->split};
	if (!text[which] || (which == 0 && (o->synthetic || made_features(text[0]) >= 0)))
		return 0;
	return which < 2 || o->split_parts.kind == SPLIT_FILE;
}

hg_status attach_files(const struct options *o, hg_dataset *d, char *message)
{
	hg_status status = HG_OK;
	if (attach_is_file(o, 0))
		status = hg_dataset_load_features(d, o->features, message);
	if (status == HG_OK && attach_is_file(o, 1))
		status = hg_dataset_load_labels(d, o->labels, message);
	if (status == HG_OK && attach_is_file(o, 2))
		status = hg_dataset_load_split(d, o->split, message);
	return status;
}

hg_status attach_made_features(const struct options *o, hg_dataset *d, char *message)
{
	const int kind = o->features && !o->synthetic ? made_features(o->features) : -1;
	return kind < 0 ? HG_OK : hg_dataset_make_features(d, (hg_made_features)kind, message);
}

hg_status attach_split(const struct options *o, hg_dataset *d, char *message)
{
	const struct split *s = &o->split_parts;
	if (!o->split || s->kind == SPLIT_FILE)
		return HG_OK;
	if (s->kind == SPLIT_FOLDS)
		return hg_dataset_make_folds(d, s->count[0], s->seed, message);
	return s->kind == SPLIT_RANDOM ? hg_dataset_split_random(d, s->fraction, s->seed, message)
	                               : hg_dataset_split_per_class(d, s->count, s->seed, message);
}
