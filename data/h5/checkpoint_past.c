/* The best epoch of a run, with its weights, the history of all epochs, and the counts of a
 * plateau, in a checkpoint; FORMAT.md has the layout. All are optional: a run that has not begun
 * has none. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5/checkpoint.h"
#include "h5/names.h"

#define MEMBER(type, field) #field, offsetof(type, field)

#define COUNT(field, set) "_" #field, offsetof(hg_state_best, field) + (set) * sizeof(int64_t)

/* The integer attributes of /best. */
static const struct {
	const char *name;
	size_t offset;
} best_integers[] = {
    {MEMBER(hg_state_best, step)}, {MEMBER(hg_state_best, nonfinite_logits)},
    {"train" COUNT(right, 0)},     {"train" COUNT(counted, 0)},
    {"val" COUNT(right, 1)},       {"val" COUNT(counted, 1)},
    {"test" COUNT(right, 2)},      {"test" COUNT(counted, 2)},
};
#define BEST_INTEGERS (sizeof best_integers / sizeof best_integers[0])

/* Its real attributes, beside the loss. */
static const char *const best_values[] = {"train_metric", "val_metric", "test_metric"};
#define BEST_VALUES (sizeof best_values / sizeof best_values[0])

/* The arrays of /history beside "step". */
static const struct {
	const char *name;
	size_t offset;
	const char *where;
} columns[] = {{MEMBER(hg_state_epoch, loss), "/history/loss"},
               {MEMBER(hg_state_epoch, train_accuracy), "/history/train_accuracy"},
               {MEMBER(hg_state_epoch, val_accuracy), "/history/val_accuracy"},
               {MEMBER(hg_state_epoch, test_accuracy), "/history/test_accuracy"},
               {MEMBER(hg_state_epoch, train_metric), "/history/train_metric"},
               {MEMBER(hg_state_epoch, val_metric), "/history/val_metric"},
               {MEMBER(hg_state_epoch, test_metric), "/history/test_metric"}};
#define COLUMNS (sizeof columns / sizeof columns[0])

/* The integer attributes of /plateau, beside "best". */
static const struct {
	const char *name;
	size_t offset;
} plateau_integers[] = {
    {MEMBER(hg_plateau, evaluations)}, {MEMBER(hg_plateau, waited)}, {MEMBER(hg_plateau, drops)}};
#define PLATEAU_INTEGERS (sizeof plateau_integers / sizeof plateau_integers[0])

/* Tensors with longer names are refused, as in /params. */
#define NAME_SIZE 256

/* ---- writing ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const hg_state_tensor *const *)a)->name,
	              (*(const hg_state_tensor *const *)b)->name);
}

/* In the order of their names, so that equal states give equal files. */
static hg_status write_weights(const struct h5 *h5, hid_t group, const hg_state *state)
{
	const hg_state_tensor **order = NULL;
	HG__TRY(
	    hg__data_alloc(state->tensors, sizeof *order, "an order", (void **)&order, h5->message));
	for (int64_t i = 0; i < state->tensors; i++)
		order[i] = &state->tensor[i];
	qsort(order, (size_t)state->tensors, sizeof *order, by_name);
	hg_status status = HG_OK;
	for (int64_t i = 0; status == HG_OK && i < state->tensors; i++)
		if (order[i]->best)
			status = hg__h5_write(h5, group, order[i]->name, H5_F32_SUMMED, order[i]->rows,
			                      order[i]->cols, order[i]->best, NULL);
	free(order);
	return status;
}

static hg_status write_best(const struct h5 *h5, hid_t group, const hg_state *state)
{
	const unsigned char *best = (const unsigned char *)&state->best;
	for (size_t k = 0; k < BEST_INTEGERS; k++) {
		int64_t value;
		memcpy(&value, best + best_integers[k].offset, sizeof value);
		HG__TRY(hg__h5_integer_write(h5, group, best_integers[k].name, value));
	}
	HG__TRY(hg__h5_text_write(h5, group, "metric", hg_metric_name(state->best.metric)));
	for (size_t k = 0; k < BEST_VALUES; k++)
		HG__TRY(hg__h5_real_write(h5, group, best_values[k], state->best.value[k]));
	HG__TRY(hg__h5_real_write(h5, group, "loss", (double)state->best.loss));
	return write_weights(h5, group, state);
}

static hg_status write_history(const struct h5 *h5, hid_t group, const hg_state *state)
{
	union {
		void *memory;
		int64_t *step;
		double *real;
	} to;
	HG__TRY(hg__data_alloc(state->epochs, sizeof *to.step, "a history", &to.memory, h5->message));
	for (int64_t i = 0; i < state->epochs; i++)
		to.step[i] = state->epoch[i].step;
	hg_status status = hg__h5_write(h5, group, "step", H5_I64, state->epochs, 0, to.step, NULL);
	for (size_t k = 0; status == HG_OK && k < COLUMNS; k++) {
		for (int64_t i = 0; i < state->epochs; i++)
			memcpy(&to.real[i], (const unsigned char *)&state->epoch[i] + columns[k].offset,
			       sizeof *to.real);
		status = hg__h5_write(h5, group, columns[k].name, H5_F64_SUMMED, state->epochs, 0, to.real,
		                      NULL);
	}
	free(to.memory);
	return status;
}

static hg_status write_plateau(const struct h5 *h5, hid_t group, const hg_plateau *plateau)
{
	for (size_t k = 0; k < PLATEAU_INTEGERS; k++) {
		int64_t value;
		memcpy(&value, (const unsigned char *)plateau + plateau_integers[k].offset, sizeof value);
		HG__TRY(hg__h5_integer_write(h5, group, plateau_integers[k].name, value));
	}
	return hg__h5_real_write(h5, group, "best", plateau->best);
}

hg_status hg__checkpoint_write_past(const struct h5 *h5, const hg_state *state)
{
	hid_t group;
	hg_status status = HG_OK;
	if (state->best.step) {
		HG__TRY(hg__h5_group_create(h5, h5->file, "best", &group));
		status = write_best(h5, group, state);
		H5Gclose(group);
	}
	if (status == HG_OK && state->epochs) {
		HG__TRY(hg__h5_group_create(h5, h5->file, "history", &group));
		status = write_history(h5, group, state);
		H5Gclose(group);
	}
	if (status == HG_OK && state->plateau.evaluations) {
		HG__TRY(hg__h5_group_create(h5, h5->file, "plateau", &group));
		status = write_plateau(h5, group, &state->plateau);
		H5Gclose(group);
	}
	return status;
}

/* ---- reading ---- */

static hg_status read_weight(const struct h5 *h5, hid_t group, const hg_state_tensor *t)
{
	struct h5_array a;
	float *values = NULL;
	char where[NAME_SIZE + 16];
	(void)snprintf(where, sizeof where, "/best/%s", t->name);
	HG__TRY(hg__h5_array(h5, group, t->name, where, 2, &a));
	hg_status status =
	    a.dim[0] == t->rows && a.dim[1] == t->cols
	        ? hg__h5_read_f32(h5, &a, &values)
	        : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                        "%s: %s: is [%lld, %lld], its parameter [%lld, %lld]", h5->path, where,
	                        (long long)a.dim[0], (long long)a.dim[1], (long long)t->rows,
	                        (long long)t->cols);
	hg__h5_array_close(&a);
	if (status == HG_OK)
		memcpy(t->best, values, (size_t)(t->rows * t->cols) * sizeof *values);
	free(values);
	return status;
}

/* All tensors have a best weight, or none has: then the parameters are the best weights. */
static hg_status read_weights(const struct h5 *h5, hid_t group, hg_state *state)
{
	struct hg__h5_names names;
	hg_status status = hg__h5_members(h5, group, "/best", NAME_SIZE, &names);
	const int64_t found = names.count;
	hg__h5_names_free(&names);
	HG__TRY(status);
	if (!found)
		return HG_OK;
	if (found != state->tensors)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: /best: has %lld members, expected none or one for each of %lld "
		                     "parameters",
		                     h5->path, (long long)found, (long long)state->tensors);
	if (hg_state_add_best(state) < 0)
		return hg__data_fail(h5->message, state->best.step < 1 ? HG_ERR_FORMAT : HG_ERR_NOMEM,
		                     "%s: /best: %s", h5->path,
		                     state->best.step < 1 ? "attribute step is below 1"
		                                          : "out of memory for its weights");
	for (int64_t i = 0; status == HG_OK && i < state->tensors; i++)
		status = read_weight(h5, group, &state->tensor[i]);
	return status;
}

static hg_status missing(const struct h5 *h5, const char *where, const char *name)
{
	return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: attribute %s is missing", h5->path,
	                     where, name);
}

static hg_status read_metric(const struct h5 *h5, hid_t group, hg_state_best *best)
{
	char *name = NULL;
	int found = 1;
	HG__TRY(hg__h5_text(h5, group, "metric", "/best", &name));
	if (!name)
		return missing(h5, "/best", "metric");
	best->metric = hg_metric_find(name);
	hg_status status = best->metric
	                       ? HG_OK
	                       : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                                       "%s: /best: attribute metric is \"%s\", not the "
	                                       "name of a metric",
	                                       h5->path, name);
	free(name);
	for (size_t k = 0; status == HG_OK && k < BEST_VALUES; k++) {
		status = hg__h5_real(h5, group, best_values[k], "/best", &best->value[k], &found);
		if (status == HG_OK && !found)
			status = missing(h5, "/best", best_values[k]);
	}
	return status;
}

static hg_status read_best(const struct h5 *h5, hid_t group, hg_state *state)
{
	unsigned char *best = (unsigned char *)&state->best;
	int found;
	for (size_t k = 0; k < BEST_INTEGERS; k++) {
		int64_t value = 0;
		HG__TRY(hg__h5_integer(h5, group, best_integers[k].name, "/best", &value, &found));
		if (!found)
			return missing(h5, "/best", best_integers[k].name);
		memcpy(best + best_integers[k].offset, &value, sizeof value);
	}
	HG__TRY(read_metric(h5, group, &state->best));
	double loss = 0.0;
	HG__TRY(hg__h5_real(h5, group, "loss", "/best", &loss, &found));
	if (!found)
		return missing(h5, "/best", "loss");
	if (isfinite(loss) && fabs(loss) > (double)FLT_MAX)
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: /best: attribute loss is %g",
		                     h5->path, loss);
	state->best.loss = (float)loss;
	return read_weights(h5, group, state);
}

static hg_status check_length(const struct h5 *h5, const struct h5_array *a, int64_t expected)
{
	return a->dim[0] == expected
	           ? HG_OK
	           : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                           "%s: %s: has %lld elements, /history/step has %lld", h5->path,
	                           a->where, (long long)a->dim[0], (long long)expected);
}

static hg_status read_column(const struct h5 *h5, hid_t group, size_t k, int64_t count,
                             double **values)
{
	struct h5_array a;
	HG__TRY(hg__h5_array(h5, group, columns[k].name, columns[k].where, 1, &a));
	hg_status status = check_length(h5, &a, count);
	if (status == HG_OK)
		status = hg__h5_read_f64(h5, &a, values);
	hg__h5_array_close(&a);
	return status;
}

static hg_status add_epochs(const struct h5 *h5, const int64_t *step, double *const *values,
                            int64_t count, hg_state *state)
{
	for (int64_t i = 0; i < count; i++) {
		hg_state_epoch epoch = {.step = step[i]};
		for (size_t k = 0; k < COLUMNS; k++)
			memcpy((unsigned char *)&epoch + columns[k].offset, &values[k][i], sizeof(double));
		const hg_status status = hg_state_add_epoch(state, &epoch);
		if (status < 0)
			return hg__data_fail(h5->message, status == HG_ERR_NOMEM ? status : HG_ERR_FORMAT,
			                     "%s: /history/step: element %lld is %lld: %s", h5->path,
			                     (long long)i, (long long)step[i],
			                     status == HG_ERR_NOMEM ? "out of memory"
			                                            : "steps begin above 0 and ascend");
	}
	return HG_OK;
}

static hg_status read_history(const struct h5 *h5, hid_t group, hg_state *state)
{
	struct h5_array a;
	int64_t *step = NULL;
	double *values[COLUMNS] = {NULL};
	HG__TRY(hg__h5_array(h5, group, "step", "/history/step", 1, &a));
	const int64_t count = a.dim[0];
	hg_status status = hg__h5_read_i64(h5, &a, 1, INT64_MAX, &step);
	hg__h5_array_close(&a);
	for (size_t k = 0; status == HG_OK && k < COLUMNS; k++)
		status = read_column(h5, group, k, count, &values[k]);
	if (status == HG_OK)
		status = add_epochs(h5, step, values, count, state);
	free(step);
	for (size_t k = 0; k < COLUMNS; k++)
		free(values[k]);
	return status;
}

static hg_status read_plateau(const struct h5 *h5, hid_t group, hg_plateau *plateau)
{
	int found;
	for (size_t k = 0; k < PLATEAU_INTEGERS; k++) {
		int64_t value = 0;
		const char *name = plateau_integers[k].name;
		HG__TRY(hg__h5_integer(h5, group, name, "/plateau", &value, &found));
		if (!found)
			return missing(h5, "/plateau", name);
		memcpy((unsigned char *)plateau + plateau_integers[k].offset, &value, sizeof value);
	}
	HG__TRY(hg__h5_real(h5, group, "best", "/plateau", &plateau->best, &found));
	return found ? HG_OK : missing(h5, "/plateau", "best");
}

hg_status hg__checkpoint_read_past(const struct h5 *h5, hg_state *state)
{
	hid_t group;
	hg_status status = HG_OK;
	if (hg__h5_has(h5->file, "best")) {
		HG__TRY(hg__h5_group(h5, h5->file, "best", "/best", &group));
		status = read_best(h5, group, state);
		H5Gclose(group);
	}
	if (status == HG_OK && hg__h5_has(h5->file, "history")) {
		HG__TRY(hg__h5_group(h5, h5->file, "history", "/history", &group));
		status = read_history(h5, group, state);
		H5Gclose(group);
	}
	if (status == HG_OK && hg__h5_has(h5->file, "plateau")) {
		HG__TRY(hg__h5_group(h5, h5->file, "plateau", "/plateau", &group));
		status = read_plateau(h5, group, &state->plateau);
		H5Gclose(group);
	}
	return status;
}
