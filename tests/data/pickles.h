#ifndef HG_TESTS_DATA_PICKLES_H
#define HG_TESTS_DATA_PICKLES_H

#include <stddef.h>
#include <stdint.h>

/* Small Planetoid datasets, pickled as Python 2 did it with protocol 2. It needs no other part of
 * the tests, because the fuzz targets use it, too. */

struct pickle {
	unsigned char bytes[16384];
	size_t count;
};

struct small_csr {
	int rows, cols, stored;
	int32_t indptr[8], indices[8];
	float data[8];
};

struct small_labels {
	int rows, classes;
	int32_t at[12];
};

/* The members of ind.NAME. The graph is written as "0: 1 2\n1: 0\n". */
struct small_planetoid {
	struct small_csr x, tx, allx;
	struct small_labels y, ty, ally;
	const char *graph, *test;
};

/* Seven nodes: 0 and 1 train, 2 and 3 validate, 6 and 4 test in this order, and test.index leaves
 * out node 5. Three features, two classes, a self loop at node 2, and the edge 0 -> 1 twice. */
extern const struct small_planetoid planetoid_toy;

enum { PLANETOID_PICKLES = 7, PLANETOID_MEMBERS = 8 };
/* "x", "tx", "allx", "y", "ty", "ally", "graph", "test.index" */
extern const char *const planetoid_members[PLANETOID_MEMBERS];
/* The bytes of member k. */
void planetoid_member(const struct small_planetoid *set, int k, struct pickle *out);

void pickle_csr(struct pickle *out, const struct small_csr *m);
void pickle_labels(struct pickle *out, const struct small_labels *m);
/* The same of any size: labels [rows * classes], and a matrix without entries, whose indptr
 * [rows + 1] is zeros. */
void pickle_array_of(struct pickle *out, int rows, int classes, const int32_t *labels);
void pickle_empty_csr(struct pickle *out, int rows, int cols, const int32_t *indptr);
void pickle_graph(struct pickle *out, const char *lists);
/* Append bytes, or the text of a string. */
void pickle_add(struct pickle *out, const void *bytes, size_t count);
void pickle_text(struct pickle *out, const char *text);

#endif
