/* Zip archives and what their directories may claim. */
#include "import/archive.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

hg_status hg__zip_open(const char *path, zip_t **zip, struct hg__mark *mark, char *message)
{
	int code = 0;
	struct stat info;
	*zip = NULL;
	if (stat(path, &info) != 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: %s", path, strerror(errno));
	if (!S_ISREG(info.st_mode))
		return hg__data_fail(message, HG_ERR_IO, "%s: not a regular file", path);
	*mark = hg__mark_of(&info);
	*zip = zip_open(path, ZIP_RDONLY, &code);
	if (*zip)
		return HG_OK;
	zip_error_t error;
	zip_error_init_with_code(&error, code);
	const hg_status status = hg__data_fail(
	    message, code == ZIP_ER_OPEN || code == ZIP_ER_READ ? HG_ERR_IO : HG_ERR_FORMAT,
	    "%s: not a zip archive, or a damaged one: %s", path, zip_error_strerror(&error));
	zip_error_fini(&error);
	return status;
}

hg_status hg__zip_check(const zip_stat_t *info, int64_t bytes, const char *where, char *message)
{
	const zip_uint64_t needed =
	    ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
	if ((info->valid & needed) != needed)
		return hg__data_fail(message, HG_ERR_FORMAT, "%s: its directory entry is incomplete",
		                     where);
	if (info->encryption_method != ZIP_EM_NONE)
		return hg__data_fail(message, HG_ERR_FORMAT, "%s: is encrypted", where);
	if (info->comp_method != ZIP_CM_STORE && info->comp_method != ZIP_CM_DEFLATE)
		return hg__data_fail(
		    message, HG_ERR_FORMAT,
		    "%s: compression method %d is not supported; stored and deflated members are", where,
		    info->comp_method);
	const double possible =
	    (double)info->comp_size * (info->comp_method == ZIP_CM_DEFLATE ? HG__DEFLATE_MAX : 1);
	if (info->comp_size > (zip_uint64_t)bytes || (double)info->size > possible)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: declares %" PRIu64 " bytes out of %" PRIu64
		                     " stored ones in a file of %" PRId64 ": impossible",
		                     where, info->size, info->comp_size, bytes);
	return HG_OK;
}
