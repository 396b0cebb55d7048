/* Is the pattern of a graph symmetric? */
#include "graph/coo.h"

/* Is (i, j) stored? The columns of a row are ascending. */
static int has_edge(const hg_dataset *d, int64_t i, int32_t j)
{
	int64_t low = d->rowptr[i], high = d->rowptr[i + 1];
	while (low < high) {
		const int64_t middle = low + (high - low) / 2;
		if (d->col[middle] < j)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->rowptr[i + 1] && d->col[low] == j;
}

int64_t hg__one_way(const hg_dataset *d, int64_t *row, int64_t *column)
{
	int64_t count = 0;
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
			if (has_edge(d, d->col[e], (int32_t)i))
				continue;
			if (count == 0 && row)
				*row = i;
			if (count == 0 && column)
				*column = d->col[e];
			count++;
		}
	return count;
}
