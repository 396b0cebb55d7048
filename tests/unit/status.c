#include <stdio.h>

#include "halfgraph/version.h"
#include "harness.h"

static void codes_names_and_texts(void)
{
#define EXPECT(name, value, text)           \
	CHECK_EQ_I(name, value);                \
	CHECK_STR(hg_status_name(name), #name); \
	CHECK_STR(hg_status_text(name), text);
	HG_STATUS_LIST(EXPECT)
#undef EXPECT
	CHECK_EQ_I(HG_OK, 0);
}

static void signs_mean_what_they_say(void)
{
	CHECK(HG_ERR_ARG < 0 && HG_ERR_INTERNAL < 0 && HG_INFO_SKIPPED > 0 && HG_INFO_STOPPED > 0 &&
	      HG_INFO_DIFFERS > 0 && HG_INFO_SUSPECT > 0);
}

static void unknown_status_has_a_name(void)
{
	CHECK_STR(hg_status_name((hg_status)-999), "HG_UNKNOWN");
	CHECK_STR(hg_status_text((hg_status)999), "unknown status");
}

static void version_is_that_of_the_headers(void)
{
	int major = -1, minor = -1, patch = -1;
	CHECK_EQ_I(hg_version(), HG_VERSION);
	CHECK_EQ_I(sscanf(hg_version_string(), "%d.%d.%d", &major, &minor, &patch), 3);
	CHECK_EQ_I(major * 10000 + minor * 100 + patch, HG_VERSION);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(codes_names_and_texts), TEST(signs_mean_what_they_say),
	    TEST(unknown_status_has_a_name), TEST(version_is_that_of_the_headers)};
	return RUN_TESTS(argc, argv, cases);
}
