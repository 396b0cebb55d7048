/* The innermost part of GEMM: a strip of C with at most HG__STRIP columns.
 *
 *     C[i, j] (+)= sum over p < depth of A[i * row + p * step] * B[p * pitch + j]
 *
 * where i < rows, j < cols <= pitch, and B is padded with zeros up to its pitch.
 *
 * With FMA instructions the loops below compute it. A tile has as many rows and vectors as
 * accumulators fit in the registers. Without FMA, OpenBLAS computes it. OpenBLAS alone is not
 * enough, because a release that is older than the processor falls back to its oldest kernels:
 * 0.3.21 on a 2023 server ran SSE3 code at 35 GFLOP/s a core, a quarter of what this loop
 * reaches. */
#ifndef HG_KERNELS_CPU_TILE_H
#define HG_KERNELS_CPU_TILE_H

#include "kernels/cpu/rows.h"

/* The most columns that a strip has in any copy. */
#define HG__STRIP_MOST 512

struct hg__strip {
	const float *a, *b;
	float *c;
	int64_t rows, depth, row, step, pitch, ldc;
	int cols, add; /* add 0: C is overwritten */
};

#if defined(__AVX512F__)

typedef __m512 hg__fma_vector;
#define HG__FMA_LANES 16
/* 6 rows of 4 vectors: 24 of 32 registers accumulate, 4 hold B and one holds A. */
#define HG__STRIP 64
#define hg__fma_load _mm512_loadu_ps
#define hg__fma_store _mm512_storeu_ps
#define hg__fma_set _mm512_set1_ps
#define hg__fma_step _mm512_fmadd_ps

#elif defined(__FMA__) && defined(__AVX2__)

typedef __m256 hg__fma_vector;
#define HG__FMA_LANES 8
/* 6 rows of 2 vectors: 12 of 16 registers accumulate. */
#define HG__STRIP 16
#define hg__fma_load _mm256_loadu_ps
#define hg__fma_store _mm256_storeu_ps
#define hg__fma_set _mm256_set1_ps
#define hg__fma_step _mm256_fmadd_ps

#endif

#if defined(HG__STRIP)

/* Computes rows i .. i+height-1. Rows past the end repeat the last row and are not stored. height
 * and vectors are constants at every call, so that the loops unroll and acc stays in registers. */
HG__INLINE void hg__tile(const int height, const int vectors, const struct hg__strip *s, int64_t i)
{
	const float *a[12];
	hg__fma_vector acc[12][4];
	for (int r = 0; r < height; r++) {
		a[r] = s->a + hg__min(i + r, s->rows - 1) * s->row;
		for (int v = 0; v < vectors; v++)
			acc[r][v] = hg__fma_set(0.0f);
	}
	const float *b = s->b;
	for (int64_t p = 0; p < s->depth; p++, b += s->pitch) {
		hg__fma_vector bv[4];
		for (int v = 0; v < vectors; v++)
			bv[v] = hg__fma_load(b + v * HG__FMA_LANES);
		for (int r = 0; r < height; r++) {
			const hg__fma_vector av = hg__fma_set(a[r][p * s->step]);
			for (int v = 0; v < vectors; v++)
				acc[r][v] = hg__fma_step(av, bv[v], acc[r][v]);
		}
	}
	for (int r = 0; r < height && i + r < s->rows; r++) {
		float row[4 * HG__FMA_LANES] = {0}, *c = s->c + (i + r) * s->ldc;
		for (int v = 0; v < vectors; v++)
			hg__fma_store(row + v * HG__FMA_LANES, acc[r][v]);
		for (int j = 0; j < s->cols; j++)
			c[j] = s->add ? c[j] + row[j] : row[j];
	}
}

static void hg__strip_run(const struct hg__strip *s)
{
	const int vectors = (s->cols + HG__FMA_LANES - 1) / HG__FMA_LANES;
	for (int64_t i = 0; i < s->rows;)
#if HG__STRIP == 64
		if (vectors == 4) {
			hg__tile(6, 4, s, i);
			i += 6;
		} else if (vectors == 3) {
			hg__tile(8, 3, s, i);
			i += 8;
		} else
#endif
		    if (vectors == 2) {
			hg__tile(HG__STRIP == 64 ? 12 : 6, 2, s, i);
			i += HG__STRIP == 64 ? 12 : 6;
		} else {
			hg__tile(HG__STRIP == 64 ? 12 : 8, 1, s, i);
			i += HG__STRIP == 64 ? 12 : 8;
		}
}

#else

#include <cblas.h>

#define HG__STRIP HG__STRIP_MOST /* the BLAS blocks for caches itself */

static void hg__strip_run(const struct hg__strip *s)
{
	const int transposed = s->step != 1;
	cblas_sgemm(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, CblasNoTrans, (int)s->rows,
	            s->cols, (int)s->depth, 1.0f, s->a, (int)(transposed ? s->step : s->row), s->b,
	            (int)s->pitch, s->add ? 1.0f : 0.0f, s->c, (int)s->ldc);
}

#endif
#endif
