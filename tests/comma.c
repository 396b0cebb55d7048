#define _POSIX_C_SOURCE 200809L
#include "comma.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* Writes the 128 characters of ASCII in the form that localedef reads. */
static void write_charmap(const char *path)
{
	FILE *out = fopen(path, "w");
	CHECK(out != NULL);
	fputs("<code_set_name> ANSI_X3.4-1968\n<comment_char> %\n<escape_char> /\n<mb_cur_min> "
	      "1\n<mb_cur_max> 1\n"
	      "CHARMAP\n",
	      out);
	for (unsigned c = 0; c < 128; c++)
		fprintf(out, "<U%04X> /x%02x a character\n", c, c);
	fputs("END CHARMAP\n", out);
	CHECK(fclose(out) == 0);
}

static void write_pairs(FILE *out, const char *name, int to_lower)
{
	fputs(name, out);
	for (unsigned c = 'A', k = 0; c <= 'Z'; c++)
		if (c != 'I') {
			const unsigned small = c - 'A' + 'a';
			fprintf(out, "%s(<U%04X>,<U%04X>)", k++ ? ";" : " ", to_lower ? c : small,
			        to_lower ? small : c);
		}
	fputs("\n", out);
}

static void write_letters(FILE *out, const char *name, unsigned first)
{
	fputs(name, out);
	for (unsigned k = 0; k < 26; k++)
		fprintf(out, "%s<U%04X>", k ? ";" : " ", first + k);
	fputs("\n", out);
}

static void write_source(const char *path)
{
	FILE *out = fopen(path, "w");
	CHECK(out != NULL);
	fputs("LC_CTYPE\n", out);
	write_letters(out, "upper", 'A');
	write_letters(out, "lower", 'a');
	write_pairs(out, "toupper", 0);
	write_pairs(out, "tolower", 1);
	fputs("space <U0020>;<U0009>;<U000A>;<U000B>;<U000C>;<U000D>\nEND LC_CTYPE\n"
	      "LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\ngrouping 3;3\nEND "
	      "LC_NUMERIC\n",
	      out);
	CHECK(fclose(out) == 0);
}

/* localedef warns about missing categories and then ends with 1. So its exit code says nothing;
 * what counts is whether the locale can be chosen. */
static int locale_make(void)
{
	char map[256], source[256], folder[256], command[1024];
	snprintf(map, sizeof map, "%s", test_path("ascii.map"));
	snprintf(source, sizeof source, "%s", test_path("comma.src"));
	snprintf(folder, sizeof folder, "%s", test_path("comma"));
	write_charmap(map);
	write_source(source);
	snprintf(command, sizeof command, "localedef -c --no-archive -f %s -i %s %s >/dev/null 2>&1",
	         map, source, folder);
	const int code = system(command);
	*strrchr(folder, '/') = 0;
	return code != -1 && setenv("LOCPATH", folder, 1) == 0;
}

void test_comma_begin(void)
{
	char text[16];
	if (!setlocale(LC_NUMERIC, "comma") && (!locale_make() || !setlocale(LC_NUMERIC, "comma")))
		test_skip("localedef made no locale with a decimal comma: nothing is tested here");
	CHECK(setlocale(LC_CTYPE, "comma") != NULL);
	snprintf(text, sizeof text, "%g", 0.5);
	CHECK_STR(text, "0,5");
	CHECK(strtod("1,5", NULL) > 1.4);
}

void test_comma_end(void)
{
	(void)setlocale(LC_ALL, "C");
}
