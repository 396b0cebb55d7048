/** @file
 * Weights as safetensors files, which PyTorch and other programs read and write. Read are tensors
 * of types F32, F16, BF16 and F64 (rounded to f32), written is F32, so that a file gives the master
 * weights back bit for bit.
 *
 * With a model's configuration names and layout are those of a state dict of PyTorch Geometric, as
 * its model classes (GCN, GIN, GAT) have them; without one they are those of hg_params. Products
 * are transposed: Linear.weight is [outputs, inputs]. L is a layer, 0, 1, ..:
 *
 *     gcn     convL.weight, bias            convs.L.lin.weight, bias                    GCNConv
 *     gat     convL.weight, bias            convs.L.lin.weight, bias                    GATConv
 *             convL.att_src, att_dst        convs.L.att_src, att_dst   [1, heads, width]
 *     gatv2   convL.ends.weight, bias       convs.L.lin_r.*, lin_l.*, side by side      GATv2Conv
 *             convL.att, bias               convs.L.att [1, heads, width], bias
 *     gin     convL.eps                     convs.L.eps                                 GINConv
 *             convL.mlp1.weight             convs.L.nn.lins.0.weight
 *             convL.bn1.*                   convs.L.nn.norms.0.module.*
 *             convL.mlp2.weight             convs.L.nn.lins.1.weight
 *             convL.bn2.*                   norms.L.module.*
 *     agnn    convL.beta                    convs.L.beta                                AGNNConv
 *     sage    convL.neighbors.weight        convs.L.lin_l.weight                        SAGEConv
 *             convL.root.weight, bias       convs.L.lin_r.weight, lin_l.bias
 *     sgc     convL.weight, bias            convs.L.lin.weight, bias                    SGConv
 *     appnp   convL.weight, bias            lins.L.weight, bias                         Linear
 *     gt      convL.qkv.weight, bias        convs.L.lin_query.*, .lin_key.*,   TransformerConv
 *                                           .lin_value.*, side by side
 *             convL.proj.*, norm1.*, ..     proj.L.*, norm1.L.*, ff1.L.*, ff2.L.*, norm2.L.*
 *     embed.*, head.*                       embed.*, lin.*
 *     convL.head.* (graph task)             heads.L.*
 *
 * A norm's gamma and beta are weight and bias. The biases that PyTorch has in front of a batch norm
 * (convs.L.nn.lins.0.bias) are written as zeros; read, the running mean absorbs them, which changes
 * no output. num_batches_tracked is neither written nor needed.
 *
 * Where a file has other names for its layers, the structure decides: every module that has the
 * tensors of the model's class is a layer, and layers, other products and norms are taken in the
 * natural order of their names (conv2 before conv10). In a GINConv any Sequential of Linear,
 * BatchNorm1d, ReLU, Linear fits, with the second BatchNorm1d at its end or outside.
 *
 * What makes a class compute the same: GCNConv (HG_NORM_BOTH on undirected graphs, HG_NORM_IN on
 * others, HG_NORM_WEIGHTED on those with weights), GATConv(concat = False in the last layer),
 * GATv2Conv likewise, GIN(norm = "batch_norm", jk = "last"), TransformerConv(root_weight = False);
 * self loops are part of the graph here.
 *
 * Threads   Files: as file.h says.
 * Errors    `message` is as in file.h. */
#ifndef HALFGRAPH_WEIGHTS_H
#define HALFGRAPH_WEIGHTS_H

#include "halfgraph/file.h"
#include "halfgraph/model.h"
#include "halfgraph/state.h"

HG_EXTERN_C_BEGIN

/** Writes master weights and buffers as a safetensors file, atomically. Waits for the device.
 * @param params   the params.
 * @param model    names and layout of PyTorch Geometric, for the params of one such model
 *                 (hg_model_get_config); NULL: names and shapes as they are.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or a parameter is not of such a model);
 *         HG_ERR_IO (it cannot be written); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_params_export(const hg_params *params,
                                               const hg_model_config *model, const char *path,
                                               char *message);

/** Reads weights into params: every parameter has a tensor, and every tensor a parameter. A file of
 * hg_params_export without a model is recognised, and its names and shapes are taken as they are.
 * Tapes that are recorded already assume how large weights are (HG_WEIGHT_ROOM): import before
 * recording, or into a state.
 * @param params   the params; unchanged on failure, unless the device fails.
 * @param model    as for hg_params_export.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or a parameter is not of such a model); HG_ERR_IO
 *         (it cannot be read); HG_ERR_FORMAT (it is not a safetensors file, or damaged, or a tensor
 *         is of another type); HG_ERR_SHAPE (layers, names or shapes do not fit: the message has
 *         both); HG_ERR_RANGE (a finite value does not fit an f16 working copy); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_params_import(hg_params *params, const hg_model_config *model,
                                               const char *path, char *message);

/** Writes the weights of a state's best epoch, or its masters where none is known, as
 * hg_params_export does. The state's settings tell the model; without them names are as they are.
 * @param state    the state, such as hg_checkpoint_read gives.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; the errors of hg_params_export. */
HG_API HG_NODISCARD hg_status hg_state_export(const hg_state *state, const char *path,
                                              char *message);

/** Reads weights into the masters of a state, for hg_train_set_state or hg_predictor_create: a run
 * begins with them. Moments become 0, and so do best epoch and history; tapes find out how large
 * the weights are.
 * @param state    the state, with the tensors and settings of a model; unchanged on failure.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; the errors of hg_params_import but HG_ERR_RANGE. */
HG_API HG_NODISCARD hg_status hg_state_import(hg_state *state, const char *path, char *message);

HG_EXTERN_C_END
#endif
