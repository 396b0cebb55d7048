/* Files mean the same in every locale of the program. Here it is one with a decimal comma. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comma.h"
#include "import/number.h"
#include "support.h"

static const char *file_of(const char *name, const char *text)
{
	const char *path = scratch(0, name);
	write_text(path, text);
	return path;
}

/* In both locales, every spelling of a number gives the double that strtod gives in "C". */
static void numbers_have_a_decimal_point(void)
{
	static const char *const good[] = {"0",
	                                   "-0",
	                                   "+1",
	                                   "1.5",
	                                   ".5",
	                                   "5.",
	                                   "1e3",
	                                   "1E-3",
	                                   "-2.5e+2",
	                                   "123456789012345",
	                                   "0.1234567890123456789",
	                                   "1e-400",
	                                   "1e308",
	                                   "4.9e-324",
	                                   "00012.50",
	                                   "9007199254740993",
	                                   "1e999"};
	static const char *const bad[] = {"",  ".",   "-",  "e5",  "nan", "inf",
	                                  "x", "- 1", ",5", "+-1", " 1"};
	double expected[sizeof good / sizeof good[0]], value = 0;
	for (size_t k = 0; k < sizeof good / sizeof good[0]; k++)
		expected[k] = strtod(good[k], NULL);
	for (int comma = 0; comma < 2; comma++) {
		if (comma)
			test_comma_begin();
		for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
			const char *end = hg__number_read(good[k], &value);
			CHECK_MSG(end && *end == 0 && memcmp(&value, &expected[k], sizeof value) == 0,
			          "%s is %a, expected %a", good[k], value, expected[k]);
		}
		for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
			CHECK_MSG(!hg__number_read(bad[k], &value), "\"%s\" is read as %a", bad[k], value);
		static const char *const partly[] = {"1,5", "0x10", "1.5.5", "1e", "1e+", "3 4"};
		for (size_t k = 0; k < sizeof partly / sizeof partly[0]; k++)
			CHECK_EQ_I(hg__number_read(partly[k], &value) - partly[k], k == 2 ? 3 : 1);
	}
	test_comma_end();
}

/* 200,000 random numbers, with few and with many digits, compared with strtod. */
static void random_numbers_are_rounded_to_the_nearest(void)
{
	char text[64];
	double value = 0;
	for (int k = 0; k < 200000; k++) {
		const int digits = 1 + (int)test_below(19), exponent = (int)test_below(80) - 40;
		const double drawn = (test_uniform() - 0.5) * (k % 3 == 0 ? 1e6 : 1);
		if (k % 2)
			snprintf(text, sizeof text, "%.*f", digits, drawn);
		else
			snprintf(text, sizeof text, "%.*fe%d", digits, drawn, exponent);
		const double expected = strtod(text, NULL);
		CHECK(hg__number_read(text, &value) != NULL);
		CHECK_MSG(memcmp(&value, &expected, sizeof value) == 0, "%s is %a, expected %a", text,
		          value, expected);
	}
}

static void words_are_ascii(void)
{
	test_comma_begin();
	CHECK_MSG(tolower('I') != 'i', "this locale's I is the capital of i: nothing is tested");
	CHECK(hg__same_word("INTEGER", "integer") && !hg__same_word("INTEGERS", "integer") &&
	      !hg__same_word("REAL", "integer"));
	test_comma_end();
}

/* ---- files, read in "C" and in the other locale ---- */

static void same_in_both(const char *format, const char *path)
{
	test_comma_end();
	hg_dataset *expected = must_import(format, path);
	test_comma_begin();
	hg_dataset *found = must_import(format, path);
	check_same(expected, found);
	hg_dataset_free(found);
	hg_dataset_free(expected);
	test_comma_end();
}

static void importers_read_a_decimal_point(void)
{
	same_in_both("edges", file_of("weights.txt", "0 1 2.5\n1 0 0.125\n2,1,1e-3\n"));
	same_in_both(
	    "mtx",
	    file_of("real.mtx",
	            "%%MATRIXMARKET MATRIX COORDINATE REAL GENERAL\n2 2 2\n1 2 0.5\n2 1 -1.25\n"));
	same_in_both("gin", file_of("g.txt", "1\n2 0\n0 1 1 1.5 2.25\n0 0 -1e-3 4\n"));
	same_in_both("metis", file_of("g.graph", "2 1 1\n2 0.5\n1 0.5\n"));
	same_in_both("mtx",
	             file_of("integer.mtx",
	                     "%%MatrixMarket matrix coordinate INTEGER symmetric\n2 2 1\n2 1 3\n"));
}

static void commas_separate_attributes(void)
{
	write_text(scratch(1, "set_A.txt"), "1, 2\n2, 1\n");
	write_text(scratch(1, "set_graph_indicator.txt"), "1\n1\n");
	write_text(scratch(1, "set_graph_labels.txt"), "1\n");
	write_text(scratch(1, "set_node_attributes.txt"), "1,2\n3.5,4\n");
	const char *path = scratch(1, "set_A.txt");
	test_comma_begin();
	hg_dataset *d = must_import("tu", path);
	CHECK_EQ_I(d->features, 2); /* "1,2" is not a number */
	CHECK(((const float *)d->feat)[1] == 2.0f && ((const float *)d->feat)[2] == 3.5f);
	hg_dataset_free(d);
	test_comma_end();
	same_in_both("tu", path);
}

static void comma_is_not_a_decimal_point(void)
{
	const char *path = file_of("german.txt", "0 1 2,5\n");
	test_comma_begin();
	must_refuse("edges", path, HG_ERR_FORMAT,
	            "german.txt:1: expected source, destination and a finite weight");
	test_comma_end();
	must_refuse("edges", path, HG_ERR_FORMAT,
	            "german.txt:1: expected source, destination and a finite weight");
}

static void files_are_the_same_bytes(void)
{
	hg_dataset *d = small_dataset();
	size_t count[2] = {0, 0};
	must_write(d, scratch(0, "c.h5"));
	test_comma_begin();
	must_write(d, scratch(1, "comma.h5"));
	hg_dataset *back = must_read(scratch(0, "c.h5"));
	check_same(d, back);
	test_comma_end();
	unsigned char *a = read_bytes(scratch(0, "c.h5"), &count[0]),
	              *b = read_bytes(scratch(1, "comma.h5"), &count[1]);
	CHECK(count[0] == count[1] && memcmp(a, b, count[0]) == 0);
	free(a);
	free(b);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void messages_have_a_decimal_point(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK(d->feat_dtype == HG_F32);
	((float *)d->feat)[4] = 70000.5f;
	d->feat_amax = 70000.5;
	test_comma_begin();
	CHECK(hg_dataset_check_f16(d, message) == HG_ERR_RANGE);
	test_comma_end();
	CHECK_CONTAINS(message, "70000.5");
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(numbers_have_a_decimal_point),
	    TEST(random_numbers_are_rounded_to_the_nearest),
	    TEST(words_are_ascii),
	    TEST(importers_read_a_decimal_point),
	    TEST(commas_separate_attributes),
	    TEST(comma_is_not_a_decimal_point),
	    TEST(files_are_the_same_bytes),
	    TEST(messages_have_a_decimal_point),
	};
	return RUN_TESTS(argc, argv, cases);
}
