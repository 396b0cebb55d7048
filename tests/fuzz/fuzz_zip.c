#include "fuzz.h"

/* A zip archive of text files: damage of its directory and of its members. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const char *const formats[] = {"tu", "gin", "musae"};
	for (int k = 0; k < 3; k++)
		(void)fuzz_import(formats[k], bytes, count);
	return 0;
}
