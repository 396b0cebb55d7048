/** @file
 * Mini-batches: a dataset of many graphs in host memory, an order of them for every epoch, and
 * batches of them on the device. A batch is a block-diagonal graph with the features of its nodes
 * and what belongs to each of its graphs, such as labels.
 *
 *     hg_batches_config config = HG_BATCHES_CONFIG_INIT;      graph, features, labels, masks
 *     hg_batches_create, hg_batches_free
 *     hg_batches_load(batches, epoch, k, &batch)              batch k of an epoch
 *
 * hg_train uses them if hg_train_config.batch_graphs is set; a program with a loop of its own
 * records its tapes on hg_batch.input.
 *
 * A batch is known to have the facts of the whole dataset (its largest degree, its largest sums:
 * hg_graph_facts), so what is proved of one batch is proved of all.
 *
 * Owner     Batches copy what they need of graph, features and rows, and own the batch in place.
 *           Tensors in host memory (hg_tensor_create_on_host) are not copied but held: they stay
 *           until the batches are freed, and must not change.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_BATCHES_H
#define HALFGRAPH_BATCHES_H

#include "halfgraph/model.h"

HG_EXTERN_C_BEGIN

/** Batches of a dataset. */
typedef struct hg_batches hg_batches;

/** Number of tensors with a row for each graph. */
#define HG_BATCH_ROWS 4

/** The epoch in which the graphs have the order of their numbers. */
#define HG_BATCHES_IN_ORDER (-1)

/** What batches are made of. Start from HG_BATCHES_CONFIG_INIT. */
typedef struct hg_batches_config {
	size_t size;
	/** the graph, of G graphs (hg_graph_set_batch; G = 1 without a batch), features and, if there
	 * are any, attributes of edges; read by hg_batches_create */
	hg_model_input input;
	/** tensors [G, any] of any type that give each batch the rows of its graphs: labels, targets,
	 * masks; NULL: none. Read by hg_batches_create */
	const hg_tensor *row[HG_BATCH_ROWS];
	const uint8_t *chosen; /**< host [G], not 0: takes part; NULL: all do. Copied */
	int64_t graphs;        /**< graphs of a batch, at least 1; the last batch may have fewer */
	uint64_t seed;         /**< of the orders */
} hg_batches_config;
/** An empty hg_batches_config with its sizes set. */
#define HG_BATCHES_CONFIG_INIT                                              \
	HG__INIT(hg_batches_config, HG__SET(input.size, sizeof(hg_model_input)) \
	                                HG__SET(input.x_amax, -1.0) HG__SET(input.edge_amax, -1.0))

/** One batch: graphs k_0, k_1, .. of the dataset, in this order. */
typedef struct hg_batch {
	size_t size;
	/** a block-diagonal graph that is a batch of `graphs` graphs, with features and attributes of
	 * edges of the types of the dataset's; x_amax and edge_amax are those of the dataset. All of it
	 * is borrowed */
	hg_model_input input;
	const hg_tensor *row[HG_BATCH_ROWS]; /**< row j is that of graph k_j; borrowed */
	const int64_t *graph;                /**< host [graphs]: k_0, k_1, ..; borrowed */
	int64_t graphs;                      /**< number of graphs, at least 1 */
} hg_batch;
/** An empty hg_batch with its size set. */
#define HG_BATCH_INIT HG__INIT_ZERO(hg_batch)

/** Creates batches.
 *
 * Cost      Host memory: a copy of graph, features, attributes of edges and rows, but not of
 *           tensors that are there already.
 * @param context  the context.
 * @param config   what to make them of.
 * @param batches  receives the batches, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, a size is not set, `graphs` is below 1, no graph is
 *         chosen, or graph, features or rows are missing or of another context); HG_ERR_SHAPE
 *         (the graph is not square, features do not have a row for each node, edge_x none
 *         for each edge, or a tensor of `row` none for each graph); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_batches_create(hg_context *context,
                                                const hg_batches_config *config,
                                                hg_batches **batches);

/** Frees batches and the batch in place. Tapes that were recorded on it go first.
 * @param batches  batches or NULL. */
HG_API void hg_batches_free(hg_batches *batches);

/** Number of graphs that take part.
 * @param batches  batches or NULL.
 * @return the number, at least 1; 0 for NULL. */
HG_API int64_t hg_batches_graphs(const hg_batches *batches);

/** Number of batches in an epoch.
 * @param batches  batches or NULL.
 * @return graphs that take part / graphs of a batch, rounded up; 0 for NULL. */
HG_API int64_t hg_batches_count(const hg_batches *batches);

/** The order of an epoch: a shuffle (Fisher and Yates) with counter-based random numbers, a
 * function of seed and epoch alone. Batch k has graphs k b to (k + 1) b - 1 of it, where b is
 * hg_batches_config.graphs. The shuffle decides which graphs a batch has. If none of them has more
 * than 384 nodes, they stand in an order in which groups of neighbours have nearly 48 nodes
 * together, or nearly 384 behind a graph of more than 48, for kernels that compute several layers
 * of such a group at once.
 * @param batches  the batches.
 * @param epoch    at least 0, or HG_BATCHES_IN_ORDER.
 * @param order    host [hg_batches_graphs], receives numbers of graphs of the dataset.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or there is no such epoch). */
HG_API HG_NODISCARD hg_status hg_batches_order(const hg_batches *batches, int64_t epoch,
                                               int64_t *order);

/** Makes a batch. The batch that was in place is freed, so tapes that were recorded on it go first.
 * The same seed, epoch and k give the same bits.
 *
 * Cost      Reading and copying the batch, O(its nodes, edges and features).
 * @param batches  the batches.
 * @param epoch    at least 0, or HG_BATCHES_IN_ORDER.
 * @param k        0 to hg_batches_count - 1.
 * @param batch    receives it, start from HG_BATCH_INIT. It is valid until the next call or
 *                 hg_batches_free.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, batch's size is not set, or there is no such epoch
 *         or batch); HG_ERR_NOMEM; HG_ERR_DEVICE. After a failure no batch is in place. */
HG_API HG_NODISCARD hg_status hg_batches_load(hg_batches *batches, int64_t epoch, int64_t k,
                                              hg_batch *batch);

HG_EXTERN_C_END
#endif
