/* Binary searches on the device, used by the code that builds graphs and plans. */
#ifndef HG_KERNELS_CUDA_SEARCH_CUH
#define HG_KERNELS_CUDA_SEARCH_CUH

#include "kernels/cuda/launch.cuh"

/* The row of edge e, which must be one of rows first .. end-1: rowptr[row] <= e < rowptr[row + 1].
 */
static __device__ inline int64_t row_of(const int64_t *rowptr, int64_t first, int64_t end,
                                        int64_t e)
{
	int64_t low = first, high = end; /* rowptr[low] <= e < rowptr[high] */
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		if (rowptr[middle] <= e)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The first index in begin .. end-1 of an ascending array whose value is at least `wanted`; end if
 * there is none. */
static __device__ inline int64_t first_at_least(const int32_t *array, int64_t begin, int64_t end,
                                                int32_t wanted)
{
	while (begin < end) {
		const int64_t middle = begin + (end - begin) / 2;
		if (array[middle] < wanted)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

#endif
