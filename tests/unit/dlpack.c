#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/dlpack_abi.h"
#include "core/mat.h"
#include "unit/faulty.h"

/* A tensor of another framework: its memory is on the context's device, and its deleter counts its
 * calls. */
struct producer {
	hg_context *ctx;
	struct DLManagedTensorVersioned managed;
	struct DLManagedTensor legacy;
	int64_t shape[3], strides[3];
	int deleted;
};

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
	((struct producer *)self->manager)->deleted++;
}

static void delete_legacy(struct DLManagedTensor *self)
{
	((struct producer *)self->manager)->deleted++;
}

static void produce(struct producer *p, hg_context *ctx, const void *host, size_t bytes, int code,
                    int bits, int64_t rows, int64_t cols, int64_t stride)
{
	memset(p, 0, sizeof *p);
	p->ctx = ctx;
	struct hg__dl_tensor *t = &p->managed.tensor;
	t->data = ctx->backend->alloc(ctx, bytes + 64);
	CHECK(t->data);
	CHECK_OK(ctx->backend->copy_in(ctx, t->data, host, bytes));
	t->device.type = hg_context_device(ctx) == HG_DEVICE_CUDA ? HG__DL_CUDA : HG__DL_CPU;
	t->device.id = hg_context_device(ctx) == HG_DEVICE_CUDA ? ctx->device_index : 0;
	t->dtype.code = (uint8_t)code;
	t->dtype.bits = (uint8_t)bits;
	t->dtype.lanes = 1;
	t->ndim = 2;
	t->shape = p->shape;
	t->strides = p->strides;
	p->shape[0] = rows;
	p->shape[1] = cols;
	p->strides[0] = stride;
	p->strides[1] = 1;
	p->managed.version.major = 1;
	p->managed.version.minor = 3;
	p->managed.manager = p;
	p->managed.deleter = delete_versioned;
	p->legacy.manager = p;
	p->legacy.deleter = delete_legacy;
}

static void discard(struct producer *p)
{
	p->ctx->backend->free(p->ctx, p->managed.tensor.data);
}

static void lent_tensor_has_the_values(void)
{
	hg_context *ctx = test_context();
	static const struct {
		hg_dtype dtype;
		int code, bits;
	} types[] = {{HG_F16, 2, 16}, {HG_F32, 2, 32}, {HG_I32, 0, 32}, {HG_I64, 0, 64}, {HG_U8, 1, 8}};
	for (size_t k = 0; k < 2 * sizeof types / sizeof types[0]; k++) {
		const size_t i = k / 2;
		const int on_host = k % 2;
		hg_tensor *t;
		struct DLManagedTensorVersioned *out;
		CHECK_OK(
		    (on_host ? hg_tensor_create_on_host : hg_tensor_create)(ctx, types[i].dtype, 4, 5, &t));
		CHECK_OK(hg_tensor_to_dlpack(t, NULL, &out));
		const struct hg__dl_tensor *d = &out->tensor;
		CHECK(out->version.major == 1 && out->flags == 0 && d->data == hg_tensor_data(t) &&
		      d->byte_offset == 0);
		CHECK(d->ndim == 2 && d->shape[0] == 4 && d->shape[1] == 5 && d->strides[0] == 8 &&
		      d->strides[1] == 1);
		CHECK(d->dtype.code == types[i].code && d->dtype.bits == types[i].bits &&
		      d->dtype.lanes == 1);
		CHECK(d->device.type == (hg_context_device(ctx) != HG_DEVICE_CUDA ? HG__DL_CPU
		                         : on_host                                ? HG__DL_CUDA_HOST
		                                                                  : HG__DL_CUDA));
		out->deleter(out);
		hg_tensor_free(t);
	}
	CHECK_EQ_I(ctx->current_bytes, 0);
	hg_context_free(ctx);
}

/* The memory lives until the owner and all consumers have released it, in any order. */
static void last_user_frees_the_memory(void)
{
	struct faulty f;
	hg_context *ctx = faulty_context(&f);
	hg_tensor *t;
	struct DLManagedTensorVersioned *a, *b;
	const int64_t before = f.out;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, 4, 5, &t));
	CHECK_OK(hg_tensor_to_dlpack(t, NULL, &a));
	CHECK_OK(hg_tensor_to_dlpack(t, NULL, &b));
	a->deleter(a);
	hg_tensor_free(t);
	CHECK_EQ_I(ctx->current_bytes, 4 * 8 * 2);
	CHECK_EQ_I(b->tensor.shape[0], 4);
	b->deleter(b);
	CHECK_EQ_I(ctx->current_bytes, 0);
	CHECK_EQ_I(f.out, before);
	faulty_close(&f, ctx);
}

enum { THREADS = 4, LOANS = 500 };

static void *let_go(void *loans)
{
	struct DLManagedTensorVersioned **loan = loans;
	for (int i = 0; i < LOANS; i++)
		loan[i]->deleter(loan[i]);
	return NULL;
}

/* Consumers may release their tensors on any thread. None of these consumers is the last. */
static void consumers_release_on_any_thread(void)
{
	static struct DLManagedTensorVersioned *loan[THREADS][LOANS];
	pthread_t thread[THREADS];
	hg_context *ctx = test_context();
	hg_tensor *t;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, 4, 5, &t));
	for (int i = 0; i < THREADS * LOANS; i++)
		CHECK_OK(hg_tensor_to_dlpack(t, NULL, &loan[i / LOANS][i % LOANS]));
	for (int k = 0; k < THREADS; k++)
		CHECK(pthread_create(&thread[k], NULL, let_go, loan[k]) == 0);
	for (int k = 0; k < THREADS; k++)
		CHECK(pthread_join(thread[k], NULL) == 0);
	CHECK_EQ_I(t->refs, 1);
	CHECK_EQ_I(ctx->current_bytes, 4 * 8 * 2);
	hg_tensor_free(t);
	CHECK_EQ_I(ctx->current_bytes, 0);
	hg_context_free(ctx);
}

static void views_are_refused(void)
{
	hg_context *ctx = test_context();
	hg_tensor *t;
	struct DLManagedTensorVersioned *out;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, 4, 5, &t));
	hg_tensor view = hg__tensor_view(ctx, t->mat);
	CHECK_STATUS(hg_tensor_to_dlpack(&view, NULL, &out), HG_ERR_STATE);
	CHECK(out == NULL);
	CHECK_STATUS(hg_tensor_to_dlpack(t, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_to_dlpack(NULL, NULL, &out), HG_ERR_ARG);
	hg_tensor_free(t);
	hg_context_free(ctx);
}

static void tensors_with_any_rows_are_taken(void)
{
	hg_context *ctx = test_context();
	static const int64_t shapes[][3] = {/* rows, cols, stride */ {3, 5, 5},
	                                    {3, 5, 8},
	                                    {3, 5, 11},
	                                    {3, 8, 8},
	                                    {1, 5, 5},
	                                    {1, 5, 1},
	                                    {4, 1, 1},
	                                    {4, 1, 7},
	                                    {0, 5, 5},
	                                    {5, 0, 1},
	                                    {40000, 33, 35}};
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (int legacy = 0; legacy < 2; legacy++) {
			const int64_t rows = shapes[i][0], cols = shapes[i][1], stride = shapes[i][2],
			              last = rows && cols ? (rows - 1) * stride + cols : 0;
			int32_t *host = malloc((size_t)(last + 1) * sizeof *host),
			        *found = malloc((size_t)(rows * cols + 1) * sizeof *found);
			struct producer p;
			hg_tensor *t;
			CHECK(host && found);
			for (int64_t k = 0; k < last; k++)
				host[k] = (int32_t)test_u64();
			produce(&p, ctx, host, (size_t)last * sizeof *host, HG__DL_INT, 32, rows, cols, stride);
			p.legacy.tensor = p.managed.tensor;
			if (legacy)
				CHECK_OK(hg_tensor_from_dlpack_legacy(ctx, &p.legacy, NULL, &t));
			else
				CHECK_OK(hg_tensor_from_dlpack(ctx, &p.managed, NULL, &t));
			CHECK_EQ_I(p.deleted, 1);
			CHECK(hg_tensor_rows(t) == rows && hg_tensor_cols(t) == cols &&
			      hg_tensor_dtype(t) == HG_I32);
			CHECK_OK(hg_tensor_download(t, found, HG_I32));
			for (int64_t k = 0; k < rows * cols; k++)
				CHECK_EQ_I(found[k], host[k / cols * stride + k % cols]);
			hg_tensor_free(t);
			discard(&p);
			free(host);
			free(found);
		}
	hg_context_free(ctx);
}

static void offsets_strides_and_vectors_are_understood(void)
{
	hg_context *ctx = test_context();
	const float host[] = {9, 9, 1, 2, 3, 4, 5, 6};
	float found[6];
	struct producer p;
	hg_tensor *t;
	produce(&p, ctx, host, sizeof host, HG__DL_FLOAT, 32, 2, 3, 3);
	p.managed.tensor.byte_offset = 2 * sizeof(float);
	p.managed.tensor.strides = NULL;
	CHECK_OK(hg_tensor_from_dlpack(ctx, &p.managed, NULL, &t));
	CHECK_OK(hg_tensor_download(t, found, HG_F32));
	CHECK(memcmp(found, host + 2, sizeof found) == 0);
	hg_tensor_free(t);
	p.managed.tensor.ndim = 1; /* a vector is a column */
	p.shape[0] = 6;
	CHECK_OK(hg_tensor_from_dlpack(ctx, &p.managed, NULL, &t));
	CHECK(hg_tensor_rows(t) == 6 && hg_tensor_cols(t) == 1);
	CHECK_OK(hg_tensor_download(t, found, HG_F32));
	CHECK(memcmp(found, host + 2, sizeof found) == 0);
	hg_tensor_free(t);
	discard(&p);
	hg_context_free(ctx);
}

static void bools_are_taken_as_bytes(void)
{
	hg_context *ctx = test_context();
	const uint8_t host[] = {1, 0, 1};
	struct producer p;
	hg_tensor *t;
	produce(&p, ctx, host, sizeof host, HG__DL_BOOL, 8, 3, 1, 1);
	CHECK_OK(hg_tensor_from_dlpack(ctx, &p.managed, NULL, &t));
	CHECK_EQ_I(hg_tensor_dtype(t), HG_U8);
	hg_tensor_free(t);
	discard(&p);
	hg_context_free(ctx);
}

static struct producer fresh(hg_context *ctx)
{
	static const float host[12];
	struct producer p;
	produce(&p, ctx, host, sizeof host, HG__DL_FLOAT, 32, 3, 4, 4);
	return p;
}

/* produce() has set pointers into the copy that it made; they must point into this one. */
static void refused(hg_context *ctx, struct producer *p, hg_status status, const char *part)
{
	hg_tensor *t;
	p->managed.tensor.shape = p->shape;
	p->managed.tensor.strides = p->strides;
	p->managed.manager = p;
	CHECK_STATUS(hg_tensor_from_dlpack(ctx, &p->managed, NULL, &t), status);
	CHECK(t == NULL);
	CHECK_CONTAINS(hg_context_error(ctx), part);
	/* A tensor of a version that the library does not know is released again, as DLPack demands. */
	CHECK_EQ_I(p->deleted, status == HG_ERR_UNSUPPORTED);
	discard(p);
}

static void tensors_that_cannot_be_taken_are_refused(void)
{
	hg_context *ctx = test_context();
	struct producer p;
	p = fresh(ctx), p.managed.version.major = 2,
	refused(ctx, &p, HG_ERR_UNSUPPORTED, "version 2.3");
	p = fresh(ctx), p.managed.version.major = 0,
	refused(ctx, &p, HG_ERR_UNSUPPORTED, "version 0.3");
	p = fresh(ctx), p.managed.tensor.device.type = 7, refused(ctx, &p, HG_ERR_ARG, "device (7");
	p = fresh(ctx), p.managed.tensor.dtype.lanes = 2, refused(ctx, &p, HG_ERR_DTYPE, "2 lanes");
	p = fresh(ctx), p.managed.tensor.dtype.bits = 64, refused(ctx, &p, HG_ERR_DTYPE, "64 bits");
	p = fresh(ctx), p.managed.tensor.dtype.code = 4, p.managed.tensor.dtype.bits = 16,
	refused(ctx, &p, HG_ERR_DTYPE, "code 4");
	p = fresh(ctx), p.managed.tensor.ndim = 3, refused(ctx, &p, HG_ERR_SHAPE, "3 dimensions");
	p = fresh(ctx), p.managed.tensor.ndim = 0, refused(ctx, &p, HG_ERR_SHAPE, "0 dimensions");
	p = fresh(ctx), p.shape[0] = -3, refused(ctx, &p, HG_ERR_SHAPE, "negative");
	p = fresh(ctx), p.strides[1] = 3, refused(ctx, &p, HG_ERR_SHAPE, "columns lie 3");
	p = fresh(ctx), p.strides[0] = 3, refused(ctx, &p, HG_ERR_SHAPE, "rows lie 3");
	p = fresh(ctx), p.strides[0] = 0, refused(ctx, &p, HG_ERR_SHAPE, "rows lie 0");
	p = fresh(ctx), p.strides[0] = -4, refused(ctx, &p, HG_ERR_SHAPE, "rows lie -4");
	p = fresh(ctx), p.strides[0] = INT64_MAX, refused(ctx, &p, HG_ERR_SHAPE, "more than memory");
	p = fresh(ctx), p.managed.tensor.byte_offset = 2, refused(ctx, &p, HG_ERR_ARG, "aligned");
	hg_context_free(ctx);
}

static void missing_arguments_are_refused(void)
{
	hg_context *ctx = test_context();
	hg_tensor *t;
	struct producer p = fresh(ctx);
	CHECK_STATUS(hg_tensor_from_dlpack(NULL, &p.managed, NULL, &t), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_from_dlpack(ctx, NULL, NULL, &t), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_from_dlpack(ctx, &p.managed, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_from_dlpack_legacy(ctx, NULL, NULL, &t), HG_ERR_ARG);
	CHECK_EQ_I(p.deleted, 0);
	discard(&p);
	hg_context_free(ctx);
}

/* A tensor that goes from one context to another keeps its values, wherever it is. */
static void check_round_trip(hg_status (*create)(hg_context *, hg_dtype, int64_t, int64_t,
                                                 hg_tensor **))
{
	hg_context *ctx = test_context(), *other = test_context();
	float x[7 * 3], y[7 * 3];
	hg_tensor *t, *u;
	struct DLManagedTensorVersioned *out;
	for (int i = 0; i < 21; i++)
		x[i] = (float)i;
	CHECK_OK(create(ctx, HG_F16, 7, 3, &t));
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	CHECK_OK(hg_tensor_to_dlpack(t, other->stream, &out));
	hg_tensor_free(t);
	CHECK_OK(hg_tensor_from_dlpack(other, out, ctx->stream, &u));
	CHECK_EQ_I(ctx->current_bytes, 0);
	CHECK_OK(hg_tensor_download(u, y, HG_F32));
	CHECK(memcmp(x, y, sizeof x) == 0);
	hg_tensor_free(u);
	hg_context_free(other);
	hg_context_free(ctx);
}

static void round_trip_keeps_the_values(void)
{
	check_round_trip(hg_tensor_create);
	check_round_trip(hg_tensor_create_on_host);
}

static hg_status scene(hg_context *ctx)
{
	hg_tensor *t = NULL, *u = NULL;
	struct DLManagedTensorVersioned *out = NULL;
	hg_status status = hg_tensor_create(ctx, HG_F32, 3, 5, &t);
	if (status == HG_OK)
		status = hg_tensor_to_dlpack(t, NULL, &out);
	if (status == HG_OK)
		out->tensor.strides[0] = 7, status = hg_tensor_from_dlpack(ctx, out, NULL, &u);
	if (status < 0 && out)
		out->deleter(out);
	hg_tensor_free(t);
	hg_tensor_free(u);
	return status;
}

static void failed_allocations_are_reported(void)
{
	CHECK(faulty_sweep(scene) >= 7);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(lent_tensor_has_the_values),      TEST(last_user_frees_the_memory),
	    TEST(consumers_release_on_any_thread), TEST(views_are_refused),
	    TEST(tensors_with_any_rows_are_taken), TEST(offsets_strides_and_vectors_are_understood),
	    TEST(bools_are_taken_as_bytes),        TEST(tensors_that_cannot_be_taken_are_refused),
	    TEST(missing_arguments_are_refused),   TEST(round_trip_keeps_the_values),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
