/* The names of classes in a dataset or a checkpoint: [bytes] of UTF-8, one name after the other,
 * each with its terminating 0. */
#include "class_names.h"

#include <inttypes.h>

#include "h5/h5.h"

static hg_status read_names(const struct h5 *h5, const struct h5_array *a, char **names,
                            int64_t *bytes)
{
	if (a->dim[0] > HG__NAMES_MAX)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: /class_names: has %" PRId64 " bytes, expected at most %" PRId64,
		                     h5->path, a->dim[0], HG__NAMES_MAX);
	const hg_status status = hg__h5_read_bytes(h5, a, names);
	*bytes = status == HG_OK ? a->dim[0] : 0;
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
