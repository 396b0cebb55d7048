/* Small good files, from which mutations start. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "fuzz.h"
#include "support.h"

int seed_npz(int k, const char *path)
{
	static const int64_t shape[] = {4, 4};
	static const int32_t indptr[] = {0, 2, 3, 5, 5}, indices[] = {2, 1, 0, 3, 0},
	                     labels[] = {0, 1, -1, 1}, train[] = {0, 1};
	static const float dense[] = {1, 2, 3, 4, 5, 6, 7, 8}, data[] = {1, 0.5f, 2, 3, 4};
	if (k >= 2)
		return 0;
	struct npz_out *out = npz_begin(path);
	npz_add(out, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(out, "adj_indptr", "<i4", "(5,)", indptr, sizeof indptr);
	npz_add(out, "adj_indices", "<i4", "(5,)", indices, sizeof indices);
	npz_add(out, "adj_data", "<f4", "(5,)", data, sizeof data);
	npz_add(out, "labels", "<i4", "(4,)", labels, sizeof labels);
	npz_add(out, "train_idx", "<i4", "(2,)", train, sizeof train);
	npz_add(out, "attr_matrix", "<f4", "(4, 2)", dense, sizeof dense);
	npz_end(out, k == 0);
	return 1;
}

/* The first half of the text in one gzip member, the second half in another. */
static void write_gzip(const char *path, const char *text)
{
	const size_t length = strlen(text), half = length / 2;
	for (int member = 0; member < 2; member++) {
		gzFile file = gzopen(path, member ? "ab" : "wb");
		const size_t bytes = member ? length - half : half;
		CHECK(file != NULL &&
		      gzwrite(file, text + (member ? half : 0), (unsigned)bytes) == (int)bytes &&
		      gzclose(file) == Z_OK);
	}
}

int seed_text(int k, const char *path)
{
	static const char *const texts[] = {
	    "# comment\n0 1\r\n1\t2\n100 7\n",
	    "0 1 0.5\n1 0 -2e3\n",
	    "3 4\n0 1\n1 2\n2 0\n1 0\n",
	    "3 3 2\n0 1 1\n1 2 1\n",
	    ("%%MatrixMarket matrix coordinate real general\n% x\n3 3 4\n"
	     "1 2 0.5\n2 1 0\n3 3 -1\n1 2 1\n"),
	    "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n",
	};
	const int count = (int)(sizeof texts / sizeof texts[0]);
	if (k >= 2 * count)
		return 0;
	if (k < count)
		write_text(path, texts[k]);
	else
		write_gzip(path, texts[k - count]);
	return 1;
}

int seed_tu(int k, const char *path)
{
	static const char *const sets[] = {
	    "1, 2\n2, 1\n4, 5\n\f1\n1\n2\n4\n4\n\f1\n-1\n1\n7\n\f0\n2\n2\n0\n9\n\f0.5, 1\n-1, 2\n3, "
	    "4e3\n0, 0\n1, 1\n",
	    "1 2\r\n2 3\n3 1\n\f1\n1\n1\n\f3\n\f5\n6\n7\n\f1\n2\n3\n",
	};
	if (k >= (int)(sizeof sets / sizeof sets[0]))
		return 0;
	write_text(path, sets[k]);
	return 1;
}

/* For fuzz_h5.c, whose input is a program of edits, every input is good: random bytes. */
int seed_h5(int k, const char *path)
{
	uint8_t bytes[256];
	if (k >= 2 * FUZZ_KINDS)
		return 0;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)test_u64();
	bytes[0] = (uint8_t)k;
	write_bytes(path, bytes, sizeof bytes);
	return 1;
}
