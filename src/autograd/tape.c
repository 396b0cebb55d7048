#include "autograd/tape.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* Leaves of a tape (inputs, variables, parameters), their bounds, and access to values by id.
 *
 * A variable's id is tag * 2^INDEX_BITS + index. The tag differs between tapes, so that a variable
 * of another tape is recognised. Tags are 1 to HG__TAPE_TAGS. */
#define INDEX_BITS 20

/* hg_none() is -1. A recording call that failed returns another id, so that it is not taken for an
 * absent operand. */
static const hg_var invalid = {-2};

hg_status hg__tape_stick(hg_tape *tape, hg_status status)
{
	struct hg__recording *recording = &tape->recording;
	if (status < 0 && recording->status == HG_OK && tape->stage == HG__RECORDING) {
		recording->status = status;
		snprintf(recording->message, sizeof recording->message, "%s", tape->ctx->message);
	}
	return status;
}

hg_status hg__tape_fail(hg_tape *tape, hg_status status, const char *format, ...)
{
	char text[HG__MESSAGE - 64];
	va_list args;
	va_start(args, format);
	hg__vprint_line(text, sizeof text, format, args);
	va_end(args);
	const char *scope = tape->recording.scope;
	return hg__tape_stick(
	    tape, hg__fail(tape->ctx, status, *scope ? "%s (layer %.40s)" : "%s", text, scope));
}

hg_status hg__tape_mistake(const hg_tape *tape)
{
	const struct hg__recording *recording = &tape->recording;
	return recording->status < 0 ? hg__fail(tape->ctx, recording->status, "%s", recording->message)
	                             : HG_OK;
}

hg_status hg_tape_status(const hg_tape *tape)
{
	return tape ? tape->recording.status : HG_ERR_ARG;
}

hg_status hg__tape_text(hg_tape *tape, const char *text, const char **copy)
{
	struct hg__recording *recording = &tape->recording;
	void *list = recording->text, *memory = NULL;
	const hg_status grown = hg__host_grow(tape->ctx, &list, sizeof *recording->text,
	                                      recording->texts, &recording->text_capacity, "the tape");
	recording->text = list;
	HG__TRY(grown);
	HG__TRY(hg__host_alloc(tape->ctx, strlen(text) + 1, 1, "a name", &memory));
	*copy = recording->text[recording->texts++] = memcpy(memory, text, strlen(text) + 1);
	return HG_OK;
}

hg_status hg__tape_value(hg_tape *tape, const struct hg__value *value, int32_t *index)
{
	struct hg__recording *recording = &tape->recording;
	if (recording->values >> INDEX_BITS)
		return hg__tape_fail(tape, HG_ERR_UNSUPPORTED, "a tape holds at most %d values",
		                     1 << INDEX_BITS);
	void *list = recording->value;
	const hg_status grown =
	    hg__host_grow(tape->ctx, &list, sizeof *recording->value, recording->values,
	                  &recording->value_capacity, "the tape");
	recording->value = list;
	HG__TRY(grown);
	*index = (int32_t)recording->values++;
	struct hg__value *made = &recording->value[*index];
	*made = *value;
	made->root = *index;
	made->cast_view[HG_F16] = made->cast_view[HG_F32] = -1;
	if (made->dtype == HG_F16 || made->dtype == HG_F32)
		made->cast_view[made->dtype] = *index;
	return HG_OK;
}

int32_t hg__tape_index(const hg_tape *tape, hg_var var)
{
	const struct hg__recording *recording = &tape->recording;
	const uint32_t id = (uint32_t)var.id, index = id & ((1u << INDEX_BITS) - 1);
	return var.id >= 0 && id >> INDEX_BITS == recording->tag && (int64_t)index < recording->values
	           ? (int32_t)index
	           : -1;
}

hg_var hg__tape_var(const hg_tape *tape, int32_t value)
{
	const hg_var var = {value < 0 ? invalid.id
	                              : (int32_t)(tape->recording.tag << INDEX_BITS) + value};
	return var;
}

hg_var hg_none(void)
{
	const hg_var none = {-1};
	return none;
}

/* Can nodes still be recorded on this tape? */
int hg__tape_open(hg_tape *tape, const char *what)
{
	if (!tape || tape->recording.status < 0)
		return 0;
	return tape->stage == HG__RECORDING ||
	       hg__fail(tape->ctx, HG_ERR_STATE, "%s: the tape is compiled, nothing can be added",
	                what) == HG_OK;
}

/* max |x| of a tensor, measured on the device; INFINITY where an element is not finite. */
static hg_status measure_amax(hg_context *ctx, const hg_tensor *x, double *amax)
{
	*amax = 0.0;
	if (x->mat.rows == 0 || x->mat.cols == 0)
		return HG_OK;
	hg_tensor *out = NULL;
	float found[2] = {0.0f, 0.0f};
	HG__TRY(hg_tensor_create(ctx, HG_F32, 1, 2, &out));
	const struct hg__amax_args args = {.x = x->mat, .out = out->mat};
	hg_status status = ctx->backend->kernels->amax.run(ctx, &args);
	if (status >= 0)
		status = hg_tensor_download(out, found, HG_F32);
	hg_tensor_free(out);
	*amax = found[1] > 0.0f ? INFINITY : (double)found[0];
	return status;
}

/* The bound on a tensor that may change between runs. All that is known is that a finite half is at
 * most 65504. */
static double type_bound(hg_dtype dtype)
{
	return dtype == HG_F16 ? hg_dtype_get(HG_F16)->max : INFINITY;
}

static hg_status add_leaf(hg_tape *tape, struct hg__value *leaf, const char *name, int32_t *index)
{
	leaf->rows = leaf->tensor->mat.rows;
	leaf->cols = leaf->tensor->mat.cols;
	leaf->dtype = leaf->tensor->mat.dtype;
	leaf->node = -1;
	HG__TRY(hg__tape_text(tape, name, &leaf->name));
	return hg__tape_value(tape, leaf, index);
}

/* amax: bound on its elements; negative or a NaN: they are read for it. */
static hg_var record_leaf(hg_tape *tape, struct hg__value *leaf, const char *what, const char *name,
                          double amax)
{
	const hg_tensor *x = leaf->tensor;
	if (!x)
		(void)hg__tape_fail(tape, HG_ERR_ARG, "%s: tensor %s is NULL", what, name ? name : "");
	else if (x->ctx != tape->ctx)
		(void)hg__tape_fail(tape, HG_ERR_ARG,
		                    "%s: tensor %s belongs to another context than the tape", what,
		                    name ? name : "");
	else if (leaf->kind == HG__VARIABLE && !hg__is_float(x->mat.dtype))
		(void)hg__tape_fail(tape, HG_ERR_DTYPE, "%s: tensor %s is %s, expected f16 or f32", what,
		                    name ? name : "", hg_dtype_name(x->mat.dtype));
	if (tape->recording.status < 0)
		return invalid;
	hg_status status = HG_OK;
	if (leaf->kind == HG__VARIABLE || !hg__is_float(x->mat.dtype))
		amax = type_bound(x->mat.dtype);
	else if (!(amax >= 0.0))
		status = measure_amax(tape->ctx, x, &amax);
	for (int a = HG__UNCONDITIONAL; a <= HG__ASSUMED; a++)
		leaf->known[a] = hg__at_most(amax);
	int32_t index = -1;
	if (status >= 0)
		status = add_leaf(tape, leaf, name ? name : "", &index);
	return hg__tape_stick(tape, status) < 0 ? invalid : hg__tape_var(tape, index);
}

/* The smallest magnitude and the common sign of n numbers. An empty matrix may claim any: no
 * element contradicts it. */
static void find_least_and_sign(const float *x, int64_t n, struct hg__known *known)
{
	int below = 0, above = 0;
	known->least = n > 0 ? (double)INFINITY : 1.0;
	for (int64_t i = 0; i < n; i++) {
		known->least = fmin(known->least, isnan(x[i]) ? 0.0 : fabs((double)x[i]));
		below |= !(x[i] >= 0.0f);
		above |= !(x[i] <= 0.0f);
	}
	known->sign = !below ? 1 : !above ? -1 : 0;
}

hg_status hg__tape_least(hg_tape *tape, int32_t index)
{
	struct hg__value *value = &tape->recording.value[index];
	const int64_t count = value->rows * value->cols;
	if (value->kind != HG__INPUT || !hg__is_float(value->dtype) ||
	    value->known[HG__UNCONDITIONAL].least > 0.0)
		return HG_OK;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(tape->ctx, (size_t)count + 1, sizeof(float), "a constant", &memory));
	const hg_status status = count ? hg_tensor_download(value->tensor, memory, HG_F32) : HG_OK;
	if (status >= 0)
		for (int a = HG__UNCONDITIONAL; a <= HG__ASSUMED; a++)
			find_least_and_sign(memory, count, &value->known[a]);
	hg__host_free(tape->ctx, memory, ((size_t)count + 1) * sizeof(float));
	return status;
}

hg_var hg_tape_input(hg_tape *tape, const hg_tensor *x, const char *name, double amax)
{
	if (!hg__tape_open(tape, "hg_tape_input"))
		return invalid;
	struct hg__value leaf = {.kind = HG__INPUT, .tensor = x};
	return record_leaf(tape, &leaf, "hg_tape_input", name, amax);
}

hg_var hg_tape_variable(hg_tape *tape, const hg_tensor *x, const char *name)
{
	if (!hg__tape_open(tape, "hg_tape_variable"))
		return invalid;
	struct hg__value leaf = {.kind = HG__VARIABLE, .tensor = x};
	return record_leaf(tape, &leaf, "hg_tape_variable", name, 0.0);
}

/* Assumes how large the elements of a parameter may become (policy.h). An earlier tape's assumption
 * is kept while it holds. Rounding to f16 raises an element by at most its u. */
static hg_status assume_weight_bound(hg_tape *tape, struct hg__value *leaf)
{
	hg_param *param = leaf->param;
	double amax = 0.0;
	HG__TRY(measure_amax(tape->ctx, param->master, &amax));
	if (!(amax <= param->reach) || !(param->reach < (double)INFINITY)) {
		param->reach = (double)(float)fmax(HG_WEIGHT_ROOM * amax, HG_WEIGHT_LEAST);
		param->params->reaches++;
	}
	const double type = type_bound(param->working->mat.dtype);
	leaf->known[HG__UNCONDITIONAL] = hg__at_most(type);
	leaf->known[HG__ASSUMED] =
	    hg__at_most(fmin(param->reach * (1.0 + hg_dtype_get(HG_F16)->u), type));
	return HG_OK;
}

/* A parameter is one value however often it is asked for, so that its gradient is one sum. */
hg_var hg_tape_param(hg_tape *tape, hg_param *param)
{
	if (!hg__tape_open(tape, "hg_tape_param"))
		return invalid;
	if (!param || param->params != tape->params) {
		(void)hg__tape_fail(tape, HG_ERR_ARG, "hg_tape_param: %s%s",
		                    param ? param->name : "the parameter is NULL",
		                    param ? " belongs to other parameters than the tape's" : "");
		return invalid;
	}
	for (int32_t i = 0; i < (int32_t)tape->recording.values; i++)
		if (tape->recording.value[i].param == param)
			return hg__tape_var(tape, i);
	struct hg__value leaf = {.kind = HG__PARAM, .param = param, .tensor = param->working};
	int32_t index = -1;
	hg_status status = assume_weight_bound(tape, &leaf);
	if (status >= 0)
		status = add_leaf(tape, &leaf, param->name, &index);
	return hg__tape_stick(tape, status) < 0 ? invalid : hg__tape_var(tape, index);
}

hg_status hg__tape_master(hg_tape *tape, int32_t param, int32_t *index)
{
	struct hg__recording *recording = &tape->recording;
	const struct hg__value base = recording->value[param];
	struct hg__value master = {
	    .kind = HG__PARAM, .param = base.param, .tensor = base.param->master};
	master.known[HG__UNCONDITIONAL] = hg__at_most(type_bound(HG_F32));
	master.known[HG__ASSUMED] = base.known[HG__ASSUMED];
	HG__TRY(add_leaf(tape, &master, base.name, index));
	recording->value[*index].root = base.root;
	recording->value[param].cast_view[HG_F32] = *index;
	return HG_OK;
}

void hg_tape_scope(hg_tape *tape, const char *scope)
{
	if (!hg__tape_open(tape, "hg_tape_scope"))
		return;
	tape->recording.scope = "";
	if (scope && *scope)
		(void)hg__tape_stick(tape, hg__tape_text(tape, scope, &tape->recording.scope));
}

void hg_tape_keep(hg_tape *tape, hg_var var)
{
	if (!hg__tape_open(tape, "hg_tape_keep"))
		return;
	const int32_t index = hg__tape_index(tape, var);
	struct hg__value *value = index < 0 ? NULL : &tape->recording.value[index];
	if (!value)
		(void)hg__tape_fail(tape, HG_ERR_ARG, "hg_tape_keep: not a variable of this tape");
	else if (value->shift)
		(void)hg__tape_fail(tape, HG_ERR_STATE,
		                    "hg_tape_keep: the value is stored x 2^-%d, since it overflowed in an "
		                    "earlier step (hg_policy.replan): keep its hg_cast to f32",
		                    value->shift);
	else
		value->keep = 1;
}

const hg_tensor *hg_tape_value(hg_tape *tape, hg_var var)
{
	const int32_t index = tape && tape->stage != HG__RECORDING ? hg__tape_index(tape, var) : -1;
	if (index < 0)
		return NULL;
	const struct hg__value *value = &tape->recording.value[index];
	if (value->node < 0)
		return value->tensor;
	return value->keep && tape->plan.value[index].span >= 0 ? &tape->program.view[index].value
	                                                        : NULL;
}

const hg_tensor *hg_tape_grad(hg_tape *tape, hg_var var)
{
	const int32_t index = tape && tape->stage != HG__RECORDING ? hg__tape_index(tape, var) : -1;
	if (index < 0 || tape->recording.value[index].kind != HG__VARIABLE ||
	    tape->plan.value[index].grad_span < 0)
		return NULL;
	return &tape->program.view[index].grad;
}

hg_status hg_tape_scalar(hg_tape *tape, hg_var var, double *value)
{
	if (!tape)
		return HG_ERR_ARG;
	if (!value)
		return hg__fail(tape->ctx, HG_ERR_ARG, "hg_tape_scalar: value is NULL");
	if (hg__tape_index(tape, var) < 0)
		return hg__fail(tape->ctx, HG_ERR_ARG, "hg_tape_scalar: not a variable of this tape");
	const hg_tensor *tensor = hg_tape_value(tape, var);
	if (!tensor)
		return hg__fail(tape->ctx, HG_ERR_STATE,
		                "hg_tape_scalar: the variable has no value: it is neither output nor kept, "
		                "or the tape is not compiled");
	if (tensor->mat.rows != 1 || tensor->mat.cols != 1)
		return hg__fail(tape->ctx, HG_ERR_SHAPE,
		                "hg_tape_scalar: the variable has shape [%lld, %lld], expected [1, 1]",
		                (long long)tensor->mat.rows, (long long)tensor->mat.cols);
	if (!hg__is_float(tensor->mat.dtype))
		return hg__fail(tape->ctx, HG_ERR_DTYPE,
		                "hg_tape_scalar: the variable is %s, expected f16 or f32",
		                hg_dtype_name(tensor->mat.dtype));
	float number = 0.0f;
	HG__TRY(hg_tensor_download(tensor, &number, HG_F32));
	*value = (double)number;
	return HG_OK;
}

void hg__recording_free(hg_context *ctx, struct hg__recording *recording)
{
	hg__host_free(ctx, recording->entry,
	              (size_t)recording->entry_capacity * sizeof *recording->entry);
	hg__host_free(ctx, recording->value,
	              (size_t)recording->value_capacity * sizeof *recording->value);
	for (int64_t i = 0; i < recording->texts; i++)
		hg__host_free(ctx, recording->text[i], strlen(recording->text[i]) + 1);
	hg__host_free(ctx, recording->text, (size_t)recording->text_capacity * sizeof *recording->text);
}
