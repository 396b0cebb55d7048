/* Features of a layer, dense or sparse.
 *
 *     dropout:  x_ij <- x_ij b_ij / (1 - p),  b_ij = 1 with probability 1 - p
 *
 * A zero stays a zero, so only the stored entries of a sparse matrix need a random number. */
#include "core/context.h"
#include "halfgraph/ops.h"
#include "nn/layers/layers.h"

struct hg__features hg__features_dense(hg_var x, int64_t cols)
{
	return (struct hg__features){x, NULL, HG_NONE, cols};
}

void hg__feature_values_free(hg_context *ctx, struct hg__feature_values *list)
{
	while (list) {
		struct hg__feature_values *next = list->next;
		hg_tensor_free(list->tensor);
		hg__host_free(ctx, list, sizeof *list);
		list = next;
	}
}

/* The values [m] of the matrix, in CSR order, as a tensor [m, 1] of `dtype`. */
static hg_status values_upload(hg_context *ctx, hg_graph *matrix, hg_dtype dtype,
                               hg_tensor **tensor)
{
	const size_t m = (size_t)hg_graph_edges(matrix);
	void *host = NULL;
	HG__TRY(hg__host_alloc(ctx, m, sizeof(float), "model: values of the sparse features", &host));
	hg_status status = hg_graph_download(matrix, NULL, NULL, host);
	if (status >= 0)
		status = hg_tensor_create(ctx, dtype, (int64_t)m, 1, tensor);
	if (status >= 0)
		status = hg_tensor_upload(*tensor, host, HG_F32);
	hg__host_free(ctx, host, m * sizeof(float));
	return status;
}

hg_status hg__features_sparse(hg_tape *tape, hg_graph *matrix, hg_dtype dtype,
                              struct hg__feature_values **list, struct hg__features *out)
{
	hg_context *ctx = hg_graph_context(matrix);
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(struct hg__feature_values), "model: sparse features",
	                       &memory));
	struct hg__feature_values *entry = memory;
	entry->next = *list;
	*list = entry;
	HG__TRY(values_upload(ctx, matrix, dtype, &entry->tensor));
	*out = (struct hg__features){HG_NONE, matrix,
	                             hg_tape_input(tape, entry->tensor, "feature values", -1.0),
	                             hg_graph_cols(matrix)};
	return HG_OK;
}

struct hg__features hg__features_dropout(hg_tape *tape, struct hg__features x, float p)
{
	/* The layer reads the values of the matrix itself: an EVAL tape, where nothing is dropped. */
	const int fixed = x.sparse && x.value.id == HG_NONE.id;
	if (p <= 0.0f || fixed)
		return x;
	if (x.sparse)
		x.value = hg_dropout(tape, x.value, p);
	else
		x.x = hg_dropout(tape, x.x, p);
	return x;
}
