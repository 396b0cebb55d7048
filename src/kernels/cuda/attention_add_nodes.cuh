/* The pass over nodes of attention's backward pass with additive scores (attention_add_back.cu).
 *
 *     D[i, k] = <G_i, Y_i>,  dq[i, k] = (1 - slope) (<G_i, plus_i> - D[i, k] log_sum[i, h + k])
 *
 * and a record {q, log_sum, D} of each row and head.
 *
 *     log_sum[i, h + k]  the sum of p over edges with a positive score before f
 *     plus_i             the sum of mask p V_j over the same edges
 *
 * Where attention has an epilogue, one kernel can compute G, db and this (struct ended_nodes), or
 * another kernel computes G and db before. */
#ifndef HG_KERNELS_CUDA_ATTENTION_ADD_NODES_CUH
#define HG_KERNELS_CUDA_ATTENTION_ADD_NODES_CUH

#include "kernels/cuda/act_drop.cuh"
#include "kernels/cuda/attention_add_records.cuh"
#include "kernels/cuda/columns.cuh"

namespace
{

struct backward {
	struct add_edges e; /* of the transpose; X is dY */
	int64_t rows;
	const void *q, *k, *v, *y, *plus;
	int64_t ldq, ldk, ldv, ldy, ldplus, ldg;
	const float *log_sum;
	int64_t ld_log_sum;
	const void *g; /* dY; e.x is this or `copy` */
	/* [rows, heads], with this pitch in bytes; NULL: neither dk nor dv is needed */
	void *records;
	uint32_t record_pitch;
	void *copy; /* of dY, with pitch e.pitch; NULL: e.x is dY */
	void *dq, *dk, *dv;
	int64_t lddq, lddk, lddv;
	/* f32 [rows, heads] if dk is dq: the gradient of q until that of k is added to it */
	float *dq_first;
	/* for a row and head in the pass over nodes: a power of two, and its logarithm */
	int lanes, lanes_shift;
	int heads_shift; /* the logarithm of heads; -1: it is no power of two */
};

template <typename T> __device__ inline T *row_at(void *base, int64_t row, uint32_t pitch)
{
	return reinterpret_cast<T *>(static_cast<char *>(base) + row * pitch);
}

template <typename T> __device__ inline void put_pack(T *to, const raw<T, ADD_PACK> &pack)
{
#pragma unroll
	for (size_t i = 0; i < sizeof pack.q / sizeof pack.q[0]; i++)
		reinterpret_cast<uint4 *>(to)[i] = pack.q[i];
}

/* Sets the elements of a pack from number n on to 0. */
template <typename T> __device__ inline void cut(raw<T, ADD_PACK> &pack, int n)
{
	constexpr int EACH = sizeof(unsigned) / sizeof(T);
	unsigned *word = &pack.q[0].x;
#pragma unroll
	for (int i = 0; i < ADD_PACK / EACH; i++) {
		const int left = n - i * EACH;
		word[i] = left >= EACH ? word[i] : left <= 0 ? 0u : word[i] & 0xFFFFu;
	}
}

/* The sums over columns c, c + 8 lanes, ... of one head that a lane adds. */
template <typename T>
__device__ void head_products(const struct backward &p, int64_t row, int head, int lane, float &d,
                              float &d_plus)
{
	const int first = head * p.e.head_cols;
	for (int c = lane * ADD_PACK; c < p.e.head_cols; c += p.lanes * ADD_PACK) {
		const int64_t at = first + c;
		raw<T, ADD_PACK> packs[3] = {};
		packs[0] = fetch<ADD_PACK>(static_cast<const T *>(p.g) + row * p.ldg + at);
		packs[1] = fetch<ADD_PACK>(static_cast<const T *>(p.y) + row * p.ldy + at);
		if (p.dq)
			packs[2] = fetch<ADD_PACK>(static_cast<const T *>(p.plus) + row * p.ldplus + at);
		if (p.copy)
			put_pack(row_at<T>(p.copy, row, p.e.pitch) + at, packs[0]);
		if (c + ADD_PACK > p.e.head_cols) /* the rest of the packs is padding */
#pragma unroll
			for (int n = 0; n < 3; n++)
				cut(packs[n], p.e.head_cols - c);
		float g[ADD_PACK], y[ADD_PACK], plus[ADD_PACK];
		unpack(packs[0], g);
		unpack(packs[1], y);
		unpack(packs[2], plus);
#pragma unroll
		for (int i = 0; i < ADD_PACK; i++) {
			d = __fmaf_rn(g[i], y[i], d);
			d_plus = __fmaf_rn(g[i], plus[i], d_plus);
		}
	}
}

/* What a head of a row needs besides its columns. */
template <typename T> struct node_numbers {
	float log_sum, p_plus;
	T q;

	__device__ void get(const struct backward &p, int64_t row, int head)
	{
		const float *from = p.log_sum + row * p.ld_log_sum + head;
		log_sum = from[0];
		p_plus = from[p.e.heads];
		q = static_cast<const T *>(p.q)[row * p.ldq + head];
	}
};

/* Stores dq and the record of a head. */
template <typename T>
__device__ void put_node(const struct backward &p, int64_t row, int head,
                         const struct node_numbers<T> &own, float d, float d_plus)
{
	if (p.dq) {
		const float dq = (1.0f - p.e.slope) * (d_plus - d * own.p_plus);
		if (p.dq_first)
			p.dq_first[row * p.e.heads + head] = dq;
		else
			static_cast<T *>(p.dq)[row * p.lddq + head] = narrow<T>(dq);
	}
	if (p.records) {
		record<T> r;
		r.set(own.q, {0.0f, offset_of(own.log_sum), d});
		row_at<record<T>>(p.records, row, p.record_pitch)[head] = r;
	}
}

/* A unit is a head of a row: row * heads + head. A division of 64-bit numbers would be half of all
 * instructions. */
__device__ inline int64_t row_of(const struct backward &p, int64_t unit)
{
	return p.heads_shift >= 0 ? unit >> p.heads_shift : unit / p.e.heads;
}

/* The pass waits for memory, so it needs few registers: 8 blocks on a multiprocessor leave 32. */
template <typename T>
__global__ void __launch_bounds__(BLOCK, sizeof(T) == sizeof(float) ? 5 : 8)
    backward_nodes(const __grid_constant__ struct backward p)
{
	after_previous();
	const int64_t unit = global_thread() >> p.lanes_shift, row = row_of(p, unit);
	const int head = static_cast<int>(unit - row * p.e.heads),
	          lane = static_cast<int>(threadIdx.x) & (p.lanes - 1);
	/* These are loaded before the packs, so that a row takes the latency of memory once. */
	const bool ends = row < p.rows && lane == 0;
	node_numbers<T> own = {};
	if (ends)
		own.get(p, row, head);
	float d = 0.0f, d_plus = 0.0f;
	if (row < p.rows)
		head_products<T>(p, row, head, lane, d, d_plus);
	for (int step = p.lanes / 2; step > 0; step /= 2) {
		d += __shfl_xor_sync(WHOLE_WARP, d, step);
		d_plus += __shfl_xor_sync(WHOLE_WARP, d_plus, step);
	}
	if (!ends)
		return;
	put_node(p, row, head, own, d, d_plus);
}

/* ---- with the gradient of an epilogue ---- */

/* What a thread has of a row: a pack of each matrix, and the numbers of its head. */
template <typename T, int W> struct ended_packs {
	struct held<T, W> dended, ended, y, plus;
	struct node_numbers<T> own;
};

/* G = f'(ended) dropout(dended), db = its column sums, and the pass over nodes with G as it is
 * stored, for columns_kernel (columns.cuh): one column tile has all columns of a row, and a thread
 * has one pack of it. Sums have the order that they have in two kernels, so the bits are the same.
 * A training step of GAT then has one kernel fewer in each layer, and reads G once less. E: the
 * epilogue.
 *
 * Where the epilogue is that of the mean over heads, `dended` and `ended` have the columns of one
 * head. Each head computes the same from them and takes its share as G, and the sums of the first
 * head's columns are db; its blocks of rows are those of all heads, so only db has other bits. */
template <typename T, typename E> struct ended_nodes {
	struct backward p;
	const T *ended, *dended;
	int64_t ld_ended, ld_dended;
	T *to; /* G; NULL: it is dended */
	float *db;
	bool means;
	E then;

	template <int W> using held = struct ended_packs<T, W>;

	__device__ int head_of(int64_t col) const
	{
		return p.e.heads == 1 ? 0 : static_cast<int>(col) / p.e.head_cols;
	}
	struct place {
		int head;
		bool starts; /* a head begins with this pack */
	};
	template <int W> __device__ struct place numbers(int64_t col) const
	{
		const int head = head_of(col);
		return {head, col == head * p.e.head_cols};
	}
	/* The column of the epilogue that belongs to a column of Y. */
	__device__ int64_t ended_column(int64_t col) const
	{
		return means ? col - head_of(col) * p.e.head_cols : col;
	}
	template <int W>
	__device__ void fetch(int64_t row, int64_t col, struct ended_packs<T, W> &h) const
	{
		const int64_t of = ended_column(col);
		h.dended.read(dended + row * ld_dended + of);
		if constexpr (E::READS)
			h.ended.read(ended + row * ld_ended + of);
		h.y.read(static_cast<const T *>(p.y) + row * p.ldy + col);
		if (p.dq)
			h.plus.read(static_cast<const T *>(p.plus) + row * p.ldplus + col);
		h.own.get(p, row, head_of(col));
	}
	template <int W>
	__device__ void use(int64_t row, int64_t col, const struct place &at,
	                    const struct ended_packs<T, W> &h, float (&acc)[1][W]) const
	{
		float g[W], y[W] = {}, plus[W] = {};
		h.dended.get(g);
		if constexpr (E::READS)
			h.ended.get(y);
		then.template gradient<W>(row, ended_column(col), y, g);
#pragma unroll
		for (int i = 0; i < W; i++) {
			acc[0][i] += g[i];
			if (means)
				g[i] /= static_cast<float>(p.e.heads);
			g[i] = widen(narrow<T>(g[i]));
		}
		if (to)
			store<W>(to + row * p.ldg + col, g);
		if (p.copy)
			store<W>(row_at<T>(p.copy, row, p.e.pitch) + col, g);
		h.y.get(y);
		if (p.dq)
			h.plus.get(plus);
		float d = 0.0f, d_plus = 0.0f;
#pragma unroll
		for (int i = 0; i < W; i++)
			if (col + i < p.e.cols) { /* what follows is padding */
				d = __fmaf_rn(g[i], y[i], d);
				d_plus = __fmaf_rn(g[i], plus[i], d_plus);
			}
		sum_over_head(d, d_plus);
		if (at.starts)
			put_node(p, row, at.head, h.own, d, d_plus);
	}
	/* Adds over the lanes of a head, for the first of them. The lanes of a row that have a pack
	 * take this step together. A head may have fewer packs than lanes, if it is the only one. */
	__device__ void sum_over_head(float &d, float &d_plus) const
	{
		const unsigned x = threadIdx.x,
		               packs = static_cast<unsigned>(whole_packs(p.e.cols)) / ADD_PACK,
		               first = (threadIdx.y * blockDim.x) % 32,
		               mask = WHOLE_WARP >> (32 - packs) << first;
		for (unsigned step = static_cast<unsigned>(p.lanes) / 2; step > 0; step /= 2) {
			const bool is_there = (x ^ step) < packs;
			const int from = static_cast<int>(first + (is_there ? x ^ step : x));
			const float a = __shfl_sync(mask, d, from), b = __shfl_sync(mask, d_plus, from);
			d += is_there ? a : 0.0f;
			d_plus += is_there ? b : 0.0f;
		}
	}
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		if (db && (!means || col < p.e.head_cols))
			db[col] = sum[0];
	}
};

} // namespace

template <typename T, typename E> constexpr bool fetches_first<ended_nodes<T, E>> = true;

#endif
