#ifndef HG_TESTS_DATA_SUPPORT_H
#define HG_TESTS_DATA_SUPPORT_H

#include <hdf5.h>
#include <stddef.h>

#include "halfgraph/data.h"
#include "harness.h"

/* A path in the scratch directory, in a static buffer for each `slot` (0 to 3). */
const char *scratch(int slot, const char *name);
void write_bytes(const char *path, const void *bytes, size_t count);
void write_text(const char *path, const char *text);
/* Removes the checksum. The file is then like that of a program that knows none, and HDF5 may
 * change it. */
void unseal(const char *path);
/* Reads a whole file. The caller frees the bytes. */
unsigned char *read_bytes(const char *path, size_t *count);
int file_exists(const char *path);
/* How many files in the scratch directory have `part` in their names. */
int count_scratch(const char *part);

/* A small dataset with everything that a dataset can have: 6 nodes, 11 directed edges, weights, 3
 * dense features, which were standardised, 3 classes, one unlabelled node, splits, original ids,
 * and for the edges 2 attributes and 5 labels, of which one is of no edge. */
hg_dataset *small_dataset(void);
/* The same with sparse features. */
hg_dataset *small_sparse(void);
/* Two graphs of 3 nodes each. */
hg_dataset *small_batch(void);
/* Nodes without edges: 0.6 of them are of class 0, the next 0.3 of class 1, the last three have no
 * label, and the others are of class 2. */
hg_dataset *labelled_nodes(int64_t nodes);
/* How many nodes of a class a mask takes; ANY_CLASS counts those without a label, too. */
enum { ANY_CLASS = -2 };
int64_t count_masked(const uint8_t *mask, const hg_dataset *d, int32_t label);
/* Compares two datasets, all fields and all bits. */
void check_same(const hg_dataset *a, const hg_dataset *b);

/* Calls that must succeed. */
hg_dataset *must_read(const char *path);
void must_write(const hg_dataset *d, const char *path);
hg_dataset *must_import(const char *format, const char *path);
/* The import must fail with this status and one line of message that contains `part`, and give no
 * dataset. */
void must_refuse(const char *format, const char *path, hg_status status, const char *part);
void must_not_read(const char *path, hg_status status, const char *part);

/* Writes an .npy file: descr such as "<i4", shape such as "(3,)", the bytes of the elements. */
void write_npy(const char *path, const char *descr, const char *shape, const void *bytes,
               size_t count);
/* A numpy archive that is being written. npz_add adds an array. */
struct npz_out;
struct npz_out *npz_begin(const char *path);
void npz_add(struct npz_out *out, const char *key, const char *descr, const char *shape,
             const void *bytes, size_t count);
/* Adds a member as it is. */
void npz_raw(struct npz_out *out, const char *name, const void *bytes, size_t count);
/* stored 1: members are not compressed */
void npz_end(struct npz_out *out, int stored);

/* Runs h5convert with these arguments, a shell line in which @ stands for the scratch directory.
 * Returns its exit code. What it prints is kept until the next run. */
int run_convert(const char *arguments);
extern char convert_out[8192], convert_err[8192];

#endif
