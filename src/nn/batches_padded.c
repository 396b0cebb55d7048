/* What all padded batches of a dataset share, and which datasets have them. */
#include "nn/batches_block.h"

#include <math.h>
#include <string.h>

#include "core/convert.h"

/* Each row is one work item here, so no row may be so long that the others wait for it. */
#define MOST_DEGREE 1024
/* On a device without capture sparse features are made dense only up to this many columns; with
 * capture always, because a captured step is worth more. */
#define FEW_COLUMNS 128

static int64_t at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Do rows of sparse features hold each column once, and values that the type holds exactly? The
 * largest of these is *amax. */
static int is_exact(const hg_batches *all, hg_dtype state, double *amax)
{
	const struct hg__host_csr *x = &all->sparse;
	const int64_t *ptr = all->ptr.data;
	*amax = 0.0;
	for (int64_t i = 0; i < ptr[all->graphs]; i++)
		for (int64_t e = x->rowptr[i]; e < x->rowptr[i + 1]; e++) {
			const float value = x->weight ? x->weight[e] : 1.0f;
			const float kept =
			    state == HG_F16 ? hg_half_to_float(hg_half_from_float(value)) : value;
			if (!isfinite(kept) || memcmp(&kept, &value, sizeof kept) != 0 ||
			    (e > x->rowptr[i] && x->col[e] <= x->col[e - 1]))
				return 0;
			*amax = fmax(*amax, fabs((double)value));
		}
	return 1;
}

/* The edges of padding rows need a positive weight that the dataset has: with it no sum exceeds
 * those of the dataset. */
static int lacks_positive_weight(const hg_batches *all)
{
	const int64_t m = all->graph.rowptr[((const int64_t *)all->ptr.data)[all->graphs]];
	int64_t e = 0;
	while (all->graph.weight && e < m && !(all->graph.weight[e] > 0.0f))
		e++;
	return all->graph.weight && m > 0 && e == m;
}

const char *hg__padded_refusal(const hg_batches *all, hg_dtype state, int captures)
{
	const hg_graph_facts *f = &all->graph_facts.facts;
	double amax;
	if (at_least(f->max_row_degree, f->max_col_degree) > MOST_DEGREE)
		return "a node has more than 1024 edges";
	if (lacks_positive_weight(all))
		return "no edge has a positive weight";
	if (all->is_sparse && !captures && all->features > FEW_COLUMNS)
		return "the features are sparse";
	if (all->is_sparse && !is_exact(all, state, &amax))
		return "the type of dense features does not hold the sparse ones exactly";
	return NULL;
}

/* The transpose of each graph by itself, columns ascending in each row. rowptr_t has the numbers of
 * the whole dataset, as rowptr does: a graph has its edges in the same place in both. */
static hg_status transpose(struct hg__padded *p)
{
	const hg_batches *all = p->all;
	hg_context *ctx = all->ctx;
	const int64_t *ptr = all->ptr.data, *rowptr = all->graph.rowptr, nodes = ptr[all->graphs],
	              m = rowptr[nodes];
	struct hg__buffer next = {0};
	HG__TRY(hg__buffer_host(ctx, nodes + 1, sizeof(int64_t), "batches: transpose", &p->rowptr_t));
	HG__TRY(hg__buffer_host(ctx, m, sizeof(int32_t), "batches: transpose", &p->col_t));
	HG__TRY(hg__buffer_host(ctx, m, sizeof(uint32_t), "batches: transpose", &p->edge_t));
	HG__TRY(hg__buffer_host(ctx, nodes, sizeof(int64_t), "batches: transpose", &next));
	int64_t *rowptr_t = p->rowptr_t.data, *at = next.data;
	int32_t *col_t = p->col_t.data;
	uint32_t *edge_t = p->edge_t.data;
	for (int64_t g = 0; g < all->graphs; g++)
		for (int64_t e = rowptr[ptr[g]]; e < rowptr[ptr[g + 1]]; e++)
			rowptr_t[ptr[g] + all->graph.col[e] + 1]++;
	for (int64_t i = 0; i < nodes; i++) {
		rowptr_t[i + 1] += rowptr_t[i];
		at[i] = rowptr_t[i];
	}
	for (int64_t g = 0; g < all->graphs; g++)
		for (int64_t i = ptr[g]; i < ptr[g + 1]; i++)
			for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++) {
				const int64_t to = at[ptr[g] + all->graph.col[e]]++;
				col_t[to] = (int32_t)(i - ptr[g]);
				edge_t[to] = (uint32_t)(e - rowptr[ptr[g]]);
			}
	hg__buffer_free(ctx, &next);
	return HG_OK;
}

static hg_status factors(struct hg__padded *p)
{
	const hg_batches *all = p->all;
	const int64_t nodes = ((const int64_t *)all->ptr.data)[all->graphs];
	for (int k = 0; k < 4; k++) {
		if (!(p->needs >> (HG__PADDED_INVERSE_ROW + k) & 1u))
			continue;
		HG__TRY(hg__buffer_host(all->ctx, nodes, sizeof(float), "batches: norm", &p->factor[k]));
		const int64_t *ptr = k % 2 ? p->rowptr_t.data : all->graph.rowptr;
		(k < 2 ? hg__degree_inverse : hg__degree_root)(nodes, ptr, p->factor[k].data);
	}
	return HG_OK;
}

static hg_status narrow_weights(struct hg__padded *p)
{
	const hg_batches *all = p->all;
	const int64_t m = all->graph.rowptr[((const int64_t *)all->ptr.data)[all->graphs]];
	HG__TRY(hg__buffer_host(all->ctx, m, sizeof(hg_half), "batches: f16 weights", &p->weight_f16));
	hg__convert(HG_F16, p->weight_f16.data, HG_F32, all->graph.weight, m);
	return HG_OK;
}

/* What counts of graph g: its label, unless it is negative or masked, or elements of its mask. */
static int64_t counted_of(const hg_batches *all, int64_t g, int labels, int mask)
{
	if (labels >= 0 && ((const int32_t *)all->row[labels].data.data)[g] < 0)
		return 0;
	if (mask < 0)
		return 1;
	const struct hg__table *t = &all->row[mask];
	int64_t count = 0;
	for (int64_t c = 0; c < t->cols; c++)
		count += ((const uint8_t *)t->data.data)[g * t->cols + c] != 0;
	return count;
}

static hg_status count_what_counts(struct hg__padded *p, int labels, int mask)
{
	const hg_batches *all = p->all;
	const int64_t *chosen = all->chosen.data;
	HG__TRY(hg__buffer_host(all->ctx, all->graphs, sizeof(int64_t), "batches: what counts",
	                        &p->counted));
	int64_t *counted = p->counted.data;
	for (int64_t g = 0; g < all->graphs; g++)
		counted[g] = counted_of(all, g, labels, mask);
	p->least_counted = INT64_MAX;
	for (int64_t k = 0; k < all->count; k++)
		p->least_counted =
		    counted[chosen[k]] < p->least_counted ? counted[chosen[k]] : p->least_counted;
	p->least_counted = at_least(p->least_counted, 1);
	return HG_OK;
}

/* The arrays that a graph has which tapes have asked for what they read. */
static unsigned needs_of(const hg_batches *all, const hg_graph *g)
{
	const struct {
		enum hg__padded_array array;
		int needed;
	} arrays[] = {{HG__PADDED_ROWPTR, 1},
	              {HG__PADDED_COL, 1},
	              {HG__PADDED_WEIGHT, all->graph.weight != NULL},
	              {HG__PADDED_WEIGHT_F16, g->weight_f16.bytes != 0},
	              {HG__PADDED_ROWPTR_T, g->rowptr_t.bytes != 0},
	              {HG__PADDED_COL_T, g->rowptr_t.bytes != 0},
	              {HG__PADDED_EDGE_T, g->edge_t.bytes != 0},
	              {HG__PADDED_INVERSE_ROW, g->inverse_row.bytes != 0},
	              {HG__PADDED_INVERSE_COL, g->inverse_col.bytes != 0},
	              {HG__PADDED_ROOT_ROW, g->root_row.bytes != 0},
	              {HG__PADDED_ROOT_COL, g->root_col.bytes != 0},
	              {HG__PADDED_PTR, 1},
	              {HG__PADDED_ID, 1},
	              {HG__PADDED_BIN, g->bin_first.bytes != 0},
	              {HG__PADDED_X, 1},
	              {HG__PADDED_EDGE_X, all->has_edges}};
	unsigned needs = 0;
	for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
		needs |= (unsigned)(arrays[k].needed != 0) << arrays[k].array;
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		needs |= (unsigned)(all->row[k].rows > 0) << (HG__PADDED_ROW + k);
	return needs;
}

static int needs_transpose(const struct hg__padded *p)
{
	const unsigned of_columns = 1u << HG__PADDED_ROWPTR_T | 1u << HG__PADDED_COL_T |
	                            1u << HG__PADDED_EDGE_T | 1u << HG__PADDED_INVERSE_COL |
	                            1u << HG__PADDED_ROOT_COL;
	return (p->needs & of_columns) != 0;
}

/* A padding row has at most as many edges as a row of the dataset, and no larger sum of weights. */
static int64_t edges_per_row(const hg_batches *all, float weight)
{
	const hg_graph_facts *f = &all->graph_facts.facts;
	const double sum = fmin(f->max_row_sum, f->max_col_sum);
	int64_t most = f->max_row_degree < f->max_col_degree ? f->max_row_degree : f->max_col_degree;
	if (all->graph.weight && weight > 0.0f && sum / (double)weight < (double)most)
		most = (int64_t)(sum / (double)weight);
	return at_least(most, 1);
}

hg_status hg__padded_init(struct hg__padded *p, const hg_batches *all, const hg_graph *probe,
                          hg_dtype state, int labels, int mask)
{
	*p = (struct hg__padded){.all = all, .needs = needs_of(all, probe), .weight = 1.0f};
	if (all->graph.weight)
		p->weight = all->graph_facts.least_positive;
	p->per_row = edges_per_row(all, p->weight);
	p->x_dtype = all->is_sparse ? state : all->dense.dtype;
	p->x_amax = all->x_amax;
	if (all->is_sparse)
		(void)is_exact(all, state, &p->x_amax);
	if (needs_transpose(p))
		HG__TRY(transpose(p));
	HG__TRY(factors(p));
	if (p->needs >> HG__PADDED_WEIGHT_F16 & 1u)
		HG__TRY(narrow_weights(p));
	HG__TRY(hg__padded_share(p));
	return count_what_counts(p, labels, mask);
}

int64_t hg__padded_counted(const struct hg__padded *p, const int64_t *graph, int64_t graphs)
{
	const int64_t *counted = p->counted.data;
	int64_t sum = 0;
	for (int64_t k = 0; k < graphs; k++)
		sum += counted[graph[k]];
	return sum;
}

void hg__padded_fini(struct hg__padded *p)
{
	if (!p->all)
		return;
	struct hg__buffer *const buffers[] = {
	    &p->rowptr_t,  &p->col_t,     &p->edge_t,    &p->weight_f16, &p->counted, &p->factor[0],
	    &p->factor[1], &p->factor[2], &p->factor[3], &p->table,      &p->row_of};
	for (size_t k = 0; k < sizeof buffers / sizeof *buffers; k++)
		hg__buffer_free(p->all->ctx, buffers[k]);
	*p = (struct hg__padded){.all = NULL};
}
