#ifndef HG_BENCH_CHECK_H
#define HG_BENCH_CHECK_H

#include "bench.h"

/* Checks of the timed results: some 2,000 rows are computed again in f64 from the inputs in device
 * memory, and each number is compared with a derived bound. */

/* The largest err / bound so far, and where it is. */
struct check {
	double ratio, found, exact, bound;
	int64_t row, col, compared;
};
struct check check_new(void);
void check_number(struct check *c, int64_t row, int64_t col, double found, double exact,
                  double bound);
/* If the result is wrong, print it and count it: the exit code becomes 1. */
void check_report(struct bench *b, const struct check *c, const char *op, const char *variant);

/* The rows to check: all if there are few, else the longest one and rows drawn by the seed. */
#define CHECK_ROWS 2000
int64_t check_rows(const struct bench *b, int64_t rows);
int64_t check_row(const struct bench *b, int64_t rows, int64_t k);

/* A copy of a device matrix in host memory: the whole, or `count` rows from row `first` on. */
struct copy {
	struct hg__mat mat; /* data is host memory */
	int64_t capacity;   /* bytes */
};
hg_status copy_rows(struct bench *b, struct hg__mat device, int64_t first, int64_t count,
                    struct copy *copy);
hg_status copy_mat(struct bench *b, struct hg__mat device, struct copy *copy);
void copy_free(struct copy *copy);
double copy_at(const struct copy *copy, int64_t row, int64_t col);

/* The entries of one row in host memory: columns and f32 weights (all 1 where there are none). */
struct row {
	int64_t index, begin, degree;
	int32_t *col;
	float *weight;
	int64_t capacity;
};
/* A row of one orientation of the graph, whose rowptr is also in host memory. */
hg_status row_of(struct bench *b, const struct hg__csr *csr, const int64_t *rowptr, int64_t index,
                 const float *device_weight, struct row *row);
/* A row of the graph. */
hg_status row_get(struct bench *b, int64_t index, const float *device_weight, struct row *row);
void row_free(struct row *row);

/* --spoil: change one number in the first row that is checked, on the device. */
hg_status spoil(struct bench *b, struct hg__mat mat, int64_t row);

#endif
