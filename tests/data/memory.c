/* wait4, which POSIX lacks, tells the memory of one process. */
#define _DEFAULT_SOURCE
/* The importers need at most three times the memory of the dataset that they make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

enum { NODES = 50000, DEGREE = 40, EDGES = NODES * DEGREE };

/* A sanitizer keeps memory that was freed, and instruments the rest. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

/* The most memory of a run of h5convert, in bytes. */
static double peak_of(const char *format, const char *path)
{
	char program[] = "h5convert", quiet[] = "--quiet", from[] = "--from", name[16], input[256],
	     out_option[] = "-o", output[256];
	char *argv[] = {program, quiet, from, name, input, out_option, output, NULL};
	struct rusage usage;
	int status = 0;
	snprintf(name, sizeof name, "%s", format);
	snprintf(input, sizeof input, "%s", path);
	snprintf(output, sizeof output, "%s", test_path("out.h5"));
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		execv(HG_H5CONVERT, argv);
		_exit(99);
	}
	CHECK(child > 0 && wait4(child, &status, 0, &usage) == child);
	CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %d", path, status);
	return 1024.0 * (double)usage.ru_maxrss;
}

/* Neighbour k of a node: a symmetric graph without a regular order. */
static int neighbour(int node, int k, int nodes)
{
	static const int steps[] = {1,    17,   203,  399,  511,  640,  777,  905,  1023, 1201,
	                            1333, 1407, 1590, 1777, 1801, 1999, 2100, 2222, 2381, 2449};
	const int step = steps[k / 2] % nodes;
	return (k % 2 ? node + step : node + nodes - step) % nodes;
}

/* Writes the graph in a format; a small one only has the first nodes' edges. */
static const char *graph_of(const char *format, int nodes)
{
	const char *path = scratch(0, "graph.txt");
	FILE *file = fopen(path, "w");
	const int one = strcmp(format, "mtx") == 0 || strcmp(format, "metis") == 0, lists = !one;
	CHECK(file != NULL);
	if (strcmp(format, "mtx") == 0)
		fprintf(file, "%%%%MatrixMarket matrix coordinate pattern general\n%d %d %d\n", nodes,
		        nodes, nodes * DEGREE);
	if (strcmp(format, "metis") == 0)
		fprintf(file, "%d %d\n", nodes, nodes * DEGREE / 2);
	if (strcmp(format, "gin") == 0)
		fprintf(file, "1\n%d 0\n", nodes);
	const int in_lines = strcmp(format, "metis") == 0 || strcmp(format, "gin") == 0;
	for (int i = 0; i < nodes; i++) {
		if (strcmp(format, "gin") == 0)
			fprintf(file, "0 %d ", DEGREE);
		for (int k = 0; k < DEGREE; k++) {
			const int to = neighbour(i, k, nodes) + (one ? 1 : 0);
			if (in_lines)
				fprintf(file, "%d ", to);
			else
				fprintf(file, "%d %d\n", to, i + (lists ? 0 : 1));
		}
		if (in_lines)
			fputc('\n', file);
	}
	CHECK(fclose(file) == 0);
	return path;
}

/* The same graph as edges of a dataset of DGL. */
static const char *tables_of(int nodes)
{
	FILE *file = fopen(scratch(0, "edges.csv"), "w");
	CHECK(file != NULL && fputs("src_id,dst_id\n", file) >= 0);
	for (int i = 0; i < nodes; i++)
		for (int k = 0; k < DEGREE; k++)
			fprintf(file, "%d,%d\n", neighbour(i, k, nodes), i);
	CHECK(fclose(file) == 0);
	file = fopen(scratch(0, "nodes.csv"), "w");
	CHECK(file != NULL && fputs("node_id\n", file) >= 0);
	for (int i = 0; i < nodes; i++)
		fprintf(file, "%d\n", i);
	CHECK(fclose(file) == 0);
	write_text(scratch(0, "meta.yaml"), "edge_data: [{file_name: edges.csv}]\n"
	                                    "node_data: [{file_name: nodes.csv}]\n");
	return scratch(0, "meta.yaml");
}

static const char *array_of(int nodes)
{
	const size_t edges = (size_t)nodes * DEGREE;
	int32_t *ends = malloc(2 * edges * sizeof *ends);
	char text[128];
	CHECK(ends != NULL);
	for (int i = 0; i < nodes; i++)
		for (int k = 0; k < DEGREE; k++) {
			ends[i * DEGREE + k] = neighbour(i, k, nodes);
			ends[edges + (size_t)(i * DEGREE + k)] = i;
		}
	snprintf(text, sizeof text, "(2, %zu)", edges);
	write_npy(scratch(0, "ends.npy"), "<i4", text, ends, 2 * edges * sizeof *ends);
	free(ends);
	snprintf(text, sizeof text,
	         "graph: {nodes: [{num: %d}], edges: [{format: numpy, path: ends.npy}]}\n", nodes);
	write_text(scratch(0, "metadata.yaml"), text);
	return scratch(0, "metadata.yaml");
}

static const char *input_of(const char *format, int nodes)
{
	return strcmp(format, "dgl-csv") == 0     ? tables_of(nodes)
	       : strcmp(format, "graphbolt") == 0 ? array_of(nodes)
	                                          : graph_of(format, nodes);
}

static void three_times_the_result_is_enough(void)
{
	static const char *const formats[] = {"edges", "mtx", "metis", "gin", "dgl-csv", "graphbolt"};
	/* what HDF5 takes to write compressed chunks of 1 MiB, which a small dataset has not */
	const double writing = 4e6, result = 4.0 * EDGES + 8.0 * NODES;
	if (SANITIZED)
		SKIP("sanitizers keep freed memory");
	for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
		const double small = peak_of(formats[k], input_of(formats[k], 5000)),
		             large = peak_of(formats[k], input_of(formats[k], NODES));
		test_note("%s: %.1f times the result", formats[k], (large - small) / result);
		CHECK_MSG(large - small <= 3 * result + writing, "%s: %.1f MB more for a result of %.1f MB",
		          formats[k], (large - small) / 1e6, result / 1e6);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(three_times_the_result_is_enough)};
	return RUN_TESTS(argc, argv, cases);
}
