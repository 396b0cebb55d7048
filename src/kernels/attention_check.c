#include "kernels/attention_check.h"

#include "kernels/support.h"

/* hg__check_operands of a list of operands. */
#define CHECK_OPERANDS(ctx, fits, kernel, types, ...)                           \
	hg__check_operands(                                                         \
	    ctx, fits, kernel, types, (const struct hg__mat *const[]){__VA_ARGS__}, \
	    (int)(sizeof((const struct hg__mat *const[]){__VA_ARGS__}) / sizeof(struct hg__mat *)))

/* ---- shapes ---- */

static int is(const struct hg__mat *m, int64_t rows, int64_t cols)
{
	return m->rows == rows && m->cols == cols;
}

/* Whether m has the shape, and data unless it has no elements. */
static int is_present(const struct hg__mat *m, int64_t rows, int64_t cols)
{
	return is(m, rows, cols) && (m->data || rows == 0 || cols == 0);
}

static int absent_or(const struct hg__mat *m, int64_t rows, int64_t cols)
{
	return !m->data || is(m, rows, cols);
}

static int is_additive(const struct hg__attention *of)
{
	return of->score == HG_SCORE_ADD;
}

static int c_fits(const struct hg__attention *of)
{
	if (of->score == HG_SCORE_ADD_V2)
		return of->c.data && is(&of->c, 1, of->q.cols);
	if (of->score == HG_SCORE_COSINE)
		return of->c.data && (is(&of->c, 1, 1) || is(&of->c, 1, of->heads));
	return !of->c.data;
}

/* Whether the kernels read the slope. */
static int is_leaky(const struct hg__attention *of)
{
	return is_additive(of) || of->score == HG_SCORE_ADD_V2;
}

/* Columns of Q and of K: at least one for each head. */
static int width_fits(const struct hg__attention *of)
{
	const int64_t h = of->heads;
	return is_additive(of) ? of->q.cols == h : of->q.cols >= h && of->q.cols % h == 0;
}

static int scores_fit(const struct hg__attention *of, const struct hg__csr *csr)
{
	return width_fits(of) && is_present(&of->q, csr->rows, of->q.cols) &&
	       is_present(&of->k, csr->cols, of->q.cols) && c_fits(of) &&
	       absent_or(&of->bias, csr->m, of->heads);
}

static int values_fit(const struct hg__attention *of, const struct hg__csr *csr)
{
	return is_present(&of->v, csr->cols, of->v.cols) && of->v.cols % of->heads == 0;
}

/* ---- what all three kernels check ---- */

static hg_status check_scores(hg_context *ctx, const char *kernel, const struct hg__attention *of,
                              const struct hg__csr *csr)
{
	HG__TRY(hg__has_number(ctx, kernel, "score", (int)of->score, HG_SCORE_COUNT));
	if (of->heads < 1 || of->heads > HG_ATTENTION_HEADS)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "%s: %d heads; supported are 1 to %d", kernel,
		                of->heads, HG_ATTENTION_HEADS);
	if (is_leaky(of) && !(of->slope >= 0.0f && of->slope <= 1.0f))
		return hg__fail(ctx, HG_ERR_INTERNAL, "%s: slope is %g, expected 0 to 1", kernel,
		                (double)of->slope);
	HG__TRY(CHECK_OPERANDS(ctx, 1, kernel, HG__ONE_FLOAT, &of->q, &of->k, &of->bias));
	return CHECK_OPERANDS(ctx, scores_fit(of, csr), kernel, HG__FLOATS, &of->q, &of->k, &of->c,
	                      &of->bias);
}

/* Both passes drop weights, and attention_weights does not. */
static hg_status check_dropout(hg_context *ctx, const char *kernel,
                               const struct hg__attention_dropout *dropout)
{
	if (!hg__attention_drops(dropout->p))
		return hg__fail(ctx, HG_ERR_INTERNAL,
		                "%s: dropout is %g, expected 0 <= dropout < 1 - 2^-17", kernel,
		                (double)dropout->p);
	return dropout->p == 0.0f || dropout->step
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_INTERNAL, "%s: dropout %g without a step", kernel,
	                      (double)dropout->p);
}

/* log_sum: that of the forward pass. */
static int log_sum_fits(const struct hg__attention *of, const struct hg__csr *csr,
                        const struct hg__mat *log_sum)
{
	return log_sum->dtype == HG_F32 &&
	       is_present(log_sum, csr->rows, (is_additive(of) ? 2 : 1) * of->heads);
}

/* ---- forward ---- */

/* Without `ended` Y is needed, and for the mean over heads. */
static int y_fits(const struct hg__attention_args *a)
{
	const int64_t rows = a->csr.rows, cols = a->of.v.cols;
	return a->ended.data && !hg__attention_means(&a->y, &a->ended) ? is(&a->y, rows, cols)
	                                                               : is_present(&a->y, rows, cols);
}

/* Whether `ended` has the shape of Y or of its mean over heads. */
static int ends_shape(const struct hg__mat *ended, int64_t rows, int64_t cols, int heads)
{
	return is(ended, rows, cols) || is(ended, rows, cols / heads);
}

static int epilogue_fits(const struct hg__attention_args *a)
{
	return !a->ended.data || (ends_shape(&a->ended, a->y.rows, a->y.cols, a->of.heads) &&
	                          !a->epilogue.z.data && absent_or(&a->epilogue.b, 1, a->ended.cols));
}

hg_status hg__attention_check(hg_context *ctx, const struct hg__attention_args *a)
{
	const struct hg__attention *of = &a->of;
	HG__TRY(check_scores(ctx, "attention", of, &a->csr));
	HG__TRY(check_dropout(ctx, "attention", &of->dropout));
	HG__TRY(CHECK_OPERANDS(ctx, 1, "attention", HG__ONE_FLOAT, &of->q, &of->v, &a->y, &a->plus));
	HG__TRY(CHECK_OPERANDS(
	    ctx,
	    values_fit(of, &a->csr) && log_sum_fits(of, &a->csr, &a->log_sum) && y_fits(a) &&
	        (!a->plus.data || (is_additive(of) && is(&a->plus, a->csr.rows, of->v.cols))),
	    "attention", HG__FLOATS, &of->v, &a->y, &a->log_sum, &a->plus));
	HG__TRY(hg__has_number(ctx, "attention", "activation", a->epilogue.act_drop.act,
	                       1 + HG__ACT_SUM_EPILOGUES));
	return CHECK_OPERANDS(ctx, epilogue_fits(a), "attention", HG__ONE_FLOAT, &a->y, &a->ended,
	                      &a->epilogue.z, &a->epilogue.b);
}

/* ---- backward ---- */

static int results_fit(const struct hg__attention_back_args *a)
{
	const int64_t rows = a->csr.rows, cols = a->of.v.cols;
	const int wants_plus = is_additive(&a->of) && a->dq.data != NULL;
	return is_present(&a->y, rows, cols) && is_present(&a->dy, rows, cols) &&
	       log_sum_fits(&a->of, &a->csr, &a->log_sum) &&
	       (wants_plus ? is_present(&a->plus, rows, cols) : absent_or(&a->plus, rows, cols));
}

/* Gradients that are one matrix have one shape. */
static int fit_together(const struct hg__mat *x, const struct hg__mat *y)
{
	return !x->data || x->data != y->data || (is(x, y->rows, y->cols) && x->ld == y->ld);
}

static int gradients_fit(const struct hg__attention_back_args *a)
{
	const struct hg__attention *of = &a->of;
	return absent_or(&a->dq, of->q.rows, of->q.cols) && absent_or(&a->dk, of->k.rows, of->k.cols) &&
	       absent_or(&a->dv, of->v.rows, of->v.cols) &&
	       (!a->dc.data || (a->dc.dtype == HG_F32 && is(&a->dc, of->c.rows, of->c.cols))) &&
	       absent_or(&a->dbias, of->bias.rows, of->bias.cols) && fit_together(&a->dk, &a->dq) &&
	       fit_together(&a->dv, &a->dk) && fit_together(&a->dv, &a->dq);
}

static int transpose_fits(const struct hg__attention_back_args *a)
{
	const struct hg__csr *csr = &a->csr, *csr_t = &a->csr_t;
	const int reads_edges = csr->m > 0 && (a->of.bias.data || a->of.weight);
	return (!a->dk.data && !a->dv.data) || (csr_t->rows == csr->cols && csr_t->cols == csr->rows &&
	                                        csr_t->m == csr->m && (!reads_edges || csr_t->edge));
}

/* f needs `ended`. Where dy is dended, nothing may be stored in it. */
static int end_fits(const struct hg__attention_back_args *a)
{
	const int64_t rows = a->csr.rows, cols = a->of.v.cols;
	const struct hg__act_drop *end = &a->act_drop;
	const int alters = end->act || end->p > 0.0f || hg__attention_means(&a->y, &a->dended);
	return !hg__attention_ends(a) ||
	       (ends_shape(&a->dended, rows, cols, a->of.heads) &&
	        absent_or(&a->ended, rows, a->dended.cols) &&
	        (!end->act || a->ended.data || rows == 0) &&
	        (!alters || rows == 0 || a->dy.data != a->dended.data) &&
	        (!a->db.data || (a->db.dtype == HG_F32 && is(&a->db, 1, a->dended.cols))));
}

struct hg__epilogue_back_args hg__attention_end_of(const struct hg__attention_back_args *a)
{
	struct hg__epilogue_back_args end = {
	    .y = a->ended, .dy = a->dended, .dx = a->dy, .db = a->db, .act_drop = a->act_drop};
	if (a->dy.data == a->dended.data)
		end.dx.data = NULL;
	return end;
}

hg_status hg__attention_back_check(hg_context *ctx, const struct hg__attention_back_args *a)
{
	static const char *const kernel = "attention_back";
	const struct hg__attention *of = &a->of;
	HG__TRY(check_scores(ctx, kernel, of, &a->csr));
	HG__TRY(check_dropout(ctx, kernel, &of->dropout));
	HG__TRY(CHECK_OPERANDS(ctx, 1, kernel, HG__ONE_FLOAT, &of->q, &of->v, &a->y, &a->plus, &a->dy,
	                       &a->dq, &a->dk, &a->dv, &a->dbias));
	HG__TRY(CHECK_OPERANDS(ctx, values_fit(of, &a->csr) && results_fit(a), kernel, HG__FLOATS,
	                       &of->v, &a->y, &a->dy, &a->log_sum, &a->plus));
	HG__TRY(hg__has_number(ctx, kernel, "activation", a->act_drop.act, 1 + HG__ACT_SUM_EPILOGUES));
	HG__TRY(CHECK_OPERANDS(ctx, 1, kernel, HG__ONE_FLOAT, &of->v, &a->ended, &a->dended));
	HG__TRY(CHECK_OPERANDS(ctx, end_fits(a), kernel, HG__FLOATS, &a->ended, &a->dended, &a->db));
	HG__TRY(CHECK_OPERANDS(ctx, gradients_fit(a), kernel, HG__FLOATS, &a->dq, &a->dk, &a->dv,
	                       &a->dc, &a->dbias));
	return transpose_fits(a)
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_INTERNAL, "%s: the transposed graph does not fit", kernel);
}

/* ---- weights ---- */

hg_status hg__attention_weights_check(hg_context *ctx, const struct hg__attention_weights_args *a)
{
	static const char *const kernel = "attention_weights";
	HG__TRY(check_scores(ctx, kernel, &a->of, &a->csr));
	return CHECK_OPERANDS(
	    ctx, log_sum_fits(&a->of, &a->csr, &a->log_sum) && is_present(&a->p, a->csr.m, a->of.heads),
	    kernel, HG__FLOATS, &a->log_sum, &a->p);
}
