#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fuzz_set set = {
	    .format = "musae",
	    .separator = "\f",
	    .file = {"set_target.csv", "set_edges.csv", "set_features.json"}};
	fuzz_set(&set, bytes, count);
	return 0;
}
