/* The version of the library that is linked, as a number and as text. */
#include "halfgraph/version.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

int hg_version(void)
{
	return HG_VERSION;
}

const char *hg_version_string(void)
{
	return TEXT(HG_VERSION_MAJOR) "." TEXT(HG_VERSION_MINOR) "." TEXT(HG_VERSION_PATCH);
}
