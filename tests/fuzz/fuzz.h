#ifndef HG_TESTS_FUZZ_H
#define HG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/data.h"

/* The entry point of libFuzzer, which must not crash for any bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Puts `bytes` into a file in memory, in place of those of the last call. Returns its path. */
const char *fuzz_file(const uint8_t *bytes, size_t count);

/* Imports `bytes` as a file of a format of hg_importers. For every input it must hold that success
 * gives a dataset that passes its check, and that failure gives no dataset and one line of text.
 * Otherwise the program aborts. */
hg_status fuzz_import(const char *format, const uint8_t *bytes, size_t count);

/* What the last import said, or "imported". */
const char *fuzz_said(void);

/* The most files of a set. */
enum { FUZZ_FILES = 8 };
/* What separates the files of a set that may hold any byte. */
#define FUZZ_BINARY_END "\f--8<--\f"
/* A dataset of several files. */
struct fuzz_set {
	const char *format, *separator;
	const char *file[FUZZ_FILES + 1]; /* names; a NULL ends them */
	const char *below;                /* a folder that some of them are in, or NULL */
	int whole;                        /* the folder is imported, not its first file */
};
/* The same for a set: `bytes` has its files one after the other, with separators between them. */
void fuzz_set(const struct fuzz_set *set, const uint8_t *bytes, size_t count);

/* The same for the reader of checkpoints: it gives a valid state, or none. */
hg_status fuzz_checkpoint(const uint8_t *bytes, size_t count);

/* Bytes before the HDF5 data of a file, which contain its checksum. */
enum { FUZZ_BLOCK = 512 };
/* The bytes of a good HDF5 file, which the caller frees. kind 0: a dataset with dense features; 1:
 * with sparse features; 2: a batch; 3: a checkpoint. */
enum { FUZZ_CHECKPOINT = 3, FUZZ_KINDS = 4 };
uint8_t *fuzz_good_h5(int kind, size_t *count);

/* Good inputs from which replay starts. Writes number k to path, and returns 0 if there is none. */
int seed_npz(int k, const char *path);
int seed_text(int k, const char *path);
int seed_tu(int k, const char *path);
int seed_h5(int k, const char *path);
int seed_gin(int k, const char *path);
int seed_musae(int k, const char *path);
int seed_planetoid(int k, const char *path);
int seed_ogb(int k, const char *path);
int seed_graphbolt(int k, const char *path);
int seed_dgl_csv(int k, const char *path);
int seed_zip(int k, const char *path);
int seed_safetensors(int k, const char *path);
int seed_h5ad(int k, const char *path);
int seed_config(int k, const char *path);
int seed_attach(int k, const char *path);
int seed_recognise(int k, const char *path);
int seed_pickle(int k, const char *path);

#endif
