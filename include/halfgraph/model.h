/** @file
 * Models as compositions of public ops. A model is its parameters and a function that records it on
 * a tape. With G the graph:
 *
 *     H_0 = X,  H_{l+1} = layer_l(G, dropout(H_l)),  l = 0 .. L-1             (all others)
 *     H_0 = relu(dropout(X) W + b),  H_{l+1} = layer_l(G, H_l)               (agnn)
 *     H_0 = dropout(X) W + b,  H_{l+1} = layer_l(G, H_l)                     (gt, gine)
 *     node task    logits = H_L                                        (all others)
 *                  logits = dropout(H_L) W + b                               (gin, gine, agnn, gt)
 *     graph task   logits = sum over l of dropout(readout(H_{l+1})) W_l + b_l, of all layers or of
 *                  the last one, and with the input + readout(H_0) W_in + b_in, as `readout_layers`
 *                  says; the input's term has dropout(X) where layers read that, else dropout of
 *                  the readout (Xu et al. 2019: every depth contributes)
 *
 *     gcn   H' = relu(A~ H W + b), without relu in the last layer of a node task;
 *           A~ is A scaled as `norm` says (Kipf, Welling 2017)
 *     gin   H' = relu(BN2(relu(BN1(((1 + eps) H + lambda agg(H)) W1)) W2)), agg = sum or mean over
 *           the neighbours (Xu, Hu, Leskovec, Jegelka 2019)
 *     gine  H' as gin, with S for (1 + eps) H + lambda agg(H):  S_i = (1 + eps) D_i + sum or mean
 *           over the edges e = (i, j) of relu(D_j + Z_e W_e + b_e),  D = dropout(H),  Z the
 *           attributes of the edges; relu(D_j) if edge_features is 0 (Hu et al. 2020)
 *     gat   U = H W,  e_ij = leaky_relu(<a_dst, U_i> + <a_src, U_j>) per head,
 *           p_ij = softmax over the edges of row i of e_ij,
 *           H' = elu(sum over j of p_ij U_j + b), heads side by side; the last layer of a node task
 *           takes their mean and no elu (Velickovic et al. 2018)
 *     gatv2 R | L = H W + w,  e_ij = <a, leaky_relu(R_i + L_j)> per head,  p as gat,
 *           H' = elu(sum over j of p_ij L_j + b), the last layer as gat (Brody, Alon, Yahav 2022)
 *     agnn  e_ij = beta <H_i, H_j> / (|H_i| |H_j|),  p as gat,
 *           H' = sum over j of p_ij H_j (Thekumparampil, Wang, Oh, Li 2018)
 *     gt    Q | K | V = H W + w,  e_ij = <Q_i, K_j> / sqrt(hidden) per head,  p as gat,
 *           A_i = sum over j of p_ij V_j, heads side by side,
 *           R = norm1(H + dropout(A) P + b),  H' = norm2(R + dropout(relu(R F1 + f1)) F2 + f2),
 *           norms of batches or layers as `feature_norm` says (Dwivedi, Bresson 2021)
 *
 *     sage  H'_i = relu(mean over j in N(i) of H_j W_n + H_i W_r + b), without relu in the last
 *           layer of a node task (Hamilton, Ying, Leskovec 2017)
 *     sgc   H' = relu(A~^hops H W + b), A~ as gcn, without relu in the last layer of a node task;
 *           one layer is the published model (Wu et al. 2019)
 *     appnp H' = relu(H W + b), and in the last layer, before the relu of a graph task,
 *           Z_0 = H W + b,  Z_{k+1} = (1 - teleport) A~ Z_k + teleport Z_0,  hops times, A~ as gcn
 *           (Klicpera, Bojchevski, Guennemann 2019)
 *
 * Self loops belong to the graph: hg_graph_add_self_loops (gcn, gat, gatv2, agnn, sgc and appnp
 * want them, gin, gine, gt and sage do not; hg_model_get_info says so). gcn, gin, sage and sgc
 * aggregate before or after the product with W, whichever gathers less. In gatv2, agnn and gt the
 * weights of the graph count: an edge of weight 2 is two edges.
 *
 * Parameters, in this order, for layer L = 0, 1, .. (so convL is conv0, conv1, ..). F is
 * in_features, C is out_features, E is edge_features, H is hidden, K is heads, O is out_heads.
 * `in` is F for L = 0, or `out` behind an embedding, else the `out` of the layer before it. Names
 * are exact: hg_params_find(params, "conv0.weight").
 *
 *     model  name                    shape         working copy  initial values
 *     gcn    convL.weight            [in, out]     state         Glorot uniform
 *            convL.bias              [1, out]      state         0
 *     gin    convL.eps               [1, 1]        f32           0 (only if eps_learnable)
 *            convL.mlp1.weight       [in, out]     state         Glorot uniform
 *            convL.bn1.gamma         [1, out]      f32           1
 *            convL.bn1.beta          [1, out]      f32           0
 *            convL.bn1.running_mean  [1, out]      f32 buffer    0
 *            convL.bn1.running_var   [1, out]      f32 buffer    1
 *            convL.mlp2.weight       [out, out]    state         Glorot uniform
 *            convL.bn2.gamma         [1, out]      f32           1
 *            convL.bn2.beta          [1, out]      f32           0
 *            convL.bn2.running_mean  [1, out]      f32 buffer    0
 *            convL.bn2.running_var   [1, out]      f32 buffer    1
 *     gine   convL.eps               [1, 1]        f32           0 (only if eps_learnable)
 *            convL.edge.weight       [E, in]       state         Glorot uniform (only if E > 0)
 *            convL.edge.bias         [1, in]       state         0 (only if E > 0)
 *            convL.mlp1.weight       [in, out]     state         Glorot uniform
 *            convL.bn1.gamma         [1, out]      f32           1
 *            convL.bn1.beta          [1, out]      f32           0
 *            convL.bn1.running_mean  [1, out]      f32 buffer    0
 *            convL.bn1.running_var   [1, out]      f32 buffer    1
 *            convL.mlp2.weight       [out, out]    state         Glorot uniform
 *            convL.bn2.gamma         [1, out]      f32           1
 *            convL.bn2.beta          [1, out]      f32           0
 *            convL.bn2.running_mean  [1, out]      f32 buffer    0
 *            convL.bn2.running_var   [1, out]      f32 buffer    1
 *     gat    convL.weight            [in, cols]    state         Glorot uniform
 *            convL.att_dst           [1, cols]     state         Glorot uniform
 *            convL.att_src           [1, cols]     state         Glorot uniform
 *            convL.bias              [1, out]      state         0
 *     gatv2  convL.ends.weight       [in, 2 cols]  state         Glorot uniform
 *            convL.ends.bias         [1, 2 cols]   state         0
 *            convL.att               [1, cols]     f32           Glorot uniform
 *            convL.bias              [1, out]      state         0
 *     agnn   convL.beta              [1, 1]        f32           1
 *     gt     convL.qkv.weight        [out, 3 out]  state         Glorot uniform
 *            convL.qkv.bias          [1, 3 out]    state         0
 *            convL.proj.weight       [out, out]    state         Glorot uniform
 *            convL.proj.bias         [1, out]      state         0
 *            convL.norm1.gamma       [1, out]      f32           1
 *            convL.norm1.beta        [1, out]      f32           0
 *            convL.norm1.running_mean  [1, out]    f32 buffer    0 (only if HG_BATCH_NORM)
 *            convL.norm1.running_var   [1, out]    f32 buffer    1 (only if HG_BATCH_NORM)
 *            convL.ff1.weight        [out, 2 out]  state         Glorot uniform
 *            convL.ff1.bias          [1, 2 out]    state         0
 *            convL.ff2.weight        [2 out, out]  state         Glorot uniform
 *            convL.ff2.bias          [1, out]      state         0
 *            convL.norm2.gamma       [1, out]      f32           1
 *            convL.norm2.beta        [1, out]      f32           0
 *            convL.norm2.running_mean  [1, out]    f32 buffer    0 (only if HG_BATCH_NORM)
 *            convL.norm2.running_var   [1, out]    f32 buffer    1 (only if HG_BATCH_NORM)
 *
 *     sage   convL.neighbors.weight  [in, out]     state         Glorot uniform
 *            convL.root.weight       [in, out]     state         Glorot uniform
 *            convL.root.bias         [1, out]      state         0
 *     sgc    convL.weight            [in, out]     state         Glorot uniform
 *            convL.bias              [1, out]      state         0
 *     appnp  convL.weight            [in, out]     state         Glorot uniform
 *            convL.bias              [1, out]      state         0
 *
 *     out    gat, gatv2, gt: K H; others: H.  Last layer of a node task of a model without a head:
 *            C.
 *     cols   K H, head k in columns k H to (k + 1) H - 1.  Last layer of a node task: O C, head k
 *            in columns k C to (k + 1) C - 1.  gatv2: R, then L, each of `cols` columns.
 *
 * Before all layers come the parameters of H_0, and after all layers those that make the logits:
 *
 *     embedding                     embed.weight       [F, out]   state  Glorot uniform
 *                                   embed.bias         [1, out]   state  0
 *     head, node task               head.weight        [out, C]   state  Glorot uniform
 *                                   head.bias          [1, C]     state  0
 *     graph task, HG_READOUT_LAST   head.weight        [out, C]   state  Glorot uniform
 *                                   head.bias          [1, C]     state  0
 *     graph task, HG_READOUT_ALL    input.head.weight  [in, C]    state  Glorot uniform
 *                                   input.head.bias    [1, C]     state  0
 *     graph task, each layer L      convL.head.weight  [out, C]   state  Glorot uniform
 *                                   convL.head.bias    [1, C]     state  0
 *
 * HG_READOUT_LAST has no heads of layers, and HG_READOUT_ALL has those beside that of the input,
 * where `in` is the number of columns of H_0.
 *
 * A weight is [inputs, outputs] in row-major order, the transpose of PyTorch's nn.Linear. Batch
 * norms use eps 1e-5 and momentum 0.5.
 *
 * Owner     A model borrows its params and owns only what it needs to record.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_MODEL_H
#define HALFGRAPH_MODEL_H

#include "halfgraph/graph.h"
#include "halfgraph/param.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/** How a graph transformer normalises features. */
typedef enum hg_feature_norm {
	HG_BATCH_NORM = 0, /**< each column over all rows (hg_batch_norm) */
	HG_LAYER_NORM = 1  /**< each row over its columns (hg_layer_norm) */
} hg_feature_norm;

/** Of which layers a graph task reads graphs out. */
typedef enum hg_readout_layers {
	HG_READOUT_LAYERS = 0, /**< of every layer's result */
	HG_READOUT_LAST = 1,   /**< of the last layer's alone */
	HG_READOUT_ALL = 2     /**< of every layer's and of the input, as Xu et al. 2019 have it */
} hg_readout_layers;

/** What a model is made of; a model ignores the fields of others. Start from
 * hg_model_config_default. Inside an hg_train_config its size must be exact. */
typedef struct hg_model_config {
	size_t size;
	const char *name;     /**< one that hg_model_names lists */
	int64_t in_features;  /**< columns of X, 1 to 2^31 - 1 */
	int64_t out_features; /**< columns of the logits, 1 to 2^31 - 1 */
	int layers;           /**< 1 to 1000; default 2, sgc 1 */
	/** width of a layer, or of a head where hg_model_info.heads is 1, at least 1; default 64, of a
	 * head 8 */
	int hidden;
	/** gat, gatv2, gt: heads of a layer, at least 1; gatv2 and gt: at most HG_ATTENTION_HEADS;
	 * default 8 */
	int heads;
	/** where the equations above say dropout, and before each product that makes logits, in [0, 1);
	 * default 0.5, gat and gatv2 0.6, sgc 0 */
	float dropout;
	/** gcn, sgc, appnp: default HG_NORM_BOTH. On a directed graph that is another model than
	 * PyTorch Geometric's, which is HG_NORM_IN; hg_model_record logs a warning then. With edge
	 * weights PyTorch Geometric's is HG_NORM_WEIGHTED */
	hg_norm norm;
	int eps_learnable;    /**< gin, gine: 1 (default): eps is a parameter; 0: eps = 0 */
	hg_norm aggregate;    /**< gin, gine: HG_NORM_NONE: sum (default), HG_NORM_RIGHT: mean */
	float lambda;         /**< gin: finite factor on the aggregated sum (HalfGNN 2024); default 1 */
	float negative_slope; /**< gat, gatv2: slope of leaky_relu, in [0, 1]; default 0.2 */
	/** gat, gatv2, gt: dropout of p, in [0, 1 - 2^-17); default 0.6, gt 0 */
	float attention_dropout;
	int out_heads; /**< gat, gatv2: heads of the last layer of a node task; default 1 */
	/** -1 (default): node task; else an hg_reduce: graph task */
	int readout;
	hg_feature_norm feature_norm; /**< gt: default HG_BATCH_NORM */
	int hops;       /**< sgc, appnp: aggregations in a row, 1 to 1000; default 2, appnp 10 */
	float teleport; /**< appnp: share of Z_0 in every step, in [0, 1]; default 0.1 */
	/** graph task: default HG_READOUT_LAYERS; HG_READOUT_ALL with HG_REDUCE_MAX needs features that
	 * are dense. A node task has no other */
	hg_readout_layers readout_layers;
	/** gine: columns of the attributes of edges, 0 to 2^31 - 1; default 0: there are none */
	int64_t edge_features;
} hg_model_config;

/** The default configuration of a model; in_features and out_features are 0.
 * @param name  one that hg_model_names lists, borrowed. Another name or NULL is kept, and
 *              hg_model_create refuses it.
 * @return the configuration. */
HG_API hg_model_config hg_model_config_default(const char *name);

/** A model. */
typedef struct hg_model hg_model;

/** What a model reads. Exactly one of x and x_sparse is set, and all belong to the model's context.
 * Inside an hg_train_data its size must be exact. */
typedef struct hg_model_input {
	size_t size;
	hg_graph *graph;    /**< G, square, n nodes; borrowed */
	const hg_tensor *x; /**< features [n, F], f16 or f32; or NULL; borrowed */
	/** the features as a weighted graph [n, F], rows = nodes, columns = features; or NULL;
	 * borrowed */
	hg_graph *x_sparse;
	double x_amax; /**< a bound on |x| for the proofs; below 0 (default): it is measured */
	/** of a model that reads them: attributes of edges [m, K], f16 or f32, row e = edge e of G in
	 * CSR order; borrowed. Other models ignore it */
	const hg_tensor *edge_x;
	double edge_amax; /**< as x_amax, of edge_x */
} hg_model_input;
/** An empty hg_model_input with its size set. */
#define HG_MODEL_INPUT_INIT HG__INIT(hg_model_input, HG__SET(x_amax, -1.0) HG__SET(edge_amax, -1.0))

/** Creates a model and adds its parameters to the params: all of them or, on failure, none.
 * @param params  the params, borrowed.
 * @param config  copied. Fields that a shorter, older struct lacks have their defaults.
 * @param model   receives the model, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, config's size is not set, a field is out of its
 *         range, or a parameter of that name exists: the message names it); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_model_create(hg_params *params, const hg_model_config *config,
                                              hg_model **model);

/** Frees a model. Its parameters stay with the params. Tapes it is recorded on go first.
 * @param model  a model or NULL. */
HG_API void hg_model_free(hg_model *model);

/** The configuration of a model, complete.
 * @param model  a model or NULL.
 * @return the configuration, borrowed; NULL for NULL. */
HG_API const hg_model_config *hg_model_get_config(const hg_model *model);

/** Records a model on a tape. It may be recorded on several tapes, with different graphs.
 *
 * Shapes    The logits are [n, C] for a node task, [graphs, C] for a graph task.
 * Dtypes    Logits: state.
 * Errors    Kept by the tape: HG_ERR_ARG (a pointer is NULL, neither or both of x and x_sparse, no
 *           edge_x where edge_features is not 0, another context), HG_ERR_SHAPE (X is not [n, F],
 *           or edge_x not [m, K]) and those of the ops.
 * @param model  the model; it outlives the tape.
 * @param tape   a tape of the model's params that is not compiled.
 * @param input  what the model reads; what it points to is borrowed until the tape is freed.
 * @return the logits, or an invalid variable. */
HG_API hg_var hg_model_record(hg_model *model, hg_tape *tape, const hg_model_input *input);

/** Records a model on features that the tape computes, or on a variable whose gradient is wanted
 * (hg_tape_variable).
 *
 * Shapes    X [n, F]; the logits as in hg_model_record.
 * Dtypes    Logits: state.
 * Errors    Those of hg_model_record; HG_ERR_ARG also for a model with edge_features.
 * @param model  the model; it outlives the tape.
 * @param tape   a tape of the model's params that is not compiled.
 * @param graph  G, square, n nodes; borrowed until the tape is freed.
 * @param x      X, a variable of the tape.
 * @return the logits, or an invalid variable. */
HG_API hg_var hg_model_record_on(hg_model *model, hg_tape *tape, hg_graph *graph, hg_var x);

/** The layer a parameter belongs to, for instance to give the first layer a weight decay of its
 * own.
 * @param model  the model.
 * @param param  a parameter.
 * @return 0 to layers - 1, 0 also for the embedding; layers for the parameters after all layers
 *         (see the table); -1 if it is not one of this model's. */
HG_API int hg_model_param_layer(const hg_model *model, const hg_param *param);

/** The names of all models.
 * @return a constant array of names that ends with NULL. */
HG_API const char *const *hg_model_names(void);

/** What is particular to a model. */
typedef struct hg_model_info {
	const char *name;  /**< one that hg_model_names lists */
	int self_loops;    /**< 1: every node of its graph should have one (hg_graph_add_self_loops) */
	int heads;         /**< 1: a layer is hg_model_config.heads times as wide as hidden says */
	int edge_features; /**< 1: it reads attributes of edges (hg_model_config.edge_features) */
} hg_model_info;

/** Gives what a program must know of a model to use it. Safe from any thread.
 * @param name  one that hg_model_names lists; or another or NULL.
 * @return a constant; NULL if there is no such model. */
HG_API const hg_model_info *hg_model_get_info(const char *name);

HG_EXTERN_C_END
#endif
