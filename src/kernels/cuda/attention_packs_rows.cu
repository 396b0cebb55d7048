/* dQ of attention with scores from whole rows: the pass over rows (attention_packs_back.cuh). */

#include "kernels/cuda/attention_packs_back.cuh"

hg_status hg__attention_back_rows(hg_context *ctx, const struct hg__csr &csr,
                                  const struct hg__attention &of, const struct back_problem &p)
{
	return run_back_pass<false>(ctx, "attention_back: rows", csr, of, p);
}
