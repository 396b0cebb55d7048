/* What all imports have in common. */
#include "import/run.h"

static hg_status finish(const struct hg__import *in)
{
	if (!in->d->name && !in->is_named)
		HG__TRY(hg__import_name(in->d, in->path, in->message));
	HG__TRY(hg_dataset_check(in->d, in->path, in->message));
	in->d->feat_amax = hg__data_amax(in->d);
	return HG_OK;
}

hg_status hg__import_run(const char *const *paths, int count, const hg_import_config *config,
                         hg_status (*read)(struct hg__import *), hg_dataset **dataset,
                         char *message)
{
	struct hg__import in = {.path = paths[0], .paths = paths, .count = count, .message = message};
	HG__TRY(hg__import_configure(config, &in.config, message));
	HG__TRY(hg_dataset_new(dataset, message));
	in.d = *dataset;
	hg_status status = read(&in);
	if (status == HG_OK)
		status = finish(&in);
	if (status < 0) {
		hg_dataset_free(*dataset);
		*dataset = NULL;
	}
	return status;
}

hg_status hg__import_text(const struct hg__import *in, const char *path,
                          hg_status (*read)(struct lines *, void *), void *to)
{
	struct lines lines;
	hg_status status = hg__lines_open(&lines, path, in->config.progress, in->message);
	if (status == HG_OK)
		status = read(&lines, to);
	hg__lines_close(&lines);
	return status;
}
