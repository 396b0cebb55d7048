/* Positional encodings, compared with dense computations from their definitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "support.h"

#define U64 0x1p-53
#define U32 0x1p-24

/* ---- datasets and their dense pattern ---- */

/* A dataset has no duplicate edges. */
static void merge(struct host_csr *csr)
{
	int64_t m = 0;
	for (int64_t i = 0, e = 0; i < csr->rows; i++) {
		const int64_t first = m;
		for (; e < csr->rowptr[i + 1]; e++)
			if (m == first || csr->col[e] != csr->col[m - 1])
				csr->col[m++] = csr->col[e];
		csr->rowptr[i + 1] = m;
	}
	csr->m = m;
}

static hg_dataset *dataset_of(struct coo list)
{
	struct host_csr csr = host_csr_sort(list);
	merge(&csr);
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->nodes = csr.rows;
	d->edges = csr.m;
	d->rowptr = csr.rowptr;
	d->col = csr.col;
	csr.rowptr = NULL;
	csr.col = NULL;
	host_csr_free(&csr);
	return d;
}

/* U [n, n] */
static double *pattern_of(const hg_dataset *d)
{
	const int64_t n = d->nodes;
	double *u = calloc((size_t)(n * n), sizeof *u);
	CHECK(u != NULL);
	for (int64_t i = 0; i < n; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
			if (d->col[e] != i)
				u[i * n + d->col[e]] = u[d->col[e] * n + i] = 1.0;
	return u;
}

static double degree_in(const double *u, int64_t n, int64_t i)
{
	double sum = 0.0;
	for (int64_t j = 0; j < n; j++)
		sum += u[i * n + j];
	return sum;
}

/* L [n, n]; the row and the column of an isolated node are 0. */
static double *laplacian_of(const hg_dataset *d)
{
	const int64_t n = d->nodes;
	double *u = pattern_of(d), *l = calloc((size_t)(n * n), sizeof *l);
	CHECK(l != NULL);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			if (i == j)
				l[i * n + j] = degree_in(u, n, i) > 0.0;
			else if (u[i * n + j] > 0.0)
				l[i * n + j] = -1.0 / sqrt(degree_in(u, n, i) * degree_in(u, n, j));
	free(u);
	return l;
}

static float *encode(hg_dataset *d, hg_positional kind, int64_t k)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_MSG(hg_dataset_positional(d, kind, k, NULL, message) == HG_OK, "%s", message);
	CHECK_OK(hg_dataset_check(d, "encoded", message));
	return d->feat;
}

/* ---- random walks ---- */

/* All terms are positive. A probability is a sum of products of at most k + 2 factors, of which
 * each step adds up n: relative error (n + 3) (k + 2) u64, and u32 of the rounding to f32. */
static void check_walks(struct coo list, int64_t k)
{
	hg_dataset *d = dataset_of(list);
	const int64_t n = d->nodes;
	const float *out = encode(d, HG_POSITIONAL_RANDOM_WALK, k);
	double *u = pattern_of(d), *power = calloc((size_t)(n * n), sizeof *power),
	       *next = calloc((size_t)(n * n), sizeof *next);
	CHECK(power && next);
	const double bound = U32 + 2.0 * (double)((n + 3) * (k + 2)) * U64;
	for (int64_t i = 0; i < n; i++)
		power[i * n + i] = 1.0;
	for (int64_t t = 1; t <= k; t++) {
		memset(next, 0, (size_t)(n * n) * sizeof *next);
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j < n; j++)
				for (int64_t v = 0; power[i * n + j] > 0.0 && v < n; v++)
					if (u[j * n + v] > 0.0)
						next[i * n + v] += power[i * n + j] / degree_in(u, n, j);
		memcpy(power, next, (size_t)(n * n) * sizeof *power);
		for (int64_t i = 0; i < n; i++)
			CHECK_WITHIN(out[i * k + t - 1], power[i * n + i], bound * power[i * n + i]);
	}
	free(u);
	free(power);
	free(next);
	hg_dataset_free(d);
}

static void walks_are_powers_of_the_matrix(void)
{
	test_reseed(5);
	check_walks(coo_hub(40, 90, 9, 3), 7);
	check_walks(coo_ring(12), 16);
	check_walks(coo_star_loops(9), 5);
	check_walks(coo_two_communities(30, 60, 10), 4);
	check_walks(coo_empty(3, 3), 2);
	check_walks(coo_cycle(5), 1);
}

/* On a cycle of n > t nodes, t even, the probability is that of as many steps left as right. */
static void walks_on_a_cycle_are_binomial(void)
{
	hg_dataset *d = dataset_of(coo_cycle(11));
	const float *out = encode(d, HG_POSITIONAL_RANDOM_WALK, 10);
	for (int64_t i = 0; i < 11; i++) {
		CHECK(out[i * 10] == 0.0f && out[i * 10 + 2] == 0.0f);
		CHECK(out[i * 10 + 1] == 0.5f && out[i * 10 + 3] == 0.375f && out[i * 10 + 5] == 0.3125f);
		CHECK(out[i * 10 + 7] == 70.0f / 256.0f && out[i * 10 + 9] == 252.0f / 1024.0f);
	}
	hg_dataset_free(d);
}

/* ---- eigenvectors ---- */

/* How many eigenvalues of L are below x: as many as negative pivots of L - x I (Sylvester). */
static int64_t count_below(const double *l, int64_t n, double x)
{
	double *a = malloc((size_t)(n * n) * sizeof *a);
	int64_t count = 0;
	CHECK(a != NULL);
	memcpy(a, l, (size_t)(n * n) * sizeof *a);
	for (int64_t i = 0; i < n; i++)
		a[i * n + i] -= x;
	for (int64_t p = 0; p < n; p++) {
		CHECK(a[p * n + p] != 0.0);
		count += a[p * n + p] < 0.0;
		for (int64_t i = p + 1; i < n; i++) {
			const double factor = a[i * n + p] / a[p * n + p];
			for (int64_t j = p + 1; factor != 0.0 && j < n; j++)
				a[i * n + j] -= factor * a[p * n + j];
		}
	}
	free(a);
	return count;
}

static double dot_of(const float *out, int64_t n, int64_t k, int64_t a, int64_t b)
{
	double sum = 0.0;
	for (int64_t i = 0; i < n; i++)
		sum += (double)out[i * k + a] * (double)out[i * k + b];
	return sum;
}

/* |L x - value x| for column c, and value = x' L x. */
static double residual_of(const double *l, const float *out, int64_t n, int64_t k, int64_t c,
                          double *value)
{
	double *y = calloc((size_t)n, sizeof *y), sum = 0.0;
	CHECK(y != NULL);
	*value = 0.0;
	for (int64_t i = 0; i < n; i++) {
		for (int64_t j = 0; j < n; j++)
			y[i] += l[i * n + j] * (double)out[j * k + c];
		*value += y[i] * (double)out[i * k + c];
	}
	for (int64_t i = 0; i < n; i++) {
		const double r = y[i] - *value * (double)out[i * k + c];
		sum += r * r;
	}
	free(y);
	return sqrt(sum);
}

/* In a connected graph. The vector in f64 has a residual of 2^-24 at most; rounding it to f32 moves
 * it by u32 at most, and |L - value| <= 2 makes 2 u32 of it. Then the eigenvalue is within twice
 * the residual of a true one. */
static void check_vectors(struct coo list, int64_t k, const char *name)
{
	hg_dataset *d = dataset_of(list);
	const int64_t n = d->nodes;
	const float *out = encode(d, HG_POSITIONAL_LAPLACIAN, k);
	double *l = laplacian_of(d), worst = 0.0;
	for (int64_t c = 0; c < k; c++) {
		double value = 0.0;
		const double bound = 0x1p-24 + 4.0 * U32, residual = residual_of(l, out, n, k, c, &value);
		worst = fmax(worst, residual);
		CHECK_MSG(residual <= bound, "%s, vector %d: residual %g", name, (int)c, residual);
		for (int64_t b = 0; b < c; b++)
			CHECK_WITHIN(dot_of(out, n, k, c, b), 0.0, 4.0 * U32);
		CHECK_WITHIN(dot_of(out, n, k, c, c), 1.0, 4.0 * U32);
		/* it is number c + 1 of all eigenvalues, counted from 0 */
		CHECK_MSG(count_below(l, n, value - 3.0 * bound) <= c + 1 &&
		              count_below(l, n, value + 3.0 * bound) > c + 1,
		          "%s, vector %d: %g is not eigenvalue %d", name, (int)c, value, (int)c + 1);
	}
	test_note("%s: largest residual 2^%.1f", name, log2(worst));
	free(l);
	hg_dataset_free(d);
}

static struct coo connected(int64_t n, int64_t m)
{
	struct coo list = coo_path(n);
	for (int64_t e = n; e < m; e++)
		coo_add(&list, test_below(n), test_below(n));
	return list;
}

static void vectors_belong_to_the_smallest_eigenvalues(void)
{
	test_reseed(8);
	check_vectors(connected(30, 70), 6, "dense");
	check_vectors(connected(128, 300), 9, "the largest dense one");
	check_vectors(connected(129, 300), 9, "the smallest iterated one");
	check_vectors(connected(400, 1500), 5, "iterated");
	check_vectors(coo_path(200), 4, "a path");
	check_vectors(coo_cycle(150), 6, "a cycle, pairs of equal eigenvalues");
	check_vectors(coo_star(160), 3, "a star, 159 equal eigenvalues");
}

/* The eigenvalues of a path of n nodes are 1 - cos(pi c / (n - 1)). */
static void eigenvalues_of_a_path_are_known(void)
{
	enum { N = 20, K = 19 };
	hg_dataset *d = dataset_of(coo_path(N));
	const float *out = encode(d, HG_POSITIONAL_LAPLACIAN, K);
	double *l = laplacian_of(d), value = 0.0;
	for (int64_t c = 0; c < K; c++) {
		(void)residual_of(l, out, N, K, c, &value);
		CHECK_WITHIN(value, 1.0 - cos(acos(-1.0) * (double)(c + 1) / (N - 1)), 8.0 * U32);
	}
	free(l);
	hg_dataset_free(d);
}

/* Every component has vectors of its own; what it is too small for is 0. */
static void components_are_separate(void)
{
	enum { K = 3 };
	struct coo list = coo_empty(8, 8);
	static const int ends[][2] = {{0, 4}, {4, 2}, {2, 6}, {1, 3}, {3, 3}};
	for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
		coo_add(&list, ends[e][0], ends[e][1]);
	hg_dataset *d = dataset_of(list), *path = dataset_of(coo_path(4));
	const float *out = encode(d, HG_POSITIONAL_LAPLACIAN, K),
	            *alone = encode(path, HG_POSITIONAL_LAPLACIAN, K);
	static const int place[] = {0, 4, 2, 6};
	for (int c = 0; c < K; c++) {
		/* two ends of the path have the same size: the sign is that of the first one here */
		const float sign = out[c] * alone[c] < 0.0f ? -1.0f : 1.0f;
		for (int i = 0; i < 4; i++)
			CHECK_WITHIN(out[place[i] * K + c], sign * alone[i * K + c], 4.0 * U32);
		CHECK(out[5 * K + c] == 0.0f && out[7 * K + c] == 0.0f);
		CHECK(c == 0 || (out[1 * K + c] == 0.0f && out[3 * K + c] == 0.0f));
	}
	CHECK_WITHIN(out[1 * K], sqrt(0.5), U32);
	CHECK_WITHIN(out[3 * K], -sqrt(0.5), U32);
	hg_dataset_free(d);
	hg_dataset_free(path);
}

/* The sign does not depend on the start of the iteration: negated vectors would fail this. */
static void signs_follow_the_rule(void)
{
	for (int64_t n = 60; n <= 300; n += 240) {
		test_reseed(11);
		hg_dataset *d = dataset_of(connected(n, 3 * n));
		const float *out = encode(d, HG_POSITIONAL_LAPLACIAN, 5);
		for (int64_t c = 0; c < 5; c++) {
			float most = 0.0f;
			int64_t i = 0;
			for (int64_t j = 0; j < n; j++)
				most = fmaxf(most, fabsf(out[j * 5 + c]));
			while (fabsf(out[i * 5 + c]) < most * (1.0f - 0x1p-10f))
				i++;
			CHECK(out[i * 5 + c] > 0.0f);
		}
		hg_dataset_free(d);
	}
}

/* Weights, directions, self loops and their order do not count. */
static void only_the_pattern_counts(void)
{
	for (int kind = 0; kind < 2; kind++) {
		hg_dataset *a = small_dataset(), *b = small_dataset();
		CHECK_OK(hg_dataset_symmetrize(b, NULL));
		CHECK_OK(hg_dataset_self_loops(b, NULL));
		CHECK_OK(hg_dataset_positional(a, (hg_positional)kind, 4, NULL, NULL));
		CHECK_OK(hg_dataset_positional(b, (hg_positional)kind, 4, NULL, NULL));
		CHECK(memcmp(a->feat, b->feat, 6 * 7 * sizeof(float)) == 0);
		hg_dataset_free(a);
		hg_dataset_free(b);
	}
}

/* ---- the features ---- */

static void columns_are_appended(void)
{
	hg_dataset *plain = dataset_of(coo_cycle(6)), *dense = small_dataset(), *half = small_dataset(),
	           *sparse = small_sparse(), *before = small_dataset();
	for (int i = 0; i < 6; i++)
		for (int c = 0; c < 3; c++)
			if (fabsf(((float *)half->feat)[i * 3 + c]) > 65504.0f)
				((float *)half->feat)[i * 3 + c] = 1.0f;
	CHECK_OK(hg_dataset_features_to(half, HG_F16, 0, NULL));
	const float *walk = encode(dense, HG_POSITIONAL_RANDOM_WALK, 2);
	CHECK(dense->features == 5 && dense->feat_amax == 65504);
	for (int c = 0; c < 5; c++)
		CHECK(dense->feat_mean[c] == (c < 3 ? before->feat_mean[c] : 0) &&
		      dense->feat_deviation[c] == (c < 3 ? before->feat_deviation[c] : 1));
	for (int i = 0; i < 6; i++)
		CHECK(memcmp(walk + i * 5, (float *)before->feat + i * 3, 3 * sizeof(float)) == 0);
	(void)encode(half, HG_POSITIONAL_RANDOM_WALK, 2);
	CHECK(half->features == 5 && half->feat_dtype == HG_F16);
	for (int i = 0; i < 6; i++)
		CHECK_EQ_I(((hg_half *)half->feat)[i * 5 + 4], hg_half_from_float(walk[i * 5 + 4]));
	(void)encode(sparse, HG_POSITIONAL_RANDOM_WALK, 2);
	CHECK(!sparse->feat && sparse->features == 7);
	for (int i = 0; i < 6; i++) {
		const int64_t last = sparse->feat_rowptr[i + 1] - 1;
		if (walk[i * 5 + 4] > 0.0f)
			CHECK(sparse->feat_col[last] == 6 && sparse->feat_value[last] == walk[i * 5 + 4]);
	}
	(void)encode(plain, HG_POSITIONAL_LAPLACIAN, 2);
	CHECK(plain->features == 2 && plain->feat_dtype == HG_F32 && plain->feat_amax > 0.3);
	(void)encode(plain, HG_POSITIONAL_RANDOM_WALK, 1);
	CHECK(plain->features == 3);
	hg_dataset *const all[] = {plain, dense, half, sparse, before};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		hg_dataset_free(all[k]);
}

static int stop(void *user, const char *what, int64_t done, int64_t total)
{
	(void)user, (void)what, (void)done, (void)total;
	return 1;
}

static void mistakes_change_nothing(void)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_progress progress = {stop, NULL};
	hg_dataset *d = small_dataset(), *before = small_dataset();
	CHECK_STATUS(hg_dataset_positional(NULL, HG_POSITIONAL_LAPLACIAN, 1, NULL, message),
	             HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_positional(d, (hg_positional)2, 1, NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_positional(d, HG_POSITIONAL_LAPLACIAN, 0, NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_positional(d, HG_POSITIONAL_LAPLACIAN, 257, NULL, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "257 columns, expected 1 to 256");
	for (int kind = 0; kind < 2; kind++)
		CHECK_STATUS(hg_dataset_positional(d, (hg_positional)kind, 3, &progress, message),
		             HG_ERR_STATE);
	check_same(d, before);
	hg_dataset_free(d);
	hg_dataset_free(before);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(walks_are_powers_of_the_matrix),
	    TEST(walks_on_a_cycle_are_binomial),
	    TEST(vectors_belong_to_the_smallest_eigenvalues),
	    TEST(eigenvalues_of_a_path_are_known),
	    TEST(components_are_separate),
	    TEST(signs_follow_the_rule),
	    TEST(only_the_pattern_counts),
	    TEST(columns_are_appended),
	    TEST(mistakes_change_nothing),
	};
	return RUN_TESTS(argc, argv, cases);
}
