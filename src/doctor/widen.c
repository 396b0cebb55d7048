#include "doctor/widen.h"

/* A matrix of a call, and whether the op reads it, writes it, or both. */
enum { READ = 1, WRITE = 2 };
struct access {
	struct hg__mat *mat;
	int mode;
};
enum { MATRICES = 2 * HG__MAX_IN + HG__MAX_AUX + 4 };

static int list_accesses(struct hg__call *c, unsigned saves, int backward, struct access *access)
{
	int n = 0;
	for (int i = 0; i < HG__MAX_IN; i++)
		access[n++] = (struct access){&c->in[i], READ};
	access[n++] = (struct access){&c->out, backward ? READ : WRITE};
	for (int i = 0; i < HG__MAX_AUX; i++)
		access[n++] =
		    (struct access){&c->aux[i], backward && !(saves & HG__BACK_AUX(i)) ? READ : WRITE};
	for (int i = 0; i < 2; i++)
		access[n++] = (struct access){&c->buffer[i], READ | WRITE};
	if (backward)
		access[n++] = (struct access){&c->dout, READ};
	for (int i = 0; i < HG__MAX_IN && backward; i++)
		access[n++] = (struct access){&c->din[i], c->adds >> i & 1u ? READ | WRITE : WRITE};
	return n;
}

/* A matrix that is only read and is not f16 serves the wide run where it is. */
static int needs_copy(const struct access *access)
{
	return access->mat->data && (access->mode & WRITE || access->mat->dtype == HG_F16);
}

static hg_dtype wide_type(hg_dtype dtype)
{
	return dtype == HG_F16 ? HG_F32 : dtype;
}

static size_t wide_bytes(const struct hg__mat *mat)
{
	const size_t bytes = (size_t)(mat->rows * mat->ld) * hg_dtype_size(wide_type(mat->dtype));
	return bytes ? hg__aligned(bytes) : HG__ALIGN;
}

/* Points the call to new memory, and copies what the op reads there. */
static hg_status copy_wide(hg_context *ctx, const struct access *access, void *to)
{
	const struct hg__mat from = *access->mat;
	access->mat->data = to;
	access->mat->dtype = wide_type(from.dtype);
	if (!(access->mode & READ) || from.rows == 0 || from.cols == 0)
		return HG_OK;
	if (from.dtype != HG_F16)
		return ctx->backend->copy(ctx, to, from.data,
		                          (size_t)(from.rows * from.ld) * hg_dtype_size(from.dtype));
	const struct hg__axpby_args widen = {.x = from, .y = *access->mat, .alpha = 1.0f};
	return ctx->backend->kernels->axpby.run(ctx, &widen);
}

/* The memory is zeroed first, because kernels also read the padding of rows. */
static hg_status copy_operands(unsigned saves, int backward, struct hg__wide *wide)
{
	hg_context *ctx = wide->call.ctx;
	struct access access[MATRICES];
	const int n = list_accesses(&wide->call, saves, backward, access);
	size_t at = 0;
	for (int i = 0; i < n; i++)
		wide->bytes += needs_copy(&access[i]) ? wide_bytes(access[i].mat) : 0;
	HG__TRY(hg__device_alloc(ctx, wide->bytes, "doctor: operands in f32", &wide->memory));
	if (wide->bytes)
		HG__TRY(ctx->backend->fill(ctx, wide->memory, 0, wide->bytes));
	for (int i = 0; i < n; i++) {
		if (!needs_copy(&access[i]))
			continue;
		const size_t bytes = wide_bytes(access[i].mat);
		HG__TRY(copy_wide(ctx, &access[i], (char *)wide->memory + at));
		at += bytes;
	}
	return HG_OK;
}

hg_status hg__wide_open(const struct hg__call *call, unsigned saves, int backward,
                        struct hg__wide *wide)
{
	*wide = (struct hg__wide){.call = *call, .node = *call->node};
	wide->node.accumulate = HG_ACC_F32;
	wide->call.node = &wide->node;
	const hg_status status = copy_operands(saves, backward, wide);
	if (status < 0)
		hg__wide_close(wide);
	return status;
}

hg_status hg__wide_run(struct hg__wide *wide, int backward)
{
	const struct hg__op *op = wide->node.op;
	return backward ? op->backward(&wide->call) : op->forward(&wide->call);
}

void hg__wide_close(struct hg__wide *wide)
{
	if (wide->call.ctx)
		hg__device_free(wide->call.ctx, wide->memory, wide->bytes);
	*wide = (struct hg__wide){0};
}
