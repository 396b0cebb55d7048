#ifndef HG_TESTS_ORACLE_ORACLE_H
#define HG_TESTS_ORACLE_ORACLE_H

#include "oracle/num.h"

/* The oracle: every op's equation in f64 with its error bound, forward and backward, dense and
 * slow. It includes nothing of src/: edges are lists, matrices are compact, options are plain
 * numbers. Backward is checked against central differences of forward by oracle_self_check. */

#define ORACLE_MAX_IN 6

struct oracle_matrix {
	int64_t rows, cols;
	num *at; /* [rows * cols]; NULL: absent */
};

struct oracle_graph {
	int64_t rows, cols, m, batch;
	const int64_t *rowptr;
	const int32_t *dst, *src; /* CSR order */
	const double *weight;     /* NULL: ones */
	const int64_t *ptr;       /* [batch + 1] */
};

struct oracle_call {
	struct oracle_graph graph;
	struct oracle_matrix in[ORACLE_MAX_IN], out, dout, din[ORACLE_MAX_IN];
	/* the output as the backward pass reads it: with the error of the store */
	struct oracle_matrix saved_out;
	int is_half, eval;
	double u;     /* unit roundoff of sums and products: f32's, or f16's for f16 accumulation */
	double sum_u; /* share of a term in the error of sums over neighbours; 0: u */
	/* options, by meaning */
	int heads, norm, reduce;
	int at_source; /* gather, scatter: the end of an edge that counts is its source */
	int act;                            /* batch_norm: 1 relu; sddmm_add: 2 leaky relu */
	const struct oracle_op *activation; /* epilogues: the activation, NULL: none */
	/* act_p: slope or alpha of `then`, beside another alpha; p: also the smoothing of labels */
	double alpha, slope, p, eps, momentum, act_p;
	int weighted; /* attention: 1: an edge counts as often as its weight says */
	int score;    /* attention: 0 add, 1 dot, 2 cosine, 3 add before the product (GATv2) */
	int self;     /* spmm_epilogue: Z is X */
	/* attention_epilogue: the dropout of the weights; p and then_key are those of elements */
	double weights_p;
	int mean; /* attention_epilogue: of the heads */
	uint64_t then_key;
	uint64_t rng_key;
	int64_t step;
	const double *running_mean, *running_var; /* [cols] */
};

struct oracle_op {
	const char *name;
	void (*forward)(struct oracle_call *c);
	/* writes din[k] for every k whose `at` is not NULL */
	void (*backward)(struct oracle_call *c);
};
const struct oracle_op *oracle_find(const char *name);

/* The largest |analytic - central difference| / tolerance over all elements of all operands with
 * din, in f64. The tolerance is that of a central difference with step h = 2^-18: h^2 *
 * third-derivative scale + 2^-52 / h, taken as 1e-6 * (1 + sum of |din|). Elements near a kink,
 * where the differences at h and 2h disagree, are left out. So are those at a kink, where the
 * one-sided slopes differ by more than 1e-2 of the scale, as where two elements tie for a maximum.
 */
double oracle_self_check(const struct oracle_op *op, struct oracle_call *c);

static inline num *oracle_at(const struct oracle_matrix *m, int64_t r, int64_t c)
{
	return &m->at[r * m->cols + c];
}

#define IN(k, r, col) (*oracle_at(&c->in[k], (r), (col)))
#define OUT(r, col) (*oracle_at(&c->out, (r), (col)))
#define SAVED(r, col) (*oracle_at(&c->saved_out, (r), (col)))
#define DOUT(r, col) (*oracle_at(&c->dout, (r), (col)))
#define DIN(k, r, col) (*oracle_at(&c->din[k], (r), (col)))
#define WANT(k) (c->din[k].at != 0)

#endif
