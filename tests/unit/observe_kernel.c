/* The observer's kernels, compared with a count on the host, one element after the other, by its
 * value and not by its bits. All results are integers, so every device must give the same ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "graphs.h"
#include "kernels/cpu/backend.h"
#include "precision/half.h"

enum { MOST = 12 };

/* Tensors on the device with copies of their storage on the host, and the arguments of the
 * observing kernel. */
struct scene {
	hg_context *ctx;
	struct hg__watched row[MOST + 1]; /* storage on the device */
	void *host[MOST];
	int64_t count;
	struct hg__buffer table, state, ring, step;
	struct hg__observe_args args;
};

static size_t storage(const struct hg__mat *m)
{
	return (size_t)(m->rows * m->ld) * hg_dtype_size(m->dtype);
}

/* Adds a tensor. Its storage, padding included, is filled with NaN, which must not be counted. */
static struct hg__mat *add_tensor(struct scene *s, hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct hg__watched *row = &s->row[s->count];
	row->mat = (struct hg__mat){NULL, rows, cols, hg__leading(cols), dtype};
	s->host[s->count] = malloc(storage(&row->mat) + 1);
	CHECK(s->host[s->count] != NULL);
	memset(s->host[s->count++], 0xFF, storage(&row->mat));
	return &row->mat;
}

static void put(struct scene *s, int64_t tensor, int64_t row, int64_t col, uint32_t bits)
{
	const struct hg__mat *m = &s->row[tensor].mat;
	const int64_t i = row * m->ld + col;
	if (m->dtype == HG_F16)
		((hg_half *)s->host[tensor])[i] = (hg_half)bits;
	else
		((float *)s->host[tensor])[i] = hg__float_of_bits(bits);
}

static double get(const struct scene *s, int64_t tensor, int64_t row, int64_t col)
{
	const struct hg__mat *m = &s->row[tensor].mat;
	const int64_t i = row * m->ld + col;
	return m->dtype == HG_F16 ? (double)hg_half_to_float(((const hg_half *)s->host[tensor])[i])
	                          : (double)((const float *)s->host[tensor])[i];
}

/* wild: random bits. Otherwise zeros and small numbers that are in a few bins, as in training. */
static void fill(struct scene *s, int64_t tensor, int wild)
{
	const struct hg__mat *m = &s->row[tensor].mat;
	for (int64_t r = 0; r < m->rows; r++)
		for (int64_t c = 0; c < m->cols; c++) {
			const double x = test_below(3) ? 0.05 * test_normal() : 0.0;
			const uint32_t tame =
			    m->dtype == HG_F16 ? hg__half_from_double(x) : hg__float_bits((float)x);
			put(s, tensor, r, c, wild ? (uint32_t)test_u64() : tame);
		}
}

static void upload(struct scene *s, int64_t every, int bad)
{
	int64_t chunks = 0;
	const struct hg__step step = {.step = 0, .scale = {.scale = 512.0f}};
	const size_t bytes =
	    (size_t)(s->count * (1 + HG__OBSERVED_STEPS)) * sizeof(struct hg__observed) +
	    (size_t)s->count * sizeof(uint32_t);
	for (int64_t i = 0; i < s->count; i++) {
		struct hg__mat *m = &s->row[i].mat;
		struct hg__buffer data;
		CHECK_OK(hg__buffer_upload(s->ctx, (int64_t)storage(m), 1, s->host[i], "test", &data));
		m->data = data.data;
		s->row[i].first = chunks;
		chunks += hg__observe_chunks(m);
	}
	s->row[s->count].first = chunks;
	CHECK_OK(hg__buffer_upload(s->ctx, s->count + 1, sizeof s->row[0], s->row, "test", &s->table));
	CHECK_OK(hg__buffer_device(s->ctx, (int64_t)bytes, 1, "test", &s->state));
	CHECK_OK(hg__buffer_device(s->ctx, 1, sizeof(struct hg__observed_ring), "test", &s->ring));
	CHECK_OK(hg__buffer_upload(s->ctx, 1, sizeof step, &step, "test", &s->step));
	CHECK_OK(s->ctx->backend->fill(s->ctx, s->state.data, 0, s->state.bytes));
	CHECK_OK(s->ctx->backend->fill(s->ctx, s->ring.data, 0, s->ring.bytes));
	struct hg__observed *counts = s->state.data;
	s->args = (struct hg__observe_args){
	    .due = {s->step.data, every, bad},
	    .table = s->table.data,
	    .count = s->count,
	    .chunks = chunks,
	    .counts = counts,
	    .kept = counts + s->count,
	    .most = (uint32_t *)(void *)(counts + s->count * (1 + HG__OBSERVED_STEPS)),
	    .stride = s->count,
	    .ring = s->ring.data,
	    .closes = 1};
}

static void observe(struct scene *s, int64_t number, int64_t nonfinite)
{
	const struct hg__step step = {
	    .step = number, .scale = {.scale = 512.0f}, .nonfinite = nonfinite};
	CHECK_OK(s->ctx->backend->copy_in(s->ctx, s->step.data, &step, sizeof step));
	CHECK_OK(s->ctx->backend->kernels->observe.run(s->ctx, &s->args));
}

static void scene_close(struct scene *s)
{
	for (int64_t i = 0; i < s->count; i++) {
		hg__device_free(s->ctx, s->row[i].mat.data, storage(&s->row[i].mat));
		free(s->host[i]);
	}
	hg__buffer_free(s->ctx, &s->table);
	hg__buffer_free(s->ctx, &s->state);
	hg__buffer_free(s->ctx, &s->ring);
	hg__buffer_free(s->ctx, &s->step);
	hg_context_free(s->ctx);
}

/* ---- the count on the host ---- */

static int bin_by_value(double size)
{
	int bin = 0;
	if (!(size <= 65504.0))
		return 31;
	while (bin < 30 && size >= ldexp(1.0, bin - 14))
		bin++;
	return bin;
}

static struct hg__observed count_by_value(const struct scene *s, int64_t tensor)
{
	const struct hg__mat *m = &s->row[tensor].mat;
	struct hg__observed o;
	memset(&o, 0, sizeof o);
	for (int64_t r = 0; r < m->rows; r++)
		for (int64_t c = 0; c < m->cols; c++) {
			const double size = fabs(get(s, tensor, r, c));
			const int finite = isfinite(size) != 0;
			o.zeros += size == 0.0;
			o.bin[bin_by_value(size)] += size != 0.0;
			o.nonfinite += (uint64_t)!finite;
			o.rank = !finite && !o.rank ? (uint64_t)(m->rows * m->cols - r * m->cols - c) : o.rank;
			o.amax = finite && size > (double)hg__float_of_bits(o.amax)
			             ? hg__float_bits((float)size)
			             : o.amax;
		}
	return o;
}

static struct hg__observed_ring ring_of(const struct scene *s)
{
	struct hg__observed_ring ring;
	CHECK_OK(s->ctx->backend->copy_out(s->ctx, &ring, s->ring.data, sizeof ring));
	return ring;
}

static void check_place(const struct scene *s, int64_t place)
{
	for (int64_t i = 0; i < s->count; i++) {
		const struct hg__observed expected = count_by_value(s, i), none = {{0}, 0, 0, 0, 0, 0, 0};
		const struct hg__mat *m = &s->row[i].mat;
		struct hg__observed found, left;
		uint32_t most;
		CHECK_OK(s->ctx->backend->copy_out(s->ctx, &found, s->args.kept + place * s->count + i,
		                                   sizeof found));
		CHECK_OK(s->ctx->backend->copy_out(s->ctx, &left, s->args.counts + i, sizeof left));
		CHECK_OK(s->ctx->backend->copy_out(s->ctx, &most, s->args.most + i, sizeof most));
		for (int b = 0; b < HG__BINS; b++)
			CHECK_MSG(found.bin[b] == expected.bin[b],
			          "tensor %d, %s [%lld, %lld]: bin %d has %llu, expected %llu", (int)i,
			          hg_dtype_name(m->dtype), (long long)m->rows, (long long)m->cols, b,
			          (unsigned long long)found.bin[b], (unsigned long long)expected.bin[b]);
		CHECK_EQ_I(found.zeros, expected.zeros);
		CHECK_EQ_I(found.nonfinite, expected.nonfinite);
		CHECK_EQ_I(found.rank, expected.rank);
		CHECK_EQ_I(found.amax, expected.amax);
		CHECK(memcmp(&found, &expected, sizeof found) == 0);
		CHECK(memcmp(&left, &none, sizeof left) == 0); /* the next step counts from 0 */
		CHECK_EQ_I(most, expected.nonfinite ? 0x7F800000 /* infinity */ : expected.amax);
	}
}

/* ---- cases ---- */

static void every_half_has_its_bin(void)
{
	struct scene s = {.ctx = test_context()};
	add_tensor(&s, HG_F16, 256, 256);
	add_tensor(&s, HG_F16, 65536, 1);
	add_tensor(&s, HG_F32, 256, 256); /* the same numbers */
	for (int64_t i = 0; i < 65536; i++) {
		put(&s, 0, i / 256, i % 256, (uint32_t)i);
		put(&s, 1, i, 0, (uint32_t)i);
		put(&s, 2, i / 256, i % 256, hg__float_bits(hg_half_to_float((hg_half)i)));
	}
	upload(&s, 1, 0);
	observe(&s, 0, 0);
	check_place(&s, 0);
	scene_close(&s);
}

/* Numbers that f32 holds and f16 does not: beyond 65504, below 2^-14, and exponents at both ends of
 * f32. */
static void floats_are_binned_as_halves(void)
{
	static const float edges[] = {
	    65504.0f, 65505.0f, 65519.0f,      65520.0f,  65536.0f,  1e38f, 0x1p-14f,  0x1.fffffep-15f,
	    0x1p-24f, 0x1p-25f, 0x1p-126f,     0x1p-149f, 0.0f,      -0.0f, -65504.0f, -1e5f,
	    32768.0f, 1.0f,     0x1.fffffep0f, INFINITY,  -INFINITY, NAN,   3.0e38f,   0x1.fffffep127f};
	struct scene s = {.ctx = test_context()};
	test_reseed(3);
	add_tensor(&s, HG_F32, 4, (int64_t)(sizeof edges / sizeof *edges));
	for (int64_t i = 0; i < 4 * (int64_t)(sizeof edges / sizeof *edges); i++)
		put(&s, 0, i % 4, i / 4, hg__float_bits(edges[i / 4]));
	add_tensor(&s, HG_F32, 999, 33);
	fill(&s, 1, 1);
	add_tensor(&s, HG_F32, 999, 2);
	fill(&s, 2, 1);
	upload(&s, 1, 0);
	observe(&s, 0, 0);
	check_place(&s, 0);
	scene_close(&s);
}

/* One call for tensors of every layout: rows of 1, 2 and 4 elements, with and without padding,
 * empty ones, one element, many chunks. kernels: those to call; NULL: the context's own. */
static void check_shapes(const struct hg__kernels *kernels, int threads)
{
	static const struct {
		int64_t rows, cols;
	} shapes[] = {{1, 1}, {0, 5},     {777, 7},    {5, 0},    {3001, 4}, {129, 41},
	              {2, 2}, {70001, 8}, {1, 100003}, {4097, 1}, {33, 64}};
	for (int wild = 0; wild < 2; wild++)
		for (int type = 0; type < 2; type++) {
			struct scene s = {.ctx = test_context()};
			test_reseed(7 + (uint64_t)wild);
			for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
				add_tensor(&s, (i + (size_t)type) % 2 ? HG_F16 : HG_F32, shapes[i].rows,
				           shapes[i].cols);
				fill(&s, (int64_t)i, wild);
			}
			upload(&s, 1, 0);
			const struct hg__backend *backend = s.ctx->backend;
			struct hg__backend other = *backend;
			other.kernels = kernels ? kernels : backend->kernels;
			s.ctx->backend = &other;
			s.ctx->threads = threads ? threads : s.ctx->threads;
			observe(&s, 0, 0);
			s.ctx->backend = backend;
			check_place(&s, 0);
			scene_close(&s);
		}
}

static void tensors_of_every_shape_are_counted(void)
{
	check_shapes(NULL, 0);
}

/* Every copy of the CPU's kernels, on one thread and on three. */
static void every_copy_of_the_cpu_kernels_counts_the_same(void)
{
	size_t count;
	const struct hg__cpu_isa *isa = hg__cpu_isas(&count);
	hg_context *ctx = test_context();
	const int cpu = ctx->backend->kind == HG_DEVICE_CPU;
	hg_context_free(ctx);
	if (!cpu)
		SKIP("not a CPU");
	for (size_t i = 0; i < count; i++)
		for (int threads = 1; threads <= 3 && isa[i].runs_here(); threads += 2)
			check_shapes(isa[i].kernels, threads);
}

/* The only element that is not finite is found wherever it is, and of several the first. */
static void first_nonfinite_element_is_found(void)
{
	static const uint32_t bad[] = {0x7C00, 0xFC00, 0x7E00, 0xFC01};
	test_reseed(11);
	for (int round = 0; round < 24; round++) {
		struct scene s = {.ctx = test_context()};
		const int64_t rows = 1 + test_below(3000), cols = 1 + test_below(20);
		add_tensor(&s, HG_F16, rows, cols);
		add_tensor(&s, HG_F32, rows, cols);
		fill(&s, 0, 0);
		fill(&s, 1, 0);
		for (int n = 0; n <= round % 3; n++) {
			const int64_t at = test_below(rows * cols);
			put(&s, 0, at / cols, at % cols, bad[test_below(4)]);
			put(&s, 1, at / cols, at % cols, hg__float_bits(n % 2 ? NAN : -INFINITY));
		}
		upload(&s, 1, 0);
		observe(&s, 0, 0);
		check_place(&s, 0);
		scene_close(&s);
	}
}

/* A step is observed when its number is due, or where its gradient is not finite and that is asked
 * for. The places of the ring are taken in turn. A call that does not close the step takes none. */
static void due_steps_are_observed(void)
{
	for (int bad = 0; bad < 2; bad++) {
		struct scene s = {.ctx = test_context()};
		int64_t taken = 0, last[HG__OBSERVED_STEPS] = {0};
		test_reseed(5);
		add_tensor(&s, HG_F16, 100, 9);
		fill(&s, 0, 1);
		add_tensor(&s, HG_F32, 10, 3);
		fill(&s, 1, 0);
		upload(&s, 3, bad);
		for (int64_t number = 0; number < 50; number++) {
			const int64_t nonfinite = number % 7 == 2 ? 4 : 0;
			if (number % 5 == 4) { /* another call before it, which does not close the step */
				s.args.closes = 0;
				observe(&s, number, nonfinite);
				s.args.closes = 1;
				CHECK_EQ_I(ring_of(&s).taken, taken);
			}
			observe(&s, number, nonfinite);
			if (number % 3 == 0 || (bad && nonfinite))
				last[taken++ % HG__OBSERVED_STEPS] = number;
			const struct hg__observed_ring ring = ring_of(&s);
			CHECK_EQ_I(ring.taken, taken);
			for (int64_t i = 0; i < taken && i < HG__OBSERVED_STEPS; i++)
				CHECK(ring.head[i].step == last[i] && ring.head[i].scale == 512.0f);
		}
		for (int64_t place = 0; place < HG__OBSERVED_STEPS; place++)
			check_place(&s, place);
		scene_close(&s);
	}
}

/* ---- sums that are computed again ---- */

enum { NODES = 6, EDGES = 400, COLS = 40, HEADS = 4 };

struct sums {
	hg_context *ctx;
	hg_graph *graph;
	struct hg__csr csr;
	hg_half x[NODES][COLS], y[NODES][COLS];
	float w[EDGES][HEADS], row_scale[NODES], col_scale[NODES];
};

static double head_weight(const struct sums *t, int e, int c)
{
	return (double)t->w[e][c / (COLS / HEADS)];
}

/* Computes the sums. In row `wrong`, one element is off by `part` of the sum of the magnitudes. */
static void make_sums(struct sums *t, int32_t wrong, double part)
{
	struct coo list = coo_empty(NODES, NODES);
	for (int64_t e = 0; e < EDGES; e++) /* the last node has no edge into it */
		coo_add(&list, e * e * (NODES - 1) / ((int64_t)EDGES * EDGES), test_below(NODES));
	t->graph = coo_graph(t->ctx, list);
	CHECK_OK(hg__graph_csr(t->graph, &t->csr));
	struct host_csr host = host_csr_download(t->ctx, t->graph);
	for (int i = 0; i < NODES; i++) {
		t->row_scale[i] = (float)(0.5 + test_uniform());
		t->col_scale[i] = (float)(0.5 + test_uniform());
		for (int c = 0; c < COLS; c++)
			t->x[i][c] = hg__half_from_double(test_normal());
	}
	for (int e = 0; e < EDGES; e++)
		for (int k = 0; k < HEADS; k++)
			t->w[e][k] = (float)test_uniform();
	for (int32_t i = 0; i < NODES; i++)
		for (int c = 0; c < COLS; c++) {
			double sum = 0.0, size = 0.0;
			for (int e = 0; e < EDGES; e++)
				if (host.row[e] == i) {
					const int32_t j = host.col[e];
					const double term = 0.5 * (double)t->row_scale[i] * (double)t->col_scale[j] *
					                    head_weight(t, e, c) * (double)hg_half_to_float(t->x[j][c]);
					sum += term;
					size += fabs(term);
				}
			t->y[i][c] = hg__half_from_double(sum + (i == wrong && c == 37 ? part * size : 0.0));
		}
	host_csr_free(&host);
}

static void sum_that_lost_terms_is_found(void)
{
	for (int32_t wrong = -1; wrong < NODES - 1; wrong++) {
		struct sums t = {.ctx = test_context()};
		struct hg__buffer x, y, w, row_scale, col_scale, sample, probe, counts, step;
		static const int32_t rows[] = {0, 1, 2, 3, 4, 5, 4};
		const struct hg__step at = {.step = 8};
		struct hg__observed found = {{0}, 0, 0, 0, 0, 0, 0};
		test_reseed(23);
		make_sums(&t, wrong, 0.25);
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof t.x, t.x, "x", &x));
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof t.y, t.y, "y", &y));
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof t.w, t.w, "w", &w));
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof t.row_scale, t.row_scale, "r", &row_scale));
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof t.col_scale, t.col_scale, "s", &col_scale));
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof rows, rows, "rows", &sample));
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof at, &at, "step", &step));
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof found, &found, "counts", &counts));
		const struct hg__probe p = {.rowptr = t.csr.rowptr,
		                            .col = t.csr.col,
		                            .x = {x.data, NODES, COLS, COLS, HG_F16},
		                            .y = {y.data, NODES, COLS, COLS, HG_F16},
		                            .w = {w.data, EDGES, HEADS, HEADS, HG_F32},
		                            .row_scale = row_scale.data,
		                            .col_scale = col_scale.data,
		                            .sample = sample.data,
		                            .samples = sizeof rows / sizeof *rows,
		                            .alpha = 0.5f,
		                            .heads = HEADS};
		CHECK_OK(hg__buffer_upload(t.ctx, 1, sizeof p, &p, "probe", &probe));
		struct hg__spmm_probe_args args = {
		    {step.data, 3, 0}, probe.data, 1, sizeof rows / sizeof *rows, counts.data};
		CHECK_OK(t.ctx->backend->kernels->spmm_probe.run(t.ctx, &args));
		CHECK_OK(t.ctx->backend->copy_out(t.ctx, &found, counts.data, sizeof found));
		CHECK_EQ_I(found.swamped, 0); /* every third step is observed, and this is step 8 */
		args.due.every = 4;
		CHECK_OK(t.ctx->backend->kernels->spmm_probe.run(t.ctx, &args));
		CHECK_OK(t.ctx->backend->copy_out(t.ctx, &found, counts.data, sizeof found));
		const double deviation = (double)hg__float_of_bits((uint32_t)(found.swamped >> 32));
		const int64_t row = (int64_t)(UINT32_MAX - (uint32_t)found.swamped);
		/* The store of Y rounds, and |Y| is at most 1.25 times the sum of the magnitudes. */
		CHECK_WITHIN(deviation, wrong < 0 ? 0.0 : 0.25, 0x1p-11 * 1.26);
		CHECK(wrong < 0 || row == wrong);
		struct hg__buffer *const buffers[] = {&x,      &y,     &w,      &row_scale, &col_scale,
		                                      &sample, &probe, &counts, &step};
		for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
			hg__buffer_free(t.ctx, buffers[i]);
		hg_graph_free(t.graph);
		hg_context_free(t.ctx);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_half_has_its_bin),
	    TEST(floats_are_binned_as_halves),
	    TEST(tensors_of_every_shape_are_counted),
	    TEST(every_copy_of_the_cpu_kernels_counts_the_same),
	    TEST(first_nonfinite_element_is_found),
	    TEST(due_steps_are_observed),
	    TEST(sum_that_lost_terms_is_found),
	};
	return RUN_TESTS(argc, argv, cases);
}
