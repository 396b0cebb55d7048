/* What the tools read as JSON: a file of options, with an option of every kind, and the lines of a
 * run, of which the page is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "fuzz.h"
#include "page.h"
#include "record.h"

struct taken {
	int flag, choice, level;
	const char *text, *word, *name, *order;
	int64_t whole;
	double real;
};

static const char *const *some_names(void)
{
	static const char *const names[] = {"gcn", "gin", NULL};
	return names;
}

#define AT(field) .offset = offsetof(struct taken, field)
static const struct tool_option options[] = {
    {"--flag", NULL, "", AT(flag), TOOL_FLAG},
    {"--text", "TEXT", "", AT(text), TOOL_TEXT},
    {"--word", "WORD", "", AT(word), TOOL_WORD("sum|mean|max")},
    {"--name", "NAME", "", AT(name), TOOL_NAME(some_names)},
    {"--choice", "CHOICE", "", AT(choice), TOOL_CHOICE("fp16|fp32")},
    {"--explain", NULL, "", AT(level), TOOL_LEVEL("full|short")},
    {"--epochs", "N", "", AT(whole), TOOL_INTEGER(0, TOOL_WHOLE)},
    {"--lr", "X", "", AT(real), TOOL_REAL(-1e3, 1e30)},
    {"--order", "ORDER", "", AT(order), TOOL_ORDER},
    {"--config", "FILE", "", AT(text), TOOL_TEXT, .line_only = 1}};

static void need(int good, const char *what, const char *message)
{
	if (good)
		return;
	fprintf(stderr, "%s: \"%s\"\n", what, message);
	abort();
}

static struct tool_line line_to(struct taken *to)
{
	return (struct tool_line){
	    .options = options, .count = sizeof options / sizeof *options, .to = to};
}

/* Options that are read are written, and what is written is read. */
static void options_are_read(const char *path)
{
	struct taken taken = {0}, again = {0};
	struct tool_line line = line_to(&taken), second = line_to(&again);
	json_t *held = NULL, *held_again = NULL;
	const int refused = tool_config_read(&line, path, &held);
	need(refused ? line.message[0] : !line.message[0], "options", line.message);
	if (!refused) {
		json_t *made = tool_config_make(&line);
		char *text = made ? json_dumps(made, JSON_REAL_PRECISION(9)) : NULL;
		need(text != NULL, "options that cannot be written", "");
		need(tool_config_read(&second, fuzz_file((const uint8_t *)text, strlen(text)),
		                      &held_again) == 0,
		     text, second.message);
		need(taken.flag == again.flag && taken.choice == again.choice &&
		         taken.level == again.level && taken.whole == again.whole &&
		         (float)taken.real == (float)again.real,
		     text, "is read as other options");
		json_decref(held_again);
		json_decref(made);
		free(text);
	}
	json_decref(held);
}

static void lines_are_read(const char *path)
{
	struct record run[2];
	char message[HG_DATA_MESSAGE] = "", *text = NULL;
	size_t size = 0;
	const hg_status status = record_read(&run[0], path, message);
	need(status == HG_OK ? !*message && run[0].seeds > 0 : *message, "lines", message);
	if (status == HG_OK) {
		FILE *out = open_memstream(&text, &size);
		run[1] = run[0];
		need(out != NULL, "no memory", "");
		page_compare_print(out, &(struct comparison){run, 2});
		need(fclose(out) == 0 && size > 0 && !strstr(text, "<script"), "page", "");
	}
	free(text);
	record_free(&run[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	lines_are_read(fuzz_file(bytes, count));
	options_are_read(fuzz_file(bytes, count));
	return 0;
}
