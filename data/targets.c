/* The columns of the real targets and their names. */
#include "targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hg__target_name(const hg_dataset *d, int64_t column, size_t *length)
{
	const char *at = d->target_names;
	for (; at && column > 0; column--) {
		at = strchr(at, '\n');
		at += at != NULL;
	}
	*length = at ? strcspn(at, "\n") : 0;
	return at;
}

hg_status hg__target_names_check(const hg_dataset *d, const char *origin, char *message)
{
	int64_t names = 1, empty = 0;
	if (!d->target_names)
		return HG_OK;
	const size_t length = strlen(d->target_names);
	for (size_t k = 0; k < length; k++)
		names += d->target_names[k] == '\n';
	for (int64_t c = 0; c < names && !empty; c++) {
		size_t bytes = 0;
		(void)hg__target_name(d, c, &bytes);
		empty = bytes == 0;
	}
	if (names == d->targets && !empty && length <= HG__TEXT_MAX)
		return HG_OK;
	return hg__data_fail(message, HG_ERR_FORMAT,
	                     "%s: targets: %" PRId64 " names%s for %" PRId64
	                     " columns, expected one each, of at most %d bytes in sum",
	                     origin, names, empty ? ", empty ones among them," : "", d->targets,
	                     HG__TEXT_MAX);
}

/* The column with the name, or else with the number; -1: there is none. */
static int64_t find(const hg_dataset *d, const char *target)
{
	const size_t digits = strspn(target, "0123456789");
	for (int64_t c = 0; d->target_names && c < d->targets; c++) {
		size_t length = 0;
		const char *name = hg__target_name(d, c, &length);
		if (name && strlen(target) == length && memcmp(name, target, length) == 0)
			return c;
	}
	const int64_t column =
	    digits > 0 && digits < 18 && !target[digits] ? strtoll(target, NULL, 10) : -1;
	return column < d->targets ? column : -1;
}

static hg_status not_found(const hg_dataset *d, const char *target, char *message)
{
	char names[200] = "";
	size_t used = 0;
	for (const char *c = d->target_names; c && *c && used + 3 < sizeof names; c++)
		used += (size_t)snprintf(names + used, sizeof names - used, "%s%c", *c == '\n' ? "," : "",
		                         *c == '\n' ? ' ' : *c);
	return hg__data_fail(message, HG_ERR_ARG,
	                     "%s has no target \"%.60s\", expected %s%sa number from 0 to "
	                     "%" PRId64,
	                     hg__data_name(d), target, names, *names ? ", or " : "", d->targets - 1);
}

hg_status hg_dataset_keep_target(hg_dataset *d, const char *target, char *message)
{
	float *kept = NULL;
	char *name = NULL;
	size_t length = 0;
	if (!d || !target)
		return hg__data_fail(message, HG_ERR_ARG, "keep_target: %s is NULL",
		                     d ? "target" : "dataset");
	if (!d->target)
		return hg__data_fail(message, HG_ERR_STATE, "%s has no real targets", hg__data_name(d));
	const int64_t column = find(d, target), n = hg__data_labelled(d);
	if (column < 0)
		return not_found(d, target, message);
	const char *old = hg__target_name(d, column, &length);
	HG__TRY(hg__data_alloc(n, sizeof *kept, "targets", (void **)&kept, message));
	if (old) {
		const hg_status status =
		    hg__data_alloc((int64_t)length + 1, 1, "a name", (void **)&name, message);
		if (status < 0) {
			free(kept);
			return status;
		}
		memcpy(name, old, length);
		name[length] = 0;
	}
	for (int64_t i = 0; i < n; i++)
		kept[i] = d->target[i * d->targets + column];
	free(d->target);
	free(d->target_names);
	d->target = kept;
	d->target_names = name;
	d->targets = 1;
	return HG_OK;
}
