/* Missing memory is a status. Every allocation of the library is made to fail, one at a time. (The
 * linker redirects its malloc, calloc and realloc to this file.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pickles.h"
#include "support.h"

static int64_t allowed = INT64_MAX; /* how many allocations succeed before one fails */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return allowed-- == 0 ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return allowed-- == 0 ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return allowed-- == 0 ? NULL : __real_realloc(memory, bytes);
}

/* A call that allocates memory. It reads *d or makes it. */
typedef hg_status (*job)(hg_dataset **d, char *message);

static hg_status import_as(const char *format, const char *name, hg_dataset **d, char *message)
{
	const char *path = scratch(0, name);
	const hg_importer *table = hg_importers(NULL);
	while (strcmp(table->name, format) != 0)
		table++;
	hg_import_config config = HG_IMPORT_CONFIG_INIT;
	config.folds = 3;
	return table->import(&path, 1, &config, d, message);
}

static hg_status plant(hg_dataset **d, char *message)
{
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	config.nodes = 200;
	config.hub_degree = 50;
	return hg_dataset_planted(&config, d, message);
}

/* A sparse column that loses its spread in fp16. */
static void lossy_is_made(void)
{
	enum { N = 10 };
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->nodes = N;
	d->features = 1;
	d->rowptr = calloc(N + 1, sizeof *d->rowptr);
	d->col = calloc(1, sizeof *d->col);
	d->feat_rowptr = calloc(N + 1, sizeof *d->feat_rowptr);
	d->feat_col = calloc(N, sizeof *d->feat_col);
	d->feat_value = calloc(N, sizeof *d->feat_value);
	CHECK(d->rowptr && d->col && d->feat_rowptr && d->feat_col && d->feat_value);
	for (int i = 0; i < N; i++) {
		d->feat_rowptr[i + 1] = i + 1;
		d->feat_value[i] = 40000.0f + (float)i / 4;
	}
	must_write(d, scratch(0, "lossy.h5"));
	hg_dataset_free(d);
}

/* What makes a dataset: importers with their inputs, and the generator. */
static const struct {
	const char *format, *input;
} makers[] = {{"npz", "in.npz"},        {"npz", "own.npz"},        {"edges", "in.txt"},
              {"mtx", "in.mtx"},        {"tu", "in_A.txt"},        {"tu", "tu.zip"},
              {"gin", "gin.zip"},       {"musae", "m_edges.csv"},  {"metis", "in.graph"},
              {"ogb", "ogb.zip"},       {"graphbolt", "bolt.zip"}, {"dgl-csv", "dgl.zip"},
              {"planetoid", "ind.toy"}, {"h5", "in.h5"},           {"h5", "sparse.h5"},
              {"planted", NULL},        {"npz", "graphs.npz"}};

static void inputs_are_made(void)
{
	static const int64_t shape[] = {2, 2};
	static const int32_t indptr[] = {0, 2, 2}, ends[] = {0, 2}, indices[] = {1, 0},
	                     labels[] = {0, 1};
	static const float features[] = {1, 2, 3, 4};
	static const char bolt[] =
	    "graph: {nodes: [{num: 2}], edges: [{format: numpy, path: ends.npy}]}\n"
	    "feature_data: [{domain: node, name: x, format: numpy, path: x.npy}, "
	    "{domain: edge, name: w, format: numpy, path: w.npy}]\n"
	    "tasks: [{train_set: [{data: [{name: seeds, format: numpy, path: s.npy}, "
	    "{name: labels, format: numpy, path: y.npy}]}]}]\n",
	                  dgl[] = "edge_data: [{file_name: e.csv}]\nnode_data: [{file_name: n.csv}]\n"
	                          "graph_data: {file_name: g.csv}\n";
	struct npz_out *npz = npz_begin(scratch(0, "in.npz"));
	npz_add(npz, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(npz, "adj_indptr", "<i4", "(3,)", indptr, sizeof indptr);
	npz_add(npz, "adj_indices", "<i4", "(2,)", indices, sizeof indices);
	npz_add(npz, "attr_matrix", "<f4", "(2, 2)", features, sizeof features);
	npz_add(npz, "labels", "<i4", "(2,)", labels, sizeof labels);
	npz_add(npz, "edge_feat", "<f4", "(2, 2)", features, sizeof features);
	npz_add(npz, "edge_label", "<i4", "(2,)", labels, sizeof labels);
	npz_add(npz, "num_edge_classes", "<i4", "()", &indptr[1], sizeof indptr[1]);
	npz_end(npz, 0);
	npz = npz_begin(scratch(0, "graphs.npz"));
	npz_add(npz, "node_ptr", "<i4", "(2,)", ends, sizeof ends);
	npz_add(npz, "edge_ptr", "<i4", "(2,)", ends, sizeof ends);
	npz_add(npz, "edge_src", "<i4", "(2,)", indices, sizeof indices);
	npz_add(npz, "edge_dst", "<i4", "(2,)", labels, sizeof labels);
	npz_add(npz, "edge_label", "<i4", "(2,)", labels, sizeof labels);
	npz_add(npz, "node_label", "<i4", "(2,)", labels, sizeof labels);
	npz_add(npz, "node_attr", "<f4", "(2, 2)", features, sizeof features);
	npz_add(npz, "y_a", "<f4", "(1,)", features, sizeof *features);
	npz_add(npz, "y_b", "<f4", "(1,)", features, sizeof *features);
	npz_end(npz, 0);
	write_text(scratch(0, "in.txt"), "7 1 0.5\n1 70000 2\n");
	write_text(scratch(0, "in.mtx"),
	           "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1\n3 1 2\n");
	write_text(scratch(0, "in_A.txt"), "1, 2\n2, 1\n");
	write_text(scratch(0, "in_graph_indicator.txt"), "1\n1\n2\n");
	write_text(scratch(0, "in_graph_labels.txt"), "1\n-1\n");
	write_text(scratch(0, "in_node_labels.txt"), "0\n1\n0\n");
	write_text(scratch(0, "in_node_attributes.txt"), "1, 2\n3, 4\n5, 6\n");
	write_text(scratch(0, "in_graph_attributes.txt"), "0.5\n1.5\n");
	write_text(scratch(0, "in_edge_labels.txt"), "7\n2\n");
	write_text(scratch(0, "in_edge_attributes.txt"), "1, 2\n3, 4\n");
	npz = npz_begin(scratch(0, "tu.zip"));
	npz_raw(npz, "z/z_A.txt", "1 2\n", 4);
	npz_raw(npz, "z/z_graph_indicator.txt", "1\n1\n", 4);
	npz_raw(npz, "z/z_graph_labels.txt", "1\n", 2);
	npz_end(npz, 0);
	npz = npz_begin(scratch(0, "gin.zip"));
	npz_raw(npz, "g/g.txt", "3\n2 0\n0 1 1 0.5\n1 0 2\n1 1\n0 0 1\n1 1\n0 0 3\n", 42);
	npz_raw(npz, "g/10fold_idx/test_idx-1.txt", "0\n", 2);
	npz_raw(npz, "g/10fold_idx/test_idx-2.txt", "1\n", 2);
	npz_raw(npz, "g/10fold_idx/test_idx-3.txt", "2\n", 2);
	npz_raw(npz, "g/10fold_idx/train_idx-1.txt", "1\n2\n", 4);
	npz_end(npz, 0);
	npz = npz_begin(scratch(0, "ogb.zip"));
	npz_raw(npz, "o/raw/num-node-list.csv.gz", "1\n2\n", 4);
	npz_raw(npz, "o/raw/num-edge-list.csv.gz", "0\n1\n", 4);
	npz_raw(npz, "o/raw/edge.csv.gz", "0,1\n", 4);
	npz_raw(npz, "o/raw/node-feat.csv.gz", "1\n2\n3\n", 6);
	npz_raw(npz, "o/raw/edge-feat.csv.gz", "5\n", 2);
	npz_raw(npz, "o/raw/graph-label.csv.gz", "1\n0\n", 4);
	npz_raw(npz, "o/split/s/train.csv.gz", "0\n", 2);
	npz_raw(npz, "o/split/s/valid.csv.gz", "\n", 1);
	npz_raw(npz, "o/split/s/test.csv.gz", "1\n", 2);
	npz_end(npz, 0);
	npz = npz_begin(scratch(0, "bolt.zip"));
	npz_raw(npz, "metadata.yaml", bolt, sizeof bolt - 1);
	npz_add(npz, "ends", "<i4", "(2, 1)", indices, sizeof indices);
	npz_add(npz, "x", "<f4", "(2, 2)", features, sizeof features);
	npz_add(npz, "w", "<f4", "(1, 4)", features, sizeof features);
	npz_add(npz, "s", "<i4", "(2,)", indices, sizeof indices);
	npz_add(npz, "y", "<i4", "(2,)", labels, sizeof labels);
	npz_end(npz, 0);
	npz = npz_begin(scratch(0, "dgl.zip"));
	npz_raw(npz, "meta.yaml", dgl, sizeof dgl - 1);
	npz_raw(npz, "n.csv", "graph_id,node_id,feat\n7,b,1\n5,10,2\n7,a,3\n", 41);
	npz_raw(npz, "e.csv", "graph_id,src_id,dst_id,feat\n7,b,a,1\n", 36);
	npz_raw(npz, "g.csv", "graph_id,label,train_mask\n5,1,1\n7,0,0\n", 38);
	npz_end(npz, 0);
	write_text(scratch(0, "in.graph"), "2 1 11\n9 2 5\n9 1 5\n");
	write_text(scratch(0, "m_edges.csv"), "a,b\n0,1\n");
	write_text(scratch(0, "m_target.csv"), "id,target\n0,tv\n1,radio\n");
	write_text(scratch(0, "m_features.json"), "{\"0\": [3], \"1\": []}");
	for (int k = 0; k < PLANETOID_MEMBERS; k++) {
		static struct pickle member;
		char name[32];
		snprintf(name, sizeof name, "ind.toy.%s", planetoid_members[k]);
		planetoid_member(&planetoid_toy, k, &member);
		write_bytes(scratch(0, name), member.bytes, member.count);
	}
	write_text(scratch(0, "x.csv"), "1\n2\n3\n4\n5\n6\n");
	write_text(scratch(0, "y.csv"), "id,y\n20,0\n10,1\n30,0\n40,1\n50,0\n1099511627776,0\n");
	write_text(scratch(0, "s.csv"), "train\ntrain\nval\ntest\ntest\nnone\n");
	hg_dataset *d = small_dataset(), *sparse = small_sparse();
	must_write(d, scratch(0, "in.h5"));
	must_write(sparse, scratch(0, "sparse.h5"));
	lossy_is_made();
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, NULL));
	d->order = calloc(6, sizeof *d->order);
	CHECK(d->order != NULL);
	for (int32_t i = 0; i < 6; i++)
		d->order[i] = i;
	CHECK_OK(hg_dataset_write_npz(d, scratch(0, "own.npz"), NULL, NULL));
	hg_dataset_free(d);
	hg_dataset_free(sparse);
}

/* The k-th allocation fails, for every k: the status is HG_ERR_NOMEM, and there is no dataset. When
 * no allocation is left to fail, the call succeeds. */
static void failed_allocations_make_no_dataset(void)
{
	inputs_are_made();
	for (size_t j = 0; j < sizeof makers / sizeof makers[0]; j++) {
		const char *format = makers[j].format, *input = makers[j].input;
		hg_status status = HG_ERR_NOMEM;
		int64_t k = 0;
		for (; status == HG_ERR_NOMEM; k++) {
			char message[HG_DATA_MESSAGE] = "";
			hg_dataset *d = NULL;
			allowed = k;
			status = input ? import_as(format, input, &d, message) : plant(&d, message);
			allowed = INT64_MAX;
			CHECK_MSG(status == HG_OK ||
			              (status == HG_ERR_NOMEM && !d && strstr(message, "out of memory")),
			          "%s of %s, allocation %d: %s, \"%s\"", format, input ? input : "nothing",
			          (int)k, hg_status_name(status), message);
			hg_dataset_free(d);
		}
		CHECK_MSG(k > 4, "%s made %d allocations only: are they counted?", format, (int)k);
	}
}

/* Importers with optional files take a failure while they look for one as a yes: they go on, or
 * they miss the file. Here the k-th allocation fails for every k until none is left. */
static void failed_allocations_beside_optional_files(void)
{
	static const char *const sets[][2] = {{"tu", "in_A.txt"}, {"ogb", "ogb.zip"}};
	for (size_t j = 0; j < sizeof sets / sizeof sets[0]; j++) {
		int injected = 1;
		inputs_are_made();
		for (int64_t k = 0; injected; k++) {
			char message[HG_DATA_MESSAGE] = "";
			hg_dataset *d = NULL;
			allowed = k;
			const hg_status status = import_as(sets[j][0], sets[j][1], &d, message);
			injected = allowed < 0;
			allowed = INT64_MAX;
			CHECK_MSG(status == HG_OK || (status == HG_ERR_NOMEM && injected) ||
			              (status < 0 && injected && strstr(message, "no such member")),
			          "%s, allocation %d: %s, \"%s\"", sets[j][0], (int)k, hg_status_name(status),
			          message);
			CHECK((status == HG_OK) == (d != NULL) && (!d || d->edge_feat));
			hg_dataset_free(d);
		}
	}
}

static hg_status job_write(hg_dataset **d, char *message)
{
	return hg_dataset_write(*d, scratch(0, "out.h5"), message);
}
static hg_status job_export(hg_dataset **d, char *message)
{
	return hg_dataset_write_npz(*d, scratch(0, "out.h5"), NULL, message);
}
static hg_status job_fitness(hg_dataset **d, char *message)
{
	hg_fitness *report = NULL;
	const hg_status status = hg_dataset_fitness(*d, NULL, NULL, &report, message);
	CHECK((status == HG_OK) == (report != NULL));
	hg_fitness_free(report);
	return status;
}
/* Sparse features that lose their spread, and a message to keep. */
static hg_status job_fitness_sparse(hg_dataset **d, char *message)
{
	hg_fitness *report = NULL;
	const hg_status status = hg_file_fitness(scratch(0, "lossy.h5"), NULL, &report, message);
	(void)d;
	CHECK((status == HG_OK) == (report != NULL));
	CHECK(!report || report->verdict == HG_SEVERITY_LOSS);
	hg_fitness_free(report);
	return status;
}
static hg_status job_symmetrize(hg_dataset **d, char *message)
{
	return hg_dataset_symmetrize(*d, message);
}
static hg_status job_loops(hg_dataset **d, char *message)
{
	return hg_dataset_self_loops(*d, message);
}
static hg_status job_component(hg_dataset **d, char *message)
{
	return hg_dataset_largest_component(*d, message);
}
static hg_status job_half(hg_dataset **d, char *message)
{
	return hg_dataset_features_to(*d, HG_F16, 0, message);
}

static hg_status job_reorder(hg_dataset **d, char *message)
{
	return hg_dataset_reorder(*d, "degree", NULL, NULL, message);
}
static hg_status job_walks(hg_dataset **d, char *message)
{
	return hg_dataset_positional(*d, HG_POSITIONAL_RANDOM_WALK, 3, NULL, message);
}
static hg_status job_laplacian(hg_dataset **d, char *message)
{
	return hg_dataset_positional(*d, HG_POSITIONAL_LAPLACIAN, 3, NULL, message);
}
static hg_status job_features(hg_dataset **d, char *message)
{
	return hg_dataset_load_features(*d, scratch(0, "x.csv"), message);
}
static hg_status job_labels(hg_dataset **d, char *message)
{
	return hg_dataset_load_labels(*d, scratch(0, "y.csv"), message);
}
static hg_status job_split(hg_dataset **d, char *message)
{
	return hg_dataset_load_split(*d, scratch(0, "s.csv"), message);
}
static hg_status job_target(hg_dataset **d, char *message)
{
	return hg_dataset_keep_target(*d, "energy", message);
}
static hg_status job_one_hot(hg_dataset **d, char *message)
{
	return hg_dataset_make_features(*d, HG_MADE_ONE_HOT_DEGREE, message);
}
static hg_status job_standardize(hg_dataset **d, char *message)
{
	return hg_dataset_standardize(*d, message);
}
static hg_status job_random(hg_dataset **d, char *message)
{
	return hg_dataset_split_random(*d, (const double[]){0.5, 0.25, 0.25}, 0, message);
}
static hg_status job_per_class(hg_dataset **d, char *message)
{
	return hg_dataset_split_per_class(*d, (const int64_t[]){1, 0, -1}, 0, message);
}
static hg_status job_fold(hg_dataset **d, char *message)
{
	return hg_dataset_fold(*d, 1, 3, message);
}
static hg_status job_make_folds(hg_dataset **d, char *message)
{
	return hg_dataset_make_folds(*d, 3, 1, message);
}
static hg_status job_communities(hg_dataset **d, char *message)
{
	return hg_dataset_reorder(*d, "community", NULL, NULL, message);
}

/* The same for calls that change a dataset: after a failure it is as before, and there is no
 * file. */
static void failed_allocations_change_no_dataset(void)
{
	static const job jobs[] = {
	    job_write,   job_symmetrize,     job_loops,      job_component, job_half,        job_fold,
	    job_reorder, job_communities,    job_walks,      job_laplacian, job_features,    job_labels,
	    job_split,   job_one_hot,        job_random,     job_per_class, job_standardize, job_export,
	    job_fitness, job_fitness_sparse, job_make_folds, job_target};
	for (size_t j = 0; j < sizeof jobs / sizeof jobs[0]; j++) {
		hg_status status = HG_ERR_NOMEM;
		for (int64_t k = 0; status == HG_ERR_NOMEM; k++) {
			char message[HG_DATA_MESSAGE] = "";
			hg_dataset *d = small_dataset(), *before = small_dataset();
			allowed = k;
			status = jobs[j](&d, message);
			allowed = INT64_MAX;
			CHECK_MSG(status == HG_OK || status == HG_ERR_NOMEM,
			          "job %d, allocation %d: %s, \"%s\"", (int)j, (int)k, hg_status_name(status),
			          message);
			if (status < 0) {
				check_same(d, before);
				CHECK(!file_exists(scratch(0, "out.h5")) && count_scratch(".tmp") == 0);
			}
			hg_dataset_free(d);
			hg_dataset_free(before);
		}
		if (file_exists(scratch(0, "out.h5")))
			CHECK(remove(scratch(0, "out.h5")) == 0);
	}
}

/* The same on the way to a device, in the forms that take memory of this library. */
static void uploads(void)
{
	hg_context *ctx = NULL;
	CHECK_OK(hg_context_create(
	    &(hg_context_config){.size = sizeof(hg_context_config), .device = HG_DEVICE_CPU}, &ctx));
	for (int stored_sparse = 0; stored_sparse < 2; stored_sparse++) {
		hg_dataset *d = stored_sparse ? small_sparse() : small_dataset();
		hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
		hg_status status = HG_ERR_NOMEM;
		int64_t k = 0;
		config.features = stored_sparse ? HG_UPLOAD_DENSE : HG_UPLOAD_SPARSE;
		config.edge_labels = 1;
		for (; status == HG_ERR_NOMEM; k++) {
			char message[HG_DATA_MESSAGE] = "";
			hg_device_data *data = NULL;
			hg_rows_advice advice = HG_ROWS_ADVICE_INIT;
			allowed = k;
			status = hg_dataset_upload(d, ctx, &config, &data, message);
			if (status >= 0)
				status = hg_dataset_advise_rows(d, &advice, message);
			allowed = INT64_MAX;
			CHECK_MSG(status == HG_OK || (status == HG_ERR_NOMEM && *message),
			          "allocation %d: %s, \"%s\"", (int)k, hg_status_name(status), message);
			hg_device_data_free(data);
		}
		CHECK_MSG(k > 3, "%d allocations only: are they counted?", (int)k);
		hg_dataset_free(d);
	}
	hg_context_free(ctx);
}

/* A weight with its moments, a buffer, a setting. */
static hg_state *small_state(void)
{
	const hg_setting setting = {.name = "policy.name", .kind = HG_SETTING_TEXT, .text = "fp16"};
	hg_state *state = NULL;
	CHECK_OK(hg_state_create(&state));
	CHECK_OK(hg_state_add_tensor(state, "conv0.weight", 3, 4, 2, NULL));
	CHECK_OK(hg_state_add_tensor(state, "norm.mean", 1, 4, 0, NULL));
	CHECK_OK(hg_state_add_group(state, &(hg_state_group){0.01f, 0.0f}));
	CHECK_OK(hg_state_add_setting(state, &setting));
	state->loss_scale.scale = 1.0f;
	state->best.step = 1;
	state->best.metric = HG_METRIC_ACCURACY;
	CHECK_OK(hg_state_add_best(state));
	CHECK_OK(hg_state_add_epoch(state, &(hg_state_epoch){.step = 1}));
	return state;
}

/* The same for failed_allocations_make_no_checkpoint: after a failure there is no state, or no
 * file. */
static void failed_allocations_make_no_checkpoint(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_state *good = small_state();
	for (int writing = 1; writing >= 0; writing--) {
		hg_status status = HG_ERR_NOMEM;
		int64_t k = 0;
		for (; status == HG_ERR_NOMEM; k++) {
			hg_state *state = NULL;
			*message = 0;
			allowed = k;
			status = writing ? hg_checkpoint_write(good, scratch(0, "cp.h5"), message)
			                 : hg_checkpoint_read(scratch(0, "cp.h5"), &state, message);
			allowed = INT64_MAX;
			CHECK_MSG(status == HG_OK || (status == HG_ERR_NOMEM && *message),
			          "%s, allocation %d: %s, \"%s\"", writing ? "write" : "read", (int)k,
			          hg_status_name(status), message);
			CHECK((status == HG_OK && !writing) == (state != NULL));
			CHECK(count_scratch(".tmp") == 0 &&
			      (status == HG_OK || !writing || !file_exists(scratch(0, "cp.h5"))));
			hg_state_free(state);
		}
		/* a writer allocates two names */
		CHECK_MSG(k > 2, "%d allocations only: are they counted?", (int)k);
	}
	hg_state_free(good);
}

/* The same for failed_allocations_change_no_state, which keep their content. */
static void failed_allocations_change_no_state(void)
{
	const hg_setting setting = {.name = "seed", .kind = HG_SETTING_INTEGER, .integer = 3};
	hg_state *state = small_state();
	for (int which = 0; which < 2; which++) {
		hg_status status = HG_ERR_NOMEM;
		for (int64_t k = 0; status == HG_ERR_NOMEM; k++) {
			allowed = k;
			status = which ? hg_state_add_setting(state, &setting)
			               : hg_state_add_tensor(state, "conv1.weight", 2, 2, 2, NULL);
			allowed = INT64_MAX;
			CHECK_EQ_I(state->tensors, status == HG_OK || which ? 3 : 2);
			CHECK_EQ_I(state->settings, status == HG_OK && which ? 2 : 1);
		}
		CHECK_STATUS(status, HG_OK);
	}
	hg_state_free(state);
}

/* A small trained model in a file. */
static void model_is_made(hg_context *ctx)
{
	const int32_t labels[] = {0, 1, 2, 0, 1, 0};
	const float x[6 * 3] = {1, 0, 0, 0, 1};
	hg_train_config c = hg_train_config_default("gcn");
	hg_train_data in = HG_TRAIN_DATA_INIT;
	hg_train *train = NULL;
	hg_device_data *data = NULL;
	hg_dataset *d = small_dataset();
	hg_upload_config upload = HG_UPLOAD_CONFIG_INIT;
	memcpy(d->feat, x, sizeof x);
	CHECK_OK(hg_dataset_upload(d, ctx, &upload, &data, NULL));
	in.input.graph = data->graph;
	in.input.x = data->x;
	in.labels = labels;
	in.column_mean = (const double[]){0, 1, 0};
	in.column_deviation = (const double[]){1, 2, 1};
	c.model.hidden = 4;
	CHECK_OK(hg_train_create(ctx, &c, &in, &train));
	CHECK_OK(hg_model_save(train, scratch(0, "model.h5"), NULL));
	hg_train_free(train);
	hg_device_data_free(data);
	hg_dataset_free(d);
}

/* The same for a model that is read, predicts and has its predictions written: after a failure
 * there is no prediction, and no file. */
static hg_status predict_into(hg_context *ctx, hg_dataset *d, const char *path, char *message)
{
	hg_predictor *p = NULL;
	hg_prediction *prediction = NULL;
	hg_evaluation found = HG_EVALUATION_INIT;
	hg_predict_config config = HG_PREDICT_CONFIG_INIT;
	hg_status status = hg_model_load(ctx, scratch(0, "model.h5"), &p, message);
	CHECK((status >= 0) == (p != NULL));
	config.embed = config.prepare = 1;
	if (status >= 0)
		status = hg_dataset_predict_with(d, p, &config, &prediction, message);
	CHECK((status >= 0) == (prediction != NULL));
	if (status >= 0)
		status = hg_prediction_evaluate(prediction, d, HG_METRIC_NONE, &found, message);
	if (status >= 0)
		status = hg_prediction_write(prediction, path, message);
	hg_prediction_free(prediction);
	hg_predictor_free(p);
	return status;
}

/* Weights that go out and come in: after a failure there is no file, and the weights stay. */
static void failed_allocations_move_no_weights(void)
{
	hg_context *ctx = NULL;
	hg_params *params = NULL;
	hg_model *model = NULL;
	hg_model_config c = hg_model_config_default("gin");
	c.in_features = 3;
	c.out_features = 2;
	c.hidden = 2;
	CHECK_OK(hg_context_create(
	    &(hg_context_config){.size = sizeof(hg_context_config), .device = HG_DEVICE_CPU}, &ctx));
	CHECK_OK(hg_params_create(ctx, NULL, &params));
	CHECK_OK(hg_model_create(params, &c, &model));
	for (int which = 0; which < 4; which++) { /* out and in, with both kinds of names */
		const char *path = scratch(0, which < 2 ? "w.safetensors" : "plain.safetensors");
		const hg_model_config *names = which < 2 ? &c : NULL;
		hg_status status = HG_ERR_NOMEM;
		int64_t k = 0;
		for (; status == HG_ERR_NOMEM; k++) {
			char message[HG_DATA_MESSAGE] = "";
			allowed = k;
			status = which % 2 ? hg_params_import(params, names, path, message)
			                   : hg_params_export(params, names, path, message);
			allowed = INT64_MAX;
			CHECK_MSG(status == HG_OK || (status == HG_ERR_NOMEM && *message),
			          "call %d, allocation %d: %s, \"%s\"", which, (int)k, hg_status_name(status),
			          message);
			CHECK(count_scratch(".tmp") == 0 && (file_exists(path) || status < 0));
		}
		CHECK_MSG(k > 10, "%d allocations only: are they counted?", (int)k);
	}
	hg_model_free(model);
	hg_params_free(params);
	hg_context_free(ctx);
}

static void failed_allocations_make_no_prediction(void)
{
	static const char *const names[] = {"p.csv", "p.npz", "p.h5"};
	hg_context *ctx = NULL;
	CHECK_OK(hg_context_create(
	    &(hg_context_config){.size = sizeof(hg_context_config), .device = HG_DEVICE_CPU}, &ctx));
	model_is_made(ctx);
	hg_dataset *d = small_dataset(); /* as it was before it was standardised */
	free(d->feat_mean);
	free(d->feat_deviation);
	d->feat_mean = d->feat_deviation = NULL;
	for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) {
		hg_status status = HG_ERR_NOMEM;
		int64_t k = 0;
		for (; status == HG_ERR_NOMEM; k++) {
			char message[HG_DATA_MESSAGE] = "";
			allowed = k;
			status = predict_into(ctx, d, scratch(1, names[j]), message);
			allowed = INT64_MAX;
			CHECK_MSG(status == HG_OK || (status == HG_ERR_NOMEM && *message),
			          "%s, allocation %d: %s, \"%s\"", names[j], (int)k, hg_status_name(status),
			          message);
			CHECK(count_scratch(".tmp") == 0 && file_exists(scratch(1, names[j])) == (status == 0));
		}
		CHECK_MSG(k > 10, "%d allocations only: are they counted?", (int)k);
	}
	hg_dataset_free(d);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(failed_allocations_make_no_dataset),    TEST(failed_allocations_beside_optional_files),
	    TEST(failed_allocations_change_no_dataset),  TEST(uploads),
	    TEST(failed_allocations_make_no_checkpoint), TEST(failed_allocations_change_no_state),
	    TEST(failed_allocations_make_no_prediction), TEST(failed_allocations_move_no_weights)};
	return RUN_TESTS(argc, argv, cases);
}
