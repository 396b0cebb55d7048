/* Which comes first, the aggregation or the product?  A (H W) = (A H) W, so a layer may aggregate
 * either H or H W. It should be the one whose rows are cheaper to gather.
 *
 *     cost of a row of b bytes = b + 172 lines      if H is larger than a cache
 *                              = b                  if H fits
 *     lines = 1 + (b - gcd(b, 128)) / 128           cache lines of 128 bytes that a row touches on
 *                                                   average
 *
 * H200, products-like, f16: rows of 64, 96, 128 and 256 bytes take 2.90, 4.61, 3.68 and 7.20 ms;
 * 172 makes that 2.9, 4.3, 3.7 and 7.3. So 47 columns cost more than 64, which fill whole lines. */
#include "core/mat.h"
#include "nn/layers/layers.h"

#define LINE 128      /* bytes */
#define LINE_COST 172 /* in bytes */
/* In bytes: half of an H200's 60 MB of L2 cache, since each half of the chip keeps its own copy of
 * the rows that it gathers. */
#define CACHE 31457280

static int64_t row_cost(int64_t nodes, int64_t cols, hg_dtype state)
{
	/* `step` is gcd(bytes, LINE), because LINE is a power of two. */
	const int64_t bytes = hg__leading(cols) * (int64_t)hg_dtype_size(state),
	              step = (bytes | LINE) & -(bytes | LINE);
	return nodes * bytes > CACHE ? bytes + LINE_COST * (LINE + bytes - step) / LINE : bytes;
}

int hg__aggregate_first(int64_t nodes, int64_t in, int64_t out, hg_dtype state)
{
	const int64_t before = row_cost(nodes, in, state), behind = row_cost(nodes, out, state);
	return before != behind ? before < behind : in < out;
}
