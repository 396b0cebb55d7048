#ifndef HG_BENCH_ATTENTION_HOST_H
#define HG_BENCH_ATTENTION_HOST_H

#include "check.h"
#include "kernels/kernels.h"

/* Attention in f64, edge by edge, from copies of the operands in host memory. */

/* A matrix of the device as floats, which hold every half exactly. x NULL: it is absent. */
struct floats {
	float *x;
	int64_t rows, cols;
};
hg_status floats_get(struct bench *b, struct hg__mat mat, struct floats *floats);
void floats_free(struct floats *floats);

struct attention_host {
	struct hg__attention of;
	struct floats q, k, v, c;
	float *weight;                 /* [m] by edge; NULL: all are 1 */
	int64_t step;                  /* of dropout */
	int64_t heads, q_cols, v_cols; /* columns of one head */
	double q_depth, v_depth;       /* roundings of a dot product over them */
};
hg_status attention_host_get(struct bench *b, const struct hg__attention *of,
                             struct attention_host *host);
void attention_host_free(struct attention_host *host);

/* The columns of a head in row i. */
static inline const float *head_of(const struct floats *floats, int64_t i, int64_t head,
                                   int64_t cols)
{
	return floats->x + i * floats->cols + head * cols;
}

/* The entries of row `index` of one orientation of the graph. The weights are those of the edges in
 * either orientation. */
hg_status edges_get(struct bench *b, const struct attention_host *host, const struct hg__csr *csr,
                    const int64_t *rowptr, int64_t index, struct row *row);

/* The score s of an edge (i, j) and a head, before its exponential. */
struct edge_score {
	double s, error;       /* |s of the kernel - s| <= error */
	int positive;          /* ADD: q + k > 0 */
	double q_norm, k_norm; /* COSINE: at least 1e-12 */
	double t, t_most;      /* COSINE: the product of the unit vectors, and that of their |.| */
};
struct edge_score edge_score_of(const struct attention_host *host, int64_t i, int64_t j,
                                int64_t head);
/* The factor of dropout on the weight of an edge. */
double edge_mask(const struct attention_host *host, int64_t i, int64_t j, int64_t head);

/* The relative error, in units of u, of exp(s - m) in f32 for |s|, |m| <= far: 4 for the function
 * itself (2 ulp), and 10 far for its argument. That is the products of s and m with log2(e), at u
 * each, their difference, at 2 far u, and the intrinsic of CUDA, of 2 + 1.173 |s - m| ulp, at 4.7
 * far u. */
double exp_roundings(double far);

/* A bound on the relative error of a sum of non-negative terms, each computed with `roundings`
 * roundings along its way, whose scores have the given error, that enters `times` times. */
double relative_error(double roundings, double score_error, int times);

/* What one half for each weight adds, relative to a product: on batches with dense counts, tensor
 * cores may multiply each weight of ADD and DOT as one half (cuda/attention_graphs.cuh). */
double half_weights(const struct attention_host *host, const struct hg__csr *csr);

/* A number is flushed to 0 below 2^-126. A relative error is more than 2^-24, so an addend of this
 * size in every weight covers that. */
#define WEIGHT_FLUSHED 0x1p-100

#endif
