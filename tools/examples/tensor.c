/* Tensors: matrices on a device in fp16 or fp32, exchanged with the host in either type. */
#include <halfgraph/halfgraph.h>
#include <stdio.h>

int main(void)
{
	hg_context *ctx;
	hg_tensor *x = NULL;
	const float in[2][3] = {{1.0f, 2.5f, -3.0f}, {0.1f, 65504.0f, 1e-7f}};
	float out[2][3];

	hg_status s = hg_context_create(NULL, &ctx); /* a GPU if there is one, else the CPU */
	if (s < 0) {
		fprintf(stderr, "%s\n", hg_context_error(NULL));
		return 1;
	}
	printf("device: %s\n", hg_context_device_name(ctx));

	s = hg_tensor_create(ctx, HG_F16, 2, 3, &x);
	if (s >= 0)
		/* rounded to nearest: 0.1 becomes 0.09998, 1e-7 a subnormal */
		s = hg_tensor_upload(x, in, HG_F32);
	if (s >= 0)
		s = hg_tensor_download(x, out, HG_F32);
	if (s >= 0) {
		printf("%s [%lld, %lld], rows %lld halves apart\n", hg_dtype_name(hg_tensor_dtype(x)),
		       (long long)hg_tensor_rows(x), (long long)hg_tensor_cols(x),
		       (long long)hg_tensor_ld(x));
		for (int i = 0; i < 2; i++)
			printf("%12g %12g %12g\n", (double)out[i][0], (double)out[i][1], (double)out[i][2]);
	}

	/* A value that fp16 cannot hold is refused with a message; it never becomes infinite
	 * silently. */
	const float big[2][3] = {{0, 0, 0}, {0, 70000.0f, 0}};
	if (s >= 0 && hg_tensor_upload(x, big, HG_F32) == HG_ERR_RANGE)
		printf("refused: %s\n", hg_context_error(ctx));
	if (s < 0)
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	hg_tensor_free(x);
	hg_context_free(ctx);
	return s < 0;
}
