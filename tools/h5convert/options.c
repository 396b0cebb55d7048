/* The command line: one table serves parsing and --help. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "about.h"
#include "commandline.h"
#include "h5convert.h"
#include "tool.h"

#define AT(field) offsetof(struct options, field)

/* The formats of --from. */
static const char *const *format_names(void)
{
	enum { MOST = 31 };
	static const char *name[MOST + 1]; /* the last one stays NULL */
	size_t count = 0;
	const hg_importer *importers = hg_importers(&count);
	for (size_t k = 0; k < count && k < MOST; k++)
		name[k] = importers[k].name;
	return name;
}

static const struct tool_option table[] = {
    {"--from", "FORMAT",
     "format of the inputs (--list-formats); default: what the first one looks like", AT(from),
     TOOL_TEXT, .offer_names = format_names},
    {"--header", "yes|no|auto",
     "edge lists: is the first line a header with counts? auto (default): yes if the counts fit",
     AT(header), TOOL_CHOICE("auto|yes|no")},
    {"-o", "OUT.h5", "file to write; it appears complete or not at all", AT(output), TOOL_TEXT,
     .offer = "FILE"},
    {"--export", "npz",
     "write a numpy archive, which numpy.load opens and h5convert reads back bit for bit; without "
     "-o the last file is the output",
     AT(export), TOOL_WORD("npz")},
    {"--name", "NAME", "name of the dataset; default: the name of the first input", AT(name),
     TOOL_TEXT},
    {"--features", "WHAT",
     "features of the nodes: a file (.npy, or text with a row of numbers per node, by id where a "
     "heading begins with id or node_id), degree, one-hot-degree or constant; with --synthetic "
     "planted their number (64)",
     AT(features), TOOL_TEXT, .offer = "degree|one-hot-degree|constant|FILE"},
    {"--labels", "FILE",
     "labels, one whole number per node or graph (.npy or text, also by id; below 0: none); other "
     "numbers are real targets",
     AT(labels), TOOL_TEXT},
    {"--split", "WHAT",
     "a file with train, val, test or none (or 0, 1, 2, -1) per node or graph; random:A/B/C, "
     "fractions; per-class:A/B/C, numbers, of which one may be rest; folds:K, for hg-train "
     "--folds; :S after them, or --seed S, draws another",
     AT(split), TOOL_TEXT, .offer = "FILE"},
    {"--target", "NAME|K",
     "keep one column of the real targets, by its name or its number from 0, to train on",
     AT(target), TOOL_TEXT},
    {"--symmetrize", NULL, "add the reverse of every edge; of two weights the larger stays",
     AT(symmetrize), TOOL_FLAG},
    {"--largest-component", NULL, "keep the largest connected component (directions ignored)",
     AT(largest_component), TOOL_FLAG},
    {"--self-loops", NULL, "add a self loop to every node that has none", AT(self_loops),
     TOOL_FLAG},
    {"--row-normalize", NULL, "divide each node's features by their absolute sum",
     AT(row_normalize), TOOL_FLAG},
    {"--standardize", NULL,
     "give every column of the features mean 0 and standard deviation 1; sparse ones become dense",
     AT(standardize), TOOL_FLAG},
    {"--positional", "KIND:K",
     "append K columns to the features: random-walk (the probability of a walk to be back after 1 "
     "to K steps) or laplacian (eigenvectors of the normalised Laplacian); several with commas",
     AT(positional), TOOL_TEXT},
    {"--clip", NULL,
     "clip features to +-65504, the range of fp16; without it larger features are refused",
     AT(clip), TOOL_FLAG},
    {"--features-dtype", "f16|f32",
     "type of dense features in the file; f32 also allows values above 65504", AT(features_dtype),
     TOOL_WORD("f16|f32")},
    {"--fold", "F/K",
     "split for cross-validation: fold F (from 0) of K is the test set, the next fold "
     "validates; every fold has about the same share of each class. Folds that the dataset holds "
     "are used if there are K",
     AT(folds), TOOL_TEXT},
    {"--reorder", "METHOD",
     "put nodes that share neighbours side by side: auto, community, leading, rcm, degree; "
     "original restores the first order",
     AT(reorder), TOOL_ORDER},
    {"--synthetic", "planted", "generate a graph instead of reading one: planted communities",
     AT(synthetic), TOOL_WORD("planted")},
    {"--nodes", "N", "nodes (10000)", AT(planted.nodes), TOOL_INTEGER(0, TOOL_WHOLE),
     .only = "planted"},
    {"--classes", "N", "communities of equal size, which are the labels (8)", AT(classes),
     TOOL_INTEGER(0, INT32_MAX), .only = "planted"},
    {"--degree", "X", "mean degree without hubs; power law of exponent 2.5 (10)",
     AT(planted.degree), TOOL_REAL(-1e300, 1e300), .only = "planted"},
    {"--hubs", "N", "nodes with very many neighbours (8)", AT(planted.hubs),
     TOOL_INTEGER(0, TOOL_WHOLE), .only = "planted"},
    {"--hub-degree", "X", "approximate number of neighbours of a hub (4000, or half the nodes)",
     AT(planted.hub_degree), TOOL_REAL(-1e300, 1e300), .only = "planted"},
    {"--scale", "X",
     "factor on features of about 0 to 2 (1); from 17 on the sum at a hub of 4000 exceeds 65504",
     AT(planted.scale), TOOL_REAL(-1e300, 1e300), .only = "planted"},
    {"--seed", "S",
     "of --synthetic planted, or without it of a split that is drawn, as :S after it: the same "
     "seed "
     "gives the same file on every machine (0)",
     AT(planted.seed), TOOL_INTEGER(0, TOOL_WHOLE)},
    {"--inspect", "FILE.h5", "check a dataset and describe it", AT(inspect), TOOL_TEXT},
    {"--check", "FILE",
     "find out whether a dataset, of any format, is fit for fp16: all that is refused, what "
     "rounding does to each column of the features, labels, splits, hubs",
     AT(check), TOOL_TEXT},
    {"--seal", "FILE.h5", "check a dataset or checkpoint and put a new checksum on it", AT(seal),
     TOOL_TEXT},
    {"--json", NULL,
     "with --inspect, or --reorder: one JSON object; with --check: one for each column and "
     "finding, "
     "and a last one with \"event\":\"check_summary\"",
     AT(json), TOOL_FLAG},
    {"--list-formats", NULL, "the formats of --from", AT(list_formats), TOOL_FLAG},
    {"--quiet", NULL, "print nothing but errors; with --check: nothing but the report", AT(quiet),
     TOOL_FLAG},
    {"--version", NULL, "the version", AT(version), TOOL_FLAG},
    {"--help", NULL, "this text", AT(help), TOOL_FLAG},
};
#define OPTIONS (sizeof table / sizeof table[0])

static const struct tool_part parts[] = {
    {.title = "notes",
     .text = "Transforms are applied in the order of the options above, whatever that on the "
             "command line.\n"
             "\n"
             "Training on reordered nodes gives the same results up to rounding. With dropout, "
             "which draws by\n"
             "position, the run differs as with another seed.\n"}};

const struct tool_about options_about = {
    .tool = "h5convert",
    .summary = "convert graph datasets to HalfGraph's HDF5 format",
    .usage = "[--from FORMAT] INPUT... -o OUT.h5 [transforms]\n"
             "--synthetic planted -o OUT.h5 [--nodes N ...]\n"
             "--export npz INPUT... OUT.npz [transforms]\n"
             "--inspect FILE.h5 [--json]\n"
             "--check FILE [--json]\n"
             "--seal FILE.h5\n",
    .text = "Converts graph datasets to HalfGraph's HDF5 format, generates one, or describes and "
            "checks one.\n",
    .examples =
        "  h5convert --from npz cora.npz --row-normalize -o cora.h5\n"
        "  h5convert --from npz amazon_computers.npz --symmetrize --largest-component -o "
        "computers.h5\n"
        "  h5convert MUTAG.zip --fold 0/10 -o mutag.h5\n"
        "  h5convert cora.h5 --positional random-walk:16 -o walks.h5\n"
        "  h5convert --from edges soc-Epinions1.txt.gz --symmetrize -o epinions.h5\n"
        "  h5convert web.txt.gz --features degree --labels topics.csv --split random:0.6/0.2/0.2 "
        "-o "
        "web.h5\n"
        "  h5convert --synthetic planted --scale 32 --features-dtype f16 -o planted.h5\n"
        "  h5convert planted.h5 --reorder auto -o ordered.h5\n"
        "  h5convert --export npz planted.h5 planted.npz\n"
        "  h5convert --inspect planted.h5\n"
        "  h5convert --check planted.h5\n",
    .part = parts,
    .parts = 1,
    .options = table,
    .count = OPTIONS,
    .owners = 1,
    .codes = {.done = "done; with --check: the dataset is fit",
              .bad_run = "--check: fp16 loses data, or training cannot learn what it should",
              .interrupted = "interrupted; no file is left"},
    .files = 1,
};

/* One part of --positional, "laplacian:8". Returns its length, or 0. */
static size_t parse_encoding(const char *text, hg_positional *kind, int64_t *columns)
{
	static const char *const kinds[] = {"random-walk:", "laplacian:"};
	for (int k = 0; k < 2; k++) {
		const size_t length = strlen(kinds[k]), digits = strspn(text + length, "0123456789");
		if (strncmp(text, kinds[k], length) != 0 || digits < 1 || digits > 3)
			continue;
		*kind = (hg_positional)k;
		*columns = strtol(text + length, NULL, 10);
		return *columns >= 1 && *columns <= 256 ? length + digits : 0;
	}
	return 0;
}

/* "random-walk:16,laplacian:8" */
static int parse_positional(struct tool_line *line, struct options *o)
{
	const char *at = o->positional;
	while (at) {
		hg_positional kind = HG_POSITIONAL_RANDOM_WALK;
		int64_t columns = 0;
		const size_t length = o->encodings < ENCODINGS ? parse_encoding(at, &kind, &columns) : 0;
		const char end = at[length];
		if (!length || (end && end != ','))
			return tool_refuse(
			    line,
			    "--positional is \"%s\", expected random-walk:K or laplacian:K with K "
			    "from 1 to 256, or up to %d of them with commas",
			    o->positional, ENCODINGS);
		o->encoding[o->encodings].kind = kind;
		o->encoding[o->encodings++].columns = columns;
		at = end ? at + length + 1 : NULL;
	}
	return 0;
}

/* "3/10" */
static int parse_folds(struct tool_line *line, struct options *o)
{
	int end = 0;
	if (o->folds && (sscanf(o->folds, "%5" SCNd64 "/%5" SCNd64 "%n", &o->fold, &o->of, &end) != 2 ||
	                 o->folds[end] || o->of < 3 || o->fold < 0 || o->fold >= o->of))
		return tool_refuse(
		    line,
		    "--fold is \"%s\", expected F/K: fold F, from 0, of K, at least 3 and at most 99999",
		    o->folds);
	return 0;
}

/* --features of a planted graph is a number. */
static int parse_features(struct tool_line *line, struct options *o)
{
	if (!o->synthetic || !o->features)
		return 0;
	const size_t digits = strspn(o->features, "0123456789");
	if (digits == 0 || digits > 15 || o->features[digits])
		return tool_refuse(line, "--features is \"%s\", expected a whole number from 0",
		                   o->features);
	o->planted.features = strtoll(o->features, NULL, 10);
	return 0;
}

static int parse_split(struct tool_line *line, struct options *o)
{
	if (o->split && !split_parse(o->split, &o->split_parts))
		return tool_refuse(
		    line,
		    "--split is \"%s\", expected a file, random:A/B/C with fractions of at "
		    "most 1 in sum, per-class:A/B/C with numbers, one of them may be rest, or folds:K "
		    "with K from 2",
		    o->split);
	return o->split && o->folds ? tool_refuse(line, "--split and --fold exclude each other") : 0;
}

/* --seed seeds the planted graph, or else a split that is drawn. */
static int parse_seed(struct tool_line *line, struct options *o)
{
	struct split *split = &o->split_parts;
	const int other = o->inspect || o->help || o->version || o->list_formats;
	if (!tool_given(line, "--seed") || o->synthetic || other)
		return 0;
	if (!o->split || split->kind == SPLIT_FILE)
		return tool_refuse(line, "--seed belongs to --synthetic planted, or to --split random, "
		                         "per-class or folds");
	if (split->has_seed)
		return tool_refuse(line, "--split \"%s\" names a seed already, without --seed", o->split);
	split->seed = o->planted.seed;
	return 0;
}

/* --check takes nothing but options of reading and printing. */
static int check_check(struct tool_line *line, const struct options *o)
{
	static const char *const with[] = {"--check", "--json", "--from", "--header", "--quiet"};
	size_t allowed = 0;
	for (size_t k = 0; k < sizeof with / sizeof *with; k++)
		allowed += tool_given(line, with[k]) != 0;
	return o->input_count || tool_given_count(line) > allowed
	           ? tool_refuse(line, "--check takes one file and only --json, --from, --header and "
	                               "--quiet besides")
	           : 0;
}

/* A name that says another format than the one that is written is a mistake. */
static int check_ending(struct tool_line *line, const struct options *o)
{
	const char *dot = strrchr(o->output, '.'), *ending = dot ? dot : "";
	if (!o->export && strcmp(ending, ".npz") == 0)
		return tool_refuse(line, "-o %s: to write a numpy archive, add --export npz", o->output);
	if (o->export && (strcmp(ending, ".h5") == 0 || strcmp(ending, ".hdf5") == 0))
		return tool_refuse(line, "-o %s: --export npz writes no HDF5 file, name it OUT.npz",
		                   o->output);
	return 0;
}

static int check_options(struct tool_line *line, const struct options *o)
{
	const struct tool_option *misfit = tool_misfit(line, o->synthetic ? o->synthetic : "");
	if (o->help || o->version || o->list_formats)
		return 0;
	for (int k = 0; k < o->input_count; k++)
		if (o->inputs[k][0] == 0)
			return tool_refuse(line, "the name of input %d is empty", k + 1);
	if (o->seal)
		return tool_given_count(line) > 1 || o->input_count
		           ? tool_refuse(line, "--seal takes one file and no other option")
		           : 0;
	if (o->inspect)
		return o->input_count || o->output || o->synthetic || o->export || o->check
		           ? tool_refuse(line, "--inspect takes one file and only --json besides")
		           : 0;
	if (o->check)
		return check_check(line, o);
	if (o->json && !o->reorder)
		return tool_refuse(line, "--json belongs to --inspect, --check and --reorder");
	if (o->synthetic && (o->input_count || o->from))
		return tool_refuse(line, "--synthetic %s reads no input", o->synthetic);
	if (o->header && (o->synthetic || (o->from && strcmp(o->from, "edges") != 0)))
		return tool_refuse(line, "--header is for edge lists (--from edges)");
	if (misfit)
		return tool_refuse(line, "%s belongs to --synthetic planted", misfit->name);
	if (!o->synthetic && o->input_count == 0)
		return tool_refuse(line, "no input: try h5convert --help");
	if (!o->output)
		return tool_refuse(line, "no output: add -o %s", o->export ? "OUT.npz" : "OUT.h5");
	return check_ending(line, o);
}

static int add_input(struct tool_line *line, const char *word)
{
	struct options *o = line->to;
	o->inputs[o->input_count++] = word;
	return 0;
}

int options_parse(int argc, char **argv, struct options *o, char *message)
{
	struct tool_line line = {.options = table, .count = OPTIONS, .to = o, .operand = add_input};
	*o = (struct options){.planted = HG_PLANTED_CONFIG_INIT};
	const double usual = o->planted.hub_degree;
	o->planted.hub_degree = (double)NAN; /* until the option is given */
	o->classes = o->planted.classes;
	o->inputs = calloc((size_t)argc + 1, sizeof *o->inputs);
	int bad = o->inputs ? tool_line_read(&line, argc, argv) : tool_refuse(&line, "out of memory");
	if (!bad && o->export && !o->output && o->input_count > 1)
		o->output = o->inputs[--o->input_count];
	if (!bad)
		bad = check_options(&line, o) || parse_folds(&line, o) || parse_positional(&line, o) ||
		              parse_features(&line, o) || parse_split(&line, o) || parse_seed(&line, o)
		          ? -1
		          : 0;
	if (!bad && o->check)
		o->inputs[o->input_count++] = o->check;
	if (isnan(o->planted.hub_degree))
		o->planted.hub_degree = fmin(usual, (double)o->planted.nodes / 2);
	o->planted.classes = (int32_t)o->classes;
	snprintf(message, HG_DATA_MESSAGE, "%s", line.message);
	return bad;
}
