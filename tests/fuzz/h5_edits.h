#ifndef HG_TESTS_FUZZ_H5_EDITS_H
#define HG_TESTS_FUZZ_H5_EDITS_H

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>

/* Edits of an HDF5 file, as a program in the bytes of the input says: the file stays valid HDF5,
 * and becomes wrong in other ways. (Damage of any byte would mostly test libhdf5.) */

/* The input, which is read byte by byte. After its end there are zeros. */
struct program {
	const uint8_t *at, *end;
};
unsigned take(struct program *p);

/* What an edit can change in a file of one kind. */
struct target {
	const char *const *members;
	unsigned count;
	void (*reattribute)(struct program *p, hid_t file);
};

/* Apply 1 to 4 edits to the bytes of a good file. Members are removed, become links, or are
 * replaced by arrays of other types, shapes and contents; single elements change, and so do the
 * attributes, by t->reattribute. Returns the bytes of the new file, which the caller frees. */
uint8_t *edited(struct program *p, const uint8_t *good, size_t size, const struct target *t,
                size_t *count);

#endif
