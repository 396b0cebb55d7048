/* Read the state of a training run from an HDF5 file; FORMAT.md has the layout. The caller gets a
 * state that hg_state_fault accepts. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5/checkpoint.h"
#include "h5/names.h"
#include "halfgraph/data.h"

/* Parameters with longer names are refused. */
#define NAME_SIZE 256

static hg_status bad_checkpoint(const struct h5 *h5, const char *where, const char *text)
{
	return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: %s", h5->path, where, text);
}

static hg_status read_step(const struct h5 *h5, hg_state *state)
{
	int found;
	HG__TRY(hg__h5_integer(h5, h5->file, "step", "/", &state->step, &found));
	return found ? HG_OK : bad_checkpoint(h5, "/", "attribute step is missing");
}

static hg_status read_identity(const struct h5 *h5, hg_state *state)
{
	char *format = NULL, *version = NULL;
	hg_status status = hg__h5_text(h5, h5->file, "format", "/", &format);
	if (status == HG_OK)
		status = hg__h5_text(h5, h5->file, "format_version", "/", &version);
	if (status == HG_OK && (!format || strcmp(format, HG__CHECKPOINT_FORMAT) != 0))
		status = hg__data_fail(
		    h5->message, HG_ERR_FORMAT,
		    "%s: /: attribute format is %.64s, expected %s: not a HalfGraph checkpoint", h5->path,
		    format ? format : "missing", HG__CHECKPOINT_FORMAT);
	if (status == HG_OK && (!version || strncmp(version, "1.", 2) != 0))
		status = hg__data_fail(h5->message, HG_ERR_FORMAT,
		                       "%s: /: attribute format_version is %.64s; this reader knows 1.x",
		                       h5->path, version ? version : "missing");
	free(format);
	free(version);
	HG__TRY(status);
	return read_step(h5, state);
}

/* ---- settings ---- */

static hg_status setting_text(const struct h5 *h5, hid_t group, hg_setting *s)
{
	char *text = NULL;
	HG__TRY(hg__h5_text(h5, group, s->name, "/settings", &text));
	const size_t length = text ? strlen(text) : sizeof s->text;
	if (length < sizeof s->text)
		memcpy(s->text, text, length + 1);
	free(text);
	return length < sizeof s->text
	           ? HG_OK
	           : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                           "%s: /settings: attribute %s is too long a text", h5->path, s->name);
}

/* A setting of another type class comes from a newer version and is ignored. */
static hg_status read_setting(const struct h5 *h5, hid_t group, const char *name, hg_state *state)
{
	hg_setting s = {.kind = HG_SETTING_INTEGER};
	H5T_class_t class;
	int found;
	memcpy(s.name, name, strlen(name) + 1); /* the listing refused names that do not fit */
	HG__TRY(hg__h5_attribute_class(h5, group, name, "/settings", &class));
	if (class != H5T_INTEGER && class != H5T_FLOAT && class != H5T_STRING)
		return HG_OK;
	s.kind = class == H5T_INTEGER ? HG_SETTING_INTEGER
	         : class == H5T_FLOAT ? HG_SETTING_REAL
	                              : HG_SETTING_TEXT;
	HG__TRY(s.kind == HG_SETTING_TEXT ? setting_text(h5, group, &s)
	        : s.kind == HG_SETTING_REAL
	            ? hg__h5_real(h5, group, s.name, "/settings", &s.real, &found)
	            : hg__h5_integer(h5, group, s.name, "/settings", &s.integer, &found));
	const hg_status status = hg_state_add_setting(state, &s);
	return status < 0 ? hg__data_fail(h5->message, status == HG_ERR_NOMEM ? status : HG_ERR_FORMAT,
	                                  "%s: /settings: attribute \"%s\": %s", h5->path, s.name,
	                                  hg_status_text(status))
	                  : HG_OK;
}

static hg_status read_settings(const struct h5 *h5, hg_state *state)
{
	hid_t group;
	struct hg__h5_names names;
	HG__TRY(hg__h5_group(h5, h5->file, "settings", "/settings", &group));
	hg_status status =
	    hg__h5_attributes(h5, group, "/settings", sizeof((hg_setting){0}.name), &names);
	for (int64_t i = 0; status == HG_OK && i < names.count; i++)
		status = read_setting(h5, group, names.name[i], state);
	hg__h5_names_free(&names);
	H5Gclose(group);
	return status;
}

/* ---- promoted nodes ---- */

/* Parse "NTH OP LAYER" or "NTH:SHIFT OP LAYER"; returns 0 for anything else. */
static int parse_promotion(const char *text, hg_promotion *p)
{
	char *end;
	errno = 0;
	const long long nth = strtoll(text, &end, 10);
	const int digits = end > text;
	const char *colon = end;
	const long shift = digits && *colon == ':' ? strtol(colon + 1, &end, 10) : 0;
	const char *op = end + 1, *blank = *end == ' ' ? strchr(op, ' ') : NULL;
	if (errno || !digits || nth < 0 ||
	    (*colon == ':' && (end == colon + 1 || shift < 1 || shift > HG_SHIFT_MOST)) || !blank ||
	    (size_t)(blank - op) >= sizeof p->op || strlen(blank + 1) >= sizeof p->layer)
		return 0;
	*p = (hg_promotion){.nth = nth, .shift = (int32_t)shift};
	memcpy(p->op, op, (size_t)(blank - op));
	memcpy(p->layer, blank + 1, strlen(blank + 1));
	return 1;
}

static hg_status read_promotion(const struct h5 *h5, hid_t group, int64_t index, hg_state *state)
{
	char name[24], *text = NULL;
	hg_promotion p;
	(void)snprintf(name, sizeof name, "%" PRId64, index);
	HG__TRY(hg__h5_text(h5, group, name, "/promoted", &text));
	const int good = text && parse_promotion(text, &p);
	free(text);
	const hg_status status = good ? hg_state_add_promotion(state, &p) : HG_ERR_ARG;
	return status == HG_OK
	           ? HG_OK
	           : hg__data_fail(h5->message, status == HG_ERR_NOMEM ? status : HG_ERR_FORMAT,
	                           "%s: /promoted: attribute %s is not \"NTH OP LAYER\" or \"NTH:SHIFT "
	                           "OP LAYER\", different from all others",
	                           h5->path, name);
}

static hg_status read_promotions(const struct h5 *h5, hg_state *state)
{
	hid_t group;
	struct hg__h5_names names;
	HG__TRY(hg__h5_group(h5, h5->file, "promoted", "/promoted", &group));
	hg_status status = hg__h5_attributes(h5, group, "/promoted", NAME_SIZE, &names);
	for (int64_t i = 0; status == HG_OK && i < names.count; i++)
		status = read_promotion(h5, group, i, state);
	hg__h5_names_free(&names);
	H5Gclose(group);
	return status;
}

/* ---- loss scale ---- */

static hg_status read_counter(const struct h5 *h5, hid_t group, size_t k, hg_loss_scale *s)
{
	const int narrow = hg__checkpoint_scale[k].size == sizeof(int32_t);
	int64_t wide = 0;
	int found;
	HG__TRY(hg__h5_integer(h5, group, hg__checkpoint_scale[k].name, "/loss_scale", &wide, &found));
	if (!found || (narrow && (wide < 0 || wide > INT32_MAX)))
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: /loss_scale: attribute %s is %s",
		                     h5->path, hg__checkpoint_scale[k].name,
		                     found ? "out of its range" : "missing");
	const int32_t small = narrow ? (int32_t)wide : 0;
	memcpy((unsigned char *)s + hg__checkpoint_scale[k].offset,
	       narrow ? (const void *)&small : (const void *)&wide, hg__checkpoint_scale[k].size);
	return HG_OK;
}

static hg_status open_history(const struct h5 *h5, hid_t group, const char *name, const char *where,
                              struct h5_array *a)
{
	HG__TRY(hg__h5_array(h5, group, name, where, 1, a));
	if (a->dim[0] == HG_LOSS_SCALE_HISTORY)
		return HG_OK;
	const hg_status status =
	    hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: has %lld elements, expected %d",
	                  h5->path, where, (long long)a->dim[0], HG_LOSS_SCALE_HISTORY);
	hg__h5_array_close(a);
	return status;
}

static hg_status read_history(const struct h5 *h5, hid_t group, hg_loss_scale *s)
{
	struct h5_array a;
	float *scale = NULL;
	int32_t *reason = NULL;
	HG__TRY(open_history(h5, group, "history_scale", "/loss_scale/history_scale", &a));
	hg_status status = hg__h5_read_f32(h5, &a, &scale);
	hg__h5_array_close(&a);
	if (status == HG_OK)
		status = open_history(h5, group, "history_reason", "/loss_scale/history_reason", &a);
	if (status == HG_OK) {
		status = hg__h5_read_i32(h5, &a, HG_STEP_APPLIED, HG_STEP_SKIPPED_FORWARD, &reason);
		hg__h5_array_close(&a);
	}
	for (int k = 0; status == HG_OK && k < HG_LOSS_SCALE_HISTORY; k++) {
		s->history[k].scale = scale[k];
		s->history[k].reason = reason[k];
	}
	free(scale);
	free(reason);
	return status;
}

static hg_status read_scale(const struct h5 *h5, hid_t group, hg_loss_scale *s)
{
	double scale = 0.0;
	int found;
	HG__TRY(hg__h5_real(h5, group, "scale", "/loss_scale", &scale, &found));
	if (!found)
		return bad_checkpoint(h5, "/loss_scale", "attribute scale is missing");
	/* 0 is invalid, so hg_state_fault will refuse it */
	s->scale = isfinite(scale) && fabs(scale) <= (double)FLT_MAX ? (float)scale : 0.0f;
	for (size_t k = 0; k < HG__CHECKPOINT_SCALES; k++)
		HG__TRY(read_counter(h5, group, k, s));
	return read_history(h5, group, s);
}

static hg_status read_loss_scale(const struct h5 *h5, hg_state *state)
{
	hid_t group;
	HG__TRY(hg__h5_group(h5, h5->file, "loss_scale", "/loss_scale", &group));
	const hg_status status = read_scale(h5, group, &state->loss_scale);
	H5Gclose(group);
	return status;
}

/* ---- tensors ---- */

/* The three groups of tensors, open. */
struct parts {
	hid_t group[1 + HG_STATE_MOMENTS];
};

static hg_status read_values(const struct h5 *h5, struct h5_array *a, float *to)
{
	float *values = NULL;
	const hg_status status = hg__h5_read_f32(h5, a, &values);
	if (status == HG_OK)
		memcpy(to, values, (size_t)(a->dim[0] * a->dim[1]) * sizeof *to);
	free(values);
	return status;
}

static hg_status read_moment(const struct h5 *h5, const struct parts *parts, int part,
                             const hg_state_tensor *t)
{
	struct h5_array a;
	char where[NAME_SIZE + 16];
	(void)snprintf(where, sizeof where, "%s/%s", hg__checkpoint_part[part].where, t->name);
	HG__TRY(hg__h5_array(h5, parts->group[part], t->name, where, 2, &a));
	const hg_status status =
	    a.dim[0] == t->rows && a.dim[1] == t->cols
	        ? read_values(h5, &a, t->moment[part - 1])
	        : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                        "%s: %s: is [%lld, %lld], its parameter [%lld, %lld]", h5->path, where,
	                        (long long)a.dim[0], (long long)a.dim[1], (long long)t->rows,
	                        (long long)t->cols);
	hg__h5_array_close(&a);
	return status;
}

/* The number of moments stored for a parameter. The loop ends at the first missing one, so a second
 * moment without a first does not count. */
static int count_moments(const struct parts *parts, const char *name)
{
	int count = 0;
	while (count < HG_STATE_MOMENTS && hg__h5_has(parts->group[1 + count], name))
		count++;
	return count;
}

static hg_status read_tensor(const struct h5 *h5, const struct parts *parts, const char *name,
                             hg_state *state)
{
	struct h5_array a;
	hg_state_tensor *t = NULL;
	int found;
	char where[NAME_SIZE + 16];
	(void)snprintf(where, sizeof where, "/params/%s", name);
	HG__TRY(hg__h5_array(h5, parts->group[0], name, where, 2, &a));
	hg_status status =
	    hg_state_add_tensor(state, name, a.dim[0], a.dim[1], count_moments(parts, name), &t);
	if (status < 0)
		status = hg__data_fail(h5->message, status == HG_ERR_NOMEM ? status : HG_ERR_FORMAT,
		                       "%s: %s: [%lld, %lld]: %s", h5->path, where, (long long)a.dim[0],
		                       (long long)a.dim[1], hg_status_text(status));
	else
		status = read_values(h5, &a, t->master);
	if (status == HG_OK)
		/* where it is missing, a tape makes its own assumption */
		status = hg__h5_real(h5, a.id, "reach", where, &t->reach, &found);
	if (status == HG_OK)
		status = hg__checkpoint_read_group_of(h5, a.id, where, state->groups, t);
	hg__h5_array_close(&a);
	for (int part = 1; status == HG_OK && part <= t->moments; part++)
		status = read_moment(h5, parts, part, t);
	return status;
}

/* Every stored moment must belong to a parameter. */
static hg_status check_moments(const struct h5 *h5, const struct parts *parts,
                               const hg_state *state, int part)
{
	const char *where = hg__checkpoint_part[part].where;
	struct hg__h5_names names;
	const hg_status status = hg__h5_members(h5, parts->group[part], where, NAME_SIZE, &names);
	const int64_t found = names.count;
	int64_t expected = 0;
	hg__h5_names_free(&names);
	HG__TRY(status);
	for (int64_t i = 0; i < state->tensors; i++)
		expected += state->tensor[i].moments >= part;
	return found == expected
	           ? HG_OK
	           : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                           "%s: %s: has %lld members, and %lld of them belong to a parameter",
	                           h5->path, where, (long long)found, (long long)expected);
}

static hg_status read_parts(const struct h5 *h5, const struct parts *parts, hg_state *state)
{
	struct hg__h5_names names;
	hg_status status = hg__h5_members(h5, parts->group[0], "/params", NAME_SIZE, &names);
	for (int64_t i = 0; status == HG_OK && i < names.count; i++)
		status = read_tensor(h5, parts, names.name[i], state);
	hg__h5_names_free(&names);
	HG__TRY(status);
	for (int part = 1; part <= HG_STATE_MOMENTS; part++)
		HG__TRY(check_moments(h5, parts, state, part));
	return HG_OK;
}

static hg_status read_tensors(const struct h5 *h5, hg_state *state)
{
	struct parts parts;
	int open = 0;
	hg_status status = HG_OK;
	for (; status == HG_OK && open <= HG_STATE_MOMENTS; open += status == HG_OK)
		status = hg__h5_group(h5, h5->file, hg__checkpoint_part[open].name,
		                      hg__checkpoint_part[open].where, &parts.group[open]);
	if (status == HG_OK)
		status = read_parts(h5, &parts, state);
	while (open > 0)
		H5Gclose(parts.group[--open]);
	return status;
}

/* ---- what the columns of the features were standardised with ---- */

hg_status hg__checkpoint_read_vector(const struct h5 *h5, hid_t group, const char *name,
                                     const char *where, enum h5_type type, void **values,
                                     int64_t *count)
{
	struct h5_array a;
	HG__TRY(hg__h5_array(h5, group, name, where, 1, &a));
	*count = a.dim[0];
	const hg_status status = type == H5_F64 ? hg__h5_read_f64(h5, &a, (double **)values)
	                                        : hg__h5_read_f32(h5, &a, (float **)values);
	hg__h5_array_close(&a);
	return status;
}

static hg_status take_columns(const struct h5 *h5, hid_t group, hg_state *state)
{
	double *mean = NULL, *deviation = NULL;
	int64_t means = 0, deviations = 0;
	hg_status status = hg__checkpoint_read_vector(h5, group, "mean", "/columns/mean", H5_F64,
	                                              (void **)&mean, &means);
	if (status == HG_OK)
		status = hg__checkpoint_read_vector(h5, group, "deviation", "/columns/deviation", H5_F64,
		                                    (void **)&deviation, &deviations);
	if (status == HG_OK && means != deviations)
		status = hg__data_fail(h5->message, HG_ERR_FORMAT,
		                       "%s: /columns: %lld means and %lld deviations, expected as many",
		                       h5->path, (long long)means, (long long)deviations);
	if (status == HG_OK) {
		const hg_status set = hg_state_set_columns(state, means, mean, deviation);
		if (set < 0)
			status = hg__data_fail(h5->message, set == HG_ERR_NOMEM ? set : HG_ERR_FORMAT,
			                       "%s: /columns: %s", h5->path,
			                       set == HG_ERR_NOMEM
			                           ? hg_status_text(set)
			                           : "a mean or deviation is not a finite number, or one of "
			                             "these is below 0");
	}
	free(mean);
	free(deviation);
	return status;
}

/* Absent before version 1.1, and where the features were not standardised. */
static hg_status read_columns(const struct h5 *h5, hg_state *state)
{
	hid_t group;
	if (!hg__h5_has(h5->file, "columns"))
		return HG_OK;
	HG__TRY(hg__h5_group(h5, h5->file, "columns", "/columns", &group));
	const hg_status status = take_columns(h5, group, state);
	H5Gclose(group);
	return status;
}

/* ---- all ---- */

static hg_status read_all(const struct h5 *h5, hg_state *state)
{
	HG__TRY(read_identity(h5, state));
	HG__TRY(read_settings(h5, state));
	HG__TRY(read_promotions(h5, state));
	HG__TRY(read_loss_scale(h5, state));
	HG__TRY(hg__checkpoint_read_groups(h5, state));
	HG__TRY(read_tensors(h5, state));
	HG__TRY(read_columns(h5, state));
	HG__TRY(hg__h5_class_names(h5, &state->class_name, &state->class_name_bytes));
	HG__TRY(hg__checkpoint_read_past(h5, state));
	const char *fault = hg_state_fault(state);
	return fault ? hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s", h5->path, fault)
	             : hg__data_copy_text(h5->path, &state->origin, h5->message);
}

hg_status hg__checkpoint_read(const char *path, const char *shown, hg_state **state, char *message)
{
	struct h5 h5;
	if (hg_state_create(state) < 0)
		return hg__data_fail(message, HG_ERR_NOMEM, "out of memory: a state needs %zu bytes",
		                     sizeof **state);
	hg_status status = hg__h5_open(&h5, path, shown, message);
	if (status == HG_OK)
		status = read_all(&h5, *state);
	const hg_status closed = hg__h5_close(&h5);
	if (status == HG_OK)
		status = closed;
	if (status < 0) {
		hg_state_free(*state);
		*state = NULL;
	}
	return status;
}

hg_status hg_checkpoint_read(const char *path, hg_state **state, char *message)
{
	if (!path || !state)
		return hg__data_fail(message, HG_ERR_ARG, "checkpoint_read: %s is NULL",
		                     path ? "state" : "path");
	return hg__checkpoint_read(path, path, state, message);
}
