/* Builds dense counts in host memory and copies them to the device. */
#include "core/plan_dense.h"

#include "core/buffer.h"

size_t hg__dense_size(int64_t graphs, int64_t tiles)
{
	return (size_t)graphs * sizeof(struct hg__dense_graph) +
	       (size_t)tiles * HG__DENSE_WORDS * sizeof(uint32_t);
}

size_t hg__dense_bytes(const struct hg__dense *d)
{
	return d ? hg__dense_size(d->graphs, d->tiles) : 0;
}

void hg__dense_free(hg_context *ctx, struct hg__dense *d)
{
	if (!d)
		return;
	hg__device_free(ctx, d->graph, (size_t)d->graphs * sizeof *d->graph);
	hg__device_free(ctx, d->count, (size_t)d->tiles * HG__DENSE_WORDS * sizeof *d->count);
	hg__host_free(ctx, d, sizeof *d);
}

/* Nodes of a graph; 0 if it is not listed. */
static int32_t nodes_of(const struct hg__dense_source *s, const struct hg__dense_choice *c,
                        int64_t graph)
{
	return c->listed[graph] ? (int32_t)(s->ptr[graph + 1] - s->ptr[graph]) : 0;
}

/* Lists the graphs, the largest first, and those of equal size in the order of the batch. */
static void list_graphs(const struct hg__dense_source *s, const struct hg__dense_choice *c,
                        struct hg__dense_graph *graph)
{
	int64_t next[HG__DENSE_NODES + 2] = {0}, tile[HG__DENSE_NODES + 2] = {0};
	/* next[n] and tile[n]: the number of graphs with more than n nodes, and of their tiles; later
	 * the place of the next graph with n nodes, and of its first tile */
	for (int64_t k = 0; k < s->graphs; k++)
		for (int32_t n = 0; n < nodes_of(s, c, k); n++) {
			const int64_t side = hg__dense_side(nodes_of(s, c, k));
			next[n]++;
			tile[n] += side * side;
		}
	for (int64_t k = 0; k < s->graphs; k++) {
		const int32_t nodes = nodes_of(s, c, k);
		const int64_t side = hg__dense_side(nodes);
		if (nodes == 0)
			continue;
		graph[next[nodes]++] = (struct hg__dense_graph){(int32_t)s->ptr[k], nodes, tile[nodes]};
		tile[nodes] += side * side;
	}
}

/* Adds entry (i, j) to the counts of a graph. */
static void add_entry(uint32_t *count, int32_t side, int32_t i, int32_t j)
{
	const int32_t tile = i / HG__DENSE_TILE * side + j / HG__DENSE_TILE, row = i % HG__DENSE_TILE,
	              column = j % HG__DENSE_TILE;
	const int32_t word = tile * HG__DENSE_WORDS + 4 * (row % 8) + column % 8 / 2,
	              shift = 4 * (column % 2 + 2 * (row / 8) + 4 * (column / 8));
	count[word] += UINT32_C(1) << shift;
}

static void count_entries(const struct hg__dense_source *s, int64_t graphs,
                          const struct hg__dense_graph *graph, uint32_t *count)
{
	for (int64_t k = 0; k < graphs; k++) {
		const int32_t first = graph[k].first, side = hg__dense_side(graph[k].nodes);
		for (int32_t i = 0; i < graph[k].nodes; i++)
			for (int64_t e = s->rowptr[first + i]; e < s->rowptr[first + i + 1]; e++)
				add_entry(count + graph[k].tile * HG__DENSE_WORDS, side, i, s->col[e] - first);
	}
}

/* Copies both arrays to the device. */
static hg_status install(hg_context *ctx, const struct hg__dense_choice *c,
                         const struct hg__dense_graph *graph, const uint32_t *count,
                         struct hg__dense **dense)
{
	struct hg__buffer self, device_graph = {0}, device_count = {0};
	HG__TRY(hg__buffer_host(ctx, 1, sizeof **dense, "dense counts", &self));
	struct hg__dense *d = self.data;
	hg_status status = hg__buffer_upload(ctx, c->graphs, sizeof *graph, graph,
	                                     "dense counts: graphs", &device_graph);
	if (status == HG_OK)
		status = hg__buffer_upload(ctx, c->tiles * HG__DENSE_WORDS, sizeof *count, count,
		                           "dense counts: counts", &device_count);
	*d = (struct hg__dense){c->graphs, c->tiles, c->most_nodes, device_graph.data,
	                        device_count.data};
	if (status < 0)
		hg__dense_free(ctx, d);
	else
		*dense = d;
	return status;
}

hg_status hg__dense_build(hg_context *ctx, const struct hg__dense_source *s,
                          const struct hg__dense_choice *c, struct hg__dense **dense)
{
	struct hg__buffer graph, count = {0};
	*dense = NULL;
	HG__TRY(hg__buffer_host(ctx, c->graphs, sizeof(struct hg__dense_graph),
	                        "dense counts: host graphs", &graph));
	hg_status status = hg__buffer_host(ctx, c->tiles * HG__DENSE_WORDS, sizeof(uint32_t),
	                                   "dense counts: host counts", &count);
	if (status == HG_OK) {
		list_graphs(s, c, graph.data);
		count_entries(s, c->graphs, graph.data, count.data);
		status = install(ctx, c, graph.data, count.data, dense);
	}
	hg__buffer_free(ctx, &graph);
	hg__buffer_free(ctx, &count);
	return status;
}
