#ifndef HG_BENCH_DEVICE_H
#define HG_BENCH_DEVICE_H

#include "core/context.h"
#include "core/csr.h"
#include "core/mat.h"
#include "edges.h"
#include "peer.h"

HG_EXTERN_C_BEGIN

/* What the benchmark needs of a device besides the library: numbers generated in place, time stamps
 * in the stream, and the two rates that results are compared with. host.c and cuda/device.cu
 * implement it. All functions report errors through the context. */
struct marks; /* time stamps in the stream */

struct gather {
	double ms_each[64]; /* the requested samples */
	int shapes;         /* number of launch shapes tried; the fastest one was sampled */
	char shape[64];
};

struct device {
	hg_status (*edges)(hg_context *ctx, const struct edge_rule *rule, uint64_t seed, int32_t *dst,
	                   int32_t *src);
	/* x[i, c] = fill_value(element i * cols + c), rounded once */
	hg_status (*fill)(hg_context *ctx, struct hg__mat x, uint64_t seed,
	                  const struct fill_rule *rule);
	hg_status (*copy)(hg_context *ctx, void *to, const void *from, size_t bytes);
	hg_status (*marks_create)(hg_context *ctx, int count, struct marks **marks);
	void (*marks_free)(struct marks *marks);
	hg_status (*mark)(hg_context *ctx, struct marks *marks, int i);
	/* the time from mark i to mark j; waits for j */
	hg_status (*elapsed)(hg_context *ctx, struct marks *marks, int i, int j, double *ms);
	/* The gather ceiling, with a check: `repeat` (at most 64) samples of the fastest launch shape.
	 * NULL: this device has none. */
	hg_status (*gather)(hg_context *ctx, const struct hg__csr *csr, struct hg__mat x, int repeat,
	                    struct gather *result);
	const struct peers *peers; /* NULL: none */
	/* versions of driver and toolkit, "" if there are none */
	void (*versions)(char *driver, char *toolkit, size_t size);
};

extern const struct device device_host;
#ifdef HG_HAVE_CUDA
extern const struct device device_cuda;
#endif

HG_EXTERN_C_END
#endif
