#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	(void)fuzz_import("edges", bytes, count);
	(void)fuzz_import("mtx", bytes, count);
	(void)fuzz_import("metis", bytes, count);
	return 0;
}
