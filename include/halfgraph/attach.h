/** @file
 * Features, labels and splits for a dataset that comes without them, from files or made.
 *
 * Rows      Row k of a file belongs to node k as the source of the dataset numbers its nodes
 *           (hg_dataset_node), or to graph k of a batch. A dataset whose numbers have gaps
 *           (orig_id) also takes files with one row per node, in ascending order of the numbers.
 * Ids       A text whose first line begins with the word id, node_id, graph_id or new_id (of any
 *           case) has whom a row belongs to in its first column: a node by the source's number
 *           (hg_dataset_node), a graph by its number from 0. The rows may then have any order;
 *           every node (or graph) needs exactly one. A missing, unknown or repeated id is refused.
 * Files     Numbers: an .npy array, or a text with one row per line, separated by commas, blanks or
 *           tabs, with a decimal point, after at most one line of words. Either may be compressed
 *           with gzip.
 * Owner     What the dataset had of this kind before is freed. A failure changes nothing.
 * Errors    `message` is as in file.h. All functions return HG_ERR_ARG where a pointer is NULL, and
 *           HG_ERR_NOMEM. Those that read a file: HG_ERR_IO (it cannot be read, or changed while
 *           it was read), HG_ERR_FORMAT (it is not what was expected; the message names the place),
 *           HG_ERR_RANGE (a number does not fit its type). */
#ifndef HALFGRAPH_ATTACH_H
#define HALFGRAPH_ATTACH_H

#include "halfgraph/dataset.h"

HG_EXTERN_C_BEGIN

/** Reads features from a file of finite numbers, one row per node.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG; HG_ERR_IO; HG_ERR_FORMAT; HG_ERR_RANGE; HG_ERR_NOMEM (as above). */
HG_API HG_NODISCARD hg_status hg_dataset_load_features(hg_dataset *dataset, const char *path,
                                                       char *message);

/** Reads labels from a file: a column of whole numbers are labels, below 0 unlabelled; other
 * numbers, or several columns, are real targets.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG; HG_ERR_IO; HG_ERR_FORMAT; HG_ERR_RANGE; HG_ERR_NOMEM (as above). */
HG_API HG_NODISCARD hg_status hg_dataset_load_labels(hg_dataset *dataset, const char *path,
                                                     char *message);

/** Reads a split from a file: a column of 0 (train), 1 (validate), 2 (test) or -1 (none), or a text
 * of the words train, val (valid, validation), test and none.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG; HG_ERR_IO; HG_ERR_FORMAT; HG_ERR_RANGE; HG_ERR_NOMEM (as above). */
HG_API HG_NODISCARD hg_status hg_dataset_load_split(hg_dataset *dataset, const char *path,
                                                    char *message);

/** What hg_dataset_make_features makes. */
typedef enum hg_made_features {
	HG_MADE_CONSTANT = 0,      /**< one column of 1 */
	HG_MADE_DEGREE = 1,        /**< one column: the number of edges that end at the node */
	HG_MADE_ONE_HOT_DEGREE = 2 /**< sparse: a column for each degree that occurs, ascending */
} hg_made_features;

/** Makes features for all nodes.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param kind     what to make.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (also: another kind); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_make_features(hg_dataset *dataset, hg_made_features kind,
                                                       char *message);

/** Splits the labelled rows, or all where there are no labels, at random. The draw depends on the
 * seed and the rows' own numbers alone, so reordering the nodes does not change it.
 * @param dataset   a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param fraction  [3] of the rows to train, validate and test: from 0, at most 1 in sum. The
 *                  number of rows is rounded to the nearest; what is left over is in no split.
 * @param seed      another seed draws another split.
 * @param message   receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (also: fractions out of range); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_split_random(hg_dataset *dataset, const double *fraction,
                                                      uint64_t seed, char *message);

/** Splits the labelled rows class by class at random (Shchur, Mumme, Bojchevski, Guennemann 2018),
 * drawn as by hg_dataset_split_random.
 * @param dataset  a dataset that hg_dataset_check accepts, changed in place; unchanged on failure.
 * @param count    [3] of each class to train, validate and test; at most one of them may be -1: the
 *                 rest.
 * @param seed     another seed draws another split.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (also: counts out of range); HG_ERR_STATE (no labels, or a class that
 *         has rows, but too few of them); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_split_per_class(hg_dataset *dataset, const int64_t *count,
                                                         uint64_t seed, char *message);

HG_EXTERN_C_END
#endif
