/** @file
 * A context is one device, one stream, one error message, one allocator. Everything else is made
 * from a context and freed before it.
 *
 * Threads   Use a context and everything made from it from one thread at a time. Different contexts
 *           are independent. A call on a CUDA context makes the context's device current for the
 *           calling thread (cudaSetDevice).
 * Owner     A context that is freed before its objects logs a warning and closes with the last of
 *           them. The allocator's functions, and a stream it was given, must live until then. The
 *           log is not called any more, and the caller must not use the pointer any more.
 * Errors    Any call that uses a GPU may return HG_ERR_DEVICE (the driver or a kernel failed) and,
 *           in a child process, HG_ERR_STATE.
 *
 * Forks. A child process keeps what a CPU context has made, and computes the same bits. OpenMP's
 * threads do not survive a fork: where the thread that forked had used them, the child computes in
 * one thread and logs a warning; a thread that the child creates has all of them. A GPU does not
 * survive a fork: a call on a GPU context is HG_ERR_STATE in the child, which may free it.
 *
 * Floating-point modes. CPU computation rounds to nearest and keeps subnormal numbers, whatever
 * mode the calling thread is in (fesetround, -ffast-math); the thread's own mode is restored
 * afterwards. The threads of its OpenMP team stay in that mode.
 *
 * Machines with other work. Between two parallel regions OpenMP's threads wait actively by default,
 * and beside other work an epoch then takes many times as long. OMP_WAIT_POLICY=passive in the
 * environment makes them sleep; with GCC's OpenMP, GOMP_SPINCOUNT=300 makes them sleep after 300
 * iterations, which costs least where there is no other work. OpenMP reads these when the program
 * is loaded, so the library cannot set them: set them before the program starts (hg-train,
 * hg-doctor and hg-bench do so themselves), or ask for threads = 1. */
#ifndef HALFGRAPH_CONTEXT_H
#define HALFGRAPH_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/export.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/** A device with its stream, error message, log and allocator. */
typedef struct hg_context hg_context;

/** Kinds of device. */
typedef enum hg_device {
	HG_DEVICE_AUTO = 0, /**< CUDA where a device answers and opens, else the CPU */
	HG_DEVICE_CPU = 1,  /**< the CPU, with OpenMP */
	HG_DEVICE_CUDA = 2  /**< an NVIDIA GPU */
} hg_device;

/** How much is logged: messages up to a level. */
typedef enum hg_log_level {
	/** a failure that no call could return, such as a device that fails while memory is freed */
	HG_LOG_ERROR = 0,
	/** something works differently than asked: AUTO on the CPU, a step that cannot be captured, a
	 * context freed before its objects */
	HG_LOG_WARN = 1,
	HG_LOG_INFO = 2, /**< the device of a new context, work that was captured */
	/** choices of kernels, and the message of every call that fails; the caller has its status
	 * already, and a failure may be expected */
	HG_LOG_DEBUG = 3
} hg_log_level;

/** Receives one log message, valid during the call. It must not call the library.
 * @param user     hg_context_config.log_user.
 * @param level    the level.
 * @param message  one line, without a newline. */
typedef void (*hg_log_fn)(void *user, hg_log_level level, const char *message);

/** Memory functions of the caller. All three members NULL: the library's own. */
typedef struct hg_allocator {
	/** Gives memory aligned to 64 bytes (256 on a GPU), or NULL. device is 0 for host memory, 1 for
	 * the context's device memory (the same on a CPU). */
	void *(*alloc)(void *user, size_t bytes, int device);
	/** Takes memory back, with the size it was asked for. Device memory comes back only after all
	 * work queued on the context's stream has run, so it may be reused at once. */
	void (*free)(void *user, void *memory, size_t bytes, int device);
	void *user; /**< passed to both */
} hg_allocator;

/** Most threads a context can ask for. The largest machines of two sockets run 2 x 192 cores x 2 =
 * 768 threads; far above that, OpenMP fails to start a team and ends the process. */
#define HG_THREADS_MAX 1024

/** How a context is opened. */
typedef struct hg_context_config {
	size_t size;
	/** default HG_DEVICE_AUTO; a warning is logged where a device that answers is not used */
	hg_device device;
	int device_index; /**< number of the GPU, as CUDA counts them; default 0 */
	/** a cudaStream_t, borrowed until the context closes; ignored on the CPU. With AUTO, a device
	 * that does not open is then an error. NULL (default): the context makes its own */
	void *stream;
	/** CPU threads, at most HG_THREADS_MAX; 0 (default): OpenMP's number, or HG_THREADS_MAX where
	 * that is larger, with a line in the log at HG_LOG_INFO */
	int threads;
	uint64_t seed;          /**< of initial weights and dropout; default 0 */
	hg_log_fn log;          /**< receives log messages; NULL (default): none */
	void *log_user;         /**< passed to log */
	hg_log_level log_level; /**< default HG_LOG_WARN */
	hg_allocator allocator; /**< default: the library's own */
	/** device bytes that objects of this context may hold together; 0 (default): what the device
	 * has */
	size_t memory_limit;
	/** for debugging. 0 (default): chains of ops that one kernel can do are fused (hg_tape_print
	 * shows them); 1: every op runs by itself */
	int separate_ops;
} hg_context_config;
/** The defaults of the fields. */
#define HG_CONTEXT_CONFIG_INIT \
	HG__INIT(hg_context_config, HG__SET(device, HG_DEVICE_AUTO) HG__SET(log_level, HG_LOG_WARN))

/** Opens a context. The message of a failure is in hg_context_error(NULL).
 * @param config   copied; NULL: HG_CONTEXT_CONFIG_INIT.
 * @param context  receives the context, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (context is NULL, config's size is not set, or a field is out of its
 *         range); HG_ERR_UNSUPPORTED (this build or machine has no such device); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_context_create(const hg_context_config *config,
                                                hg_context **context);

/** Frees a context. Free everything made from it first.
 * @param context  a context or NULL. */
HG_API void hg_context_free(hg_context *context);

/** The message of the last failed call on a context: which call, which argument, found, expected.
 *
 * Threads   With NULL: of the calling thread's last failed hg_context_create.
 * @param context  a context or NULL.
 * @return the message, valid until the next call on the context; "" where there is none, never
 *         NULL. */
HG_API const char *hg_context_error(const hg_context *context);

/** The kind of a context's device.
 * @param context  a context or NULL.
 * @return HG_DEVICE_CPU or HG_DEVICE_CUDA; HG_DEVICE_AUTO for NULL. */
HG_API hg_device hg_context_device(const hg_context *context);

/** The device of a context, for people: "NVIDIA H200 (sm_90)" or "CPU (avx512, 2 threads)".
 * @param context  a context or NULL.
 * @return the text, borrowed; "" for NULL. */
HG_API const char *hg_context_device_name(const hg_context *context);

/** The seed a context was opened with.
 * @param context  a context or NULL.
 * @return the seed; 0 for NULL. */
HG_API uint64_t hg_context_seed(const hg_context *context);

/** Waits until all queued work of a context has finished. Nothing to wait for on a CPU.
 * @param context  the context.
 * @return HG_OK; HG_ERR_ARG (NULL); HG_ERR_DEVICE (also for work queued earlier). */
HG_API HG_NODISCARD hg_status hg_context_synchronize(hg_context *context);

/** Memory of a context's device, in bytes; host memory on a CPU. */
typedef struct hg_memory_info {
	size_t size;
	size_t current_bytes;      /**< held now by objects of this context */
	size_t peak_bytes;         /**< most ever held by them */
	size_t device_total_bytes; /**< of the device */
	size_t device_free_bytes;  /**< of the device, free now for any program */
} hg_memory_info;
/** An empty hg_memory_info with its size set. */
#define HG_MEMORY_INFO_INIT HG__INIT_ZERO(hg_memory_info)

/** Reads how much memory a context holds.
 * @param context  the context.
 * @param info     receives it; start from HG_MEMORY_INFO_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or info's size is not set); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_context_memory(hg_context *context, hg_memory_info *info);

HG_EXTERN_C_END
#endif
