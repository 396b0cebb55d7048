#include <string.h>

#include "core/context.h"
#include "core/normalize.h"
#include "doctor/trial.h"

/* The features of a trial, in the type that the state of its run has. If the numbers that the
 * original features were uploaded from are known, the new features are made of them. So a trial in
 * fp32 has the digits that the original features lost in f16. */

/* ---- dense ---- */

static void normalize_rows(const struct hg__trial_change *change, void *x, hg_dtype dtype,
                           int64_t rows, int64_t cols)
{
	for (int64_t i = 0; i < rows && change->row_normalize; i++)
		hg__row_normalize((char *)x + (size_t)(i * cols) * hg_dtype_size(dtype), dtype, cols);
}

/* Features that had the type of the state still have it when the state changes. */
static hg_dtype type_of(const hg_doctor_trial *trial, const struct hg__trial_change *change)
{
	const hg_dtype now = hg_tensor_dtype(trial->data->input.x);
	return now == trial->config->policy.state ? change->config.policy.state : now;
}

static hg_status copy_to_host(const hg_doctor_trial *trial, hg_dtype dtype, struct hg__buffer *host)
{
	if (!trial->features)
		return hg_tensor_download(trial->data->input.x, host->data, dtype);
	memcpy(host->data, trial->features, host->bytes);
	return HG_OK;
}

/* Features that only the device has are normalized in f32, and narrowed once, when they are
 * uploaded. */
static hg_status make_dense(hg_context *ctx, const hg_doctor_trial *trial,
                            const struct hg__trial_change *change, struct hg__trial_data *made)
{
	const hg_tensor *x = trial->data->input.x;
	const int64_t rows = hg_tensor_rows(x), cols = hg_tensor_cols(x);
	const hg_dtype from = trial->features ? trial->features_dtype : HG_F32,
	               to = type_of(trial, change);
	HG__TRY(hg__buffer_host(ctx, rows * cols, hg_dtype_size(from), "doctor: features of a trial",
	                        &made->host));
	made->host_dtype = from;
	HG__TRY(copy_to_host(trial, from, &made->host));
	normalize_rows(change, made->host.data, from, rows, cols);
	HG__TRY(hg_tensor_create(ctx, to, rows, cols, &made->x));
	HG__TRY(hg_tensor_upload(made->x, made->host.data, from));
	made->data.input.x = made->x;
	return HG_OK;
}

/* ---- sparse ---- */

struct csr {
	struct hg__buffer rowptr, col, value;
};

static hg_status upload_csr(hg_context *ctx, const hg_graph *x, const struct csr *csr,
                            hg_graph **made)
{
	const int64_t *rowptr = csr->rowptr.data;
	float *value = csr->value.data;
	for (int64_t i = 0; i < hg_graph_rows(x); i++)
		hg__row_normalize(value + rowptr[i], HG_F32, rowptr[i + 1] - rowptr[i]);
	return hg_graph_from_csr(ctx, hg_graph_rows(x), hg_graph_cols(x), hg_graph_edges(x), rowptr,
	                         csr->col.data, value, made);
}

static hg_status make_sparse(hg_context *ctx, hg_graph *x, struct hg__trial_data *made)
{
	struct csr csr = {0};
	hg_status status = hg__buffer_host(ctx, hg_graph_rows(x) + 1, sizeof(int64_t),
	                                   "doctor: sparse features of a trial", &csr.rowptr);
	if (status >= 0)
		status = hg__buffer_host(ctx, hg_graph_edges(x) + 1, sizeof(int32_t),
		                         "doctor: sparse features of a trial", &csr.col);
	if (status >= 0)
		status = hg__buffer_host(ctx, hg_graph_edges(x) + 1, sizeof(float),
		                         "doctor: sparse features of a trial", &csr.value);
	if (status >= 0)
		status = hg_graph_download(x, csr.rowptr.data, csr.col.data, csr.value.data);
	if (status >= 0)
		status = upload_csr(ctx, x, &csr, &made->x_sparse);
	hg__buffer_free(ctx, &csr.value);
	hg__buffer_free(ctx, &csr.col);
	hg__buffer_free(ctx, &csr.rowptr);
	made->data.input.x_sparse = made->x_sparse;
	return status;
}

/* ---- either ---- */

/* Does the change need other dense features? */
static int needs_new_dense(const hg_doctor_trial *trial, const struct hg__trial_change *change)
{
	const hg_tensor *x = trial->data->input.x;
	return x && (change->row_normalize ||
	             (trial->features && type_of(trial, change) != hg_tensor_dtype(x)));
}

hg_status hg__trial_data_open(hg_context *ctx, const hg_doctor_trial *trial,
                              const struct hg__trial_change *change, struct hg__trial_data *made)
{
	*made = (struct hg__trial_data){.data = *trial->data};
	hg_status status = HG_OK;
	if (needs_new_dense(trial, change))
		status = make_dense(ctx, trial, change, made);
	else if (trial->data->input.x_sparse && change->row_normalize)
		status = make_sparse(ctx, trial->data->input.x_sparse, made);
	if (status < 0)
		hg__trial_data_close(ctx, made);
	return status;
}

void hg__trial_data_close(hg_context *ctx, struct hg__trial_data *made)
{
	hg_tensor_free(made->x);
	hg_graph_free(made->x_sparse);
	hg__buffer_free(ctx, &made->host);
	*made = (struct hg__trial_data){.host = {0}};
}
