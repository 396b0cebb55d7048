#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fuzz_set set = {
	    .format = "ogb",
	    .separator = "\f",
	    .below = "raw",
	    .whole = 1,
	    .file = {"raw/num-node-list.csv.gz", "raw/num-edge-list.csv.gz", "raw/edge.csv.gz",
	             "raw/node-feat.csv.gz", "raw/node-label.csv.gz", "raw/edge-feat.csv.gz"}};
	fuzz_set(&set, bytes, count);
	return 0;
}
