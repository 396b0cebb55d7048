/* Rows of the gradients of a layer (linear_norm.cu): the norm behind the layer, and rows in shared
 * memory. */
#ifndef HG_KERNELS_CUDA_LINEAR_NORM_ROWS_CUH
#define HG_KERNELS_CUDA_LINEAR_NORM_ROWS_CUH

#include "kernels/cuda/ldmatrix.cuh"
#include "kernels/cuda/norm_rows.cuh"

namespace
{

constexpr int WARPS = BLOCK / 32, STEP = 16, ROWS = WARPS * STEP; /* rows of a warp, of a block */

/* The norm behind the layer: the gradients of its result become those of what it reads. */
struct norm_behind {
	struct half_rows x; /* what it reads; x.at NULL: there is none */
	struct column_facts of;
	const float *dgamma, *dbeta;
	const int64_t *live;
	float over_unit;
	bool relu;
};

/* The vectors of the norm behind in shared memory. */
struct behind_vectors {
	struct norm_vectors of;
	float scale[NORM_SIDE];                    /* gamma rstd, over the unit of what it reads */
	float dgamma[NORM_SIDE], dbeta[NORM_SIDE]; /* over the number of rows */

	__device__ void fill(const struct norm_behind &b, int cols, int64_t rows)
	{
		const float over_rows = over(rows);
		of.fill(b.of, cols);
		for (int i = static_cast<int>(threadIdx.x); i < NORM_SIDE; i += BLOCK) {
			scale[i] = i < cols ? b.of.gamma[i] * (b.over_unit * b.of.rstd[i]) : 0.0f;
			dgamma[i] = i < cols ? b.dgamma[i] * over_rows : 0.0f;
			dbeta[i] = i < cols ? b.dbeta[i] * over_rows : 0.0f;
		}
	}
	/* The gradients of what the norm reads, x, from those of its result, in two rows of a pack. The
	 * operations are those of struct column_pack. */
	__device__ void gradient(bool relu, int col, const uint4 (&x)[2], uint4 (&dy)[2]) const
	{
		const struct column_pack<8> p = of.at(col);
		float dg[8], db[8], factor[8];
		load<8>(dgamma + col, dg);
		load<8>(dbeta + col, db);
		load<8>(scale + col, factor);
#pragma unroll
		for (int half = 0; half < 2; half++) {
			float v[8], d[8];
			widen_pack(x[half], v);
			widen_pack(dy[half], d);
			p.relu_gradient(relu, v, d);
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[i] = factor[i] * (d[i] - db[i] - (v[i] - p.mean[i]) * p.rstd[i] * dg[i]);
			dy[half] = narrow_pack(v);
		}
	}
};

/* ---- rows in shared memory ---- */

/* ROWS rows of CHUNKS chunks of 32 halves. The packs of a row change places, so that neither lanes
 * that access the packs of tall_rows.cuh nor those that read matrices of eight rows meet in a bank:
 * pack i of a row is at i ^ turn. Rows that are eight apart have the same turn. */
template <int CHUNKS> __device__ int turn_of(int row)
{
	return CHUNKS == 1 ? row / 2 % 4 : row % 2 * 4 + row / 2 % 4;
}
template <int CHUNKS> __device__ int place(int row, int i)
{
	return row * 4 * CHUNKS + (i ^ turn_of<CHUNKS>(row));
}
/* Where a lane reads [16 rows, 16 columns], from row 0 and pack i on, as four matrices of eight
 * rows: of rows 0 .. 7 and packs 0 and 1 the first two, or, with DOWN, of pack 0 and rows 0 .. 7
 * and 8 .. 15. */
template <int CHUNKS, bool DOWN> __device__ int matrices_at(int i, int lane)
{
	const int eight = lane / 8, r = (DOWN ? eight % 2 : eight / 2) * 8 + lane % 8,
	          p = DOWN ? eight / 2 : eight % 2;
	return place<CHUNKS>(r, i + p);
}

/* A lane's rows of a matrix in global memory, g and g + 8 of each step. */
struct lane_rows {
	const __half *at;
	int64_t eight, step; /* elements between rows g and g + 8, and between steps */
	bool in;             /* whether the lane's pack of the last chunk has columns */

	__device__ lane_rows(const struct half_rows &m, int64_t row, int t, int chunks)
	    : at(m.at + row * m.ld + 8 * t), eight(8 * m.ld),
	      step(static_cast<int64_t>(gridDim.x) * ROWS * m.ld),
	      in(CHUNK * (chunks - 1) + 8 * t < m.cols)
	{
	}
	/* Begins to copy the rows of a step that exist to shared memory; others become zeros. to: the
	 * place of pack t of row g, where pack 4 + t is 4 further, or nearer, by the turn. */
	template <int CHUNKS, int PITCH> __device__ void copy(bool low, bool high, uint4 *rows, int to)
	{
#pragma unroll
		for (int c = 0; c < CHUNKS; c++)
#pragma unroll
			for (int half = 0; half < 2; half++) {
				const bool exists = (half ? high : low) && (c + 1 < CHUNKS || in);
				asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
				                 shared_address(rows + (to ^ 4 * c) + 8 * 4 * PITCH * half)),
				             "l"(__cvta_generic_to_global(at + half * eight + CHUNK * c)),
				             "r"(exists ? 16 : 0)
				             : "memory");
			}
		at += step;
	}
};
__device__ inline void end_copies()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Waits for the lane's copies, but not for those before the last PENDING calls of end_copies. */
template <int PENDING> __device__ inline void wait_for_copies()
{
	asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

} // namespace

#endif
