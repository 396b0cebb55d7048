#include "kernels/cpu/backend.h"

#ifdef HG_HAVE_CUDA
extern const struct hg__backend hg__backend_cuda;

static const struct hg__backend *cuda_backend(void)
{
	return &hg__backend_cuda;
}
#endif

/* In the order in which AUTO prefers them. The CPU stands last and is always there. */
static const struct hg__backend *(*const backends[])(void) = {
#ifdef HG_HAVE_CUDA
    cuda_backend,
#endif
    hg__cpu_backend,
};

/* Whether a context can be opened on it: asked of a throw-away context, through the interface alone. */
static int answers(const struct hg__backend *backend)
{
	const hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context probe = {.backend = backend};
	if (backend->open(&probe, &config) < 0)
		return 0;
	backend->close(&probe);
	return 1;
}

const struct hg__backend *hg__backend_find(hg_device kind)
{
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		const struct hg__backend *backend = backends[i]();
		if (kind == HG_DEVICE_AUTO ? answers(backend) : backend->kind == kind)
			return backend;
	}
	return NULL;
}
