#ifndef HG_TESTS_FUZZ_H
#define HG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/data.h"

/* libFuzzer's entry: must survive any bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Import `bytes` as a file of a format of hg_importers. What must hold of every input: success
 * means a dataset that passes its check; failure means no dataset and one line of text. Anything
 * else aborts. */
hg_status fuzz_import(const char *format, const uint8_t *bytes, size_t count);

/* The same of a set of TU Dortmund: its five files one behind the other in `bytes`, form feeds
 * between them. */
void fuzz_set(const uint8_t *bytes, size_t count);

/* The same for the reader of checkpoints: a state without fault, or none. */
hg_status fuzz_checkpoint(const uint8_t *bytes, size_t count);

/* Before the HDF5 data of a file stands its checksum. */
enum { FUZZ_BLOCK = 512 };
/* The bytes of a good HDF5 file, malloc'd: kind 0 a dataset with dense, 1 with sparse features, 2 a
 * batch, 3 a checkpoint. */
enum { FUZZ_CHECKPOINT = 3, FUZZ_KINDS = 4 };
uint8_t *fuzz_good_h5(int kind, size_t *count);

/* Good inputs to start from (replay only): writes number k to path, 0 where there is none. */
int seed_npz(int k, const char *path);
int seed_text(int k, const char *path);
int seed_tu(int k, const char *path);
int seed_h5(int k, const char *path);

#endif
