#ifndef HALFGRAPH_DATA_H
#define HALFGRAPH_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/dtype.h"
#include "halfgraph/export.h"
#include "halfgraph/order.h"
#include "halfgraph/progress.h"
#include "halfgraph/status.h"
#include "halfgraph/train.h"

HG_EXTERN_C_BEGIN

/* A dataset in host memory: what one HalfGraph HDF5 file holds (data/FORMAT.md) and what every
 * importer produces. Needs no context and no device. All arrays are owned by the dataset, allocated
 * with malloc; NULL where absent. */
typedef struct hg_dataset {
	char *name;
	int64_t nodes, edges, graphs; /* graphs: 1 unless batched */
	int64_t *rowptr;              /* [nodes + 1]; row = destination */
	int32_t *col;                 /* [edges] source */
	float *weight;                /* [edges] or NULL: all ones */
	int64_t *graph_ptr;           /* [graphs + 1] or NULL */

	int64_t features;
	hg_dtype feat_dtype;  /* of feat: HG_F16 or HG_F32 */
	void *feat;           /* dense [nodes, features], or NULL */
	int64_t *feat_rowptr; /* sparse: [nodes + 1], or NULL */
	int32_t *feat_col;
	float *feat_value; /* [feat_rowptr[nodes]] or NULL: all ones */
	double feat_amax;  /* max |x| */

	int32_t classes;
	/* [nodes], or [graphs] if graph_ptr; < 0: unlabelled */
	int32_t *label;
	uint8_t *train_mask, *val_mask, *test_mask; /* [same as label] or NULL */
	/* [nodes] the user's own node numbers, or NULL: the same */
	int64_t *orig_id;
	/* [nodes] reordered: what number each node had before; NULL: never, or back again */
	int32_t *order;
} hg_dataset;

/* An error message of this library: one line that names file, place, found and expected. */
#define HG_DATA_MESSAGE 512

/* Every function: on failure returns a negative status, writes one line into
 * message[HG_DATA_MESSAGE], leaves *dataset NULL, and no file behind. */
HG_API HG_NODISCARD hg_status hg_dataset_new(hg_dataset **dataset, char *message);
HG_API void hg_dataset_free(hg_dataset *dataset);
/* Everything that must hold of a dataset before it is used: pointers, ids, finite features within
 * f16 if f16, labels, disjoint splits. */
HG_API HG_NODISCARD hg_status hg_dataset_check(const hg_dataset *dataset, const char *origin,
                                               char *message);
/* HDF5. write is atomic (hg_file_write). read validates everything before it returns. */
HG_API HG_NODISCARD hg_status hg_dataset_read(const char *path, hg_dataset **dataset,
                                              char *message);
HG_API HG_NODISCARD hg_status hg_dataset_write(const hg_dataset *dataset, const char *path,
                                               char *message);
/* The same, watched; progress may be NULL. */
HG_API HG_NODISCARD hg_status hg_dataset_write_watched(const hg_dataset *dataset, const char *path,
                                                       const hg_progress *progress, char *message);

/* Is the first line of an edge list a header that counts what follows ("nodes edges")? AUTO: it is
 * where its numbers are the counts and no edge's; HG_ERR_FORMAT, with both readings, where it may
 * be either. YES: it is, and its counts must fit; a line of words is skipped. NO: it is an edge. */
typedef enum hg_header { HG_HEADER_AUTO = 0, HG_HEADER_YES = 1, HG_HEADER_NO = 2 } hg_header;

/* How an import is done. note hears, as sentences, what was decided for the user and what the
 * dataset leaves out: a header, edges that are there twice, labels of edges. */
typedef struct hg_import_config {
	size_t size;
	hg_header header;                               /* of edge lists */
	const hg_progress *progress;                    /* NULL: unwatched */
	void (*note)(void *user, const char *sentence); /* NULL: nobody listens */
	void *user;
} hg_import_config;
#define HG_IMPORT_CONFIG_INIT                             \
	{                                                     \
		sizeof(hg_import_config), HG_HEADER_AUTO, 0, 0, 0 \
	}

/* One importer per source format, from a table: name, one line of help, file endings. */
typedef struct hg_importer {
	const char *name, *help, *endings;
	int inputs; /* files it takes: exactly 1, or 0 for one or more */
	/* config NULL: HG_IMPORT_CONFIG_INIT */
	hg_status (*import)(const char *const *paths, int count, const hg_import_config *config,
	                    hg_dataset **dataset, char *message);
} hg_importer;
HG_API const hg_importer *hg_importers(size_t *count);

/* Planted communities with power-law degrees and, on top, `hubs` nodes of about `hub_degree`
 * neighbours. Features: class centroid plus noise, times `scale`. */
typedef struct hg_planted_config {
	size_t size;
	int64_t nodes, features, hubs;
	int32_t classes;
	double degree, hub_degree, scale;
	uint64_t seed;
	const hg_progress *progress; /* NULL: unwatched */
} hg_planted_config;
#define HG_PLANTED_CONFIG_INIT                                              \
	{                                                                       \
		sizeof(hg_planted_config), 10000, 64, 8, 8, 10.0, 4000.0, 1.0, 0, 0 \
	}
HG_API HG_NODISCARD hg_status hg_dataset_planted(const hg_planted_config *config,
                                                 hg_dataset **dataset, char *message);

/* Transforms, in place. On failure the dataset is unchanged. */
HG_API HG_NODISCARD hg_status hg_dataset_symmetrize(hg_dataset *dataset, char *message);
HG_API HG_NODISCARD hg_status hg_dataset_self_loops(hg_dataset *dataset, char *message);
HG_API HG_NODISCARD hg_status hg_dataset_largest_component(hg_dataset *dataset, char *message);
/* features: each row divided by its absolute sum */
HG_API HG_NODISCARD hg_status hg_dataset_row_normalize(hg_dataset *dataset, char *message);
/* The split of a cross-validation: fold `fold` of `folds` (from 0, at least 3) is the test set, the
 * next one (0 after the last) the validation set, the others are to learn from. The rows of each
 * class are dealt out in turn, in an order drawn from their numbers: always the same, and the folds
 * differ by one row at most. Splits that were there are replaced. */
HG_API HG_NODISCARD hg_status hg_dataset_fold(hg_dataset *dataset, int64_t fold, int64_t folds,
                                              char *message);
/* The number that the user knows node i by: its orig_id, else what it was before the dataset was
 * reordered. */
HG_API int64_t hg_dataset_node(const hg_dataset *dataset, int64_t i);
/* Everything that has a row for each node in another order: node k becomes what node order[k] was.
 * dataset->order remembers, through any number of orders. The nodes of a batch stay inside their
 * graph. */
HG_API HG_NODISCARD hg_status hg_dataset_permute(hg_dataset *dataset, const int32_t *order,
                                                 char *message);
/* The same with an order that is found (halfgraph/order.h): method auto (NULL), community, leading,
 * rcm, degree; or "original": the order there was before the first one, after which the dataset is
 * what it was. progress and report may be NULL; "original" reports nothing. */
HG_API HG_NODISCARD hg_status hg_dataset_reorder(hg_dataset *dataset, const char *method,
                                                 const hg_progress *progress,
                                                 hg_order_report *report, char *message);
/* Store dense features in this type; sparse values stay f32, rounded to what f16 can say if it is
 * f16. clip: values beyond f16's +-65504 become +-65504; without it f16 refuses them, by name. */
HG_API HG_NODISCARD hg_status hg_dataset_features_to(hg_dataset *dataset, hg_dtype dtype, int clip,
                                                     char *message);

/* Would every feature fit f16? HG_ERR_RANGE names the first that would not. */
HG_API HG_NODISCARD hg_status hg_dataset_check_f16(const hg_dataset *dataset, char *message);

/* A checkpoint: the state of training (halfgraph/state.h) in one HDF5 file (data/FORMAT.md). write
 * is atomic as above; read validates everything before it returns a state whose messages name the
 * file. HG_ERR_FORMAT: the file is no checkpoint, or damaged. */
HG_API HG_NODISCARD hg_status hg_checkpoint_write(const hg_state *state, const char *path,
                                                  char *message);
HG_API HG_NODISCARD hg_status hg_checkpoint_read(const char *path, hg_state **state, char *message);
/* Of a training run: hg_train_get_state and write; read and hg_train_set_state. load: a checkpoint
 * that does not fit is refused with both shapes and changes nothing; HG_INFO_DIFFERS: it is loaded,
 * and the message names the first setting in which the run is another one. What hg_train_run does
 * after it: train.h. */
HG_API HG_NODISCARD hg_status hg_checkpoint_save(hg_train *train, const char *path, char *message);
HG_API HG_NODISCARD hg_status hg_checkpoint_load(const char *path, hg_train *train, char *message);

/* A file that appears complete or not at all, as datasets and checkpoints do: written under a
 * temporary name beside its own (NAME.HASH-K.tmp), synchronised, renamed, and its folder
 * synchronised. The mode of a file that is replaced stays. What is there under `path` and is
 * read-only, or no regular file (a device, a link), is never replaced. What a killed writer of the
 * same file left is removed. HG_ERR_IO: it cannot be written; what was there stays. */
HG_API HG_NODISCARD hg_status hg_file_write(const char *path, const void *bytes, size_t size,
                                            char *message);
/* A dataset or checkpoint that another program has changed on purpose, or made, gets a checksum
 * that fits it (data/FORMAT.md), after all that reading checks; without one that fits, a file that
 * once had one is refused. HG_ERR_FORMAT: its content is not sound; it stays as it was. */
HG_API HG_NODISCARD hg_status hg_file_seal(const char *path, char *message);
/* Could it be written now? A temporary file is made and removed: better known before an hour's work
 * than behind it. */
HG_API HG_NODISCARD hg_status hg_file_try(const char *path, char *message);

HG_EXTERN_C_END
#endif
