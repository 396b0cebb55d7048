/** @file
 * Is a dataset fit for training in fp16? Everything that hg_dataset_check refuses, not only the
 * first fault; what rounding to fp16 does to each column of the features and to the weights of the
 * edges; and what labels, splits and graph will do to a training run.
 *
 *     half(x)   the nearest half of a value x, ties to even, as everywhere in the library
 *     noise     of a column: the deviation of half(x) - x divided by that of x, over values that
 *               are not 0 and do not overflow. Both follow from quantiles, which a few other
 *               values (-999 for "missing") do not move: median |half(x) - x| / 0.866 (rounding
 *               errors are uniform) and (third quartile - first quartile) / 1.349 (of a normal
 *               distribution), of a sample of up to 1024 values; error / deviation where more than
 *               half of the values are one value, or fewer than 8 are found
 *     spread    is lost if noise > 1/8: rounding then adds more than 1/64 = 1.6 % to the variance,
 *               and -log2(noise) < 3 bits are left
 *
 * Threads   As dataset.h says.
 * Errors    `message` is as in file.h. */
#ifndef HALFGRAPH_FITNESS_H
#define HALFGRAPH_FITNESS_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/dataset.h"

HG_EXTERN_C_BEGIN

/** What was found, the worst first. `at`, `count`, `of` and `value` are those of
 * hg_fitness_finding. */
typedef enum hg_fitness_kind {
	HG_FITNESS_REFUSED = 0, /**< hg_dataset_check refuses it */
	/** column `at` (-1: the weights): `count` of `of` values are NaN or infinite */
	HG_FITNESS_NONFINITE = 1,
	/** `count` of `of` values round to infinity (|x| >= 65520); the largest |x| is `value` */
	HG_FITNESS_OVERFLOW = 2,
	/** spread is lost; of `of` different values that are not 0 `count` remain; `value`: the noise
	 */
	HG_FITNESS_SPREAD = 3,
	/** `count` of `of` values that are not 0 round to 0; `value`: the largest |x| */
	HG_FITNESS_VANISH = 4,
	/** `count` of `of` values that are not 0 keep fewer than 11 bits, because |x| < 2^-14; `value`:
	 * the largest |x| */
	HG_FITNESS_SUBNORMAL = 5,
	/** class `at` labels `count` rows, none of them in the training set */
	HG_FITNESS_UNTRAINED = 6,
	HG_FITNESS_UNREADY = 7,  /**< hg_dataset_check_training refuses it */
	HG_FITNESS_NO_SPLIT = 8, /**< set `at` (0 train, 1 validate, 2 test) is absent or empty */
	/** `count` of `of` rows of the training set have no label */
	HG_FITNESS_UNLABELLED = 9,
	/** `count` of `of` classes label no row; the first one is `at` */
	HG_FITNESS_EMPTY_CLASS = 10,
	/** `count` of `of` nodes have more neighbours than a sum in fp16 can count, 2048; node `at` of
	 * the user has `value` */
	HG_FITNESS_HUB = 11,
	/** a sum of features over neighbours may reach `value`, beyond fp16; at node `at` */
	HG_FITNESS_SUM = 12,
	HG_FITNESS_ISOLATED = 13, /**< `count` of `of` nodes have no neighbour */
	/** `count` of `of` nodes of the test set have exactly the features of a training node */
	HG_FITNESS_LEAK = 14,
	HG_FITNESS_ZERO_ROWS = 15, /**< `count` of `of` nodes have only zeros as features */
	/** `count` of `of` columns have the same value everywhere; the first one is `at`, its value
	 * `value` */
	HG_FITNESS_CONSTANT = 16,
	/** `count` of `of` columns, from column `at` on, were not looked at (HG_FITNESS_COLUMNS) */
	HG_FITNESS_UNSEEN = 17,
	HG_FITNESS_ONE_CLASS = 18, /**< all `of` labelled rows have class `at` */
	HG_FITNESS_KINDS = 19      /**< number of the above */
} hg_fitness_kind;

/** A kind as one word, for programs: "overflow".
 * @param kind  a kind.
 * @return a constant text, never NULL. */
HG_API const char *hg_fitness_kind_name(hg_fitness_kind kind);

/** How bad a finding is. */
typedef enum hg_severity {
	HG_SEVERITY_NOTE = 0,    /**< good to know; training works */
	HG_SEVERITY_LOSS = 1,    /**< fp16 loses data, or training cannot learn what it should */
	HG_SEVERITY_REFUSED = 2, /**< the dataset is refused */
	HG_SEVERITIES = 3        /**< number of the above */
} hg_severity;

/** A severity as one word, for programs: "note", "loss", "refused".
 * @param severity  a severity.
 * @return a constant text, never NULL. */
HG_API const char *hg_severity_name(hg_severity severity);

/** One finding. */
typedef struct hg_fitness_finding {
	hg_fitness_kind kind; /**< what was found */
	hg_severity severity; /**< how bad it is */
	int weights;          /**< 1: it is about the weights of the edges, 0: about anything else */
	int64_t at;           /**< a column, class, node or set, as the kind says; else -1 */
	int64_t count;        /**< how many are concerned */
	int64_t of;           /**< of how many */
	double value;         /**< as the kind says; else 0 */
	const char *option;   /**< an option of h5convert or hg-train that helps; "" if there is none */
	const char *call;     /**< the same in C; "" if there is none */
	const char *refusal;  /**< for REFUSED and UNREADY the message of the check, else "" */
} hg_fitness_finding;

/** One column of the features, or all weights. Zeros that sparse features do not store count as
 * values. Features that are stored as halves already are not changed by rounding. */
typedef struct hg_fitness_column {
	int64_t values;    /**< how many there are */
	int64_t nonzero;   /**< of them, those that are not 0 */
	int64_t nonfinite; /**< NaN and infinities, which count nowhere below */
	int64_t overflow;  /**< values that round to infinity */
	int64_t vanish;    /**< values that are not 0 and round to 0 */
	int64_t subnormal; /**< values that round to a half below 2^-14, and are changed by it */
	double least;      /**< the least value; 0 if there is none */
	double most;       /**< the largest value; 0 if there is none */
	double mean;       /**< their mean */
	double deviation;  /**< their standard deviation */
	double error;      /**< root of the mean of (half(x) - x)^2, where x does not overflow */
	double low;        /**< first quartile of the sample for `noise`; 0 if there is none */
	double high;       /**< third quartile */
	double noise;      /**< as above; 0 if rounding changes nothing */
	/** different values that are not 0; 0: not counted, which is done only where spread is lost */
	int64_t distinct;
	int64_t distinct_half; /**< different halves that these round to */
} hg_fitness_column;

/** The most columns that are looked at, the first ones: a damaged file can declare 2^31 columns
 * without storing anything in them. */
#define HG_FITNESS_COLUMNS (1 << 22)

/** A report. The library allocates it; new members are appended. */
typedef struct hg_fitness {
	hg_severity verdict;               /**< the worst severity; HG_SEVERITY_NOTE: it is fit */
	int64_t findings;                  /**< number of findings */
	const hg_fitness_finding *finding; /**< [findings], the worst first */
	int64_t columns;                   /**< columns that were looked at, 0 if they are refused */
	const hg_fitness_column *column;   /**< [columns] */
	int weighted;                      /**< 1: the edges have weights */
	hg_fitness_column weight;          /**< the weights */
	int batch;                         /**< 1: labels and splits belong to graphs, 0: to nodes */
	int sparse;                        /**< 1: the features are stored sparse */
	int64_t nodes;                     /**< as in hg_dataset */
	int64_t edges;                     /**< as in hg_dataset */
	int64_t graphs;                    /**< as in hg_dataset */
	int64_t isolated;                  /**< nodes without a neighbour */
	int64_t most_neighbours;           /**< of a node, incoming or outgoing */
} hg_fitness;

/** Examines a dataset. It may be one that hg_dataset_check refuses: what can be examined
 * nevertheless is.
 *
 * Cost      Two passes over graph and features, one more over the columns whose spread is lost;
 *           for a while 150 bytes for each column, 16 for each node, and, where rounding changes
 *           sparse features, 4 for each of them.
 * @param dataset   the dataset; its arrays have the lengths that hg_dataset says.
 * @param origin    what messages call it, such as a file name; NULL: its name.
 * @param progress  the watcher, or NULL.
 * @param report    receives the report, owned by the caller.
 * @param message   receives the reason of a failure, or NULL.
 * @return HG_OK, also if the verdict is bad; HG_ERR_ARG (a pointer is NULL); HG_ERR_STATE (the
 *         watcher asked to stop); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_dataset_fitness(const hg_dataset *dataset, const char *origin,
                                                 const hg_progress *progress, hg_fitness **report,
                                                 char *message);

/** Reads an HDF5 file and examines the dataset in it. A file that cannot be read as a dataset gives
 * a report with one finding, HG_FITNESS_REFUSED.
 * @param path      the file.
 * @param progress  the watcher, or NULL.
 * @param report    receives the report, owned by the caller.
 * @param message   receives the reason of a failure, or NULL.
 * @return HG_OK, also if the verdict is bad; HG_ERR_ARG (a pointer is NULL); HG_ERR_IO (the file
 *         cannot be read); HG_ERR_STATE (the watcher asked to stop); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_file_fitness(const char *path, const hg_progress *progress,
                                              hg_fitness **report, char *message);

/** Frees a report.
 * @param report  a report or NULL. */
HG_API void hg_fitness_free(hg_fitness *report);

/** A finding as a sentence with its remedy: "column 3: largest 1.2e+06 overflows fp16 (12 of 2708
 * values): --standardize, or --clip".
 * @param report    a report.
 * @param finding   0 to findings - 1.
 * @param sentence  receives one line, a buffer of HG_DATA_MESSAGE bytes.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or finding is out of range). */
HG_API HG_NODISCARD hg_status hg_fitness_sentence(const hg_fitness *report, int64_t finding,
                                                  char *sentence);

HG_EXTERN_C_END
#endif
