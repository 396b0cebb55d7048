/* Builds dense counts in host memory and copies them to the device. */
#include "core/plan_dense.h"

#include "core/buffer.h"

size_t hg__dense_bytes(const struct hg__dense *d)
{
	if (!d)
		return 0;
	return (size_t)d->graphs * sizeof *d->graph +
	       (size_t)d->tiles * HG__DENSE_WORDS * sizeof *d->count;
}

void hg__dense_free(hg_context *ctx, struct hg__dense *d)
{
	if (!d)
		return;
	hg__device_free(ctx, d->graph, (size_t)d->graphs * sizeof *d->graph);
	hg__device_free(ctx, d->count, (size_t)d->tiles * HG__DENSE_WORDS * sizeof *d->count);
	hg__host_free(ctx, d, sizeof *d);
}

static int32_t nodes_of(const struct hg__dense_source *s, int64_t graph)
{
	return (int32_t)(s->ptr[graph + 1] - s->ptr[graph]);
}

/* Sets graphs, tiles and most_nodes, and returns whether all graphs are small enough and their
 * matrices full enough. */
static int measure(hg_context *ctx, const struct hg__dense_source *s, struct hg__dense *d)
{
	int64_t most = 0;
	for (int64_t k = 0; k < s->graphs; k++) {
		const int64_t nodes = s->ptr[k + 1] - s->ptr[k], side = hg__dense_side(nodes);
		most = nodes > most ? nodes : most;
		d->graphs += nodes > 0;
		d->tiles += side * side;
	}
	if (most > HG__DENSE_NODES) {
		hg__log(ctx, HG_LOG_DEBUG, "graph: no dense counts: a graph has %lld nodes, expected %d",
		        (long long)most, HG__DENSE_NODES);
		return 0;
	}
	d->most_nodes = (int32_t)most;
	const double counts = (double)d->tiles * HG__DENSE_TILE * HG__DENSE_TILE,
	             fill = d->tiles ? (double)(s->rowptr[s->ptr[s->graphs]]) / counts : 0;
	if (fill < HG__DENSE_FILL)
		hg__log(ctx, HG_LOG_DEBUG, "graph: no dense counts: %.4f of them are not 0, expected %.2f",
		        fill, HG__DENSE_FILL);
	return fill >= HG__DENSE_FILL;
}

/* Lists the graphs, the largest first, and those of equal size in the order of the batch. */
static void list_graphs(const struct hg__dense_source *s, struct hg__dense_graph *graph)
{
	int64_t next[HG__DENSE_NODES + 2] = {0}, tile[HG__DENSE_NODES + 2] = {0};
	/* next[n] and tile[n]: the number of graphs with more than n nodes, and of their tiles; later
	 * the place of the next graph with n nodes, and of its first tile */
	for (int64_t k = 0; k < s->graphs; k++)
		for (int32_t n = 0; n < nodes_of(s, k); n++) {
			const int64_t side = hg__dense_side(nodes_of(s, k));
			next[n]++;
			tile[n] += side * side;
		}
	for (int64_t k = 0; k < s->graphs; k++) {
		const int32_t nodes = nodes_of(s, k);
		const int64_t side = hg__dense_side(nodes);
		if (nodes == 0)
			continue;
		graph[next[nodes]++] = (struct hg__dense_graph){(int32_t)s->ptr[k], nodes, tile[nodes]};
		tile[nodes] += side * side;
	}
}

/* Adds entry (i, j) to the counts of a graph. Returns whether the count has room for it. */
static int add_entry(uint32_t *count, int32_t side, int32_t i, int32_t j)
{
	const int32_t tile = i / HG__DENSE_TILE * side + j / HG__DENSE_TILE, row = i % HG__DENSE_TILE,
	              column = j % HG__DENSE_TILE;
	const int32_t word = tile * HG__DENSE_WORDS + 4 * (row % 8) + column % 8 / 2,
	              shift = 4 * (column % 2 + 2 * (row / 8) + 4 * (column / 8));
	if ((count[word] >> shift & 15u) == HG__DENSE_COUNT)
		return 0;
	count[word] += UINT32_C(1) << shift;
	return 1;
}

/* Counts the entries of all graphs. Returns whether each joins two nodes of one graph, and none
 * occurs too often. */
static int count_entries(hg_context *ctx, const struct hg__dense_source *s,
                         const struct hg__dense *d, const struct hg__dense_graph *graph,
                         uint32_t *count)
{
	for (int64_t k = 0; k < d->graphs; k++) {
		const int32_t first = graph[k].first, nodes = graph[k].nodes;
		uint32_t *of_graph = count + graph[k].tile * HG__DENSE_WORDS;
		for (int32_t i = 0; i < nodes; i++)
			for (int64_t e = s->rowptr[first + i]; e < s->rowptr[first + i + 1]; e++) {
				const int32_t j = s->col[e] - first;
				if (j >= 0 && j < nodes && add_entry(of_graph, hg__dense_side(nodes), i, j))
					continue;
				hg__log(ctx, HG_LOG_DEBUG,
				        "graph: no dense counts: entry (%d, %d) leaves its graph or occurs more "
				        "than %d times",
				        first + i, s->col[e], HG__DENSE_COUNT);
				return 0;
			}
	}
	return 1;
}

/* Copies both arrays to the device. */
static hg_status install(hg_context *ctx, const struct hg__dense *measured,
                         const struct hg__dense_graph *graph, const uint32_t *count,
                         struct hg__dense **dense)
{
	struct hg__buffer self, device_graph = {0}, device_count = {0};
	HG__TRY(hg__buffer_host(ctx, 1, sizeof **dense, "dense counts", &self));
	struct hg__dense *d = self.data;
	hg_status status = hg__buffer_upload(ctx, measured->graphs, sizeof *graph, graph,
	                                     "dense counts: graphs", &device_graph);
	if (status == HG_OK)
		status = hg__buffer_upload(ctx, measured->tiles * HG__DENSE_WORDS, sizeof *count, count,
		                           "dense counts: counts", &device_count);
	*d = *measured;
	d->graph = device_graph.data;
	d->count = device_count.data;
	if (status < 0)
		hg__dense_free(ctx, d);
	else
		*dense = d;
	return status;
}

static hg_status count_and_install(hg_context *ctx, const struct hg__dense_source *s,
                                   const struct hg__dense *measured, struct hg__dense **dense)
{
	struct hg__buffer graph, count = {0};
	HG__TRY(hg__buffer_host(ctx, measured->graphs, sizeof(struct hg__dense_graph),
	                        "dense counts: host graphs", &graph));
	hg_status status = hg__buffer_host(ctx, measured->tiles * HG__DENSE_WORDS, sizeof(uint32_t),
	                                   "dense counts: host counts", &count);
	if (status == HG_OK) {
		list_graphs(s, graph.data);
		if (count_entries(ctx, s, measured, graph.data, count.data))
			status = install(ctx, measured, graph.data, count.data, dense);
	}
	hg__buffer_free(ctx, &graph);
	hg__buffer_free(ctx, &count);
	return status;
}

hg_status hg__dense_build(hg_context *ctx, const struct hg__dense_source *s,
                          struct hg__dense **dense)
{
	struct hg__dense measured = {0};
	size_t room = 0;
	*dense = NULL;
	if (!measure(ctx, s, &measured))
		return HG_OK;
	HG__TRY(hg__device_room(ctx, &room));
	const size_t needed = hg__dense_bytes(&measured);
	if (needed > room || s->reserve > room - needed) {
		hg__log(ctx, HG_LOG_INFO,
		        "graph: no dense counts: they take %zu bytes, %zu are free, of which a run needs "
		        "%zu",
		        needed, room, s->reserve);
		return HG_OK;
	}
	HG__TRY(count_and_install(ctx, s, &measured, dense));
	if (*dense)
		hg__log(ctx, HG_LOG_INFO, "graph: dense counts of %lld graphs: %zu bytes",
		        (long long)measured.graphs, needed);
	return HG_OK;
}
