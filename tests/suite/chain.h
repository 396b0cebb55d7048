#ifndef HG_TESTS_SUITE_CHAIN_H
#define HG_TESTS_SUITE_CHAIN_H

#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "oracle/oracle.h"

/* A computation of several ops in the oracle's numbers, forward and backward. Without noise it is
 * exact. With noise every number of each result, and of each gradient that an op hands on, is moved
 * up or down by the largest error that this op may have for exact operands, the rounding to the
 * type of the state included. So the difference shows how errors of this size spread through the
 * ops that follow. (Bounds of whole computations, each op's added to what its operands bring, are
 * of no use: they grow by orders of magnitude in each normalisation, which cancels most of the
 * errors.) A library that rounds less often, because it fuses ops, has no larger errors. */

enum { CHAIN_VALUES = 128 };

struct chain_entry {
	const struct oracle_op *op;
	struct oracle_call call; /* with its options; operands are set for each pass */
	int in[ORACLE_MAX_IN];   /* values; below 0: absent */
	int out;
};

struct chain {
	int is_half, noise;
	struct oracle_graph graph;
	struct oracle_matrix value[CHAIN_VALUES], grad[CHAIN_VALUES];
	struct chain_entry entry[CHAIN_VALUES];
	int is_f32[CHAIN_VALUES]; /* a parameter or a loss: not rounded to the state's type */
	int values, entries;
};

static inline struct oracle_matrix chain_matrix(int64_t rows, int64_t cols)
{
	struct oracle_matrix m = {rows, cols, calloc((size_t)(rows * cols) + 1, sizeof(num))};
	CHECK(m.at != NULL);
	return m;
}

static inline int chain_value(struct chain *c, int64_t rows, int64_t cols, int is_f32)
{
	const int id = c->values++;
	CHECK(id < CHAIN_VALUES);
	c->value[id] = chain_matrix(rows, cols);
	c->grad[id] = chain_matrix(rows, cols);
	c->is_f32[id] = is_f32;
	return id;
}

/* An input or a parameter, exact. */
static inline int chain_leaf(struct chain *c, int64_t rows, int64_t cols, const float *values)
{
	const int id = chain_value(c, rows, cols, 1);
	for (int64_t i = 0; i < rows * cols; i++)
		c->value[id].at[i] = num_exact((double)values[i]);
	return id;
}

static inline void chain_store(const struct chain *c, int id, struct oracle_matrix *m)
{
	for (int64_t i = 0; i < m->rows * m->cols; i++) {
		const num x = c->is_f32[id] ? m->at[i] : num_store(c->is_half, m->at[i]);
		const double sign = test_below(2) ? 1.0 : -1.0;
		m->at[i] = num_exact(c->noise ? x.v + sign * x.e : x.v);
	}
}

static inline void chain_operands(const struct chain *c, const struct chain_entry *e,
                                  struct oracle_call *call)
{
	*call = e->call;
	call->graph = c->graph;
	call->is_half = c->is_half;
	call->u = c->is_half && strcmp(e->op->name, "linear") == 0 ? ORACLE_TENSOR : ORACLE_U32;
	for (int i = 0; i < ORACLE_MAX_IN; i++)
		if (e->in[i] >= 0)
			call->in[i] = c->value[e->in[i]];
	call->out = call->saved_out = c->value[e->out];
}

/* The largest |a - b|. */
static inline double chain_distance(const struct oracle_matrix *a, const struct oracle_matrix *b)
{
	double most = 0;
	for (int64_t i = 0; i < a->rows * a->cols; i++)
		most = fmax(most, fabs(a->at[i].v - b->at[i].v));
	return most;
}

/* The op `name` of the values in[], with the options of `call` (NULL: none). A loss, [1, 1], is
 * f32. */
static inline int chain_op(struct chain *c, const char *name, const struct oracle_call *options,
                           int64_t rows, int64_t cols, const int in[ORACLE_MAX_IN])
{
	struct chain_entry *e = &c->entry[c->entries++];
	struct oracle_call call;
	CHECK(c->entries <= CHAIN_VALUES);
	e->op = oracle_find(name);
	CHECK_MSG(e->op != NULL, "the oracle has no %s", name);
	if (options)
		e->call = *options;
	memcpy(e->in, in, sizeof e->in);
	e->out = chain_value(c, rows, cols, rows == 1 && cols == 1);
	chain_operands(c, e, &call);
	e->op->forward(&call);
	chain_store(c, e->out, &c->value[e->out]);
	return e->out;
}

/* Adds the gradients of one op's operands to those from other ops. */
static inline void chain_entry_back(struct chain *c, const struct chain_entry *e)
{
	struct oracle_call call;
	chain_operands(c, e, &call);
	call.dout = c->grad[e->out];
	for (int i = 0; i < ORACLE_MAX_IN; i++)
		if (e->in[i] >= 0)
			call.din[i] = chain_matrix(call.in[i].rows, call.in[i].cols);
	e->op->backward(&call);
	for (int i = 0; i < ORACLE_MAX_IN; i++) {
		if (e->in[i] < 0)
			continue;
		struct oracle_matrix *sum = &c->grad[e->in[i]];
		chain_store(c, e->in[i], &call.din[i]);
		for (int64_t k = 0; k < sum->rows * sum->cols; k++)
			sum->at[k] = num_add(ORACLE_U32, sum->at[k], call.din[i].at[k]);
		chain_store(c, e->in[i], sum);
		free(call.din[i].at);
	}
}

/* All gradients of the loss, the value of the last op. */
static inline void chain_back(struct chain *c)
{
	c->grad[c->entry[c->entries - 1].out].at[0] = num_exact(1.0);
	for (int k = c->entries - 1; k >= 0; k--)
		chain_entry_back(c, &c->entry[k]);
}

static inline void chain_free(struct chain *c)
{
	for (int i = 0; i < c->values; i++) {
		free(c->value[i].at);
		free(c->grad[i].at);
	}
}

#endif
