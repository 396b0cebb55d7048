/** @file
 * Datasets: read from HDF5 files (data/FORMAT.md) and written to them, imported from other formats,
 * made, and transformed. A dataset lives in host memory and needs no context and no device;
 * upload.h takes it to one.
 *
 * Owner     All arrays of a dataset are allocated with malloc and owned by it; hg_dataset_free
 *           frees them.
 * Threads   Functions on different datasets are independent. Files: as file.h says.
 * Errors    `message` is as in file.h. */
#ifndef HALFGRAPH_DATASET_H
#define HALFGRAPH_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/dtype.h"
#include "halfgraph/file.h"
#include "halfgraph/order.h"
#include "halfgraph/progress.h"

HG_EXTERN_C_BEGIN

/** A dataset: what one HDF5 file holds and every importer makes. NULL where a part is absent. A
 * program may fill one itself (arrays from malloc) and then call hg_dataset_check. */
typedef struct hg_dataset {
	char *name;         /**< its name */
	int64_t nodes;      /**< n */
	int64_t edges;      /**< m, directed */
	int64_t graphs;     /**< number of graphs of a batch; 1 where there is none */
	int64_t *rowptr;    /**< [nodes + 1], row = destination */
	int32_t *col;       /**< [edges], sources */
	float *weight;      /**< [edges], or NULL: all 1 */
	int64_t *graph_ptr; /**< [graphs + 1]: nodes of each graph of a batch, or NULL */

	int64_t features;     /**< columns of the features */
	hg_dtype feat_dtype;  /**< type of feat: HG_F16 or HG_F32 */
	void *feat;           /**< dense features [nodes, features], or NULL */
	int64_t *feat_rowptr; /**< sparse features [nodes + 1], or NULL */
	int32_t *feat_col;    /**< sparse features [feat_rowptr[nodes]], or NULL */
	float *feat_value;    /**< sparse features [feat_rowptr[nodes]], or NULL: all 1 */
	double feat_amax;     /**< max |x| of the features */

	int32_t classes;     /**< number of classes */
	int32_t *label;      /**< [nodes], or [graphs] with graph_ptr; below 0: unlabelled; or NULL */
	uint8_t *train_mask; /**< as long as label, or NULL */
	uint8_t *val_mask;   /**< as long as label, or NULL */
	uint8_t *test_mask;  /**< as long as label, or NULL */
	int64_t *orig_id;    /**< [nodes]: the user's own node numbers, or NULL: the same */
	int32_t *order;      /**< [nodes]: the number each node had before reordering, or NULL: none */
	int64_t targets;     /**< columns of target */
	float *target;       /**< [rows of label, targets] real targets; NaN: missing; or NULL */

	int64_t edge_features; /**< columns of edge_feat */
	float *edge_feat;      /**< [edges, edge_features] attributes, in the order of col; or NULL */
	int32_t edge_classes;  /**< number of labels that edges can have, such as types of bonds */
	int32_t *edge_label;   /**< [edges] in [0, edge_classes); below 0: none; or NULL */

	int32_t folds; /**< number of folds for cross-validation; 0: it has none */
	/** [rows of label] in [0, folds), no fold empty; below 0: in none, it always trains; or NULL */
	int32_t *fold;

	/** names of the columns of target, one a line ("logp\nsa"); or NULL: they have none */
	char *target_names;
	/** [features]: the mean that hg_dataset_standardize subtracted from each column; or NULL */
	double *feat_mean;
	/** [features]: the deviation by which it divided; 0: the column became 0. NULL: as feat_mean */
	double *feat_deviation;

	/** the names of the classes, UTF-8, one after the other, each with its terminating 0
	 * (hg_dataset_class_name); or NULL: they have numbers only */
	char *class_name;
	int64_t class_name_bytes; /**< of class_name */

	/** the texts by which the source knows the nodes, in the order of the nodes, one after the
	 * other, each with its terminating 0 (hg_dataset_node_name); or NULL: it has numbers */
	char *node_name;
	int64_t node_name_bytes; /**< of node_name */
} hg_dataset;

/** Creates an empty dataset.
 * @param dataset  receives the dataset, owned by the caller.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_new(hg_dataset **dataset, char *message);

/** Frees a dataset with its arrays.
 * @param dataset  a dataset or NULL. */
HG_API void hg_dataset_free(hg_dataset *dataset);

/** Checks everything that must hold of a dataset before it is used: pointers, ids, finite features
 * (within f16 if they are f16), attributes and labels of edges, labels, disjoint splits.
 * @param dataset  the dataset.
 * @param origin   what messages call it, such as a file name.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_FORMAT (something does not hold);
 *         HG_ERR_RANGE (a feature or an attribute of an edge does not fit its type); HG_ERR_DTYPE
 *         (features neither f16 nor f32); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_check(const hg_dataset *dataset, const char *origin,
                                               char *message);

/** Gives the classes names, or takes them away.
 * @param dataset  the dataset; unchanged on failure.
 * @param names    [count] UTF-8, copied; bytes that are no UTF-8 become '?'.
 * @param count    as many as there are classes; 0: none.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or another count than classes); HG_ERR_FORMAT (more
 *         than 16 MiB); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_name_classes(hg_dataset *dataset, const char *const *names,
                                                      int32_t count, char *message);

/** The name of a class.
 *
 * Cost      Linear in the number of classes.
 * @param dataset  the dataset or NULL.
 * @param c        the class.
 * @return its name, borrowed; NULL where it has none. */
HG_API const char *hg_dataset_class_name(const hg_dataset *dataset, int64_t c);

/** Reads an HDF5 file and checks everything in it.
 * @param path     the file.
 * @param dataset  receives the dataset, owned by the caller.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_IO (it cannot be read, or changed while it
 *         was read); HG_ERR_FORMAT (it is not a dataset, or damaged); HG_ERR_RANGE (a number does
 *         not fit its type); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_read(const char *path, hg_dataset **dataset,
                                              char *message);

/** Checks a dataset and writes it as an HDF5 file, atomically (hg_file_write).
 * @param dataset  the dataset.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_IO (it cannot be written); the errors of
 *         hg_dataset_check; HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_write(const hg_dataset *dataset, const char *path,
                                               char *message);

/** Writes as hg_dataset_write, and reports progress.
 * @param dataset   the dataset.
 * @param path      the file.
 * @param progress  the watcher, or NULL.
 * @param message   receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_STATE (the watcher asked to stop); the errors of hg_dataset_write. */
HG_API HG_NODISCARD hg_status hg_dataset_write_watched(const hg_dataset *dataset, const char *path,
                                                       const hg_progress *progress, char *message);

/** Checks a dataset and writes it as a numpy archive (.npz, data/FORMAT.md), atomically: the keys
 * of gnn-benchmark and what else the dataset has. `numpy.load` opens it without pickle, and
 * importing it gives the same dataset, bit for bit.
 * @param dataset   the dataset.
 * @param path      the file.
 * @param progress  the watcher, or NULL.
 * @param message   receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_STATE (the watcher asked to stop); the errors of hg_dataset_write. */
HG_API HG_NODISCARD hg_status hg_dataset_write_npz(const hg_dataset *dataset, const char *path,
                                                   const hg_progress *progress, char *message);

/** Is the first line of an edge list a header that counts what follows ("nodes edges")? */
typedef enum hg_header {
	/** it is where its numbers are the counts and cannot be an edge; HG_ERR_FORMAT, with both
	 * readings, where it may be either */
	HG_HEADER_AUTO = 0,
	HG_HEADER_YES = 1, /**< it is, and its counts must fit; a line of words is skipped */
	HG_HEADER_NO = 2   /**< it is an edge */
} hg_header;

/** How an import is done. */
typedef struct hg_import_config {
	size_t size;
	hg_header header;            /**< of edge lists; default HG_HEADER_AUTO */
	const hg_progress *progress; /**< the watcher, or NULL (default) */
	/** receives, as sentences, what was decided for the user and what the dataset leaves out: a
	 * header, duplicate edges, unread files; or NULL (default) */
	void (*note)(void *user, const char *sentence);
	void *user;    /**< passed to note */
	int64_t fold;  /**< the fold to take, from 0, of a set that comes with `folds` folds (gin):
	                * its test set is the test set, that of the next fold validates */
	int64_t folds; /**< default 0: no fold is taken */
} hg_import_config;
/** The defaults of the fields. */
#define HG_IMPORT_CONFIG_INIT HG__INIT(hg_import_config, HG__SET(header, HG_HEADER_AUTO))

/** An importer of one source format. */
typedef struct hg_importer {
	const char *name; /**< "npz" */
	const char *help; /**< one line */
	/** endings of its files, separated by spaces; one with a * is a pattern of their whole names
	 * (fnmatch) */
	const char *endings;
	int inputs; /**< files it takes: exactly 1, or 0 for one or more */
	/** Imports paths [count] into a new dataset, owned by the caller; config NULL:
	 * HG_IMPORT_CONFIG_INIT. Returns HG_OK; HG_ERR_ARG; HG_ERR_IO (a file cannot be read, or
	 * changed while it was read); HG_ERR_FORMAT (it is not of this format, the message names the
	 * place); HG_ERR_RANGE (a number does not fit its type); HG_ERR_STATE (the watcher asked to
	 * stop); HG_ERR_NOMEM. */
	hg_status (*import)(const char *const *paths, int count, const hg_import_config *config,
	                    hg_dataset **dataset, char *message);
} hg_importer;

/** The table of importers.
 * @param count  receives the number of importers; may be NULL.
 * @return a constant array. */
HG_API const hg_importer *hg_importers(size_t *count);

/** Recognises the format of an input: of a folder or zip archive by the files in it, of a file by
 * its first bytes and its name.
 * @param path      a file or folder.
 * @param importer  receives its importer.
 * @param message   receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_FORMAT (it is of no known format, or may be
 *         of several); HG_ERR_IO (a folder cannot be read); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_import_recognise(const char *path, const hg_importer **importer,
                                                  char *message);

/** A synthetic dataset: planted communities with power-law degrees, and hubs. The features of a
 * node are the centroid of its class plus noise, times scale. */
typedef struct hg_planted_config {
	size_t size;
	int64_t nodes;               /**< default 10000 */
	int64_t features;            /**< columns of the features; default 64 */
	int64_t hubs;                /**< nodes with about hub_degree neighbours; default 8 */
	int32_t classes;             /**< communities; default 8 */
	double degree;               /**< mean degree without the hubs; default 10 */
	double hub_degree;           /**< default 4000 */
	double scale;                /**< factor on the features; default 1 */
	uint64_t seed;               /**< default 0 */
	const hg_progress *progress; /**< the watcher, or NULL (default) */
} hg_planted_config;
/** The defaults of the fields. */
#define HG_PLANTED_CONFIG_INIT                                                                \
	HG__INIT(hg_planted_config,                                                               \
	         HG__SET(nodes, 10000) HG__SET(features, 64) HG__SET(hubs, 8) HG__SET(classes, 8) \
	             HG__SET(degree, 10.0) HG__SET(hub_degree, 4000.0) HG__SET(scale, 1.0))

/** Makes a synthetic dataset. The same configuration gives the same dataset.
 * @param config   what to make; its size is set.
 * @param dataset  receives the dataset, owned by the caller.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or a field is out of its range: the message names
 *         it); HG_ERR_STATE (the watcher asked to stop); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_planted(const hg_planted_config *config,
                                                 hg_dataset **dataset, char *message);

/** Makes the graph symmetric: A + A^T with duplicate edges merged, of which the largest weight
 * stays. An edge that is there keeps its attributes and its label; an edge that is added has those
 * of the edge that it reverses.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_symmetrize(hg_dataset *dataset, char *message);

/** Adds a self loop of weight 1 to every node that has none. Duplicate edges become one, with the
 * sum of their weights if they have some. The attributes of a new loop are 0 and its label is -1:
 * no bond, so a sum of x_j + e_ij adds the node itself. (add_self_loops of PyTorch Geometric fills
 * in 1 unless it is told another fill_value.)
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_self_loops(hg_dataset *dataset, char *message);

/** Keeps the nodes of the largest connected component.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_UNSUPPORTED (a batch of graphs);
 *         HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_largest_component(hg_dataset *dataset, char *message);

/** Divides each row of the features by the sum of its absolute values; a row of zeros stays. Do it
 * before hg_dataset_standardize: means and deviations are kept, and are those of before.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_row_normalize(hg_dataset *dataset, char *message);

/** Gives every column of the features mean 0 and standard deviation 1 over all nodes; a column of
 * equal values becomes 0. Sparse features become dense, f32. The dataset keeps the means and the
 * deviations, and a run its copy of them, so that what a model predicts for is standardised with
 * those of its training (hg_predictor_prepare). Of columns that were standardised before, it keeps
 * what leads from the first values to the last.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_standardize(hg_dataset *dataset, char *message);

/** What a positional encoding tells of a node. U is the pattern of A + A^T without its diagonal:
 * directions, weights and self loops do not count. D is the diagonal matrix of its row sums. */
typedef enum hg_positional {
	/** column t = 1 .. k: the probability that a random walk is back after t steps, ((D^-1 U)^t)_ii
	 * (Dwivedi, Luu, Laurent, Bengio, Bresson 2022) */
	HG_POSITIONAL_RANDOM_WALK = 0,
	/** columns: unit eigenvectors of I - D^-1/2 U D^-1/2, each connected component by itself, those
	 * of the smallest eigenvalues without the first, which is 0 (Dwivedi, Bresson 2021) */
	HG_POSITIONAL_LAPLACIAN = 1
} hg_positional;

/** Appends columns to the features that say where in its graph each node is. Dense features keep
 * their type, sparse ones stay sparse, and without features there are then dense f32 ones. The same
 * dataset gives the same bits on machines with the same arithmetic.
 *
 * A random walk is exact up to rounding. An eigenvector x of eigenvalue l has |L x - l x| <= 2^-24,
 * so its angle to the exact one is about 2^-24 divided by the distance of l from the other
 * eigenvalues; in a space of equal eigenvalues (symmetric graphs) some basis is taken. Its sign:
 * the first element that is as large as the largest, up to 2^-10 of it, is positive. A component of
 * fewer than k + 1 nodes has fewer vectors, and an isolated node no walk; what is missing is 0.
 *
 * Cost      Random walks: for each node k / 2 steps over all edges that it reaches. Eigenvectors:
 *           the edges and 24 (k + 8) operations on each per round, some ten rounds, more where
 *           eigenvalues are close; 24 (k + 8) n bytes for a while.
 * @param dataset   a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param kind      what to append.
 * @param columns   k, 1 to 256.
 * @param progress  the watcher, or NULL.
 * @param message   receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL, another kind or number of columns);
 *         HG_ERR_UNSUPPORTED (eigenvalues so close together that the residual was not reached);
 *         HG_ERR_RANGE (more than 2^31 - 1 features); HG_ERR_STATE (the watcher asked to stop);
 *         HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_positional(hg_dataset *dataset, hg_positional kind,
                                                    int64_t columns, const hg_progress *progress,
                                                    char *message);

/** Keeps one column of the real targets, to train on, and drops the others. Labels stay.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param target   the name of the column (hg_dataset.target_names), or its number from 0, "2".
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or there is no such column: the message lists what
 *         there is); HG_ERR_STATE (it has no targets); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_keep_target(hg_dataset *dataset, const char *target,
                                                     char *message);

/** Whether the rows of the features should be divided by their sums. */
typedef struct hg_rows_advice {
	size_t size;
	int normalize; /**< 1: hg_dataset_row_normalize helps; 0: it does not, or hides the signal */
	char why[160]; /**< the reason, as the end of a sentence: "a bag of words: 18.2 entries ..." */
} hg_rows_advice;
/** An empty hg_rows_advice with its size set. */
#define HG_ROWS_ADVICE_INIT HG__INIT_ZERO(hg_rows_advice)

/** Judges by their values whether the rows of the features should be divided by their sums: yes for
 * counts and for short bags of words that share little, no for everything else. It does not matter
 * whether they are stored sparse or dense.
 *
 * Cost      O(stored features) time; 8 F bytes for a while.
 * @param dataset  a dataset that hg_dataset_check accepts.
 * @param advice   receives the advice; start from HG_ROWS_ADVICE_INIT.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or advice's size is not set); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_advise_rows(const hg_dataset *dataset,
                                                     hg_rows_advice *advice, char *message);

/** Sets the splits to one fold of a cross-validation: fold `fold` is the test set, the next one (0
 * after the last) the validation set, the others are the training set. The rows of each class are
 * dealt out in turn, in an order that depends on their numbers alone, so the folds are the same
 * every time and their sizes differ by one row at most. A dataset that holds so many folds of its
 * own (hg_dataset.fold) uses those.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param fold     0 to folds - 1.
 * @param folds    at least 3.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL, fold or folds out of range); HG_ERR_STATE (no
 *         labels); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_fold(hg_dataset *dataset, int64_t fold, int64_t folds,
                                              char *message);

/** Which rows validate when one fold of a cross-validation is held out (hg_dataset_use_fold). */
typedef enum hg_fold_validation {
	/** the next fold (0 after the last), so that the held-out fold tests what it did not choose */
	HG_FOLD_NEXT = 0,
	/** the held-out fold itself, and there is no test set: the split of the paper on GIN (Xu et al.
	 * 2019), which reports validation accuracies */
	HG_FOLD_HELD_OUT = 1
} hg_fold_validation;

/** Deals the rows out to folds for cross-validation, class by class as hg_dataset_fold does, and
 * keeps them in the dataset (hg_dataset.fold). Splits stay as they are. Without labels all rows are
 * dealt out.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param folds    at least 2.
 * @param seed     another seed, other folds; with 0 those of hg_dataset_fold.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL, folds out of range); HG_ERR_STATE (fewer rows than
 *         folds); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_make_folds(hg_dataset *dataset, int64_t folds,
                                                    uint64_t seed, char *message);

/** Sets the splits to one of the dataset's own folds: it is held out, and the rows of the other
 * folds train, without those that validate. Labelled rows in no fold always train.
 * @param dataset     a dataset that hg_dataset_check accepts, changed in place; unchanged on
 *                    failure.
 * @param fold        0 to dataset->folds - 1.
 * @param validation  which rows validate.
 * @param message     receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL, fold or validation out of range); HG_ERR_STATE (it
 *         has no folds, or two where HG_FOLD_NEXT needs three); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_use_fold(hg_dataset *dataset, int64_t fold,
                                                  hg_fold_validation validation, char *message);

/** The number by which the user knows a node: its orig_id, else the number it had before the
 * dataset was reordered.
 * @param dataset  the dataset.
 * @param i        0 to nodes - 1.
 * @return that number. */
HG_API int64_t hg_dataset_node(const hg_dataset *dataset, int64_t i);

/** The text by which the user knows a node.
 *
 * Cost      Linear in the number of nodes before it.
 * @param dataset  the dataset or NULL.
 * @param i        the node.
 * @return its name, borrowed; NULL where the nodes have numbers only. */
HG_API const char *hg_dataset_node_name(const hg_dataset *dataset, int64_t i);

/** Reorders everything that has one row per node: node k becomes what node order[k] was. Edges take
 * their attributes and labels with them. dataset->order keeps the combination of all orders so far.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param order    a permutation [nodes] that keeps the nodes of each graph of a batch together.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, no permutation, or it leaves the graphs of the
 *         batch); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_permute(hg_dataset *dataset, const int32_t *order,
                                                 char *message);

/** Finds an order (order.h) and puts the dataset in it.
 * @param dataset   changed in place; unchanged on failure.
 * @param method    "auto" (NULL), "community", "leading", "rcm", "degree"; or "original": back to
 *                  the order before the first reordering.
 * @param progress  the watcher, or NULL.
 * @param report    receives what was found, start from HG_ORDER_REPORT_INIT; or NULL. "original"
 *                  does not fill it.
 * @param message   receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL, or an unknown method); HG_ERR_STATE (the watcher
 *         asked to stop, or "original" and the dataset was never reordered); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_reorder(hg_dataset *dataset, const char *method,
                                                 const hg_progress *progress,
                                                 hg_order_report *report, char *message);

/** Stores dense features in a type. Sparse values stay f32, rounded to halves for HG_F16.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param dtype    HG_F16 or HG_F32.
 * @param clip     1: values beyond +-65504 become +-65504 in f16; 0: f16 refuses them, by name.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_DTYPE (another type); HG_ERR_RANGE (a value
 *         does not fit: the message names row and column); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_features_to(hg_dataset *dataset, hg_dtype dtype, int clip,
                                                     char *message);

/** Checks that every feature fits f16.
 * @param dataset  the dataset.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (dataset is NULL); HG_ERR_RANGE (the message names the first feature
 *         that does not fit). */
HG_API HG_NODISCARD hg_status hg_dataset_check_f16(const hg_dataset *dataset, char *message);

HG_EXTERN_C_END
#endif
