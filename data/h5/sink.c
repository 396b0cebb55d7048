/* An HDF5 file driver (part of HDF5's "virtual file layer") that implements only what writing one
 * new file needs. sink.h says why it exists. */
#include "h5/h5.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "seal.h"

static struct hg__h5_sink *sink_of(H5FD_t *file)
{
	return (struct hg__h5_sink *)file; /* head is its first member */
}

static const struct hg__h5_sink *const_sink_of(const H5FD_t *file)
{
	return (const struct hg__h5_sink *)file;
}

/* The driver information in the access property list is the pointer to the sink. */
static H5FD_t *open_sink(const char *name, unsigned flags, hid_t access, haddr_t largest)
{
	struct hg__h5_sink *const *sink = H5Pget_driver_info(access);
	(void)name;
	(void)flags;
	(void)largest;
	return sink ? &(*sink)->head : NULL;
}

static herr_t close_sink(H5FD_t *file)
{
	(void)file; /* the caller owns the descriptor */
	return 0;
}

/* Aggregate small pieces, as HDF5's own drivers do. All of HDF5's drivers can read the file. */
static herr_t query(const H5FD_t *file, unsigned long *flags)
{
	(void)file;
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
	         H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
	return 0;
}

static haddr_t get_allocated(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return const_sink_of(file)->allocated;
}

static herr_t set_allocated(H5FD_t *file, H5FD_mem_t type, haddr_t address)
{
	(void)type;
	sink_of(file)->allocated = address;
	return 0;
}

static haddr_t get_end(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return const_sink_of(file)->end;
}

/* Read back what was written. Bytes that were never written, or whose write failed, read as
 * zeros. */
static herr_t read_back(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                        void *buffer)
{
	struct hg__h5_sink *sink = sink_of(file);
	size_t done = 0;
	(void)type;
	(void)transfer;
	while (done < size) {
		const ssize_t got =
		    pread(sink->fd, (char *)buffer + done, size - done, (off_t)(address + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && sink->reason == 0)
			sink->reason = errno;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	memset((char *)buffer + done, 0, size - done);
	return 0;
}

static herr_t write_out(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                        const void *buffer)
{
	struct hg__h5_sink *sink = sink_of(file);
	(void)type;
	(void)transfer;
	for (size_t done = 0; done < size && sink->reason == 0;) {
		const ssize_t put =
		    pwrite(sink->fd, (const char *)buffer + done, size - done, (off_t)(address + done));
		if (put > 0)
			done += (size_t)put;
		else if (put == 0 || errno != EINTR)
			sink->reason = put == 0 ? ENOSPC : errno;
	}
	if (address + size > sink->end)
		sink->end = address + size;
	return 0;
}

/* The file ends where HDF5's allocations end. */
static herr_t truncate_sink(H5FD_t *file, hid_t transfer, hbool_t closing)
{
	struct hg__h5_sink *sink = sink_of(file);
	(void)transfer;
	(void)closing;
	if (sink->end != sink->allocated && sink->reason == 0 &&
	    ftruncate(sink->fd, (off_t)sink->allocated) != 0)
		sink->reason = errno;
	sink->end = sink->allocated;
	return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 256, /* the values 256 to 511 are reserved for unregistered drivers */
#endif
    .name = "halfgraph",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(struct hg__h5_sink *),
    .open = open_sink,
    .close = close_sink,
    .query = query,
    .get_eoa = get_allocated,
    .set_eoa = set_allocated,
    .get_eof = get_end,
    .read = read_back,
    .write = write_out,
    .truncate = truncate_sink,
    .fl_map = H5FD_FLMAP_DICHOTOMY, /* as in HDF5's own drivers: metadata and raw data apart */
};

/* Without times equal contents give equal files. The 1.10 format also brings checksums of headers,
 * of groups and of the index of the data. */
static int set_format(hid_t access, hid_t create, int summed)
{
	return H5Pset_userblock(create, HG__SEAL_BYTES) >= 0 &&
	       H5Pset_obj_track_times(create, 0) >= 0 &&
	       (!summed || H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
}

hid_t hg__h5_sink_create(struct hg__h5_sink *sink, int fd, int summed)
{
	hid_t file = H5I_INVALID_HID;
	const hid_t id = H5FDregister(&driver), access = H5Pcreate(H5P_FILE_ACCESS),
	            create = H5Pcreate(H5P_FILE_CREATE);
	*sink = (struct hg__h5_sink){.fd = fd};
	if (id >= 0 && access >= 0 && create >= 0 && set_format(access, create, summed) &&
	    H5Pset_driver(access, id, &sink) >= 0)
		file = H5Fcreate("halfgraph", H5F_ACC_TRUNC, create, access);
	hg__h5_release(create);
	hg__h5_release(access);
	if (id >= 0)
		H5FDunregister(id); /* the open file keeps the driver as long as it needs it */
	return file;
}
