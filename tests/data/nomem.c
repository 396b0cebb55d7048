/* Missing memory is a status. Every allocation of the library is made to fail, one at a time. (The
 * linker redirects its malloc, calloc and realloc to this file.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	return table->import(&path, 1, NULL, d, message);
}

static hg_status job_npz(hg_dataset **d, char *message)
{
	return import_as("npz", "in.npz", d, message);
}
static hg_status job_edges(hg_dataset **d, char *message)
{
	return import_as("edges", "in.txt", d, message);
}
static hg_status job_mtx(hg_dataset **d, char *message)
{
	return import_as("mtx", "in.mtx", d, message);
}
static hg_status job_tu(hg_dataset **d, char *message)
{
	return import_as("tu", "in_A.txt", d, message);
}
static hg_status job_read(hg_dataset **d, char *message)
{
	return hg_dataset_read(scratch(0, "in.h5"), d, message);
}
static hg_status job_read_sparse(hg_dataset **d, char *message)
{
	return hg_dataset_read(scratch(0, "sparse.h5"), d, message);
}
static hg_status job_planted(hg_dataset **d, char *message)
{
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	config.nodes = 200;
	config.hub_degree = 50;
	return hg_dataset_planted(&config, d, message);
}

static void inputs_are_made(void)
{
	static const int64_t shape[] = {2, 2};
	static const int32_t indptr[] = {0, 2, 2}, indices[] = {1, 0}, labels[] = {0, 1};
	static const float features[] = {1, 2, 3, 4};
	struct npz_out *npz = npz_begin(scratch(0, "in.npz"));
	npz_add(npz, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(npz, "adj_indptr", "<i4", "(3,)", indptr, sizeof indptr);
	npz_add(npz, "adj_indices", "<i4", "(2,)", indices, sizeof indices);
	npz_add(npz, "attr_matrix", "<f4", "(2, 2)", features, sizeof features);
	npz_add(npz, "labels", "<i4", "(2,)", labels, sizeof labels);
	npz_end(npz, 0);
	write_text(scratch(0, "in.txt"), "7 1 0.5\n1 70000 2\n");
	write_text(scratch(0, "in.mtx"),
	           "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1\n3 1 2\n");
	write_text(scratch(0, "in_A.txt"), "1, 2\n2, 1\n");
	write_text(scratch(0, "in_graph_indicator.txt"), "1\n1\n2\n");
	write_text(scratch(0, "in_graph_labels.txt"), "1\n-1\n");
	write_text(scratch(0, "in_node_labels.txt"), "0\n1\n0\n");
	write_text(scratch(0, "in_node_attributes.txt"), "1, 2\n3, 4\n5, 6\n");
	hg_dataset *d = small_dataset(), *sparse = small_sparse();
	must_write(d, scratch(0, "in.h5"));
	must_write(sparse, scratch(0, "sparse.h5"));
	hg_dataset_free(d);
	hg_dataset_free(sparse);
}

/* The k-th allocation fails, for every k: the status is HG_ERR_NOMEM, and there is no dataset. When
 * no allocation is left to fail, the call succeeds. */
static void failed_allocations_make_no_dataset(void)
{
	static const job jobs[] = {job_npz,  job_edges,       job_mtx,    job_tu,
	                           job_read, job_read_sparse, job_planted};
	inputs_are_made();
	for (size_t j = 0; j < sizeof jobs / sizeof jobs[0]; j++) {
		hg_status status = HG_ERR_NOMEM;
		int64_t k = 0;
		for (; status == HG_ERR_NOMEM; k++) {
			char message[HG_DATA_MESSAGE] = "";
			hg_dataset *d = NULL;
			allowed = k;
			status = jobs[j](&d, message);
			allowed = INT64_MAX;
			CHECK_MSG(status == HG_OK ||
			              (status == HG_ERR_NOMEM && !d && strstr(message, "out of memory")),
			          "job %d, allocation %d: %s, \"%s\"", (int)j, (int)k, hg_status_name(status),
			          message);
			hg_dataset_free(d);
		}
		CHECK_MSG(k > 4, "job %d made %d allocations only: are they counted?", (int)j, (int)k);
	}
}

static hg_status job_write(hg_dataset **d, char *message)
{
	return hg_dataset_write(*d, scratch(0, "out.h5"), message);
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
static hg_status job_fold(hg_dataset **d, char *message)
{
	return hg_dataset_fold(*d, 1, 3, message);
}
static hg_status job_communities(hg_dataset **d, char *message)
{
	return hg_dataset_reorder(*d, "community", NULL, NULL, message);
}

/* The same for calls that change a dataset: after a failure it is as before, and there is no
 * file. */
static void failed_allocations_change_no_dataset(void)
{
	static const job jobs[] = {job_write, job_symmetrize, job_loops,   job_component,
	                           job_half,  job_fold,       job_reorder, job_communities,
	                           job_walks, job_laplacian};
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
	CHECK_OK(hg_state_add_setting(state, &setting));
	state->loss_scale.scale = 1.0f;
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

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(failed_allocations_make_no_dataset), TEST(failed_allocations_change_no_dataset),
	    TEST(uploads), TEST(failed_allocations_make_no_checkpoint),
	    TEST(failed_allocations_change_no_state)};
	return RUN_TESTS(argc, argv, cases);
}
