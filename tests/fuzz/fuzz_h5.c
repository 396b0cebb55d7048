/* The readers of datasets and checkpoints, with two kinds of bad HDF5 files. The input of the
 * fuzzer is a program that makes one.
 *
 * Edits of a file without a checksum (h5_edits.h), whose attributes also become other texts.
 *
 * Damage of a file with its checksum: any bytes become others. No such file may be read. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "h5_edits.h"

static const char *const members[] = {"graph/pointers_to_1",
                                      "graph/indices_1",
                                      "graph/values",
                                      "nodes/feat",
                                      "nodes/feat_csr",
                                      "nodes/label",
                                      "nodes/train_mask",
                                      "nodes/test_mask",
                                      "nodes/fold",
                                      "nodes/orig_id",
                                      "nodes/order",
                                      "split/valid",
                                      "batch/graph_ptr",
                                      "edges/feat",
                                      "edges/label",
                                      "edges",
                                      "graphs/label",
                                      "graph",
                                      "nodes",
                                      "nodes/feat_csr/pointers_to_1",
                                      "nodes/feat_csr/indices_1"};
static const char *const checkpoint_members[] = {
    "params/w",   "params/b",    "params",     "moment1/w",
    "moment1",    "moment2/w",   "moment2/b",  "loss_scale/history_scale",
    "loss_scale", "settings",    "params/new", "loss_scale/history_reason",
    "best/w",     "best",        "history",    "history/step",
    "best/new",   "history/loss"};
static const char *const texts[] = {
    "",          "{}",  "[1]", "{\"binsparse\": 3}",
    "halfgraph", "1.0", "2",   "{\"binsparse\": {\"version\": \"0.1\"}}"};

static void retext(struct program *p, hid_t file)
{
	static const char *const names[] = {"binsparse", "format",      "format_version",
	                                    "name",      "num_classes", "num_edge_classes"};
	const unsigned which = take(p) % 6;
	const hid_t object = which == 0
	                         ? H5Oopen(file, take(p) % 2 ? "graph" : "nodes/feat_csr", H5P_DEFAULT)
	                         : H5Oopen(file, "/", H5P_DEFAULT);
	char text[256];
	snprintf(text, sizeof text, "%s", texts[take(p) % 8]);
	if (take(p) % 2)
		snprintf(text, sizeof text,
		         "{\"binsparse\":{\"version\":\"0.%u\",\"format\":\"CSR\",\"shape\":[%d,%d],"
		         "\"number_of_stored_values\":%d,\"data_types\":"
		         "{\"pointers_to_1\":\"int64\",\"indices_1\":\"int32\",\"values\":\"%s\"}}}",
		         take(p), (int8_t)take(p), (int8_t)take(p), (int8_t)take(p),
		         take(p) % 2 ? "float32" : "iso[uint8]");
	if (object >= 0) {
		const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
		H5Tset_size(type, sizeof text);
		H5Adelete(object, names[which]);
		const hid_t attribute =
		    H5Acreate2(object, names[which], type, space, H5P_DEFAULT, H5P_DEFAULT);
		if (attribute >= 0) {
			H5Awrite(attribute, type, text);
			H5Aclose(attribute);
		}
		H5Sclose(space);
		H5Tclose(type);
		H5Oclose(object);
	}
}

/* Makes an attribute of a checkpoint a text or a number, or removes it. */
static void renumber(struct program *p, hid_t file)
{
	static const char *const objects[] = {"/", "settings", "loss_scale", "promoted", "best"},
	                         *const names[] = {
	                             "format",           "format_version", "step",  "scale",
	                             "growth_tracker",   "tolerance",      "steps", "applied",
	                             "skipped",          "seed",           "0",     "loss",
	                             "nonfinite_logits", "test_right"};
	static const double reals[] = {0.0, -1.0, 1e300, 65536.0, (double)NAN, (double)INFINITY};
	const hid_t object = H5Oopen(file, objects[take(p) % 5], H5P_DEFAULT),
	            space = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
	const char *name = names[take(p) % 14];
	const int64_t integer = (int64_t)(int8_t)take(p) * ((int64_t)1 << take(p) % 56);
	const unsigned kind = take(p) % 4, which = take(p);
	char words[64] = "";
	snprintf(words, sizeof words, "%s", which & 8 ? "1 spmm conv0" : texts[which % 8]);
	H5Tset_size(text, sizeof words);
	const hid_t type[] = {text, H5T_NATIVE_INT64, H5T_NATIVE_DOUBLE};
	const void *const value[] = {words, &integer, &reals[which % 6]};
	if (object >= 0) {
		H5Adelete(object, name);
		const hid_t attribute =
		    kind < 3 ? H5Acreate2(object, name, type[kind], space, H5P_DEFAULT, H5P_DEFAULT)
		             : H5I_INVALID_HID;
		if (attribute >= 0) {
			H5Awrite(attribute, type[kind], value[kind]);
			H5Aclose(attribute);
		}
		H5Oclose(object);
	}
	H5Tclose(text);
	H5Sclose(space);
}

#define TARGET(names, reattribute)                         \
	{                                                      \
		names, sizeof names / sizeof names[0], reattribute \
	}
static const struct target dataset = TARGET(members, retext),
                           checkpoint = TARGET(checkpoint_members, renumber);

/* A good file of one of four kinds, as bytes, which is made once. The last kind is a checkpoint. */
static const uint8_t *good_file(unsigned kind, size_t *count)
{
	static uint8_t *image[FUZZ_KINDS];
	static size_t size[FUZZ_KINDS];
	if (!image[kind])
		image[kind] = fuzz_good_h5((int)kind, &size[kind]);
	*count = size[kind];
	return image[kind];
}

static hg_status read_image(unsigned kind, const uint8_t *image, size_t count)
{
	return kind == FUZZ_CHECKPOINT ? fuzz_checkpoint(image, count)
	                               : fuzz_import("h5", image, count);
}

static size_t take_place(struct program *p, size_t size)
{
	size_t place = take(p);
	place = place << 8 | take(p);
	return (place << 8 | take(p)) % size;
}

static void damage_once(struct program *p, uint8_t *image, size_t *size)
{
	const size_t at = take_place(p, *size), from = take_place(p, *size), most = take(p) + 1;
	const size_t left = *size - (at > from ? at : from), some = most < left ? most : left;
	switch (take(p) % 5) {
	case 0:
		image[at] = (uint8_t)(image[at] ^ 1u << take(p) % 8);
		break;
	case 1:
		memset(image + at, (int)take(p), some);
		break;
	case 2:
		memmove(image + at, image + from, some);
		break;
	case 3: /* a piece is removed */
		memmove(image + at, image + at + some, *size - at - some);
		*size -= some;
		break;
	default:
		*size = at + 1;
	}
}

/* If it is read, it is what was written: the damage has changed nothing. */
static void damage(struct program *p, unsigned kind, const uint8_t *good, size_t size)
{
	size_t count = size;
	uint8_t *image = malloc(size);
	if (!image)
		abort();
	memcpy(image, good, size);
	for (unsigned k = 1 + take(p) % 4; k > 0 && count > 0; k--)
		damage_once(p, image, &count);
	const int same = count == size && memcmp(image, good, size) == 0;
	if ((read_image(kind, image, count) == HG_OK) != same) {
		fprintf(stderr, "kind %u: %s\n", kind,
		        same ? "a good file is refused" : "a damaged one is read");
		abort();
	}
	free(image);
}

static void edit_file(struct program *p, unsigned kind, const uint8_t *good, size_t size)
{
	size_t count = 0;
	uint8_t *image =
	    edited(p, good, size, kind == FUZZ_CHECKPOINT ? &checkpoint : &dataset, &count);
	(void)read_image(kind, image, count);
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct program p = {bytes, bytes + count};
	size_t size = 0;
	const unsigned what = take(&p) % (2 * FUZZ_KINDS), kind = what % FUZZ_KINDS;
	const uint8_t *good = good_file(kind, &size);
	if (what < FUZZ_KINDS)
		edit_file(&p, kind, good + FUZZ_BLOCK, size - FUZZ_BLOCK);
	else
		damage(&p, kind, good, size);
	return 0;
}
