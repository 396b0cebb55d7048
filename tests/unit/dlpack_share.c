/* Memory that is shared with other libraries, copies for them, and their lists of edges. */
#include <math.h>
#include <string.h>

#include "core/buffer.h"
#include "core/csr.h"
#include "core/dlpack_abi.h"
#include "core/mat.h"
#include "graphs.h"
#include "halfgraph/ops.h"
#include "unit/faulty.h"

enum { ELEMENTS = 128 };

/* A tensor of another library in memory of the context's device; `deleted` counts its deleter's
 * calls. */
struct foreign {
	hg_context *ctx;
	void *memory;
	struct DLManagedTensorVersioned managed;
	struct DLManagedTensor legacy;
	int64_t shape[2], strides[2];
	int deleted;
};

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
	((struct foreign *)self->manager)->deleted++;
}

static void delete_legacy(struct DLManagedTensor *self)
{
	((struct foreign *)self->manager)->deleted++;
}

static void foreign_open(struct foreign *f, hg_context *ctx, int code, int bits, int64_t rows,
                         int64_t cols, int64_t stride, const void *host)
{
	const size_t bytes = (size_t)ELEMENTS * (size_t)bits / 8;
	*f = (struct foreign){.ctx = ctx, .shape = {rows, cols}, .strides = {stride, 1}};
	f->memory = ctx->backend->alloc(ctx, bytes);
	CHECK(f->memory);
	if (host)
		CHECK_OK(ctx->backend->copy_in(ctx, f->memory, host, bytes));
	const int cuda = hg_context_device(ctx) == HG_DEVICE_CUDA;
	f->managed.tensor = (struct hg__dl_tensor){
	    .data = f->memory,
	    .device = {cuda ? HG__DL_CUDA : HG__DL_CPU, cuda ? ctx->device_index : 0},
	    .ndim = 2,
	    .dtype = {(uint8_t)code, (uint8_t)bits, 1},
	    .shape = f->shape,
	    .strides = f->strides};
	f->managed.version.major = HG__DL_MAJOR;
	f->managed.manager = f->legacy.manager = f;
	f->managed.deleter = delete_versioned;
	f->legacy.deleter = delete_legacy;
	f->legacy.tensor = f->managed.tensor;
}

static void foreign_close(struct foreign *f)
{
	f->ctx->backend->free(f->ctx, f->memory);
}

/* What has the layout of a tensor of this library is shared; all else is refused and not consumed,
 * and the message says why. */
static void layouts_are_shared_or_refused(void)
{
	static const struct {
		int64_t rows, cols, stride;
		int offset, read_only;
		const char *why; /* NULL: it is shared */
	} cases[] = {{5, 8, 8, 0, 0, NULL},
	             {5, 16, 16, 0, 0, NULL},
	             {9, 1, 1, 0, 0, NULL},
	             {9, 2, 2, 0, 0, NULL},
	             {9, 4, 4, 0, 0, NULL},
	             {1, 8, 100, 0, 0, NULL},
	             {5, 8, 8, 16, 0, NULL},
	             {0, 8, 8, 0, 0, NULL},
	             {5, 3, 3, 0, 0, "3 columns in rows 3 elements apart"},
	             {1, 5, 5, 0, 0, "5 columns"},
	             {5, 8, 16, 0, 0, "8 columns in rows 16 elements apart"},
	             {5, 5, 8, 0, 0, "5 columns in rows 8"},
	             {5, 8, 8, 4, 0, "not aligned to 16 bytes"},
	             {5, 8, 8, 0, 1, "read-only"}};
	hg_context *ctx = test_context();
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		for (int legacy = 0; legacy < 2; legacy++) {
			struct foreign f;
			hg_tensor *t = NULL;
			foreign_open(&f, ctx, HG__DL_FLOAT, 32, cases[k].rows, cases[k].cols, cases[k].stride,
			             NULL);
			f.managed.tensor.byte_offset = f.legacy.tensor.byte_offset = (uint64_t)cases[k].offset;
			f.managed.flags = cases[k].read_only ? HG__DL_READ_ONLY : 0;
			if (legacy && cases[k].read_only) { /* it cannot say so */
				foreign_close(&f);
				continue;
			}
			const hg_status status = legacy
			                             ? hg_tensor_share_dlpack_legacy(ctx, &f.legacy, NULL, &t)
			                             : hg_tensor_share_dlpack(ctx, &f.managed, NULL, &t);
			CHECK_STATUS(status, cases[k].why ? HG_ERR_UNSUPPORTED : HG_OK);
			CHECK(!t == !!cases[k].why && f.deleted == 0);
			if (cases[k].why) {
				CHECK_CONTAINS(hg_context_error(ctx), cases[k].why);
			} else {
				CHECK(hg_tensor_data(t) == (char *)f.memory + cases[k].offset);
				CHECK(hg_tensor_rows(t) == cases[k].rows && hg_tensor_cols(t) == cases[k].cols &&
				      hg_tensor_ld(t) == cases[k].cols);
				CHECK_EQ_I(ctx->current_bytes, 0);
				hg_tensor_free(t);
				CHECK_EQ_I(f.deleted, 1);
			}
			foreign_close(&f);
		}
	hg_context_free(ctx);
}

static void wrong_tensors_are_refused(void)
{
	hg_context *ctx = test_context();
	struct foreign f;
	hg_tensor *t;
	foreign_open(&f, ctx, HG__DL_FLOAT, 32, 5, 8, 8, NULL);
	CHECK_STATUS(hg_tensor_share_dlpack(NULL, &f.managed, NULL, &t), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_share_dlpack(ctx, NULL, NULL, &t), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_share_dlpack(ctx, &f.managed, NULL, NULL), HG_ERR_ARG);
	f.managed.tensor.device.type = 7;
	CHECK_STATUS(hg_tensor_share_dlpack(ctx, &f.managed, NULL, &t), HG_ERR_ARG);
	f.managed.tensor.device = f.legacy.tensor.device;
	f.managed.tensor.dtype.bits = 64;
	CHECK_STATUS(hg_tensor_share_dlpack(ctx, &f.managed, NULL, &t), HG_ERR_DTYPE);
	f.managed.tensor.dtype.bits = 32;
	f.strides[1] = 2;
	CHECK_STATUS(hg_tensor_share_dlpack(ctx, &f.managed, NULL, &t), HG_ERR_SHAPE);
	f.strides[1] = 1;
	f.managed.version.major = 2;
	CHECK_STATUS(hg_tensor_share_dlpack(ctx, &f.managed, NULL, &t), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "version 2.0");
	CHECK(t == NULL && f.deleted == 0);
	foreign_close(&f);
	hg_context_free(ctx);
}

/* The lender gets its memory back once, when the tensor and every loan of it are gone, which may be
 * after the context was freed. */
static void lender_gets_its_memory_back_last(void)
{
	float host[ELEMENTS], found[40];
	struct faulty hooks;
	hg_context *ctx = faulty_context(&hooks);
	struct foreign f;
	struct DLManagedTensorVersioned *loan;
	hg_tensor *t;
	for (int i = 0; i < ELEMENTS; i++)
		host[i] = (float)test_normal();
	foreign_open(&f, hooks.plain, HG__DL_FLOAT, 32, 5, 8, 8, host);
	CHECK_OK(hg_tensor_share_dlpack(ctx, &f.managed, NULL, &t));
	CHECK_OK(hg_tensor_to_dlpack(t, NULL, &loan));
	CHECK_OK(hg_tensor_download(t, found, HG_F32));
	CHECK(memcmp(found, host, sizeof found) == 0);
	host[3] = 7.0f; /* the lender writes, and the tensor shows it */
	CHECK_OK(ctx->backend->copy_in(ctx, f.memory, host, sizeof host));
	CHECK_OK(hg_tensor_download(t, found, HG_F32));
	CHECK(found[3] == 7.0f);
	hg_tensor_free(t);
	hg_context_free(ctx);
	CHECK(f.deleted == 0 && hooks.out > 0 && loan->tensor.data == f.memory);
	loan->deleter(loan);
	CHECK(f.deleted == 1 && hooks.out == 0 && hooks.bytes == 0);
	foreign_close(&f);
	hg_context_free(hooks.plain);
}

/* ---- copies ---- */

static void copies_are_compact_and_converted(void)
{
	static const hg_dtype types[][2] = {{HG_F16, HG_F16}, {HG_F32, HG_F32}, {HG_F16, HG_F32},
	                                    {HG_F32, HG_F16}, {HG_I32, HG_I32}, {HG_I64, HG_I64}};
	static const int64_t shapes[][2] = {{4, 5}, {4, 8}, {7, 1}, {0, 3}, {3, 0}, {6, 19}};
	hg_context *ctx = test_context();
	for (size_t k = 0; k < sizeof types / sizeof *types; k++)
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
			const hg_dtype from = types[k][0], to = types[k][1];
			const int64_t rows = shapes[s][0], cols = shapes[s][1], count = rows * cols;
			_Alignas(8) char given[ELEMENTS * 8], expected[ELEMENTS * 8], found[ELEMENTS * 8];
			struct DLManagedTensorVersioned *out;
			hg_tensor *t;
			CHECK_OK(hg_tensor_create(ctx, from, rows, cols, &t));
			for (int64_t i = 0; i < count; i++) {
				const float value = (float)test_normal();
				if (from == HG_F32 || from == HG_I32)
					memcpy(given + i * 4, &value, sizeof value);
				else if (from == HG_F16)
					((uint16_t *)(void *)given)[i] = hg_half_from_float(value);
				else
					((int64_t *)(void *)given)[i] = (int64_t)test_u64();
			}
			CHECK_OK(hg_tensor_upload(t, given, from));
			CHECK_OK(hg_tensor_download(t, expected, to));
			CHECK_OK(hg_tensor_export_copy(t, to, NULL, &out));
			hg_tensor_free(t);
			CHECK(out->tensor.ndim == 2 && out->tensor.shape[0] == rows &&
			      out->tensor.shape[1] == cols && out->tensor.strides[0] == cols &&
			      out->tensor.strides[1] == 1 && out->version.major == HG__DL_MAJOR);
			CHECK_EQ_I(out->tensor.dtype.bits, 8 * hg_dtype_size(to));
			const size_t bytes = (size_t)count * hg_dtype_size(to);
			CHECK_EQ_I(ctx->current_bytes, bytes);
			CHECK_OK(ctx->backend->copy_out(ctx, found, out->tensor.data, bytes));
			CHECK(memcmp(found, expected, bytes) == 0);
			out->deleter(out);
			CHECK_EQ_I(ctx->current_bytes, 0);
		}
	hg_context_free(ctx);
}

/* A view of a tape's memory can be copied but not lent. What does not fit a half is infinite. */
static void views_and_overflows_are_copied(void)
{
	const float x[] = {1e6f, -2.0f, 3.0f}, expected[] = {INFINITY, -2.0f, 3.0f};
	hg_context *ctx = test_context();
	struct DLManagedTensorVersioned *out;
	uint16_t found[3];
	hg_tensor *t;
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 1, 3, &t));
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	hg_tensor view = hg__tensor_view(ctx, t->mat);
	CHECK_STATUS(hg_tensor_to_dlpack(&view, NULL, &out), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(ctx), "hg_tensor_export_copy");
	CHECK_OK(hg_tensor_export_copy(&view, HG_F16, NULL, &out));
	CHECK_OK(ctx->backend->copy_out(ctx, found, out->tensor.data, sizeof found));
	for (int i = 0; i < 3; i++)
		CHECK(hg_half_to_float(found[i]) == expected[i]);
	out->deleter(out);
	CHECK_STATUS(hg_tensor_export_copy(t, HG_I32, NULL, &out), HG_ERR_DTYPE);
	CHECK(out == NULL);
	CHECK_CONTAINS(hg_context_error(ctx), "tensor is f32, the copy shall be i32");
	CHECK_STATUS(hg_tensor_export_copy(t, HG_F32, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_export_copy(NULL, HG_F32, NULL, &out), HG_ERR_ARG);
	hg_tensor_free(t);
	hg_context_free(ctx);
}

/* ---- edges ---- */

static hg_tensor *edges_of(hg_context *ctx, hg_dtype dtype, int64_t m, const int64_t *ids)
{
	int32_t narrow[ELEMENTS];
	hg_tensor *t;
	for (int64_t i = 0; i < 2 * m; i++)
		narrow[i] = (int32_t)ids[i];
	CHECK_OK(hg_tensor_create(ctx, dtype, 2, m, &t));
	CHECK_OK(hg_tensor_upload(t, dtype == HG_I64 ? (const void *)ids : narrow, dtype));
	return t;
}

static void edges_make_the_graph_of_their_list(void)
{
	static const hg_dtype types[] = {HG_I64, HG_I32};
	enum { M = 23, ROWS = 9, COLS = 11 };
	int64_t ids[2 * M], order[2][M];
	int32_t src[M], dst[M], col[2][M];
	float weight[M];
	hg_context *ctx = test_context();
	hg_tensor *w;
	for (int e = 0; e < M; e++) {
		ids[e] = src[e] = (int32_t)test_below(COLS);
		ids[M + e] = dst[e] = (int32_t)test_below(ROWS);
		weight[e] = (float)test_uniform();
	}
	CHECK_OK(hg_tensor_create(ctx, HG_F32, M, 1, &w));
	CHECK_OK(hg_tensor_upload(w, weight, HG_F32));
	for (size_t k = 0; k < 2; k++) {
		hg_tensor *edges = edges_of(ctx, types[k], M, ids);
		hg_graph *g[2];
		CHECK_OK(hg_graph_from_coo(ctx, ROWS, COLS, M, dst, src, weight, order[0], &g[0]));
		CHECK_OK(hg_graph_from_edge_index(ctx, ROWS, COLS, edges, w, order[1], &g[1]));
		CHECK(memcmp(order[0], order[1], sizeof order[0]) == 0);
		for (int i = 0; i < 2; i++) {
			struct hg__csr csr;
			CHECK_OK(hg__graph_csr(g[i], &csr));
			CHECK(csr.m == M && csr.rows == ROWS && csr.cols == COLS && hg_graph_is_weighted(g[i]));
			CHECK_OK(ctx->backend->copy_out(ctx, col[i], csr.col, sizeof col[i]));
			hg_graph_free(g[i]);
		}
		CHECK(memcmp(col[0], col[1], sizeof col[0]) == 0);
		hg_tensor_free(edges);
	}
	hg_tensor_free(w);
	hg_context_free(ctx);
}

static void bad_edges_are_refused(void)
{
	static const struct {
		int64_t ids[4]; /* two sources, two destinations; 5 nodes */
		const char *why;
	} cases[] = {{{0, -1, 1, 2}, "source -1 of edge 1, expected 0 .. 4"},
	             {{5, 0, 1, 2}, "source 5 of edge 0"},
	             {{0, 1, 2, 4294967296}, "destination 4294967296 of edge 1"},
	             {{0, 1, INT64_MIN, 2}, "destination -9223372036854775808 of edge 0"}};
	hg_context *ctx = test_context();
	hg_graph *g;
	hg_tensor *t;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		t = edges_of(ctx, HG_I64, 2, cases[k].ids);
		CHECK_STATUS(hg_graph_from_edge_index(ctx, 5, 5, t, NULL, NULL, &g), HG_ERR_ARG);
		CHECK(g == NULL);
		CHECK_CONTAINS(hg_context_error(ctx), cases[k].why);
		hg_tensor_free(t);
	}
	static const struct {
		hg_dtype dtype;
		int64_t rows, weights;
		hg_status status;
	} shapes[] = {{HG_I64, 3, 0, HG_ERR_SHAPE},
	              {HG_F32, 2, 0, HG_ERR_DTYPE},
	              {HG_I64, 2, 3, HG_ERR_SHAPE},
	              {HG_I64, 2, 0, HG_OK}};
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		hg_tensor *w = NULL;
		CHECK_OK(hg_tensor_create(ctx, shapes[k].dtype, shapes[k].rows, 4, &t));
		if (shapes[k].weights)
			CHECK_OK(hg_tensor_create(ctx, HG_F32, shapes[k].weights, 1, &w));
		CHECK_STATUS(hg_graph_from_edge_index(ctx, 5, 5, t, w, NULL, &g), shapes[k].status);
		hg_graph_free(g);
		hg_tensor_free(w);
		hg_tensor_free(t);
	}
	CHECK_OK(hg_tensor_create(ctx, HG_I64, 2, 0, &t)); /* no edges */
	CHECK_OK(hg_graph_from_edge_index(ctx, 5, 5, t, NULL, NULL, &g));
	CHECK_EQ_I(hg_graph_edges(g), 0);
	hg_graph_free(g);
	CHECK_STATUS(hg_graph_from_edge_index(ctx, 5, 5, t, NULL, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_from_edge_index(ctx, 5, 5, NULL, NULL, NULL, &g), HG_ERR_ARG);
	hg_tensor_free(t);
	hg_context_free(ctx);
}

static hg_status scene(hg_context *ctx)
{
	static const int64_t ids[] = {0, 1, 2, 1, 2, 0};
	hg_tensor *t = NULL, *shared = NULL, *edges = NULL;
	hg_graph *g = NULL;
	struct DLManagedTensorVersioned *out = NULL, *loan = NULL;
	hg_status status = hg_tensor_create(ctx, HG_F32, 3, 5, &t);
	if (status == HG_OK)
		status = hg_tensor_export_copy(t, HG_F16, NULL, &out);
	if (status == HG_OK)
		status = hg_tensor_create(ctx, HG_I64, 2, 3, &edges);
	if (status == HG_OK)
		status = hg_tensor_upload(edges, ids, HG_I64);
	if (status == HG_OK)
		status = hg_graph_from_edge_index(ctx, 3, 3, edges, NULL, NULL, &g);
	hg_tensor_free(t);
	t = NULL;
	if (status == HG_OK)
		status = hg_tensor_create(ctx, HG_F32, 3, 8, &t);
	if (status == HG_OK)
		status = hg_tensor_to_dlpack(t, NULL, &loan);
	if (status == HG_OK && (status = hg_tensor_share_dlpack(ctx, loan, NULL, &shared)) < 0)
		loan->deleter(loan);
	if (out)
		out->deleter(out);
	hg_tensor_free(shared);
	hg_tensor_free(t);
	hg_tensor_free(edges);
	hg_graph_free(g);
	return status;
}

static void failed_allocations_are_reported(void)
{
	CHECK(faulty_sweep(scene) >= 15);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(layouts_are_shared_or_refused),
	    TEST(wrong_tensors_are_refused),
	    TEST(lender_gets_its_memory_back_last),
	    TEST(copies_are_compact_and_converted),
	    TEST(views_and_overflows_are_copied),
	    TEST(edges_make_the_graph_of_their_list),
	    TEST(bad_edges_are_refused),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
