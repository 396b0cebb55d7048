/* Dataset -> HDF5 file, atomically: a temporary file beside the target, fsync, rename. Layout: FORMAT.md. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "h5/binsparse.h"

static hg_status write_identity(const struct h5 *h5, const hg_dataset *d)
{
	HG__TRY(hg__h5_text_write(h5, h5->file, "format", "halfgraph"));
	HG__TRY(hg__h5_text_write(h5, h5->file, "format_version", "1.0"));
	if (d->name)
		HG__TRY(hg__h5_text_write(h5, h5->file, "name", d->name));
	return hg__h5_integer_write(h5, h5->file, "num_classes", d->classes);
}

static hg_status write_graph(const struct h5 *h5, const hg_dataset *d)
{
	const struct hg__sparse m = {d->nodes, d->nodes, d->edges, d->rowptr, d->col, d->weight};
	return hg__binsparse_write(h5, h5->file, "graph", &m, "destination node", "source node");
}

static hg_status write_dense(const struct h5 *h5, hid_t nodes, const hg_dataset *d)
{
	hid_t feat = H5I_INVALID_HID;
	HG__TRY(hg__h5_write(h5, nodes, "feat", d->feat_dtype == HG_F16 ? H5_HALF : H5_F32, d->nodes, d->features, d->feat, &feat));
	hg_status status = hg__h5_real_write(h5, feat, "amax", hg__data_amax(d));
	if (H5Dclose(feat) < 0 && status == HG_OK)
		status = hg__h5_fail(h5, HG_ERR_IO, "feat", "cannot be closed");
	return status;
}

static hg_status write_features(const struct h5 *h5, hid_t nodes, const hg_dataset *d)
{
	if (d->feat && d->features > 0)
		return write_dense(h5, nodes, d);
	if (!d->feat_rowptr)
		return HG_OK;
	const struct hg__sparse m = {d->nodes, d->features, d->feat_rowptr[d->nodes], d->feat_rowptr, d->feat_col, d->feat_value};
	return hg__binsparse_write(h5, nodes, "feat_csr", &m, "node", "feature");
}

static hg_status write_owned(const struct h5 *h5, hid_t group, const hg_dataset *d)
{
	const int64_t n = hg__data_labelled(d);
	const struct {
		const char *name;
		enum h5_type type;
		const void *values;
	} arrays[] = {{"label", H5_I32, d->label}, {"train_mask", H5_U8, d->train_mask}, {"val_mask", H5_U8, d->val_mask}, {"test_mask", H5_U8, d->test_mask}};
	for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++)
		if (arrays[k].values)
			HG__TRY(hg__h5_write(h5, group, arrays[k].name, arrays[k].type, n, 0, arrays[k].values, NULL));
	return HG_OK;
}

static hg_status write_nodes(const struct h5 *h5, const hg_dataset *d)
{
	hid_t nodes;
	HG__TRY(hg__h5_group_create(h5, h5->file, "nodes", &nodes));
	hg_status status = write_features(h5, nodes, d);
	if (status == HG_OK && d->orig_id)
		status = hg__h5_write(h5, nodes, "orig_id", H5_I64, d->nodes, 0, d->orig_id, NULL);
	if (status == HG_OK && !d->graph_ptr)
		status = write_owned(h5, nodes, d);
	H5Gclose(nodes);
	return status;
}

static hg_status write_batch(const struct h5 *h5, const hg_dataset *d)
{
	hid_t batch, graphs;
	if (!d->graph_ptr)
		return HG_OK;
	HG__TRY(hg__h5_group_create(h5, h5->file, "batch", &batch));
	const hg_status status = hg__h5_write(h5, batch, "graph_ptr", H5_I64, d->graphs + 1, 0, d->graph_ptr, NULL);
	H5Gclose(batch);
	HG__TRY(status);
	HG__TRY(hg__h5_group_create(h5, h5->file, "graphs", &graphs));
	const hg_status owned = write_owned(h5, graphs, d);
	H5Gclose(graphs);
	return owned;
}

static hg_status write_all(const struct h5 *h5, const hg_dataset *d)
{
	HG__TRY(write_identity(h5, d));
	HG__TRY(write_graph(h5, d));
	HG__TRY(write_nodes(h5, d));
	return write_batch(h5, d);
}

/* Synchronise and close what was opened. */
static hg_status sync_and_close(int fd, const char *name, char *message)
{
	if (fd < 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: cannot be synchronised: %s", name, strerror(errno));
	const int failed = fsync(fd) != 0 && errno != EINVAL; /* EINVAL: this file system does not know how */
	const int reason = errno;
	if (close(fd) != 0 || failed)
		return hg__data_fail(message, HG_ERR_IO, "%s: cannot be synchronised: %s", name, strerror(failed ? reason : errno));
	return HG_OK;
}

/* The folder of a path, opened; -1 if there is none. */
static int open_folder(const char *path, char *scratch)
{
	const char *slash = strrchr(path, '/');
	const size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
	memcpy(scratch, path, length);
	scratch[length] = 0;
	return open(length > 0 ? scratch : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The file's content first, then its name: after a power cut there is the old file or the new one. `scratch` has room for the path. */
static hg_status publish(const char *temporary, const char *path, char *scratch, char *message)
{
	HG__TRY(sync_and_close(open(temporary, O_RDONLY | O_CLOEXEC), path, message));
	const int folder = open_folder(path, scratch); /* before the rename: nothing but the disk itself can fail behind it */
	if (rename(temporary, path) == 0)
		return folder < 0 ? HG_OK : sync_and_close(folder, path, message); /* a folder may be writable and not readable */
	const int reason = errno;
	if (folder >= 0)
		close(folder);
	return hg__data_fail(message, HG_ERR_IO, "%s: cannot be put in place: %s", path, strerror(reason));
}

/* "PATH.PID.tmp"; H5Fcreate refuses a file that exists, so a name in use is an error, not a loss. */
static hg_status temporary_name(const char *path, char **temporary, char *message)
{
	const size_t size = strlen(path) + 32;
	HG__TRY(hg__data_alloc((int64_t)size, 1, "a file name", (void **)temporary, message));
	snprintf(*temporary, size, "%s.%ld.tmp", path, (long)getpid());
	return HG_OK;
}

/* Said with errno's words before HDF5 says it with more. What is not a regular file (a device, a link) is never replaced. */
static hg_status check_target(const char *path, const char *temporary, char *message)
{
	struct stat there;
	if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
		return hg__data_fail(message, HG_ERR_IO, "%s: cannot be written: it exists and is not a regular file", path);
	const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
	close(fd);
	return unlink(temporary) == 0 ? HG_OK : hg__data_fail(message, HG_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
}

static hg_status write_temporary(const hg_dataset *d, const char *temporary, const char *path, char *scratch, const hg_progress *progress, char *message)
{
	struct h5 h5;
	HG__TRY(check_target(path, temporary, message));
	hg_status status = hg__h5_create(&h5, temporary, path, message);
	const int created = status == HG_OK;
	h5.progress = progress;
	if (status == HG_OK)
		status = write_all(&h5, d);
	const hg_status closed = hg__h5_close(&h5);
	if (status == HG_OK)
		status = closed;
	if (status == HG_OK)
		status = publish(temporary, path, scratch, message);
	if (status < 0 && created)
		unlink(temporary);
	return status;
}

hg_status hg_dataset_write_watched(const hg_dataset *dataset, const char *path, const hg_progress *progress, char *message)
{
	char *temporary = NULL, *scratch = NULL;
	if (!dataset || !path)
		return hg__data_fail(message, HG_ERR_ARG, "dataset_write: %s is NULL", dataset ? "path" : "dataset");
	HG__TRY(hg_dataset_check(dataset, path, message));
	hg_status status = temporary_name(path, &temporary, message);
	if (status == HG_OK)
		status = hg__data_copy_text(path, &scratch, message);
	if (status == HG_OK)
		status = write_temporary(dataset, temporary, path, scratch, progress, message);
	free(temporary);
	free(scratch);
	return status;
}

hg_status hg_dataset_write(const hg_dataset *dataset, const char *path, char *message)
{
	return hg_dataset_write_watched(dataset, path, NULL, message);
}
