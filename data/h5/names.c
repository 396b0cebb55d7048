/* List the names in a group or on an object. The names are taken in the file's order and sorted
 * here: for H5_ITER_INC and H5Lget_name_by_idx libhdf5 builds its own table, and where a damaged
 * group ends early it frees entries of that table that it never filled. */
#include "h5/names.h"

#include <stdlib.h>
#include <string.h>

struct listing {
	const struct h5 *h5;
	const char *where;
	size_t size; /* of a name, with its terminator */
	int64_t room;
	struct hg__h5_names *names;
	hg_status status;
};

/* In a damaged file the links of a group can form a cycle. A file cannot hold more names than
 * bytes, so the listing stops when it has as many. */
static hg_status add_name(struct listing *list, const char *name)
{
	struct hg__h5_names *names = list->names;
	const size_t length = strlen(name);
	if (length >= list->size)
		return hg__data_fail(list->h5->message, HG_ERR_FORMAT,
		                     "%s: %s: a name of %zu characters, expected less than %zu",
		                     list->h5->path, list->where, length, list->size);
	if (names->count >= list->h5->file_bytes)
		return hg__data_fail(list->h5->message, HG_ERR_FORMAT,
		                     "%s: %s: its list of names has no end", list->h5->path, list->where);
	if (names->count == list->room) {
		const int64_t room = 2 * list->room + 8;
		HG__TRY(hg__data_grow((void **)&names->name, room, sizeof *names->name, list->where,
		                      list->h5->message));
		list->room = room;
	}
	HG__TRY(hg__data_copy_text(name, &names->name[names->count], list->h5->message));
	names->count++;
	return HG_OK;
}

static herr_t add_or_stop(struct listing *list, const char *name)
{
	list->status = add_name(list, name);
	/* 1 ends the listing; -1 would be a failure of HDF5 itself */
	return list->status == HG_OK ? 0 : 1;
}

static herr_t add_member(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
	(void)group;
	(void)info;
	return add_or_stop(user, name);
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *user)
{
	(void)object;
	(void)info;
	return add_or_stop(user, name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Return the failure of the listing, or sort its names. */
static hg_status sort_names(struct listing *list, herr_t listed)
{
	if (list->status < 0)
		return list->status;
	if (listed < 0)
		return hg__h5_fail(list->h5, HG_ERR_FORMAT, list->where, "its names cannot be listed");
	if (list->names->count > 1)
		qsort(list->names->name, (size_t)list->names->count, sizeof *list->names->name, by_name);
	return HG_OK;
}

hg_status hg__h5_members(const struct h5 *h5, hid_t group, const char *where, size_t size,
                         struct hg__h5_names *names)
{
	struct listing list = {h5, where, size, 0, names, HG_OK};
	hsize_t at = 0;
	*names = (struct hg__h5_names){NULL, 0};
	return sort_names(&list,
	                  H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, add_member, &list));
}

hg_status hg__h5_attributes(const struct h5 *h5, hid_t object, const char *where, size_t size,
                            struct hg__h5_names *names)
{
	struct listing list = {h5, where, size, 0, names, HG_OK};
	hsize_t at = 0;
	*names = (struct hg__h5_names){NULL, 0};
	return sort_names(
	    &list, H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, add_attribute, &list));
}

void hg__h5_names_free(struct hg__h5_names *names)
{
	for (int64_t i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
	*names = (struct hg__h5_names){NULL, 0};
}
