/** @file
 * Checkpoints: the state of a training run (state.h) as a file (data/FORMAT.md).
 *
 * Threads   Files: as file.h says.
 * Errors    `message` is as in file.h. */
#ifndef HALFGRAPH_CHECKPOINT_H
#define HALFGRAPH_CHECKPOINT_H

#include "halfgraph/file.h"
#include "halfgraph/predictor.h"
#include "halfgraph/state.h"
#include "halfgraph/train.h"

HG_EXTERN_C_BEGIN

/** Writes a state (state.h) as a checkpoint, one HDF5 file, atomically (hg_file_write).
 * @param state    the state.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or the state is not sound: hg_state_fault);
 *         HG_ERR_IO (it cannot be written); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_checkpoint_write(const hg_state *state, const char *path,
                                                  char *message);

/** Reads a checkpoint and checks everything in it. Messages about the state name the file.
 * @param path     the file.
 * @param state    receives the state, owned by the caller (hg_state_free).
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_IO (it cannot be read); HG_ERR_FORMAT (it
 *         is not a checkpoint, or damaged); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_checkpoint_read(const char *path, hg_state **state, char *message);

/** Writes the state of a training run: hg_train_get_state and hg_checkpoint_write.
 * @param train    the run.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; the errors of both. */
HG_API HG_NODISCARD hg_status hg_checkpoint_save(hg_train *train, const char *path, char *message);

/** Puts a checkpoint into a training run: hg_checkpoint_read and hg_train_set_state. hg_train_run
 * then goes on from it.
 * @param path     the file.
 * @param train    the run; unchanged on failure.
 * @param message  receives the reason of a failure, or for HG_INFO_DIFFERS what differs; or NULL.
 * @return HG_OK; HG_INFO_DIFFERS (it is in place, but the run has other settings); the errors of
 *         both. */
HG_API HG_NODISCARD hg_status hg_checkpoint_load(const char *path, hg_train *train, char *message);

/** Writes the model of a run to predict with: the weights of the best epoch (the last ones, where
 * no epoch was evaluated), all settings and the history, as a checkpoint without the optimiser's
 * moments: a quarter of the weights with Adam. No run goes on from it.
 * @param train    the run.
 * @param path     the file, replaced atomically (hg_file_write).
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; the errors of hg_train_get_state and hg_checkpoint_write. */
HG_API HG_NODISCARD hg_status hg_model_save(hg_train *train, const char *path, char *message);

/** Reads a trained model: hg_checkpoint_read and hg_predictor_create. The file may be of
 * hg_model_save or of hg_checkpoint_save; of both it has the weights of the best epoch, so it gives
 * what the run reported.
 * @param context    the context, which stays open until the predictor is freed.
 * @param path       the file.
 * @param predictor  receives the predictor, owned by the caller (hg_predictor_free); NULL on
 *                   failure.
 * @param message    receives the reason of a failure, or for HG_INFO_DIFFERS what differs; or NULL.
 * @return HG_OK; HG_INFO_DIFFERS (as hg_predictor_create); HG_ERR_ARG (a pointer is NULL, or the
 *         file is not of a run: a setting is missing); the errors of both. */
HG_API HG_NODISCARD hg_status hg_model_load(hg_context *context, const char *path,
                                            hg_predictor **predictor, char *message);

HG_EXTERN_C_END
#endif
