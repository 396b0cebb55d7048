/* Read the members of a Planetoid dataset: features, labels, test nodes. */
#include <inttypes.h>
#include <stdlib.h>

#include "import/lines.h"
#include "import/pickle_array.h"
#include "import/planetoid.h"

hg_status hg__planetoid_features(const struct hg__planetoid *p, const char *member,
                                 struct hg__sparse *features)
{
	struct hg__pickle pickle;
	char *path = NULL;
	HG__TRY(hg__planetoid_path(p, member, &path));
	hg_status status = hg__pickle_open(&pickle, path, p->config.progress, p->message);
	if (status == HG_OK)
		status = hg__pickle_csr(&pickle, features);
	hg__pickle_close(&pickle);
	free(path);
	return status;
}

/* The column of the only 1 of a row. */
static hg_status label_of(const struct hg__pickle_array *a, int64_t row, int32_t *label)
{
	*label = -1;
	for (int64_t k = 0; k < a->dim[1]; k++) {
		const double x = hg__pickle_array_real(a, row, k);
		if (x != 0 && (x != 1 || *label >= 0))
			return hg__pickle_fail(a->pickle, hg__pickle_array_at(a, row, k),
			                       "row %" PRId64 " of the labels has %g in column %" PRId64
			                       ", expected one 1 and zeros",
			                       row, x, k);
		if (x != 0)
			*label = (int32_t)k;
	}
	return *label >= 0
	           ? HG_OK
	           : hg__pickle_fail(a->pickle, hg__pickle_array_at(a, row, 0),
	                             "row %" PRId64 " of the labels has no 1, expected one", row);
}

static hg_status take_labels(const struct hg__pickle *p, struct hg__planetoid_labels *labels)
{
	struct hg__pickle_array a;
	HG__TRY(hg__pickle_array(p, p->root, "labels", 2, &a));
	/* without columns the number of rows would be a mere claim */
	if (a.dim[1] < 1 || a.dim[1] > INT32_MAX)
		return hg__pickle_fail(p, p->value[p->root].at, "labels of %" PRId64 " classes", a.dim[1]);
	labels->count = a.dim[0];
	labels->classes = a.dim[1];
	HG__TRY(
	    hg__data_alloc(a.dim[0], sizeof *labels->at, "labels", (void **)&labels->at, p->message));
	for (int64_t i = 0; i < a.dim[0]; i++)
		HG__TRY(label_of(&a, i, &labels->at[i]));
	return HG_OK;
}

hg_status hg__planetoid_labels(const struct hg__planetoid *p, const char *member,
                               struct hg__planetoid_labels *labels)
{
	struct hg__pickle pickle;
	char *path = NULL;
	HG__TRY(hg__planetoid_path(p, member, &path));
	hg_status status = hg__pickle_open(&pickle, path, p->config.progress, p->message);
	if (status == HG_OK)
		status = take_labels(&pickle, labels);
	hg__pickle_close(&pickle);
	free(path);
	return status;
}

static hg_status take_id(const struct lines *lines, const char *line, int64_t *id)
{
	static const char expected[] = "expected the number of a node";
	const char *at = line;
	HG__TRY(hg__lines_integer(lines, line, expected, expected, &at, id));
	return *at || *id < 0 ? hg__lines_fail(lines, expected, line) : HG_OK;
}

static hg_status take_ids(struct lines *lines, int64_t **ids, int64_t *count)
{
	int64_t room = 0;
	char *line = NULL;
	HG__TRY(hg__lines_next(lines, &line));
	for (; line; *count += 1) {
		if (*count == room) {
			room = room ? 2 * room : 1024;
			HG__TRY(hg__data_grow((void **)ids, room, sizeof **ids, "test nodes", lines->message));
		}
		HG__TRY(take_id(lines, line, &(*ids)[*count]));
		HG__TRY(hg__lines_next(lines, &line));
	}
	return HG_OK;
}

hg_status hg__planetoid_test_ids(const struct hg__planetoid *p, int64_t **ids, int64_t *count)
{
	struct lines lines;
	char *path = NULL;
	HG__TRY(hg__planetoid_path(p, "test.index", &path));
	hg_status status = hg__lines_open(&lines, path, p->config.progress, p->message);
	if (status == HG_OK)
		status = take_ids(&lines, ids, count);
	hg__lines_close(&lines);
	free(path);
	return status;
}
