/* --inspect: check a dataset and describe it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5convert.h"
#include "inspect_edges.h"
#include "tool.h"

struct facts {
	int64_t max_degree, max_node, isolated, self_loops, labelled, unlabelled, stored;
	int symmetric;
	double max_sum; /* largest sum of |weight| over a row */
	int64_t train, val, test;
	int64_t *per_class;    /* [listed] */
	int32_t listed, empty; /* empty: classes without a label, of those listed */
	hg_locality locality;
	struct edge_facts edge;
};

/* Is (i, j) stored with this weight? The columns of a row are ascending. */
static int has_edge(const hg_dataset *d, int64_t i, int32_t j, float weight)
{
	int64_t low = d->rowptr[i], high = d->rowptr[i + 1];
	while (low < high) {
		const int64_t middle = (low + high) / 2;
		if (d->col[middle] < j)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->rowptr[i + 1] && d->col[low] == j && (d->weight ? d->weight[low] : 1) == weight;
}

/* A node is isolated if it has no edge in either direction, self loops aside. */
static int64_t count_isolated(const hg_dataset *d)
{
	unsigned char *connected = calloc((size_t)d->nodes + 1, 1);
	int64_t isolated = 0;
	if (!connected)
		return -1;
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
			if (d->col[e] != i)
				connected[i] = connected[d->col[e]] = 1;
	for (int64_t i = 0; i < d->nodes; i++)
		isolated += !connected[i];
	free(connected);
	return isolated;
}

static void measure_graph(const hg_dataset *d, struct facts *f)
{
	f->symmetric = 1;
	for (int64_t i = 0; i < d->nodes; i++) {
		const int64_t degree = d->rowptr[i + 1] - d->rowptr[i];
		double sum = 0;
		if (degree > f->max_degree) {
			f->max_degree = degree;
			f->max_node = i;
		}
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
			const float w = d->weight ? d->weight[e] : 1;
			sum += fabs((double)w);
			f->self_loops += d->col[e] == i;
			f->symmetric = f->symmetric && has_edge(d, d->col[e], (int32_t)i, w);
		}
		f->max_sum = sum > f->max_sum ? sum : f->max_sum;
	}
}

static int64_t count_mask(const uint8_t *mask, int64_t n)
{
	int64_t count = 0;
	for (int64_t i = 0; mask && i < n; i++)
		count += mask[i] != 0;
	return count;
}

static int measure_dataset(const hg_dataset *d, struct facts *f)
{
	*f = (struct facts){.locality = HG_LOCALITY_INIT};
	f->labelled = d->graph_ptr ? d->graphs : d->nodes;
	f->listed = d->classes < LISTED ? d->classes : LISTED;
	f->per_class = calloc((size_t)f->listed + 1, sizeof *f->per_class);
	f->isolated = count_isolated(d);
	if (!f->per_class || f->isolated < 0 || !edge_facts_measure(d, &f->edge))
		return 0;
	measure_graph(d, f);
	if (hg_order_locality(d->nodes, d->rowptr, d->col, NULL, &f->locality) < 0)
		return 0;
	for (int64_t i = 0; d->label && i < f->labelled; i++)
		if (d->label[i] < 0)
			f->unlabelled++;
		else if (d->label[i] < f->listed)
			f->per_class[d->label[i]]++;
	for (int32_t c = 0; c < f->listed; c++)
		f->empty += f->per_class[c] == 0;
	f->train = count_mask(d->train_mask, f->labelled);
	f->val = count_mask(d->val_mask, f->labelled);
	f->test = count_mask(d->test_mask, f->labelled);
	f->stored = d->feat_rowptr ? d->feat_rowptr[d->nodes] : d->nodes * d->features;
	return 1;
}

static void print_features(const hg_dataset *d, const struct facts *f)
{
	if (d->features == 0) {
		puts("  features   none");
		return;
	}
	printf("  features   %" PRId64 " columns, %s, %s, max |x| %.6g", d->features,
	       d->feat_rowptr ? "sparse" : "dense", hg_dtype_name(d->feat_dtype), d->feat_amax);
	if (d->feat_rowptr && d->nodes > 0)
		printf(", %" PRId64 " stored (%.3g %%)", f->stored,
		       100.0 * (double)f->stored / ((double)d->nodes * (double)d->features));
	if (d->feat_mean)
		printf(
		    "\n  standard   each column minus its mean, divided by its deviation: both are kept");
	const double bound = f->max_sum * d->feat_amax;
	printf("\n  fp16       a neighbourhood sum of features is at most %.6g: %s\n", bound,
	       bound <= 65504 ? "it always fits"
	                      : "it may exceed 65504 if it is summed before it is scaled");
}

/* The names of the same classes. */
static void print_names(const hg_dataset *d)
{
	if (!d->class_name)
		return;
	fputs("\n  called     ", stdout);
	for (int32_t c = 0; c < d->classes && c < 12; c++) {
		char *name = tool_printable(hg_dataset_class_name(d, c));
		printf("%s%s", c ? ", " : "", name ? name : "?");
		free(name);
	}
	printf("%s", d->classes > 12 ? ", ..." : "");
}

/* Print the names of the first four nodes. */
static void print_node_names(const hg_dataset *d)
{
	const char *at = d->node_name;
	if (!at || d->nodes == 0)
		return;
	fputs("  named      ", stdout);
	for (int64_t i = 0; i < d->nodes && i < 4; i++, at += strlen(at) + 1) {
		char *name = tool_printable(at);
		printf("%s%s", i ? ", " : "", name ? name : "?");
		free(name);
	}
	puts(d->nodes > 4 ? ", ..." : "");
}

/* Print the sizes of the first twelve classes. */
static void print_classes(const hg_dataset *d, const struct facts *f)
{
	printf("  classes    %" PRId32 ":", d->classes);
	for (int32_t c = 0; c < d->classes && c < 12; c++)
		printf(" %" PRId64, f->per_class[c]);
	printf("%s", d->classes > 12 ? " ..." : "");
	if (f->empty)
		printf(", %" PRId32 " of %" PRId32 " empty", f->empty, f->listed);
	if (f->unlabelled)
		printf(", %" PRId64 " unlabelled", f->unlabelled);
	print_names(d);
	putchar('\n');
}

/* The next name of a list with a name a line, which is cut out of it; NULL: there is none. */
static char *next_name(char **list)
{
	char *name = *list;
	*list = name ? strchr(name, '\n') : NULL;
	if (*list)
		*(*list)++ = 0;
	return name;
}

static void print_targets(const hg_dataset *d)
{
	char *names = d->target_names ? strdup(d->target_names) : NULL, *rest = names;
	printf("  targets    %" PRId64 " real number%s for each %s", d->targets,
	       d->targets == 1 ? "" : "s", d->graph_ptr ? "graph" : "node");
	for (char *name = next_name(&rest); name; name = next_name(&rest)) {
		char *text = tool_printable(name);
		printf("%s%s", name == names ? ": " : ", ", text ? text : "");
		free(text);
	}
	putchar('\n');
	free(names);
}

/* The names as an array, empty where there are none; NULL if memory ran out. */
static json_t *target_names_json(const hg_dataset *d)
{
	json_t *array = json_array();
	char *names = d->target_names ? strdup(d->target_names) : NULL, *rest = names;
	int ok = array && (names || !d->target_names);
	for (char *name = next_name(&rest); ok && name; name = next_name(&rest))
		ok = json_array_append_new(array, json_text(name)) == 0;
	free(names);
	if (ok)
		return array;
	json_decref(array);
	return NULL;
}

static void print_labels(const hg_dataset *d, const struct facts *f)
{
	if (d->target)
		print_targets(d);
	if (!d->label && !d->target)
		puts("  labels     none");
	if (d->label)
		print_classes(d, f);
	if (d->fold)
		printf("  folds      %" PRId32 ", for hg-train --folds\n", d->folds);
	if (d->label || d->target)
		printf("  split      train %" PRId64 ", val %" PRId64 ", test %" PRId64 "\n", f->train,
		       f->val, f->test);
}

static int print_table(const char *path, const hg_dataset *d, const struct facts *f)
{
	char *file = tool_printable(path), *name = tool_printable(d->name ? d->name : "(none)");
	const int ok = file && name;
	if (ok)
		printf("%s\n  name       %s\n", file, name);
	free(file);
	free(name);
	if (!ok)
		return 0;
	printf("  nodes      %" PRId64 " (%" PRId64 " isolated)", d->nodes, f->isolated);
	if (d->graph_ptr)
		printf(" in %" PRId64 " graphs", d->graphs);
	printf("\n  edges      %" PRId64 " entries, %s, %s, %" PRId64 " self loops\n", d->edges,
	       f->symmetric ? "symmetric" : "directed", d->weight ? "weighted" : "unweighted",
	       f->self_loops);
	printf("  degree     mean %.2f, max %" PRId64,
	       d->nodes > 0 ? (double)d->edges / (double)d->nodes : 0.0, f->max_degree);
	if (f->max_degree > 0)
		printf(" (node %" PRId64 ")", hg_dataset_node(d, f->max_node));
	putchar('\n');
	printf("  order      %s; %.1f %% of the gathers miss L1, %.1f %% miss L2, about %.1f ps per "
	       "edge\n",
	       d->order ? "reordered" : "original", 100 * f->locality.near_miss,
	       100 * f->locality.far_miss, f->locality.gather_ps);
	edge_facts_print(d, &f->edge);
	print_node_names(d);
	print_features(d, f);
	print_labels(d, f);
	return 1;
}

/* null: the classes have no names. NULL: memory runs out. */
static json_t *class_names_json(const hg_dataset *d)
{
	if (!d->class_name)
		return json_null();
	json_t *names = json_array();
	const char *end = d->class_name + d->class_name_bytes;
	for (const char *at = d->class_name; names && at < end; at += strlen(at) + 1)
		if (json_array_append_new(names, json_text(at)) != 0) {
			json_decref(names);
			return NULL;
		}
	return names;
}

/* NULL: memory runs out. */
static json_t *class_counts_json(const struct facts *f)
{
	json_t *counts = json_array();
	for (int32_t c = 0; counts && c < f->listed; c++)
		if (json_array_append_new(counts, json_integer(f->per_class[c])) != 0) {
			json_decref(counts);
			return NULL;
		}
	return counts;
}

static int print_json(const char *path, const hg_dataset *d, const struct facts *f)
{
	json_t *root = json_pack(
	    "{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:s?, s:s, s:I, s:f, s:f, s:i, "
	    "s:I, s:o, s:o, s:I, s:{s:I, s:I, s:I}, s:i, s:b, s:b, s:o, s:o, s:b}",
	    "file", json_text(path), "name", json_text(d->name), "nodes", (json_int_t)d->nodes, "edges",
	    (json_int_t)d->edges, "graphs", (json_int_t)d->graphs, "isolated", (json_int_t)f->isolated,
	    "self_loops", (json_int_t)f->self_loops, "max_degree", (json_int_t)f->max_degree,
	    "symmetric", f->symmetric, "weighted", d->weight != NULL, "features",
	    (json_int_t)d->features, "feature_layout",
	    d->features == 0 ? NULL
	    : d->feat_rowptr ? "sparse"
	                     : "dense",
	    "feature_dtype", hg_dtype_name(d->feat_dtype), "feature_entries", (json_int_t)f->stored,
	    "feature_amax", d->feat_amax, "max_row_sum", f->max_sum, "classes", (int)d->classes,
	    "targets", (json_int_t)d->targets, "target_names", target_names_json(d), "class_counts",
	    class_counts_json(f), "unlabelled", (json_int_t)f->unlabelled, "split", "train",
	    (json_int_t)f->train, "val", (json_int_t)f->val, "test", (json_int_t)f->test, "folds",
	    (int)d->folds, "standardized", d->feat_mean != NULL, "reordered", d->order != NULL,
	    "locality", locality_json(&f->locality), "class_names", class_names_json(d), "node_names",
	    d->node_name != NULL);
	char *text = root && edge_facts_json(d, &f->edge, root) ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text)
		return 0;
	puts(text);
	free(text);
	return 1;
}

int inspect(const char *path, int json)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	struct facts f = {0};
	const hg_status status = hg_dataset_read(path, &d, message);
	if (status < 0) {
		tool_say("h5convert", "%s", message);
		return tool_code_of(status);
	}
	int ok = measure_dataset(d, &f);
	if (ok && json)
		ok = print_json(path, d, &f);
	else if (ok)
		ok = print_table(path, d, &f);
	free(f.per_class);
	edge_facts_free(&f.edge);
	hg_dataset_free(d);
	if (!ok)
		tool_say("h5convert", "%s: out of memory", path);
	return ok ? TOOL_DONE : TOOL_FAILED;
}
