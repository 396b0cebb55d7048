#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fuzz_set set = {
	    .format = "tu",
	    .separator = "\f",
	    .file = {"set_A.txt", "set_graph_indicator.txt", "set_graph_labels.txt",
	             "set_node_labels.txt", "set_node_attributes.txt", "set_graph_attributes.txt",
	             "set_edge_labels.txt", "set_edge_attributes.txt"}};
	fuzz_set(&set, bytes, count);
	return 0;
}
