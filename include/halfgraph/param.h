/** @file
 * The trainable state of one model. For each parameter there is an f32 master weight, a working
 * copy in the policy's state type (the ops read it) and an f32 gradient; for all of them together,
 * the loss scale and the step counter, which live on the device so that a step needs no host.
 *
 * Owner     The params own their parameters and all tensors of them.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_PARAM_H
#define HALFGRAPH_PARAM_H

#include "halfgraph/context.h"
#include "halfgraph/export.h"
#include "halfgraph/policy.h"
#include "halfgraph/status.h"
#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/** All parameters of a model. */
typedef struct hg_params hg_params;
/** One parameter. */
typedef struct hg_param hg_param;

/** How a new parameter is filled. U(-a, a) is the uniform distribution on that interval. */
typedef enum hg_init {
	HG_INIT_ZEROS = 0,          /**< 0 */
	HG_INIT_ONES = 1,           /**< 1 */
	HG_INIT_GLOROT_UNIFORM = 2, /**< U(-a, a), a = sqrt(6 / (rows + cols)) */
	HG_INIT_KAIMING_UNIFORM = 3 /**< U(-a, a), a = sqrt(1 / rows), as PyTorch's linear layers */
} hg_init;

/** Flag: the working copy is f32 whatever the policy. For scalars and normalisation gains, whose
 * range no rule bounds. */
#define HG_PARAM_F32 1u
/** Flag: a buffer, such as running statistics. It is not trained: no gradient, no update. */
#define HG_PARAM_BUFFER 2u

/** Creates an empty set of parameters with its loss scale.
 * @param context  the context, which stays open until the params are freed.
 * @param policy   copied; NULL: hg_policy_fp16().
 * @param params   receives the params, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or the policy is inconsistent: the message says
 *         how); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_params_create(hg_context *context, const hg_policy *policy,
                                               hg_params **params);

/** Sets the seed of what is drawn for these params from now on: initial values of parameters, and
 * the dropout of tapes that are recorded on them. Until then it is the context's seed. So models of
 * several seeds can be on one context (group.h), each with the bits that it has on a context of its
 * own that was opened with this seed.
 * @param params  the params.
 * @param seed    the seed.
 * @return HG_OK; HG_ERR_ARG (params is NULL). */
HG_API HG_NODISCARD hg_status hg_params_set_seed(hg_params *params, uint64_t seed);

/** Frees the params with all parameters. Tapes, models and optimisers that borrow them go first.
 * @param params  params or NULL. */
HG_API void hg_params_free(hg_params *params);

/** Adds a parameter. Its initial values depend on the params' seed, its name and its position in
 * the params, and are the same on every device.
 * @param params  the params. An optimiser made before is refused by its next step (HG_ERR_STATE).
 * @param name    a name no other parameter of the params has, copied.
 * @param rows    at least 1.
 * @param cols    at least 1.
 * @param init    how it is filled.
 * @param flags   0, HG_PARAM_F32, HG_PARAM_BUFFER or both.
 * @param param   receives the parameter, owned by the params; may be NULL.
 * @return HG_OK; HG_ERR_ARG (params is NULL; no name or one that exists; unknown init or flags);
 *         HG_ERR_SHAPE (rows or cols below 1); HG_ERR_NOMEM; HG_ERR_DEVICE. On failure nothing is
 *         added. */
HG_API HG_NODISCARD hg_status hg_params_add(hg_params *params, const char *name, int64_t rows,
                                            int64_t cols, hg_init init, unsigned flags,
                                            hg_param **param);

/** The context of the params.
 * @param params  params or NULL.
 * @return the context, borrowed; NULL for NULL. */
HG_API hg_context *hg_params_context(const hg_params *params);

/** The policy the params were created with.
 * @param params  params or NULL.
 * @return the policy, borrowed; NULL for NULL. */
HG_API const hg_policy *hg_params_policy(const hg_params *params);

/** The number of parameters, buffers included.
 * @param params  params or NULL.
 * @return the number; 0 for NULL. */
HG_API int64_t hg_params_count(const hg_params *params);

/** A parameter by its position, in the order of hg_params_add.
 * @param params  params or NULL.
 * @param index   0 to hg_params_count - 1.
 * @return the parameter, borrowed; NULL if there is none. */
HG_API hg_param *hg_params_at(const hg_params *params, int64_t index);

/** A parameter by its name. The header model.h lists the names of each model.
 *
 * Cost      Linear in the number of parameters.
 * @param params  params or NULL.
 * @param name    the name, such as "conv0.weight".
 * @return the parameter, borrowed; NULL if there is none. */
HG_API hg_param *hg_params_find(const hg_params *params, const char *name);

/** The name of a parameter.
 * @param param  a parameter or NULL.
 * @return the name, borrowed; "" for NULL. */
HG_API const char *hg_param_name(const hg_param *param);

/** The flags of a parameter.
 * @param param  a parameter or NULL.
 * @return HG_PARAM_F32, HG_PARAM_BUFFER, both or 0. */
HG_API unsigned hg_param_flags(const hg_param *param);

/** The master weight. Change it with hg_param_set, which keeps the working copy in step with it.
 * @param param  a parameter or NULL.
 * @return f32 [rows, cols], borrowed; NULL for NULL. */
HG_API hg_tensor *hg_param_master(hg_param *param);

/** The working copy, which the ops read: the master, narrowed after every update.
 * @param param  a parameter or NULL.
 * @return [rows, cols] in the state type, borrowed; the master itself where that is f32. */
HG_API hg_tensor *hg_param_working(hg_param *param);

/** The gradient, multiplied by the loss scale. hg_tape_backward writes it for the parameters on its
 * tape; that of any other parameter stays as it was (zero at first).
 * @param param  a parameter or NULL.
 * @return f32 [rows, cols], borrowed; NULL for a buffer. */
HG_API hg_tensor *hg_param_grad(hg_param *param);

/** Overwrites the master weight and refreshes the working copy. Waits for the device.
 * @param param   the parameter.
 * @param values  host array f32 [rows, cols], row-major and compact, copied.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_RANGE (a finite value does not fit an f16
 *         working copy; nothing is changed); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_param_set(hg_param *param, const float *values);

HG_EXTERN_C_END
#endif
