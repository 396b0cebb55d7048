#include "nn/predict.h"

#include <math.h>

#include "autograd/tape.h"

/* The column of the first largest logit that is not a NaN; -1 if there is none. */
static int32_t argmax(const float *logits, int64_t cols)
{
	int32_t best = -1;
	for (int32_t c = 0; c < cols; c++)
		if (!isnan(logits[c]) && (best < 0 || logits[c] > logits[best]))
			best = c;
	return best;
}

hg_status hg__predict(hg_context *ctx, const hg_tensor *logits, int32_t *prediction, float *values)
{
	const int64_t rows = hg_tensor_rows(logits), cols = hg_tensor_cols(logits);
	void *host = NULL;
	if (values)
		host = values;
	else
		HG__TRY(hg__host_alloc(ctx, (size_t)(rows * cols), sizeof(float), "logits", &host));
	const float *scores = host;
	const hg_status status = hg_tensor_download(logits, host, HG_F32);
	for (int64_t i = 0; status >= 0 && prediction && i < rows; i++)
		prediction[i] = argmax(scores + i * cols, cols);
	if (!values)
		hg__host_free(ctx, host, (size_t)(rows * cols) * sizeof(float));
	return status;
}

void hg__targets_undo(float *x, int64_t rows, int64_t cols, const double *mean,
                      const double *deviation)
{
	for (int64_t i = 0; i < rows * cols; i++)
		x[i] = (float)((double)x[i] * deviation[i % cols] + mean[i % cols]);
}
