#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "tool.h"

/* The device functions of the benchmark on a CPU. */

static hg_status edges(hg_context *ctx, const struct edge_rule *rule, uint64_t seed, int32_t *dst,
                       int32_t *src)
{
	static const edge_fn draw[EDGE_KINDS] = {
	    [EDGE_POWER] = edge_power,         [EDGE_RMAT] = edge_rmat,
	    [EDGE_PLANTED] = edge_planted,     [EDGE_MOLECULE] = edge_molecule,
	    [EDGE_CLIQUES] = edge_cliques,     [EDGE_UNEQUAL] = edge_unequal,
	    [EDGE_MOLECULES] = edge_molecules, [EDGE_COMPOUNDS] = edge_molecules,
	    [EDGE_NEAR] = edge_near,
	};
	(void)ctx;
#pragma omp parallel for schedule(static)
	for (int64_t e = 0; e < rule->edges; e++)
		edge_draw(draw[rule->kind], rule, seed, (uint64_t)e, &dst[e], &src[e]);
	return HG_OK;
}

static hg_status fill(hg_context *ctx, struct hg__mat x, uint64_t seed,
                      const struct fill_rule *rule)
{
	(void)ctx;
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < x.rows; i++)
		for (int64_t c = 0; c < x.cols; c++) {
			const double value = fill_value(rule, seed, (uint64_t)(i * x.cols + c));
			if (x.dtype == HG_F16)
				((hg_half *)x.data)[i * x.ld + c] = hg_half_from_double(value);
			else
				((float *)x.data)[i * x.ld + c] = (float)value;
		}
	return HG_OK;
}

/* All threads share the copy, because a single thread does not reach the memory's bandwidth. */
static hg_status copy(hg_context *ctx, void *to, const void *from, size_t bytes)
{
	const int64_t piece = 1 << 20, pieces = ((int64_t)bytes + piece - 1) / piece;
	(void)ctx;
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < pieces; i++) {
		const size_t begin = (size_t)(i * piece), left = bytes - begin;
		memcpy((char *)to + begin, (const char *)from + begin,
		       left < (size_t)piece ? left : (size_t)piece);
	}
	return HG_OK;
}

struct marks {
	int count;
	double ms[];
};

static hg_status marks_create(hg_context *ctx, int count, struct marks **marks)
{
	*marks = calloc(1, sizeof **marks + (size_t)count * sizeof(double));
	if (!*marks)
		return hg__fail(ctx, HG_ERR_NOMEM, "no memory for %d points in time", count);
	(*marks)->count = count;
	return HG_OK;
}

static void marks_free(struct marks *marks)
{
	free(marks);
}

static hg_status mark(hg_context *ctx, struct marks *marks, int i)
{
	if (i < 0 || i >= marks->count)
		return hg__fail(ctx, HG_ERR_INTERNAL, "mark %d of %d", i, marks->count);
	marks->ms[i] = 1e3 * tool_seconds();
	return HG_OK;
}

static hg_status elapsed(hg_context *ctx, struct marks *marks, int i, int j, double *ms)
{
	(void)ctx;
	*ms = marks->ms[j] - marks->ms[i];
	return HG_OK;
}

static void versions(char *driver, char *toolkit, size_t size)
{
	if (size)
		driver[0] = toolkit[0] = '\0';
}

const struct device device_host = {
    .edges = edges,
    .fill = fill,
    .copy = copy,
    .marks_create = marks_create,
    .marks_free = marks_free,
    .mark = mark,
    .elapsed = elapsed,
    .gather = NULL,
    .peers = NULL,
    .versions = versions,
};
