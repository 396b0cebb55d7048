/* Reads the JSON lines of hg-train. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/data.h"
#include "record.h"
#include "tool.h"

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static int64_t integer(const json_t *object, const char *key)
{
	return (int64_t)json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));
	return value ? value : "";
}

/* The fold of a run; -1: none, as in older lines. */
static int fold_of(const json_t *object)
{
	const json_t *fold = json_object_get(object, "fold");
	return json_is_integer(fold) ? (int)json_integer_value(fold) : -1;
}

static void take_epoch(struct record *r, const json_t *line)
{
	struct epoch_row row = {.loss = number(line, "loss"),
	                        .train = number(line, "train_metric"),
	                        .val = number(line, "val_metric"),
	                        .test = number(line, "test_metric"),
	                        .scale = number(line, "loss_scale"),
	                        .ms = number(line, "epoch_ms"),
	                        .epoch = integer(line, "epoch"),
	                        .step = integer(line, "step"),
	                        .applied = json_is_true(json_object_get(line, "applied"))};
	(void)snprintf(row.outcome, sizeof row.outcome, "%s", text(line, "outcome"));
	record_epoch(r, integer(line, "seed"), fold_of(line), &row);
}

/* ---- the summary ---- */

static void take_value(struct record *r, const char *name, const json_t *value)
{
	char buffer[64];
	if (json_is_integer(value)) {
		record_integer(r, name, (int64_t)json_integer_value(value));
		return;
	}
	if (json_is_real(value))
		(void)snprintf(buffer, sizeof buffer, "%.6g", json_real_value(value));
	else if (json_is_boolean(value))
		(void)snprintf(buffer, sizeof buffer, "%s", json_is_true(value) ? "yes" : "no");
	if (json_is_string(value))
		record_setting(r, name, json_string_value(value));
	else if (json_is_number(value) || json_is_boolean(value))
		record_setting(r, name, buffer);
}

/* Older lines have no settings, but name some beside the outcome; the first of these are no
 * settings and always there. */
enum { BESIDE_SETTINGS = 4 };
static void take_settings(struct record *r, const json_t *line)
{
	static const char *const beside[] = {"data",  "device_name", "version", "row_normalize",
	                                     "model", "precision",   "layers",  "hidden",
	                                     "loss",  "metric"};
	const char *name;
	json_t *value, *all = json_object_get(line, "settings");
	const size_t count = all ? BESIDE_SETTINGS : sizeof beside / sizeof *beside;
	for (size_t i = 0; i < count; i++)
		take_value(r, beside[i], json_object_get(line, beside[i]));
	json_object_foreach(all, name, value) take_value(r, name, value);
}

static void take_seed(struct record *r, const json_t *item)
{
	struct seed_record *s = record_seed(r, integer(item, "seed"), fold_of(item));
	if (!s)
		return;
	s->known = 1;
	s->epochs = integer(item, "epochs");
	s->best_epoch = integer(item, "best_epoch");
	s->skipped = integer(item, "skipped");
	s->val = number(item, "val_metric");
	s->test = number(item, "test_metric");
	s->final_loss = number(item, "final_loss");
}

static void take_summary(struct record *r, const json_t *line)
{
	size_t i;
	json_t *item;
	take_settings(r, line);
	json_array_foreach(json_object_get(line, "seeds"), i, item) take_seed(r, item);
	r->complete = 1;
	r->finite = json_is_true(json_object_get(line, "loss_finite"));
	r->learnt = !json_is_false(json_object_get(line, "learnt"));
	r->interrupted = json_is_true(json_object_get(line, "interrupted"));
	(void)snprintf(r->metric, sizeof r->metric, "%s", text(line, "metric"));
	(void)snprintf(r->loss, sizeof r->loss, "%s", text(line, "loss"));
	r->test_mean = number(line, "test_metric_mean");
	r->test_std = number(line, "test_metric_std");
	r->epoch_ms = number(line, "epoch_ms_median");
	r->peak_bytes = number(line, "peak_bytes");
	r->skipped = integer(line, "steps_skipped");
}

/* ---- the file ---- */

static hg_status take_line(struct record *r, const char *path, int64_t at, const char *line,
                           size_t length, char *message)
{
	json_error_t error;
	json_t *object = json_loadb(line, length, 0, &error);
	hg_status status = HG_OK;
	if (!json_is_object(object)) {
		(void)snprintf(message, HG_DATA_MESSAGE,
		               "%.200s: line %" PRId64 " is not a JSON object: expected the lines of "
		               "hg-train --json%s%.100s",
		               path, at, object ? "" : ": ", object ? "" : error.text);
		status = HG_ERR_FORMAT;
	} else if (strcmp(text(object, "event"), "epoch") == 0)
		take_epoch(r, object);
	else if (strcmp(text(object, "event"), "summary") == 0 &&
	         json_object_get(object, "seeds")) /* that of hg-doctor has none */
		take_summary(r, object);
	json_decref(object);
	return status;
}

static hg_status read_lines(struct record *r, FILE *in, const char *path, char *message)
{
	char *line = NULL;
	size_t room = 0;
	int64_t at = 0;
	hg_status status = HG_OK;
	for (ssize_t length; status >= 0 && (length = getline(&line, &room, in)) >= 0;)
		if (strspn(line, " \t\r\n") < (size_t)length)
			status = take_line(r, path, ++at, line, (size_t)length, message);
	if (status >= 0 && ferror(in)) {
		(void)snprintf(message, HG_DATA_MESSAGE, "%.200s: cannot be read: %s", path,
		               strerror(errno ? errno : EIO));
		status = HG_ERR_IO;
	}
	free(line);
	return status;
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

hg_status record_read(struct record *r, const char *path, char *message)
{
	*r = (struct record){.test_mean = (double)NAN,
	                     .test_std = (double)NAN,
	                     .epoch_ms = (double)NAN,
	                     .peak_bytes = (double)NAN,
	                     .finite = 1,
	                     .learnt = 1};
	r->name = tool_printable(file_name(path));
	FILE *in = r->name ? fopen(path, "r") : NULL;
	if (!in) {
		(void)snprintf(message, HG_DATA_MESSAGE, "%.200s: cannot be read: %s", path,
		               r->name ? strerror(errno) : hg_status_text(HG_ERR_NOMEM));
		return r->name ? HG_ERR_IO : HG_ERR_NOMEM;
	}
	errno = 0;
	hg_status status = read_lines(r, in, path, message);
	(void)fclose(in);
	if (status >= 0 && !r->seeds) {
		(void)snprintf(message, HG_DATA_MESSAGE,
		               "%.200s: holds no epoch of a run: expected the lines of hg-train --json",
		               path);
		status = HG_ERR_FORMAT;
	}
	if (status >= 0 && r->failed) {
		(void)snprintf(message, HG_DATA_MESSAGE, "%.200s: %s", path, hg_status_text(HG_ERR_NOMEM));
		status = HG_ERR_NOMEM;
	}
	return status;
}
