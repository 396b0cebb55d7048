/* The checksum of a file. All damage is refused before libhdf5 reads it, the file is an ordinary
 * HDF5 file nevertheless, and a file that another program has changed can be accepted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"
#include "support.h"

enum { BLOCK = 512 };
#define MISFIT "does not fit its checksum: it is damaged or cut off, or another program changed it"

/* A hash does not depend on the pieces in which it gets the bytes, and is that of the reference
 * implementation. */
static void hashes_are_xxh64(void)
{
	static const struct {
		size_t count;
		uint64_t sum;
	} known[] = {{0, UINT64_C(0xef46db3751d8e999)},  {1, UINT64_C(0xf592c0c7639c4cb6)},
	             {4, UINT64_C(0xfb1e5cf2f1ae4d95)},  {31, UINT64_C(0xe4a0e629e519a4ae)},
	             {32, UINT64_C(0xcc6b8aaada790b2d)}, {33, UINT64_C(0x35ec49850475a832)},
	             {64, UINT64_C(0x155ccce4bf32befc)}, {100, UINT64_C(0x4826e367566ea023)},
	             {999, UINT64_C(0xb49cf50426f895bf)}};
	unsigned char bytes[1000];
	for (int i = 0; i < 1000; i++)
		bytes[i] = (unsigned char)(i * 37 + 11);
	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
		for (size_t piece = 1; piece < 80; piece += 13) {
			struct hg__hash hash;
			hg__hash_begin(&hash);
			for (size_t at = 0; at < known[k].count; at += piece)
				hg__hash_add(&hash, bytes + at,
				             piece < known[k].count - at ? piece : known[k].count - at);
			CHECK(hg__hash_end(&hash) == known[k].sum);
		}
}

static unsigned char *good_file(const char *path, size_t *count)
{
	hg_dataset *d = small_dataset();
	must_write(d, path);
	hg_dataset_free(d);
	return read_bytes(path, count);
}

/* Every bit of the user block is flipped, and a bit in every byte of the rest. */
static void every_flipped_bit_is_refused(void)
{
	size_t count = 0;
	const char *path = scratch(0, "flip.h5");
	unsigned char *bytes = good_file(path, &count);
	for (size_t bit = 0; bit < 8 * count; bit += bit < 8 * BLOCK + 64 ? 1 : 9) {
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		write_bytes(path, bytes, count);
		must_not_read(path, HG_ERR_FORMAT, bit < 73 * 8 ? "flip.h5: " : MISFIT);
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	free(bytes);
}

/* A file with a damaged block is not taken for a file without a checksum. */
static void damaged_checksum_is_not_a_missing_one(void)
{
	size_t count = 0;
	const char *path = scratch(0, "lost.h5");
	unsigned char *bytes = good_file(path, &count);
	memset(bytes, 0, BLOCK);
	write_bytes(path, bytes, count);
	must_not_read(path, HG_ERR_FORMAT,
	              "are not HalfGraph's checksum: they are damaged, or another");
	for (int k = 0; k < BLOCK; k++)
		bytes[k] = (unsigned char)test_u64();
	write_bytes(path, bytes, count);
	must_not_read(path, HG_ERR_FORMAT, "are not HalfGraph's checksum");
	free(bytes);
	bytes = good_file(path, &count);
	memset(bytes + BLOCK, 0, 8); /* HDF5's signature */
	write_bytes(path, bytes, count);
	must_not_read(path, HG_ERR_FORMAT, MISFIT);
	write_bytes(path, bytes, BLOCK);
	must_not_read(path, HG_ERR_FORMAT, MISFIT);
	write_bytes(path, bytes, 100);
	must_not_read(path, HG_ERR_FORMAT, MISFIT);
	free(bytes);
}

static void files_of_another_length_are_refused(void)
{
	size_t count = 0;
	const char *path = scratch(0, "length.h5");
	unsigned char *bytes = good_file(path, &count), *more = calloc(count + 100, 1);
	CHECK(more != NULL);
	memcpy(more, bytes, count);
	for (size_t length = count - 40; length < count + 40; length++)
		if (length != count) {
			write_bytes(path, more, length);
			must_not_read(path, HG_ERR_FORMAT, MISFIT);
		}
	free(more);
	free(bytes);
}

/* Without its user block it is the same HDF5 file, as for every tool that knows user blocks. */
static void file_without_its_block_is_plain_hdf5(void)
{
	hg_dataset *d = small_dataset();
	const char *path = scratch(0, "plain.h5");
	must_write(d, path);
	hsize_t block = 0;
	hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), plist = H5Fget_create_plist(file);
	CHECK(file >= 0 && H5Pget_userblock(plist, &block) >= 0 && block == BLOCK);
	H5Pclose(plist);
	H5Fclose(file);
	unseal(path);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void set_label(const char *path, int32_t value)
{
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	const hid_t data = H5Dopen2(file, "nodes/label", H5P_DEFAULT);
	const int32_t label[6] = {value, 1, 2, -1, 1, 0};
	CHECK(data >= 0);
	CHECK(H5Dwrite(data, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, label) >= 0);
	H5Dclose(data);
	H5Fclose(file);
}

/* A file that another program has changed is refused with a message that says how to accept it.
 * Accepting it checks the content like every reader. */
static void changed_files_can_be_sealed(void)
{
	char message[HG_DATA_MESSAGE] = "";
	size_t count = 0;
	const char *path = scratch(0, "edit.h5");
	free(good_file(path, &count));
	CHECK(chmod(path, 0640) == 0);
	set_label(path, 2);
	must_not_read(path, HG_ERR_FORMAT, "h5convert --seal computes a new checksum");
	CHECK_STATUS(hg_file_seal(path, message), HG_OK);
	hg_dataset *d = must_read(path);
	CHECK_EQ_I(d->label[0], 2);
	hg_dataset_free(d);
	set_label(path, 7); /* the file has 3 classes */
	CHECK_STATUS(hg_file_seal(path, message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "edit.h5: labels: node 0 has label 7, but there are 3 classes");
	must_not_read(path, HG_ERR_FORMAT, MISFIT);
	CHECK_EQ_I(count_scratch(".tmp"), 0);
}

/* The file of another program can get a checksum, and is then protected like ours. */
static void files_of_others_can_be_sealed(void)
{
	char message[HG_DATA_MESSAGE] = "";
	size_t count = 0, again = 0;
	const char *path = scratch(0, "other.h5");
	unsigned char *ours = good_file(path, &count);
	unseal(path);
	CHECK_STATUS(hg_file_seal(path, message), HG_OK);
	unsigned char *bytes = read_bytes(path, &again);
	CHECK(again == count && memcmp(bytes, ours, count) == 0);
	free(ours);
	unseal(path);
	set_label(path, 1); /* HDF5 then stores that the data begin at byte 0 */
	CHECK_STATUS(hg_file_seal(path, message), HG_OK);
	hg_dataset *d = must_read(path);
	CHECK_EQ_I(d->label[0], 1);
	hg_dataset_free(d);
	free(bytes);
	bytes = read_bytes(path, &count);
	bytes[count / 2] ^= 4;
	write_bytes(path, bytes, count);
	must_not_read(path, HG_ERR_FORMAT, MISFIT);
	free(bytes);
	write_text(path, "no HDF5");
	CHECK_STATUS(hg_file_seal(path, message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "HDF5's signature is neither at its beginning nor at byte 512");
	CHECK_STATUS(hg_file_seal(scratch(0, "absent.h5"), message), HG_ERR_IO);
	CHECK_STATUS(hg_file_seal(NULL, message), HG_ERR_ARG);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(hashes_are_xxh64),
	    TEST(every_flipped_bit_is_refused),
	    TEST(damaged_checksum_is_not_a_missing_one),
	    TEST(files_of_another_length_are_refused),
	    TEST(file_without_its_block_is_plain_hdf5),
	    TEST(changed_files_can_be_sealed),
	    TEST(files_of_others_can_be_sealed),
	};
	return RUN_TESTS(argc, argv, cases);
}
