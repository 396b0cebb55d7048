/* Completion of a tool's options and of their values, for three shells. */
#include <string.h>

#include "about.h"

/* The words that can be typed for a value, with blanks between them, and whether a file can. */
struct offer {
	char words[1024];
	int files;
};

static void offer_add(struct offer *offer, const char *word, size_t length)
{
	const size_t used = strlen(offer->words);
	if (length == 4 && strncmp(word, "FILE", 4) == 0)
		offer->files = 1;
	else if (used + length + 2 <= sizeof offer->words)
		(void)snprintf(offer->words + used, sizeof offer->words - used, "%s%.*s", used ? " " : "",
		               (int)length, word);
}

/* "a|b|c" */
static void offer_list(struct offer *offer, const char *list)
{
	while (list && *list) {
		const size_t length = strcspn(list, "|");
		offer_add(offer, list, length);
		list += length + (list[length] == '|');
	}
}

static void offer_names(struct offer *offer, const char *const *name)
{
	for (; name && *name; name++)
		offer_add(offer, *name, strlen(*name));
}

static void offer_make(struct offer *offer, const struct tool_option *o)
{
	*offer = (struct offer){.files = o->argument && strstr(o->argument, "FILE")};
	offer_list(offer, o->choices);
	offer_list(offer, o->offer);
	offer_names(offer, o->names ? o->names() : NULL);
	offer_names(offer, o->offer_names ? o->offer_names() : NULL);
}

static size_t option_count(const struct tool_about *about)
{
	return about->shared_count + about->count;
}

static const struct tool_option *option_at(const struct tool_about *about, size_t k)
{
	return k < about->shared_count ? &about->shared[k] : &about->options[k - about->shared_count];
}

/* Does the option take the next word as its value? */
static int has_value(const struct tool_option *o)
{
	return o->argument != NULL;
}

/* ---- bash ---- */

/* "_hg_train" of "hg-train" */
static void print_function(FILE *out, const char *tool)
{
	(void)fputc('_', out);
	for (; *tool; tool++)
		(void)fputc(*tool == '-' ? '_' : *tool, out);
}

static void bash_reply(FILE *out, const char *words, int files)
{
	const char *list = files && *words ? "compgen -W \"%s\" -- \"$cur\"; compgen -f -- \"$cur\""
	                   : files         ? "compgen -f -- \"$cur\""
	                                   : "compgen -W \"%s\" -- \"$cur\"";
	if (files)
		(void)fputs("compopt -o filenames 2>/dev/null; ", out);
	(void)fputs("mapfile -t COMPREPLY < <(", out);
	for (const char *c = list; *c; c++)
		if (strncmp(c, "%s", 2) == 0) {
			(void)fputs(words, out);
			c++;
		} else
			(void)fputc(*c, out);
	(void)fputs(")", out);
}

static void bash_options(FILE *out, const struct tool_about *about)
{
	(void)fputs("\t-*) mapfile -t COMPREPLY < <(compgen -W \"", out);
	for (size_t k = 0; k < option_count(about); k++)
		(void)fprintf(out, "%s%s", k ? " " : "", option_at(about, k)->name);
	(void)fputs("\" -- \"$cur\") ;;\n", out);
}

static void bash_operands(FILE *out, const struct tool_about *about)
{
	struct offer offer = {.files = about->files};
	struct tool_row row;
	for (int k = 0; about->words && about->words(k, &row); k++)
		offer_add(&offer, row.name, strlen(row.name));
	if (!offer.files && !*offer.words)
		return;
	(void)fputs("\t*) ", out);
	bash_reply(out, offer.words, offer.files);
	(void)fputs(" ;;\n", out);
}

static void print_bash(FILE *out, const struct tool_about *about)
{
	(void)fprintf(out, "# Printed by %s --completion bash from the table of its options.\n",
	              about->tool);
	print_function(out, about->tool);
	(void)fputs("()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} option=\n\tCOMPREPLY=()\n"
	            "\tif ((COMP_CWORD > 0)); then option=${COMP_WORDS[COMP_CWORD - 1]}; fi\n"
	            "\t# --name=value is three words\n"
	            "\tif [[ $cur == '=' ]]; then\n\t\tcur=\n"
	            "\telif [[ $option == '=' ]] && ((COMP_CWORD > 1)); then\n"
	            "\t\toption=${COMP_WORDS[COMP_CWORD - 2]}\n"
	            "\telif [[ $option == --* ]]; then\n\t\tcase $option in\n\t\t",
	            out);
	/* these take a value only after '=' */
	const char *before = "";
	for (size_t k = 0; k < option_count(about); k++)
		if (!has_value(option_at(about, k))) {
			(void)fprintf(out, "%s%s", before, option_at(about, k)->name);
			before = "|";
		}
	(void)fputs(") option= ;;\n\t\tesac\n\tfi\n\tcase $option in\n", out);
	for (size_t k = 0; k < option_count(about); k++) {
		const struct tool_option *o = option_at(about, k);
		struct offer offer;
		offer_make(&offer, o);
		if (!has_value(o) && !*offer.words)
			continue;
		(void)fprintf(out, "\t%s) ", o->name);
		if (offer.files || *offer.words) {
			bash_reply(out, offer.words, offer.files);
			(void)fputs("; ", out);
		}
		(void)fputs("return ;;\n", out);
	}
	(void)fputs("\tesac\n\tcase $cur in\n", out);
	bash_options(out, about);
	bash_operands(out, about);
	(void)fputs("\tesac\n}\ncomplete -F ", out);
	print_function(out, about->tool);
	(void)fprintf(out, " %s\n", about->tool);
}

/* ---- zsh and fish ---- */

/* A text in single quotes, of at most one line of a menu. `escaped` are the characters that get a
 * backslash; `quote` stands for a single quote. */
static void print_short(FILE *out, const char *text, const char *escaped, const char *quote)
{
	enum { MOST = 72 };
	size_t length = strlen(text);
	if (length > MOST) {
		length = MOST;
		while (length > 1 && text[length] != ' ')
			length--;
	}
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\'')
			(void)fputs(quote, out);
		else if (strchr(escaped, text[i]))
			(void)fprintf(out, "\\%c", text[i]);
		else
			(void)fputc(text[i], out);
	}
	if (text[length])
		(void)fputs(" ...", out);
}

#define ZSH_QUOTE "'\\''"

/* What zsh calls for a value. */
static void zsh_action(FILE *out, const struct offer *offer)
{
	if (offer->files && *offer->words)
		(void)fprintf(out, "{compadd - %s; _files}", offer->words);
	else if (offer->files)
		(void)fputs("_files", out);
	else if (*offer->words)
		(void)fprintf(out, "(%s)", offer->words);
	else
		(void)fputs(" ", out);
}

static void zsh_option(FILE *out, const struct tool_option *o)
{
	struct offer offer;
	offer_make(&offer, o);
	const int value = has_value(o) || *offer.words;
	/* "=": the value is the next word or follows '='; "=-": it follows '=' */
	const int is_long = strncmp(o->name, "--", 2) == 0;
	(void)fprintf(out, " \\\n  '%s%s[", o->name,
	              !value || !is_long ? ""
	              : has_value(o)     ? "="
	                                 : "=-");
	print_short(out, o->help, "\\[]", ZSH_QUOTE);
	(void)fputc(']', out);
	if (value) {
		(void)fputs(has_value(o) ? ":" : "::", out);
		print_short(out, o->argument ? o->argument : "value", ":\\", ZSH_QUOTE);
		(void)fputc(':', out);
		zsh_action(out, &offer);
	}
	(void)fputc('\'', out);
}

static void print_zsh(FILE *out, const struct tool_about *about)
{
	struct offer offer = {.files = about->files};
	struct tool_row row;
	(void)fprintf(out,
	              "#compdef %s\n# Printed by %s --completion zsh from the table of its options.\n"
	              "_arguments -S",
	              about->tool, about->tool);
	for (size_t k = 0; k < option_count(about); k++)
		zsh_option(out, option_at(about, k));
	for (int k = 0; about->words && about->words(k, &row); k++)
		offer_add(&offer, row.name, strlen(row.name));
	if (offer.files || *offer.words) {
		(void)fputs(offer.files ? " \\\n  '*:file:" : " \\\n  ':command:", out);
		zsh_action(out, &offer);
		(void)fputc('\'', out);
	}
	(void)fputc('\n', out);
}

static void fish_option(FILE *out, const char *tool, const struct tool_option *o)
{
	struct offer offer;
	offer_make(&offer, o);
	const int is_long = strncmp(o->name, "--", 2) == 0;
	(void)fprintf(out, "complete -c %s %s %s", tool, is_long ? "-l" : "-s",
	              o->name + strspn(o->name, "-"));
	if (has_value(o))
		(void)fputs(offer.files ? " -r -F" : " -x", out);
	if (*offer.words)
		(void)fprintf(out, " -a '%s'", offer.words);
	(void)fputs(" -d '", out);
	print_short(out, o->help, "\\", "\\'");
	(void)fputs("'\n", out);
}

static void print_fish(FILE *out, const struct tool_about *about)
{
	struct tool_row row;
	(void)fprintf(out, "# Printed by %s --completion fish from the table of its options.\n",
	              about->tool);
	if (!about->files)
		(void)fprintf(out, "complete -c %s -f\n", about->tool);
	for (int k = 0; about->words && about->words(k, &row); k++) {
		(void)fprintf(out, "complete -c %s -n __fish_use_subcommand -a %s -d '", about->tool,
		              row.name);
		print_short(out, row.text, "\\", "\\'");
		(void)fputs("'\n", out);
	}
	for (size_t k = 0; k < option_count(about); k++)
		fish_option(out, about->tool, option_at(about, k));
}

int tool_completion_print(FILE *out, const struct tool_about *about, const char *shell)
{
	if (strcmp(shell, "bash") == 0)
		print_bash(out, about);
	else if (strcmp(shell, "zsh") == 0)
		print_zsh(out, about);
	else if (strcmp(shell, "fish") == 0)
		print_fish(out, about);
	else
		return -1;
	return 0;
}
