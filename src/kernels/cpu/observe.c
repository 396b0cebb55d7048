/* The observer's statistics of tensors (kernels/observe.h): bin, zeros, nonfinite, rank and amax.
 * All are integers, so they do not depend on the number of threads or on the instruction set.
 *
 * Numbers are processed in pieces of PIECE, which stay in the first-level cache (4 or 8 kB). A
 * vector loop finds the maximum and counts zeros. A second loop counts the bins. Neighbouring
 * numbers often fall in the same bin, so it alternates between eight tables: then no count waits
 * for the one before it. */
#include "kernels/observe.h"

#include "kernels/cpu/rows.h"

#define PIECE 2048
#define TABLES 8

struct tally {
	uint32_t table[TABLES][HG__BINS];
	struct hg__observed sum;
};

/* Adds the tables to the sum and clears them. */
static void flush_tables(struct tally *t)
{
	for (int b = 0; b < HG__BINS; b++) {
		uint32_t count = 0;
		for (int k = 0; k < TABLES; k++)
			count += t->table[k][b];
		t->sum.bin[b] += count;
	}
	memset(t->table, 0, sizeof t->table);
}

static void merge_observed(struct hg__observed *to, const struct hg__observed *from)
{
	for (int b = 0; b < HG__BINS; b++)
		to->bin[b] += from->bin[b];
	to->zeros += from->zeros;
	to->nonfinite += from->nonfinite;
	to->rank = from->rank > to->rank ? from->rank : to->rank;
	to->amax = from->amax > to->amax ? from->amax : to->amax;
}

/* ---- a piece; left: the number of elements from its first to the tensor's last ---- */

static void find_nonfinite_half(int64_t n, const hg_half *x, uint64_t left, struct tally *t)
{
	for (int64_t i = n - 1; i >= 0; i--) {
		const int bad = (x[i] & 0x7FFFu) >= HG__HALF_INFINITE;
		t->sum.nonfinite += (uint64_t)bad;
		t->sum.rank = bad && left - (uint64_t)i > t->sum.rank ? left - (uint64_t)i : t->sum.rank;
	}
}

static void count_half(int64_t n, const void *data, uint64_t left, struct tally *t)
{
	const hg_half *x = data;
	uint16_t most = 0, zeros = 0, bad = 0;
#pragma omp simd reduction(max : most) reduction(+ : zeros, bad)
	for (int64_t i = 0; i < n; i++) {
		const uint16_t m = x[i] & 0x7FFFu, finite = (uint16_t)(m < HG__HALF_INFINITE ? m : 0);
		most = finite > most ? finite : most;
		zeros = (uint16_t)(zeros + (m == 0));
		bad = (uint16_t)(bad + (m >= HG__HALF_INFINITE));
	}
	int64_t i = 0;
	for (; i + TABLES <= n; i += TABLES)
		for (int k = 0; k < TABLES; k++)
			t->table[k][hg__bin_of_half(x[i + k] & 0x7FFFu)]++;
	for (; i < n; i++)
		t->table[0][hg__bin_of_half(x[i] & 0x7FFFu)]++;
	/* The loops above have counted zeros with the subnormals in bin 0. The count of one table may
	 * wrap below zero here, but the sum of the tables is right modulo 2^32. */
	t->table[0][0] -= zeros;
	t->sum.zeros += zeros;
	const uint32_t wide = hg__widened_magnitude(most);
	t->sum.amax = wide > t->sum.amax ? wide : t->sum.amax;
	if (bad)
		find_nonfinite_half(n, x, left, t);
}

static void find_nonfinite_float(int64_t n, const float *x, uint64_t left, struct tally *t)
{
	for (int64_t i = n - 1; i >= 0; i--) {
		const int bad = (hg__float_bits(x[i]) & 0x7FFFFFFFu) >= HG__FLOAT_INFINITE;
		t->sum.nonfinite += (uint64_t)bad;
		t->sum.rank = bad && left - (uint64_t)i > t->sum.rank ? left - (uint64_t)i : t->sum.rank;
	}
}

static void count_float(int64_t n, const void *data, uint64_t left, struct tally *t)
{
	const float *x = data;
	uint32_t most = 0, zeros = 0, bad = 0;
	uint8_t bin[PIECE];
#pragma omp simd reduction(max : most) reduction(+ : zeros, bad)
	for (int64_t i = 0; i < n; i++) {
		uint32_t m;
		memcpy(&m, x + i, sizeof m);
		m &= 0x7FFFFFFFu;
		const uint32_t finite = m < HG__FLOAT_INFINITE ? m : 0;
		most = finite > most ? finite : most;
		zeros += m == 0;
		bad += m >= HG__FLOAT_INFINITE;
		bin[i] = (uint8_t)hg__bin_of_float(m);
	}
	int64_t i = 0;
	for (; i + TABLES <= n; i += TABLES)
		for (int k = 0; k < TABLES; k++)
			t->table[k][bin[i + k]]++;
	for (; i < n; i++)
		t->table[0][bin[i]]++;
	t->table[0][0] -= zeros;
	t->sum.zeros += zeros;
	t->sum.amax = most > t->sum.amax ? most : t->sum.amax;
	if (bad)
		find_nonfinite_float(n, x, left, t);
}

/* ---- a tensor ---- */

typedef void (*count_fn)(int64_t n, const void *data, uint64_t left, struct tally *t);

/* Counts elements first .. first+n-1 of the tensor, row by row. */
static void count_run(const struct hg__mat *m, int64_t first, int64_t n, struct tally *t)
{
	const count_fn count = m->dtype == HG_F16 ? count_half : count_float;
	const int64_t all = m->rows * m->cols, end = first + n;
	while (first < end) {
		/* A tensor without padding is treated as one long row. */
		const int64_t row = m->ld == m->cols ? 0 : first / m->cols, col = first - row * m->cols;
		const int64_t rest = m->ld == m->cols ? end - first : hg__min(m->cols - col, end - first),
		              piece = hg__min(rest, PIECE);
		count(piece, hg__at(m, row, col), (uint64_t)(all - first), t);
		first += piece;
	}
	flush_tables(t);
}

/* The number of elements that a thread takes at a time, enough to make the merging of two tallies
 * cheap. An element takes 0.8 ns (measured), as long as about eight element operations of
 * HG__SERIAL_WORK (10 in a nanosecond). */
#define RUN ((int64_t)1 << 16)
#define ELEMENT_WORK 8

static void count_tensor(hg_context *ctx, const struct hg__mat *m, struct hg__observed *sum)
{
	const int64_t all = m->rows * m->cols, runs = hg__ceil_div(all, RUN);
#pragma omp parallel num_threads(hg__team(ctx, runs > 1 ? ELEMENT_WORK * all : 0))
	{
		struct tally mine;
		memset(&mine, 0, sizeof mine);
#pragma omp for schedule(static) nowait
		for (int64_t r = 0; r < runs; r++)
			count_run(m, r * RUN, hg__min(RUN, all - r * RUN), &mine);
#pragma omp critical(hg_observe)
		merge_observed(sum, &mine.sum);
	}
}

HG__NO_WORKSPACE(observe, observe_args)

hg_status HG__CPU(observe)(hg_context *ctx, const struct hg__observe_args *a)
{
	if (!hg__is_due(&a->due))
		return HG_OK;
	const int64_t index = a->ring->taken % HG__OBSERVED_STEPS;
	for (int64_t i = 0; i < a->count; i++) {
		HG__TRY(HG__FIT(ctx, 1, "observe", &a->table[i].mat));
		count_tensor(ctx, &a->table[i].mat, &a->counts[i]);
		a->kept[index * a->stride + i] = a->counts[i];
		const uint32_t reached = hg__observed_reach(a->counts[i].amax, a->counts[i].nonfinite);
		a->most[i] = reached > a->most[i] ? reached : a->most[i];
		memset(&a->counts[i], 0, sizeof a->counts[i]);
	}
	if (a->closes) {
		a->ring->head[index] = hg__observed_head_of(a->due.step);
		a->ring->taken++;
	}
	return HG_OK;
}
