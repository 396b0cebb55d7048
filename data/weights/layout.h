#ifndef HG_DATA_WEIGHTS_LAYOUT_H
#define HG_DATA_WEIGHTS_LAYOUT_H

#include "weights/safetensors.h"

/* The weights of a model in host memory, as its params or a state have them: row-major, a product's
 * weight [inputs, outputs]. */
struct hg__weight {
	const char *name;
	int64_t rows, cols;
	float *values;
};
struct hg__weights {
	struct hg__weight *item; /* [count] */
	int64_t count;
};

/* How a weight lies in a state dict of PyTorch Geometric. */
enum hg__form {
	HG__LINEAR, /* [outputs, inputs], the transpose */
	HG__VECTOR, /* [columns] */
	HG__HEADS,  /* [1, heads, columns of a head] */
	HG__SCALAR, /* [1] */
	HG__ABSORB  /* [columns]: the bias in front of a batch norm. Ours has none: a mean absorbs it */
};

/* One tensor of a state dict, and the columns first .. first + cols - 1 of a weight that it
 * holds. */
struct hg__layer_part {
	const struct hg__weight *ours; /* of HG__ABSORB: the running mean */
	int64_t first, cols;
	enum hg__form form;
	char name[96]; /* as hg_params_export writes it */
	int layer;     /* -1: of none */
	int rank;
	int64_t dim[3];
};
struct hg__layout {
	struct hg__layer_part *part;
	int64_t count;
};

/* Number of the first layer's head among the heads: 1 if the input has one. */
int hg__first_head(const hg_model_config *model);

/* HG_ERR_ARG: the weights are not those of such a model. The caller frees layout->part, after a
 * failure, too. `who` begins messages. */
HG_NODISCARD hg_status hg__layout_make(const struct hg__weights *weights,
                                       const hg_model_config *model, const char *who,
                                       struct hg__layout *layout, char *message);

/* match[i] := the tensor of the file for part i; NULL for an HG__ABSORB that the file lacks. The
 * shapes are right, and every tensor has a place. */
HG_NODISCARD hg_status hg__layout_match(const struct hg__layout *layout,
                                        const hg_model_config *model,
                                        const struct hg__safetensors *file,
                                        const struct hg__st_tensor **match);

#endif
