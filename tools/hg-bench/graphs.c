#include "graphs.h"

#include <string.h>

#define REDDIT 232965, 114848857
#define PRODUCTS 2449029, 123718280

/* The molecule and pattern batches have 2.1 and 51.1 directed edges per node; in the collab batch a
 * node has edges to 65 of its 75 nodes. A batch of graphs that differ in size has their mean size,
 * rounded, and their edges per node (PATTERN, CLUSTER, MNIST and CIFAR10: Dwivedi et al. 2020; COCO
 * and PascalVOC: Dwivedi et al. 2022). The exponents of ppa-like and proteins-like make the longest
 * row of about 3,300 and 9,100 edges. */
static const struct named_graph graphs[] = {
    {"tiny",
     "2,000 nodes, 20,000 edges: for trying the tool",
     {EDGE_POWER, 2000, 20000, 0, 1.6, 0, 0},
     32,
     5,
     0},
    {"cora-like",
     "the shape of Cora: 2,708 nodes, 1,433 sparse features",
     {EDGE_POWER, 2708, 10556, 0, 1.4, 0, 1},
     1433,
     7,
     18},
    {"pubmed-like",
     "the shape of Pubmed: 19,717 nodes, 500 sparse features",
     {EDGE_POWER, 19717, 88648, 0, 1.4, 0, 1},
     500,
     3,
     50},
    {"computers-like",
     "the shape of Amazon Computers",
     {EDGE_POWER, 13752, 491722, 0, 1.6, 0, 1},
     767,
     10,
     0},
    {"powerlaw-2m",
     "100,000 nodes, 2 M edges",
     {EDGE_POWER, 100000, 2000000, 0, 1.6, 0, 0},
     64,
     16,
     0},
    {"reddit-like", "232,965 nodes, 114.8 M edges", {EDGE_POWER, REDDIT, 0, 1.6, 0, 0}, 602, 41, 0},
    {"reddit-local",
     "the same, 70 % of the edges near the diagonal",
     {EDGE_POWER, REDDIT, 0, 1.6, 1, 0},
     602,
     41,
     0},
    {"products-like",
     "2,449,029 nodes, 123.7 M edges",
     {EDGE_POWER, PRODUCTS, 0, 1.4, 0, 0},
     100,
     47,
     0},
    {"products-local",
     "the same, 70 % of the edges near the diagonal",
     {EDGE_POWER, PRODUCTS, 0, 1.4, 1, 0},
     100,
     47,
     0},
    {"ppa-like",
     "the shape of ogbl-ppa's training graph: 576,289 nodes, 42.5 M edges",
     {EDGE_POWER, 576289, 42463862, 0, 1.4, 0, 1},
     58,
     16,
     0},
    {"proteins-like",
     "the shape of ogbn-proteins: 132,534 nodes, 79.1 M edges",
     {EDGE_POWER, 132534, 79122504, 0, 1.3, 0, 1},
     64,
     112,
     0},
    {"kron-21",
     "R-MAT, 2^21 nodes, 2^26 edges",
     {EDGE_RMAT, 2097152, 67108864, 0, 0.0, 0, 0},
     128,
     16,
     0},
    {"planted",
     "230,000 nodes, 100 M edges, 80 % of them inside 1,000 communities",
     {EDGE_PLANTED, 230000, 100000000, 230, 0.0, 0, 0},
     128,
     16,
     0},
    {"planted-ordered",
     "the same, communities side by side",
     {EDGE_PLANTED, 230000, 100000000, 230, 0.0, 1, 0},
     128,
     16,
     0},
    {"molecules-4k",
     "4,096 graphs of 18 nodes, one block-diagonal matrix",
     {EDGE_MOLECULE, 73728, 154828, 18, 0.0, 0, 1},
     11,
     2,
     0},
    {"molecules-16k",
     "16,384 graphs of 18 nodes",
     {EDGE_MOLECULE, 294912, 619316, 18, 0.0, 0, 1},
     11,
     2,
     0},
    {"pattern-like",
     "1,024 graphs of 119 nodes, 51.1 edges a node",
     {EDGE_CLIQUES, 121856, 6226842, 119, 0.0, 0, 1},
     128,
     2,
     0},
    {"cluster-like",
     "1,024 graphs of 117 nodes, 36.7 edges a node",
     {EDGE_CLIQUES, 119808, 4399672, 117, 0.0, 0, 1},
     7,
     6,
     0},
    {"coco-like",
     "1,024 graphs of 477 nodes, 5.65 edges a node, near ones (COCO-SP)",
     {EDGE_NEAR, 488448, 2759012, 477, 0.0, 0, 1},
     14,
     81,
     0},
    {"voc-like",
     "1,024 graphs of 479 nodes, 5.65 edges a node, near ones (PascalVOC-SP)",
     {EDGE_NEAR, 490496, 2773216, 479, 0.0, 0, 1},
     14,
     21,
     0},
    {"mnist-like",
     "1,024 graphs of 71 nodes, 8 edges a node, near ones (MNIST superpixels)",
     {EDGE_NEAR, 72704, 581632, 71, 0.0, 0, 0},
     3,
     10,
     0},
    {"cifar-like",
     "1,024 graphs of 118 nodes, 8 edges a node, near ones (CIFAR10 superpixels)",
     {EDGE_NEAR, 120832, 966656, 118, 0.0, 0, 0},
     5,
     10,
     0},
    {"collab-like",
     "5,000 graphs of 75 nodes, 65 edges a node",
     {EDGE_CLIQUES, 375000, 24375000, 75, 0.0, 0, 1},
     64,
     3,
     0},
};

const struct named_graph *graph_list(int *count)
{
	*count = (int)(sizeof graphs / sizeof graphs[0]);
	return graphs;
}

int graph_is_file(const char *name)
{
	const size_t length = strlen(name);
	return length > 3 && strcmp(name + length - 3, ".h5") == 0;
}

const struct named_graph *graph_named(const char *name)
{
	for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
		if (strcmp(graphs[i].name, name) == 0)
			return &graphs[i];
	return NULL;
}
