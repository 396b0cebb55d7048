/* Copy what the edges of a dataset have to a device: [attributes | one column for each label]. A
 * self loop that the uploaded graph has and the dataset has not is a row of zeros, so the rows are
 * those of the graph's edges. */
#include "upload_edges.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rows {
	const hg_dataset *d;
	int64_t attributes, labels; /* columns of each */
	float *at;                  /* the next row; rows that are not filled are 0 */
};

static void fill_row(struct rows *r, int64_t e)
{
	if (r->attributes)
		memcpy(r->at, r->d->edge_feat + e * r->attributes, (size_t)r->attributes * sizeof *r->at);
	if (r->labels && r->d->edge_label[e] >= 0)
		r->at[r->attributes + r->d->edge_label[e]] = 1.0f;
	r->at += r->attributes + r->labels;
}

/* The edges in CSR order, where a new loop stands before the first larger column. */
static void fill_rows(struct rows *r, int self_loops)
{
	const hg_dataset *d = r->d;
	for (int64_t i = 0; i < d->nodes; i++) {
		int missing = self_loops && !hg__data_has_loop(d, i);
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
			if (missing && d->col[e] > i) {
				r->at += r->attributes + r->labels;
				missing = 0;
			}
			fill_row(r, e);
		}
		r->at += missing ? r->attributes + r->labels : 0;
	}
}

static int64_t count_edges(const hg_dataset *d, int self_loops)
{
	int64_t edges = d->edges;
	for (int64_t i = 0; self_loops && i < d->nodes; i++)
		edges += !hg__data_has_loop(d, i);
	return edges;
}

/* The dataset knows the edge of an attribute that does not fit f16, the tensor only its row. */
static hg_status check_f16(const hg_dataset *d, char *message)
{
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
			for (int64_t c = 0; c < d->edge_features; c++) {
				const float x = d->edge_feat[e * d->edge_features + c];
				if (!(fabs((double)x) <= HG__HALF_MAX))
					return hg__data_fail(
					    message, HG_ERR_RANGE,
					    "edge features: the edge from node %" PRId64 " to node %" PRId64
					    " has %g in column %" PRId64 ", beyond f16's 65504",
					    hg_dataset_node(d, d->col[e]), hg_dataset_node(d, i), (double)x, c);
			}
	return HG_OK;
}

hg_status hg__upload_edges(const hg_dataset *d, hg_context *ctx, const hg_upload_config *config,
                           hg_tensor **edge_x, char *message)
{
	struct rows r = {.d = d,
	                 .attributes = config->edge_features ? d->edge_features : 0,
	                 .labels = config->edge_labels ? d->edge_classes : 0};
	const int64_t edges = count_edges(d, config->self_loops), columns = r.attributes + r.labels;
	float *host = NULL;
	int64_t cells = 0;
	if (__builtin_mul_overflow(edges, columns, &cells))
		return hg__data_fail(message, HG_ERR_NOMEM,
		                     "out of memory: %" PRId64 " columns for %" PRId64 " edges", columns,
		                     edges);
	if (r.attributes && config->state == HG_F16)
		HG__TRY(check_f16(d, message));
	HG__TRY(hg__data_alloc(cells, sizeof *host, "attributes of edges", (void **)&host, message));
	memset(host, 0, (size_t)cells * sizeof *host);
	r.at = host;
	fill_rows(&r, config->self_loops);
	hg_status status = hg__upload_tensor(ctx, config, edges, columns, edge_x);
	if (status >= 0)
		status = hg_tensor_upload(*edge_x, host, HG_F32);
	free(host);
	return status < 0 ? hg__data_fail(message, status, "%s", hg_context_error(ctx)) : status;
}
