#ifndef HG_BENCH_CHECK_H
#define HG_BENCH_CHECK_H

#include "bench.h"

/* Checks of what was timed: some 2,000 rows in f64 from the inputs as they lie in device memory,
 * each number against a derived bound. */

/* The largest err / bound so far, and where. */
struct check {
	double ratio, found, exact, bound;
	int64_t row, col, compared;
};
struct check check_new(void);
void check_number(struct check *c, int64_t row, int64_t col, double found, double exact,
                  double bound);
/* Is it a wrong result? Then it is said aloud, and counted: exit code 1. */
void check_say(struct bench *b, const struct check *c, const char *op, const char *variant);

/* A row to check: the longest first, then drawn by seed; of all rows where there are few. */
#define CHECK_ROWS 2000
int64_t check_rows(const struct bench *b, int64_t rows);
int64_t check_row(const struct bench *b, int64_t rows, int64_t k);

/* A matrix in host memory, as it lay on the device: whole, or `count` rows from row `first` on. */
struct copy {
	struct hg__mat mat; /* data is host memory */
	int64_t capacity;   /* bytes */
};
hg_status copy_rows(struct bench *b, struct hg__mat device, int64_t first, int64_t count,
                    struct copy *copy);
hg_status copy_mat(struct bench *b, struct hg__mat device, struct copy *copy);
void copy_free(struct copy *copy);
double copy_at(const struct copy *copy, int64_t row, int64_t col);

/* The entries of one row of the graph, host memory: columns and, in `weight`, f32 weights
 * (NULL where unit). */
struct row {
	int64_t index, begin, degree;
	int32_t *col;
	float *weight;
	int64_t capacity;
};
hg_status row_get(struct bench *b, int64_t index, const float *device_weight, struct row *row);
void row_free(struct row *row);

/* --spoil: one number of the longest row that is checked is changed on the device. */
hg_status spoil(struct bench *b, struct hg__mat mat, int64_t row);

#endif
