/* The names of classes in a dataset or a checkpoint: [bytes] of UTF-8, one name after the other,
 * each with its terminating 0. */
#include "class_names.h"

#include <inttypes.h>
#include <stdlib.h>

#include "h5/h5.h"

static hg_status read_names(const struct h5 *h5, const struct h5_array *a, char **names,
                            int64_t *bytes)
{
	int32_t *wide = NULL;
	if (a->dim[0] > HG__NAMES_MAX)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: /class_names: has %" PRId64 " bytes, expected at most %" PRId64,
		                     h5->path, a->dim[0], HG__NAMES_MAX);
	hg_status status = hg__h5_read_i32(h5, a, 0, 255, &wide);
	if (status == HG_OK)
		status = hg__data_alloc(a->dim[0], 1, "names of classes", (void **)names, h5->message);
	for (int64_t k = 0; status == HG_OK && k < a->dim[0]; k++)
		(*names)[k] = (char)(unsigned char)wide[k];
	*bytes = status == HG_OK ? a->dim[0] : 0;
	free(wide);
	return status;
}

hg_status hg__h5_class_names(const struct h5 *h5, char **names, int64_t *bytes)
{
	struct h5_array a;
	*names = NULL;
	*bytes = 0;
	if (!hg__h5_has(h5->file, "class_names"))
		return HG_OK;
	HG__TRY(hg__h5_array(h5, h5->file, "class_names", "/class_names", 1, &a));
	const hg_status status = a.dim[0] > 0 ? read_names(h5, &a, names, bytes) : HG_OK;
	hg__h5_array_close(&a);
	return status;
}
