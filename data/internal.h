#ifndef HG_DATA_INTERNAL_H
#define HG_DATA_INTERNAL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "halfgraph/data.h"

/* Like hg_dataset_read and hg_checkpoint_read, but messages call the file `shown`. */
HG_NODISCARD hg_status hg__dataset_read(const char *path, const char *shown, hg_dataset **dataset,
                                        char *message);
HG_NODISCARD hg_status hg__checkpoint_read(const char *path, const char *shown, hg_state **state,
                                           char *message);

/* Like hg_dataset_read, and reports progress (NULL: to nobody). */
HG_NODISCARD hg_status hg__dataset_read_watched(const char *path, const hg_progress *progress,
                                                hg_dataset **dataset, char *message);

/* Like hg_dataset_read, but hg_dataset_check is left to the caller. The lengths of all arrays fit
 * each other. */
HG_NODISCARD hg_status hg__dataset_read_unchecked(const char *path, hg_dataset **dataset,
                                                  char *message);

/* The parts of hg_dataset_check, in its order. */
enum hg__part {
	HG__PART_NAME,
	HG__PART_GRAPH,
	HG__PART_WEIGHTS,
	HG__PART_EDGE_FEATURES,
	HG__PART_EDGE_LABELS,
	HG__PART_BATCH,
	HG__PART_ORDER,
	HG__PART_FEATURES, /* their structure */
	HG__PART_VALUES,   /* of the features: finite */
	HG__PART_LABELS,
	HG__PART_TARGETS,
	HG__PART_SPLITS,
	HG__PART_FOLDS,
	HG__PARTS
};
/* Check one part. `broken` has a bit for each part that is known not to hold; HG_OK where this part
 * cannot be checked because of one of them. */
HG_NODISCARD hg_status hg__check_part(const hg_dataset *d, enum hg__part part, unsigned broken,
                                      const char *origin, char *message);

/* d->folds := the number of folds, one more than the largest in d->fold. */
void hg__data_count_folds(hg_dataset *d);
/* The part HG__PART_FOLDS. */
HG_NODISCARD hg_status hg__data_check_folds(const hg_dataset *d, const char *origin, char *message);

/* Write one line into message[HG_DATA_MESSAGE] (NULL: nowhere) and return the status. Control
 * characters, which file and member names may contain, become "\xHH" (core/printable.h). */
hg_status hg__data_fail(char *message, hg_status status, const char *format, ...) HG_PRINTF(3, 4);

/* line [HG_DATA_MESSAGE] := the printf output as one line with a decimal point in every locale. */
void hg__data_say(char *line, const char *format, va_list args) HG_PRINTF(2, 0);

/* What messages call a dataset. */
static inline const char *hg__data_name(const hg_dataset *d)
{
	return d->name ? d->name : "the dataset";
}

/* The digits of a 64-bit integer as its file stores it, for a message; returns `text`. */
const char *hg__data_digits(int64_t bits, int is_unsigned, char text[24]);

/* malloc for `count` elements of `size` bytes with an overflow check. A count of 0 also returns
 * memory, because NULL means "absent" in a dataset. On failure *memory is NULL and the message
 * names `what` and the size. */
HG_NODISCARD hg_status hg__data_alloc(int64_t count, size_t size, const char *what, void **memory,
                                      char *message);
HG_NODISCARD hg_status hg__data_grow(void **memory, int64_t count, size_t size, const char *what,
                                     char *message);
HG_NODISCARD hg_status hg__data_copy_text(const char *text, char **copy, char *message);

/* HG_OK, or HG_ERR_STATE where the progress callback asks to stop. */
HG_NODISCARD hg_status hg__data_step(const hg_progress *progress, const char *what, int64_t done,
                                     int64_t total, char *message);

/* Checks 0 = pointers[0] <= ... <= pointers[rows]; a message begins with "ORIGIN: WHAT:
 * pointers". */
HG_NODISCARD hg_status hg__data_check_pointers(const char *origin, const char *what,
                                               const int64_t *pointers, int64_t rows,
                                               char *message);

/* Element `index` of the dense features, row-major, as f32. */
float hg__data_feature(const hg_dataset *d, int64_t index);
/* The number of rows that carry labels: the graphs of a batch, else the nodes. */
int64_t hg__data_labelled(const hg_dataset *d);
/* Does node i have an edge to itself? */
int hg__data_has_loop(const hg_dataset *d, int64_t i);
/* Set d->classes from the labels. HG_ERR_FORMAT: more classes than labelled rows. `hint` ends the
 * message; it tells how a file of this format can declare so many classes. */
HG_NODISCARD hg_status hg__data_count_classes(hg_dataset *d, const char *origin, const char *hint,
                                              char *message);
/* The same for edge_classes and edge_label. */
HG_NODISCARD hg_status hg__data_count_edge_classes(hg_dataset *d, const char *origin,
                                                   const char *hint, char *message);
/* The features of `fresh` replace those of d; the old ones are freed. */
void hg__replace_features(hg_dataset *d, const hg_dataset *fresh);
/* own := d, with a copy of its features, so that they can be changed; everything else is shared.
 * hg__features_drop frees the copy. */
HG_NODISCARD hg_status hg__features_own(const hg_dataset *d, hg_dataset *own, char *message);
void hg__features_drop(hg_dataset *own);
/* Standardises the features, which must have as many columns, with numbers of another dataset. */
HG_NODISCARD hg_status hg__standardize_as(hg_dataset *d, const double *mean,
                                          const double *deviation, char *message);
/* max |x| over all features; NaN and infinities are ignored. */
double hg__data_amax(const hg_dataset *d);

/* The largest binary16 number. */
#define HG__HALF_MAX 65504.0

/* Deflate expands at most 1032 times (a match of 258 bytes takes at least 2 bits), so a file that
 * declares more than that is damaged. */
#define HG__DEFLATE_MAX 1032

/* The longest text in a file, such as the name of a dataset. HDF5 keeps compact attributes below 64
 * KiB; the rest is room for a descriptor with keys of other writers. */
#define HG__TEXT_MAX (1 << 20)

/* The number of elements handled at a time when a file is read or written piece by piece: 512 KiB
 * of 8-byte elements, which is part of a second-level cache. */
#define HG__SLAB 65536

/* Return early with a failing status. */
#define HG__TRY(call)                         \
	do {                                      \
		const hg_status hg__status_ = (call); \
		if (hg__status_ < 0)                  \
			return hg__status_;               \
	} while (0)

#endif
