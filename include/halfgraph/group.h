/** @file
 * Many models that train together: seeds, settings or architectures to compare, on one graph or on
 * several.
 *
 *     hg_group_run(group, n)  =  hg_step_run(step, n) for each step of the group
 *
 * with the same bits for every model, whatever the others are. A model on a small graph leaves most
 * of a device idle. So on a GPU the steps of a group run beside one another: one launch holds a
 * branch of kernels for each of them, captured once. On a CPU each thread takes some of the models,
 * and computes them alone.
 *
 * Nothing of a model depends on another one: a step that overflows in one skips that step of that
 * model, and learning rates, loss scales and step counters are each model's own. Models may differ
 * in everything, their policy included. They share what they only read: graphs, features, labels.
 *
 * Results are read from the steps, as after hg_step_run. Between runs of the group a step may also
 * run alone, a learning rate may change, and values may be uploaded to inputs. hg_step_config.eager
 * and per_launch are for the runs of a step alone. Steps of training runs (hg_train_step) may be in
 * a group, too, until hg_train_run records their tapes anew.
 *
 * Cost      One launch for several steps of all models. Device memory on a GPU: for each branch
 *           32 MiB for products, and scratch as much as the context has.
 * Owner     A group borrows its steps; free it before them.
 * Threads   One thread at a time per context. On a CPU the group has threads of its own; in a fork
 *           of the process that made them, the caller's thread runs all models.
 * Source    Wu et al., TurboMGNN, 2023 (training several GNN models at once). */
#ifndef HALFGRAPH_GROUP_H
#define HALFGRAPH_GROUP_H

#include "halfgraph/step.h"

HG_EXTERN_C_BEGIN

/** Models that train together. */
typedef struct hg_group hg_group;

/** The most steps of a group. */
#define HG_GROUP_MOST 256

/** How a group runs. */
typedef struct hg_group_config {
	size_t size;
	/** how many models run beside one another, at least 1 and never more than there are, whatever
	 * their size; 0 (default): on a CPU as many as it has threads, on a GPU 32, where models that
	 * fill the GPU by themselves run one after the other */
	int branches;
	int eager; /**< 1: capture nothing; default 0 */
} hg_group_config;
/** The defaults of the fields. */
#define HG_GROUP_CONFIG_INIT HG__INIT_ZERO(hg_group_config)

/** Creates a group.
 * @param ctx     the context of all steps.
 * @param steps   host [count], borrowed steps; each has a tape, an optimiser and params that no
 *                other one has, and an arena of its own.
 * @param count   1 to HG_GROUP_MOST.
 * @param config  copied; NULL: HG_GROUP_CONFIG_INIT.
 * @param group   receives the group, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, count or branches is out of range, a step is of
 *         another context, two steps share what they write to, config's size is not set);
 *         HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_group_create(hg_context *ctx, hg_step *const *steps, int64_t count,
                                              const hg_group_config *config, hg_group **group);

/** Frees a group. Its steps stay.
 * @param group  a group or NULL. */
HG_API void hg_group_free(hg_group *group);

/** Queues steps of all models. Asynchronous on a GPU. The first step of each runs alone, call by
 * call.
 * @param group  the group.
 * @param count  number of steps of each model, at least 0.
 * @return HG_OK, also where steps are skipped; HG_ERR_ARG (group is NULL, count below 0); else the
 *         first error of a model: HG_ERR_STATE (parameters were added after hg_optim_create),
 *         HG_ERR_NOMEM, HG_ERR_DEVICE. The models may then have taken different numbers of
 *         steps. */
HG_API HG_NODISCARD hg_status hg_group_run(hg_group *group, int64_t count);

/** How a group is launched. */
typedef struct hg_group_launch {
	size_t size;
	int captured;   /**< 1: the last steps ran as captured work */
	int branches;   /**< models that run beside one another; 0: none has run yet */
	int per_launch; /**< steps of each model in a full launch; 0: nothing is captured */
	/** kernels, copies and fills of one captured step of all models; 0: none is captured */
	int64_t operations;
} hg_group_launch;
/** An empty hg_group_launch with its size set. */
#define HG_GROUP_LAUNCH_INIT HG__INIT_ZERO(hg_group_launch)

/** Reads how a group is launched.
 * @param group   the group.
 * @param launch  receives it; start from HG_GROUP_LAUNCH_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or launch's size is not set). */
HG_API HG_NODISCARD hg_status hg_group_get_launch(const hg_group *group, hg_group_launch *launch);

HG_EXTERN_C_END
#endif
