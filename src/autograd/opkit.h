#ifndef HG_AUTOGRAD_OPKIT_H
#define HG_AUTOGRAD_OPKIT_H

#include <math.h>

#include "autograd/attr.h"
#include "autograd/op.h"
#include "autograd/range_rule.h"

HG_EXTERN_C_BEGIN

/* Functions that the files in ops/ share: checks with messages, common parts of forward and
 * backward, samples and costs. */

/* Checks while recording. `name` is the operand's name in the op's equation. Each message says what
 * was found and what was expected. */
HG_NODISCARD hg_status hg__want_present(const struct hg__infer *s, int i, const char *name);
HG_NODISCARD hg_status hg__want_dtype(const struct hg__infer *s, int i, const char *name,
                                      hg_dtype dtype);
/* f16 or f32, whatever type the node runs in. */
HG_NODISCARD hg_status hg__want_float(const struct hg__infer *s, int i, const char *name);
/* The type the node runs in, for the operands in op->same. */
HG_NODISCARD hg_status hg__want_state(const struct hg__infer *s, int i, const char *name);
/* "X has 1432 rows, graph has 2708 columns". */
HG_NODISCARD hg_status hg__want_equal(const struct hg__infer *s, const char *name,
                                      const char *extent, int64_t found, const char *other,
                                      const char *other_extent, int64_t expected);
HG_NODISCARD hg_status hg__want_shape(const struct hg__infer *s, int i, const char *name,
                                      int64_t rows, int64_t cols);
/* heads >= 1, and the columns of operand i are a multiple of it. */
HG_NODISCARD hg_status hg__want_heads(const struct hg__infer *s, int heads, int i,
                                      const char *name);
/* If ok is 0: "p is 1.5, expected 0 <= p < 1". */
HG_NODISCARD hg_status hg__want_attr(const struct hg__infer *s, int ok, const char *name,
                                     double found, const char *expected);

static inline struct hg__shape hg__shape_of(int64_t rows, int64_t cols, hg_dtype dtype)
{
	const struct hg__shape shape = {rows, cols, dtype, 1};
	return shape;
}

/* The factor between operand i as stored and the result as stored: `factor` x 2^(shift of the
 * operand - shift of the result). */
static inline float hg__rescaled(const struct hg__call *c, int i, float factor)
{
	return ldexpf(factor, c->shift[i] - c->shift_out);
}

/* Y = alpha * X in Y's type: copies, casts and scales. Does nothing if X and Y are one matrix and
 * alpha is 1. */
HG_NODISCARD hg_status hg__copy_scaled(const struct hg__call *c, struct hg__mat x, float alpha,
                                       struct hg__mat y);

/* y *= 2^shift of operand i: y was computed from the stored numbers of operand i and is
 * proportional to them. */
HG_NODISCARD hg_status hg__restore(const struct hg__call *c, int i, struct hg__mat y);

/* Y = alpha * diag(r) (A o W) diag(s) X over one orientation of the graph, W [m, heads] by edge. X
 * absent: ones. Where X and Y are both f16 and there is no epilogue, the node says in which type to
 * sum; otherwise sums are f32. scale_first: as in the spmm kernel. */
struct hg__aggregate {
	const struct hg__csr *csr;
	struct hg__mat x, w, y;
	int heads, scale_first;
	const float *row_scale, *col_scale;
	float alpha;
	const struct hg__sum_epilogue *epilogue; /* NULL: none */
};
HG_NODISCARD hg_status hg__aggregate(const struct hg__call *c, const struct hg__aggregate *a);

/* y = sum over the rows of X: the gradient of a row that was added to all rows. The kernel sums
 * into f32. If y is f32 (a parameter's gradient) it sums straight into y; otherwise it sums into
 * `wide` [1, cols] f32, an aux of the node, which is then rounded once into y. */
HG_NODISCARD hg_status hg__sum_rows(const struct hg__call *c, struct hg__mat x, struct hg__mat wide,
                                    struct hg__mat y);
/* Row `row` of a matrix as a matrix. */
static inline struct hg__mat hg__mat_row(struct hg__mat mat, int64_t row)
{
	if (mat.data)
		mat.data = (char *)mat.data + (size_t)(row * mat.ld) * hg_dtype_size(mat.dtype);
	mat.rows = 1;
	return mat;
}

/* Columns first .. first + count - 1 of a matrix as a matrix. */
static inline struct hg__mat hg__mat_cols(struct hg__mat mat, int64_t first, int64_t count)
{
	if (mat.data)
		mat.data = (char *)mat.data + (size_t)first * hg_dtype_size(mat.dtype);
	mat.cols = count;
	return mat;
}

/* For hg__op.rescales: every result of the op may be stored rescaled. */
int hg__always(const struct hg__node *node);

/* Samples, operand by operand. */
void hg__sample_begin(struct hg__sample *s, const char *what, hg_status expect, int use_graph);
void hg__sample_add(struct hg__sample *s, int64_t rows, int64_t cols, hg_dtype dtype,
                    enum hg__fill fill, double scale, int variable);
/* a variable of standard normal numbers */
void hg__sample_normal(struct hg__sample *s, int64_t rows, int64_t cols, hg_dtype dtype);
/* an i32 operand, which an op that needs floats must refuse */
void hg__sample_integer(struct hg__sample *s, int64_t rows, int64_t cols);
void hg__sample_none(struct hg__sample *s);
void hg__sample_attr(struct hg__sample *s, const void *attr, size_t bytes);

/* Bytes of a matrix's elements; 0 if absent. */
double hg__mat_bytes(const struct hg__mat *mat);
/* The operands are read once and the output is written once, with `flops` operations for each
 * element of the output. */
void hg__cost_stream(const struct hg__call *c, double flops, struct hg__cost *cost);
/* hg__cost_stream with one operation for each element. */
void hg__cost_one_flop(const struct hg__call *c, struct hg__cost *cost);
/* rowptr and col of a CSR, in bytes. */
double hg__csr_bytes(const struct hg__csr *csr);

HG_EXTERN_C_END
#endif
