/* Read chunks with filters. This file fetches the stored bytes, undoes the filters and checks the
 * length before it uses the bytes as elements, because HDF5's own pipeline does not check the
 * length. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "h5/h5.h"

/* The state of reading one dataset. */
struct reader {
	const struct h5 *h5;
	const struct h5_array *a;
	hid_t from, to;        /* the element type in the file, and the requested one */
	size_t size;           /* bytes of an element of the requested type */
	int converts;          /* the two types differ */
	unsigned char *stored; /* the bytes of a chunk as stored in the file */
	size_t room;           /* size of the buffer `stored` */
	unsigned char *slab;   /* buffer in which elements are converted */
	struct hg__unfilter memory;
	hg__h5_take take;
	void *user;
};

static hg_status bad_chunk(const struct reader *r, const hsize_t origin[2], const char *why)
{
	const struct h5_array *a = r->a;
	if (strcmp(why, HG__UNFILTER_NO_MEMORY) == 0)
		return hg__data_fail(r->h5->message, HG_ERR_NOMEM,
		                     "out of memory: %s: a chunk of %" PRId64 " x %" PRId64
		                     " elements of %zu bytes",
		                     a->where, a->chunk[0], a->chunk[1], a->size);
	if (a->rank == 1)
		return hg__data_fail(r->h5->message, HG_ERR_FORMAT,
		                     "%s: %s: the chunk at element %" PRIu64 " cannot be read: %s",
		                     r->h5->path, a->where, (uint64_t)origin[0], why);
	return hg__data_fail(r->h5->message, HG_ERR_FORMAT,
	                     "%s: %s: the chunk at row %" PRIu64 ", column %" PRIu64
	                     " cannot be read: %s",
	                     r->h5->path, a->where, (uint64_t)origin[0], (uint64_t)origin[1], why);
}

/* The bytes of a chunk after its filters are undone: exactly as many as its elements need. */
static hg_status fetch(struct reader *r, const hsize_t origin[2], const unsigned char **chunk)
{
	const struct h5_array *a = r->a;
	hsize_t stored = 0;
	uint32_t skipped = 0;
	if (H5Dget_chunk_storage_size(a->id, origin, &stored) < 0 || stored == 0)
		return bad_chunk(r, origin, "it was never written");
	if (stored > (hsize_t)r->h5->file_bytes)
		return bad_chunk(r, origin, "it is larger than the file");
	if (stored > r->room) {
		free(r->stored);
		r->room = 0;
		HG__TRY(hg__data_alloc((int64_t)stored, 1, a->where, (void **)&r->stored, r->h5->message));
		r->room = (size_t)stored;
	}
	if (H5Dread_chunk(a->id, H5P_DEFAULT, origin, &skipped, r->stored) < 0)
		return hg__h5_fail(r->h5, HG_ERR_FORMAT, a->where, "a chunk cannot be read");
	const size_t expected = (size_t)a->chunk[0] * (size_t)a->chunk[1] * a->size;
	const char *why = hg__unfilter(&r->memory, a->filter, a->filters, skipped, r->stored,
	                               (size_t)stored, expected, chunk);
	return why ? bad_chunk(r, origin, why) : HG_OK;
}

/* Pass elements [begin, begin + count) of a chunk to the callback, row by row; a one-dimensional
 * dataset is a single row. A chunk may extend beyond the dataset; elements there are ignored. */
static hg_status take_runs(const struct reader *r, const hsize_t origin[2], int64_t begin,
                           int64_t count, const unsigned char *values)
{
	const struct h5_array *a = r->a;
	const int flat = a->rank == 1;
	const int64_t width = a->chunk[flat ? 0 : 1], rows = flat ? 1 : a->dim[0],
	              cols = a->dim[flat ? 0 : 1];
	const int64_t top = flat ? 0 : (int64_t)origin[0], left = (int64_t)origin[flat ? 0 : 1],
	              end = begin + count;
	for (int64_t at = begin, run; at < end; at += run) {
		const int64_t row = top + at / width, col = left + at % width;
		run = width - at % width < end - at ? width - at % width : end - at;
		const int64_t inside = col >= cols ? 0 : cols - col < run ? cols - col : run;
		if (row < rows && inside > 0)
			HG__TRY(r->take(r->h5, a, r->user, row * cols + col, inside,
			                values + (size_t)(at - begin) * r->size));
	}
	return HG_OK;
}

static hg_status take_chunk(const struct reader *r, const hsize_t origin[2],
                            const unsigned char *chunk)
{
	const struct h5_array *a = r->a;
	const int64_t count = a->chunk[0] * a->chunk[1];
	if (!r->converts)
		return take_runs(r, origin, 0, count, chunk);
	for (int64_t begin = 0; begin < count; begin += HG__SLAB) {
		const int64_t some = count - begin < HG__SLAB ? count - begin : HG__SLAB;
		memcpy(r->slab, chunk + (size_t)begin * a->size, (size_t)some * a->size);
		if (H5Tconvert(r->from, r->to, (size_t)some, r->slab, NULL, H5P_DEFAULT) < 0)
			return hg__h5_fail(r->h5, HG_ERR_FORMAT, a->where, "its elements cannot be converted");
		HG__TRY(take_runs(r, origin, begin, some, r->slab));
	}
	return HG_OK;
}

static hg_status read_each(struct reader *r)
{
	const struct h5_array *a = r->a;
	const int64_t cols = a->rank == 2 ? a->dim[1] : 1;
	for (int64_t row = 0; row < a->dim[0]; row += a->chunk[0])
		for (int64_t col = 0; col < cols; col += a->chunk[1]) {
			const hsize_t origin[2] = {(hsize_t)row, (hsize_t)col};
			const unsigned char *chunk = NULL;
			HG__TRY(fetch(r, origin, &chunk));
			HG__TRY(take_chunk(r, origin, chunk));
		}
	return HG_OK;
}

hg_status hg__h5_read_chunks(const struct h5 *h5, const struct h5_array *a, hid_t type, size_t size,
                             hg__h5_take take, void *user)
{
	struct reader r = {.h5 = h5, .a = a, .to = type, .size = size, .take = take, .user = user};
	r.from = H5Dget_type(a->id);
	const htri_t same = r.from < 0 ? -1 : H5Tequal(r.from, r.to);
	hg_status status =
	    same < 0 ? hg__h5_fail(h5, HG_ERR_FORMAT, a->where, "its type cannot be read") : HG_OK;
	r.converts = same == 0;
	if (status == HG_OK && r.converts)
		status = hg__data_alloc(HG__SLAB, size > a->size ? size : a->size, a->where,
		                        (void **)&r.slab, h5->message);
	if (status == HG_OK)
		status = read_each(&r);
	hg__unfilter_free(&r.memory);
	free(r.stored);
	free(r.slab);
	hg__h5_release(r.from);
	return status;
}
