/* The contracts of the attention kernels: aggregation whose weights are a softmax of scores, which
 * are computed from both ends of each edge. No array with a number for each edge is written, except
 * the gradient of a bias, and the weights if a caller asks for them. */
#ifndef HG_KERNELS_ATTENTION_H
#define HG_KERNELS_ATTENTION_H

#include "core/csr.h"
#include "core/mat.h"
#include "core/rng.h"
#include "halfgraph/ops_attention.h"
#include "kernels/epilogue.h"
#include "kernels/overflow.h"
#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* Dropout of attention weights. The mask of edge (i, j) and head k is
 *
 *     0              if half number k % 8 of hg__philox(key, i, j, k / 8, *step) < threshold
 *     1 / keep       otherwise
 *
 * where half number b of the four words is word b / 2, its low 16 bits for even b and its high 16
 * bits for odd b. threshold = p * 2^16 rounded, and keep = 1 - threshold / 2^16. The mask depends
 * on the two nodes, not on the position of the edge, so the backward pass finds it from either
 * end, and duplicates of an edge share it. */
struct hg__attention_dropout {
	float p; /* 0: no dropout; hg__attention_drops */
	uint64_t key;
	const int64_t *step; /* device memory; needed if p > 0 */
};
/* Whether p is in [0, 1 - 2^-17), where something is kept: above it the threshold is 2^16. */
HG_HD static inline int hg__attention_drops(float p)
{
	return p >= 0.0f && (double)p < 1.0 - 0x1p-17;
}
HG_HD static inline uint32_t hg__attention_threshold(float p)
{
	return (uint32_t)((double)p * 65536.0 + 0.5);
}
/* 1 / keep. */
HG_HD static inline float hg__attention_kept(float p)
{
	return 65536.0f / (65536.0f - (float)hg__attention_threshold(p));
}

/* The mask of a half number. kept: hg__attention_kept. */
HG_HD static inline float hg__attention_mask_of(uint32_t half, uint32_t threshold, float kept)
{
	return half < threshold ? 0.0f : kept;
}
/* The mask of one edge (i, j) and head in a step; 1 without dropout. Kernels draw the words of many
 * edges and heads at once. */
static inline float hg__attention_mask(const struct hg__attention_dropout *d, int64_t step,
                                       int64_t i, int64_t j, int head)
{
	if (!(d->p > 0.0f))
		return 1.0f;
	const struct hg__rng4 words =
	    hg__philox(d->key, (uint32_t)i, (uint32_t)j, (uint32_t)head / 8, (uint32_t)step);
	const uint32_t word = words.w[head % 8 / 2];
	return hg__attention_mask_of(head % 2 ? word >> 16 : word & 0xFFFFu,
	                             hg__attention_threshold(d->p), hg__attention_kept(d->p));
}

/* A vector of COSINE that is shorter has no direction. */
#define HG__ATTENTION_TINY 1e-12

/* What the scores s[e, k] of edge e = (i, j) and head k are computed from, and the values V.
 *
 *     HG_SCORE_ADD      s = f(Q[i, k] + K[j, k] + bias[e, k]),  f(x) = x > 0 ? x : slope x
 *     HG_SCORE_DOT      s = scale <Q_i, K_j> + bias[e, k]
 *     HG_SCORE_COSINE   s = beta <Q_i / |Q_i|, K_j / |K_j|> + bias[e, k]
 *     HG_SCORE_ADD_V2   s = <c, f(Q_i + K_j)> + bias[e, k]
 *
 * Products, norms and sums are over the columns of head k, in f32 and in any order, but the score
 * of an edge has the same bits in the forward pass and in both directions of the backward pass.
 * ADD_V2 may be computed as slope <c, Q_i> + <c, K_j> + (1 - slope) <c, max(Q_i, -K_j)>.
 * Where a vector is shorter than HG__ATTENTION_TINY, 1 / |Q_i|, or 1 / |K_j|, counts as 0.
 *
 * - q, k, v: the matrices Q [rows, h q], K [cols, h q] and V [cols, h d], where h is the number of
 *   heads. A head has q columns of Q and K, at least 1, with ADD exactly 1, and d columns of V.
 *   State, all of one type. They may be columns of one matrix, and share memory.
 * - c: f32 or state. ADD_V2: [1, h q]. COSINE: beta, [1, h] or [1, 1]. Else absent.
 * - bias: state [m, h] by edge (csr_t.edge), or absent.
 * - weight: f32 [m] by edge, >= 0: how often the edge counts; NULL: once. An edge of weight 0 has
 *   the score -inf, whatever its ends are.
 * - heads: h, 1 to HG_ATTENTION_HEADS.
 * - slope: in [0, 1] with ADD and ADD_V2, so that f(x) = max(x, slope x); not read with others.
 * - dropout: hg__attention_drops(p), and with p > 0 a step. */
struct hg__attention {
	hg_score score;
	int heads;
	float slope, scale;
	struct hg__mat q, k, v, c, bias;
	const float *weight;
	struct hg__attention_dropout dropout;
};

/* Attention:
 *
 *     p[e, k] = weight[e] exp(s[e, k]) / sum over the edges f of row i of weight[f] exp(s[f, k])
 *     Y[i, c] = sum over the edges e = (i, j) of row i of mask[e, k] p[e, k] V[j, c]
 *
 * with k the head of column c.
 *
 * 0 for a row without edges, or whose weights are all 0. Scores have their maximum over the row (or
 * a number close to it) subtracted before exp, so no spread of scores overflows. An edge with score
 * -inf has p = 0; a row of which every score is -inf counts as a row without edges. Another score
 * that is not finite gives NaN. Where an element of Q or K is infinite, a score of ADD with slope 0
 * or of ADD_V2 may be NaN in one implementation and -inf in another. Where an element of V is not
 * finite, that column of Y may be infinite or NaN for all neighbours, even if p or the mask is 0,
 * or every score of the row is -inf.
 *
 * With ADD and DOT, where V are halves, weight exp(s) may be narrowed before it is multiplied by V:
 * to an error of 2^-11 of it and of 2^-36 exp of the largest score. Y is then divided by the sum of
 * the narrowed numbers, so that it stays a mean; the log-sum-exp is that of the others.
 *
 * - y: [rows, h d] of V's type, narrowed once. Its data may be NULL if there is `ended`: then the
 *   caller does not need it, because there will be no backward pass.
 * - ended: of Y's type, [rows, h d], or absent: dropout(f(Y + b)), with the bias, the activation
 *   and the dropout of `epilogue`, which has no z. Computed in f32, from Y as it is before it is
 *   narrowed or as it is stored. If it is [rows, d], the mean of Y over the heads is in the place
 *   of Y; Y then has data.
 * - log_sum: what the backward pass needs of the softmax of a row, f32 [rows, h], with ADD
 *   [rows, 2 h]. Columns 0 .. h-1 receive its log-sum-exp, which is the log of the sum of
 *   weight exp(s), and -inf for a row without edges. Columns h .. 2h-1 receive the sum of p over
 *   the edges whose score is positive before f (Q + K + bias > 0).
 * - plus: with ADD, of Y's shape and type: the sum of the terms of Y of those edges. It may be
 *   absent, and is with other scores.
 * - overflow: checks Y, plus and ended.
 *
 * Parts of split rows are combined in slot order. */
struct hg__attention_args {
	struct hg__csr csr;
	struct hg__attention of;
	struct hg__mat y, log_sum, plus, ended;
	struct hg__sum_epilogue epilogue;
	struct hg__overflow_flag overflow;
};

/* The gradients of attention. With G = dY and D[i, k] = <G_i, Y_i> over head k,
 *
 *     ds[e, k] = p[e, k] (mask[e, k] <G_i, V_j> - D[i, k]),  p = weight exp(s - log_sum) <= 1,
 *
 *     dV[j, c] = sum over the edges (i, j) of mask p G[i, c]
 *     ADD       dQ[i, k] = (1 - slope) (<G_i, plus_i> - D[i, k] log_sum[i, h + k]),
 *               dK[j, k] = sum over the edges (i, j) of f'(Q + K + bias) ds
 *     DOT       dQ_i = scale sum ds K_j,  dK_j = scale sum ds Q_i
 *     COSINE    with unit vectors q' = Q_i / |Q_i|, k' = K_j / |K_j| and their product t:
 *               dQ_i = beta / |Q_i| sum ds (k' - t q'),  dK_j = beta / |K_j| sum ds (q' - t k'),
 *               dc = sum over all edges of ds t
 *     ADD_V2    dQ_i = sum ds c f'(Q_i + K_j),  dK_j the same over column j,
 *               dc = sum over all edges of ds f(Q_i + K_j)
 *     dbias[e, k] = ds, with ADD f' ds
 *
 * With ADD, where operands are halves, dQ[i, k] may be computed as (1 - slope) times the sum of ds
 * over the edges of row i whose score is positive before f, which is the same, because all ds of a
 * row add up to 0.
 *
 * With ADD and DOT, where G, K or Q are halves, the p or ds with which they are multiplied may be
 * narrowed first, after the multiplication by a power of two that keeps it in range: to an error
 * of 2^-11 of it.
 *
 * f'(0) = slope. A vector without a direction has the gradient 0: behind a relu whole rows are 0,
 * and the quotient by a tiny number would overflow.
 *
 * - y, log_sum, plus: as the forward pass left them. D uses Y as stored. plus may be read for dq
 *   with ADD, and must then be present.
 * - dy: G. It is read, unless dended is present.
 * - dended: the gradient of `ended`, of its shape and type, or absent. If it is present, the call
 *   computes G first, as epilogue_back with the epilogue of the forward pass: act_drop, and `ended`
 *   where there is an f. G is stored in dy, and db, f32 of the columns of `ended` or absent,
 *   receives the column sums. dy may be dended if there is neither a mean over heads, f nor
 *   dropout. Otherwise dy shares no memory with the other operands.
 * - dq, dk, dv: dQ, dK and dV, of the type of q, k, v, or absent. dk may be dq, and dv may be dk or
 *   dq: the matrix then receives the sum of their gradients (one operand in several places). A
 *   gradient may be narrowed before it is added to another. With ADD dv may be y.
 * - dc: f32, of c's shape, or absent. dbias: as bias, or absent.
 * - csr_t must be present for dk and dv. It needs `edge` only if there is a bias or a weight. */
struct hg__attention_back_args {
	struct hg__csr csr, csr_t;
	struct hg__attention of;
	struct hg__mat y, log_sum, plus, dy;
	struct hg__mat ended, dended, db;
	struct hg__act_drop act_drop;
	struct hg__mat dq, dk, dv, dc, dbias;
};
/* Whether a call has an epilogue. Without rows dended has no data, and db is 0. */
static inline int hg__attention_ends(const struct hg__attention_back_args *a)
{
	return a->dended.data || a->db.data;
}
/* Whether an epilogue of these columns begins with the mean over the heads of Y. */
static inline int hg__attention_means(const struct hg__mat *y, const struct hg__mat *ended)
{
	return ended->cols != y->cols;
}

/* Columns of staging with which tiles (core/plan_tiles.h) are enough for attention into `cols`
 * columns: two sums of each, and three numbers of each head. */
enum { HG__ATTENTION_STAGED = 3 };
static inline int64_t hg__attention_staging(int64_t cols, int heads)
{
	return 2 * cols + (int64_t)heads * HG__ATTENTION_STAGED;
}

/* P[e, k] = p[e, k] of a forward pass that left `log_sum`, without dropout: [m, heads] state or
 * f32, by edge. For users who look at the weights. */
struct hg__attention_weights_args {
	struct hg__csr csr;
	struct hg__attention of; /* v is not read */
	struct hg__mat log_sum, p;
};

HG_EXTERN_C_END
#endif
