/* Data for the examples: four planted communities. The class of node i is i mod 4, three of four
 * edges stay inside a class, and features are the class plus noise. */
#ifndef PLANTED_H
#define PLANTED_H

#include <halfgraph/halfgraph.h>
#include <stdlib.h>

enum { NODES = 400, EDGES = 4000, FEATURES = 8, CLASSES = 4 };

struct planted {
	hg_graph *graph;
	hg_tensor *features; /* f16 [NODES, FEATURES] */
	int32_t label[NODES];
};

/* Returns non-zero on success; on failure the context has the error message. */
static inline int planted_make(hg_context *ctx, struct planted *p)
{
	static int32_t dst[EDGES], src[EDGES];
	static float x[NODES][FEATURES];
	for (int e = 0; e < EDGES; e++) {
		dst[e] = rand() % NODES;
		src[e] = e % 4 ? (dst[e] + CLASSES * (rand() % NODES)) % NODES : rand() % NODES;
	}
	for (int i = 0; i < NODES; i++) {
		p->label[i] = i % CLASSES;
		for (int c = 0; c < FEATURES; c++)
			x[i][c] = (float)(c == i % CLASSES) + 2.0f * (float)rand() / (float)RAND_MAX;
	}
	return hg_graph_from_coo(ctx, NODES, NODES, EDGES, dst, src, NULL, NULL, &p->graph) >= 0 &&
	       hg_tensor_create(ctx, HG_F16, NODES, FEATURES, &p->features) >= 0 &&
	       hg_tensor_upload(p->features, x, HG_F32) >= 0;
}

static inline void planted_free(struct planted *p)
{
	hg_tensor_free(p->features);
	hg_graph_free(p->graph);
}

#endif
