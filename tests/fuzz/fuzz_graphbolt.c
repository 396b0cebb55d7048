#include "fuzz.h"

/* Arrays may hold any byte, so the separator is longer. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fuzz_set set = {
	    .format = "graphbolt",
	    .separator = FUZZ_BINARY_END,
	    .whole = 1,
	    .file = {"metadata.yaml", "list.csv", "ends.npy", "x.npy", "train.npy", "y.npy", "w.npy"}};
	fuzz_set(&set, bytes, count);
	return 0;
}
