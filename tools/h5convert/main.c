/* h5convert: read or generate a dataset, transform it, and write it as HDF5. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "h5convert.h"
#include "halfgraph/version.h"
#include "tool.h"
#include "watch.h"

static void list_formats(void)
{
	size_t count = 0;
	const hg_importer *table = hg_importers(&count);
	for (size_t k = 0; k < count; k++)
		printf("%-9s %s; %s (%s)\n", table[k].name, table[k].help,
		       table[k].inputs == 1 ? "one file" : "one or more files", table[k].endings);
}

/* The importer that --from names, or the one of the first input's format. */
static hg_status find_importer(const struct options *o, const hg_importer **importer, char *message)
{
	size_t count = 0;
	const hg_importer *table = hg_importers(&count);
	*importer = NULL;
	for (size_t k = 0; o->from && k < count; k++)
		if (strcmp(table[k].name, o->from) == 0)
			*importer = &table[k];
	if (*importer)
		return HG_OK;
	if (o->from) {
		snprintf(message, HG_DATA_MESSAGE, "--from %s is not known: try h5convert --list-formats",
		         o->from);
		return HG_ERR_ARG;
	}
	return hg_import_recognise(o->inputs[0], importer, message);
}

/* Print what the importer decided or left out. */
static void on_note(void *user, const char *sentence)
{
	const struct options *o = user;
	if (!o->quiet)
		tool_say("h5convert", "%s", sentence);
}

static hg_status load_dataset(struct options *o, hg_dataset **d, char *message)
{
	if (o->synthetic) {
		o->planted.progress = watch_progress();
		return hg_dataset_planted(&o->planted, d, message);
	}
	const hg_importer *importer = NULL;
	hg_import_config config = HG_IMPORT_CONFIG_INIT;
	const hg_status found = find_importer(o, &importer, message);
	if (found < 0)
		return found;
	if (importer->inputs == 1 && o->input_count != 1) {
		snprintf(message, HG_DATA_MESSAGE, "--from %s takes one file, found %d", importer->name,
		         o->input_count);
		return HG_ERR_ARG;
	}
	if (o->header && strcmp(importer->name, "edges") != 0) {
		snprintf(message, HG_DATA_MESSAGE, "--header is for edge lists, and %s is read as %s",
		         o->inputs[0], importer->name);
		return HG_ERR_ARG;
	}
	config.header = (hg_header)o->header;
	config.progress = watch_progress();
	config.note = on_note;
	config.user = o;
	config.fold = o->fold;
	config.folds = o->folds ? o->of : 0;
	const hg_status status = importer->import(o->inputs, o->input_count, &config, d, message);
	if (status == HG_OK && !o->from && !o->quiet && strcmp(importer->name, "h5") != 0)
		tool_say("h5convert", "%s: read as %s", o->inputs[0], importer->name);
	if (status == HG_OK && strcmp(importer->name, "gin") == 0 && (*d)->test_mask)
		o->folds = NULL; /* the set's own fold is taken */
	return status;
}

static hg_status convert_features(const struct options *o, hg_dataset *d, char *message)
{
	const int f16 = o->features_dtype && strcmp(o->features_dtype, "f16") == 0;
	if (o->features_dtype)
		return hg_dataset_features_to(d, f16 ? HG_F16 : HG_F32, o->clip, message);
	if (o->clip)
		return hg_dataset_features_to(d, d->feat_dtype, 1, message);
	if (o->export)
		return HG_OK; /* others may compute in f32 */
	/* refused here, because it would become infinite in the first step */
	return hg_dataset_check_f16(d, message);
}

/* Means and deviations of columns are those of before they were divided by rows. */
static hg_status row_normalize(hg_dataset *d, char *message)
{
	if (!d->feat_mean)
		return hg_dataset_row_normalize(d, message);
	snprintf(message, HG_DATA_MESSAGE,
	         "--row-normalize: the features were standardised, and rows are divided before that: "
	         "expected the features as they were");
	return HG_ERR_ARG;
}

/* The library knows the value of an option, but not whose it is: the message begins with the
 * option. */
static hg_status of_option(const char *option, const char *value, hg_status status, char *message)
{
	char why[HG_DATA_MESSAGE];
	if (status >= 0)
		return status;
	(void)snprintf(why, sizeof why, "%s", message);
	(void)snprintf(message, HG_DATA_MESSAGE, "%.30s%s%.60s: %.400s", option, *value ? " " : "",
	               value, why);
	return status;
}

static hg_status largest_component(hg_dataset *d, char *message)
{
	return of_option("--largest-component", "", hg_dataset_largest_component(d, message), message);
}

static hg_status apply_transforms(const struct options *o, hg_dataset *d, hg_order_report *order,
                                  char *message)
{
	const struct {
		int wanted;
		hg_status (*apply)(hg_dataset *, char *);
	} steps[] = {{o->symmetrize, hg_dataset_symmetrize},
	             {o->largest_component, largest_component},
	             {o->self_loops, hg_dataset_self_loops},
	             {o->row_normalize, row_normalize},
	             {o->standardize, hg_dataset_standardize}};
	/* degrees do not count the self loops that are added */
	const size_t before_loops = 2, count = sizeof steps / sizeof steps[0];
	hg_status status = attach_files(o, d, message);
	if (status == HG_OK && o->target)
		status = of_option("--target", o->target, hg_dataset_keep_target(d, o->target, message),
		                   message);
	for (size_t k = 0; k < count && status == HG_OK && !watch_interrupted(); k++) {
		if (k == before_loops)
			status = attach_made_features(o, d, message);
		if (status == HG_OK && steps[k].wanted)
			status = steps[k].apply(d, message);
	}
	for (int k = 0; status == HG_OK && k < o->encodings && !watch_interrupted(); k++)
		status = hg_dataset_positional(d, o->encoding[k].kind, o->encoding[k].columns,
		                               watch_progress(), message);
	if (status == HG_OK)
		status = convert_features(o, d, message);
	if (status == HG_OK && o->folds)
		status =
		    of_option("--fold", o->folds, hg_dataset_fold(d, o->fold, o->of, message), message);
	if (status == HG_OK)
		status =
		    of_option("--split", o->split ? o->split : "", attach_split(o, d, message), message);
	return status == HG_OK && o->reorder
	           ? hg_dataset_reorder(d, o->reorder, watch_progress(), order, message)
	           : status;
}

static hg_status rename_dataset(hg_dataset *d, const char *name, char *message)
{
	char *copy = name ? strdup(name) : NULL;
	if (!name)
		return HG_OK;
	if (!copy) {
		snprintf(message, HG_DATA_MESSAGE, "out of memory");
		return HG_ERR_NOMEM;
	}
	free(d->name);
	d->name = copy;
	return HG_OK;
}

/* A file that cannot be read, or not even begun, is an error of the user; one whose writing breaks
 * off (writing) is not. HG_ERR_STATE means that the dataset is not in the state that a transform
 * needs. */
static int exit_code(hg_status status, int writing)
{
	if (watch_interrupted())
		return TOOL_INTERRUPTED;
	if (status == HG_ERR_STATE)
		return TOOL_BAD_INPUT;
	return writing && status == HG_ERR_IO ? TOOL_FAILED : tool_code_of(status);
}

/* An importer reads files beside those that the command line names. So only what looks like an
 * earlier output is overwritten: a file of HDF5, perhaps behind our checksum, an archive, or an
 * empty one. */
static hg_status check_overwritten(const char *path, char *message)
{
	static const unsigned char hdf5[] = "\211HDF\r\n\032\n", ours[] = "HalfGrap", zip[] = "PK";
	unsigned char begin[8] = {0};
	FILE *file = fopen(path, "rb");
	if (!file)
		return HG_OK;
	const size_t count = fread(begin, 1, sizeof begin, file);
	(void)fclose(file);
	if (count == 0 || memcmp(begin, hdf5, sizeof begin) == 0 ||
	    memcmp(begin, ours, sizeof begin) == 0 || memcmp(begin, zip, 2) == 0)
		return HG_OK;
	snprintf(message, HG_DATA_MESSAGE,
	         "-o %.300s exists and is no dataset: it is not overwritten, remove it first", path);
	return HG_ERR_ARG;
}

/* The output is checked before the input is read, which may take long. */
static hg_status check_output(const struct options *o, char *message)
{
	const char *const attached[] = {o->features, o->labels, o->split};
	size_t count = (size_t)o->input_count + 1;
	struct tool_file *files = calloc(count + 3, sizeof *files);
	if (!files) {
		snprintf(message, HG_DATA_MESSAGE, "out of memory");
		return HG_ERR_NOMEM;
	}
	for (size_t k = 1; k < count; k++)
		files[k] = (struct tool_file){NULL, o->inputs[k - 1], TOOL_READ, "also an input"};
	for (int k = 0; k < 3; k++)
		if (attach_is_file(o, k))
			files[count++] = (struct tool_file){NULL, attached[k], TOOL_READ, "also an input"};
	files[0] = (struct tool_file){"-o", o->output, TOOL_REPLACED, NULL};
	hg_status status = tool_files_check(files, count, message);
	free(files);
	if (status == HG_OK)
		status = check_overwritten(o->output, message);
	return status;
}

/* Report what was written. */
static hg_status print_report(const struct options *o, const hg_dataset *d,
                              const hg_order_report *order)
{
	if (o->json && !order_json(d, order, o->output)) {
		tool_say("h5convert", "%s: out of memory", o->output);
		return HG_ERR_NOMEM;
	}
	if (o->json || o->quiet)
		return HG_OK;
	char *file = tool_printable(o->output);
	printf("%s: %" PRId64 " nodes, %" PRId64 " edges, %" PRId64 " features, %" PRId32 " classes\n",
	       file ? file : "out of memory", d->nodes, d->edges, d->features, d->classes);
	free(file);
	order_print(order);
	return HG_OK;
}

static int convert(struct options *o)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	hg_order_report order = HG_ORDER_REPORT_INIT;
	watch_begin(!o->quiet);
	hg_status status = check_output(o, message);
	int writing = 0;
	if (status == HG_OK)
		status = load_dataset(o, &d, message);
	if (status == HG_OK)
		status = rename_dataset(d, o->name, message);
	if (status == HG_OK)
		status = apply_transforms(o, d, &order, message);
	if (status == HG_OK) {
		writing = 1;
		watch_hold();
		status = o->export ? hg_dataset_write_npz(d, o->output, watch_progress(), message)
		                   : hg_dataset_write_watched(d, o->output, watch_progress(), message);
		watch_release();
	}
	watch_end();
	if (status < 0)
		tool_say("h5convert", "%s", message);
	else
		status = print_report(o, d, &order);
	hg_dataset_free(d);
	return status < 0 ? exit_code(status, writing) : TOOL_DONE;
}

/* An HDF5 file is examined also if it is refused; of other formats a dataset is made first. */
static hg_status examine(struct options *o, hg_fitness **report, char *message)
{
	const hg_importer *importer = NULL;
	hg_dataset *d = NULL;
	hg_status status = find_importer(o, &importer, message);
	if (status == HG_OK && strcmp(importer->name, "h5") == 0)
		return hg_file_fitness(o->check, watch_progress(), report, message);
	if (status == HG_OK)
		status = load_dataset(o, &d, message);
	if (status == HG_OK)
		status = hg_dataset_fitness(d, o->check, watch_progress(), report, message);
	hg_dataset_free(d);
	return status;
}

static int check(struct options *o)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_fitness *report = NULL;
	watch_begin(!o->quiet);
	const hg_status status = examine(o, &report, message);
	watch_end();
	if (status < 0) {
		tool_say("h5convert", "%s", message);
		return exit_code(status, 0);
	}
	const int code = o->json ? fitness_json(o->check, report) : fitness_print(o->check, report);
	hg_fitness_free(report);
	return code;
}

/* Seal a file in place, or leave it unchanged. A signal waits until the temporary copy is gone. */
static int seal_file(const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_status status = access(path, R_OK) == 0 ? tool_file_try(path, message) : HG_OK;
	const int writing = status == HG_OK && access(path, R_OK) == 0;
	watch_begin(0);
	if (status == HG_OK)
		status = hg_file_seal(path, message);
	watch_end();
	if (status == HG_OK)
		return TOOL_DONE;
	tool_say("h5convert", "%s", message);
	return exit_code(status, writing);
}

int main(int argc, char **argv)
{
	struct options options;
	char message[HG_DATA_MESSAGE] = "";
	int code = TOOL_DONE;
	tool_begin(argv);
	if (tool_describes(&options_about, argc, argv, &code))
		return tool_finish("h5convert", code);
	if (options_parse(argc, argv, &options, message) != 0) {
		tool_say("h5convert", "%s", message);
		code = TOOL_BAD_INPUT;
	} else if (options.help) {
		tool_help_print(stdout, &options_about);
	} else if (options.version) {
		printf("h5convert (HalfGraph) %s\n", hg_version_string());
	} else if (options.list_formats) {
		list_formats();
	} else if (options.seal) {
		code = seal_file(options.seal);
	} else if (options.check) {
		code = check(&options);
	} else {
		code = options.inspect ? inspect(options.inspect, options.json) : convert(&options);
	}
	free(options.inputs);
	return tool_finish("h5convert", code);
}
