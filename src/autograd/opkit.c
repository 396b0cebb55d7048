#include "autograd/opkit.h"

#include <inttypes.h>

hg_status hg__want_present(const struct hg__infer *s, int i, const char *name)
{
	return s->in[i].present ? HG_OK : hg__infer_fail(s, HG_ERR_ARG, "%s is missing", name);
}

hg_status hg__want_float(const struct hg__infer *s, int i, const char *name)
{
	HG__TRY(hg__want_present(s, i, name));
	const hg_dtype found = s->in[i].dtype;
	return found == HG_F16 || found == HG_F32
	           ? HG_OK
	           : hg__infer_fail(s, HG_ERR_DTYPE, "%s has type %s, expected f16 or f32", name,
	                            hg_dtype_name(found));
}

hg_status hg__want_dtype(const struct hg__infer *s, int i, const char *name, hg_dtype dtype)
{
	HG__TRY(hg__want_present(s, i, name));
	const hg_dtype found = s->in[i].dtype;
	return found == dtype ? HG_OK
	                      : hg__infer_fail(s, HG_ERR_DTYPE, "%s has type %s, expected %s", name,
	                                       hg_dtype_name(found), hg_dtype_name(dtype));
}

hg_status hg__want_state(const struct hg__infer *s, int i, const char *name)
{
	HG__TRY(hg__want_float(s, i, name));
	return hg__want_dtype(s, i, name, s->state);
}

hg_status hg__want_equal(const struct hg__infer *s, const char *name, const char *extent,
                         int64_t found, const char *other, const char *other_extent,
                         int64_t expected)
{
	return found == expected
	           ? HG_OK
	           : hg__infer_fail(s, HG_ERR_SHAPE, "%s has %" PRId64 " %s, %s has %" PRId64 " %s",
	                            name, found, extent, other, expected, other_extent);
}

hg_status hg__want_shape(const struct hg__infer *s, int i, const char *name, int64_t rows,
                         int64_t cols)
{
	HG__TRY(hg__want_present(s, i, name));
	const struct hg__shape *found = &s->in[i];
	return found->rows == rows && found->cols == cols
	           ? HG_OK
	           : hg__infer_fail(s, HG_ERR_SHAPE,
	                            "%s is [%" PRId64 ", %" PRId64 "], expected [%" PRId64 ", %" PRId64
	                            "]",
	                            name, found->rows, found->cols, rows, cols);
}

hg_status hg__want_heads(const struct hg__infer *s, int heads, int i, const char *name)
{
	if (heads < 1)
		return hg__infer_fail(s, HG_ERR_ARG, "heads is %d, expected at least 1", heads);
	const int64_t cols = s->in[i].cols;
	return cols % heads == 0
	           ? HG_OK
	           : hg__infer_fail(s, HG_ERR_SHAPE,
	                            "%s has %" PRId64 " columns, expected a multiple of heads = %d",
	                            name, cols, heads);
}

hg_status hg__want_attr(const struct hg__infer *s, int ok, const char *name, double found,
                        const char *expected)
{
	return ok ? HG_OK
	          : hg__infer_fail(s, HG_ERR_ARG, "%s is %g, expected %s", name, found, expected);
}

hg_status hg__copy_scaled(const struct hg__call *c, struct hg__mat x, float alpha, struct hg__mat y)
{
	const struct hg__axpby_args args = {.x = x, .y = y, .alpha = alpha};
	if (x.data == y.data && alpha == 1.0f)
		return HG_OK;
	return HG__RUN(c, axpby, &args);
}

hg_status hg__restore(const struct hg__call *c, int i, struct hg__mat y)
{
	return c->shift[i] ? hg__copy_scaled(c, y, ldexpf(1.0f, c->shift[i]), y) : HG_OK;
}

hg_status hg__aggregate(const struct hg__call *c, const struct hg__aggregate *a)
{
	const int halves = a->x.data && a->x.dtype == HG_F16 && a->y.dtype == HG_F16 &&
	                   !(a->epilogue && hg__has_sum_epilogue(a->epilogue));
	struct hg__spmm_args args = {
	    .csr = *a->csr,
	    .x = a->x,
	    .w = a->w,
	    .y = a->y,
	    .heads = a->heads,
	    .row_scale = a->row_scale,
	    .col_scale = a->col_scale,
	    .scale_first = a->scale_first,
	    .alpha = a->alpha,
	    .overflow = c->overflow,
	    .accumulate = halves ? c->node->accumulate : HG_ACC_F32,
	};
	if (a->epilogue)
		args.epilogue = *a->epilogue;
	return HG__RUN(c, spmm, &args);
}

hg_status hg__sum_rows(const struct hg__call *c, struct hg__mat x, struct hg__mat wide,
                       struct hg__mat y)
{
	const int direct = y.dtype == HG_F32;
	const struct hg__colsum_args args = {.x = x, .y = direct ? y : wide};
	HG__TRY(HG__RUN(c, colsum, &args));
	return direct ? HG_OK : hg__copy_scaled(c, wide, 1.0f, y);
}

int hg__always(const struct hg__node *node)
{
	(void)node;
	return 1;
}

void hg__sample_begin(struct hg__sample *s, const char *what, hg_status expect, int use_graph)
{
	*s = (struct hg__sample){.what = what, .expect = expect, .use_graph = use_graph};
}

void hg__sample_add(struct hg__sample *s, int64_t rows, int64_t cols, hg_dtype dtype,
                    enum hg__fill fill, double scale, int variable)
{
	const int i = s->n_in++;
	s->in[i].shape = hg__shape_of(rows, cols, dtype);
	s->in[i].fill = fill;
	s->in[i].scale = scale;
	s->in[i].variable = variable;
}

void hg__sample_normal(struct hg__sample *s, int64_t rows, int64_t cols, hg_dtype dtype)
{
	hg__sample_add(s, rows, cols, dtype, HG__FILL_NORMAL, 1.0, 1);
}

void hg__sample_integer(struct hg__sample *s, int64_t rows, int64_t cols)
{
	hg__sample_add(s, rows, cols, HG_I32, HG__FILL_LABELS, 2.0, 0);
}

void hg__sample_none(struct hg__sample *s)
{
	s->n_in++;
}

void hg__sample_attr(struct hg__sample *s, const void *attr, size_t bytes)
{
	memcpy(s->attr, attr, bytes);
}

double hg__mat_bytes(const struct hg__mat *mat)
{
	return (double)mat->rows * (double)mat->cols * (double)hg_dtype_size(mat->dtype);
}

void hg__cost_stream(const struct hg__call *c, double flops, struct hg__cost *cost)
{
	cost->bytes = hg__mat_bytes(&c->out);
	for (int i = 0; i < c->node->n_in; i++)
		cost->bytes += hg__mat_bytes(&c->in[i]);
	cost->flops = flops * (double)c->out.rows * (double)c->out.cols;
}

void hg__cost_one_flop(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 1.0, cost);
}

double hg__csr_bytes(const struct hg__csr *csr)
{
	return (double)(csr->rows + 1) * (double)sizeof(int64_t) +
	       (double)csr->m * (double)sizeof(int32_t);
}
