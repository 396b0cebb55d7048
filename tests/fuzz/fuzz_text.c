#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	fuzz_import("edges", bytes, count);
	fuzz_import("mtx", bytes, count);
	return 0;
}
