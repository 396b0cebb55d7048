/* The bandwidth of memory, measured with a kernel of the library: Y = X on all threads. */
#include "autograd/profile.h"

/* More than any cache of a GPU (an H200 has 50 MB) and than most of CPUs. */
#define COPY_BYTES ((size_t)128 << 20)
/* A part of the free memory that nobody misses for a moment. */
#define COPY_SHARE 8
/* The first copy also takes its memory from the operating system; of the others the fastest is what
 * memory can give. */
enum { WIDTH = 1024, COPIES = 6 };

static hg_status queue_copy(hg_context *ctx, const struct hg__profile_copy *copy)
{
	const struct hg__axpby_args args = {.x = copy->from, .y = copy->to, .alpha = 1.0f};
	return ctx->backend->kernels->axpby.run(ctx, &args);
}

static double copied_bytes(const struct hg__profile_copy *copy)
{
	return 2.0 * (double)copy->from.rows * WIDTH * (double)sizeof(float);
}

static hg_status make_memory(hg_context *ctx, struct hg__profile_copy *copy)
{
	size_t room = 0;
	HG__TRY(hg__device_room(ctx, &room));
	const size_t most = room / COPY_SHARE < COPY_BYTES ? room / COPY_SHARE : COPY_BYTES,
	             row = WIDTH * sizeof(float), half = (most / row ? most / row : 1) * row;
	HG__TRY(hg__buffer_device(ctx, (int64_t)(2 * half), 1, "profile: a copy", &copy->memory));
	copy->from = (struct hg__mat){copy->memory.data, (int64_t)(half / row), WIDTH, WIDTH, HG_F32};
	copy->to = copy->from;
	copy->to.data = (char *)copy->memory.data + half;
	return ctx->backend->fill(ctx, copy->memory.data, 0, copy->memory.bytes);
}

static hg_status measure(hg_context *ctx, const struct hg__profile_copy *copy, void *marks,
                         double *bandwidth)
{
	double at[COPIES + 1], least = 0.0;
	for (int k = 0; k < COPIES; k++) {
		HG__TRY(ctx->backend->mark(ctx, marks, k));
		HG__TRY(queue_copy(ctx, copy));
	}
	HG__TRY(ctx->backend->mark(ctx, marks, COPIES));
	HG__TRY(ctx->backend->marks_read(ctx, marks, COPIES + 1, at));
	for (int k = 1; k < COPIES; k++)
		if (at[k + 1] > at[k] && (least <= 0.0 || at[k + 1] - at[k] < least))
			least = at[k + 1] - at[k];
	if (least <= 0.0)
		return hg__fail(ctx, HG_ERR_DEVICE, "profile: the clock does not move during a copy");
	*bandwidth = copied_bytes(copy) / least;
	return HG_OK;
}

hg_status hg__profile_copy_open(hg_context *ctx, struct hg__profile_copy *copy, double *bandwidth)
{
	void *marks = NULL;
	HG__TRY(ctx->backend->marks_make(ctx, COPIES + 1, &marks));
	hg_status status = make_memory(ctx, copy);
	if (status >= 0)
		status = measure(ctx, copy, marks, bandwidth);
	ctx->backend->marks_free(ctx, marks, COPIES + 1);
	return status;
}

hg_status hg__profile_copy_queue(hg_context *ctx, const struct hg__profile_copy *copy,
                                 double seconds, double bandwidth)
{
	for (double left = seconds; left > 0.0; left -= copied_bytes(copy) / bandwidth)
		HG__TRY(queue_copy(ctx, copy));
	return HG_OK;
}
