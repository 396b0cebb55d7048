#ifndef HG_NN_STATE_H
#define HG_NN_STATE_H

#include "halfgraph/state.h"
#include "halfgraph/train.h"
#include "nn/model.h"
#include "nn/optim/optim.h"
#include "nn/saved.h"

HG_EXTERN_C_BEGIN

/* hg_optim_get_state, with the masters of a copy. NULL: with the masters of the parameters. */
HG_NODISCARD hg_status hg__state_get(hg_optim *optim, const struct hg__saved *masters,
                                     hg_state **state);

/* A matrix of a parameter: from the device (`data`, in the layout of `mat`) to a compact host
 * array, and back through `staging`, which is as large as the largest master; the padding of a row
 * becomes zero. */
HG_NODISCARD hg_status hg__state_download(hg_context *ctx, struct hg__mat mat, void *data,
                                          float *host);
HG_NODISCARD hg_status hg__state_upload(hg_context *ctx, const struct hg__mat *mat, void *data,
                                        const float *host, float *staging);
/* The bytes of the largest master. */
size_t hg__state_largest(const hg_params *params);

/* Record the fields of the configuration structs as settings. Without memory they return
 * HG_ERR_NOMEM with a message. */
/* the library, the device, the seed of params, separate_ops */
HG_NODISCARD hg_status hg__state_note_context(hg_state *state, hg_context *ctx, uint64_t seed);
/* all these, the policy and the optimiser */
HG_NODISCARD hg_status hg__state_note_optim(hg_state *state, const hg_optim *optim);
HG_NODISCARD hg_status hg__state_note_model(hg_state *state, hg_context *ctx,
                                            const hg_model_config *config);
/* the fields of the run's own configuration that change what the weights mean */
HG_NODISCARD hg_status hg__state_note_train(hg_state *state, hg_context *ctx,
                                            const hg_train_config *config);
HG_NODISCARD hg_status hg__state_note_real(hg_state *state, hg_context *ctx, const char *name,
                                           double value);
HG_NODISCARD hg_status hg__state_note_integer(hg_state *state, hg_context *ctx, const char *name,
                                              int64_t value);
HG_NODISCARD hg_status hg__state_note_text(hg_state *state, hg_context *ctx, const char *name,
                                           const char *text);

/* How the data was prepared. Files of version 1.0 lack these. */
#define HG__ROWS_NORMALIZED "data.rows_normalized"
#define HG__SELF_LOOPS "data.self_loops"
#define HG__UNWEIGHTED "data.unweighted"
#define HG__TARGETS "data.targets"
/* A hash of what the columns were standardised with; 0: they were not. */
#define HG__STANDARDIZED "data.standardized"
/* A hash; 0: no weights. */
#define HG__CLASS_WEIGHTS "train.class_weights"
/* Decides which epoch is the best. Files of version 1.0 lack it, too. */
#define HG__METRIC "train.metric"

/* The parts of hg__state_check that need no optimiser: shapes; names, for which `ours` and `theirs`
 * tell the models. */
HG_NODISCARD hg_status hg__state_check_shapes(const hg_params *params, const hg_state *theirs);
HG_NODISCARD hg_status hg__state_check_names(const hg_params *params, const hg_state *ours,
                                             const hg_state *theirs);
/* What messages call a state. */
const char *hg__state_origin(const hg_state *state);

/* The configuration that a state notes. Texts in it are borrowed from the state, and what it is
 * made of is checked where it is used. HG_ERR_ARG: a setting is missing or of another type. */
HG_NODISCARD hg_status hg__state_read_policy(const hg_state *state, hg_context *ctx,
                                             hg_policy *policy);
HG_NODISCARD hg_status hg__state_read_model(const hg_state *state, hg_context *ctx,
                                            hg_model_config *config);

/* The first setting of `ours` whose name begins with `prefix` and that is missing or different in
 * `theirs`. NULL: all are the same. */
const hg_setting *hg__state_difference(const hg_state *ours, const hg_state *theirs,
                                       const char *prefix);
/* The number of settings of `ours` that are missing or different in `theirs`; `text` names the
 * first ones with both values. */
int hg__state_differences(const hg_state *ours, const hg_state *theirs, char *text, size_t size);
/* 1: states of version 0.1.0 lack this setting, where it was 0. */
int hg__setting_is_later(const char *name);
/* The value of a setting for a message; NULL: "not known". */
void hg__setting_text(const hg_setting *setting, char *text, size_t size);
/* hg_optim_set_state in two steps, for a run with the settings in `ours`. hg__state_check: does the
 * state fit? hg__state_put: restores it; it allocates all its memory before it changes anything. */
HG_NODISCARD hg_status hg__state_check(hg_optim *optim, const hg_state *ours,
                                       const hg_state *theirs);
HG_NODISCARD hg_status hg__state_put(hg_optim *optim, const hg_state *ours, const hg_state *theirs);

/* The groups of parameters of an optimiser (state_groups.c).
 * get: into a state that has its tensors.
 * check: HG_ERR_SHAPE, unless the state has the same groups with the same parameters, or none.
 * put: the rates, but those that differ by a setting.
 * make: groups as a state has them, for an optimiser that has at most as many. */
HG_NODISCARD hg_status hg__state_get_groups(const hg_optim *optim, hg_state *state);
HG_NODISCARD hg_status hg__state_check_groups(const hg_optim *optim, const hg_state *theirs);
HG_NODISCARD hg_status hg__state_put_groups(hg_optim *optim, const hg_state *ours,
                                            const hg_state *theirs);
HG_NODISCARD hg_status hg__state_make_groups(hg_optim *optim, const hg_state *state);

/* The part of hg_params on which the recording of a tape depends. */
struct hg__basis {
	struct hg__promotion *promotion;
	int64_t promotions, capacity;
	double *reach; /* [params] */
	int64_t params;
};
HG_NODISCARD hg_status hg__basis_get(const hg_params *params, hg_state *state); /* the promotions */
/* From a state that fits. HG_ERR_UNSUPPORTED: the state promotes an op that this library does not
 * have. */
HG_NODISCARD hg_status hg__basis_make(const hg_params *params, const hg_state *state,
                                      struct hg__basis *basis);
int hg__basis_same(const hg_params *params, const struct hg__basis *basis);
void hg__basis_swap(hg_params *params, struct hg__basis *basis);
/* For later tapes. Existing tapes assume the present reaches, so these stay. */
void hg__basis_swap_promotions(hg_params *params, struct hg__basis *basis);
void hg__basis_fini(hg_context *ctx, struct hg__basis *basis);

HG_EXTERN_C_END
#endif
