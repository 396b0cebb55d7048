#ifndef HALFGRAPH_CONTEXT_H
#define HALFGRAPH_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/export.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/* A context is one device, one stream, one error text, one allocator. Use it from one thread at a
 * time; different contexts are independent. A call on a CUDA context makes the context's device the
 * calling thread's current one (cudaSetDevice) and leaves it so.
 *
 * Free it after the objects made from it. Freed earlier, it gives a warning and closes with the
 * last of them: the allocator's hooks, and a stream that it was given, must live until then; the
 * log and the caller's pointer to it are out of use at once. */
typedef struct hg_context hg_context;

/* Forks. What a context of the CPU has made is there in a child as well, and gives the same bits.
 * OpenMP's threads are not:
 * where the thread that forked had used them, the child computes in one thread, with a warning in
 * its log; a thread that
 * the child makes has all of them. (A program whose own parallel regions have run before the fork
 * is OpenMP's to care for.)
 * A GPU does not survive a fork: a call on a context of a GPU is HG_ERR_STATE in the child, which
 * may free it.
 *
 * Floating-point modes. What a CPU computes for a context is rounded to nearest, and numbers near 0
 * are kept, whatever mode the calling thread is in (fesetround, -ffast-math); it has its own back
 * afterwards. Its team of OpenMP's threads is set to that mode for good.
 *
 * Machines with other work. Between two parallel regions the threads of OpenMP wait for the next
 * one, and by default they
 * do so at full speed: beside other work an epoch then takes many times as long.
 * OMP_WAIT_POLICY=passive in the
 * environment makes them sleep, with GCC's OpenMP GOMP_SPINCOUNT=300 after 300 looks, which costs
 * least where there is no
 * other work. OpenMP reads it when the program is loaded, so the library cannot set it: set it
 * before
 * the program starts (hg-train, hg-doctor and hg-bench do so themselves), or ask for threads =
 * 1. */

typedef enum hg_device { HG_DEVICE_AUTO = 0, HG_DEVICE_CPU = 1, HG_DEVICE_CUDA = 2 } hg_device;
/* ERROR: a failure that no call could return, such as a device that fails while memory is given
 * back. WARN: something works otherwise than asked: AUTO on the CPU, a context freed before its
 * objects. INFO: the device of a new context. DEBUG: choices of kernels, and the sentence of every
 * call that fails; its status tells the caller already, and failing may be expected. */
typedef enum hg_log_level {
	HG_LOG_ERROR = 0,
	HG_LOG_WARN = 1,
	HG_LOG_INFO = 2,
	HG_LOG_DEBUG = 3
} hg_log_level;
typedef void (*hg_log_fn)(void *user, hg_log_level level, const char *message);

/* Memory hooks. `device` is 0 for host memory, 1 for the context's device memory (the same thing on
 * the CPU). alloc returns memory aligned to 64 bytes (256 on a GPU) or NULL; free is told the size.
 * Device memory is given back only after all work queued on the context's stream has run, so free
 * may reuse it at once. All three NULL: the library's own. */
typedef struct hg_allocator {
	void *(*alloc)(void *user, size_t bytes, int device);
	void (*free)(void *user, void *memory, size_t bytes, int device);
	void *user;
} hg_allocator;

/* The largest machines of two sockets run 2 x 192 cores x 2 = 768 threads; far beyond, OpenMP fails
 * to start a team and ends the process. */
#define HG_THREADS_MAX 1024

typedef struct hg_context_config {
	size_t size;
	/* AUTO: CUDA where a device answers and opens, else the CPU; log level WARN tells why a device
	 * that answers is not used */
	hg_device device;
	int device_index;
	/* a cudaStream_t, borrowed, ignored on the CPU; AUTO then reports a device that does not open.
	 * NULL: the context makes its own */
	void *stream;
	int threads; /* CPU threads, at most HG_THREADS_MAX; 0: as many as OpenMP gives */
	uint64_t seed;
	hg_log_fn log; /* NULL: silent */
	void *log_user;
	hg_log_level log_level;
	hg_allocator allocator;
	/* device bytes that objects of this context may hold together; 0: what the device has */
	size_t memory_limit;
	/* for debugging. 0: chains of ops that one kernel can do run as one (hg_tape_print shows
	 * which); 1: each op runs by itself */
	int separate_ops;
} hg_context_config;
#define HG_CONTEXT_CONFIG_INIT                                                                    \
	{                                                                                             \
		sizeof(hg_context_config), HG_DEVICE_AUTO, 0, 0, 0, 0, 0, 0, HG_LOG_WARN, {0, 0, 0}, 0, 0 \
	}

/* config may be NULL (all defaults). HG_ERR_ARG: a field is out of its range; HG_ERR_UNSUPPORTED:
 * this build or machine has no such device. */
HG_API HG_NODISCARD hg_status hg_context_create(const hg_context_config *config,
                                                hg_context **context);
HG_API void hg_context_free(hg_context *context);

/* The sentence of the last failed call on this context: who, which argument, found, expected. "" if
 * none. Never NULL; valid until the next call. hg_context_error(NULL) gives the sentence of this
 * thread's last failed hg_context_create. */
HG_API const char *hg_context_error(const hg_context *context);

HG_API hg_device hg_context_device(const hg_context *context);
/* "NVIDIA H200 (sm_90)" or "CPU (avx512, 2 threads)". */
HG_API const char *hg_context_device_name(const hg_context *context);
HG_API uint64_t hg_context_seed(const hg_context *context);
HG_API HG_NODISCARD hg_status hg_context_synchronize(hg_context *context);

/* Device bytes held now, and the most ever held, by objects of this context (host bytes on the
 * CPU). */
typedef struct hg_memory_info {
	size_t size;
	size_t current_bytes, peak_bytes, device_total_bytes, device_free_bytes;
} hg_memory_info;
#define HG_MEMORY_INFO_INIT                \
	{                                      \
		sizeof(hg_memory_info), 0, 0, 0, 0 \
	}
HG_API HG_NODISCARD hg_status hg_context_memory(hg_context *context, hg_memory_info *info);

HG_EXTERN_C_END
#endif
