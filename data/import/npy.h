#ifndef HG_DATA_IMPORT_NPY_H
#define HG_DATA_IMPORT_NPY_H

#include <zip.h>

#include "import/element.h"
#include "import/folder.h"

/* The most code points of a text. */
#define HG__NPY_TEXT 1024

/* A numpy archive: a zip file whose members are .npy arrays. */
struct npz {
	const char *path;
	char *message;
	zip_t *zip;
	struct hg__mark mark;
};

/* One array whose header is read; `bytes` deliver its elements next. It must not move while it is
 * open. */
struct npy {
	char where[160]; /* the name in messages, "F.npz: member adj_indices.npy" */
	char *message;
	struct hg__bytes bytes;
	struct hg__element type;
	int fortran;
	int rank;
	int64_t dim[2];
	int64_t elements;
	int pickled; /* an array of Python objects */
	int texts;   /* texts of code points are wanted: kind U, size 4 bytes for each */
};

HG_NODISCARD hg_status hg__npz_open(struct npz *npz, const char *path, char *message);
void hg__npz_close(struct npz *npz);
int hg__npz_has(const struct npz *npz, const char *key);

/* Open the array `key` of `rank` dimensions and check everything that is known before its elements
 * are read: the compression method, the declared size against the stored one, the header against
 * the size. Arrays of Python objects are pickles; they are refused and never executed. */
HG_NODISCARD hg_status hg__npy_open(const struct npz *npz, const char *key, int rank,
                                    struct npy *a);
/* The same for an array of texts, "<U19", of one dimension. */
HG_NODISCARD hg_status hg__npy_open_texts(const struct npz *npz, const char *key, struct npy *a);
/* Open an .npy file, plain or gzip, of 1 or 2 dimensions. */
HG_NODISCARD hg_status hg__npy_open_file(const char *path, const hg_progress *progress,
                                         char *message, struct npy *a);
/* The same for a file of a folder or archive. */
HG_NODISCARD hg_status hg__npy_open_part(const struct hg__folder *folder, const char *part,
                                         struct npy *a);
/* Read all elements into fresh memory; then the member must end, with the right checksum. Integers
 * must lie in [low, high]. */
HG_NODISCARD hg_status hg__npy_read_i64(struct npy *a, int64_t low, int64_t high, int64_t **values);
HG_NODISCARD hg_status hg__npy_read_i32(struct npy *a, int64_t low, int64_t high, int32_t **values);
/* Read bytes, integers in [0, 255]: texts. */
HG_NODISCARD hg_status hg__npy_read_bytes(struct npy *a, char **values);
/* Read floats and integers as f32, row-major whatever the order in the file. */
HG_NODISCARD hg_status hg__npy_read_f32(struct npy *a, float **values);
/* The same for features, where neither NaN nor infinities may be. */
HG_NODISCARD hg_status hg__npy_read_finite(struct npy *a, float **values);
/* Floats and integers of one dimension, as f64. */
HG_NODISCARD hg_status hg__npy_read_f64(struct npy *a, double **values);
/* Read texts; `take` gets the code points of each, of which there are `length`, filled with 0. */
typedef hg_status (*hg__npy_take)(void *user, const uint32_t *text, int64_t length, char *message);
HG_NODISCARD hg_status hg__npy_read_texts(struct npy *a, hg__npy_take take, void *user);
void hg__npy_close(struct npy *a);

/* Parse the text of an .npy header, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }",
 * and store kind, size, order and shape in *a. */
HG_NODISCARD hg_status hg__npy_parse(const char *text, struct npy *a);

#endif
