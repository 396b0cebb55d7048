#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fuzz_set set = {
	    .format = "dgl-csv",
	    .separator = "\f",
	    .whole = 1,
	    .file = {"meta.yaml", "nodes.csv", "edges.csv", "graphs.csv"}};
	fuzz_set(&set, bytes, count);
	return 0;
}
