#ifndef HG_DATA_IMPORT_PICKLE_ARRAY_H
#define HG_DATA_IMPORT_PICKLE_ARRAY_H

#include "graph/coo.h"
#include "import/element.h"
#include "import/pickle.h"

/* A numpy.ndarray in a pickle, whose elements stay in the bytes of the file. */
struct hg__pickle_array {
	const struct hg__pickle *pickle;
	const char *what; /* its name in messages */
	struct hg__element type;
	int fortran;
	int64_t dim[2]; /* rank 1: dim[1] is 1 */
	int64_t elements;
	const unsigned char *bytes;
};

/* The array of `rank` 1 or 2 dimensions that a value is. */
HG_NODISCARD hg_status hg__pickle_array(const struct hg__pickle *p, hg__ref ref, const char *what,
                                        int rank, struct hg__pickle_array *a);
/* The byte of the file where element (row, column) is. */
int64_t hg__pickle_array_at(const struct hg__pickle_array *a, int64_t row, int64_t column);
double hg__pickle_array_real(const struct hg__pickle_array *a, int64_t row, int64_t column);

/* The scipy.sparse.csr_matrix that is the root, with finite values. On failure the caller frees
 * what is in *m. */
HG_NODISCARD hg_status hg__pickle_csr(const struct hg__pickle *p, struct hg__sparse *m);

#endif
