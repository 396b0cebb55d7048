/* The shapes of padded batches: few of them, so that a tape serves many batches. */
#include "nn/batches_padded.h"

/* Sizes are rounded up to multiples of 8, or of a power of two that is at most a sixteenth of them,
 * so a batch of more than 128 rows grows by 3 % on average. Where nodes have many edges their
 * number costs little, so it is rounded in steps four times as large: in 30 epochs COLLAB (66 edges
 * a node, 128 graphs a batch) then has 79 shapes in place of 143. ZINC (2 edges a node) has 9. */
#define STEPS 16
#define WIDE_STEPS 4
#define MANY_EDGES 16 /* for each node of the dataset */

static int64_t step_of(int64_t size, int64_t steps)
{
	int64_t step = 8;
	while (2 * step * steps <= size)
		step *= 2;
	return step;
}

static int64_t round_up(int64_t size, int64_t steps)
{
	const int64_t step = step_of(size, steps);
	return (size + step - 1) / step * step;
}

static int64_t node_steps(const hg_batches *all)
{
	const int64_t nodes = ((const int64_t *)all->ptr.data)[all->graphs];
	return all->graph.rowptr[nodes] / MANY_EDGES > nodes ? WIDE_STEPS : STEPS;
}

int64_t hg__padded_edges(int64_t edges)
{
	return edges ? round_up(edges, STEPS) : 0;
}

/* More rows than graphs and not as many as edges: the tape tells them apart by their number
 * (autograd/live.c). */
int64_t hg__padded_nodes(const struct hg__padded *p, int64_t nodes, int64_t edges, int64_t graphs,
                         int64_t padded_edges)
{
	const int64_t missing = padded_edges - edges,
	              rows = missing ? (missing + p->per_row - 1) / p->per_row : 1;
	const int64_t least = nodes + rows > graphs ? nodes + rows : graphs + 1;
	const int64_t padded = round_up(least, node_steps(p->all));
	return padded != padded_edges ? padded : padded + step_of(padded, node_steps(p->all));
}

struct hg__shape_of_batch hg__padded_shape(const struct hg__padded *p, int64_t nodes, int64_t edges,
                                           int64_t graphs)
{
	const int64_t all_edges = hg__padded_edges(edges);
	return (struct hg__shape_of_batch){.nodes =
	                                       hg__padded_nodes(p, nodes, edges, graphs, all_edges),
	                                   .edges = all_edges,
	                                   .graphs = graphs};
}
