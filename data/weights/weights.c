/* Weights of params and states, out to safetensors files and in from them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/weights.h"
#include "weights/layout.h"

/* ---- host copies ---- */

static void weights_free(struct hg__weights *w)
{
	for (int64_t i = 0; w->item && i < w->count; i++)
		free(w->item[i].values);
	free(w->item);
	*w = (struct hg__weights){.item = NULL};
}

static hg_status weights_new(int64_t count, struct hg__weights *w, char *message)
{
	HG__TRY(
	    hg__data_alloc(count, sizeof *w->item, "a table of weights", (void **)&w->item, message));
	for (int64_t i = 0; i < count; i++)
		w->item[i] = (struct hg__weight){.name = NULL};
	w->count = count;
	return HG_OK;
}

/* Zeros [rows, cols]. */
static hg_status weight_new(struct hg__weight *w, const char *name, int64_t rows, int64_t cols,
                            char *message)
{
	*w = (struct hg__weight){name, rows, cols, NULL};
	HG__TRY(hg__data_alloc(rows * cols, sizeof *w->values, name, (void **)&w->values, message));
	memset(w->values, 0, (size_t)(rows * cols) * sizeof *w->values);
	return HG_OK;
}

static hg_status params_shape(const hg_params *params, struct hg__weights *w, char *message)
{
	HG__TRY(weights_new(hg_params_count(params), w, message));
	for (int64_t i = 0; i < w->count; i++) {
		hg_param *p = hg_params_at(params, i);
		const hg_tensor *master = hg_param_master(p);
		HG__TRY(weight_new(&w->item[i], hg_param_name(p), hg_tensor_rows(master),
		                   hg_tensor_cols(master), message));
	}
	return HG_OK;
}

static hg_status context_status(const hg_params *params, hg_status status, char *message)
{
	return status < 0
	           ? hg__data_fail(message, status, "%s", hg_context_error(hg_params_context(params)))
	           : HG_OK;
}

static hg_status params_download(const hg_params *params, struct hg__weights *w, char *message)
{
	HG__TRY(params_shape(params, w, message));
	for (int64_t i = 0; i < w->count; i++)
		HG__TRY(context_status(
		    params,
		    hg_tensor_download(hg_param_master(hg_params_at(params, i)), w->item[i].values, HG_F32),
		    message));
	return HG_OK;
}

/* What the working copies cannot hold is found before anything changes. */
static hg_status check_range(const hg_params *params, const struct hg__weights *w, char *message)
{
	const double limit = hg_dtype_get(HG_F16)->overflow;
	for (int64_t i = 0; i < w->count; i++) {
		const struct hg__weight *p = &w->item[i];
		const int is_half = hg_tensor_dtype(hg_param_working(hg_params_at(params, i))) == HG_F16;
		for (int64_t k = 0; is_half && k < p->rows * p->cols; k++)
			if (isfinite(p->values[k]) && fabs((double)p->values[k]) >= limit)
				return hg__data_fail(message, HG_ERR_RANGE,
				                     "%.80s [%" PRId64 ", %" PRId64
				                     "] is %g, beyond f16, in which it is used",
				                     p->name, k / p->cols, k % p->cols, (double)p->values[k]);
	}
	return HG_OK;
}

/* ---- names as they are ---- */

static hg_status export_plain(const struct hg__weights *w, const char *path, char *message)
{
	struct hg__st_out *out = NULL;
	HG__TRY(hg__data_alloc(w->count, sizeof *out, "a list of tensors", (void **)&out, message));
	for (int64_t i = 0; i < w->count; i++)
		out[i] = (struct hg__st_out){
		    w->item[i].name, 2, {w->item[i].rows, w->item[i].cols}, w->item[i].values};
	const hg_status status = hg__safetensors_write(path, out, w->count, 1, message);
	free(out);
	return status;
}

static const struct hg__st_tensor *named(const struct hg__safetensors *f, const char *name)
{
	for (int64_t i = 0; i < f->count; i++)
		if (strcmp(f->tensor[i].name, name) == 0)
			return &f->tensor[i];
	return NULL;
}

static hg_status import_plain(const struct hg__safetensors *f, struct hg__weights *w)
{
	char found[160];
	for (int64_t i = 0; i < w->count; i++) {
		struct hg__weight *to = &w->item[i];
		const struct hg__st_tensor *t = named(f, to->name);
		if (!t)
			return hg__data_fail(f->message, HG_ERR_SHAPE, "%s: has no tensor %.80s", f->path,
			                     to->name);
		if (t->rank != 2 || t->dim[0] != to->rows || t->dim[1] != to->cols)
			return hg__data_fail(
			    f->message, HG_ERR_SHAPE, "%s: %.80s is %s, expected [%" PRId64 ", %" PRId64 "]",
			    f->path, to->name, hg__st_shape(t->rank, t->dim, found), to->rows, to->cols);
		HG__TRY(hg__st_values(f, t, to->values));
	}
	return f->count == w->count
	           ? HG_OK
	           : hg__data_fail(f->message, HG_ERR_SHAPE,
	                           "%s: has %" PRId64 " tensors, expected these %" PRId64, f->path,
	                           f->count, w->count);
}

/* ---- names of PyTorch Geometric ---- */

static int64_t part_size(const struct hg__layer_part *p)
{
	return p->form == HG__LINEAR ? p->ours->rows * p->cols : p->cols;
}

/* The place of element k of a part in our weight: a product is transposed. */
static int64_t place_of(const struct hg__layer_part *p, int64_t k)
{
	const int64_t rows = p->ours->rows;
	return p->form == HG__LINEAR ? k % rows * p->ours->cols + p->first + k / rows : p->first + k;
}

static hg_status export_parts(const struct hg__layout *layout, const char *path, char *message)
{
	struct hg__st_out *out = NULL;
	float *values = NULL, *at;
	int64_t total = 0;
	for (int64_t i = 0; i < layout->count; i++)
		total += part_size(&layout->part[i]);
	HG__TRY(
	    hg__data_alloc(layout->count, sizeof *out, "a list of tensors", (void **)&out, message));
	hg_status status =
	    hg__data_alloc(total, sizeof *values, "transposed weights", (void **)&values, message);
	at = values;
	for (int64_t i = 0; status == HG_OK && i < layout->count; i++) {
		const struct hg__layer_part *p = &layout->part[i];
		out[i] = (struct hg__st_out){p->name, p->rank, {p->dim[0], p->dim[1], p->dim[2]}, at};
		for (int64_t k = 0; k < part_size(p); k++)
			*at++ = p->form == HG__ABSORB ? 0.0f : p->ours->values[place_of(p, k)];
	}
	if (status == HG_OK)
		status = hg__safetensors_write(path, out, layout->count, 0, message);
	free(values);
	free(out);
	return status;
}

/* An HG__ABSORB comes after the mean in the table's order only by chance, so it is subtracted in a
 * second pass. */
static hg_status import_part(const struct hg__safetensors *f, const struct hg__layer_part *p,
                             const struct hg__st_tensor *t, int absorbs)
{
	float *values = NULL;
	if (!t || (p->form == HG__ABSORB) != absorbs)
		return HG_OK;
	HG__TRY(hg__data_alloc(t->elements, sizeof *values, t->name, (void **)&values, f->message));
	const hg_status status = hg__st_values(f, t, values);
	for (int64_t k = 0; status == HG_OK && k < part_size(p); k++) {
		float *to = &p->ours->values[place_of(p, k)];
		*to = absorbs ? *to - values[k] : values[k];
	}
	free(values);
	return status;
}

static hg_status import_matched(const struct hg__safetensors *f, const struct hg__layout *layout,
                                const hg_model_config *model)
{
	const struct hg__st_tensor **match = NULL;
	HG__TRY(hg__data_alloc(layout->count, sizeof *match, "a list of tensors", (void **)&match,
	                       f->message));
	hg_status status = hg__layout_match(layout, model, f, match);
	for (int absorbs = 0; absorbs < 2; absorbs++)
		for (int64_t i = 0; status == HG_OK && i < layout->count; i++)
			status = import_part(f, &layout->part[i], match[i], absorbs);
	free(match);
	return status;
}

/* ---- both ---- */

static hg_status export_weights(const struct hg__weights *w, const hg_model_config *model,
                                const char *path, char *message)
{
	struct hg__layout layout;
	if (!model)
		return export_plain(w, path, message);
	hg_status status = hg__layout_make(w, model, "params_export", &layout, message);
	if (status == HG_OK)
		status = export_parts(&layout, path, message);
	free(layout.part);
	return status;
}

static hg_status import_file(const struct hg__safetensors *f, struct hg__weights *w,
                             const hg_model_config *model)
{
	struct hg__layout layout;
	if (!model || f->is_native)
		return import_plain(f, w);
	hg_status status = hg__layout_make(w, model, "params_import", &layout, f->message);
	if (status == HG_OK)
		status = import_matched(f, &layout, model);
	free(layout.part);
	return status;
}

static hg_status import_weights(struct hg__weights *w, const hg_model_config *model,
                                const char *path, char *message)
{
	struct hg__safetensors file;
	hg_status status = hg__safetensors_open(&file, path, message);
	if (status == HG_OK)
		status = import_file(&file, w, model);
	hg__safetensors_close(&file);
	return status;
}

hg_status hg_params_export(const hg_params *params, const hg_model_config *model, const char *path,
                           char *message)
{
	struct hg__weights w = {.item = NULL};
	if (!params || !path)
		return hg__data_fail(message, HG_ERR_ARG, "params_export: %s is NULL",
		                     params ? "path" : "params");
	hg_status status = params_download(params, &w, message);
	if (status == HG_OK)
		status = export_weights(&w, model, path, message);
	weights_free(&w);
	return status;
}

hg_status hg_params_import(hg_params *params, const hg_model_config *model, const char *path,
                           char *message)
{
	struct hg__weights w = {.item = NULL};
	if (!params || !path)
		return hg__data_fail(message, HG_ERR_ARG, "params_import: %s is NULL",
		                     params ? "path" : "params");
	hg_status status = params_shape(params, &w, message);
	if (status == HG_OK)
		status = import_weights(&w, model, path, message);
	if (status == HG_OK)
		status = check_range(params, &w, message);
	for (int64_t i = 0; status == HG_OK && i < w.count; i++)
		status = context_status(params, hg_param_set(hg_params_at(params, i), w.item[i].values),
		                        message);
	weights_free(&w);
	return status;
}

/* ---- states ---- */

static int setting_of(const hg_state *state, const char *name, int otherwise)
{
	const hg_setting *s = hg_state_find_setting(state, name);
	return s && s->kind == HG_SETTING_INTEGER && s->integer >= -1 && s->integer <= INT32_MAX
	           ? (int)s->integer
	           : otherwise;
}

/* What the layout needs of the model. Returns NULL for a state without settings. */
static const hg_model_config *model_of(const hg_state *state, hg_model_config *model)
{
	const hg_setting *name = hg_state_find_setting(state, "model.name");
	if (!name)
		return NULL;
	*model = hg_model_config_default(name->text);
	model->layers = setting_of(state, "model.layers", 0);
	model->heads = setting_of(state, "model.heads", 0);
	model->out_heads = setting_of(state, "model.out_heads", 0);
	model->readout = setting_of(state, "model.readout", -1);
	model->readout_layers = (hg_readout_layers)setting_of(state, "model.readout_layers", 0);
	return model;
}

hg_status hg_state_export(const hg_state *state, const char *path, char *message)
{
	struct hg__weights w = {.item = NULL};
	hg_model_config model;
	if (!state || !path)
		return hg__data_fail(message, HG_ERR_ARG, "state_export: %s is NULL",
		                     state ? "path" : "state");
	HG__TRY(weights_new(state->tensors, &w, message));
	for (int64_t i = 0; i < w.count; i++) {
		const hg_state_tensor *t = &state->tensor[i];
		w.item[i] = (struct hg__weight){t->name, t->rows, t->cols, t->best ? t->best : t->master};
	}
	const hg_status status = export_weights(&w, model_of(state, &model), path, message);
	free(w.item); /* the values are the state's */
	return status;
}

static void take_master(hg_state_tensor *t, float **values)
{
	const size_t bytes = (size_t)(t->rows * t->cols) * sizeof **values;
	float *before = t->master;
	t->master = *values;
	*values = before; /* freed with the copies */
	t->reach = (double)INFINITY;
	free(t->best);
	t->best = NULL;
	for (int k = 0; k < t->moments; k++)
		memset(t->moment[k], 0, bytes);
}

hg_status hg_state_import(hg_state *state, const char *path, char *message)
{
	struct hg__weights w = {.item = NULL};
	hg_model_config model;
	if (!state || !path)
		return hg__data_fail(message, HG_ERR_ARG, "state_import: %s is NULL",
		                     state ? "path" : "state");
	hg_status status = weights_new(state->tensors, &w, message);
	for (int64_t i = 0; status == HG_OK && i < w.count; i++)
		status = weight_new(&w.item[i], state->tensor[i].name, state->tensor[i].rows,
		                    state->tensor[i].cols, message);
	if (status == HG_OK)
		status = import_weights(&w, model_of(state, &model), path, message);
	for (int64_t i = 0; status == HG_OK && i < w.count; i++)
		take_master(&state->tensor[i], &w.item[i].values);
	if (status == HG_OK) {
		state->best = (hg_state_best){.step = 0};
		state->epochs = 0;
	}
	weights_free(&w);
	return status;
}
