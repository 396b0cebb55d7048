#ifndef HG_DOCTOR_WEIGHT_GROWTH_H
#define HG_DOCTOR_WEIGHT_GROWTH_H

#include "autograd/param.h"
#include "core/buffer.h"
#include "nn/optim/optim.h"

HG_EXTERN_C_BEGIN

/* The size of every parameter at some step: the geometric mean of |x| over its elements that are
 * finite and not 0; 0 if there are none. In this mean, one element does not count for much, however
 * large it has become. */
struct hg__weight_sizes {
	struct hg__buffer size; /* double [count] */
	int64_t count, step;
};
HG_NODISCARD hg_status hg__weight_sizes_open(hg_params *params, struct hg__weight_sizes *sizes);
void hg__weight_sizes_close(hg_context *ctx, struct hg__weight_sizes *sizes);
static inline double hg__weight_size(const struct hg__weight_sizes *sizes, int64_t i)
{
	return ((const double *)sizes->size.data)[i];
}

/* A step of Adam moves no weight by more than (1 - beta1) / sqrt(1 - beta2) times its learning
 * rate, which is 3.2 by default (Kingma, Ba 2015, 2.1), unless the moments do not come from its
 * gradients. Weight decay only makes weights smaller. */
#define HG__ADAM_MOVES 4.0
/* The highest learning rate of all groups of parameters. */
double hg__highest_rate(const hg_optim *optim);

HG_EXTERN_C_END
#endif
