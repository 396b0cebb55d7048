/* A graph-classification dataset in the format of TU Dortmund, as a HalfGraph file: usage: hg_doctor_mutag DIRECTORY/NAME OUT.h5, for DIRECTORY/NAME_A.txt (edges "i, j", from 1),
 * NAME_graph_indicator.txt (graph of each node, from 1, ascending), NAME_graph_labels.txt, NAME_node_labels.txt (from 0: one-hot features). One graph of five is for validation, one for
 * the test, the others are to learn from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/data.h"

struct numbers {
	long *at;
	int64_t count;
};

static void *array(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);
	if (!memory)
		exit(1);
	return memory;
}

/* All whole numbers of NAME_part.txt, in their order. */
static struct numbers read(const char *name, const char *part)
{
	char path[1024];
	struct numbers n = {NULL, 0};
	int64_t room = 0;
	long value;
	(void)snprintf(path, sizeof path, "%s_%s.txt", name, part);
	FILE *file = fopen(path, "r");
	if (!file) {
		fprintf(stderr, "hg_doctor_mutag: cannot open %s\n", path);
		exit(1);
	}
	while (fscanf(file, " %ld ,", &value) == 1 || fscanf(file, " %ld", &value) == 1) {
		if (n.count == room) {
			room = room ? 2 * room : 1024;
			n.at = realloc(n.at, (size_t)room * sizeof *n.at);
			if (!n.at)
				exit(1);
		}
		n.at[n.count++] = value;
	}
	(void)fclose(file);
	return n;
}

static long largest(const struct numbers *n)
{
	long most = 0;
	for (int64_t i = 0; i < n->count; i++)
		most = n->at[i] > most ? n->at[i] : most;
	return most;
}

static void add_edges(hg_dataset *d, const struct numbers *pairs)
{
	int64_t *next;
	d->edges = pairs->count / 2;
	d->rowptr = array(d->nodes + 1, sizeof *d->rowptr);
	d->col = array(d->edges, sizeof *d->col);
	for (int64_t e = 0; e < d->edges; e++)
		d->rowptr[pairs->at[2 * e]]++; /* node i - 1 has its end at i */
	for (int64_t i = 0; i < d->nodes; i++)
		d->rowptr[i + 1] += d->rowptr[i];
	next = array(d->nodes, sizeof *next);
	memcpy(next, d->rowptr, (size_t)d->nodes * sizeof *next);
	for (long source = 1; source <= d->nodes; source++) /* ascending in each row */
		for (int64_t e = 0; e < d->edges; e++)
			if (pairs->at[2 * e + 1] == source)
				d->col[next[pairs->at[2 * e] - 1]++] = (int32_t)(source - 1);
	free(next);
}

static void add_graphs(hg_dataset *d, const struct numbers *graph, const struct numbers *label)
{
	d->graphs = label->count;
	d->graph_ptr = array(d->graphs + 1, sizeof *d->graph_ptr);
	for (int64_t i = 0; i < graph->count; i++)
		d->graph_ptr[graph->at[i]]++;
	for (int64_t g = 0; g < d->graphs; g++)
		d->graph_ptr[g + 1] += d->graph_ptr[g];
	d->classes = 2;
	d->label = array(d->graphs, sizeof *d->label);
	uint8_t *const mask[] = {array(d->graphs, 1), array(d->graphs, 1), array(d->graphs, 1)};
	for (int64_t g = 0; g < d->graphs; g++) {
		d->label[g] = label->at[g] > 0; /* -1 and 1 */
		mask[g % 5 < 3 ? 0 : g % 5 - 2][g] = 1;
	}
	d->train_mask = mask[0];
	d->val_mask = mask[1];
	d->test_mask = mask[2];
}

static void add_features(hg_dataset *d, const struct numbers *tag)
{
	float *x;
	d->features = largest(tag) + 1;
	d->feat_dtype = HG_F32;
	d->feat_amax = 1.0;
	d->feat = x = array(d->nodes * d->features, sizeof *x);
	for (int64_t i = 0; i < d->nodes; i++)
		x[i * d->features + tag->at[i]] = 1.0f;
}

int main(int argc, char **argv)
{
	char message[HG_DATA_MESSAGE] = "usage: hg_doctor_mutag DIRECTORY/NAME OUT.h5";
	hg_dataset *d = NULL;
	if (argc != 3 || hg_dataset_new(&d, message) < 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	struct numbers pairs = read(argv[1], "A"), graph = read(argv[1], "graph_indicator"), label = read(argv[1], "graph_labels"),
	               tag = read(argv[1], "node_labels");
	d->nodes = graph.count;
	add_edges(d, &pairs);
	add_graphs(d, &graph, &label);
	add_features(d, &tag);
	const hg_status status = hg_dataset_write(d, argv[2], message);
	if (status < 0)
		fprintf(stderr, "%s\n", message);
	hg_dataset_free(d);
	free(pairs.at);
	free(graph.at);
	free(label.at);
	free(tag.at);
	return status < 0;
}
