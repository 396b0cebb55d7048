#include "kernels/support.h"

#include <inttypes.h>
#include <stdio.h>

#include "kernels/kernels.h"

static int types_fit(enum hg__types types, const struct hg__mat *const *operands, int count)
{
	const struct hg__mat *first = NULL;
	for (int i = 0; i < count; i++) {
		if (!operands[i]->data)
			continue;
		first = first ? first : operands[i];
		if ((operands[i]->dtype != HG_F16 && operands[i]->dtype != HG_F32) ||
		    (types == HG__ONE_FLOAT && operands[i]->dtype != first->dtype))
			return 0;
	}
	return 1;
}

/* The operands as text, "[3, 4] f16, [3, 5] f32"; without shapes "f16, f32". */
static void list_operands(const struct hg__mat *const *operands, int count, int shapes, char *text,
                          size_t size)
{
	size_t length = 0;
	text[0] = '\0';
	for (int i = 0; i < count && length < size; i++) {
		const struct hg__mat *m = operands[i];
		if (!m->data)
			continue;
		length += (size_t)snprintf(text + length, size - length, "%s", length ? ", " : "");
		if (shapes && length < size)
			length += (size_t)snprintf(text + length, size - length, "[%" PRId64 ", %" PRId64 "] ",
			                           m->rows, m->cols);
		if (length < size)
			length += (size_t)snprintf(text + length, size - length, "%s", hg_dtype_name(m->dtype));
	}
}

/* Whether two operands have one shape and different layouts: as many elements from one row to the
 * next. */
static int layouts_differ(const struct hg__mat *const *operands, int count)
{
	for (int i = 0; i < count; i++)
		for (int k = 0; k < i; k++) {
			const struct hg__mat *a = operands[i], *b = operands[k];
			if (a->data && b->data && a->rows == b->rows && a->cols == b->cols && a->ld != b->ld)
				return 1;
		}
	return 0;
}

hg_status hg__check_operands(hg_context *ctx, int fit, const char *kernel, enum hg__types types,
                             const struct hg__mat *const *operands, int count)
{
	const int supported = types_fit(types, operands, count);
	char text[HG__MESSAGE / 2];
	if (fit && supported)
		return HG_OK;
	list_operands(operands, count, supported, text, sizeof text);
	if (!supported)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "%s: operands of %s; supported are f16 and f32%s",
		                kernel, text, types == HG__ONE_FLOAT ? ", all of one type" : "");
	if (layouts_differ(operands, count))
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "%s: operands %s with rows of different length in memory; supported is one "
		                "length for one shape",
		                kernel, text);
	return hg__fail(ctx, HG_ERR_INTERNAL, "%s: operands %s do not fit together", kernel, text);
}

hg_status hg__has_number(hg_context *ctx, const char *kernel, const char *what, int number,
                         int count)
{
	return number >= 0 && number < count
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_UNSUPPORTED, "%s: %s %d; supported are 0 to %d", kernel, what,
	                      number, count - 1);
}

hg_status hg__has_type(hg_context *ctx, const char *kernel, const char *what, hg_dtype type,
                       hg_dtype supported)
{
	return type == supported
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_UNSUPPORTED, "%s: %s of %s; supported is %s", kernel, what,
	                      hg_dtype_name(type), hg_dtype_name(supported));
}

/* Sums are in f32, or in f16 where nothing else is at hand. An epilogue follows sums in f32. */
static int spmm_types_fit(const struct hg__spmm_args *a)
{
	const int sums_f32 = a->accumulate == HG_ACC_F32, x = a->x.data != NULL;
	if (x && a->y.dtype != a->x.dtype && a->y.dtype != HG_F32)
		return 0;
	if (!sums_f32 && (a->y.dtype != HG_F16 || (x && a->x.dtype != HG_F16)))
		return 0;
	return !hg__has_sum_epilogue(&a->epilogue) ||
	       (sums_f32 && (x || a->csr.cols == 0) && (!x || a->y.dtype == a->x.dtype));
}

hg_status hg__spmm_supported(hg_context *ctx, const struct hg__spmm_args *a)
{
	static const char *const sums[HG_ACC_COUNT] = {[HG_ACC_F32] = "f32",
	                                               [HG_ACC_F16_DISCRETIZED] = "f16, discretized",
	                                               [HG_ACC_F16_NAIVE] = "f16, naive"};
	const struct hg__mat *const operands[] = {&a->x, &a->w, &a->y, &a->epilogue.z, &a->epilogue.b};
	HG__TRY(hg__check_operands(ctx, 1, "spmm", HG__FLOATS, operands, 5));
	HG__TRY(hg__has_number(ctx, "spmm", "accumulation", (int)a->accumulate, HG_ACC_COUNT));
	HG__TRY(hg__has_number(ctx, "spmm", "activation", a->epilogue.act_drop.act,
	                       1 + HG__ACT_SUM_EPILOGUES));
	if (spmm_types_fit(a))
		return HG_OK;
	return hg__fail(ctx, HG_ERR_UNSUPPORTED,
	                "spmm: X of %s, Y of %s, sums in %s%s; supported are sums in f32 into Y of f32 "
	                "or of X's type, sums in f16 of f16 into f16, and an epilogue after sums in "
	                "f32 into Y of X's type",
	                a->x.data ? hg_dtype_name(a->x.dtype) : "ones", hg_dtype_name(a->y.dtype),
	                sums[a->accumulate],
	                hg__has_sum_epilogue(&a->epilogue) ? ", with an epilogue" : "");
}

static int scatter_sum_fits(const struct hg__scatter_sum_args *a)
{
	const struct hg__sum_epilogue *e = &a->epilogue;
	return a->x.rows == a->coo.cols && a->y.rows == a->coo.rows && a->x.cols == a->y.cols &&
	       (!a->w.data || (a->w.rows == a->coo.m && a->w.cols == a->heads && a->heads > 0 &&
	                       a->y.cols % a->heads == 0)) &&
	       (!e->z.data || (e->z.rows == a->y.rows && e->z.cols == a->y.cols)) &&
	       (!e->b.data || e->b.cols == a->y.cols);
}

hg_status hg__scatter_sum_supported(hg_context *ctx, const struct hg__scatter_sum_args *a)
{
	const struct hg__mat *const operands[] = {&a->x, &a->w, &a->y, &a->epilogue.z, &a->epilogue.b};
	HG__TRY(hg__check_operands(ctx, 1, "scatter_sum", HG__FLOATS, operands, 5));
	HG__TRY(hg__has_number(ctx, "scatter_sum", "activation", a->epilogue.act_drop.act,
	                       1 + HG__ACT_SUM_EPILOGUES));
	if (a->y.dtype != a->x.dtype && (a->y.dtype != HG_F32 || hg__has_sum_epilogue(&a->epilogue)))
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "scatter_sum: X of %s, Y of %s%s; supported are Y of f32 or of X's type, "
		                "and an epilogue into Y of X's type",
		                hg_dtype_name(a->x.dtype), hg_dtype_name(a->y.dtype),
		                hg__has_sum_epilogue(&a->epilogue) ? ", with an epilogue" : "");
	return hg__check_operands(ctx, scatter_sum_fits(a), "scatter_sum", HG__FLOATS, operands, 5);
}
