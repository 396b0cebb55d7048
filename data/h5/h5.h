#ifndef HG_DATA_H5_H
#define HG_DATA_H5_H

#include "h5/filter.h"
#include "h5/sink.h"
#include "internal.h"

/* One open HDF5 file, and what its errors need. While it is open, HDF5's own error printing is off;
 * closing restores what was set before. */
struct h5 {
	const char *path; /* what the user called it */
	char *message;
	const hg_progress *progress;
	hid_t file;
	int64_t file_bytes;
	struct hg__h5_sink sink; /* of a file that is written */
	H5E_auto2_t report;
	void *report_data;
};

/* A dataset or group inside the file: its name for messages, such as "/graph/indices_1". */
struct h5_array {
	hid_t id;
	char where[128];
	int rank;
	int64_t dim[2];
	H5T_class_t class;
	size_t size;     /* bytes of one element in the file */
	int is_half;     /* IEEE binary16 */
	int is_unsigned; /* an integer without a sign */
	struct hg__filter filter[HG__FILTER_KINDS];
	int filters;
	int64_t
	    chunk[2]; /* where there are filters: what is filtered at a time; of one dimension [n, 1] */
};

/* A file that fits its checksum (seal.h), or has none. Messages call it `shown`. */
HG_NODISCARD hg_status hg__h5_open(struct h5 *h5, const char *path, const char *shown,
                                   char *message);
/* A new file in an empty one that is open for reading and writing, behind room for its checksum
 * (seal.h); messages call it `path`. *h5 stays where it is until it is closed. `summed`: in HDF5
 * 1.10's own format, where everything but the data themselves carries a checksum; else in the
 * oldest that will do. */
HG_NODISCARD hg_status hg__h5_create(struct h5 *h5, int fd, const char *path, int summed,
                                     char *message);
/* Has all that was written arrived so far? */
HG_NODISCARD hg_status hg__h5_written(const struct h5 *h5);
/* Also right after a failed open. Writing can fail as late as here. */
HG_NODISCARD hg_status hg__h5_close(struct h5 *h5);

/* "F.h5: WHERE: text: HDF5's innermost reason". Right after the call that failed: every other call
 * of HDF5, closing too, forgets the reason. Where HDF5 ran out of memory, that is the status. */
hg_status hg__h5_fail(const struct h5 *h5, hg_status status, const char *where, const char *text);

/* The class of an attribute's values. */
HG_NODISCARD hg_status hg__h5_attribute_class(const struct h5 *h5, hid_t object, const char *name,
                                              const char *where, H5T_class_t *class);

/* Is there something called `name` in this group? */
int hg__h5_has(hid_t group, const char *name);
HG_NODISCARD hg_status hg__h5_group(const struct h5 *h5, hid_t parent, const char *name,
                                    const char *where, hid_t *group);
HG_NODISCARD hg_status hg__h5_group_create(const struct h5 *h5, hid_t parent, const char *name,
                                           hid_t *group);

/* Attributes. text: variable- or fixed-length string, malloc'd; *value NULL where absent. integer:
 * *found 0 where absent. */
HG_NODISCARD hg_status hg__h5_text(const struct h5 *h5, hid_t object, const char *name,
                                   const char *where, char **value);
HG_NODISCARD hg_status hg__h5_integer(const struct h5 *h5, hid_t object, const char *name,
                                      const char *where, int64_t *value, int *found);
HG_NODISCARD hg_status hg__h5_real(const struct h5 *h5, hid_t object, const char *name,
                                   const char *where, double *value, int *found);
HG_NODISCARD hg_status hg__h5_text_write(const struct h5 *h5, hid_t object, const char *name,
                                         const char *value);
/* The same as a string of fixed length, which lies in the object itself. */
HG_NODISCARD hg_status hg__h5_fixed_text_write(const struct h5 *h5, hid_t object, const char *name,
                                               const char *value);
HG_NODISCARD hg_status hg__h5_integer_write(const struct h5 *h5, hid_t object, const char *name,
                                            int64_t value);
HG_NODISCARD hg_status hg__h5_real_write(const struct h5 *h5, hid_t object, const char *name,
                                         double value);

/* Open a dataset of `rank` dimensions and look at it: type, shape, storage. Refused: links out of
 * the file, storage outside of it, filters other than shuffle, deflate and checksums, and shapes
 * that the stored bytes cannot fill. */
HG_NODISCARD hg_status hg__h5_array(const struct h5 *h5, hid_t parent, const char *name,
                                    const char *where, int rank, struct h5_array *array);
void hg__h5_array_close(struct h5_array *array);

/* Takes `count` elements that were read, of which the first is number `first`. */
typedef hg_status (*hg__h5_take)(const struct h5 *h5, const struct h5_array *array, void *user,
                                 int64_t first, int64_t count, const void *values);
/* All elements of a dataset with filters, as `type` with elements of `size` bytes, chunk by chunk:
 * a run of a row at a time. A chunk that was never written, or is not exactly as large as a chunk,
 * is refused. */
HG_NODISCARD hg_status hg__h5_read_chunks(const struct h5 *h5, const struct h5_array *array,
                                          hid_t type, size_t size, hg__h5_take take, void *user);

/* Read all elements into fresh memory, widened from whatever integer type the file has. Every value
 * must lie in [low, high]. */
HG_NODISCARD hg_status hg__h5_read_i64(const struct h5 *h5, const struct h5_array *array,
                                       int64_t low, int64_t high, int64_t **values);
HG_NODISCARD hg_status hg__h5_read_i32(const struct h5 *h5, const struct h5_array *array,
                                       int64_t low, int64_t high, int32_t **values);
/* Integers or booleans that are 0 or 1. */
HG_NODISCARD hg_status hg__h5_read_mask(const struct h5 *h5, const struct h5_array *array,
                                        uint8_t **values);
/* Floats of any width, or integers, as f32; a finite value that f32 cannot hold is refused. */
HG_NODISCARD hg_status hg__h5_read_f32(const struct h5 *h5, const struct h5_array *array,
                                       float **values);
/* Binary16 as it is. */
HG_NODISCARD hg_status hg__h5_read_half(const struct h5 *h5, const struct h5_array *array,
                                        hg_half **values);

/* Element types as they are written: little-endian. H5_F32_SUMMED: f32 with checksums. */
enum h5_type { H5_U8, H5_I32, H5_I64, H5_HALF, H5_F32, H5_F32_SUMMED };
/* Write [rows] (cols = 0) or [rows, cols] elements. The open dataset is returned where `out` is not
 * NULL (for attributes). */
HG_NODISCARD hg_status hg__h5_write(const struct h5 *h5, hid_t parent, const char *name,
                                    enum h5_type type, int64_t rows, int64_t cols,
                                    const void *values, hid_t *out);

/* Close a type, space, property list or attribute; nothing where it is none. */
void hg__h5_release(hid_t id);

/* binary16 as an HDF5 type, to be released. HDF5 knows it by name only from 1.14.4 on. */
hid_t hg__h5_half_type(void);

#endif
