#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

static char path[64];

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

static void store(const uint8_t *bytes, size_t count)
{
	static struct file file;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fill(&file, bytes, count));
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
	const hg_status status = table[k].import(paths, 1, &config, &d, message);
	const int good = status == HG_OK ? d && hg_dataset_check(d, "fuzz", message) == HG_OK
	                                 : status < 0 && !d && message[0] && !strchr(message, '\n');
	if (!good) {
		fprintf(stderr, "%s: %s, \"%s\"\n", format, hg_status_name(status), message);
		abort();
	}
	hg_dataset_free(d);
	return status;
}

hg_status fuzz_import(const char *format, const uint8_t *bytes, size_t count)
{
	if (strcmp(format, "h5") == 0) {
		store_named(bytes, count);
		return import_path(format, named, HG_HEADER_AUTO);
	}
	store(bytes, count);
	for (int header = HG_HEADER_YES; header <= HG_HEADER_NO && strcmp(format, "edges") == 0;
	     header++)
		(void)import_path(format, path, (hg_header)header);
	return import_path(format, path, HG_HEADER_AUTO);
}

/* The importer reads files beside the first. They are links to files in memory, in a directory that
 * is removed when the process ends. */
static char folder[] = "/tmp/hg-fuzz-XXXXXX";
static const char *const parts[] = {"A", "graph_indicator", "graph_labels", "node_labels",
                                    "node_attributes"};
enum { PARTS = sizeof parts / sizeof parts[0] };

static const char *part_name(int k)
{
	static char name[96];
	snprintf(name, sizeof name, "%s/set_%s.txt", folder, parts[k]);
	return name;
}

static void remove_set(void)
{
	for (int k = 0; k < PARTS; k++)
		unlink(part_name(k));
	rmdir(folder);
}

void fuzz_set(const uint8_t *bytes, size_t count)
{
	static struct file file[PARTS];
	if (!file[0].made && (!mkdtemp(folder) || atexit(remove_set) != 0))
		abort();
	for (int k = 0; k < PARTS; k++) {
		const uint8_t *end = k < PARTS - 1 ? memchr(bytes, '\f', count) : NULL;
		const size_t length = end ? (size_t)(end - bytes) : count;
		char target[64];
		const int made = file[k].made;
		snprintf(target, sizeof target, "/proc/self/fd/%d", fill(&file[k], bytes, length));
		if (!made && symlink(target, part_name(k)) != 0)
			abort();
		bytes += length + (end != NULL);
		count -= length + (end != NULL);
	}
	(void)import_path("tu", part_name(0), HG_HEADER_AUTO);
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
	               label[] = {0, 1, 2, -1, 1, 0};
	static float weight[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, feat[18] = {1, -1, 0.5f},
	             feat_value[] = {1, 2, 3, 4};
	static char name[] = "seed";
	static uint8_t train[] = {1, 1, 0, 0, 0, 0}, test[] = {0, 0, 1, 0, 0, 0};
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
	d->orig_id = orig_id;
	d->order = order;
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

/* A weight [6, 3] with both moments, a buffer [1, 3], one setting. */
static hg_status write_checkpoint(const char *name, char *message)
{
	const hg_setting seed = {.name = "seed", .kind = HG_SETTING_INTEGER, .integer = 3};
	const hg_promotion promoted = {.op = "spmm", .layer = "conv0"};
	hg_state *state = NULL;
	if (hg_state_create(&state) != HG_OK ||
	    hg_state_add_tensor(state, "w", 6, 3, 2, NULL) != HG_OK ||
	    hg_state_add_tensor(state, "b", 1, 3, 0, NULL) != HG_OK ||
	    hg_state_add_setting(state, &seed) != HG_OK ||
	    hg_state_add_promotion(state, &promoted) != HG_OK)
		abort();
	state->loss_scale.scale = 1.0f;
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
