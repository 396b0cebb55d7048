/* The command line: one table makes parsing and --help. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5convert.h"

/* A parser stores a value's text in its field; 0 if it cannot. Flags have no text. */
typedef int (*parse_fn)(const char *text, void *field);

static int parse_flag(const char *text, void *field)
{
	(void)text;
	*(int *)field = 1;
	return 1;
}

static int parse_text(const char *text, void *field)
{
	*(const char **)field = text;
	return 1;
}

static int parse_count(const char *text, void *field)
{
	char *end = NULL;
	errno = 0;
	const long long value = strtoll(text, &end, 10);
	*(int64_t *)field = value;
	return end != text && *end == 0 && errno == 0 && value >= 0;
}

static int parse_small(const char *text, void *field)
{
	int64_t value = 0;
	const int ok = parse_count(text, &value) && value <= INT_MAX;
	*(int32_t *)field = ok ? (int32_t)value : 0;
	return ok;
}

static int parse_seed(const char *text, void *field)
{
	char *end = NULL;
	errno = 0;
	*(uint64_t *)field = strtoull(text, &end, 10);
	return end != text && *end == 0 && errno == 0 && *text != '-';
}

static int parse_real(const char *text, void *field)
{
	char *end = NULL;
	*(double *)field = strtod(text, &end);
	return end != text && *end == 0;
}

struct option {
	const char *name, *value; /* value NULL: a flag */
	parse_fn parse;
	size_t field;
	int planted;
	const char *help;
};

#define FIELD(name) offsetof(struct options, name)

static const struct option table[] = {
    {"--from", "FORMAT", parse_text, FIELD(from), 0, "format of the inputs (--list-formats); left out: by the first one's ending"},
    {"-o", "OUT.h5", parse_text, FIELD(output), 0, "file to write; it appears complete or not at all"},
    {"--name", "NAME", parse_text, FIELD(name), 0, "name of the dataset; left out: the first input's"},
    {"--symmetrize", NULL, parse_flag, FIELD(symmetrize), 0, "add every edge's reverse; of two weights the larger stays"},
    {"--largest-component", NULL, parse_flag, FIELD(largest_component), 0, "keep the largest connected component (directions ignored)"},
    {"--self-loops", NULL, parse_flag, FIELD(self_loops), 0, "add a self loop to every node that has none"},
    {"--row-normalize", NULL, parse_flag, FIELD(row_normalize), 0, "divide each node's features by their absolute sum"},
    {"--clip", NULL, parse_flag, FIELD(clip), 0, "clip features to +-65504, all that fp16 can hold; without it they are refused"},
    {"--features-dtype", "f16|f32", parse_text, FIELD(features_dtype), 0, "type of dense features in the file; f32 also allows values beyond 65504"},
    {"--reorder", "METHOD", parse_text, FIELD(reorder), 0,
     "nodes that share neighbours side by side: auto, community, leading, rcm, degree; original undoes it"},
    {"--synthetic", "planted", parse_text, FIELD(synthetic), 0, "make a graph instead of reading one: planted communities"},
    {"--nodes", "N", parse_count, FIELD(planted.nodes), 1, "nodes (10000)"},
    {"--classes", "N", parse_small, FIELD(planted.classes), 1, "communities of equal size, which are the labels (8)"},
    {"--features", "N", parse_count, FIELD(planted.features), 1, "features of a node (64)"},
    {"--degree", "X", parse_real, FIELD(planted.degree), 1, "mean degree without hubs; power law of exponent 2.5 (10)"},
    {"--hubs", "N", parse_count, FIELD(planted.hubs), 1, "nodes tied to very many others (8)"},
    {"--hub-degree", "X", parse_real, FIELD(planted.hub_degree), 1, "neighbours of a hub, about (4000)"},
    {"--scale", "X", parse_real, FIELD(planted.scale), 1, "features are about 0 to 2, times this (1); from 17 on a hub of 4000 sums past 65504"},
    {"--seed", "S", parse_seed, FIELD(planted.seed), 1, "the same seed gives the same file's content on every machine (0)"},
    {"--inspect", "FILE.h5", parse_text, FIELD(inspect), 0, "check a dataset and show what is in it"},
    {"--json", NULL, parse_flag, FIELD(json), 0, "with --inspect, or --reorder: one JSON object"},
    {"--list-formats", NULL, parse_flag, FIELD(list_formats), 0, "the formats of --from"},
    {"--quiet", NULL, parse_flag, FIELD(quiet), 0, "say nothing but errors"},
    {"--version", NULL, parse_flag, FIELD(version), 0, "the version"},
    {"--help", NULL, parse_flag, FIELD(help), 0, "this text"},
};

void options_help(void)
{
	puts("h5convert: graph datasets into HalfGraph's HDF5 format\n\n"
	     "  h5convert [--from FORMAT] INPUT... -o OUT.h5 [transforms]\n"
	     "  h5convert --synthetic planted -o OUT.h5 [--nodes N ...]\n"
	     "  h5convert --inspect FILE.h5 [--json]\n\n"
	     "Examples\n"
	     "  h5convert --from npz cora.npz --row-normalize -o cora.h5\n"
	     "  h5convert --from npz amazon_computers.npz --symmetrize --largest-component -o computers.h5\n"
	     "  h5convert --from edges soc-Epinions1.txt.gz --symmetrize -o epinions.h5\n"
	     "  h5convert --synthetic planted --scale 32 --features-dtype f16 -o planted.h5\n"
	     "  h5convert planted.h5 --reorder auto -o ordered.h5\n"
	     "  h5convert --inspect planted.h5\n\n"
	     "Options");
	for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
		char head[64];
		snprintf(head, sizeof head, "%s %s", table[k].name, table[k].value ? table[k].value : "");
		printf("  %-24s %s%s\n", head, table[k].planted ? "planted: " : "", table[k].help);
	}
	puts("\nTransforms are applied in the order of this list, whatever the order on the command line.\n"
	     "Exit code: 0 done, 2 the input or the command line is wrong, 1 anything else (no memory, no disk), 130 interrupted.");
}

/* The option called `name`, which may be followed by "=value". */
static const struct option *find(const char *argument, const char **value)
{
	const char *equals = strchr(argument, '=');
	const size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
	*value = equals ? equals + 1 : NULL;
	for (size_t k = 0; k < sizeof table / sizeof table[0]; k++)
		if (strlen(table[k].name) == length && strncmp(table[k].name, argument, length) == 0)
			return &table[k];
	return NULL;
}

static int fail(char *message, const char *format, const char *a, const char *b)
{
	snprintf(message, HG_DATA_MESSAGE, format, a, b);
	return -1;
}

static int is_order(const char *name)
{
	size_t count = 0;
	const hg_order_method *methods = hg_order_methods(&count);
	for (size_t k = 0; k < count; k++)
		if (strcmp(methods[k].name, name) == 0)
			return 1;
	return strcmp(name, "original") == 0;
}

static int check(const struct options *o, char *message)
{
	if (o->help || o->version || o->list_formats)
		return 0;
	for (int k = 0; k < o->input_count; k++)
		if (o->inputs[k][0] == 0) {
			snprintf(message, HG_DATA_MESSAGE, "the name of input %d is empty", k + 1);
			return -1;
		}
	if (o->inspect)
		return o->input_count || o->output || o->synthetic ? fail(message, "--inspect takes one file and only --json besides%s%s", "", "") : 0;
	if (o->json && !o->reorder)
		return fail(message, "--json belongs to --inspect and --reorder%s%s", "", "");
	if (o->reorder && !is_order(o->reorder))
		return fail(message, "--reorder %s is not known: auto, community, leading, rcm, degree and original are%s", o->reorder, "");
	if (o->synthetic && (o->input_count || o->from))
		return fail(message, "--synthetic %s reads no input%s", o->synthetic, "");
	if (o->synthetic && strcmp(o->synthetic, "planted") != 0)
		return fail(message, "--synthetic %s is not known; planted is%s", o->synthetic, "");
	if (o->planted_set && !o->synthetic)
		return fail(message, "--nodes, --classes and so on belong to --synthetic planted%s%s", "", "");
	if (!o->synthetic && o->input_count == 0)
		return fail(message, "no input: try h5convert --help%s%s", "", "");
	if (!o->output)
		return fail(message, "no output: add -o OUT.h5%s%s", "", "");
	if (o->features_dtype && strcmp(o->features_dtype, "f16") != 0 && strcmp(o->features_dtype, "f32") != 0)
		return fail(message, "--features-dtype %s is not known; f16 and f32 are%s", o->features_dtype, "");
	return 0;
}

int options_parse(int argc, char **argv, struct options *o, char *message)
{
	int rest_are_inputs = 0;
	*o = (struct options){.planted = HG_PLANTED_CONFIG_INIT};
	o->inputs = calloc((size_t)argc + 1, sizeof *o->inputs);
	if (!o->inputs)
		return fail(message, "out of memory%s%s", "", "");
	for (int i = 1; i < argc; i++) {
		const char *value = NULL;
		if (rest_are_inputs || argv[i][0] != '-' || argv[i][1] == 0) {
			o->inputs[o->input_count++] = argv[i];
			continue;
		}
		rest_are_inputs = strcmp(argv[i], "--") == 0;
		if (rest_are_inputs)
			continue;
		const struct option *option = find(argv[i], &value);
		if (!option)
			return fail(message, "option %s is not known: try h5convert --help%s", argv[i], "");
		if (!option->value && value)
			return fail(message, "%s takes no value, found \"%s\"", option->name, value);
		if (option->value && !value && i + 1 < argc)
			value = argv[++i];
		if (option->value && !value)
			return fail(message, "%s needs a value: %s", option->name, option->value);
		if (option->value && *value == 0)
			return fail(message, "%s needs a value, found nothing: %s", option->name, option->value);
		if (!option->parse(value, (char *)o + option->field))
			return fail(message, "%s: \"%s\" is not a number it can take", option->name, value);
		o->planted_set |= option->planted;
	}
	return check(o, message);
}
