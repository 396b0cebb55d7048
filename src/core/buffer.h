/* A piece of host or device memory with its size, as the owner of an array holds it. */
#ifndef HG_CORE_BUFFER_H
#define HG_CORE_BUFFER_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* All zero means no memory, and freeing that is allowed, so one clean-up path serves every exit. */
struct hg__buffer {
	void *data;
	size_t bytes;
	int device; /* 0: host memory; 1: device memory; HG__BORROWED; HG__PINNED */
};
/* Device memory that somebody else frees. */
#define HG__BORROWED 2
/* Host memory that the device reads without the host's help (hg__buffer_pinned). */
#define HG__PINNED 3

/* Matrices whose rows have different distances on the two sides are copied through a staging buffer
 * of this many bytes. It is large enough that the fixed cost of a transfer (some 10 us) is small
 * beside its length (some 400 us at 10 GB/s), and small beside any memory. */
#define HG__STAGING_BYTES ((int64_t)4 << 20)

/* Host memory is zeroed; device memory is undefined. `what` names the memory in error texts. A
 * buffer of 0 elements has data NULL. */
HG_NODISCARD hg_status hg__buffer_host(hg_context *ctx, int64_t count, size_t size,
                                       const char *what, struct hg__buffer *buffer);
HG_NODISCARD hg_status hg__buffer_device(hg_context *ctx, int64_t count, size_t size,
                                         const char *what, struct hg__buffer *buffer);
/* Host memory from which copies to the device need not be waited for (copy_in_async), or ordinary
 * host memory where there is none. It is undefined. */
HG_NODISCARD hg_status hg__buffer_pinned(hg_context *ctx, size_t bytes, const char *what,
                                         struct hg__buffer *buffer);
void hg__buffer_free(hg_context *ctx, struct hg__buffer *buffer);

/* A new device buffer with a copy of a host array, and a new host buffer with a copy of a device
 * one. */
HG_NODISCARD hg_status hg__buffer_upload(hg_context *ctx, int64_t count, size_t size,
                                         const void *host, const char *what,
                                         struct hg__buffer *buffer);
HG_NODISCARD hg_status hg__buffer_download(hg_context *ctx, const struct hg__buffer *from,
                                           const char *what, struct hg__buffer *buffer);

HG_EXTERN_C_END
#endif
