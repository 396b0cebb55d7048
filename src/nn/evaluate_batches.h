#ifndef HG_NN_EVALUATE_BATCHES_H
#define HG_NN_EVALUATE_BATCHES_H

#include "halfgraph/model.h"
#include "nn/batches_schedule.h"

HG_EXTERN_C_BEGIN

/* The logits of all graphs of a dataset, computed for some graphs at a time: padded batches
 * (batches_padded.h) of all graphs in their order, the same ones every time. They have two shapes,
 * that of the last batch and one that holds each of the others. */
struct hg__evaluation_part {
	struct hg__padded_batch batch;
	hg_tape *tape;
	hg_var logits;
};
struct hg__evaluation_batches {
	const struct hg__padded *padded; /* borrowed; NULL: there are none */
	struct hg__schedule schedule;
	struct hg__buffer lists, block, arena; /* device; both parts lie in the same block and arena */
	struct hg__evaluation_part part[2];    /* of all batches but the last, and of the last */
	hg_tensor *logits; /* [graphs of the dataset, outputs]; NULL: making all this has failed */
};

/* The graphs of a batch where the caller does not say how many: those of about 2^20 nodes, enough
 * for a GPU to be busy, or of fewer where there are more than 64 features or many edges; but not
 * fewer than the batches of the training have. */
int64_t hg__evaluation_graphs(const hg_batches *all);
/* graphs: of a batch, fewer than the dataset has. Tapes for evaluations have been compiled on the
 * graph for which `padded` was made. After a failure, too, hg__evaluation_batches_fini frees
 * everything. */
HG_NODISCARD hg_status hg__evaluation_batches_init(struct hg__evaluation_batches *batches,
                                                   hg_params *params, hg_model *model,
                                                   const struct hg__padded *padded, int64_t graphs);
void hg__evaluation_batches_fini(struct hg__evaluation_batches *batches);
/* Queues the forward passes of all batches. They can be captured. */
HG_NODISCARD hg_status hg__evaluation_batches_forward(const struct hg__evaluation_batches *batches);

HG_EXTERN_C_END
#endif
