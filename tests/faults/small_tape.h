#ifndef HG_TESTS_FAULTS_SMALL_TAPE_H
#define HG_TESTS_FAULTS_SMALL_TAPE_H

#include "faults/setup.h"

/* What the tapes have in common that planters record themselves. They apply one op to the variable
 * X or to the product X W, and their loss is a mean squared error. */

/* Positions in s->tensor. A planter creates X and the targets first, and then its own tensors. */
enum { X = 0, TARGETS = 1, OTHER = 2 };

/* Parameter `name` of s->params. */
hg_var tape_param(struct setup *s, hg_tape *tape, const char *name);
/* s->tensor[X] as the variable "x". */
hg_var tape_x(struct setup *s, hg_tape *tape);
/* X W, W being the parameter "w". */
hg_var tape_product(struct setup *s, hg_tape *tape);
/* Batch norm or layer norm in layer "norm", with the parameters of setup_batch_norm or
 * setup_layer_norm. */
hg_var tape_batch_norm(struct setup *s, hg_tape *tape, hg_var x, float eps);
hg_var tape_layer_norm(struct setup *s, hg_tape *tape, hg_var x, float eps);
/* mse(y, T), outside of all layers. T is s->tensor[TARGETS], named "targets". */
hg_var tape_targets(struct setup *s, hg_tape *tape);
hg_var tape_mse(struct setup *s, hg_tape *tape, hg_var y);

#endif
