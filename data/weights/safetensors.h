#ifndef HG_DATA_WEIGHTS_SAFETENSORS_H
#define HG_DATA_WEIGHTS_SAFETENSORS_H

#include "atomic.h"

/* The safetensors format: 8 bytes, the length of the header; the header, a JSON object that gives
 * for each tensor its type, its shape and where its bytes are; the bytes of all tensors, one after
 * the other without holes. */

/* Longer headers are refused, as the format's own library does. */
#define HG__HEADER_MOST 100000000
/* The most dimensions of a tensor that is read. */
#define HG__ST_RANK 8

struct hg__st_tensor {
	const char *name; /* in the header */
	const char *type; /* "F32", in the header */
	int rank;
	int64_t dim[HG__ST_RANK], elements, begin, end; /* bytes begin .. end - 1 behind the header */
};

/* A file in memory. */
struct hg__safetensors {
	const char *path;
	char *message;
	unsigned char *bytes;
	size_t size, data; /* data: where the tensors' bytes begin */
	struct json_t *header;
	struct hg__st_tensor *tensor; /* [count], in the order of their bytes */
	int64_t count;
	int is_native; /* 1: by its metadata, names and layout are those of hg_params */
};

/* Read a file and check everything in it but the values. The caller closes it, after a failure,
 * too. */
HG_NODISCARD hg_status hg__safetensors_open(struct hg__safetensors *file, const char *path,
                                            char *message);
void hg__safetensors_close(struct hg__safetensors *file);
/* "[16, 7]"; returns `text`. */
const char *hg__st_shape(int rank, const int64_t *dim, char text[160]);
/* The values as f32. HG_ERR_FORMAT: they are not F16, BF16, F32 or F64. */
HG_NODISCARD hg_status hg__st_values(const struct hg__safetensors *file,
                                     const struct hg__st_tensor *t, float *values);

/* A tensor to be written as F32. */
struct hg__st_out {
	const char *name;
	int rank;
	int64_t dim[HG__ST_RANK];
	const float *values;
};
HG_NODISCARD hg_status hg__safetensors_write(const char *path, const struct hg__st_out *tensors,
                                             int64_t count, int native, char *message);

#endif
