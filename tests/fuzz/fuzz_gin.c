#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fuzz_set set = {
	    .format = "gin",
	    .separator = "\f",
	    .below = "10fold_idx",
	    .file = {"set.txt", "10fold_idx/test_idx-1.txt", "10fold_idx/test_idx-2.txt",
	             "10fold_idx/test_idx-3.txt", "10fold_idx/train_idx-1.txt"}};
	fuzz_set(&set, bytes, count);
	return 0;
}
