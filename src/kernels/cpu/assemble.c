/* A batch of whole graphs (kernels/assemble.h), one lane for each graph. It is compiled only once,
 * because the loops wait for memory and not for arithmetic. */
#include "kernels/assemble.h"

#include "kernels/cpu/backend.h"
#include "kernels/cpu/team.h"

/* A shuffled batch reads its graphs from anywhere in the dataset, and a small one is copied before
 * the next one has come from memory. So the row pointers of a graph are asked for this many graphs
 * ahead, and what they lead to half as many. The 79 batches of an epoch of ZINC take 28 ms on one
 * thread, of which recorded tapes are a part; without this, and with rows in pieces of 16 bytes, it
 * was 35. */
#define AHEAD 8

/* The first pieces are enough: the processor then goes on by itself. */
static void ask(const void *from)
{
	for (int line = 0; from && line < 4; line++)
		__builtin_prefetch((const char *)from + 64 * line);
}

static void ask_ahead(const struct hg__assemble *a, int64_t k)
{
	const struct hg__changing *from = &a->from;
	if (k + AHEAD < a->list.graphs)
		ask(from->rowptr + from->ptr[a->list.graph[k + AHEAD]]);
	if (k + AHEAD / 2 >= a->list.graphs)
		return;
	const int64_t node = from->ptr[a->list.graph[k + AHEAD / 2]];
	ask(from->col + from->rowptr[node]);
	if (a->of_node.from)
		ask((const char *)a->of_node.from + (size_t)node * a->of_node.from_pitch);
}

hg_status hg__cpu_assemble(hg_context *ctx, const struct hg__assemble *a)
{
	static const struct hg__lanes one = {0, 1};
	const int64_t graphs = a->list.graphs, work = a->to.rows + a->to.m;
	(void)work; /* without OpenMP */
#pragma omp parallel for num_threads(hg__team(ctx, work)) schedule(static)
	for (int64_t k = 0; k <= graphs; k++)
		if (k < graphs) {
			ask_ahead(a, k);
			hg__assemble_graph(a, k, one);
		} else {
			hg__assemble_rest(a, one);
		}
	return HG_OK;
}
