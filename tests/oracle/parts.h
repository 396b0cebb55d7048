#ifndef HG_TESTS_ORACLE_PARTS_H
#define HG_TESTS_ORACLE_PARTS_H

#include <stdlib.h>

#include "oracle/oracle.h"

/* What the oracle's files share among themselves. */

#define FOR_OUT(r, k)                         \
	for (int64_t r = 0; r < c->out.rows; r++) \
		for (int64_t k = 0; k < c->out.cols; k++)

num *oracle_scratch(int64_t count); /* at least one; exits the test program if there is no memory */
void oracle_release(num *scratch);
/* Scratch memory for a matrix of these extents. */
struct oracle_matrix oracle_like(const struct oracle_matrix *m);

/* Epilogues behind a sum s, with operand b of the call and the key of dropout: Y; and dS, which is
 * not stored yet. The caller releases dS, and stores it in the state type, if it differs from
 * dY. */
void oracle_end_sum(struct oracle_call *c, const struct oracle_matrix *s, int b, uint64_t key);
struct oracle_matrix oracle_end_sum_back(struct oracle_call *c, const struct oracle_matrix *s,
                                         int b, uint64_t key);
void oracle_store(const struct oracle_call *c, const struct oracle_matrix *m);

/* Word column % 4 of Philox4x32-10 for the counter (row, column / 4, step). */
uint32_t oracle_random_word(uint64_t key, uint64_t row, uint32_t column, uint64_t step);

#define ORACLE_OP(name)                        \
	void oracle_##name(struct oracle_call *c); \
	void oracle_##name##_back(struct oracle_call *c);
#include "oracle/oracle.def"
#undef ORACLE_OP

#endif
