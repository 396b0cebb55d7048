/* dK and dV of attention with scores from whole rows: the pass over columns
 * (attention_packs_back.cuh). */

#include "kernels/cuda/attention_packs_back.cuh"

hg_status hg__attention_back_columns(hg_context *ctx, const struct hg__csr &csr_t,
                                     const struct hg__attention &of, const struct back_problem &p)
{
	return run_back_pass<true>(ctx, "attention_back: columns", csr_t, of, p);
}
