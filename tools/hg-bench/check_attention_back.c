#include <math.h>
#include <stdlib.h>

#include "attention_host.h"
#include "check_attention.h"
#include "precision/bound.h"

/* Check the backward pass of attention in f64 (kernels/attention.h has its equations). Every
 * gradient is a sum of products, of which
 *
 *     size = p (mask sum|G_i||V_j| + sum|G_i||Y_i|) >= |ds|
 *
 * is one factor. In any order, and with the two terms of ds together or apart, its error is at most
 * R times the sum of the magnitudes of these products,
 *
 *     R = (1 + gamma_K(u32)) exp(error of a score) - 1
 *     K = exp_roundings + 4 degree + 2 (depth of <G, V>) + 3 (depth of <Q, K>) + 40
 *
 * where 4 counts the additions over the edges (5/2 on tensor cores, precision/bound.h) and over the
 * parts of a row, 3 the product t, a norm and what they are multiplied with, and 40 all other
 * factors.
 *
 * Where the state is f16, a backward pass of ADD may read log_sum and D from records of 8 bytes
 * (cuda/attention_add_back.cu): log_sum with a relative error of 2^-20, which adds 16 |log_sum| to
 * K, and D with one of 2^-12, which adds 2^-12 sum of f' p |D| to the error of dK. On batches with
 * dense counts tensor cores may multiply each weight as one half, p of dV and ds of DOT, which adds
 * 2^-11 of each product (cuda/attention_graphs_back.cu). There D of DOT may be the sum of mask p
 * <G, V> over the row instead of <G, Y>, and dq of ADD (1 - slope) times the sum of positive ds, so
 * that the difference of both is added to their errors. */

/* One edge and head, with its place in both directions. */
struct edge_back {
	struct edge_score score;
	double p, mask, ds, size, far;
	/* what may change f' ds by another D: by the rounding of a record; or its own sum (DOT) */
	double rounded;
};

struct back {
	struct bench *b;
	const struct hg__attention_back_args *a;
	struct attention_host host;
	struct floats y, log_sum, plus, dy;
	int64_t *rowptr_t;
	struct edge_back *edge; /* [degree] of the current row and head */
	int64_t capacity;
	double *other_d; /* [rows, heads] how far D may be from <G, Y>; -1: not known yet */
	struct row of_d;
};

/* A gradient of one row: the sum of what it receives, the error of that, and the sum of the
 * magnitudes of its parts. Gradients that share a matrix share a target of several parts. A kernel
 * may store a part before the next is added to it, so each part counts as one narrowing, of at most
 * the sum of the magnitudes. */
struct target {
	struct hg__mat mat;
	int parts;
	double *exact, *error, *size; /* [cols] */
};
enum { OF_Q, OF_K, OF_V, TARGETS };

static double both(const float *a, const float *b, int64_t cols, double *magnitude)
{
	double sum = 0;
	*magnitude = 0;
	for (int64_t c = 0; c < cols; c++) {
		const double term = (double)a[c] * (double)b[c];
		sum += term;
		*magnitude += fabs(term);
	}
	return sum;
}

/* Whether log_sum and D may be read from records that round them. */
static int rounds_records(const struct attention_host *host)
{
	return host->of.score == HG_SCORE_ADD && host->of.q.dtype == HG_F16;
}

static double half_of(const struct back *k)
{
	return half_weights(&k->host, &k->a->csr);
}

/* Whether D may be a sum over the row. */
static int sums_d(const struct back *k)
{
	return half_of(k) > 0 && k->host.of.score == HG_SCORE_DOT;
}

static struct edge_back edge_back_of(const struct back *k, int64_t i, int64_t j, double weight,
                                     int64_t head)
{
	const struct attention_host *host = &k->host;
	const int64_t cols = host->v_cols;
	const float *g = head_of(&k->dy, i, head, cols);
	const double log_sum = (double)k->log_sum.x[i * k->log_sum.cols + head];
	double gv_size, d_size;
	struct edge_back e = {.score = edge_score_of(host, i, j, head)};
	const double gv = both(g, head_of(&host->v, j, head, cols), cols, &gv_size),
	             d = both(g, head_of(&k->y, i, head, cols), cols, &d_size);
	e.p = weight * exp(e.score.s - log_sum);
	e.mask = edge_mask(host, i, j, head);
	e.ds = e.p * (e.mask * gv - d);
	e.size = (e.p + WEIGHT_FLUSHED) * (e.mask * gv_size + d_size);
	e.far = fmax(fabs(e.score.s), fabs(log_sum));
	if (rounds_records(host))
		e.rounded = 0x1p-12 * e.p * fabs(d) * (e.score.positive ? 1 : fabs((double)host->of.slope));
	else if (sums_d(k))
		e.rounded = e.p * k->other_d[i * host->heads + head];
	return e;
}

static hg_status edges_room(struct back *k, int64_t degree)
{
	if (degree <= k->capacity)
		return HG_OK;
	free(k->edge);
	k->edge = calloc((size_t)degree, sizeof *k->edge);
	k->capacity = k->edge ? degree : 0;
	return k->edge ? HG_OK
	               : hg__fail(k->b->ctx, HG_ERR_NOMEM, "no memory for a row of %lld edges",
	                          (long long)degree);
}

/* How far the sum of mask p <G, V> over row i, as it is computed, may be from <G, Y>. */
static hg_status other_d_get(struct back *k, int64_t i, int64_t head)
{
	const struct attention_host *host = &k->host;
	const int64_t cols = host->v_cols;
	const float *g = head_of(&k->dy, i, head, cols);
	const double log_sum = (double)k->log_sum.x[i * k->log_sum.cols + head];
	double *to = &k->other_d[i * host->heads + head], sum = 0, magnitude = 0, size, far = 0,
	       error = 0;
	if (*to >= 0)
		return HG_OK;
	HG__TRY(edges_get(k->b, host, &k->a->csr, k->b->rowptr, i, &k->of_d));
	for (int64_t e = 0; e < k->of_d.degree; e++) {
		const int64_t j = k->of_d.col[e];
		const struct edge_score score = edge_score_of(host, i, j, head);
		const double p =
		    (double)k->of_d.weight[e] * exp(score.s - log_sum) * edge_mask(host, i, j, head);
		sum += p * both(g, head_of(&host->v, j, head, cols), cols, &size);
		magnitude += (p + WEIGHT_FLUSHED) * size;
		far = fmax(far, fmax(fabs(score.s), fabs(log_sum)));
		error = fmax(error, score.error);
	}
	const double additions = 4 * (double)k->of_d.degree,
	             dots = 2 * host->v_depth + 3 * host->q_depth;
	*to = fabs(sum - both(g, head_of(&k->y, i, head, cols), cols, &size)) +
	      relative_error(exp_roundings(far) + additions + dots + 40, error, 1) * magnitude;
	return HG_OK;
}

/* The same of all rows of the edges that edges_make will need. */
static hg_status other_ds_get(struct back *k, const struct row *row, int transposed, int64_t head)
{
	for (int64_t e = 0; sums_d(k) && e < row->degree; e++)
		HG__TRY(other_d_get(k, transposed ? row->col[e] : row->index, head));
	return HG_OK;
}

/* The edges of a row (transposed: of a column) for one head, and R over them. */
static double edges_make(struct back *k, const struct row *row, int transposed, int64_t head,
                         double additions)
{
	double far = 0, error = 0;
#pragma omp parallel for schedule(static) if (row->degree * k->host.v_cols > 4096)
	for (int64_t e = 0; e < row->degree; e++) {
		const int64_t i = transposed ? row->col[e] : row->index,
		              j = transposed ? row->index : row->col[e];
		k->edge[e] = edge_back_of(k, i, j, (double)row->weight[e], head);
	}
	for (int64_t e = 0; e < row->degree; e++) {
		far = fmax(far, k->edge[e].far);
		error = fmax(error, k->edge[e].score.error);
	}
	const double records = rounds_records(&k->host) ? 16 * far : 0,
	             dots = 2 * k->host.v_depth + 3 * k->host.q_depth;
	return relative_error(exp_roundings(far) + records + additions + dots + 40, error, 1);
}

/* What an edge adds to column c of the gradient of one of its ends: `own` and `other` are the
 * head's columns of Q and K at this end and at the other one. */
struct part {
	double term, magnitude;
};
typedef struct part (*part_fn)(const struct attention_host *host, const struct edge_back *e,
                               const float *own, const float *other, double own_norm,
                               double other_norm, int64_t head, int64_t c);

static struct part part_add(const struct attention_host *host, const struct edge_back *e,
                            const float *own, const float *other, double own_norm,
                            double other_norm, int64_t head, int64_t c)
{
	const double slope = e->score.positive ? 1 : (double)host->of.slope;
	(void)own, (void)other, (void)own_norm, (void)other_norm, (void)head, (void)c;
	return (struct part){slope * e->ds, fabs(slope) * e->size};
}

static struct part part_dot(const struct attention_host *host, const struct edge_back *e,
                            const float *own, const float *other, double own_norm,
                            double other_norm, int64_t head, int64_t c)
{
	const double factor = (double)host->of.scale * (double)other[c];
	(void)own, (void)own_norm, (void)other_norm, (void)head;
	return (struct part){factor * e->ds, fabs(factor) * e->size};
}

static struct part part_cosine(const struct attention_host *host, const struct edge_back *e,
                               const float *own, const float *other, double own_norm,
                               double other_norm, int64_t head, int64_t c)
{
	const double beta = (double)host->c.x[host->c.cols > 1 ? head : 0] / own_norm;
	const double unit = (double)own[c] / own_norm, there = (double)other[c] / other_norm;
	return (struct part){
	    beta * e->ds * (there - e->score.t * unit),
	    fabs(beta) * e->size * (fabs(there) + e->score.t_most * fabs(unit)),
	};
}

static struct part part_add_v2(const struct attention_host *host, const struct edge_back *e,
                               const float *own, const float *other, double own_norm,
                               double other_norm, int64_t head, int64_t c)
{
	const double x = (double)own[c] + (double)other[c], slope = x > 0 ? 1 : (double)host->of.slope,
	             factor = slope * (double)host->c.x[head * host->q_cols + c];
	(void)own_norm, (void)other_norm;
	return (struct part){factor * e->ds, fabs(factor) * e->size};
}

static const part_fn parts[HG_SCORE_COUNT] = {[HG_SCORE_ADD] = part_add,
                                              [HG_SCORE_DOT] = part_dot,
                                              [HG_SCORE_COSINE] = part_cosine,
                                              [HG_SCORE_ADD_V2] = part_add_v2};

/* The gradient of the scores' operand at this end of the edges: K of a column, Q of a row. */
static void score_gradient(const struct back *k, const struct row *row, int transposed,
                           int64_t head, double relative, struct target *to)
{
	const struct attention_host *host = &k->host;
	const struct floats *here = transposed ? &host->k : &host->q,
	                    *there = transposed ? &host->q : &host->k;
	const float *own = head_of(here, row->index, head, host->q_cols);
	const part_fn part_of = parts[host->of.score];
	for (int64_t c = 0; c < host->q_cols; c++) {
		struct part sum = {0, 0};
		double rounded = 0;
		for (int64_t e = 0; e < row->degree; e++) {
			const struct edge_back *edge = &k->edge[e];
			const double own_norm = transposed ? edge->score.k_norm : edge->score.q_norm,
			             other_norm = transposed ? edge->score.q_norm : edge->score.k_norm;
			const struct part part =
			    part_of(host, edge, own, head_of(there, row->col[e], head, host->q_cols), own_norm,
			            other_norm, head, c);
			sum.term += part.term;
			sum.magnitude += part.magnitude;
			if (host->of.score == HG_SCORE_DOT)
				rounded += half_of(k) * fabs(part.term) +
				           (1 + half_of(k)) * edge->rounded *
				               fabs((double)host->of.scale *
				                    (double)head_of(there, row->col[e], head, host->q_cols)[c]);
			else
				rounded += edge->rounded;
		}
		to->exact[head * host->q_cols + c] += sum.term;
		to->size[head * host->q_cols + c] += fabs(sum.term);
		to->error[head * host->q_cols + c] += relative * sum.magnitude + (1 + relative) * rounded;
	}
}

/* The sum of positive ds of a row, and a bound on its error. */
struct positive_ds {
	double sum, error;
};
static struct positive_ds positive_of(struct back *k, const struct row *row, int64_t head)
{
	const double relative = edges_make(k, row, 0, head, 4 * (double)row->degree);
	struct positive_ds of = {0, 0};
	for (int64_t e = 0; e < row->degree; e++)
		if (k->edge[e].score.positive) {
			of.sum += k->edge[e].ds;
			of.error += relative * k->edge[e].size;
		}
	return of;
}

/* dq of ADD has no sum over edges, as the forward pass kept what it needs; or, where weights may be
 * halves, it may be one of positive ds. */
static void q_gradient_add(struct back *k, const struct row *row, int64_t head, struct target *to)
{
	const int64_t i = row->index;
	const struct attention_host *host = &k->host;
	const int64_t cols = host->v_cols;
	const float *g = head_of(&k->dy, i, head, cols);
	const double slope = 1 - (double)host->of.slope,
	             positive = (double)k->log_sum.x[i * k->log_sum.cols + host->heads + head];
	double plus_size, d_size;
	const double plus = both(g, head_of(&k->plus, i, head, cols), cols, &plus_size),
	             d = both(g, head_of(&k->y, i, head, cols), cols, &d_size),
	             dq = plus - d * positive;
	double error = hg__gamma(host->v_depth + 8, hg_dtype_get(HG_F32)->u) *
	               (plus_size + d_size * fabs(positive));
	if (half_of(k) > 0) {
		const struct positive_ds of = positive_of(k, row, head);
		error = fmax(error, fabs(of.sum - dq) + of.error);
	}
	to->exact[head] += slope * dq;
	to->size[head] += fabs(slope * dq);
	to->error[head] += fabs(slope) * error;
}

static void v_gradient(const struct back *k, const struct row *column, int64_t head,
                       double relative, struct target *to)
{
	const int64_t cols = k->host.v_cols;
	for (int64_t c = head * cols; c < (head + 1) * cols; c++) {
		double sum = 0, magnitude = 0;
		for (int64_t e = 0; e < column->degree; e++) {
			const double g = (double)k->dy.x[column->col[e] * k->dy.cols + c];
			sum += k->edge[e].mask * k->edge[e].p * g;
			magnitude += k->edge[e].mask * (k->edge[e].p + WEIGHT_FLUSHED) * fabs(g);
		}
		to->exact[c] += sum;
		to->size[c] += fabs(sum);
		to->error[c] += (relative + (1 + relative) * half_of(k)) * magnitude;
	}
}

static double additions_of(const struct row *row)
{
	return 4 * (double)row->degree;
}

static hg_status row_part(struct back *k, struct row *row, struct target *of_q)
{
	if (!of_q)
		return HG_OK;
	HG__TRY(edges_get(k->b, &k->host, &k->a->csr, k->b->rowptr, row->index, row));
	HG__TRY(edges_room(k, row->degree));
	for (int64_t head = 0; head < k->host.heads; head++) {
		if (k->host.of.score == HG_SCORE_ADD) {
			q_gradient_add(k, row, head, of_q);
		} else {
			HG__TRY(other_ds_get(k, row, 0, head));
			const double relative = edges_make(k, row, 0, head, additions_of(row));
			score_gradient(k, row, 0, head, relative, of_q);
		}
	}
	return HG_OK;
}

static hg_status column_part(struct back *k, struct row *column, struct target *of_k,
                             struct target *of_v)
{
	HG__TRY(edges_get(k->b, &k->host, &k->a->csr_t, k->rowptr_t, column->index, column));
	HG__TRY(edges_room(k, column->degree));
	for (int64_t head = 0; head < k->host.heads; head++) {
		HG__TRY(other_ds_get(k, column, 1, head));
		const double relative = edges_make(k, column, 1, head, additions_of(column));
		if (of_k)
			score_gradient(k, column, 1, head, relative, of_k);
		if (of_v)
			v_gradient(k, column, head, relative, of_v);
	}
	return HG_OK;
}

/* The targets by operand, NULL for an absent gradient. */
struct targets {
	struct target own[TARGETS], *of[TARGETS];
};

static void targets_free(struct targets *t)
{
	for (int g = 0; g < TARGETS; g++)
		free(t->own[g].exact);
}

static hg_status targets_new(struct bench *b, const struct hg__attention_back_args *a,
                             struct targets *t)
{
	const struct hg__mat mats[TARGETS] = {a->dq, a->dk, a->dv};
	*t = (struct targets){.of = {NULL}};
	for (int g = 0; g < TARGETS; g++) {
		for (int other = 0; other < g; other++)
			if (mats[g].data && mats[g].data == mats[other].data)
				t->of[g] = t->of[other];
		if (t->of[g])
			t->of[g]->parts++;
		if (!mats[g].data || t->of[g])
			continue;
		t->own[g].mat = mats[g];
		t->own[g].parts = 1;
		t->own[g].exact = calloc((size_t)mats[g].cols * 3, sizeof *t->own[g].exact);
		if (!t->own[g].exact)
			return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a row of %lld columns",
			                (long long)mats[g].cols);
		t->own[g].error = t->own[g].exact + mats[g].cols;
		t->own[g].size = t->own[g].error + mats[g].cols;
		t->of[g] = &t->own[g];
	}
	return HG_OK;
}

static void targets_clear(struct targets *t)
{
	for (int g = 0; g < TARGETS; g++)
		for (int64_t c = 0; t->own[g].exact && c < t->own[g].mat.cols; c++)
			t->own[g].exact[c] = t->own[g].error[c] = t->own[g].size[c] = 0;
}

static hg_status target_check(struct bench *b, const struct target *t, int64_t row,
                              struct copy *found, struct check *check)
{
	if (!t->exact)
		return HG_OK;
	HG__TRY(copy_rows(b, t->mat, row, 1, found));
	for (int64_t c = 0; c < t->mat.cols; c++)
		check_number(check, row, c, copy_at(found, 0, c), t->exact[c],
		             t->error[c] +
		                 t->parts * hg__bound_narrow(t->mat.dtype, t->size[c] + t->error[c]));
	return HG_OK;
}

/* The gradients of node `index` as a destination and as a source: the graph is square. */
static hg_status node_check(struct back *k, struct targets *t, int64_t index, struct row *row,
                            struct copy *found, struct check *check)
{
	targets_clear(t);
	row->index = index;
	HG__TRY(row_part(k, row, t->of[OF_Q]));
	row->index = index;
	HG__TRY(column_part(k, row, t->of[OF_K], t->of[OF_V]));
	for (int g = 0; g < TARGETS; g++)
		HG__TRY(target_check(k->b, &t->own[g], index, found, check));
	return HG_OK;
}

static hg_status nodes_check(struct back *k, struct check *check)
{
	struct targets targets;
	struct row row = {.capacity = 0};
	struct copy found = {.capacity = 0};
	hg_status status = targets_new(k->b, k->a, &targets);
	for (int64_t at = 0; status == HG_OK && at < check_rows(k->b, k->b->csr.rows); at++)
		status = node_check(k, &targets, check_row(k->b, k->b->csr.rows, at), &row, &found, check);
	row_free(&row);
	copy_free(&found);
	targets_free(&targets);
	return status;
}

/* What an edge adds to dc. */
static void c_part(const struct attention_host *host, const struct edge_back *e, int64_t i,
                   int64_t j, int64_t head, struct target *to)
{
	const float *q = head_of(&host->q, i, head, host->q_cols),
	            *k = head_of(&host->k, j, head, host->q_cols);
	if (host->of.score == HG_SCORE_COSINE) {
		const int64_t at = to->mat.cols > 1 ? head : 0;
		to->exact[at] += e->ds * e->score.t;
		to->error[at] += e->size * e->score.t_most;
		return;
	}
	for (int64_t c = 0; c < host->q_cols; c++) {
		const double x = (double)q[c] + (double)k[c];
		to->exact[head * host->q_cols + c] += e->ds * (x > 0 ? x : (double)host->of.slope * x);
		to->error[head * host->q_cols + c] += e->size * (fabs((double)q[c]) + fabs((double)k[c]));
	}
}

/* Additions of a sum over all edges: those of each item of the plan, of at most 3/2 item_work or 64
 * more edges (core/csr.h), and then of all items, one after the other. */
static double additions_of_all(const struct hg__csr *csr, int64_t longest)
{
	return csr->plan ? 4 * (1.5 * (double)csr->plan->item_work + 64) + (double)csr->plan->items
	                 : 4 * (double)longest + (double)csr->rows;
}

static hg_status c_sum(struct back *k, struct target *to, double *relative)
{
	const int64_t longest = k->b->longest,
	              edges = k->b->rowptr[longest + 1] - k->b->rowptr[longest];
	const double additions = additions_of_all(&k->a->csr, edges);
	struct row row = {.capacity = 0};
	hg_status status = HG_OK;
	for (int64_t i = 0; status == HG_OK && i < k->a->csr.rows; i++) {
		status = edges_get(k->b, &k->host, &k->a->csr, k->b->rowptr, i, &row);
		if (status == HG_OK)
			status = edges_room(k, row.degree);
		for (int64_t head = 0; status == HG_OK && head < k->host.heads; head++) {
			*relative = fmax(*relative, edges_make(k, &row, 0, head, additions));
			for (int64_t e = 0; e < row.degree; e++)
				c_part(&k->host, &k->edge[e], i, row.col[e], head, to);
		}
	}
	row_free(&row);
	return status;
}

/* dc is in f32, and a sum over all edges. */
static hg_status c_check(struct back *k, struct check *check)
{
	struct target sum = {.mat = k->a->dc, .parts = 1};
	struct copy found = {.capacity = 0};
	double relative = 0;
	if (!k->a->dc.data || k->a->csr.m * k->host.v.cols > DC_MOST)
		return HG_OK;
	sum.exact = calloc((size_t)sum.mat.cols * 3, sizeof *sum.exact);
	if (!sum.exact)
		return hg__fail(k->b->ctx, HG_ERR_NOMEM, "no memory for a row of %lld columns",
		                (long long)sum.mat.cols);
	sum.error = sum.exact + sum.mat.cols;
	sum.size = sum.error + sum.mat.cols;
	hg_status status = c_sum(k, &sum, &relative);
	for (int64_t c = 0; c < sum.mat.cols; c++) {
		sum.error[c] *= relative;
		sum.size[c] = fabs(sum.exact[c]);
	}
	if (status == HG_OK)
		status = target_check(k->b, &sum, 0, &found, check);
	copy_free(&found);
	free(sum.exact);
	return status;
}

static hg_status back_get(struct back *k)
{
	const struct hg__attention_back_args *a = k->a;
	HG__TRY(attention_host_get(k->b, &a->of, &k->host));
	HG__TRY(floats_get(k->b, a->y, &k->y));
	HG__TRY(floats_get(k->b, a->log_sum, &k->log_sum));
	HG__TRY(floats_get(k->b, a->plus, &k->plus));
	HG__TRY(floats_get(k->b, a->dy, &k->dy));
	const int64_t of_d = sums_d(k) ? a->csr.rows * k->host.heads : 0;
	k->rowptr_t = calloc((size_t)a->csr_t.rows + 1, sizeof *k->rowptr_t);
	k->other_d = calloc((size_t)of_d + 1, sizeof *k->other_d);
	for (int64_t i = 0; k->other_d && i < of_d; i++)
		k->other_d[i] = -1;
	if (!k->rowptr_t || !k->other_d)
		return hg__fail(k->b->ctx, HG_ERR_NOMEM, "no memory for %lld row pointers",
		                (long long)a->csr_t.rows + 1);
	return k->b->ctx->backend->copy_out(k->b->ctx, k->rowptr_t, a->csr_t.rowptr,
	                                    (size_t)(a->csr_t.rows + 1) * sizeof *k->rowptr_t);
}

hg_status check_attention_back(struct bench *b, const struct hg__attention_back_args *a,
                               struct check *check)
{
	struct back k = {.b = b, .a = a};
	*check = check_new();
	hg_status status = back_get(&k);
	if (status == HG_OK)
		status = nodes_check(&k, check);
	if (status == HG_OK)
		status = c_check(&k, check);
	attention_host_free(&k.host);
	floats_free(&k.y);
	floats_free(&k.log_sum);
	floats_free(&k.plus);
	floats_free(&k.dy);
	free(k.rowptr_t);
	free(k.other_d);
	row_free(&k.of_d);
	free(k.edge);
	return status;
}
