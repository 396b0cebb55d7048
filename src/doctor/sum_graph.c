#include <math.h>

#include "autograd/attr.h"
#include "doctor/sum_of.h"
#include "precision/half.h"

/* Sums over neighbours. */

/* alpha r_i * sum over entries (i, j) of w s_j X[j, col], one row of one orientation. */
struct gather {
	const struct hg__csr *csr;
	struct hg__mat x, w; /* w.data NULL: ones */
	int heads;
	const float *row_scale, *col_scale;
	float alpha;
	int scale_first, halves; /* halves: summed in f16 */
};

static struct hg__mat vector(const float *data, int64_t rows)
{
	const struct hg__mat mat = {(void *)(uintptr_t)data, rows, 1, 1, HG_F32};
	return mat;
}

/* Factors as f16 arithmetic has them: kernels.h, "f". */
static void narrow(const struct gather *g, double w, double s, double x, struct hg__addend *a)
{
	const int later = g->col_scale && !g->scale_first;
	a->f = g->w.data ? hg__half_round((float)w) : 1.0f;
	if (later)
		a->f = hg__half_round(a->f * hg__half_round((float)s));
	a->x = g->col_scale && g->scale_first ? hg__half_round((float)s * (float)x) : (float)x;
}

struct pickers {
	struct hg__picker x, w, s;
};

static hg_status addend(const struct gather *g, const struct pickers *from,
                        const struct hg__entries *entries, int64_t k, int64_t col, double r,
                        struct hg__addend *a)
{
	double w = 1.0, s = 1.0;
	a->row = hg__entry_col(entries, k);
	a->col = col;
	HG__TRY(hg__pick(&from->x, a->row, col, &a->operand));
	if (g->w.data)
		HG__TRY(hg__pick(&from->w, hg__entry_edge(entries, k),
		                 g->heads > 1 ? col / (g->x.cols / g->heads) : 0, &w));
	if (g->col_scale)
		HG__TRY(hg__pick(&from->s, a->row, 0, &s));
	a->factor = (double)g->alpha * r * w * s;
	narrow(g, w, s, a->operand, a);
	return HG_OK;
}

/* Where a batch ends, and where what one item of the plan has of the row. */
static hg_status cut(hg_context *ctx, const struct hg__csr *csr, int64_t begin, struct hg__sum *sum)
{
	struct hg__buffer edges = {0};
	const struct hg__plan *plan = csr->plan;
	const int64_t *end = NULL;
	for (int64_t k = 0; k < sum->count; k++)
		sum->addend[k].cut = (begin + k + 1) % HG_BATCH_EDGES == 0;
	if (!plan || !plan->splits)
		return HG_OK;
	HG__TRY(
	    hg__buffer_host(ctx, plan->items + 1, sizeof *end, "doctor: the plan of a sum", &edges));
	const hg_status status = ctx->backend->copy_out(ctx, edges.data, plan->item_edge, edges.bytes);
	end = edges.data;
	for (int64_t i = 0; status >= 0 && i <= plan->items; i++)
		if (end[i] > begin && end[i] <= begin + sum->count)
			sum->addend[end[i] - begin - 1].cut = 2;
	hg__buffer_free(ctx, &edges);
	return status;
}

static hg_status gather_from(const struct gather *g, const struct pickers *from,
                             const struct hg__entries *entries, const struct hg__asked *asked,
                             struct hg__sum *sum)
{
	double r = 1.0;
	if (g->row_scale) {
		const struct hg__mat scale = vector(g->row_scale, g->csr->rows);
		HG__TRY(hg__fetch_element(sum->ctx, &scale, asked->row, 0, &r));
	}
	HG__TRY(hg__sum_room(sum, entries->count));
	for (int64_t k = 0; k < entries->count; k++)
		HG__TRY(addend(g, from, entries, k, asked->col, r, &sum->addend[k]));
	sum->products = g->w.data || (g->col_scale && !g->scale_first);
	sum->accumulate = g->halves ? asked->call->node->accumulate : HG_ACC_F32;
	sum->after = hg__half_round(g->row_scale ? g->alpha * (float)r : g->alpha);
	return sum->accumulate == HG_ACC_F16_DISCRETIZED ? cut(sum->ctx, g->csr, entries->begin, sum)
	                                                 : HG_OK;
}

static hg_status gather(const struct gather *g, const struct hg__asked *asked, struct hg__sum *sum)
{
	hg_context *ctx = sum->ctx;
	const struct hg__mat s = vector(g->col_scale, g->csr->cols);
	struct hg__entries entries;
	struct pickers from = {0};
	HG__TRY(hg__entries_open(ctx, g->csr, asked->row, &entries));
	hg_status status = hg__picker_open(ctx, &g->x, entries.count, &from.x);
	if (status >= 0 && g->w.data)
		status = hg__picker_open(ctx, &g->w, entries.count, &from.w);
	if (status >= 0 && g->col_scale)
		status = hg__picker_open(ctx, &s, entries.count, &from.s);
	if (status >= 0)
		status = gather_from(g, &from, &entries, asked, sum);
	hg__picker_close(&from.s);
	hg__picker_close(&from.w);
	hg__picker_close(&from.x);
	hg__entries_close(ctx, &entries);
	return status;
}

/* ---- spmm ---- */

enum { X = 0, W = 1, Z = 2, EPS = 3, BIAS = 4 };

static struct hg__spmm_attr spmm_of(const struct hg__node *node)
{
	struct hg__spmm_attr attr;
	hg__attr_get(node, &attr, sizeof attr); /* first in both ops' constants */
	return attr;
}

/* What both directions have in common: ops/spmm.c. x: what is gathered, y: the result. */
static hg_status spmm_gather(const struct hg__call *c, const struct hg__csr *csr, struct hg__mat x,
                             struct hg__mat y, struct gather *g)
{
	const struct hg__spmm_attr attr = spmm_of(c->node);
	const int ends = c->node->op == &hg__op_spmm_epilogue;
	const void *own = NULL;
	*g = (struct gather){.csr = csr, .x = x, .w = c->in[W], .alpha = attr.alpha};
	g->halves =
	    !ends && c->node->accumulate != HG_ACC_F32 && x.dtype == HG_F16 && y.dtype == HG_F16;
	g->scale_first =
	    hg__norm_is_root(attr.norm) || (attr.norm != HG_NORM_NONE && c->in[X].dtype == HG_F32);
	if (c->node->in[W] < 0) {
		const hg_dtype dtype = c->node->accumulate == HG_ACC_F32 ? HG_F32 : c->in[X].dtype;
		HG__TRY(hg__graph_weight(c->node->graph, dtype, &own));
		g->w = (struct hg__mat){(void *)(uintptr_t)own, csr->m, 1, 1, dtype};
	}
	g->heads = (int)g->w.cols;
	return hg__graph_norm(c->node->graph, attr.norm, &g->row_scale, &g->col_scale);
}

/* 2^shift of one element; nothing where it is 0. */
static hg_status append(const struct hg__mat *x, int64_t row, int64_t col, double factor,
                        hg_term_kind is, struct hg__sum *sum)
{
	struct hg__addend a = {.row = row, .col = col, .factor = factor, .f = 1.0f, .is = is};
	HG__TRY(hg__fetch_element(sum->ctx, x, row, col, &a.operand));
	return a.operand != 0.0 ? hg__sum_append(sum, &a) : HG_OK;
}

/* 1 + eps of a fused node's own term. */
static hg_status own_factor(const struct hg__call *c, double *factor)
{
	double eps = 0.0;
	if (c->in[EPS].data)
		HG__TRY(hg__fetch_element(c->ctx, &c->in[EPS], 0, 0, &eps));
	*factor = 1.0 + eps;
	return HG_OK;
}

/* What a fused node adds to its neighbours: (1 + eps) Z + b. */
static hg_status append_ending(const struct hg__asked *asked, struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	struct hg__spmm_epilogue_attr attr;
	double factor = 1.0;
	hg__attr_get(c->node, &attr, sizeof attr);
	const int own = attr.self ? X : Z;
	HG__TRY(own_factor(c, &factor));
	if (c->in[own].data && (attr.self || c->node->in[Z] >= 0))
		HG__TRY(append(&c->in[own], asked->row, asked->col,
		               ldexp(factor, c->shift[own] - c->shift_out), HG_TERM_OWN, sum));
	return c->in[BIAS].data ? append(&c->in[BIAS], 0, asked->col,
	                                 ldexp(1.0, c->shift[BIAS] - c->shift_out), HG_TERM_BIAS, sum)
	                        : HG_OK;
}

hg_status hg__sum_spmm(const struct hg__asked *asked, struct hg__sum *sum)
{
	struct gather g;
	HG__TRY(spmm_gather(asked->call, &asked->call->csr, asked->call->in[X], asked->call->out, &g));
	g.alpha = ldexpf(g.alpha, asked->call->shift[X] - asked->call->shift_out);
	HG__TRY(gather(&g, asked, sum));
	return asked->call->node->op == &hg__op_spmm_epilogue ? append_ending(asked, sum) : HG_OK;
}

/* What the aggregation's gradient is made of: that of the result, or of what stood before its
 * ending. */
static struct hg__mat before_the_ending(const struct hg__call *c)
{
	return c->node->op == &hg__op_spmm_epilogue && c->aux[1].data ? c->aux[1] : c->dout;
}

hg_status hg__sum_spmm_dx(const struct hg__asked *asked, struct hg__sum *sum)
{
	struct gather g;
	HG__TRY(spmm_gather(asked->call, &asked->call->csr_t, before_the_ending(asked->call),
	                    asked->call->din[X], &g));
	const float *row = g.row_scale;
	g.row_scale = g.col_scale;
	g.col_scale = row;
	HG__TRY(gather(&g, asked, sum));
	struct hg__spmm_epilogue_attr attr = {.self = 0};
	if (asked->call->node->op == &hg__op_spmm_epilogue)
		hg__attr_get(asked->call->node, &attr, sizeof attr);
	double factor = 1.0;
	const struct hg__mat ds = before_the_ending(asked->call);
	if (!attr.self)
		return HG_OK;
	HG__TRY(own_factor(asked->call, &factor));
	return append(&ds, asked->row, asked->col, factor, HG_TERM_OWN, sum);
}

/* ---- products of two rows, at an edge ---- */

static hg_status dot_rows(const struct hg__mat *a, int64_t i, const struct hg__mat *b, int64_t j,
                          int64_t first, int64_t count, double factor, struct hg__sum *sum)
{
	struct hg__fetched x = {0}, y = {0};
	hg_status status = hg__sum_room(sum, count);
	if (status >= 0)
		status = hg__fetch_rows(sum->ctx, a, i, 1, &x);
	if (status >= 0)
		status = hg__fetch_rows(sum->ctx, b, j, 1, &y);
	for (int64_t c = 0; status >= 0 && c < count; c++)
		sum->addend[c] = (struct hg__addend){.row = j,
		                                     .col = first + c,
		                                     .factor = factor * hg__fetched_at(&x, 0, first + c),
		                                     .operand = hg__fetched_at(&y, 0, first + c),
		                                     .f = 1.0f};
	hg__fetched_free(sum->ctx, &y);
	hg__fetched_free(sum->ctx, &x);
	return status;
}

/* dw[e, k] = alpha r_i s_j * sum over c in head k of dY[i, c] X[j, c] */
hg_status hg__sum_spmm_dw(const struct hg__asked *asked, struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	const struct hg__mat dy = before_the_ending(c);
	const int64_t width = c->in[X].cols / c->din[W].cols;
	struct gather g;
	int64_t i = 0, j = 0;
	double r = 1.0, s = 1.0;
	HG__TRY(spmm_gather(c, &c->csr, c->in[X], dy, &g));
	HG__TRY(hg__csr_ends(sum->ctx, &c->csr, asked->row, &i, &j));
	const struct hg__mat rows = vector(g.row_scale, c->csr.rows),
	                     cols = vector(g.col_scale, c->csr.cols);
	if (g.row_scale)
		HG__TRY(hg__fetch_element(sum->ctx, &rows, i, 0, &r));
	if (g.col_scale)
		HG__TRY(hg__fetch_element(sum->ctx, &cols, j, 0, &s));
	return dot_rows(&dy, i, &c->in[X], j, asked->col * width, width,
	                ldexp((double)g.alpha, c->shift[X]) * r * s, sum);
}

/* ---- sddmm_dot: E[e, k] = scale * sum over c in head k of A[i, c] B[j, c] ---- */

static struct hg__sddmm_dot_attr dot_of(const struct hg__node *node)
{
	struct hg__sddmm_dot_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

hg_status hg__sum_sddmm_dot(const struct hg__asked *asked, struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	const struct hg__sddmm_dot_attr attr = dot_of(c->node);
	const int64_t width = c->in[0].cols / attr.heads;
	int64_t i = 0, j = 0;
	HG__TRY(hg__csr_ends(sum->ctx, &c->csr, asked->row, &i, &j));
	return dot_rows(&c->in[0], i, &c->in[1], j, asked->col * width, width, (double)attr.scale, sum);
}

/* dA[i, c] = scale * sum over the edges of row i of dE[e, head] B[j, c]; dB on the transpose: in
 * f32, as all sums but those of spmm. */
static hg_status dot_back(const struct hg__asked *asked, const struct hg__csr *csr, int operand,
                          struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	const struct hg__sddmm_dot_attr attr = dot_of(c->node);
	const struct gather g = {.csr = csr,
	                         .x = c->in[1 - operand],
	                         .w = c->dout,
	                         .heads = attr.heads,
	                         .alpha = attr.scale};
	return gather(&g, asked, sum);
}

hg_status hg__sum_sddmm_dot_da(const struct hg__asked *asked, struct hg__sum *sum)
{
	return dot_back(asked, &asked->call->csr, 0, sum);
}

hg_status hg__sum_sddmm_dot_db(const struct hg__asked *asked, struct hg__sum *sum)
{
	return dot_back(asked, &asked->call->csr_t, 1, sum);
}

/* ---- sddmm_add: dA[i, k] = sum over the edges of row i of f'(A[i, k] + B[j, k]) dE[e, k] ---- */

/* own: the row that is asked for, in column k0 + head of `a`; other: its neighbours', k1 + head of
 * `b`. */
struct scores {
	const struct hg__csr *csr;
	struct hg__mat own, other;
	int64_t own_col, other_col, head;
};

static hg_status slopes_from(const struct scores *t, const struct hg__asked *asked,
                             const struct hg__entries *entries, const struct hg__picker *de,
                             const struct hg__picker *other, struct hg__sum *sum)
{
	struct hg__sddmm_add_attr attr;
	double own = 0.0;
	hg__attr_get(asked->call->node, &attr, sizeof attr);
	HG__TRY(hg__fetch_element(sum->ctx, &t->own, asked->row, t->own_col, &own));
	HG__TRY(hg__sum_room(sum, entries->count));
	for (int64_t k = 0; k < entries->count; k++) {
		struct hg__addend *a = &sum->addend[k];
		double neighbour = 0.0;
		a->row = hg__entry_col(entries, k);
		a->col = t->head;
		HG__TRY(hg__pick(other, a->row, t->other_col, &neighbour));
		HG__TRY(hg__pick(de, hg__entry_edge(entries, k), t->head, &a->operand));
		a->factor = attr.leaky && !(own + neighbour > 0.0) ? (double)attr.slope : 1.0;
	}
	return HG_OK;
}

static hg_status slopes(const struct scores *t, const struct hg__asked *asked, struct hg__sum *sum)
{
	struct hg__entries entries;
	struct hg__picker de = {0}, other = {0};
	HG__TRY(hg__entries_open(sum->ctx, t->csr, asked->row, &entries));
	hg_status status = hg__picker_open(sum->ctx, &asked->call->dout, entries.count, &de);
	if (status >= 0)
		status = hg__picker_open(sum->ctx, &t->other, entries.count, &other);
	if (status >= 0)
		status = slopes_from(t, asked, &entries, &de, &other, sum);
	hg__picker_close(&other);
	hg__picker_close(&de);
	hg__entries_close(sum->ctx, &entries);
	return status;
}

hg_status hg__sum_sddmm_add_da(const struct hg__asked *asked, struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	const int64_t h = c->dout.cols;
	const int together = c->node->in[1] < 0, second = together && asked->col >= h;
	const struct scores first_half = {&c->csr,
	                                  c->in[0],
	                                  together ? c->in[0] : c->in[1],
	                                  asked->col,
	                                  together ? asked->col + h : asked->col,
	                                  asked->col};
	const struct scores last_half = {&c->csr_t,  c->in[0],       c->in[0],
	                                 asked->col, asked->col - h, asked->col - h};
	return slopes(second ? &last_half : &first_half, asked, sum);
}

hg_status hg__sum_sddmm_add_db(const struct hg__asked *asked, struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	const struct scores t = {&c->csr_t, c->in[1], c->in[0], asked->col, asked->col, asked->col};
	return slopes(&t, asked, sum);
}
