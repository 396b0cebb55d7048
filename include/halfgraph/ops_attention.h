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
	float dropout;  /**< the probability in [0, 1) that training drops a weight; default 0 */
} hg_attention_config;
/** The defaults of the fields. */
#define HG_ATTENTION_CONFIG_INIT                                                 \
	HG__INIT(hg_attention_config, HG__SET(score, HG_SCORE_ADD) HG__SET(heads, 1) \
	                                  HG__SET(slope, 0.2f) HG__SET(scale, 1.0f))

/** The operands of hg_attention. h heads; row i is a destination, row j a source. */
typedef struct hg_attention_operands {
	hg_var q; /**< of the destinations, [rows, h q]; q = 1 with ADD */
	hg_var k; /**< of the sources, [cols, h q], or HG_NONE */
	hg_var v; /**< the values that are added up, [cols, h d], or HG_NONE */
	hg_var c; /**< the vector [1, h q] of ADD_V2; beta of COSINE, [1, h] or [1, 1]; else HG_NONE */
	hg_var bias; /**< added to the scores, [m, h], or HG_NONE */
} hg_attention_operands;

/** Attention: aggregation whose weights are a softmax over the edges of each row.
 *
 *     Y[i,c] = sum over edges e = (i, j) of mask[e,k] p[e,k] V[j,c],  k the head of column c
 *     p[e,k] = w_e exp(s[e,k]) / sum over the edges f of row i of w_f exp(s[f,k])
 *
 * @param tape      the tape.
 * @param graph     G, borrowed.
 * @param operands  the operands.
 * @param config    the constants; NULL: the defaults.
 * @return Y. */
HG_API hg_var hg_attention(hg_tape *tape, hg_graph *graph, const hg_attention_operands *operands,
                           const hg_attention_config *config);

/** The weights p of hg_attention without dropout, for users who look at them; no gradient.
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
