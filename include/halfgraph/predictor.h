/** @file
 * A trained model that predicts: made from the state of a run (state.h), without its data and its
 * optimiser. It has the weights of the best epoch, and so gives what the run reported.
 *
 *     hg_model_load(context, "gcn.h5", &predictor, message)             (checkpoint.h)
 *     hg_predictor_run(predictor, &input, row, logits)                  on any graph that fits
 *     hg_predictor_embed(predictor, &input, HG_EMBED_LAST, 0, h, row, logits)   with an embedding
 *
 * Owner     A predictor owns its parameters and its model and borrows nothing but the context.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_PREDICTOR_H
#define HALFGRAPH_PREDICTOR_H

#include "halfgraph/model.h"
#include "halfgraph/state.h"
#include "halfgraph/train.h"

HG_EXTERN_C_BEGIN

/** A trained model. */
typedef struct hg_predictor hg_predictor;

/** Makes a predictor from the state of an hg_train: its model and its policy from the settings, the
 * weights of the best epoch, or the last ones where no epoch was evaluated, and what its tapes
 * assumed. On the same graph and features, on the same device, its logits have the same bits as
 * those of hg_train_predict after the run.
 * @param context    the context, which stays open until the predictor is freed. Its seed does not
 *                   matter.
 * @param state      the state, copied as far as it is needed.
 * @param predictor  receives the predictor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_INFO_DIFFERS (it can be used, but library, device or separate_ops are others
 *         than those of the run, so the last bits may be: hg_context_error names the first one);
 *         HG_ERR_ARG (a pointer is NULL, hg_state_fault, or a setting of the model or the policy is
 *         missing or out of its range: the state is not of an hg_train); HG_ERR_SHAPE (parameters
 *         do not fit the settings: the message names them); HG_ERR_UNSUPPORTED (it promotes an op
 *         that this library lacks); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_predictor_create(hg_context *context, const hg_state *state,
                                                  hg_predictor **predictor);

/** Frees a predictor with its parameters and its model.
 * @param predictor  a predictor or NULL. */
HG_API void hg_predictor_free(hg_predictor *predictor);

/** Predicts every row: records the model on the graph, runs it once and forgets it. Waits for the
 * device. Features must be prepared as those of the training (hg_predictor_prepare), and self loops
 * belong to the graph.
 *
 * Shapes    n rows: nodes, or graphs for a graph task; C columns: out_features.
 * Cost      A recording, which measures the graph, and a forward pass.
 * @param predictor   the predictor.
 * @param input       what the model reads, borrowed during the call.
 * @param prediction  host [n], receives the first largest logit that is a number; -1 where none is.
 *                    May be NULL where the run learnt targets.
 * @param logits      host f32 [n, C], receives the logits, or the predicted real targets (on their
 *                    own scale, as hg_train_predict gives them). May be NULL where the run learnt
 *                    classes.
 * @return HG_OK; HG_ERR_ARG (a pointer that must not be is NULL, or the errors of hg_model_record);
 *         HG_ERR_SHAPE (features and model do not fit: the message has both numbers); HG_ERR_RANGE
 *         (the policy refuses a narrowing on this graph); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_predictor_run(hg_predictor *predictor, const hg_model_input *input,
                                               int32_t *prediction, float *logits);

/** The embedding that the last linear layer makes logits of: that of the last layer in a graph task
 * and of a model with a head, of the last but one in others. */
#define HG_EMBED_LAST (-1)

/** The number of columns of an embedding, and whether a model has it.
 * @param predictor  a predictor or NULL.
 * @param layer      as in hg_predictor_embed.
 * @return the columns; 0 where there is no such embedding, and for NULL. */
HG_API int64_t hg_predictor_embedding_cols(const hg_predictor *predictor, int layer);

/** Predicts as hg_predictor_run, and gives what a layer computed on the way: H_layer of the
 * equations in model.h, as an evaluation of the run has it, bit for bit, in f32. Layer 1 is the
 * first one, whose parameters are called conv0; its result is H_1. Layer 0 is H_0, which a model
 * has that embeds the features (agnn, gine, gt). In a node task without a head the result of the
 * last layer is the logits.
 *
 * Shapes    n nodes; b rows of a prediction: graphs for a graph task, else nodes; d columns:
 *           hg_predictor_embedding_cols.
 * Cost      That of hg_predictor_run; the memory of H_layer is not reused on the way.
 * @param predictor   the predictor.
 * @param input       what the model reads, borrowed during the call.
 * @param layer       0 to layers, or HG_EMBED_LAST.
 * @param of_nodes    of a graph task: 1: H_layer itself; 0: its readout, a row per graph. Without
 *                    meaning in a node task.
 * @param embedding   host f32 [b, d], or [n, d] with of_nodes; receives the embedding.
 * @param prediction  as in hg_predictor_run, or NULL.
 * @param logits      as in hg_predictor_run, or NULL.
 * @return HG_OK; the errors of hg_predictor_run; HG_ERR_ARG also where the model has no such
 *         embedding (the message says which it has). */
HG_API HG_NODISCARD hg_status hg_predictor_embed(hg_predictor *predictor,
                                                 const hg_model_input *input, int layer,
                                                 int of_nodes, float *embedding,
                                                 int32_t *prediction, float *logits);

/** What the state told of the run: its settings, its best epoch, what its columns were standardised
 * with and the names of its classes, without tensors and history.
 * @param predictor  a predictor or NULL.
 * @return the state, borrowed until the predictor is freed; NULL for NULL. */
HG_API const hg_state *hg_predictor_state(const hg_predictor *predictor);

/** What the run minimised, which tells what is predicted: classes, several labels or real targets.
 * @param predictor  a predictor or NULL.
 * @return the loss; HG_LOSS_CROSS_ENTROPY for NULL. */
HG_API hg_loss hg_predictor_loss(const hg_predictor *predictor);

/** The parameters of a predictor, which may be changed.
 * @param predictor  a predictor or NULL.
 * @return the params, borrowed until the predictor is freed; NULL for NULL. */
HG_API hg_params *hg_predictor_params(const hg_predictor *predictor);

/** The model of a predictor, for instance to record it on a tape of one's own.
 * @param predictor  a predictor or NULL.
 * @return the model, borrowed until the predictor is freed; NULL for NULL. */
HG_API hg_model *hg_predictor_model(const hg_predictor *predictor);

HG_EXTERN_C_END
#endif
