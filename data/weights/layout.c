/* Where each weight of a model lies in a state dict of PyTorch Geometric: names as its model
 * classes have them (GCN, GIN, GAT: convs.0, norms.0, lin). */
#include "weights/layout.h"

#include <stdio.h>
#include <string.h>

/* `ours` follows "convL.", `theirs` follows "convs.L" if it begins with a dot; %d is L. The
 * weight's columns are divided into `slices`, of which this is one. `model` may be several
 * names. */
struct row {
	const char *model, *ours, *theirs;
	enum hg__form form;
	int slice, slices;
};
static const struct row rows[] = {
    {"gcn", "weight", ".lin.weight", HG__LINEAR, 0, 1},
    {"gcn", "bias", ".bias", HG__VECTOR, 0, 1},
    {"gat", "weight", ".lin.weight", HG__LINEAR, 0, 1},
    {"gat", "att_src", ".att_src", HG__HEADS, 0, 1},
    {"gat", "att_dst", ".att_dst", HG__HEADS, 0, 1},
    {"gat", "bias", ".bias", HG__VECTOR, 0, 1},
    /* lin_l makes the rows of the sources, lin_r those of the destinations */
    {"gatv2", "ends.weight", ".lin_l.weight", HG__LINEAR, 1, 2},
    {"gatv2", "ends.bias", ".lin_l.bias", HG__VECTOR, 1, 2},
    {"gatv2", "ends.weight", ".lin_r.weight", HG__LINEAR, 0, 2},
    {"gatv2", "ends.bias", ".lin_r.bias", HG__VECTOR, 0, 2},
    {"gatv2", "att", ".att", HG__HEADS, 0, 1},
    {"gatv2", "bias", ".bias", HG__VECTOR, 0, 1},
    /* lin_l takes the mean of the neighbours, lin_r the node itself; the sum has one bias */
    {"sage", "neighbors.weight", ".lin_l.weight", HG__LINEAR, 0, 1},
    {"sage", "root.bias", ".lin_l.bias", HG__VECTOR, 0, 1},
    {"sage", "root.weight", ".lin_r.weight", HG__LINEAR, 0, 1},
    {"sgc", "weight", ".lin.weight", HG__LINEAR, 0, 1},
    {"sgc", "bias", ".lin.bias", HG__VECTOR, 0, 1},
    {"appnp", "weight", "lins.%d.weight", HG__LINEAR, 0, 1},
    {"appnp", "bias", "lins.%d.bias", HG__VECTOR, 0, 1},
    {"agnn", "beta", ".beta", HG__SCALAR, 0, 1},
    {"gin gine", "eps", ".eps", HG__SCALAR, 0, 1},
    {"gine", "edge.weight", ".lin.weight", HG__LINEAR, 0, 1},
    {"gine", "edge.bias", ".lin.bias", HG__VECTOR, 0, 1},
    {"gin gine", "mlp1.weight", ".nn.lins.0.weight", HG__LINEAR, 0, 1},
    {"gin gine", "bn1.running_mean", ".nn.lins.0.bias", HG__ABSORB, 0, 1},
    {"gin gine", "bn1.gamma", ".nn.norms.0.module.weight", HG__VECTOR, 0, 1},
    {"gin gine", "bn1.beta", ".nn.norms.0.module.bias", HG__VECTOR, 0, 1},
    {"gin gine", "bn1.running_mean", ".nn.norms.0.module.running_mean", HG__VECTOR, 0, 1},
    {"gin gine", "bn1.running_var", ".nn.norms.0.module.running_var", HG__VECTOR, 0, 1},
    {"gin gine", "mlp2.weight", ".nn.lins.1.weight", HG__LINEAR, 0, 1},
    {"gin gine", "bn2.running_mean", ".nn.lins.1.bias", HG__ABSORB, 0, 1},
    {"gin gine", "bn2.gamma", "norms.%d.module.weight", HG__VECTOR, 0, 1},
    {"gin gine", "bn2.beta", "norms.%d.module.bias", HG__VECTOR, 0, 1},
    {"gin gine", "bn2.running_mean", "norms.%d.module.running_mean", HG__VECTOR, 0, 1},
    {"gin gine", "bn2.running_var", "norms.%d.module.running_var", HG__VECTOR, 0, 1},
    {"gt", "qkv.weight", ".lin_query.weight", HG__LINEAR, 0, 3},
    {"gt", "qkv.bias", ".lin_query.bias", HG__VECTOR, 0, 3},
    {"gt", "qkv.weight", ".lin_key.weight", HG__LINEAR, 1, 3},
    {"gt", "qkv.bias", ".lin_key.bias", HG__VECTOR, 1, 3},
    {"gt", "qkv.weight", ".lin_value.weight", HG__LINEAR, 2, 3},
    {"gt", "qkv.bias", ".lin_value.bias", HG__VECTOR, 2, 3},
    {"gt", "proj.weight", "proj.%d.weight", HG__LINEAR, 0, 1},
    {"gt", "proj.bias", "proj.%d.bias", HG__VECTOR, 0, 1},
    {"gt", "norm1.gamma", "norm1.%d.weight", HG__VECTOR, 0, 1},
    {"gt", "norm1.beta", "norm1.%d.bias", HG__VECTOR, 0, 1},
    {"gt", "norm1.running_mean", "norm1.%d.running_mean", HG__VECTOR, 0, 1},
    {"gt", "norm1.running_var", "norm1.%d.running_var", HG__VECTOR, 0, 1},
    {"gt", "ff1.weight", "ff1.%d.weight", HG__LINEAR, 0, 1},
    {"gt", "ff1.bias", "ff1.%d.bias", HG__VECTOR, 0, 1},
    {"gt", "ff2.weight", "ff2.%d.weight", HG__LINEAR, 0, 1},
    {"gt", "ff2.bias", "ff2.%d.bias", HG__VECTOR, 0, 1},
    {"gt", "norm2.gamma", "norm2.%d.weight", HG__VECTOR, 0, 1},
    {"gt", "norm2.beta", "norm2.%d.bias", HG__VECTOR, 0, 1},
    {"gt", "norm2.running_mean", "norm2.%d.running_mean", HG__VECTOR, 0, 1},
    {"gt", "norm2.running_var", "norm2.%d.running_var", HG__VECTOR, 0, 1},
    /* of every model on graphs, one head for each layer */
    {NULL, "head.weight", "heads.%d.weight", HG__LINEAR, 0, 1},
    {NULL, "head.bias", "heads.%d.bias", HG__VECTOR, 0, 1},
};
#define ROWS (sizeof rows / sizeof rows[0])

/* Before and after all layers. Where the input has a head, it is the first of the heads. */
static const struct row ends[] = {{NULL, "input.head.weight", "heads.0.weight", HG__LINEAR, 0, 1},
                                  {NULL, "input.head.bias", "heads.0.bias", HG__VECTOR, 0, 1},
                                  {NULL, "embed.weight", "embed.weight", HG__LINEAR, 0, 1},
                                  {NULL, "embed.bias", "embed.bias", HG__VECTOR, 0, 1},
                                  {NULL, "head.weight", "lin.weight", HG__LINEAR, 0, 1},
                                  {NULL, "head.bias", "lin.bias", HG__VECTOR, 0, 1}};
#define ENDS (sizeof ends / sizeof ends[0])

int hg__first_head(const hg_model_config *model)
{
	return model->readout >= 0 && model->readout_layers == HG_READOUT_ALL;
}

static const struct hg__weight *find(const struct hg__weights *w, const char *name)
{
	for (int64_t i = 0; i < w->count; i++)
		if (strcmp(w->item[i].name, name) == 0)
			return &w->item[i];
	return NULL;
}

static int64_t heads_of(const hg_model_config *model, int layer)
{
	return layer + 1 == model->layers && model->readout < 0 ? model->out_heads : model->heads;
}

static void set_shape(struct hg__layer_part *p, const hg_model_config *model)
{
	const int64_t heads = p->form == HG__HEADS ? heads_of(model, p->layer) : 1;
	p->rank = p->form == HG__LINEAR ? 2 : p->form == HG__HEADS ? 3 : 1;
	p->dim[0] = p->form == HG__HEADS ? 1 : p->cols;
	p->dim[1] = p->form == HG__HEADS ? heads : p->ours->rows;
	p->dim[2] = p->cols / (heads > 0 ? heads : 1);
}

/* Is the name a word of the list? */
static int is_among(const char *name, const char *list)
{
	const size_t length = strlen(name);
	for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
		if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
			return 1;
	return 0;
}

/* Adds the part of a row, if the model has such a weight. layer -1: of no layer. */
static void add(const struct hg__weights *w, const hg_model_config *model, const struct row *row,
                int layer, struct hg__layout *to)
{
	char name[96];
	if (row->model && !is_among(model->name, row->model))
		return;
	if (layer < 0)
		(void)snprintf(name, sizeof name, "%s", row->ours);
	else
		(void)snprintf(name, sizeof name, "conv%d.%s", layer, row->ours);
	const struct hg__weight *ours = find(w, name);
	if (!ours)
		return;
	struct hg__layer_part *p = &to->part[to->count++];
	*p = (struct hg__layer_part){.ours = ours,
	                             .first = ours->cols / row->slices * row->slice,
	                             .cols = ours->cols / row->slices,
	                             .form = row->form,
	                             .layer = layer};
	const char *number = strstr(row->theirs, "%d");
	if (*row->theirs == '.')
		(void)snprintf(p->name, sizeof p->name, "convs.%d%s", layer, row->theirs);
	else if (number)
		(void)snprintf(p->name, sizeof p->name, "%.*s%d%s", (int)(number - row->theirs),
		               row->theirs, layer + (row->model ? 0 : hg__first_head(model)), number + 2);
	else
		(void)snprintf(p->name, sizeof p->name, "%s", row->theirs);
	set_shape(p, model);
}

/* Every column of every weight is in one part. */
static hg_status check_covered(const struct hg__weights *w, const struct hg__layout *layout,
                               const hg_model_config *model, const char *who, char *message)
{
	for (int64_t i = 0; i < w->count; i++) {
		int64_t cols = 0;
		for (int64_t k = 0; k < layout->count; k++)
			if (layout->part[k].ours == &w->item[i] && layout->part[k].form != HG__ABSORB)
				cols += layout->part[k].cols;
		if (cols != w->item[i].cols)
			return hg__data_fail(message, HG_ERR_ARG,
			                     "%s: %.80s is no weight of a %.16s with %d layers", who,
			                     w->item[i].name, model->name, model->layers);
	}
	return HG_OK;
}

hg_status hg__layout_make(const struct hg__weights *w, const hg_model_config *model,
                          const char *who, struct hg__layout *layout, char *message)
{
	*layout = (struct hg__layout){.part = NULL};
	if (!model->name || model->layers < 1 || model->layers > 1000)
		return hg__data_fail(message, HG_ERR_ARG, "%s: the model's name or layers are not set",
		                     who);
	HG__TRY(hg__data_alloc((int64_t)ROWS * model->layers + (int64_t)ENDS, sizeof *layout->part,
	                       "a layout of weights", (void **)&layout->part, message));
	for (size_t k = 0; k < ENDS; k++)
		add(w, model, &ends[k], -1, layout);
	for (int layer = 0; layer < model->layers; layer++)
		for (size_t k = 0; k < ROWS; k++)
			add(w, model, &rows[k], layer, layout);
	for (int64_t i = 0; i < layout->count; i++)
		if (layout->part[i].form == HG__HEADS &&
		    layout->part[i].dim[1] * layout->part[i].dim[2] != layout->part[i].cols)
			return hg__data_fail(message, HG_ERR_ARG, "%s: %.80s has no %lld heads", who,
			                     layout->part[i].ours->name, (long long)layout->part[i].dim[1]);
	return check_covered(w, layout, model, who, message);
}
