/* Attributes and labels of edges move with their edges. */
#include "graph/edge_data.h"

#include <stdlib.h>

struct hg__edge_data hg__edge_data_of(const hg_dataset *d)
{
	return (struct hg__edge_data){d->edges, d->edge_features, d->edge_feat, d->edge_label};
}

int hg__has_edge_data(const hg_dataset *d)
{
	return d->edge_feat || d->edge_label;
}

void hg__edge_data_free(struct hg__edge_data *data)
{
	free(data->feat);
	free(data->label);
	*data = (struct hg__edge_data){0};
}

void hg__edge_data_give(hg_dataset *d, const struct hg__edge_data *data)
{
	free(d->edge_feat);
	free(d->edge_label);
	d->edge_feat = data->feat;
	d->edge_features = data->features;
	d->edge_label = data->label;
}

/* The edge whose data number k of the list has; -1: none. */
static int64_t source_of(const struct hg__edge_data *from, enum hg__beyond beyond, int64_t k)
{
	if (k < from->edges)
		return k;
	return beyond == HG__BEYOND_REVERSED ? k - from->edges : -1;
}

static void copy_edge(const struct hg__edge_data *from, int64_t source, struct hg__edge_data *to,
                      int64_t e)
{
	if (to->label)
		to->label[e] = source >= 0 ? from->label[source] : -1;
	for (int64_t c = 0; to->feat && c < to->features; c++)
		to->feat[e * to->features + c] =
		    source >= 0 ? from->feat[source * from->features + c] : 0.0f;
}

static int is_equal(const struct hg__edge_data *from, int64_t source,
                    const struct hg__edge_data *to, int64_t e)
{
	if (to->label && to->label[e] != from->label[source])
		return 0;
	for (int64_t c = 0; to->feat && c < to->features; c++)
		if (to->feat[e * to->features + c] != from->feat[source * from->features + c])
			return 0;
	return 1;
}

/* *to := memory for `edges` edges with the parts that `from` has. */
static hg_status make_room(const struct hg__edge_data *from, int64_t edges,
                           struct hg__edge_data *to, char *message)
{
	hg_status status = HG_OK;
	*to = (struct hg__edge_data){.edges = edges, .features = from->features};
	if (from->feat)
		status = hg__data_alloc(edges, (size_t)from->features * sizeof *to->feat,
		                        "attributes of edges", (void **)&to->feat, message);
	if (status == HG_OK && from->label)
		status = hg__data_alloc(edges, sizeof *to->label, "labels of edges", (void **)&to->label,
		                        message);
	if (status < 0)
		hg__edge_data_free(to);
	return status;
}

hg_status hg__edge_data_gather(const struct hg__edge_data *from, const int64_t *origin,
                               int64_t listed, enum hg__beyond beyond, struct hg__edge_data *to,
                               int64_t *differing, char *message)
{
	int64_t kept = 0, e = -1, differ = 0;
	for (int64_t k = 0; k < listed; k++)
		kept += origin[k] >= 0;
	HG__TRY(make_room(from, kept, to, message));
	for (int64_t k = 0; k < listed; k++) {
		const int merged = origin[k] < 0;
		const int64_t source = source_of(from, beyond, merged ? ~origin[k] : origin[k]);
		if (!merged)
			copy_edge(from, source, to, ++e);
		else
			differ += source >= 0 && !is_equal(from, source, to, e);
	}
	if (differing)
		*differing = differ;
	return HG_OK;
}
