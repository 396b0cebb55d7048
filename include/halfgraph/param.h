#ifndef HALFGRAPH_PARAM_H
#define HALFGRAPH_PARAM_H

#include "halfgraph/context.h"
#include "halfgraph/export.h"
#include "halfgraph/policy.h"
#include "halfgraph/status.h"
#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/* The trainable state of one model: for each parameter an f32 master, a working copy in the
 * policy's state type and an f32 gradient; for all together the loss scale and the step counter,
 * which live on the device so that a step needs no word from the host. */
typedef struct hg_params hg_params;
typedef struct hg_param hg_param;

typedef enum hg_init {
	HG_INIT_ZEROS = 0,
	HG_INIT_ONES = 1,
	HG_INIT_GLOROT_UNIFORM = 2, /* U(-a, a), a = sqrt(6 / (rows + cols)) */
	/* U(-a, a), a = sqrt(1 / rows): a linear layer's default elsewhere */
	HG_INIT_KAIMING_UNIFORM = 3
} hg_init;

/* Keep the working copy in f32 whatever the policy (scalars and normalisation gains, whose range is
 * their own affair). */
#define HG_PARAM_F32 1u
/* Not trained: running statistics. No gradient, no update. */
#define HG_PARAM_BUFFER 2u

/* policy NULL: fp16. */
HG_API HG_NODISCARD hg_status hg_params_create(hg_context *context, const hg_policy *policy,
                                               hg_params **params);
HG_API void hg_params_free(hg_params *params);
/* Initial values depend on the context's seed, the parameter's name and its place, not on the
 * device. The params own the result. */
HG_API HG_NODISCARD hg_status hg_params_add(hg_params *params, const char *name, int64_t rows,
                                            int64_t cols, hg_init init, unsigned flags,
                                            hg_param **param);

HG_API hg_context *hg_params_context(const hg_params *params);
HG_API const hg_policy *hg_params_policy(const hg_params *params);
HG_API int64_t hg_params_count(const hg_params *params);
HG_API hg_param *hg_params_at(const hg_params *params, int64_t index);
/* NULL if there is none */
HG_API hg_param *hg_params_find(const hg_params *params, const char *name);

HG_API const char *hg_param_name(const hg_param *param);
HG_API unsigned hg_param_flags(const hg_param *param);
HG_API hg_tensor *hg_param_master(hg_param *param); /* f32, borrowed */
/* the master itself where the types agree; borrowed */
HG_API hg_tensor *hg_param_working(hg_param *param);
/* Written by hg_tape_backward for the parameters that stand on its tape; those of any other keep
 * the gradient they had (at first zero). */
HG_API hg_tensor *hg_param_grad(hg_param *param); /* f32, loss-scaled; NULL for buffers; borrowed */
/* Overwrite the master from a compact f32 host array and refresh the working copy. */
HG_API HG_NODISCARD hg_status hg_param_set(hg_param *param, const float *values);

HG_EXTERN_C_END
#endif
