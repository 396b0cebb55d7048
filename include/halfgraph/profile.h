/** @file
 * Where the time of a step goes: a tape is run once more, and each of its lines is timed by itself.
 *
 *     hg_tape_profile(tape, NULL, &profile)         or hg_train_profile(train, NULL, &profile)
 *     hg_profile_get_line(profile, k, &line)        for k = 0 to hg_profile_info.lines - 1
 *     hg_profile_trace(profile, write, user)        for Perfetto and chrome://tracing
 *     hg_profile_free(profile)
 *
 * A line is a call of the tape as it runs: an op, or several that were fused, forward or backward;
 * or the forward pass of an op that the backward pass repeats instead of keeping its result.
 *
 * Time      On a GPU from one event in the stream to the next, call by call and not captured; the
 *           device is kept busy while the host queues the lines, so that gaps of the host do not
 *           count. Events keep a kernel from starting while the one before it ends, which a
 *           captured step allows: the sum of the lines is more than a step takes, most for small
 *           graphs. On a CPU by the clock. The optimiser's update is not part of a tape.
 * Bytes     What the line has to move at least: every matrix that it reads and every one that it
 *           writes, once, and the CSR arrays of its graph. A neighbour that many rows sum is
 *           counted once; caches decide how often memory is asked for it.
 * NVTX      On a GPU, where the toolkit has nvtx3, each line is a range "conv1/spmm forward" inside
 *           a range of its layer, for Nsight Systems.
 * Owner     A profile owns its texts and borrows nothing but the context.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_PROFILE_H
#define HALFGRAPH_PROFILE_H

#include "halfgraph/train.h"

HG_EXTERN_C_BEGIN

/** The times of a tape. */
typedef struct hg_profile hg_profile;

/** How a tape is timed. */
typedef struct hg_profile_config {
	size_t size;
	int forward_only; /**< 1: the forward pass alone; 0 (default): both, where the tape has both */
	/** how often it is run, 1 to 1000; the fastest run is reported. 0 (default): 1 */
	int runs;
	/** bytes per second that memory gives, for hg_profile_line.roofline; 0 (default): measured by
	 * copying up to 128 MiB on all threads */
	double bandwidth;
} hg_profile_config;
/** The defaults of the fields. */
#define HG_PROFILE_CONFIG_INIT HG__INIT_ZERO(hg_profile_config)

/** What a line does. */
typedef enum hg_profile_phase {
	HG_PHASE_FORWARD = 0,  /**< the forward pass of an op */
	HG_PHASE_BACKWARD = 1, /**< its gradients */
	HG_PHASE_AGAIN = 2     /**< in the backward pass: the forward pass of an op once more */
} hg_profile_phase;

/** One line. Texts live as long as the profile. */
typedef struct hg_profile_line {
	size_t size;
	hg_profile_phase phase; /**< what it does */
	int32_t node;           /**< op node as in hg_tape_print */
	const char *name;       /**< "conv2/spmm", as in hg_narrowing */
	const char *op;         /**< "spmm", of a fused chain "spmm+bias_add+relu" */
	const char *layer;      /**< "conv2", or "" */
	double begin_us;        /**< when it began, in microseconds since the first line of the run */
	double us;              /**< how long it took, in microseconds */
	double bytes_read;      /**< bytes that it reads at least */
	double bytes_written;   /**< bytes that it writes at least */
	/** (bytes_read + bytes_written) / time / bandwidth: near 1 no kernel could be much faster; more
	 * than 1 where caches held what was read. 0 where the time is 0 */
	double roofline;
	int64_t rows;   /**< of the result of its op node */
	int64_t cols;   /**< of that result */
	hg_dtype dtype; /**< of that result */
} hg_profile_line;
/** An empty hg_profile_line with its size set. */
#define HG_PROFILE_LINE_INIT HG__INIT(hg_profile_line, HG__SET(dtype, HG_F32))

/** The whole of a profile. */
typedef struct hg_profile_info {
	size_t size;
	int64_t lines;         /**< all lines, in the order in which they ran */
	int64_t forward_lines; /**< lines of the forward pass, which come first */
	double forward_us;     /**< sum of the times of its lines, in microseconds */
	double backward_us;    /**< the same of the backward pass; 0 where it was not run */
	double bandwidth;      /**< bytes per second: the configuration's, or what was measured */
	int measured;          /**< 1: the bandwidth was measured */
	int runs;              /**< runs, the fastest of which this is */
} hg_profile_info;
/** An empty hg_profile_info with its size set. */
#define HG_PROFILE_INFO_INIT HG__INIT_ZERO(hg_profile_info)

/** Runs a tape line by line and times every line. It computes what hg_tape_forward, and after it
 * hg_tape_backward, compute, with the same bits: also running statistics move as in a forward
 * pass, once for each run. Waits for the device.
 *
 * Cost      The runs; for the measurement of the bandwidth twice 128 MiB of device memory, or less
 *           where less is free, until it returns.
 * @param tape     a compiled tape.
 * @param config   copied; NULL: HG_PROFILE_CONFIG_INIT.
 * @param profile  receives the profile, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (tape or profile is NULL, config's size is not set, runs or bandwidth
 *         is out of its range); the first error of the recording; HG_ERR_STATE (the tape is not
 *         compiled); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tape_profile(hg_tape *tape, const hg_profile_config *config,
                                              hg_profile **profile);

/** Times the training tape of a run, with the weights in place, and leaves the run as it was, bit
 * for bit: weights, running statistics, gradients and counters are put back.
 * @param train    the run.
 * @param config   copied; NULL: HG_PROFILE_CONFIG_INIT.
 * @param profile  receives the profile, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (as hg_tape_profile); HG_ERR_STATE (called from the run's progress
 *         function, or an earlier call failed while it recorded its tapes again); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_profile(hg_train *train, const hg_profile_config *config,
                                               hg_profile **profile);

/** Frees a profile.
 * @param profile  a profile or NULL. */
HG_API void hg_profile_free(hg_profile *profile);

/** Reads the whole of a profile.
 * @param profile  the profile.
 * @param info     receives it; start from HG_PROFILE_INFO_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or info's size is not set). */
HG_API HG_NODISCARD hg_status hg_profile_get_info(const hg_profile *profile, hg_profile_info *info);

/** Reads one line of a profile.
 * @param profile  the profile.
 * @param index    0 to hg_profile_info.lines - 1.
 * @param line     receives it; start from HG_PROFILE_LINE_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or line's size is not set); HG_ERR_RANGE (no such
 *         line). */
HG_API HG_NODISCARD hg_status hg_profile_get_line(const hg_profile *profile, int64_t index,
                                                  hg_profile_line *line);

/** The name of a phase: "forward", "backward", "again".
 * @param phase  a phase.
 * @return a constant text; NULL for a number that is no phase. */
HG_API const char *hg_profile_phase_name(hg_profile_phase phase);

/** Writes a profile in Chrome's trace event format (JSON), which Perfetto and chrome://tracing
 * show: a track of lines and one of layers.
 * @param profile  the profile.
 * @param write    called once per line of text.
 * @param user     passed to write.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL). */
HG_API HG_NODISCARD hg_status hg_profile_trace(const hg_profile *profile, hg_write_fn write,
                                               void *user);

HG_EXTERN_C_END
#endif
