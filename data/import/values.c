/* Read labels and targets, and tell classes from real targets. */
#include "import/values.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "import/number.h"

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Add the field from `text` to `end`. */
static hg_status add_value(struct hg__numbers *v, const struct lines *lines, const char *line,
                           const char *text, const char *end)
{
	double x = 0;
	while (text < end && is_blank(*text))
		text++;
	while (text < end && is_blank(end[-1]))
		end--;
	const int missing =
	    text == end ||
	    (end - text == 3 && (strncmp(text, "nan", 3) == 0 || strncmp(text, "NaN", 3) == 0));
	if (!missing && (hg__number_read(text, &x) != end || !(fabs(x) <= (double)FLT_MAX)))
		return hg__lines_fail(lines, "expected finite numbers, nan or nothing", line);
	if (v->count == v->room) {
		const int64_t room = v->room + v->room / 2 + 1024;
		HG__TRY(hg__data_grow((void **)&v->at, room, sizeof *v->at, "labels", lines->message));
		v->room = room;
	}
	v->at[v->count++] = missing ? NAN : (float)x;
	return HG_OK;
}

hg_status hg__values_add(const struct lines *lines, const char *line, void *to)
{
	struct hg__numbers *v = to;
	const char *at = line;
	int64_t width = 0;
	for (int more = 1; more; width++) {
		const char *end = at + strcspn(at, ",");
		HG__TRY(add_value(v, lines, line, at, end));
		more = *end == ',';
		at = end + more;
	}
	if (v->rows > 0 && width != v->width)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": %" PRId64 " columns, expected %" PRId64 " as before",
		                     lines->path, lines->number, width, v->width);
	v->width = width;
	v->rows++;
	return HG_OK;
}

/* float32 holds every whole number up to 2^24, far beyond any number of classes. */
#define WHOLE_MAX 16777216

static int are_classes(const struct hg__numbers *v)
{
	if (v->width != 1)
		return 0;
	for (int64_t i = 0; i < v->rows; i++)
		if (!isnan(v->at[i]) && (fabsf(v->at[i]) > WHOLE_MAX || v->at[i] != floorf(v->at[i])))
			return 0;
	return 1;
}

hg_status hg__values_take(struct hg__numbers *v, int64_t classes, const char *origin,
                          const char *hint, hg_dataset *d, char *message)
{
	if (v->width > 0 && !are_classes(v)) {
		d->target = v->at;
		d->targets = v->width;
		v->at = NULL;
		return HG_OK;
	}
	HG__TRY(hg__data_alloc(v->rows, sizeof *d->label, "labels", (void **)&d->label, message));
	for (int64_t i = 0; i < v->rows; i++)
		d->label[i] = isnan(v->at[i]) || v->at[i] < 0 ? -1 : (int32_t)v->at[i];
	if (classes == 0)
		return hg__data_count_classes(d, origin, hint, message);
	if (classes > WHOLE_MAX)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: declares %" PRId64 " classes, at most %d are possible", origin,
		                     classes, WHOLE_MAX);
	d->classes = (int32_t)classes; /* hg_dataset_check compares it with the labels */
	return HG_OK;
}
