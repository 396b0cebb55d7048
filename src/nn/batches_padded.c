/* What all padded batches of a dataset share, and which datasets have them. */
#include "nn/batches_padded.h"

#include <math.h>
#include <string.h>

#include "core/csr.h"

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

static const void *row_of(const struct hg__table *t, int64_t i)
{
	return t->at + (size_t)i * t->pitch;
}

/* What counts of graph g: its label, unless it is negative or masked, or elements of its mask. */
static int64_t counted_of(const hg_batches *all, int64_t g, int labels, int mask)
{
	if (labels >= 0 && *(const int32_t *)row_of(&all->row[labels], g) < 0)
		return 0;
	if (mask < 0)
		return 1;
	const struct hg__table *t = &all->row[mask];
	const uint8_t *row = row_of(t, g);
	int64_t count = 0;
	for (int64_t c = 0; c < t->cols; c++)
		count += row[c] != 0;
	return count;
}

static hg_status sizes_note(struct hg__padded *p, int labels, int mask)
{
	const hg_batches *all = p->all;
	const int64_t *chosen = all->chosen.data, *ptr = all->ptr.data;
	HG__TRY(hg__buffer_host(all->ctx, all->graphs, sizeof(struct hg__graph_size),
	                        "batches: sizes of graphs", &p->size));
	struct hg__graph_size *size = p->size.data;
	for (int64_t g = 0; g < all->graphs; g++)
		size[g] = (struct hg__graph_size){.nodes = (int32_t)(ptr[g + 1] - ptr[g]),
		                                  .counted = (int32_t)counted_of(all, g, labels, mask),
		                                  .edges = all->graph.rowptr[ptr[g + 1]] -
		                                           all->graph.rowptr[ptr[g]]};
	p->least_counted = INT64_MAX;
	for (int64_t k = 0; k < all->count; k++)
		if (size[chosen[k]].counted < p->least_counted)
			p->least_counted = size[chosen[k]].counted;
	p->least_counted = at_least(p->least_counted, 1);
	return HG_OK;
}

/* The arrays of batches: those that the graph of the first batch has by now, because its tape has
 * asked for them. A tape with regions asks for bins, and the transpose of a graph that is not
 * symmetric, and otherwise for nothing that one without them does not ask for. If the first batch
 * has a graph of more than HG__BIN_ROWS nodes its tape may have no regions, but those of other
 * batches may. */
static unsigned needs_of(const hg_batches *all, const hg_graph *g, hg_dtype state)
{
	const int others =
	              hg__graph_bin_rows(g) != HG__BIN_ROWS && state == HG_F16 && !all->graph.weight,
	          bins = g->bin_first.bytes != 0 || others,
	          transpose = g->rowptr_t.bytes != 0 || (bins && !g->pattern_symmetric);
	const struct {
		enum hg__padded_array array;
		int needed;
	} arrays[] = {{HG__PADDED_ROWPTR, 1},
	              {HG__PADDED_COL, 1},
	              {HG__PADDED_WEIGHT, all->graph.weight != NULL},
	              {HG__PADDED_WEIGHT_F16, g->weight_f16.bytes != 0},
	              {HG__PADDED_ROWPTR_T, transpose},
	              {HG__PADDED_COL_T, transpose},
	              {HG__PADDED_EDGE_T, g->edge_t.bytes != 0},
	              {HG__PADDED_INVERSE_ROW, g->inverse_row.bytes != 0},
	              {HG__PADDED_INVERSE_COL, g->inverse_col.bytes != 0},
	              {HG__PADDED_ROOT_ROW, g->root_row.bytes != 0},
	              {HG__PADDED_ROOT_COL, g->root_col.bytes != 0},
	              {HG__PADDED_PTR, 1},
	              {HG__PADDED_ID, 1},
	              {HG__PADDED_BIN, bins},
	              {HG__PADDED_X, 1},
	              {HG__PADDED_EDGE_X, all->has_edges}};
	unsigned needs = 0;
	for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
		needs |= (unsigned)(arrays[k].needed != 0) << arrays[k].array;
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		needs |= (unsigned)(all->row[k].rows > 0) << (HG__PADDED_ROW + k);
	return needs;
}

/* Few large bins are worth while only for deep models. The tape on the first batch tells whether
 * this one is deep, if that batch has few: it has asked for bins then. Batches of one shape that
 * differ in their bins have a tape each, which nobody should record for nothing. */
static int64_t large_bins_rows(const hg_batches *all, const hg_graph *g)
{
	const int64_t few = all->ctx->backend->large_bins_rows;
	return hg__bin_is_large(hg__graph_bin_rows(g)) && g->rows < few && !g->bin_first.bytes ? few
	                                                                                       : 0;
}

static int needs(const struct hg__padded *p, enum hg__padded_array array)
{
	return p->needs >> array & 1u;
}

/* ---- the dataset on the device ---- */

static hg_status factors_take(const struct hg__padded *p, hg_graph *graph)
{
	const float *row, *col;
	if (needs(p, HG__PADDED_INVERSE_ROW))
		HG__TRY(hg__graph_norm(graph, HG_NORM_RIGHT, &row, &col));
	if (needs(p, HG__PADDED_INVERSE_COL))
		HG__TRY(hg__graph_norm(graph, HG_NORM_LEFT, &row, &col));
	if (needs(p, HG__PADDED_ROOT_COL))
		HG__TRY(hg__graph_norm(graph, HG_NORM_BOTH, &row, &col));
	if (needs(p, HG__PADDED_ROOT_ROW))
		HG__TRY(hg__graph_norm(graph, HG_NORM_IN, &row, &col));
	return HG_OK;
}

/* The graph keeps what it is asked for, as it does for its own tapes. */
static hg_status graph_take(struct hg__padded *p, hg_graph *g)
{
	const int64_t *ptr;
	const int32_t *id;
	const void *weight;
	HG__TRY(hg__graph_batch(g, &ptr, &id));
	if (needs(p, HG__PADDED_ROWPTR_T) || needs(p, HG__PADDED_EDGE_T))
		HG__TRY(hg__graph_transpose(g, needs(p, HG__PADDED_EDGE_T)));
	if (needs(p, HG__PADDED_WEIGHT_F16))
		HG__TRY(hg__graph_weight(g, HG_F16, &weight));
	HG__TRY(factors_take(p, g));
	p->from = (struct hg__changing){.rows = g->rows,
	                                .m = g->m,
	                                .count = g->batch,
	                                .rowptr = g->rowptr.data,
	                                .rowptr_t = g->rowptr_t.data,
	                                .ptr = g->batch_ptr.data,
	                                .col = g->col.data,
	                                .col_t = g->col_t.data,
	                                .id = g->batch_id.data,
	                                .edge_t = g->edge_t.data,
	                                .weight = g->weight.data,
	                                .inverse_row = g->inverse_row.data,
	                                .inverse_col = g->inverse_col.data,
	                                .root_row = g->root_row.data,
	                                .root_col = g->root_col.data,
	                                .weight_f16 = g->weight_f16.data};
	return HG_OK;
}

static struct hg__mat mat_of(const hg_tensor *tensor)
{
	return tensor ? tensor->mat : (struct hg__mat){.data = NULL};
}

static hg_status dataset_take(struct hg__padded *p, const hg_batches_config *c)
{
	HG__TRY(graph_take(p, c->input.graph));
	if (c->input.x_sparse) {
		const hg_graph *x = c->input.x_sparse;
		p->x_sparse = (struct hg__csr){.rows = x->rows,
		                               .cols = x->cols,
		                               .m = x->m,
		                               .rowptr = x->rowptr.data,
		                               .col = x->col.data};
		p->x_sparse_weight = x->weight.data;
	}
	p->x = mat_of(c->input.x);
	p->edge_x = mat_of(c->input.edge_x);
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		p->row[k] = mat_of(c->row[k]);
	return HG_OK;
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

hg_status hg__padded_init(struct hg__padded *p, const hg_batches *all,
                          const hg_batches_config *from, const hg_graph *probe, hg_dtype state,
                          int labels, int mask)
{
	*p = (struct hg__padded){.all = all, .needs = needs_of(all, probe, state), .weight = 1.0f};
	if (all->graph.weight)
		p->weight = all->graph_facts.least_positive;
	p->large_bins_rows = large_bins_rows(all, probe);
	p->per_row = edges_per_row(all, p->weight);
	p->x_dtype = all->is_sparse ? state : all->dense.dtype;
	p->x_amax = all->x_amax;
	if (all->is_sparse)
		(void)is_exact(all, state, &p->x_amax);
	HG__TRY(dataset_take(p, from));
	return sizes_note(p, labels, mask);
}

void hg__padded_fini(struct hg__padded *p)
{
	if (p->all)
		hg__buffer_free(p->all->ctx, &p->size);
	*p = (struct hg__padded){.all = NULL};
}
