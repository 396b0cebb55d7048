/* Eigenvectors of a small symmetric matrix by Jacobi's rotations: each makes one element off the
 * diagonal zero, row after row, until all are as small as rounding.
 *
 *     A <- J' A J,  V <- V J,  J a rotation of columns p and q by the angle that zeroes A[p, q] */
#include "graph/positional.h"

#include <float.h>
#include <math.h>

/* Convergence is quadratic once the elements off the diagonal are small; 6 to 10 sweeps are usual
 * (Golub, Van Loan: Matrix Computations, section 8.5). */
#define SWEEPS 60

/* The columns (or, with stride, rows) p and q of m turned by the angle of (c, s). */
static void turn(double *m, int64_t n, int64_t p, int64_t q, int64_t stride, int64_t next, double c,
                 double s)
{
	for (int64_t k = 0; k < n; k++) {
		double *x = &m[k * next + p * stride], *y = &m[k * next + q * stride];
		const double a = *x, b = *y;
		*x = c * a - s * b;
		*y = s * a + c * b;
	}
}

static void rotate(int64_t n, double *a, double *v, int64_t p, int64_t q)
{
	const double theta = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
	const double t = copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1.0));
	const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
	turn(a, n, p, q, 1, n, c, s);
	turn(a, n, p, q, n, 1, c, s);
	turn(v, n, p, q, 1, n, c, s);
	a[p * n + q] = a[q * n + p] = 0.0;
}

static double largest(int64_t n, const double *a)
{
	double most = 0.0;
	for (int64_t k = 0; k < n * n; k++)
		most = fmax(most, fabs(a[k]));
	return most;
}

/* Sorts the values, largest first, and the columns of v with them. */
static void sort(int64_t n, double *value, double *v, int64_t *place)
{
	for (int64_t c = 0; c < n; c++) {
		int64_t best = c;
		for (int64_t k = c + 1; k < n; k++)
			best = value[k] > value[best] ? k : best;
		place[c] = best;
		const double kept = value[c];
		value[c] = value[best];
		value[best] = kept;
	}
	for (int64_t i = 0; i < n; i++)
		for (int64_t c = 0; c < n; c++) {
			const double kept = v[i * n + c];
			v[i * n + c] = v[i * n + place[c]];
			v[i * n + place[c]] = kept;
		}
}

void hg__symmetric_eigen(int64_t n, double *a, double *value, double *v, int64_t *place)
{
	const double none = DBL_EPSILON * largest(n, a);
	int turned = 1;
	for (int64_t k = 0; k < n * n; k++)
		v[k] = k % (n + 1) == 0;
	for (int sweep = 0; turned && sweep < SWEEPS; sweep++) {
		turned = 0;
		for (int64_t p = 0; p < n; p++)
			for (int64_t q = p + 1; q < n; q++)
				if (fabs(a[p * n + q]) > none) {
					rotate(n, a, v, p, q);
					turned = 1;
				}
	}
	for (int64_t k = 0; k < n; k++)
		value[k] = a[k * n + k];
	sort(n, value, v, place);
}
