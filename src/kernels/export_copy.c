/* A compact copy of a tensor for another library. It lives here and not beside the rest of DLPack
 * because a kernel makes it. */
#include "core/convert.h"
#include "core/lent.h"
#include "halfgraph/dlpack.h"
#include "kernels/kernels.h"

/* Copies and converts on the device. Integers, which no kernel takes, go through the host if their
 * rows are padded. */
static hg_status copy_elements(hg_context *ctx, const struct hg__mat *from,
                               const struct hg__mat *to)
{
	const struct hg__copy_cols_args args = {.src = *from, .dst = *to, .cols = to->cols};
	if (!to->rows || !to->cols)
		return HG_OK;
	return to->dtype == HG_F16 || to->dtype == HG_F32
	           ? ctx->backend->kernels->copy_cols.run(ctx, &args)
	           : hg__copy_matrix(ctx, to, from);
}

hg_status hg_tensor_export_copy(const hg_tensor *tensor, hg_dtype dtype, void *stream,
                                struct DLManagedTensorVersioned **out)
{
	if (out)
		*out = NULL;
	if (!tensor || !out)
		return hg__fail(tensor ? tensor->ctx : NULL, HG_ERR_ARG,
		                "export_copy: the pointer for the result is NULL");
	hg_context *ctx = tensor->ctx;
	const struct hg__mat *m = &tensor->mat;
	hg_tensor *copy;
	if (!hg__convertible(m->dtype, dtype))
		return hg__fail(ctx, HG_ERR_DTYPE, "export_copy: tensor is %s, the copy shall be %s",
		                hg_dtype_name(m->dtype), hg_dtype_name(dtype));
	HG__TRY(hg__tensor_make(ctx, dtype, m->rows, m->cols, m->cols, &copy));
	hg_status status = copy_elements(ctx, m, &copy->mat);
	if (status == HG_OK)
		status = hg_tensor_to_dlpack(copy, stream, out);
	hg_tensor_free(copy); /* the consumer's loan keeps it */
	return status;
}
