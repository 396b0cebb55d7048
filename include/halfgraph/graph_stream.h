/** @file
 * Graphs that are refilled: room for a number of nodes and edges is taken once, and then any number
 * of edge lists take each other's place in it. They may come from a sampler, from mini-batches or
 * from a kernel. A tape that was recorded on such a graph, and a step that was captured, serve all
 * of them.
 *
 *     hg_graph_stream_config config = HG_GRAPH_STREAM_CONFIG_INIT;     room, and what is promised
 *     hg_graph_stream_create, hg_graph_stream_free
 *     hg_graph_stream_graph(stream)                the graph, for hg_spmm and the like
 *     hg_graph_stream_refill(stream, nodes, edges, dst, src, weight)   before every step
 *     hg_graph_stream_check(stream)                whether the list kept the promises
 *
 * The graph has R = hg_graph_rows rows, of which the first `nodes` are the nodes of the list. The
 * others are padding: each has edges to itself alone, at most max_degree of them and of weight 0,
 * so that the number of edges is always the same. Give these rows finite features, such as 0: they
 * reach no node. On a tape whose matrices have them as rows, batch norm, readouts and losses count
 * the nodes of the list in place alone, a number that is read on the device.
 *
 * Proofs rest on what is promised and not on the list (hg_graph_facts). A list that breaks a
 * promise is found on the device: the training step on it is skipped, as if it had overflowed, and
 * hg_graph_stream_check names the edge or node. Nothing is read or written outside the room.
 * HG_NORM_WEIGHTED and HG_NORM_WEIGHTED_MEAN are refused (HG_ERR_UNSUPPORTED), as no promise bounds
 * their factors.
 *
 * How sums over neighbours run is chosen by `aggregation`:
 *
 *     GATHER   Each list is sorted into rows, and each row gathers its neighbours. All ops run.
 *     SCATTER  Lists stay as they are, and each edge adds its term to the sum of its row. hg_spmm
 *              runs, with what follows it, and hg_readout. Ops that need the edges of a row beside
 *              each other (attention, softmax over edges, hg_spmm_max, values of edges from nodes)
 *              fail when they are recorded (HG_ERR_UNSUPPORTED). Edges are numbered as in the
 *              list, then self loops, then padding, so edge weights of hg_spmm are in this order.
 *
 * Equation  GATHER: rows in order of dst, then src, then the place in the list: the same graph, to
 *           the last bit, as hg_graph_from_coo makes of the list with its padding, where a list
 *           keeps the promises.  SCATTER: the same graph. Sums are of whole numbers, so results
 *           have the same bits in every run and for every order of the list
 * Cost      on the device: GATHER, a sort of the edges by (dst, src) and one by (src, dst), of each
 *           row by itself where lists are small and rows short. Memory for E edges on a GPU: 20 E
 *           and 36 R bytes, and 16 E and 8 R of scratch memory, or 24 E and more where all edges
 *           are sorted together.  SCATTER, one pass over the edges: 16 E and 28 R bytes in all,
 *           and 8.25 bytes of workspace for each element of the widest sum
 * Owner     The stream owns the graph. Tapes on it go first.
 * Threads   One thread at a time per context.
 * Source    Chen et al., fuseGNN, ICCAD 2020 (graphs that are converted in every step, and both
 *           ways to sum: GAR and GAS). */
#ifndef HALFGRAPH_GRAPH_STREAM_H
#define HALFGRAPH_GRAPH_STREAM_H

#include "halfgraph/graph.h"

HG_EXTERN_C_BEGIN

/** A graph that is refilled. */
typedef struct hg_graph_stream hg_graph_stream;

/** How sums over neighbours run (see above). */
typedef enum hg_aggregation {
	HG_AGGREGATION_GATHER = 0,  /**< rows gather; every op runs. The default */
	HG_AGGREGATION_SCATTER = 1, /**< edges scatter; lists need no conversion */
	/** the one of the two that takes less time for `uses` sums of `width` columns on each list, by
	 * what `hg-bench convert` has measured */
	HG_AGGREGATION_AUTO = 2
} hg_aggregation;

/** Room and promises. Start from HG_GRAPH_STREAM_CONFIG_INIT. */
typedef struct hg_graph_stream_config {
	size_t size;
	int64_t nodes; /**< the most nodes of a list, at least 1 */
	int64_t edges; /**< the most edges of a list, at least 0 */
	/** promise: no node has more edges, in or out, with those that self_loops adds; at least 1,
	 * default 1,024. A row is summed as one piece, so it should not be much above the average */
	int64_t max_degree;
	int self_loops; /**< 1: each node of the list gets an edge to itself, of weight 1 */
	int weighted;   /**< 1: lists have weights */
	/** promise: no |weight| is larger; in (0, 65504], at least 1 with self_loops; default 1 */
	float max_weight;
	/** for AUTO: sums over neighbours that run on each list, at least 1. A layer has one forward,
	 * and one backward if it trains. (64 bits, so that it does not lie where programs that were
	 * compiled before it have padding) */
	int64_t uses;
	int64_t width; /**< for AUTO: columns of these sums, on average; at least 1 */
	/** how sums run. 0 is GATHER, and not AUTO, since under SCATTER not every op runs */
	hg_aggregation aggregation;
} hg_graph_stream_config;
/** The defaults of the fields. */
#define HG_GRAPH_STREAM_CONFIG_INIT  \
	HG__INIT(hg_graph_stream_config, \
	         HG__SET(nodes, 1) HG__SET(max_degree, 1024) HG__SET(max_weight, 1.0f))

/** Creates a stream with an empty graph in place: all rows are padding.
 * @param context  the context.
 * @param config   room and promises.
 * @param stream   receives the stream, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, a size is not set, or a field is outside its
 *         range); HG_ERR_UNSUPPORTED (rows or edges with padding do not fit 31 bits);
 *         HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_stream_create(hg_context *context,
                                                     const hg_graph_stream_config *config,
                                                     hg_graph_stream **stream);

/** Frees a stream and its graph.
 * @param stream  a stream or NULL. */
HG_API void hg_graph_stream_free(hg_graph_stream *stream);

/** The graph of a stream. Its rows and edges are those of the room.
 * @param stream  a stream or NULL.
 * @return the graph, borrowed; NULL for NULL. */
HG_API hg_graph *hg_graph_stream_graph(const hg_graph_stream *stream);

/** How sums on a stream run: what AUTO has chosen, or the choice of the config.
 * @param stream  a stream or NULL.
 * @return HG_AGGREGATION_GATHER or HG_AGGREGATION_SCATTER; GATHER for NULL. */
HG_API hg_aggregation hg_graph_stream_aggregation(const hg_graph_stream *stream);

/** Puts a list of edges in the place of the one before. The lists have been read when the call
 * returns; the conversion is only queued.
 *
 * @param stream  the stream.
 * @param nodes   nodes of the list, 0 to config.nodes.
 * @param edges   edges of the list, 0 to config.edges.
 * @param dst     host [edges]: destinations, 0 to nodes - 1.
 * @param src     host [edges]: sources, likewise.
 * @param weight  host [edges]: weights; NULL if the stream has none.
 * @return HG_OK; HG_ERR_ARG (stream is NULL, nodes or edges exceed the room, a list is missing, or
 *         weights are given to a stream without or are missing in one with them); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. After a failure the graph before is in place. */
HG_API HG_NODISCARD hg_status hg_graph_stream_refill(hg_graph_stream *stream, int64_t nodes,
                                                     int64_t edges, const int32_t *dst,
                                                     const int32_t *src, const float *weight);

/** Where the list lies in device memory, for a kernel that writes it itself. */
typedef struct hg_graph_stream_list {
	size_t size;
	int64_t *live; /**< device [2]: nodes and edges of the list */
	int32_t *dst;  /**< device [config.edges] */
	int32_t *src;  /**< device [config.edges] */
	float *weight; /**< device [config.edges]; NULL if the stream has no weights */
} hg_graph_stream_list;
/** An empty hg_graph_stream_list with its size set. */
#define HG_GRAPH_STREAM_LIST_INIT HG__INIT_ZERO(hg_graph_stream_list)

/** Reads where the list lies. What writes it must run on the context's stream, or have finished,
 * before hg_graph_stream_convert.
 * @param stream  the stream.
 * @param list    receives the addresses, which stay until the stream is freed; start from
 *                HG_GRAPH_STREAM_LIST_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or list's size is not set). */
HG_API HG_NODISCARD hg_status hg_graph_stream_list_get(const hg_graph_stream *stream,
                                                       hg_graph_stream_list *list);

/** Makes the graph of the list that lies in device memory. The conversion is only queued. On a GPU
 * it is captured by the second call and then launched as a whole.
 * @param stream  the stream.
 * @return HG_OK; HG_ERR_ARG (stream is NULL); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_stream_convert(hg_graph_stream *stream);

/** Waits for the device, and says whether the list in place keeps the promises.
 * @param stream  the stream.
 * @return HG_OK; HG_ERR_ARG with a message that names the first edge or node of the list that does
 *         not, and what was promised (or stream is NULL); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_stream_check(hg_graph_stream *stream);

HG_EXTERN_C_END
#endif
