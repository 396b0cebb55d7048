#ifndef HG_CORE_BUFFER_H
#define HG_CORE_BUFFER_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* A piece of memory that knows its size and where it lies. All zero: none; freeing none is fine, so
 * one clean-up line serves every exit. */
struct hg__buffer {
	void *data;
	size_t bytes;
	int device;
};

/* A matrix crosses between rows of different distance, on the device or the host, through a staging
 * buffer of this many bytes: large enough that a transfer's fixed cost (some 10 us) is small beside
 * its length (some 400 us at 10 GB/s), small enough to matter to nobody's memory. */
#define HG__STAGING_BYTES ((int64_t)4 << 20)

/* Contents of host memory are zero, of device memory undefined. `what` names it in the error text.
 * A buffer of 0 elements has data NULL. */
HG_NODISCARD hg_status hg__buffer_host(hg_context *ctx, int64_t count, size_t size,
                                       const char *what, struct hg__buffer *buffer);
HG_NODISCARD hg_status hg__buffer_device(hg_context *ctx, int64_t count, size_t size,
                                         const char *what, struct hg__buffer *buffer);
void hg__buffer_free(hg_context *ctx, struct hg__buffer *buffer);

/* A new device buffer with a copy of a host array, and the other way round. */
HG_NODISCARD hg_status hg__buffer_upload(hg_context *ctx, int64_t count, size_t size,
                                         const void *host, const char *what,
                                         struct hg__buffer *buffer);
HG_NODISCARD hg_status hg__buffer_download(hg_context *ctx, const struct hg__buffer *from,
                                           const char *what, struct hg__buffer *buffer);

HG_EXTERN_C_END
#endif
