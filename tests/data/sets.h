#ifndef HG_TESTS_DATA_SETS_H
#define HG_TESTS_DATA_SETS_H

#include "support.h"

/* A small good dataset of every source format, and where it can be damaged. */
struct small_set {
	const char *format;
	const char *input;    /* the file that is imported; "": their folder */
	const char *files[8]; /* [count] none may be missing; the first is the largest risk */
	int count;
	/* Writes the set into the folder `set` of the scratch directory, which is emptied before. `id`
	 * is a node of an edge (or of a list), `x` a number that is read as a float. */
	void (*make)(const char *id, const char *x);
	const char *id, *x; /* what a good set has; x NULL: it has no such number */
};

/* All formats, in the order of hg_importers. */
extern const struct small_set small_sets[];
extern const int small_set_count;

/* Makes the folder `set`, empty, and the set in it; id or x NULL: those of a good set. */
void small_set_make(const struct small_set *set, const char *id, const char *x);
/* The path of a file of the set; of "": of the folder. It is in slot 3 of `scratch`. */
const char *small_set_path(const char *file);
/* Packs the set into the archive `name` of the scratch directory, without file `left_out`, or
 * with all of them (-1). */
void small_set_pack(const struct small_set *set, const char *name, int left_out);

#endif
