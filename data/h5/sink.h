#ifndef HG_DATA_H5_SINK_H
#define HG_DATA_H5_SINK_H

#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h> /* where newer versions declare what drivers are made of */
#endif

/* Where HDF5 writes to: a file descriptor whose failures HDF5 never sees. A file that cannot be
 * flushed can neither be closed nor forgotten by HDF5 1.10: its id survives H5Fclose, and the
 * clean-up at the end of the process crashes on it. So the first failure (full disk, quota, size
 * limit) is kept here, what comes behind it is dropped, HDF5 closes in peace, and the writer asks
 * for the failure. An image in memory would do the same at twice the memory. */
struct hg__h5_sink {
	H5FD_t head; /* HDF5's own part */
	int fd;
	int reason; /* errno of the first failure, 0 if none */
	haddr_t end, allocated;
};

/* A new HDF5 file that is written through *sink, which must outlive it; negative if HDF5 cannot.
 * summed: see hg__h5_create. */
hid_t hg__h5_sink_create(struct hg__h5_sink *sink, int fd, int summed);

#endif
