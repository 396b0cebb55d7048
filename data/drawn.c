/* Draw rows in a random order for splits. */
#include "drawn.h"

#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

static int by_draw(const void *a, const void *b)
{
	const struct hg__drawn *x = a, *y = b;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->drawn != y->drawn)
		return x->drawn < y->drawn ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

hg_status hg__draw(const hg_dataset *d, uint64_t seed, int by_class, struct hg__drawn **rows,
                   int64_t *count, char *message)
{
	const uint64_t key = hg__rng_key(seed, 0);
	const int64_t n = hg__data_labelled(d);
	HG__TRY(hg__data_alloc(n, sizeof **rows, "a split", (void **)rows, message));
	*count = 0;
	for (int64_t row = 0; row < n; row++) {
		if (d->label && d->label[row] < 0)
			continue;
		const int64_t number = d->graph_ptr ? row : hg_dataset_node(d, row);
		const struct hg__rng4 r = hg__rng_quad(key, number, 0, 0);
		(*rows)[(*count)++] = (struct hg__drawn){row, number, (uint64_t)r.w[0] << 32 | r.w[1],
		                                         by_class && d->label ? d->label[row] : 0};
	}
	qsort(*rows, (size_t)*count, sizeof **rows, by_draw);
	return HG_OK;
}

hg_status hg__set_splits(hg_dataset *d, const int8_t *set, char *message)
{
	uint8_t *fresh[3] = {NULL, NULL, NULL};
	uint8_t **const mask[] = {&d->train_mask, &d->val_mask, &d->test_mask};
	const int64_t n = hg__data_labelled(d);
	hg_status status = HG_OK;
	for (int k = 0; status == HG_OK && k < 3; k++)
		status = hg__data_alloc(n, 1, "a split", (void **)&fresh[k], message);
	for (int k = 0; status == HG_OK && k < 3; k++)
		for (int64_t row = 0; row < n; row++)
			fresh[k][row] = set[row] == k;
	for (int k = 0; k < 3; k++) {
		free(status == HG_OK ? *mask[k] : fresh[k]);
		if (status == HG_OK)
			*mask[k] = fresh[k];
	}
	return status;
}
