#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	fuzz_set(bytes, count);
	return 0;
}
