/** @file
 * Ops on a graph: aggregation over neighbours, scores of edges, readout. The symbols and what every
 * op has in common (types, range, error, errors, ownership, threads) are at the top of ops.h.
 *
 * The graph G is a matrix A [rows, cols] with m stored edges (graph.h). Edge e = (i, j) is the e-th
 * entry in CSR order: row i is the destination, column j the source. Head k of a row of d columns
 * is its columns k d/h to (k + 1) d/h - 1. */
#ifndef HALFGRAPH_OPS_GRAPH_H
#define HALFGRAPH_OPS_GRAPH_H

#include "halfgraph/graph.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/** Aggregation over neighbours: a weighted, normalised sum.
 *
 *     Y[i,c] = alpha r_i * sum over edges e = (i, j) of w[e, head of c] s_j X[j,c]
 *
 * r and s come from `norm` (graph.h: hg_norm).
 *
 * Shapes    X [cols, d], w [m, h] with h dividing d, Y [rows, d].
 * Dtypes    X, w, Y: state. The sum runs in f32 and is scaled when the row is complete; or in f16,
 *           as hg_policy.accumulate says. On a graph stream that scatters it runs in 64-bit
 *           integers.
 * Range     max|Y| <= |alpha| N max|X| max|w|, N the largest sum of |r_i a_ij s_j| in a row, which
 *           hg_graph_facts_get returns. |alpha| max|X| S where the weights of a row are known to
 *           sum to S at most (1 after hg_edge_softmax). For WEIGHTED and WEIGHTED_MEAN N is
 *           measured when the op is recorded; WEIGHTED_MEAN has N = 1, up to rounding, where no
 *           weight is negative. Their factors may be above 1, and then sums in f16 are not proved.
 * Error     A sum of depth (row degree + 3), then narrowed. On a GPU, f16 with unit weights, where
 *           rows share many neighbours: 4 (row degree) + 3. BOTH and IN in f16, and WEIGHTED where
 *           no factor is above 1, add u16 |s_j X| per term. On a graph stream that scatters: depth
 *           8 for every degree, and |alpha| r_i D^2 2^-61 max|w| x more, with D the promised degree
 *           and x = 65504 in f16, max|X| in f32.
 * Gradient  dX[j,c] = alpha s_j * sum over edges e = (i, j) of w[e, head] r_i dY[i,c], the same
 *           kernel on the transpose;  dw[e,k] = alpha r_i s_j * sum over c in head k of
 *           dY[i,c] X[j,c].
 * Cost      m d + rows d elements, m h weights and the CSR arrays, 2 m d flops.
 * Errors    HG_ERR_SHAPE (rows(X) != cols(A), rows(w) != m, h does not divide d, or HG_NORM_IN or
 *           HG_NORM_WEIGHTED and A is not square), HG_ERR_ARG (no graph, unknown norm, alpha not
 *           finite; with HG_NORM_WEIGHTED or HG_NORM_WEIGHTED_MEAN also w, which replaces the
 *           weights that they are made of, and a node whose weighted degree is negative or has no
 *           factor in f32: the message names it), HG_ERR_UNSUPPORTED (these two norms and a graph
 *           whose arrays change: hg_graph_stream, and padded batches) and those of every op.
 * Source    Kipf, Welling 2017 (BOTH); Hamilton, Ying, Leskovec 2017 (RIGHT); HalfGNN 2024 (scaling
 *           one batch of the sum at a time).
 * @param tape         the tape.
 * @param graph        G, borrowed.
 * @param x            X.
 * @param edge_weight  w; HG_NONE: the graph's own weights, which are 1 where it has none.
 * @param norm         the degree normalisation.
 * @param alpha        a finite factor.
 * @return Y. */
HG_API hg_var hg_spmm(hg_tape *tape, hg_graph *graph, hg_var x, hg_var edge_weight, hg_norm norm,
                      float alpha);

/** Mean over neighbours; 0 for a row without edges. The same as hg_spmm with HG_NORM_RIGHT.
 *
 *     Y[i,:] = 1/d(i) * sum over edges e = (i, j) of a_ij X[j,:]
 *
 * Shapes    X [cols, d], Y [rows, d].
 * Range     max|Y| <= max|X| on every unweighted graph, so it is proved there.
 * Error     A sum of depth (row degree + 3), then narrowed.
 * Gradient  dX[j,:] = sum over edges (i, j) of a_ij dY[i,:] / d(i).
 * Cost      m d + rows d elements and the CSR arrays, 2 m d flops.
 * Errors    HG_ERR_SHAPE (rows(X) != cols(A)), HG_ERR_ARG (no graph) and those of every op.
 * Source    Hamilton, Ying, Leskovec 2017, MEAN aggregator.
 * @param tape   the tape.
 * @param graph  G, borrowed.
 * @param x      X.
 * @return Y. */
HG_API hg_var hg_spmm_mean(hg_tape *tape, hg_graph *graph, hg_var x);

/** Maximum over neighbours; 0 for a row without edges. A NaN among the neighbours gives NaN.
 *
 *     Y[i,c] = max over edges (i, j) of X[j,c]
 *
 * Shapes    X [cols, d], Y [rows, d]. The tape also keeps i32 [rows, d] for the backward pass.
 * Range     max|Y| <= max|X|, so it is proved for every graph.
 * Error     0.
 * Gradient  dY[i,c] goes to the first edge of row i that attains the maximum; sums run in f32.
 * Cost      m d + rows d elements, 4 rows d bytes and the CSR arrays, m d flops.
 * Errors    HG_ERR_SHAPE (rows(X) != cols(A)), HG_ERR_ARG (no graph) and those of every op.
 * Source    Hamilton, Ying, Leskovec 2017, pooling aggregator.
 * @param tape   the tape.
 * @param graph  G, borrowed.
 * @param x      X.
 * @return Y. */
HG_API hg_var hg_spmm_max(hg_tape *tape, hg_graph *graph, hg_var x);

/** Scores of edges as inner products, one per head.
 *
 *     E[e,k] = scale * sum over c in head k of A[i,c] B[j,c]        for edge e = (i, j)
 *
 * Shapes    A [rows, d], B [cols, d], heads divides d, E [m, heads].
 * Range     max|E| <= |scale| (d / heads) max|A| max|B|.
 * Error     A sum of depth d / heads + 1 (f16 on tensor cores: 5/2 d / heads + 1), then narrowed.
 * Gradient  dA[i,c] = scale * sum over edges e = (i, j) of dE[e, head] B[j,c],  dB the same with A
 *           on the transpose.
 * Cost      2 m d elements, m heads results and the CSR arrays, 2 m d flops.
 * Errors    HG_ERR_SHAPE (rows(A), rows(B) or the columns do not fit, or heads does not divide d),
 *           HG_ERR_ARG (no graph, heads < 1, scale not finite) and those of every op.
 * Source    Vaswani et al. 2017, on the edges of a graph.
 * @param tape   the tape.
 * @param graph  G, borrowed.
 * @param a,b    A (destinations) and B (sources).
 * @param heads  number of heads.
 * @param scale  a finite factor.
 * @return E. */
HG_API hg_var hg_sddmm_dot(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b, int heads,
                           float scale);

/** Scores of edges as sums of two numbers, one of each end.
 *
 *     E[e,k] = a[i,k] + b[j,k]        for edge e = (i, j)
 *
 * Shapes    a [rows, h], b [cols, h], E [m, h]. Without b: a [rows, 2 h] on a square graph, and its
 *           last h columns are b.
 * Range     max|E| <= max|a| + max|b|.
 * Error     One rounding.
 * Gradient  da[i,k] = sum over the edges of row i of dE[e,k],  db[j,k] = the same over column j.
 * Cost      3 m h elements and the CSR arrays, m h flops.
 * Errors    HG_ERR_SHAPE (rows or columns do not fit; without b: cols(a) is odd or the graph is not
 *           square), HG_ERR_ARG (no graph) and those of every op.
 * Source    Velickovic et al. 2018: the attention score of GAT.
 * @param tape   the tape.
 * @param graph  G, borrowed.
 * @param a      a.
 * @param b      b, or HG_NONE.
 * @return E. */
HG_API hg_var hg_sddmm_add(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b);

/** Scores of edges as a leaky rectifier of a sum, in one pass with one rounding.
 *
 *     E[e,k] = f(a[i,k] + b[j,k]),  f(x) = x where x > 0, else slope x        for edge e = (i, j)
 *
 * Shapes    As for hg_sddmm_add: a [rows, h], b [cols, h], E [m, h]; without b: a [rows, 2 h].
 * Range     max|E| <= max|a| + max|b|.
 * Error     One rounding.
 * Gradient  da[i,k] = sum over the edges of row i of f'(a[i,k] + b[j,k]) dE[e,k], db[j,k] = the
 *           same over column j; f'(0) = slope. f' is recomputed from a and b, so nothing is kept
 *           per edge.
 * Cost      3 m h elements and the CSR arrays, 2 m h flops.
 * Errors    HG_ERR_SHAPE (as for hg_sddmm_add), HG_ERR_ARG (no graph, slope outside [0, 1]) and
 *           those of every op.
 * Source    Velickovic et al. 2018.
 * @param tape   the tape.
 * @param graph  G, borrowed.
 * @param a      a.
 * @param b      b, or HG_NONE.
 * @param slope  in [0, 1].
 * @return E. */
HG_API hg_var hg_sddmm_add_leaky(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b, float slope);

/** Values of edges: those of one of their two nodes.
 *
 *     Z[e,:] = X[j,:] or X[i,:]        for edge e = (i, j): its source or its destination
 *
 * Shapes    X [cols, d] for sources, [rows, d] for destinations, Z [m, d].
 * Range     max|Z| <= max|X|, so it is proved for every graph.
 * Error     0.
 * Gradient  dX[k,:] = sum of dZ[e,:] over the edges e with that end k, in f32: hg_scatter.
 * Cost      2 m d elements and the CSR arrays, no flops. The tape may compute Z again in the
 *           backward pass instead of keeping it.
 * Errors    HG_ERR_SHAPE (rows(X) is not the number of columns or rows of G), HG_ERR_ARG (no graph,
 *           unknown end), HG_ERR_UNSUPPORTED (more than 2^31 - 1 edges) and those of every op.
 * Source    Gilmer et al. 2017: messages, which are functions of both nodes and of the edge.
 * @param tape   the tape.
 * @param graph  G, borrowed.
 * @param x      X.
 * @param end    which of the two nodes.
 * @return Z. */
HG_API hg_var hg_gather(hg_tape *tape, hg_graph *graph, hg_var x, hg_end end);

/** Values of nodes: the sum, the mean or the maximum over their edges. 0 for a node without edges;
 * a NaN among the values gives NaN. Weights of the graph are not applied.
 *
 *     Y[k,:] = sum, mean or maximum of Z[e,:] over the edges e with end k
 *
 * Shapes    Z [m, d], Y [rows, d] for destinations, [cols, d] for sources. HG_REDUCE_MAX also keeps
 *           i32 of Y's shape for the backward pass.
 * Dtypes    Z, Y: state. The sum runs in f32 and is scaled when the row is complete; or in f16, as
 *           hg_policy.accumulate says, where a mean is scaled batch by batch.
 * Range     max|Y| <= D max|Z| for the sum, where D is the largest number of edges of a node;
 *           max|Y| <= max|Z| for mean and maximum, so it is proved.
 * Error     A sum of depth (degree + 1), then narrowed; 0 for the maximum.
 * Gradient  dZ[e,:] = dY[k,:] (sum: hg_gather), dY[k,:] / degree of k (mean), or dY[k,c] for the
 *           first edge that attains the maximum of column c and 0 for the others.
 * Cost      m d + n d elements, rowptr and 4 m bytes; m d flops. The graph keeps 4 m bytes.
 * Errors    HG_ERR_SHAPE (rows(Z) != m), HG_ERR_ARG (no graph, unknown end or reduction),
 *           HG_ERR_UNSUPPORTED (more than 2^31 - 1 edges) and those of every op.
 * Source    Gilmer et al. 2017.
 * @param tape    the tape.
 * @param graph   G, borrowed.
 * @param z       Z.
 * @param end     which of the two nodes receives the value of an edge.
 * @param reduce  the reduction.
 * @return Y. */
HG_API hg_var hg_scatter(hg_tape *tape, hg_graph *graph, hg_var z, hg_end end, hg_reduce reduce);

/** Softmax over the edges of each row, per head.
 *
 *     P[e,k] = exp(E[e,k] - M[i,k]) / sum over edges f of row i of exp(E[f,k] - M[i,k]),
 *     M[i,k] = max over the edges of row i of E
 *
 * Shapes    E, P [m, h].
 * Range     0 <= P <= 1, proved for every E.
 * Error     gamma_{D+4}(u32) P with D the row degree, then narrowed.
 * Gradient  dE = P (dP - sum over the row of P dP), from the stored P.
 * Cost      3 m h elements and rowptr, 5 m h flops.
 * Errors    HG_ERR_SHAPE (rows(E) != m), HG_ERR_ARG (no graph) and those of every op.
 * Source    Velickovic et al. 2018.
 * @param tape   the tape.
 * @param graph  G, borrowed.
 * @param e      E.
 * @return P. */
HG_API hg_var hg_edge_softmax(hg_tape *tape, hg_graph *graph, hg_var e);

/** Readout: one row per graph of a batch (hg_graph_set_batch); 0 for an empty graph.
 *
 *     Y[g,c] = sum, mean or maximum over the nodes i of graph g of X[i,c]
 *
 * Shapes    X [n, d], Y [graphs, d]. HG_REDUCE_MAX also keeps i32 [graphs, d] for the backward
 *           pass.
 * Range     max|Y| <= max|X| for mean and maximum, so it is proved; s max|X| for the sum, s the
 *           number of nodes of the largest graph.
 * Error     A sum of depth s (mean: s + 1), then narrowed; 0 for the maximum.
 * Gradient  dX[i,c] = dY[g,c] (sum), dY[g,c] / nodes of g (mean), or dY[g,c] for the first node
 *           that attains the maximum and 0 for the others.
 * Cost      n d + graphs d elements, n d flops.
 * Errors    HG_ERR_SHAPE (rows(X) != n), HG_ERR_ARG (no graph, unknown reduction) and those of
 *           every op.
 * Source    Xu, Hu, Leskovec, Jegelka 2019.
 * @param tape    the tape.
 * @param graph   a square graph, borrowed; without a batch it counts as one graph.
 * @param x       X.
 * @param reduce  the reduction.
 * @return Y. */
HG_API hg_var hg_readout(hg_tape *tape, hg_graph *graph, hg_var x, hg_reduce reduce);

HG_EXTERN_C_END
#endif
