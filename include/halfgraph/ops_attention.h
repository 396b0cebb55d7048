/** @file
 * Attention over the neighbours of each node. The symbols and what every op has in common (types,
 * range, error, errors, ownership, threads) are at the top of ops.h, those of graphs at the top of
 * ops_graph.h. */
#ifndef HALFGRAPH_OPS_ATTENTION_H
#define HALFGRAPH_OPS_ATTENTION_H

#include <stddef.h>

#include "halfgraph/graph.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/** How the score of an edge (i, j) and a head is computed. f(x) = x where x > 0, else slope x. */
typedef enum hg_score {
	HG_SCORE_ADD = 0,    /**< f(q_i + k_j), one number a node and head (GAT) */
	HG_SCORE_DOT = 1,    /**< scale <Q_i, K_j> (graph transformer) */
	HG_SCORE_COSINE = 2, /**< beta <Q_i, K_j> / (|Q_i| |K_j|) (AGNN) */
	HG_SCORE_ADD_V2 = 3, /**< <c, f(Q_i + K_j)> (GATv2) */
	HG_SCORE_COUNT = 4   /**< the number of scores */
} hg_score;

/** The most heads that attention has. */
#define HG_ATTENTION_HEADS 16

/** Constants of hg_attention. */
typedef struct hg_attention_config {
	size_t size;    /**< sizeof(hg_attention_config) */
	hg_score score; /**< how scores are computed; default HG_SCORE_ADD */
	int heads;      /**< 1 (default) to HG_ATTENTION_HEADS */
	float slope;    /**< of f in ADD and ADD_V2, in [0, 1]; default 0.2 */
	float scale;    /**< of DOT, finite; default 1 */
	/** 1: an edge counts as often as its weight in the graph says, a number >= 0; 0 (default):
	 * once, whatever its weight */
	int weighted;
	/** the probability in [0, 1 - 2^-17) that training drops a weight; default 0 */
	float dropout;
} hg_attention_config;
/** The defaults of the fields. */
#define HG_ATTENTION_CONFIG_INIT                                                 \
	HG__INIT(hg_attention_config, HG__SET(score, HG_SCORE_ADD) HG__SET(heads, 1) \
	                                  HG__SET(slope, 0.2f) HG__SET(scale, 1.0f))

/** The operands of hg_attention. h heads; row i is a destination, row j a source.
 *
 * Members that are not needed are HG_NONE. Q, K and V may then be columns of one operand, which a
 * single hg_linear can make, or be the same:
 *
 *     ADD      without k: q [n, 2 h] is Q|K. v is needed.
 *     DOT      without k: q [n, 2 h q] is Q|K. Without k and v: q [n, 3 h q] is Q|K|V.
 *              Without v alone: V = K.
 *     COSINE   without k: K = Q. Without v: V = K.
 *     ADD_V2   without k: q [n, 2 h q] is Q|K. Without v: V = K.
 *
 * Where q holds K, the graph is square. An operand's gradient is the sum over what it is used as.
 */
typedef struct hg_attention_operands {
	hg_var q; /**< Q, of the destinations, [rows, h q]: q columns a head, 1 with ADD */
	hg_var k; /**< K, of the sources, [cols, h q], or HG_NONE */
	hg_var v; /**< V, the values that are added up, [cols, h d], or HG_NONE */
	hg_var c; /**< the vector [1, h q] of ADD_V2; beta of COSINE, [1, h] or [1, 1]; else HG_NONE */
	hg_var bias; /**< added to the scores, [m, h], or HG_NONE */
} hg_attention_operands;

/** Attention: aggregation whose weights are a softmax over the edges of each row.
 *
 *     Y[i,c] = sum over edges e = (i, j) of mask[e,k] p[e,k] V[j,c],  k the head of column c
 *     p[e,k] = w_e exp(s[e,k]) / sum over the edges f of row i of w_f exp(s[f,k])
 *
 * The mask is 0 or 1 / (1 - dropout), and 1 without dropout and on an EVAL tape; dropout is rounded
 * to a multiple of 2^-16. The mask depends on the step, the two nodes and the head, so duplicates
 * of an edge share it. w_e says how often the edge counts: its weight in the graph if
 * config->weighted is set and the graph has weights, otherwise 1. Y is 0 for a row without edges
 * that count. f'(0) = slope.
 *
 * An edge with score -inf has p = 0, and a row of which every score is -inf counts as a row without
 * edges. Another score that is not finite gives NaN in the row. Where an element of V is not
 * finite, that column of Y may be infinite or NaN for all neighbours, even if p is 0.
 *
 * Shapes    q [rows, h q], k [cols, h q], v [cols, h d], c [1, h q] or [1, h] or [1, 1], bias
 *           [m, h], Y [rows, h d]; hg_attention_operands says what may be absent. The tape keeps
 *           Y and f32 [rows, h] for the backward pass; with ADD [rows, 2 h], and state [rows, h d].
 *           hg_head_mean, hg_bias_add, an activation (relu, leaky_relu, elu) and hg_dropout
 *           behind it become one op with it.
 * Dtypes    q, k, v, bias, Y: state. c: f32 (HG_PARAM_F32). Scores and weights are f32.
 * Range     max|Y| <= max|V| / (1 - dropout), proved for all scores that are finite in f32.
 * Error     (exp(2 E) - 1 + gamma_{2D+32}(u32)) sum of mask p |V|, then narrowed, with D the row
 *           degree and E the largest error of a score of the row and of its difference from their
 *           maximum. Where ADD or DOT multiplies halves, p may be narrowed, and so is the sum that
 *           divides it (Y stays a mean of V), which adds 2^-10 sum of mask p |V| and 2^-35 D
 *           max|V| / (1 - dropout).
 * Gradient  dV[j,c] = sum over edges (i, j) of mask p dY[i,c]. That of a score is
 *           ds = p (mask <dY_i, V_j> - <dY_i, Y_i>) over head k; q, k, c and bias receive the sums
 *           of ds times the derivatives of the scores. Where p, or with DOT ds, multiplies vectors
 *           of halves, it may be narrowed first, which adds 2^-11 of each term to the error.
 * Cost      (m + rows) h (q + d) elements, m h of a bias, 4 rows h bytes and the CSR arrays,
 *           2 m h (q + d) flops.
 * Errors    HG_ERR_SHAPE (the operands do not fit the graph or each other, or heads does not divide
 *           their columns), HG_ERR_DTYPE (c is not f32), HG_ERR_ARG (no graph, a graph with a
 *           negative weight, an operand missing or not of this score, a constant outside its
 *           range, operands is NULL, or config's size is not set) and those of every op.
 * Source    Velickovic et al. 2018 (ADD); Dwivedi, Bresson 2021 (DOT); Thekumparampil et al. 2018
 *           (COSINE); Brody, Alon, Yahav 2022 (ADD_V2); Dao et al. 2022 (nothing kept for an edge).
 * @param tape      the tape.
 * @param graph     G, borrowed.
 * @param operands  the operands; read during the call.
 * @param config    the constants; NULL: the defaults.
 * @return Y. */
HG_API hg_var hg_attention(hg_tape *tape, hg_graph *graph, const hg_attention_operands *operands,
                           const hg_attention_config *config);

/** The weights p of hg_attention without dropout, for users who look at them.
 *
 *     P[e,k] = w_e exp(s[e,k]) / sum over the edges f of row i of w_f exp(s[f,k])
 *
 * Shapes    q [rows, h q], k [cols, h q], P [m, h].
 * Range     0 <= P <= 1, proved for all scores that are finite in f32.
 * Error     (exp(2 E) - 1 + gamma_{2D+32}(u32)) P, then narrowed, with D and E as in hg_attention.
 * Gradient  None.
 * Cost      2 m h q elements, m h results and the CSR arrays twice, 4 m h q flops.
 * Errors    Those of hg_attention.
 * Source    As hg_attention.
 * @param tape      the tape.
 * @param graph     G, borrowed.
 * @param operands  the operands; v is not read.
 * @param config    the constants; NULL: the defaults.
 * @return P [m, h]. */
HG_API hg_var hg_attention_weights(hg_tape *tape, hg_graph *graph,
                                   const hg_attention_operands *operands,
                                   const hg_attention_config *config);

HG_EXTERN_C_END
#endif
