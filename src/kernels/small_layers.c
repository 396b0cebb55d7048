/* Checks the calls of small_layers and small_layers_back for both backends. */
#include "kernels/small_layers.h"
#include "kernels/support.h"

static int is_half(const struct hg__mat *m)
{
	return !m->data || m->dtype == HG_F16;
}

static int is_single(const struct hg__mat *m)
{
	return !m->data || m->dtype == HG_F32;
}

/* Whether the operands of a layer have the types of the contract, and whether they fit its input of
 * `cols` columns. */
static int types_fit(const struct hg__small_layer *l)
{
	return is_half(&l->w) && is_half(&l->w_self) && is_half(&l->b) && is_half(&l->y) &&
	       is_half(&l->dy) && is_single(&l->dw) && is_single(&l->dw_self) && is_single(&l->db);
}
static int rows_fit(const struct hg__mat *m, int64_t rows, int64_t cols)
{
	return !m->data || (m->rows == rows && m->cols == cols);
}
static int shapes_fit(const struct hg__small_layer *l, int64_t rows, int64_t cols)
{
	const int64_t out = l->w.cols;
	const int ends =
	    l->act_drop.act == 1 + HG__ACT_relu || (l->act_drop.act == 0 && !(l->act_drop.p > 0.0f));
	return ends && l->w.data && l->w.rows == cols && out >= 1 && out <= HG__SMALL_WIDTH &&
	       rows_fit(&l->w_self, cols, out) && rows_fit(&l->b, 1, out) &&
	       rows_fit(&l->dw, cols, out) && rows_fit(&l->dw_self, cols, out) &&
	       (l->w_self.data || !l->dw_self.data) && rows_fit(&l->db, 1, out) &&
	       rows_fit(&l->y, rows, out) && rows_fit(&l->dy, rows, out);
}

/* cols: of the last layer's result. */
static int readout_fits(const struct hg__small_layers_args *a, int64_t cols)
{
	const struct hg__small_readout *r = &a->readout;
	if (!r->y.data)
		return !r->dy.data;
	return r->y.cols == cols && rows_fit(&r->dy, r->y.rows, cols) &&
	       (r->reduce == HG_REDUCE_SUM || r->reduce == HG_REDUCE_MEAN) &&
	       !(r->dy.data && a->layer[a->layers - 1].dy.data);
}

hg_status hg__small_layers_supported(hg_context *ctx, const struct hg__small_layers_args *a)
{
	int64_t cols = a->x.cols;
	int types = is_half(&a->x) && is_half(&a->readout.y) && is_half(&a->readout.dy), drops_well = 1,
	    shapes = a->layers >= 1 && a->layers <= HG__SMALL_LAYERS && cols >= 1 &&
	             cols <= HG__SMALL_WIDTH && a->x.rows == a->csr.rows &&
	             a->csr.rows == a->csr.cols && a->bins->bins <= INT32_MAX;
	for (int l = 0; l < a->layers && shapes; l++) {
		const struct hg__act_drop *end = &a->layer[l].act_drop;
		drops_well &= !(end->p > 0.0f) || (end->step && a->kept.data);
		types &= types_fit(&a->layer[l]);
		shapes = shapes_fit(&a->layer[l], a->x.rows, cols);
		cols = a->layer[l].w.cols;
	}
	if (!types)
		return hg__fail(
		    ctx, HG_ERR_UNSUPPORTED,
		    "small_layers: operands of f32; supported are f16, and f32 for gradients of "
		    "weights");
	shapes = shapes && drops_well && readout_fits(a, cols) &&
	         hg__small_matrices(a) <= HG__SMALL_MATRICES &&
	         (!a->kept.data ||
	          (a->kept.rows == a->bins->bins * a->layers &&
	           a->kept.cols == hg__small_kept(hg__small_width_of(a)) && a->kept.dtype == HG_I32));
	return shapes ? HG_OK
	              : hg__fail(ctx, HG_ERR_INTERNAL, "small_layers: operands do not fit together");
}

hg_status hg__small_layers_back_supported(hg_context *ctx,
                                          const struct hg__small_layers_back_args *a)
{
	HG__TRY(hg__small_layers_supported(ctx, &a->of));
	const int64_t rows = a->of.x.rows;
	if (!is_half(&a->dx))
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "small_layers_back: dX of f32; supported is f16");
	const int fits = rows_fit(&a->dx, rows, a->of.x.cols) && a->csr_t.rows == rows;
	return fits ? HG_OK
	            : hg__fail(ctx, HG_ERR_INTERNAL, "small_layers_back: operands do not fit together");
}
