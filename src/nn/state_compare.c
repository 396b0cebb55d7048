/* Which settings of two states differ. */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "nn/state.h"

static int is_absent(const hg_setting *a, const char *name)
{
	return strcmp(a->name, name) == 0 && a->integer == 0;
}

/* What a state of version 0.1.0 does not tell: later fields, how the data was prepared, and by what
 * its best epoch was chosen. */
static int is_untold(const hg_setting *a)
{
	static const char *const names[] = {HG__ROWS_NORMALIZED, HG__SELF_LOOPS, HG__UNWEIGHTED,
	                                    HG__TARGETS,         HG__METRIC,     HG__STANDARDIZED};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (strcmp(names[k], a->name) == 0)
			return 1;
	return is_absent(a, HG__CLASS_WEIGHTS) ||
	       (hg__setting_is_later(a->name) && a->integer == 0 && a->real == 0.0);
}

static int same_setting(const hg_setting *a, const hg_setting *b)
{
	if (!b)
		return is_untold(a);
	return a->kind == b->kind && a->integer == b->integer && a->real >= b->real &&
	       a->real <= b->real && strcmp(a->text, b->text) == 0;
}

static int is_difference(const hg_setting *s, const hg_state *theirs, const char *prefix)
{
	return strncmp(s->name, prefix, strlen(prefix)) == 0 &&
	       !same_setting(s, hg_state_find_setting(theirs, s->name));
}

const hg_setting *hg__state_difference(const hg_state *ours, const hg_state *theirs,
                                       const char *prefix)
{
	for (int64_t i = 0; i < ours->settings; i++)
		if (is_difference(&ours->setting[i], theirs, prefix))
			return &ours->setting[i];
	return NULL;
}

/* Labels, splits and class weights are known by a hash, which tells nobody anything. The first
 * difference names the state. */
static int describe(const hg_setting *s, const hg_state *theirs, int first, char *text, size_t size)
{
	char found[80], expected[80];
	if (strcmp(s->name, HG__TARGETS) == 0)
		return hg__print(text, size, "%slabels, targets or splits differ from those of %s",
		                 first ? "" : "; ", first ? hg__state_origin(theirs) : "the state");
	if (strcmp(s->name, HG__CLASS_WEIGHTS) == 0)
		return hg__print(text, size, "%sthe class weights differ from those of %s",
		                 first ? "" : "; ", first ? hg__state_origin(theirs) : "the state");
	if (strcmp(s->name, HG__STANDARDIZED) == 0)
		return hg__print(text, size,
		                 "%sthe columns of the features were standardised otherwise than those of "
		                 "%s",
		                 first ? "" : "; ", first ? hg__state_origin(theirs) : "the state");
	hg__setting_text(hg_state_find_setting(theirs, s->name), found, sizeof found);
	hg__setting_text(s, expected, sizeof expected);
	return hg__print(text, size, "%s%s is %s%s%s, the run has %s", first ? "" : "; ", s->name,
	                 found, first ? " in " : "", first ? hg__state_origin(theirs) : "", expected);
}

/* A message has room for a few of them. */
#define SHOWN 4

int hg__state_differences(const hg_state *ours, const hg_state *theirs, char *text, size_t size)
{
	int found = 0;
	for (int64_t i = 0; i < ours->settings; i++)
		if (is_difference(&ours->setting[i], theirs, "") && ++found <= SHOWN) {
			const size_t length = found > 1 ? strlen(text) : 0;
			(void)describe(&ours->setting[i], theirs, found == 1, text + length, size - length);
		}
	if (found > SHOWN) {
		const size_t length = strlen(text);
		(void)hg__print(text + length, size - length, "; and %d more settings differ",
		                found - SHOWN);
	}
	return found;
}
