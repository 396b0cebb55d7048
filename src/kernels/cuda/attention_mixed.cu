/* Attention over batches in which some graphs have dense counts (core/plan_dense.h): the dense
 * kernels compute these, and a row kernel all other graphs, from a plan of their rows alone.
 *
 * Additive scores take tiles first, where the batch has them (attention_tiles.cuh). On a batch with
 * graphs of 36 to 204 nodes (collab-sizes, 64 columns, H200) tiles take 0.18 and 0.25 ms forward
 * and backward, a mix 0.39 and 0.42, and rows alone 0.40 and 0.45. DOT has no tiles: a mix takes
 * 0.43 and 1.16 ms there, and rows alone 0.54 and 1.51.
 *
 * Graphs have no edges in common, so neither kernel needs what the other one computes. The row
 * kernel comes first, because its passes over nodes may write all rows: what they write of graphs
 * with dense counts is overwritten. */

#include "kernels/cuda/attention_epilogue.cuh"

#include "kernels/cuda/attention.cuh"

namespace
{

/* The row kernels that follow the listed parts of a plan, and so write no other rows in their
 * passes over edges. */
constexpr struct attention_row<struct hg__attention_args> forward_rows[] = {
	HG__ATTENTION_ROW(attention, add), HG__ATTENTION_ROW(attention, packs),
};
constexpr struct attention_row<struct hg__attention_back_args> backward_rows[] = {
	HG__ATTENTION_ROW(attention_back, add), HG__ATTENTION_ROW(attention_back, packs),
};
constexpr struct attention_row<struct hg__attention_args> forward_dense =
    HG__ATTENTION_ROW(attention, graphs);
constexpr struct attention_row<struct hg__attention_back_args> backward_dense =
    HG__ATTENTION_ROW(attention_back, graphs);

bool is_mixed(const struct hg__csr &csr)
{
	return csr.plan && csr.plan->counted && csr.plan->rest;
}

/* The calls that both kinds of kernels see. */
template <typename A> struct both {
	A dense, rest;
};
both<struct hg__attention_args> both_of(const struct hg__attention_args *a)
{
	both<struct hg__attention_args> c = {*a, *a};
	c.dense.csr.plan = a->csr.plan->counted;
	c.rest.csr.plan = a->csr.plan->rest;
	return c;
}
both<struct hg__attention_back_args> both_of(const struct hg__attention_back_args *a)
{
	both<struct hg__attention_back_args> c = {*a, *a};
	c.dense.csr.plan = a->csr.plan->counted;
	c.rest.csr.plan = a->csr.plan->rest;
	c.dense.csr_t.plan = a->csr_t.plan->counted;
	c.rest.csr_t.plan = a->csr_t.plan->rest;
	return c;
}

/* The row kernel for a call; NULL if there is none. */
template <typename A, size_t N>
const attention_row<A> *row_kernel(const attention_row<A> (&rows)[N], const A *rest)
{
	for (const attention_row<A> &row : rows)
		if (row.takes(rest))
			return &row;
	return nullptr;
}

template <typename A, size_t N>
bool takes(const attention_row<A> &dense, const attention_row<A> (&rows)[N], const A *a)
{
	const both<A> c = both_of(a);
	return dense.takes(&c.dense) && row_kernel(rows, &c.rest);
}

/* The two kernels run one after the other, and can use the same memory. */
template <typename A, size_t N>
size_t workspace(const hg_context *ctx, const attention_row<A> &dense,
                 const attention_row<A> (&rows)[N], const A *a)
{
	const both<A> c = both_of(a);
	return hg__larger(dense.workspace(ctx, &c.dense),
	                  row_kernel(rows, &c.rest)->workspace(ctx, &c.rest));
}

template <typename A, size_t N>
hg_status run(hg_context *ctx, const attention_row<A> &dense, const attention_row<A> (&rows)[N],
              const A *a)
{
	const both<A> c = both_of(a);
	HG__TRY(row_kernel(rows, &c.rest)->run(ctx, &c.rest));
	return dense.run(ctx, &c.dense);
}

} // namespace

bool hg__cuda_attention_mixed_takes(const struct hg__attention_args *a)
{
	return is_mixed(a->csr) && takes(forward_dense, forward_rows, a);
}

size_t hg__cuda_attention_mixed_workspace(const hg_context *ctx, const struct hg__attention_args *a)
{
	return workspace(ctx, forward_dense, forward_rows, a);
}

/* The row kernel of ADD applies an epilogue to all rows afterwards (epilogue_apart), and the dense
 * kernel would not have computed its rows by then. So both run without one. */
hg_status hg__cuda_attention_mixed(hg_context *ctx, const struct hg__attention_args *a)
{
	if (a->ended.data && a->of.score == HG_SCORE_ADD)
		return epilogue_apart(ctx, *a, [&](const struct hg__attention_args &first) {
			return run(ctx, forward_dense, forward_rows, &first);
		});
	return run(ctx, forward_dense, forward_rows, a);
}

bool hg__cuda_attention_back_mixed_takes(const struct hg__attention_back_args *a)
{
	return is_mixed(a->csr) && is_mixed(a->csr_t) && takes(backward_dense, backward_rows, a);
}

size_t hg__cuda_attention_back_mixed_workspace(const hg_context *ctx,
                                               const struct hg__attention_back_args *a)
{
	return workspace(ctx, backward_dense, backward_rows, a);
}

hg_status hg__cuda_attention_back_mixed(hg_context *ctx, const struct hg__attention_back_args *a)
{
	return run(ctx, backward_dense, backward_rows, a);
}
