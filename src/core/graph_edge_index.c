/* A graph from a tensor of edges [2, m], whose ids may be of 64 bits. */
#include "core/buffer.h"
#include "core/mat.h"
#include "halfgraph/dlpack.h"

static hg_status check_edges(hg_context *ctx, const hg_tensor *edges)
{
	if (!edges)
		return hg__fail(ctx, HG_ERR_ARG, "edge_index: the tensor is NULL");
	if (edges->ctx != ctx)
		return hg__fail(ctx, HG_ERR_ARG, "edge_index: the tensor belongs to another context");
	if (edges->mat.dtype != HG_I64 && edges->mat.dtype != HG_I32)
		return hg__fail(ctx, HG_ERR_DTYPE, "edge_index: type %s, expected i64 or i32",
		                hg_dtype_name(edges->mat.dtype));
	if (edges->mat.rows != 2)
		return hg__fail(ctx, HG_ERR_SHAPE, "edge_index: shape [%lld, %lld], expected [2, m]",
		                (long long)edges->mat.rows, (long long)edges->mat.cols);
	return HG_OK;
}

static hg_status check_weight(hg_context *ctx, const hg_tensor *weight, int64_t m)
{
	if (!weight)
		return HG_OK;
	if (weight->ctx != ctx)
		return hg__fail(ctx, HG_ERR_ARG, "edge_index: weight belongs to another context");
	if (weight->mat.rows != m || weight->mat.cols != 1)
		return hg__fail(ctx, HG_ERR_SHAPE,
		                "edge_index: weight has shape [%lld, %lld], expected [%lld, 1]",
		                (long long)weight->mat.rows, (long long)weight->mat.cols, (long long)m);
	return HG_OK;
}

/* Ids of 64 bits as ids of 32 bits. Those that hg_graph_from_coo would refuse are found here, as
 * the message must have the number that the caller gave. */
static hg_status narrow_ids(hg_context *ctx, int64_t m, const int64_t *wide, int64_t limit,
                            const char *what, int32_t *id)
{
	for (int64_t e = 0; e < m; e++) {
		if (wide[e] < 0 || wide[e] >= limit || wide[e] > INT32_MAX)
			return hg__fail(ctx, HG_ERR_ARG, "edge_index: %s %lld of edge %lld, expected 0 .. %lld",
			                what, (long long)wide[e], (long long)e, (long long)limit - 1);
		id[e] = (int32_t)wide[e];
	}
	return HG_OK;
}

/* ids [2, m] on the host: sources, then destinations. */
static hg_status read_ids(hg_context *ctx, const hg_tensor *edges, int64_t rows, int64_t cols,
                          int32_t *ids)
{
	const int64_t m = edges->mat.cols;
	struct hg__buffer wide = {0};
	if (edges->mat.dtype == HG_I32)
		return m ? hg_tensor_download(edges, ids, HG_I32) : HG_OK;
	HG__TRY(hg__buffer_host(ctx, 2 * m, sizeof(int64_t), "edge_index", &wide));
	const int64_t *given = wide.data;
	hg_status status = m ? hg_tensor_download(edges, wide.data, HG_I64) : HG_OK;
	if (status == HG_OK)
		status = narrow_ids(ctx, m, given, cols, "source", ids);
	if (status == HG_OK)
		status = narrow_ids(ctx, m, m ? given + m : given, rows, "destination", m ? ids + m : ids);
	hg__buffer_free(ctx, &wide);
	return status;
}

static hg_status build(hg_context *ctx, int64_t rows, int64_t cols, const hg_tensor *edges,
                       const hg_tensor *weight, int32_t *ids, float *factors, int64_t *order,
                       hg_graph **graph)
{
	const int64_t m = edges->mat.cols;
	HG__TRY(read_ids(ctx, edges, rows, cols, ids));
	if (weight && m)
		HG__TRY(hg_tensor_download(weight, factors, HG_F32));
	return hg_graph_from_coo(ctx, rows, cols, m, m ? ids + m : ids, ids, weight ? factors : NULL,
	                         order, graph);
}

hg_status hg_graph_from_edge_index(hg_context *ctx, int64_t rows, int64_t cols,
                                   const hg_tensor *edge_index, const hg_tensor *weight,
                                   int64_t *order, hg_graph **graph)
{
	if (graph)
		*graph = NULL;
	if (!ctx || !graph)
		return hg__fail(ctx, HG_ERR_ARG, "edge_index: the pointer for the result is NULL");
	HG__TRY(check_edges(ctx, edge_index));
	const int64_t m = edge_index->mat.cols;
	HG__TRY(check_weight(ctx, weight, m));
	struct hg__buffer ids = {0}, factors = {0};
	HG__TRY(hg__buffer_host(ctx, 2 * m, sizeof(int32_t), "edge_index", &ids));
	hg_status status =
	    weight ? hg__buffer_host(ctx, m, sizeof(float), "edge_index: weight", &factors) : HG_OK;
	if (status == HG_OK)
		status = build(ctx, rows, cols, edge_index, weight, ids.data, factors.data, order, graph);
	hg__buffer_free(ctx, &factors);
	hg__buffer_free(ctx, &ids);
	return status;
}
