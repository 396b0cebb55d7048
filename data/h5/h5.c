/* Open, create and close HDF5 files, groups and attributes. Errors name the file and the object in
 * it. */
#include "h5/h5.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "atomic.h"
#include "seal.h"

static void silence_errors(struct h5 *h5)
{
	if (H5Eget_auto2(H5E_DEFAULT, &h5->report, &h5->report_data) < 0)
		h5->report = NULL;
	if (H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
		h5->report = NULL;
}

struct reason {
	char text[200];
	int no_memory;
};

static herr_t save_innermost(unsigned n, const H5E_error2_t *error, void *user)
{
	struct reason *reason = user;
	if (n == 0) {
		snprintf(reason->text, sizeof reason->text, "%s", error->desc ? error->desc : "");
		reason->no_memory = error->maj_num == H5E_RESOURCE && error->min_num == H5E_NOSPACE;
	}
	return 0;
}

hg_status hg__h5_fail(const struct h5 *h5, hg_status status, const char *where, const char *text)
{
	struct reason reason = {"", 0};
	if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, save_innermost, &reason) < 0)
		reason = (struct reason){"", 0};
	return hg__data_fail(h5->message, reason.no_memory ? HG_ERR_NOMEM : status, "%s: %s%s%s%s%s",
	                     h5->path, where ? where : "", where ? ": " : "", text,
	                     *reason.text ? ": " : "", reason.text);
}

/* By the driver whose handle is a descriptor, whatever the environment says. */
static hg_status open_to_read(struct h5 *h5, const char *path)
{
	void *handle = NULL;
	const hid_t plist = H5Pcreate(H5P_FILE_ACCESS);
	if (plist >= 0 && H5Pset_fapl_sec2(plist) >= 0)
		h5->file = H5Fopen(path, H5F_ACC_RDONLY, plist);
	const hg_status status =
	    h5->file < 0 ? hg__h5_fail(h5, HG_ERR_FORMAT, NULL, "damaged or truncated HDF5 file")
	    : H5Fget_vfd_handle(h5->file, H5P_DEFAULT, &handle) < 0
	        ? hg__h5_fail(h5, HG_ERR_IO, NULL, "cannot be read")
	        : HG_OK;
	h5->fd = status == HG_OK ? *(const int *)handle : -1;
	hg__h5_release(plist);
	return status;
}

hg_status hg__h5_open(struct h5 *h5, const char *path, const char *shown, char *message)
{
	*h5 = (struct h5){.path = shown, .message = message, .file = H5I_INVALID_HID};
	silence_errors(h5);
	struct stat info;
	if (stat(path, &info) != 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: %s", shown, strerror(errno));
	if (!S_ISREG(info.st_mode))
		return hg__data_fail(message, HG_ERR_IO, "%s: not a regular file", shown);
	h5->file_bytes = (int64_t)info.st_size;
	HG__TRY(hg__seal_check(path, shown, message));
	const htri_t is_hdf5 = H5Fis_hdf5(path);
	if (is_hdf5 < 0)
		return hg__h5_fail(h5, HG_ERR_IO, NULL, "cannot be read");
	if (!is_hdf5)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: not an HDF5 file (%lld bytes without its signature)", shown,
		                     (long long)h5->file_bytes);
	HG__TRY(open_to_read(h5, path));
	h5->mark = hg__mark_of(&info);
	/* the file whose checksum was compared is the one that is read */
	return hg__mark_check(&h5->mark, h5->fd, NULL, shown, message);
}

hg_status hg__h5_create(struct h5 *h5, int fd, const char *path, int summed, char *message)
{
	*h5 = (struct h5){.path = path, .message = message, .file = H5I_INVALID_HID};
	silence_errors(h5);
	h5->file = hg__h5_sink_create(&h5->sink, fd, summed);
	return h5->file < 0 ? hg__h5_fail(h5, HG_ERR_IO, NULL, "cannot be created") : HG_OK;
}

hg_status hg__h5_written(const struct h5 *h5)
{
	return h5->sink.reason ? hg__atomic_fail(h5->path, h5->sink.reason, h5->message) : HG_OK;
}

hg_status hg__h5_close(struct h5 *h5)
{
	hg_status status = HG_OK;
	if (h5->file >= 0)
		status = hg__mark_check(&h5->mark, h5->fd, NULL, h5->path, h5->message);
	if (h5->file >= 0 && H5Fclose(h5->file) < 0 && status == HG_OK)
		status = hg__h5_fail(h5, HG_ERR_IO, NULL, "cannot be closed");
	h5->file = H5I_INVALID_HID;
	if (status == HG_OK)
		status = hg__h5_written(h5);
	/* all reasons are reported by now; an error stack left behind would outlive this call */
	if (H5Eclear2(H5E_DEFAULT) < 0 || H5Eset_auto2(H5E_DEFAULT, h5->report, h5->report_data) < 0)
		return status < 0 ? status : HG_ERR_INTERNAL;
	return status;
}

int hg__h5_has(hid_t group, const char *name)
{
	return H5Lexists(group, name, H5P_DEFAULT) > 0;
}

hg_status hg__h5_group(const struct h5 *h5, hid_t parent, const char *name, const char *where,
                       hid_t *group)
{
	H5L_info_t link;
	*group = H5I_INVALID_HID;
	if (!hg__h5_has(parent, name))
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: no such group", h5->path, where);
	if (H5Lget_info(parent, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: is a link, expected a group",
		                     h5->path, where);
	*group = H5Gopen2(parent, name, H5P_DEFAULT);
	return *group < 0 ? hg__h5_fail(h5, HG_ERR_FORMAT, where, "not a group that can be read")
	                  : HG_OK;
}

hg_status hg__h5_attribute_class(const struct h5 *h5, hid_t object, const char *name,
                                 const char *where, H5T_class_t *class)
{
	const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
	const hid_t type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);
	*class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
	const hg_status status =
	    type < 0 ? hg__h5_fail(h5, HG_ERR_FORMAT, where, "an attribute cannot be read") : HG_OK;
	hg__h5_release(type);
	hg__h5_release(attribute);
	return status;
}

hg_status hg__h5_group_create(const struct h5 *h5, hid_t parent, const char *name, hid_t *group)
{
	const hid_t plist = H5Pcreate(H5P_GROUP_CREATE);
	*group = H5I_INVALID_HID;
	/* without times, so that equal contents give equal files whenever they are written */
	if (plist >= 0 && H5Pset_obj_track_times(plist, 0) >= 0)
		*group = H5Gcreate2(parent, name, H5P_DEFAULT, plist, H5P_DEFAULT);
	hg__h5_release(plist);
	return *group < 0 ? hg__h5_fail(h5, HG_ERR_IO, name, "group cannot be created") : HG_OK;
}

void hg__h5_release(hid_t id)
{
	if (id >= 0)
		H5Idec_ref(id);
}

hid_t hg__h5_half_type(void)
{
	/* Sign in bit 15, 5 exponent bits from bit 10, 10 mantissa bits from bit 0, bias 15. The fields
	 * are set first, because HDF5 shrinks a type only to a size that holds its fields. */
	const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
	if (type >= 0 && H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 &&
	    H5Tset_ebias(type, 15) >= 0)
		return type;
	hg__h5_release(type);
	return H5I_INVALID_HID;
}
