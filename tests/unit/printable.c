/* Text of unknown origin in messages: control characters and broken UTF-8 become "\xHH", and a text
 * that is cut ends with a whole character. */
#include "core/printable.h"

#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "halfgraph/param.h"
#include "harness.h"

static const struct {
	const char *text, *printable;
} texts[] = {
    {"", ""},
    {"plain \\ text", "plain \\ text"},
    {"a\033[2J\nb\x7f", "a\\x1b[2J\\x0ab\\x7f"},
    {"gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x98\x80"},
    {"\xc2\x9b", "\\xc2\\x9b"},                            /* a control character of two bytes */
    {"\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80"}, /* overlong, a surrogate */
    {"\xf4\x90\x80\x80\xe2\x9c", "\\xf4\\x90\\x80\\x80\\xe2\\x9c"}, /* too large, cut off */
};

static void texts_become_printable(void)
{
	for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
		char out[128];
		const size_t length = hg__printable(out, sizeof out, texts[k].text);
		CHECK_STR(out, texts[k].printable);
		CHECK_EQ_I(length, strlen(texts[k].printable));
		CHECK_EQ_I(hg__printable(NULL, 0, texts[k].text), length);
		/* a text that is printable already is not changed */
		CHECK_EQ_I(hg__printable(out, sizeof out, texts[k].printable), length);
		CHECK_STR(out, texts[k].printable);
	}
}

/* A text that is cut to k bytes ends with a whole character, and nothing is written beyond them. */
static void cut_texts_end_with_whole_characters(void)
{
	static const char text[] = "a\xe2\x9c\x93\x1b!";
	static const size_t kept[] = {0, 1, 1, 1, 4, 4, 4, 4, 8, 9};
	for (size_t room = 1; room <= sizeof kept / sizeof *kept; room++) {
		char out[16];
		memset(out, '#', sizeof out);
		CHECK_EQ_I(hg__printable(out, room, text), 9);
		CHECK_EQ_I(strlen(out), kept[room - 1]);
		CHECK(out[room] == '#');
	}
}

static char logged[1024];
static void on_log(void *user, hg_log_level level, const char *message)
{
	(void)user;
	(void)level;
	snprintf(logged, sizeof logged, "%s", message);
}

/* Names reach messages and log lines through the context. */
static void messages_of_the_library_are_printable(void)
{
	const hg_context_config none = HG_CONTEXT_CONFIG_INIT;
	hg_context_config config = none;
	config.log = on_log;
	config.log_level = HG_LOG_DEBUG;
	hg_context *ctx = test_context_with(config);
	hg_params *params = NULL;
	CHECK_OK(hg_params_create(ctx, NULL, &params));
	CHECK_OK(hg_params_add(params, "w\033[31m", 2, 2, HG_INIT_ZEROS, 0, NULL));
	CHECK_STATUS(hg_params_add(params, "w\033[31m", 2, 2, HG_INIT_ZEROS, 0, NULL), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "w\\x1b[31m");
	CHECK_CONTAINS(logged, "w\\x1b[31m");
	hg_params_free(params);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(texts_become_printable),
	                                         TEST(cut_texts_end_with_whole_characters),
	                                         TEST(messages_of_the_library_are_printable)};
	return RUN_TESTS(argc, argv, cases);
}
