#ifndef HG_DATA_H5_SINK_H
#define HG_DATA_H5_SINK_H

#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h> /* declares the parts of a driver in newer versions */
#endif

/* A file descriptor that HDF5 writes to and whose failures HDF5 does not see. HDF5 1.10 cannot
 * close a file that it cannot flush: its id survives H5Fclose, and the clean-up at the end of the
 * process crashes on it. So the sink keeps the first failure (full disk, quota, size limit) and
 * drops all later writes; HDF5 closes the file normally, and the writer asks the sink for the
 * failure. An image in memory would do the same but take twice the memory. */
struct hg__h5_sink {
	H5FD_t head; /* HDF5's part; it must come first */
	int fd;
	int reason; /* errno of the first failure, 0 if none */
	haddr_t end, allocated;
};

/* Create an HDF5 file that is written through *sink, which must outlive it. Returns a negative id
 * if HDF5 fails. summed: see hg__h5_create. */
hid_t hg__h5_sink_create(struct hg__h5_sink *sink, int fd, int summed);

#endif
