#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	(void)fuzz_import("npz", bytes, count);
	return 0;
}
