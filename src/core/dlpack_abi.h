/* The binary layout of DLPack 1.x from its specification, as far as tensors are exchanged here. */
#ifndef HG_CORE_DLPACK_ABI_H
#define HG_CORE_DLPACK_ABI_H

#include <stdint.h>

#include "halfgraph/dlpack.h"

HG_EXTERN_C_BEGIN

enum { HG__DL_CPU = 1, HG__DL_CUDA = 2, HG__DL_CUDA_HOST = 3 };              /* device types */
enum { HG__DL_INT = 0, HG__DL_UINT = 1, HG__DL_FLOAT = 2, HG__DL_BOOL = 6 }; /* type codes */
enum { HG__DL_MAJOR = 1, HG__DL_MINOR = 0 };
enum { HG__DL_READ_ONLY = 1 }; /* a flag */

struct hg__dl_version {
	uint32_t major, minor;
};

struct hg__dl_device {
	int32_t type, id;
};

struct hg__dl_dtype {
	uint8_t code, bits;
	uint16_t lanes;
};

struct hg__dl_tensor {
	void *data;
	struct hg__dl_device device;
	int32_t ndim;
	struct hg__dl_dtype dtype;
	int64_t *shape, *strides; /* in elements; strides NULL: compact row-major */
	uint64_t byte_offset;
};

struct DLManagedTensor {
	struct hg__dl_tensor tensor;
	void *manager;
	void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
	struct hg__dl_version version;
	void *manager;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	struct hg__dl_tensor tensor;
};

HG_EXTERN_C_END
#endif
