#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

/* A file in memory, which is created once and filled again for each input. A disk would take ten
 * times as long. */
struct file {
	int made, fd;
};

static void fill_open(int fd, const uint8_t *bytes, size_t count)
{
	if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, bytes, count, 0) != (ssize_t)count)
		abort();
}

static int fill(struct file *file, const uint8_t *bytes, size_t count)
{
	if (!file->made)
		file->fd = memfd_create("hg-fuzz", MFD_CLOEXEC);
	file->made = 1;
	fill_open(file->fd, bytes, count);
	return file->fd;
}

const char *fuzz_file(const uint8_t *bytes, size_t count)
{
	static struct file file;
	static char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fill(&file, bytes, count));
	return path;
}

/* The same file under a name, which is removed when the process ends. HDF5 opens no file without a
 * name. */
static char named[64];

static void remove_named(void)
{
	unlink(named);
}

static void store_named(const uint8_t *bytes, size_t count)
{
	static int fd = -1;
	if (fd < 0) {
		const int in_memory = access("/dev/shm", W_OK) == 0;
		snprintf(named, sizeof named, "%s/hg-fuzz-XXXXXX", in_memory ? "/dev/shm" : "/tmp");
		fd = mkstemp(named);
		if (fd < 0 || atexit(remove_named) != 0)
			abort();
	}
	fill_open(fd, bytes, count);
}

static char said[HG_DATA_MESSAGE];

const char *fuzz_said(void)
{
	return said;
}

static hg_status import_path(const char *format, const char *name, hg_header header)
{
	hg_import_config config = HG_IMPORT_CONFIG_INIT;
	size_t formats = 0, k = 0;
	const hg_importer *table = hg_importers(&formats);
	const char *paths[] = {name};
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	while (k < formats && strcmp(table[k].name, format) != 0)
		k++;
	config.header = header;
	config.folds = 3;
	const hg_status status = table[k].import(paths, 1, &config, &d, message);
	const int good = status == HG_OK ? d && hg_dataset_check(d, "fuzz", message) == HG_OK
	                                 : status < 0 && !d && message[0] && !strchr(message, '\n');
	if (!good) {
		fprintf(stderr, "%s: %s, \"%s\"\n", format, hg_status_name(status), message);
		abort();
	}
	hg_dataset_free(d);
	(void)snprintf(said, sizeof said, "%s", status == HG_OK ? "imported" : message);
	return status;
}

/* The fitness of a file: it is refused where its import is, and every finding is a line. */
static void examine(const char *name, hg_status imported)
{
	char line[HG_DATA_MESSAGE] = "";
	hg_fitness *report = NULL;
	const hg_status status = hg_file_fitness(name, NULL, &report, line);
	int good = status == HG_OK
	               ? report && (report->verdict == HG_SEVERITY_REFUSED) == (imported < 0)
	               : status == imported && !report && line[0];
	for (int64_t k = 0; report && k < report->findings; k++)
		good =
		    good && hg_fitness_sentence(report, k, line) == HG_OK && line[0] && !strchr(line, '\n');
	if (!good) {
		fprintf(stderr, "fitness: %s after %s, \"%s\"\n", hg_status_name(status),
		        hg_status_name(imported), line);
		abort();
	}
	hg_fitness_free(report);
}

hg_status fuzz_import(const char *format, const uint8_t *bytes, size_t count)
{
	if (strcmp(format, "h5") == 0 || strcmp(format, "h5ad") == 0) {
		store_named(bytes, count);
		const hg_status imported = import_path(format, named, HG_HEADER_AUTO);
		if (format[2] == 0)
			examine(named, imported);
		return imported;
	}
	const char *path = fuzz_file(bytes, count);
	for (int header = HG_HEADER_YES; header <= HG_HEADER_NO && strcmp(format, "edges") == 0;
	     header++)
		(void)import_path(format, path, (hg_header)header);
	return import_path(format, path, HG_HEADER_AUTO);
}

/* ---- sets of files ---- */

/* They are links to files in memory, in a directory that is removed when the process ends. */
static char folder[] = "/tmp/hg-fuzz-XXXXXX";
static const struct fuzz_set *linked; /* a process fuzzes one set */

static const char *name_in_folder(const char *file)
{
	static char name[96];
	snprintf(name, sizeof name, "%s/%s", folder, file);
	return name;
}

static void remove_set(void)
{
	for (int k = 0; linked && k < FUZZ_FILES && linked->file[k]; k++)
		unlink(name_in_folder(linked->file[k]));
	if (linked && linked->below)
		rmdir(name_in_folder(linked->below));
	rmdir(folder);
}

static void make_folder(const struct fuzz_set *set)
{
	if (!mkdtemp(folder) || (set->below && mkdir(name_in_folder(set->below), 0700) != 0) ||
	    atexit(remove_set) != 0)
		abort();
	linked = set;
}

void fuzz_set(const struct fuzz_set *set, const uint8_t *bytes, size_t count)
{
	static struct file file[FUZZ_FILES];
	const size_t gap = strlen(set->separator);
	if (!linked)
		make_folder(set);
	for (int k = 0; k < FUZZ_FILES && set->file[k]; k++) {
		const int is_last = k + 1 == FUZZ_FILES || !set->file[k + 1];
		const uint8_t *end = is_last ? NULL : memmem(bytes, count, set->separator, gap);
		const size_t length = end ? (size_t)(end - bytes) : count;
		char target[64];
		const int made = file[k].made;
		snprintf(target, sizeof target, "/proc/self/fd/%d", fill(&file[k], bytes, length));
		if (!made && symlink(target, name_in_folder(set->file[k])) != 0)
			abort();
		bytes += length + (end ? gap : 0);
		count -= length + (end ? gap : 0);
	}
	(void)import_path(set->format, set->whole ? folder : name_in_folder(set->file[0]),
	                  HG_HEADER_AUTO);
}

hg_status fuzz_checkpoint(const uint8_t *bytes, size_t count)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_state *state = NULL;
	store_named(bytes, count);
	const hg_status status = hg_checkpoint_read(named, &state, message);
	const int good = status == HG_OK ? state && !hg_state_fault(state)
	                                 : status < 0 && !state && message[0] && !strchr(message, '\n');
	if (!good) {
		fprintf(stderr, "checkpoint: %s, \"%s\"\n", hg_status_name(status), message);
		abort();
	}
	hg_state_free(state);
	return status;
}

/* A ring of 6 nodes with labels and splits, or two rings of 3, with dense or sparse features. */
static void describe(hg_dataset *d, int kind)
{
	static int64_t rowptr[] = {0, 2, 4, 6, 8, 10, 12}, graph_ptr[] = {0, 3, 6},
	               feat_rowptr[] = {0, 1, 1, 2, 3, 3, 4}, orig_id[] = {9, 8, 7, 6, 5, 4};
	static int32_t order[] = {1, 2, 0, 5, 3, 4};
	static int32_t ring[] = {1, 5, 0, 2, 1, 3, 2, 4, 3, 5, 0, 4},
	               rings[] = {1, 2, 0, 2, 0, 1, 4, 5, 3, 5, 3, 4}, feat_col[] = {0, 2, 1, 2},
	               label[] = {0, 1, 2, -1, 1, 0},
	               edge_label[] = {0, 1, 2, 0, -1, 1, 2, 0, 1, 1, 0, 2};
	static float weight[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, feat[18] = {1, -1, 0.5f},
	             feat_value[] = {1, 2, 3, 4}, edge_feat[24] = {2, -2, 0.25f};
	static char name[] = "seed";
	static uint8_t train[] = {1, 1, 0, 0, 0, 0}, test[] = {0, 0, 1, 0, 0, 0};
	static int32_t fold[] = {0, 1, 1, -1, 0, 1};
	*d = (hg_dataset){.name = name,
	                  .nodes = 6,
	                  .edges = 12,
	                  .graphs = 1,
	                  .rowptr = rowptr,
	                  .col = ring,
	                  .weight = weight,
	                  .feat_dtype = HG_F32};
	d->features = 3;
	d->classes = 3;
	d->label = label;
	d->train_mask = train;
	d->test_mask = test;
	d->folds = 2;
	d->fold = fold;
	d->orig_id = orig_id;
	d->order = order;
	if (kind != 1) {
		d->edge_features = 2;
		d->edge_feat = edge_feat;
		d->edge_classes = 3;
		d->edge_label = edge_label;
	}
	if (kind == 0) {
		d->feat = feat;
	} else {
		d->feat_rowptr = feat_rowptr;
		d->feat_col = feat_col;
		d->feat_value = feat_value;
	}
	if (kind == 2) {
		d->graphs = 2;
		d->graph_ptr = graph_ptr;
		d->col = rings;
	}
}

static hg_status write_dataset(int kind, const char *name, char *message)
{
	hg_dataset d;
	describe(&d, kind);
	return hg_dataset_write(&d, name, message);
}

/* A weight [6, 3] with both moments, a buffer [1, 3], two groups, one setting. */
static hg_status write_checkpoint(const char *name, char *message)
{
	const hg_setting seed = {.name = "seed", .kind = HG_SETTING_INTEGER, .integer = 3};
	const hg_promotion promoted = {.op = "spmm", .layer = "conv0"};
	hg_state *state = NULL;
	if (hg_state_create(&state) != HG_OK ||
	    hg_state_add_tensor(state, "w", 6, 3, 2, NULL) != HG_OK ||
	    hg_state_add_tensor(state, "b", 1, 3, 0, NULL) != HG_OK ||
	    hg_state_add_setting(state, &seed) != HG_OK ||
	    hg_state_add_group(state, &(hg_state_group){0.01f, 0.0f}) != HG_OK ||
	    hg_state_add_group(state, &(hg_state_group){0.02f, 0.5f}) != HG_OK ||
	    hg_state_add_promotion(state, &promoted) != HG_OK)
		abort();
	state->tensor[0].group = 1;
	state->loss_scale.scale = 1.0f;
	state->best = (hg_state_best){.step = 2,
	                              .metric = HG_METRIC_ACCURACY,
	                              .value = {0.5, 1.0, 0.0},
	                              .right = {1, 1, 0},
	                              .counted = {2, 1, 1}};
	state->plateau = (hg_plateau){.evaluations = 2, .waited = 1, .best = 0.5};
	if (hg_state_add_best(state) != HG_OK ||
	    hg_state_add_epoch(state, &(hg_state_epoch){.step = 1}) != HG_OK ||
	    hg_state_add_epoch(state, &(hg_state_epoch){.step = 2}) != HG_OK)
		abort();
	const hg_status status = hg_checkpoint_write(state, name, message);
	hg_state_free(state);
	return status;
}

uint8_t *fuzz_good_h5(int kind, size_t *count)
{
	char name[] = "/tmp/hg-fuzz-XXXXXX", message[HG_DATA_MESSAGE] = "";
	const int fd = mkstemp(name);
	if (fd < 0 || (kind == FUZZ_CHECKPOINT ? write_checkpoint(name, message)
	                                       : write_dataset(kind, name, message)) != HG_OK) {
		fprintf(stderr, "%s\n", message);
		abort();
	}
	close(fd); /* the writer has replaced the file */
	FILE *file = fopen(name, "rb");
	uint8_t *bytes = malloc(1 << 20);
	if (!file || !bytes)
		abort();
	*count = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	unlink(name);
	return bytes;
}
