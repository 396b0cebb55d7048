#include "fuzz.h"

/* Pickles may hold any byte, so the separator is longer. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fuzz_set set = {.format = "planetoid",
	                                    .separator = FUZZ_BINARY_END,
	                                    .whole = 1,
	                                    .file = {"ind.toy.x", "ind.toy.tx", "ind.toy.allx",
	                                             "ind.toy.y", "ind.toy.ty", "ind.toy.ally",
	                                             "ind.toy.graph", "ind.toy.test.index"}};
	fuzz_set(&set, bytes, count);
	return 0;
}
