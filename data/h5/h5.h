#ifndef HG_DATA_H5_H
#define HG_DATA_H5_H

#include "h5/filter.h"
#include "h5/sink.h"
#include "internal.h"
#include "mark.h"

/* An open HDF5 file, and what its error messages need. While it is open, HDF5's own error printing
 * is off; closing restores the previous handler. */
struct h5 {
	const char *path; /* the path as the user wrote it, for messages */
	char *message;
	const hg_progress *progress;
	hid_t file;
	int64_t file_bytes;
	int fd;                  /* HDF5's own descriptor of a file that is read */
	struct hg__mark mark;    /* of that file, before it was opened; not set where one is written */
	struct hg__h5_sink sink; /* the driver of a file that is written */
	H5E_auto2_t report;
	void *report_data;
};

/* A dataset inside the file. `where` is its name in messages, such as "/graph/indices_1". */
struct h5_array {
	hid_t id;
	char where[128];
	int rank;
	int64_t dim[2];
	H5T_class_t class;
	size_t size;     /* bytes of one element in the file */
	int is_half;     /* IEEE binary16 */
	int is_unsigned; /* an integer type without a sign */
	struct hg__filter filter[HG__FILTER_KINDS];
	int filters;
	int64_t
	    /* chunk dimensions, set for chunked storage only; [n, 1] where the dataset has one
	     * dimension */
	    chunk[2];
};

/* Open a file that matches its checksum (seal.h) or has none. Messages call it `shown`. */
HG_NODISCARD hg_status hg__h5_open(struct h5 *h5, const char *path, const char *shown,
                                   char *message);
/* Create an HDF5 file in the empty file fd, which must be open for reading and writing, and leave
 * room for the checksum (seal.h) before it. Messages call it `path`. *h5 must not move until it is
 * closed. With `summed` the file has HDF5 1.10's own format, in which everything except the data
 * carries a checksum; without it the oldest format that suffices. */
HG_NODISCARD hg_status hg__h5_create(struct h5 *h5, int fd, const char *path, int summed,
                                     char *message);
/* Returns the failure of a write so far, or HG_OK. */
HG_NODISCARD hg_status hg__h5_written(const struct h5 *h5);
/* May also be called after a failed open. A write can fail as late as here, and so does reading a
 * file that has changed meanwhile, with a message that replaces that of an earlier failure. */
HG_NODISCARD hg_status hg__h5_close(struct h5 *h5);

/* The failure "F.h5: WHERE: text: HDF5's innermost reason". It must directly follow the failed
 * call, because every other HDF5 call, closing included, clears the reason. Where HDF5 ran out of
 * memory the status becomes HG_ERR_NOMEM. */
hg_status hg__h5_fail(const struct h5 *h5, hg_status status, const char *where, const char *text);

/* The type class of the values of an attribute. */
HG_NODISCARD hg_status hg__h5_attribute_class(const struct h5 *h5, hid_t object, const char *name,
                                              const char *where, H5T_class_t *class);

/* Does the group have a member called `name`? */
int hg__h5_has(hid_t group, const char *name);
HG_NODISCARD hg_status hg__h5_group(const struct h5 *h5, hid_t parent, const char *name,
                                    const char *where, hid_t *group);
HG_NODISCARD hg_status hg__h5_group_create(const struct h5 *h5, hid_t parent, const char *name,
                                           hid_t *group);

/* Read or write scalar attributes. A text may be stored with variable or fixed length; it is
 * returned in malloc'd memory, *value is NULL where the attribute is absent. Of numbers *found is 0
 * where the attribute is absent. */
HG_NODISCARD hg_status hg__h5_text(const struct h5 *h5, hid_t object, const char *name,
                                   const char *where, char **value);
HG_NODISCARD hg_status hg__h5_integer(const struct h5 *h5, hid_t object, const char *name,
                                      const char *where, int64_t *value, int *found);
HG_NODISCARD hg_status hg__h5_real(const struct h5 *h5, hid_t object, const char *name,
                                   const char *where, double *value, int *found);
HG_NODISCARD hg_status hg__h5_text_write(const struct h5 *h5, hid_t object, const char *name,
                                         const char *value);
/* The same as a text of fixed length, which HDF5 stores in the object itself. */
HG_NODISCARD hg_status hg__h5_fixed_text_write(const struct h5 *h5, hid_t object, const char *name,
                                               const char *value);
HG_NODISCARD hg_status hg__h5_integer_write(const struct h5 *h5, hid_t object, const char *name,
                                            int64_t value);
HG_NODISCARD hg_status hg__h5_real_write(const struct h5 *h5, hid_t object, const char *name,
                                         double value);

/* Open a dataset of `rank` dimensions and check its type, shape and storage. Refused are links,
 * storage outside of the file, filters other than shuffle, deflate and fletcher32, and shapes that
 * the stored bytes cannot fill. */
HG_NODISCARD hg_status hg__h5_array(const struct h5 *h5, hid_t parent, const char *name,
                                    const char *where, int rank, struct h5_array *array);
void hg__h5_array_close(struct h5_array *array);

/* A callback that receives `count` elements, of which the first is element `first` of the
 * dataset. */
typedef hg_status (*hg__h5_take)(const struct h5 *h5, const struct h5_array *array, void *user,
                                 int64_t first, int64_t count, const void *values);
/* Read all elements of a dataset with filters, as `type` with elements of `size` bytes. The
 * callback gets them chunk by chunk, part of a row at a time. A chunk that was never written, or
 * whose length is wrong after its filters are undone, is refused. */
HG_NODISCARD hg_status hg__h5_read_chunks(const struct h5 *h5, const struct h5_array *array,
                                          hid_t type, size_t size, hg__h5_take take, void *user);

/* Read all elements into fresh memory, widened from whatever integer type the file has. Every value
 * must lie in [low, high]. */
HG_NODISCARD hg_status hg__h5_read_i64(const struct h5 *h5, const struct h5_array *array,
                                       int64_t low, int64_t high, int64_t **values);
HG_NODISCARD hg_status hg__h5_read_i32(const struct h5 *h5, const struct h5_array *array,
                                       int64_t low, int64_t high, int32_t **values);
/* Read the member "class_names" of the file, texts one after the other; NULL where it is absent. */
HG_NODISCARD hg_status hg__h5_class_names(const struct h5 *h5, char **names, int64_t *bytes);
/* Read bytes, integers in [0, 255]: texts. */
HG_NODISCARD hg_status hg__h5_read_bytes(const struct h5 *h5, const struct h5_array *array,
                                         char **values);
/* Read integers or booleans, which must be 0 or 1. */
HG_NODISCARD hg_status hg__h5_read_mask(const struct h5 *h5, const struct h5_array *array,
                                        uint8_t **values);
/* Read floats of any width, or integers, as f32. A finite value that f32 cannot hold is refused. */
HG_NODISCARD hg_status hg__h5_read_f32(const struct h5 *h5, const struct h5_array *array,
                                       float **values);
/* The same as f64. */
HG_NODISCARD hg_status hg__h5_read_f64(const struct h5 *h5, const struct h5_array *array,
                                       double **values);
/* Read binary16 without a conversion. */
HG_NODISCARD hg_status hg__h5_read_half(const struct h5 *h5, const struct h5_array *array,
                                        hg_half **values);

/* Element types of written datasets, all little-endian. _SUMMED: with Fletcher checksums. */
enum h5_type { H5_U8, H5_I32, H5_I64, H5_HALF, H5_F32, H5_F64, H5_F32_SUMMED, H5_F64_SUMMED };
/* Write [rows] (cols = 0) or [rows, cols] elements. Where `out` is not NULL it returns the dataset,
 * still open, so that the caller can add attributes. */
HG_NODISCARD hg_status hg__h5_write(const struct h5 *h5, hid_t parent, const char *name,
                                    enum h5_type type, int64_t rows, int64_t cols,
                                    const void *values, hid_t *out);

/* Close a type, space, property list or attribute; an invalid id is ignored. */
void hg__h5_release(hid_t id);

/* Binary16 as an HDF5 type, which the caller releases. HDF5 has a name for it only from 1.14.4
 * on. */
hid_t hg__h5_half_type(void);

#endif
