#ifndef HG_DOCTOR_ATTENTION_EDGE_H
#define HG_DOCTOR_ATTENTION_EDGE_H

#include "doctor/attention_form.h"
#include "doctor/sum_terms.h"

HG_EXTERN_C_BEGIN

/* The numbers that attention has at one edge and head (kernels/attention.h). No kernel keeps them,
 * so they are computed here once more, in f64, from the two ends of the edge and from what the
 * forward pass has left of the row. */

/* Whose numbers: one head of one call. */
struct hg__edge_reader {
	hg_context *ctx;
	const struct hg__attended *at;
	int64_t head;
	int64_t step; /* of the dropout masks */
	struct hg__reader q, k, v, y, dy, log_sum;
};
/* edges: about how many will be read. */
HG_NODISCARD hg_status hg__edge_reader_open(hg_context *ctx, const struct hg__attended *at,
                                            int64_t head, int64_t edges,
                                            struct hg__edge_reader *reader);
void hg__edge_reader_close(struct hg__edge_reader *reader);

/* An edge: its ends, and its row in tensors of edges. */
struct hg__edge {
	int64_t i, j, value_row; /* destination, source */
};

/* bad: the kernels, which compute it in f32, have no finite score, nor one of -inf. */
struct hg__edge_score {
	struct hg__edge_products products;
	double score, bias;
	int bad;
};
HG_NODISCARD hg_status hg__edge_score(const struct hg__edge_reader *from,
                                      const struct hg__edge *edge, struct hg__edge_score *score);

/* p, and the factor 0 or 1 / keep of dropout. */
HG_NODISCARD hg_status hg__edge_weight(const struct hg__edge_reader *from,
                                       const struct hg__edge *edge, double score, double *p,
                                       double *mask);

/* The gradient of the score: p (mask <G_i, V_j> - <G_i, Y_i>). */
HG_NODISCARD hg_status hg__edge_gradient(const struct hg__edge_reader *from,
                                         const struct hg__edge *edge, double p, double mask,
                                         double *ds);

/* The derivative of the score with respect to Q[i, col], or of_k: to K[j, col]. */
HG_NODISCARD hg_status hg__edge_derivative(const struct hg__edge_reader *from,
                                           const struct hg__edge *edge,
                                           const struct hg__edge_score *score, int of_k,
                                           int64_t col, double *derivative);

HG_EXTERN_C_END
#endif
