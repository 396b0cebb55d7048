#include "doctor/widen.h"

/* A matrix of the call: read (as it is, or widened), written, or both. */
enum { READ = 1, WRITE = 2 };
struct role {
	struct hg__mat *mat;
	int use;
};
enum { ROLES = 2 * HG__MAX_IN + HG__MAX_AUX + 4 };

static int list_roles(struct hg__call *c, unsigned saves, int backward, struct role *role)
{
	int n = 0;
	for (int i = 0; i < HG__MAX_IN; i++)
		role[n++] = (struct role){&c->in[i], READ};
	role[n++] = (struct role){&c->out, backward ? READ : WRITE};
	for (int i = 0; i < HG__MAX_AUX; i++)
		role[n++] =
		    (struct role){&c->aux[i], backward && !(saves & HG__BACK_AUX(i)) ? READ : WRITE};
	for (int i = 0; i < 2; i++)
		role[n++] = (struct role){&c->buffer[i], READ | WRITE};
	if (backward)
		role[n++] = (struct role){&c->dout, READ};
	for (int i = 0; i < HG__MAX_IN && backward; i++)
		role[n++] = (struct role){&c->din[i], c->adds >> i & 1u ? READ | WRITE : WRITE};
	return n;
}

/* Float matrices become f32; what is only read and is not a half stays where it is. */
static int moves(const struct role *role)
{
	return role->mat->data && (role->use & WRITE || role->mat->dtype == HG_F16);
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

static hg_status move(hg_context *ctx, const struct role *role, void *to)
{
	const struct hg__mat from = *role->mat;
	role->mat->data = to;
	role->mat->dtype = wide_type(from.dtype);
	if (!(role->use & READ) || from.rows == 0 || from.cols == 0)
		return HG_OK;
	if (from.dtype != HG_F16)
		return ctx->backend->copy(ctx, to, from.data,
		                          (size_t)(from.rows * from.ld) * hg_dtype_size(from.dtype));
	const struct hg__axpby_args widen = {.x = from, .y = *role->mat, .alpha = 1.0f};
	return ctx->backend->kernels->axpby(ctx, &widen);
}

/* Zero first, so that the padding of rows holds numbers. */
static hg_status fill(unsigned saves, int backward, struct hg__wide *wide)
{
	hg_context *ctx = wide->call.ctx;
	struct role role[ROLES];
	const int n = list_roles(&wide->call, saves, backward, role);
	size_t at = 0;
	for (int i = 0; i < n; i++)
		wide->bytes += moves(&role[i]) ? wide_bytes(role[i].mat) : 0;
	HG__TRY(hg__device_alloc(ctx, wide->bytes, "doctor: operands in f32", &wide->memory));
	if (wide->bytes)
		HG__TRY(ctx->backend->fill(ctx, wide->memory, 0, wide->bytes));
	for (int i = 0; i < n; i++) {
		if (!moves(&role[i]))
			continue;
		const size_t bytes = wide_bytes(role[i].mat);
		HG__TRY(move(ctx, &role[i], (char *)wide->memory + at));
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
	const hg_status status = fill(saves, backward, wide);
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
