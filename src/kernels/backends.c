/* The backends of this build. Core knows only their interface (core/backend.h). */
#include "kernels/backends.h"

#include "kernels/cpu/backend.h"

#ifdef HG_HAVE_CUDA
extern const struct hg__backend hg__backend_cuda;

static const struct hg__backend *cuda_backend(void)
{
	return &hg__backend_cuda;
}
#endif

/* In the order in which AUTO prefers them. The CPU is last and always present. */
static const struct hg__backend *(*const backends[])(void) = {
#ifdef HG_HAVE_CUDA
    cuda_backend,
#endif
    hg__cpu_backend,
};

/* A device responds if it can report its memory without a context. */
static int device_responds(const struct hg__backend *backend)
{
	size_t total, available;
	return backend->memory(NULL, &total, &available) >= 0;
}

const struct hg__backend *hg__backend_find(hg_device kind)
{
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		const struct hg__backend *backend = backends[i]();
		if (kind == HG_DEVICE_AUTO ? device_responds(backend) : backend->kind == kind)
			return backend;
	}
	return NULL;
}
