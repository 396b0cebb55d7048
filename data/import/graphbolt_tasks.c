/* Read a task of a GraphBolt dataset: three sets, each with the numbers of nodes (seeds, in older
 * files seed_nodes) and their labels. The sets are the splits. Tasks about pairs of nodes, such as
 * the prediction of links, are not read, nor is a second task about nodes. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/graphbolt.h"
#include "import/npy.h"
#include "import/values.h"

static const char *const set_names[] = {"train_set", "validation_set", "test_set"};

/* The items of a set that are read; 0: there is none. */
struct set {
	int seeds, labels;
};

static hg_status find_data(const struct hg__graphbolt *in, int data, struct set *set)
{
	for (int k = 0; k < hg__yaml_count(&in->yaml, data); k++) {
		const int item = hg__yaml_item(&in->yaml, data, k);
		const char *name = NULL;
		HG__TRY(hg__yaml_text(&in->yaml, item, "name", 0, &name));
		if (name && (strcmp(name, "seeds") == 0 || strcmp(name, "seed_nodes") == 0))
			set->seeds = item;
		else if (name && strcmp(name, "labels") == 0)
			set->labels = item;
	}
	return HG_OK;
}

/* A set is a list with one item for each type of nodes, so with one here, or it is absent. */
static hg_status find_set(const struct hg__graphbolt *in, int task, const char *name,
                          struct set *set)
{
	int list = 0, data = 0;
	*set = (struct set){0, 0};
	HG__TRY(hg__yaml_get(&in->yaml, task, name, YAML_SEQUENCE_NODE, 0, &list));
	const int count = hg__yaml_count(&in->yaml, list);
	if (count > 1)
		return hg__yaml_fail(&in->yaml, list, "%s: expected one type of nodes, found %d", name,
		                     count);
	if (count == 0)
		return HG_OK;
	HG__TRY(hg__yaml_get(&in->yaml, hg__yaml_item(&in->yaml, list, 0), "data", YAML_SEQUENCE_NODE,
	                     1, &data));
	return find_data(in, data, set);
}

static hg_status open_array(const struct hg__graphbolt *in, int item, struct npy *a)
{
	const char *path = NULL, *format = NULL;
	*a = (struct npy){.bytes.fd = -1};
	HG__TRY(hg__graphbolt_path(in, item, "numpy", NULL, &path, &format));
	return hg__npy_open_part(&in->folder, path, a);
}

static int is_column(const struct npy *a)
{
	return a->rank == 1 || a->dim[1] == 1;
}

/* Has the first set of the task one node in each row, and not a pair of them? */
static hg_status is_about_nodes(const struct hg__graphbolt *in, int task, int *yes)
{
	struct set set = {0, 0};
	struct npy a;
	*yes = 0;
	for (int s = 0; s < 3 && set.seeds == 0; s++)
		HG__TRY(find_set(in, task, set_names[s], &set));
	if (set.seeds == 0)
		return HG_OK;
	HG__TRY(open_array(in, set.seeds, &a));
	*yes = is_column(&a);
	hg__npy_close(&a);
	return HG_OK;
}

/* ---- one set ---- */

static hg_status read_seeds(const struct hg__graphbolt *in, int item, int64_t **seeds,
                            int64_t *count)
{
	struct npy a;
	HG__TRY(open_array(in, item, &a));
	hg_status status = HG_OK;
	if (!is_column(&a))
		status = hg__data_fail(in->message, HG_ERR_FORMAT,
		                       "%s: has %" PRId64 " columns, expected 1: one node in each row",
		                       a.where, a.dim[1]);
	if (status == HG_OK && a.type.kind == 'b')
		status = hg__data_fail(in->message, HG_ERR_FORMAT,
		                       "%s: holds True and False, expected numbers of nodes", a.where);
	if (status == HG_OK)
		status = hg__npy_read_i64(&a, 0, in->d->nodes - 1, seeds);
	*count = a.elements;
	hg__npy_close(&a);
	return status;
}

static hg_status make_room(const struct hg__graphbolt *in, const struct npy *a, int64_t width,
                           struct hg__numbers *v)
{
	if (v->at && v->width != width)
		return hg__data_fail(in->message, HG_ERR_FORMAT,
		                     "%s: has %" PRId64 " columns, expected %" PRId64
		                     " as in the set before",
		                     a->where, width, v->width);
	if (v->at)
		return HG_OK;
	HG__TRY(hg__data_alloc(in->d->nodes, (size_t)width * sizeof *v->at, "labels", (void **)&v->at,
	                       in->message));
	v->rows = in->d->nodes;
	v->width = width;
	for (int64_t i = 0; i < v->rows * width; i++)
		v->at[i] = NAN;
	return HG_OK;
}

/* A node may be in several sets, and must have the same labels in all of them. */
static hg_status put_row(const struct npy *a, const float *row, int64_t node, struct hg__numbers *v)
{
	float *old = v->at + node * v->width;
	for (int64_t c = 0; c < v->width; c++) {
		if (!isnan(old[c]) && !isnan(row[c]) && old[c] != row[c])
			return hg__data_fail(a->message, HG_ERR_FORMAT,
			                     "%s: node %" PRId64
			                     " has the label %g, but %g in an earlier row or set",
			                     a->where, node, (double)row[c], (double)old[c]);
		old[c] = isnan(row[c]) ? old[c] : row[c];
	}
	return HG_OK;
}

/* The labels of the seeds become rows of *v. */
static hg_status read_labels(const struct hg__graphbolt *in, int item, const int64_t *seeds,
                             int64_t count, struct hg__numbers *v)
{
	struct npy a;
	float *rows = NULL;
	HG__TRY(open_array(in, item, &a));
	const int64_t width = a.rank == 2 ? a.dim[1] : 1;
	hg_status status = HG_OK;
	if (a.dim[0] != count)
		status = hg__data_fail(in->message, HG_ERR_FORMAT,
		                       "%s: has %" PRId64 " rows, but the set has %" PRId64 " nodes",
		                       a.where, a.dim[0], count);
	if (status == HG_OK && count > 0)
		status = hg__npy_read_f32(&a, &rows);
	if (status == HG_OK && count > 0)
		status = make_room(in, &a, width, v);
	for (int64_t k = 0; status == HG_OK && k < count; k++)
		status = put_row(&a, rows + k * width, seeds[k], v);
	free(rows);
	hg__npy_close(&a);
	return status;
}

static hg_status read_set(const struct hg__graphbolt *in, const struct set *set, uint8_t **mask,
                          struct hg__numbers *v)
{
	int64_t *seeds = NULL, count = 0;
	hg_status status = read_seeds(in, set->seeds, &seeds, &count);
	if (status == HG_OK)
		status = hg__data_alloc(in->d->nodes, 1, "a split", (void **)mask, in->message);
	if (status == HG_OK) {
		memset(*mask, 0, (size_t)in->d->nodes);
		for (int64_t k = 0; k < count; k++)
			(*mask)[seeds[k]] = 1;
	}
	if (status == HG_OK && set->labels > 0)
		status = read_labels(in, set->labels, seeds, count, v);
	free(seeds);
	return status;
}

/* ---- the tasks ---- */

static hg_status read_sets(const struct hg__graphbolt *in, int task, struct hg__numbers *v)
{
	uint8_t **const masks[] = {&in->d->train_mask, &in->d->val_mask, &in->d->test_mask};
	for (int s = 0; s < 3; s++) {
		struct set set;
		HG__TRY(find_set(in, task, set_names[s], &set));
		if (set.seeds > 0)
			HG__TRY(read_set(in, &set, masks[s], v));
	}
	return HG_OK;
}

static hg_status read_task(const struct hg__graphbolt *in, int task)
{
	struct hg__numbers v = {0};
	int64_t classes = -1;
	HG__TRY(hg__yaml_whole(&in->yaml, task, "num_classes", 0, &classes));
	hg_status status = read_sets(in, task, &v);
	if (status == HG_OK && v.at)
		status = hg__values_take(&v, classes > 0 ? classes : 0, in->yaml.path,
		                         "declare num_classes in the task", in->d, in->message);
	free(v.at);
	return status;
}

hg_status hg__graphbolt_tasks(const struct hg__graphbolt *in)
{
	int list = 0, taken = 0;
	HG__TRY(hg__yaml_get(&in->yaml, 0, "tasks", YAML_SEQUENCE_NODE, 0, &list));
	for (int k = 0; k < hg__yaml_count(&in->yaml, list); k++) {
		const int task = hg__yaml_item(&in->yaml, list, k);
		const char *name = NULL;
		int about_nodes = 0;
		HG__TRY(hg__yaml_text(&in->yaml, task, "name", 0, &name));
		HG__TRY(is_about_nodes(in, task, &about_nodes));
		if (about_nodes && !taken)
			HG__TRY(read_task(in, task));
		else
			hg__import_note(&in->config, "%s: task %d (%.80s) is not read: %s", in->yaml.path,
			                k + 1, name ? name : "without a name",
			                about_nodes ? "one is enough" : "it is not about single nodes");
		taken |= about_nodes;
	}
	return HG_OK;
}
