#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/context.h"
#include "peer.h"

/* cuSPARSE as a fair peer: row-major, 32-bit indices, f32 sums, the generic API with preprocess. */

struct peer_graph {
	hg_context *ctx;
	const struct hg__csr *csr;
	cusparseHandle_t handle;
	void *rowptr; /* device, int32 [rows + 1] */
};

struct peer {
	struct peer_graph *graph;
	cusparseSpMatDescr_t sparse;
	cusparseDnMatDescr_t dense[2];
	void *workspace;
	size_t workspace_bytes;
	cudaDataType type;
	int algorithm;
	float alpha, beta;
	cusparseStatus_t (*run)(const struct peer *p);
};

static const struct peer_variant spmm_variants[] = {
    {"cusparse fp32 ALG2", HG_F32, CUSPARSE_SPMM_CSR_ALG2},
    {"cusparse fp32 ALG3", HG_F32, CUSPARSE_SPMM_CSR_ALG3},
    {"cusparse fp16 ALG2", HG_F16, CUSPARSE_SPMM_CSR_ALG2},
    {"cusparse fp16 ALG3", HG_F16, CUSPARSE_SPMM_CSR_ALG3},
    {NULL, HG_F32, 0},
};
static const struct peer_variant sddmm_variants[] = {
    {"cusparse fp32", HG_F32, CUSPARSE_SDDMM_ALG_DEFAULT},
    {"cusparse fp16", HG_F16, CUSPARSE_SDDMM_ALG_DEFAULT},
    {NULL, HG_F32, 0},
};

/* Every refusal of cuSPARSE becomes "unsupported", which is a row of the table and does not end the
 * run. A device that fails shows at the next synchronisation. */
static hg_status status_of(hg_context *ctx, cusparseStatus_t status, const char *what)
{
	if (status == CUSPARSE_STATUS_SUCCESS)
		return HG_OK;
	(void)cudaGetLastError();
	return hg__fail(ctx, HG_ERR_UNSUPPORTED, "cusparse: %s: %s (%s)", what,
	                cusparseGetErrorString(status), cusparseGetErrorName(status));
}

/* Preprocessing is optional: an algorithm that does not support it runs without. */
static hg_status status_of_optional(hg_context *ctx, cusparseStatus_t status, const char *what)
{
	return status == CUSPARSE_STATUS_NOT_SUPPORTED ? HG_OK : status_of(ctx, status, what);
}

static void graph_close(struct peer_graph *g)
{
	if (!g)
		return;
	if (g->handle)
		(void)cusparseDestroy(g->handle);
	hg__device_free(g->ctx, g->rowptr, (size_t)(g->csr->rows + 1) * sizeof(int32_t));
	free(g);
}

static hg_status rowptr_upload(struct peer_graph *g, const int64_t *host)
{
	const size_t count = (size_t)g->csr->rows + 1;
	int32_t *narrow = g->csr->m <= INT32_MAX ? calloc(count, sizeof *narrow) : NULL;
	if (!narrow)
		return hg__fail(g->ctx, HG_ERR_NOMEM,
		                "cusparse: no 32-bit row pointers for %lld rows, %lld edges",
		                (long long)g->csr->rows, (long long)g->csr->m);
	for (size_t i = 0; i < count; i++)
		narrow[i] = (int32_t)host[i];
	hg_status status =
	    hg__device_alloc(g->ctx, count * sizeof *narrow, "cusparse: row pointers", &g->rowptr);
	if (status == HG_OK)
		status = g->ctx->backend->copy_in(g->ctx, g->rowptr, narrow, count * sizeof *narrow);
	free(narrow);
	return status;
}

static hg_status graph_open(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
                            struct peer_graph **graph)
{
	struct peer_graph *g = calloc(1, sizeof *g);
	*graph = g;
	if (!g)
		return hg__fail(ctx, HG_ERR_NOMEM, "cusparse: no memory");
	g->ctx = ctx;
	g->csr = csr;
	HG__TRY(status_of(ctx, cusparseCreate(&g->handle), "create"));
	HG__TRY(status_of(ctx, cusparseSetStream(g->handle, (cudaStream_t)ctx->stream), "set stream"));
	return rowptr_upload(g, host_rowptr);
}

static void peer_free(struct peer *p)
{
	if (!p)
		return;
	if (p->sparse)
		(void)cusparseDestroySpMat(p->sparse);
	for (int i = 0; i < 2; i++)
		if (p->dense[i])
			(void)cusparseDestroyDnMat(p->dense[i]);
	hg__device_free(p->graph->ctx, p->workspace, p->workspace_bytes);
	free(p);
}

static hg_status peer_new(struct peer_graph *g, const struct peer_variant *variant, void *values,
                          struct hg__mat a, struct hg__mat b, struct peer **peer)
{
	const struct hg__mat dense[] = {a, b};
	struct peer *p = calloc(1, sizeof *p);
	*peer = p;
	if (!p)
		return hg__fail(g->ctx, HG_ERR_NOMEM, "cusparse: no memory");
	p->graph = g;
	p->type = variant->dtype == HG_F16 ? CUDA_R_16F : CUDA_R_32F;
	p->algorithm = variant->algorithm;
	p->alpha = 1.0f;
	HG__TRY(
	    status_of(g->ctx,
	              cusparseCreateCsr(&p->sparse, g->csr->rows, g->csr->cols, g->csr->m, g->rowptr,
	                                (void *)(uintptr_t)g->csr->col, values, CUSPARSE_INDEX_32I,
	                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, p->type),
	              "CSR"));
	for (int i = 0; i < 2; i++)
		HG__TRY(
		    status_of(g->ctx,
		              cusparseCreateDnMat(&p->dense[i], dense[i].rows, dense[i].cols, dense[i].ld,
		                                  dense[i].data, p->type, CUSPARSE_ORDER_ROW),
		              "matrix"));
	return HG_OK;
}

static hg_status workspace(struct peer *p)
{
	return hg__device_alloc(p->graph->ctx, p->workspace_bytes, "cusparse: workspace",
	                        &p->workspace);
}

#define PLAIN CUSPARSE_OPERATION_NON_TRANSPOSE

static cusparseStatus_t spmm_run(const struct peer *p)
{
	return cusparseSpMM(p->graph->handle, PLAIN, PLAIN, &p->alpha, p->sparse, p->dense[0], &p->beta,
	                    p->dense[1], CUDA_R_32F, (cusparseSpMMAlg_t)p->algorithm, p->workspace);
}

static hg_status spmm(struct peer_graph *g, const struct peer_variant *variant, void *values,
                      struct hg__mat x, struct hg__mat y, struct peer **peer)
{
	HG__TRY(peer_new(g, variant, values, x, y, peer));
	struct peer *p = *peer;
	p->run = spmm_run;
	HG__TRY(status_of(g->ctx,
	                  cusparseSpMM_bufferSize(g->handle, PLAIN, PLAIN, &p->alpha, p->sparse,
	                                          p->dense[0], &p->beta, p->dense[1], CUDA_R_32F,
	                                          (cusparseSpMMAlg_t)p->algorithm, &p->workspace_bytes),
	                  "SpMM workspace"));
	HG__TRY(workspace(p));
	return status_of_optional(g->ctx,
	                          cusparseSpMM_preprocess(g->handle, PLAIN, PLAIN, &p->alpha, p->sparse,
	                                                  p->dense[0], &p->beta, p->dense[1],
	                                                  CUDA_R_32F, (cusparseSpMMAlg_t)p->algorithm,
	                                                  p->workspace),
	                          "SpMM preprocess");
}

/* values = (A B^T) at the entries of the CSR matrix */
#define TURNED CUSPARSE_OPERATION_TRANSPOSE

static cusparseStatus_t sddmm_run(const struct peer *p)
{
	return cusparseSDDMM(p->graph->handle, PLAIN, TURNED, &p->alpha, p->dense[0], p->dense[1],
	                     &p->beta, p->sparse, CUDA_R_32F, (cusparseSDDMMAlg_t)p->algorithm,
	                     p->workspace);
}

static hg_status sddmm(struct peer_graph *g, const struct peer_variant *variant, void *values,
                       struct hg__mat a, struct hg__mat b, struct peer **peer)
{
	HG__TRY(peer_new(g, variant, values, a, b, peer));
	struct peer *p = *peer;
	p->run = sddmm_run;
	HG__TRY(
	    status_of(g->ctx,
	              cusparseSDDMM_bufferSize(g->handle, PLAIN, TURNED, &p->alpha, p->dense[0],
	                                       p->dense[1], &p->beta, p->sparse, CUDA_R_32F,
	                                       (cusparseSDDMMAlg_t)p->algorithm, &p->workspace_bytes),
	              "SDDMM workspace"));
	HG__TRY(workspace(p));
	return status_of_optional(
	    g->ctx,
	    cusparseSDDMM_preprocess(g->handle, PLAIN, TURNED, &p->alpha, p->dense[0], p->dense[1],
	                             &p->beta, p->sparse, CUDA_R_32F, (cusparseSDDMMAlg_t)p->algorithm,
	                             p->workspace),
	    "SDDMM preprocess");
}

static hg_status run(void *peer)
{
	const struct peer *p = peer;
	return status_of(p->graph->ctx, p->run(p), "run");
}

const struct peers peers_cusparse = {"cusparse", spmm_variants, sddmm_variants,
                                     graph_open, graph_close,   spmm,
                                     sddmm,      run,           peer_free};
