/* Write the state of a training run to an HDF5 file; FORMAT.md has the layout. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "h5/checkpoint.h"
#include "halfgraph/data.h"
#include "seal.h"

/* Tensors and settings are written in the order of their names, so that equal states give equal
 * files: a state that was read from a file, or built by a program, may hold them in another
 * order. */
struct sorted {
	const hg_state *state;
	const hg_state_tensor **tensor;
	const hg_setting **setting;
};

static int by_tensor(const void *a, const void *b)
{
	return strcmp((*(const hg_state_tensor *const *)a)->name,
	              (*(const hg_state_tensor *const *)b)->name);
}

static int by_setting(const void *a, const void *b)
{
	return strcmp((*(const hg_setting *const *)a)->name, (*(const hg_setting *const *)b)->name);
}

static void sorted_free(struct sorted *s)
{
	free(s->tensor);
	free(s->setting);
}

/* The caller frees `s` after a failure, too. */
static hg_status sorted_make(const hg_state *state, struct sorted *s, char *message)
{
	*s = (struct sorted){.state = state};
	HG__TRY(hg__data_alloc(state->tensors, sizeof *s->tensor, "an order", (void **)&s->tensor,
	                       message));
	HG__TRY(hg__data_alloc(state->settings, sizeof *s->setting, "an order", (void **)&s->setting,
	                       message));
	for (int64_t i = 0; i < state->tensors; i++)
		s->tensor[i] = &state->tensor[i];
	for (int64_t i = 0; i < state->settings; i++)
		s->setting[i] = &state->setting[i];
	qsort(s->tensor, (size_t)state->tensors, sizeof *s->tensor, by_tensor);
	qsort(s->setting, (size_t)state->settings, sizeof *s->setting, by_setting);
	return HG_OK;
}

static hg_status write_setting(const struct h5 *h5, hid_t group, const hg_setting *s)
{
	if (s->kind == HG_SETTING_TEXT)
		return hg__h5_fixed_text_write(h5, group, s->name, s->text);
	return s->kind == HG_SETTING_REAL ? hg__h5_real_write(h5, group, s->name, s->real)
	                                  : hg__h5_integer_write(h5, group, s->name, s->integer);
}

static hg_status write_settings(const struct h5 *h5, const struct sorted *s)
{
	hid_t group;
	HG__TRY(hg__h5_group_create(h5, h5->file, "settings", &group));
	hg_status status = HG_OK;
	for (int64_t i = 0; status == HG_OK && i < s->state->settings; i++)
		status = write_setting(h5, group, s->setting[i]);
	H5Gclose(group);
	return status;
}

/* One attribute "0", "1", ... for each promoted node: "NTH OP LAYER" or "NTH:SHIFT OP LAYER". */
static hg_status write_promotions(const struct h5 *h5, const hg_state *state)
{
	hid_t group;
	HG__TRY(hg__h5_group_create(h5, h5->file, "promoted", &group));
	hg_status status = HG_OK;
	for (int64_t i = 0; status == HG_OK && i < state->promotions; i++) {
		const hg_promotion *p = &state->promotion[i];
		char name[24], text[HG__PROMOTION_SIZE];
		(void)snprintf(name, sizeof name, "%" PRId64, i);
		char shift[8] = "";
		if (p->shift)
			(void)snprintf(shift, sizeof shift, ":%d", (int)p->shift);
		(void)snprintf(text, sizeof text, "%" PRId64 "%s %s %s", p->nth, shift, p->op, p->layer);
		status = hg__h5_fixed_text_write(h5, group, name, text);
	}
	H5Gclose(group);
	return status;
}

static hg_status write_history(const struct h5 *h5, hid_t group, const hg_loss_scale *s)
{
	float scale[HG_LOSS_SCALE_HISTORY];
	int32_t reason[HG_LOSS_SCALE_HISTORY];
	for (int k = 0; k < HG_LOSS_SCALE_HISTORY; k++) {
		scale[k] = s->history[k].scale;
		reason[k] = s->history[k].reason;
	}
	HG__TRY(hg__h5_write(h5, group, "history_scale", H5_F32_SUMMED, HG_LOSS_SCALE_HISTORY, 0, scale,
	                     NULL));
	return hg__h5_write(h5, group, "history_reason", H5_I32, HG_LOSS_SCALE_HISTORY, 0, reason,
	                    NULL);
}

static hg_status write_scale(const struct h5 *h5, hid_t group, const hg_loss_scale *s)
{
	HG__TRY(hg__h5_real_write(h5, group, "scale", (double)s->scale));
	for (size_t k = 0; k < HG__CHECKPOINT_SCALES; k++) {
		const unsigned char *at = (const unsigned char *)s + hg__checkpoint_scale[k].offset;
		int32_t narrow = 0;
		int64_t wide = 0;
		memcpy(hg__checkpoint_scale[k].size == sizeof narrow ? (void *)&narrow : (void *)&wide, at,
		       hg__checkpoint_scale[k].size);
		HG__TRY(hg__h5_integer_write(h5, group, hg__checkpoint_scale[k].name, wide + narrow));
	}
	return write_history(h5, group, s);
}

static hg_status write_loss_scale(const struct h5 *h5, const hg_state *state)
{
	hid_t group;
	HG__TRY(hg__h5_group_create(h5, h5->file, "loss_scale", &group));
	const hg_status status = write_scale(h5, group, &state->loss_scale);
	H5Gclose(group);
	return status;
}

/* Write a master weight together with its assumed reach and its group, or a moment without them. */
static hg_status write_tensor(const struct h5 *h5, hid_t group, const hg_state_tensor *t, int part)
{
	hid_t array = H5I_INVALID_HID;
	HG__TRY(hg__h5_write(h5, group, t->name, H5_F32_SUMMED, t->rows, t->cols,
	                     part ? t->moment[part - 1] : t->master, &array));
	hg_status status = part ? HG_OK : hg__h5_real_write(h5, array, "reach", t->reach);
	if (status == HG_OK && !part)
		status = hg__checkpoint_write_group_of(h5, array, t);
	if (H5Dclose(array) < 0 && status == HG_OK)
		status = hg__h5_fail(h5, HG_ERR_IO, t->name, "cannot be closed");
	return status;
}

/* Write the master weights (part 0), or moment `part` of the tensors that have so many. */
static hg_status write_part(const struct h5 *h5, const struct sorted *s, int part)
{
	hid_t group;
	HG__TRY(hg__h5_group_create(h5, h5->file, hg__checkpoint_part[part].name, &group));
	hg_status status = HG_OK;
	for (int64_t i = 0; status == HG_OK && i < s->state->tensors; i++) {
		if (part <= s->tensor[i]->moments)
			status = write_tensor(h5, group, s->tensor[i], part);
	}
	H5Gclose(group);
	return status;
}

static hg_status write_columns(const struct h5 *h5, const hg_state *state)
{
	hid_t group;
	if (!state->columns)
		return HG_OK;
	HG__TRY(hg__h5_group_create(h5, h5->file, "columns", &group));
	hg_status status =
	    hg__h5_write(h5, group, "mean", H5_F64_SUMMED, state->columns, 0, state->column_mean, NULL);
	if (status == HG_OK)
		status = hg__h5_write(h5, group, "deviation", H5_F64_SUMMED, state->columns, 0,
		                      state->column_deviation, NULL);
	H5Gclose(group);
	return status;
}

static hg_status write_all(const struct h5 *h5, const struct sorted *s)
{
	const hg_state *state = s->state;
	HG__TRY(hg__h5_fixed_text_write(h5, h5->file, "format", HG__CHECKPOINT_FORMAT));
	HG__TRY(hg__h5_fixed_text_write(h5, h5->file, "format_version", "1.1"));
	HG__TRY(hg__h5_integer_write(h5, h5->file, "step", state->step));
	HG__TRY(write_settings(h5, s));
	HG__TRY(write_promotions(h5, state));
	HG__TRY(write_loss_scale(h5, state));
	HG__TRY(hg__checkpoint_write_groups(h5, state));
	for (int part = 0; part <= HG_STATE_MOMENTS; part++)
		HG__TRY(write_part(h5, s, part));
	HG__TRY(write_columns(h5, state));
	if (state->class_name_bytes)
		HG__TRY(hg__h5_write(h5, h5->file, "class_names", H5_U8, state->class_name_bytes, 0,
		                     state->class_name, NULL));
	return hg__checkpoint_write_past(h5, state);
}

static hg_status write_into(const hg_state *state, int fd, const char *path, char *message)
{
	struct h5 h5;
	struct sorted sorted;
	hg_status status = hg__h5_create(&h5, fd, path, 1, message);
	const hg_status made = sorted_make(state, &sorted, message);
	if (status == HG_OK)
		status = made;
	if (status == HG_OK)
		status = write_all(&h5, &sorted);
	sorted_free(&sorted);
	if (status < 0)
		h5.message = NULL; /* the first failure is the one to report */
	const hg_status closed = hg__h5_close(&h5);
	return status < 0 ? status : closed;
}

/* A name becomes an HDF5 link, where '/' and "." have a special meaning. */
static hg_status check_state(const hg_state *state, const char *path, char *message)
{
	const char *fault = hg_state_fault(state);
	if (fault)
		return hg__data_fail(message, HG_ERR_ARG, "%s: cannot be written: %s", path, fault);
	for (int64_t i = 0; i < state->tensors; i++)
		if (strchr(state->tensor[i].name, '/') || strcmp(state->tensor[i].name, ".") == 0)
			return hg__data_fail(message, HG_ERR_ARG,
			                     "%s: cannot be written: a parameter is called \"%.128s\", and a "
			                     "name in a file has no '/' and is not \".\"",
			                     path, state->tensor[i].name);
	return HG_OK;
}

hg_status hg_checkpoint_write(const hg_state *state, const char *path, char *message)
{
	struct hg__atomic file;
	if (!state || !path)
		return hg__data_fail(message, HG_ERR_ARG, "checkpoint_write: %s is NULL",
		                     state ? "path" : "state");
	HG__TRY(check_state(state, path, message));
	HG__TRY(hg__atomic_begin(&file, path, message));
	hg_status status = write_into(state, file.fd, path, message);
	if (status == HG_OK)
		status = hg__seal_write(file.fd, path, NULL, message);
	return hg__atomic_end(&file, status);
}
