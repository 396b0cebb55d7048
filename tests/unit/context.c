/* Contexts: their configuration, the memory and errors and log lines that they account for, and the
 * objects that keep a freed context alive. */
#include "core/context.h"

#include <omp.h>
#include <string.h>

#include "core/dlpack_abi.h"
#include "core/versioned.h"
#include "graphs.h"
#include "halfgraph/ops_graph.h"
#include "unit/faulty.h"
#include "unit/log_record.h"

static hg_context_config defaults(void)
{
	const hg_context_config c = HG_CONTEXT_CONFIG_INIT;
	return c;
}

static void context_reports_device_and_seed(void)
{
	hg_context *ctx = test_context();
	CHECK(hg_context_device(ctx) == HG_DEVICE_CPU || hg_context_device(ctx) == HG_DEVICE_CUDA);
	CHECK(strlen(hg_context_device_name(ctx)) > 0);
	CHECK_EQ_I(hg_context_seed(ctx), test_seed());
	CHECK_STR(hg_context_error(ctx), "");
	CHECK_OK(hg_context_synchronize(ctx));
	hg_context_free(ctx);
	hg_context_free(NULL);
}

static void default_config_opens_a_device(void)
{
	hg_context *ctx = NULL;
	CHECK_OK(hg_context_create(NULL, &ctx));
	CHECK(hg_context_device(ctx) != HG_DEVICE_AUTO);
	test_note("auto: %s", hg_context_device_name(ctx));
	hg_context_free(ctx);
}

static void refused(const hg_context_config *c, hg_status status, const char *part)
{
	static int64_t somewhere;
	hg_context *ctx = (hg_context *)(void *)&somewhere;
	CHECK_STATUS(hg_context_create(c, &ctx), status);
	CHECK(ctx == NULL);
	CHECK_CONTAINS(hg_context_error(NULL), part);
}

static void bad_config_is_refused_by_field_name(void)
{
	hg_context_config c = defaults();
	c.device = (hg_device)7;
	refused(&c, HG_ERR_ARG, "device is 7, expected an hg_device, 0 to 2");
	c = defaults();
	c.device_index = -1;
	refused(&c, HG_ERR_ARG, "device_index is -1");
	c = defaults();
	c.threads = -2;
	refused(&c, HG_ERR_ARG, "threads is -2");
	c.threads = 100000000; /* more threads than any machine can start */
	refused(&c, HG_ERR_ARG, "threads is 100000000, expected 0 (as many as OpenMP gives) to 1024");
	c.threads = HG_THREADS_MAX + 1;
	refused(&c, HG_ERR_ARG, "threads is 1025");
	c = defaults();
	c.log_level = (hg_log_level)9;
	refused(&c, HG_ERR_ARG, "log_level is 9");
	c = defaults();
	c.allocator.alloc = faulty_alloc;
	refused(&c, HG_ERR_ARG, "allocator has alloc without free");
	c = defaults();
	c.size = 0;
	refused(&c, HG_ERR_ARG, "size");
	c = defaults();
	c.size = 100000; /* beyond the struct there is no memory to read */
	refused(&c, HG_ERR_ARG, "size");
	CHECK_STATUS(hg_context_create(NULL, NULL), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(NULL), "NULL");
}

static void missing_cuda_device_is_unsupported(void)
{
	hg_context_config c = defaults();
	hg_context *ctx = NULL;
	c.device = HG_DEVICE_CUDA;
	if (hg_context_create(&c, &ctx) == HG_OK) {
		hg_context_free(ctx);
		SKIP("a CUDA device is here");
	}
	refused(&c, HG_ERR_UNSUPPORTED, "CUDA");
}

/* A program that was compiled with older headers passes a shorter struct, one with newer headers a
 * longer one. */
static void older_and_newer_config_structs_are_read(void)
{
	struct {
		hg_context_config now;
		int64_t later;
	} newer = {defaults(), 0};
	hg_context *ctx = NULL;
	newer.now.size = sizeof newer;
	newer.now.device = HG_DEVICE_CPU;
	newer.now.seed = 5;
	CHECK_OK(hg_context_create(&newer.now, &ctx));
	CHECK_EQ_I(hg_context_seed(ctx), 5);
	hg_context_free(ctx);
	newer.later = 1;
	refused(&newer.now, HG_ERR_ARG, "unknown"); /* the library would ignore the field */
	hg_context_config older = defaults();
	older.size = offsetof(hg_context_config, seed);
	older.device = HG_DEVICE_CPU;
	older.seed = 77; /* not part of the older struct: must not be read */
	CHECK_OK(hg_context_create(&older, &ctx));
	CHECK_EQ_I(hg_context_seed(ctx), 0);
	hg_context_free(ctx);
}

static void result_struct_is_filled_up_to_its_size(void)
{
	hg_context *ctx = test_context();
	hg_memory_info info = HG_MEMORY_INFO_INIT;
	info.size = offsetof(hg_memory_info, peak_bytes);
	info.peak_bytes = 123;
	CHECK_OK(hg_context_memory(ctx, &info));
	CHECK(info.peak_bytes == 123 && info.size == offsetof(hg_memory_info, peak_bytes));
	info.size = 0;
	CHECK_STATUS(hg_context_memory(ctx, &info), HG_ERR_ARG);
	CHECK_STATUS(hg_context_memory(ctx, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_context_memory(NULL, &info), HG_ERR_ARG);
	hg_context_free(ctx);
}

static void tensor_memory_is_counted(void)
{
	hg_context *ctx = test_context();
	hg_memory_info info = HG_MEMORY_INFO_INIT;
	hg_tensor *a, *b;
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 100, 8, &a));
	CHECK_OK(hg_tensor_create(ctx, HG_F16, 100, 3, &b));
	CHECK_OK(hg_context_memory(ctx, &info));
	CHECK_EQ_I(info.current_bytes, 100 * 8 * 4 + 100 * 8 * 2);
	hg_tensor_free(a);
	CHECK_OK(hg_context_memory(ctx, &info));
	CHECK_EQ_I(info.current_bytes, 100 * 8 * 2);
	CHECK_EQ_I(info.peak_bytes, 100 * 8 * 4 + 100 * 8 * 2);
	CHECK(info.device_total_bytes > 0 && info.device_free_bytes <= info.device_total_bytes);
	hg_tensor_free(b);
	CHECK_OK(hg_context_memory(ctx, &info));
	CHECK_EQ_I(info.current_bytes, 0);
	hg_context_free(ctx);
}

static void workspace_grows_and_never_shrinks(void)
{
	hg_context *ctx = test_context();
	void *a, *b;
	CHECK_OK(hg__workspace(ctx, 0, &a));
	CHECK_OK(hg__workspace(ctx, 1000, &a));
	CHECK_OK(hg__workspace(ctx, 500, &b));
	CHECK(a == b && a);
	CHECK_EQ_I(ctx->current_bytes, 1000);
	CHECK_OK(hg__workspace(ctx, 5000, &a));
	CHECK_EQ_I(ctx->current_bytes, 5000);
	CHECK_EQ_I(ctx->peak_bytes, 5000);
	hg_context_free(ctx);
}

static void error_message_is_formatted_and_cut(void)
{
	hg_context *ctx = test_context();
	CHECK_STATUS(hg__fail(ctx, HG_ERR_SHAPE, "spmm: X has %d rows", 3), HG_ERR_SHAPE);
	CHECK_STR(hg_context_error(ctx), "spmm: X has 3 rows");
	/* The new message may contain the old one, which it replaces. */
	CHECK_STATUS(hg__fail(ctx, HG_ERR_ARG, "layer 2: %s", hg_context_error(ctx)), HG_ERR_ARG);
	CHECK_STR(hg_context_error(ctx), "layer 2: spmm: X has 3 rows");
	CHECK_STATUS(hg__fail(NULL, HG_ERR_ARG, "there is no context"), HG_ERR_ARG);
	char name[2 * HG__MESSAGE];
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = 0;
	CHECK_STATUS(hg__fail(ctx, HG_ERR_ARG, "%s", name), HG_ERR_ARG);
	CHECK_EQ_I(strlen(hg_context_error(ctx)), HG__MESSAGE - 1);
	hg_context_free(ctx);
}

static void log_gets_lines_of_its_level(void)
{
	struct log_record log;
	hg_context *ctx = log_record_context(&log, HG_LOG_INFO);
	log = (struct log_record){0};
	hg__log(ctx, HG_LOG_DEBUG, "too detailed");
	CHECK_EQ_I(log.lines, 0);
	hg__log(ctx, HG_LOG_INFO, "epoch %d", 7);
	CHECK_EQ_I(log.lines, 1);
	CHECK_STR(log.line[0], "epoch 7");
	hg__log(ctx, HG_LOG_ERROR, "bad");
	CHECK(log.lines == 2 && log.warnings == 0);
	CHECK_STR(log.line[1], "bad");
	hg_context_free(ctx);
	hg__log(NULL, HG_LOG_ERROR, "there is no context");
}

/* OMP_NUM_THREADS sets the number that omp_set_num_threads sets here. The context starts no
 * threads, so the test needs none either. */
static void threads_beyond_the_maximum_are_cut_and_logged(void)
{
	static const struct {
		int threads;
		hg_log_level level;
		int cut, logged;
	} cases[] = {{HG_THREADS_MAX, HG_LOG_INFO, 0, 0},
	             {HG_THREADS_MAX + 1, HG_LOG_INFO, 1, 1},
	             {100000, HG_LOG_INFO, 1, 1},
	             {100000, HG_LOG_WARN, 1, 0}};
	const int before = omp_get_max_threads();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct log_record log = {0};
		char said[64];
		hg_context_config c = defaults();
		hg_context *ctx;
		c.device = HG_DEVICE_CPU;
		c.log = log_record_line;
		c.log_user = &log;
		c.log_level = cases[i].level;
		omp_set_num_threads(cases[i].threads);
		const hg_status status = hg_context_create(&c, &ctx);
		omp_set_num_threads(before);
		CHECK_OK(status);
		CHECK_EQ_I(ctx->threads, cases[i].cut ? HG_THREADS_MAX : cases[i].threads);
		(void)snprintf(said, sizeof said, "OpenMP gives %d threads, 1024 of them are used",
		               cases[i].threads);
		CHECK_EQ_I(log_record_find(&log, said) != NULL, cases[i].logged);
		CHECK_EQ_I(log_record_find(&log, "OpenMP") != NULL, cases[i].logged);
		hg_context_free(ctx);
	}
}

static void allocator_hooks_see_every_byte(void)
{
	struct faulty f;
	hg_context *ctx = faulty_context(&f);
	hg_tensor *t;
	void *w;
	CHECK(f.out > 0); /* the context itself */
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 10, 10, &t));
	CHECK_OK(hg__workspace(ctx, 100, &w));
	hg_tensor_free(t);
	faulty_close(&f, ctx);
}

/* A context that is freed before its objects lives until the last of them is freed. It warns once,
 * and after that it never calls the caller's log function again. */
static void last_object_closes_a_freed_context(void)
{
	struct faulty f;
	struct log_record log = {0};
	hg_context *ctx = faulty_context(&f);
	hg_tensor *t;
	hg_graph *g;
	hg_params *p;
	hg_tape *tape;
	struct DLManagedTensorVersioned *loan;
	float x[6] = {1, 2, 3, 4, 5, 6}, back[6];
	void *kept;
	CHECK_OK(hg__workspace(ctx, 1000, &kept));
	CHECK_OK(hg_tensor_create(ctx, HG_F16, 3, 2, &t));
	g = coo_graph(ctx, coo_path(3));
	CHECK_OK(hg_params_create(ctx, NULL, &p));
	CHECK_OK(hg_tape_create(p, HG_EVAL, &tape));
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	CHECK_OK(hg_tensor_to_dlpack(t, NULL, &loan));
	ctx->log = log_record_line;
	ctx->log_user = &log;
	hg_context_free(ctx);
	CHECK(log.lines == 1 && log.warnings == 1);
	CHECK_CONTAINS(log.line[0], "freed before its objects");
	CHECK_OK(hg_tape_compile(
	    tape, hg_spmm(tape, g, hg_tape_input(tape, t, "x", 6.0), HG_NONE, HG_NORM_NONE, 1.0f)));
	CHECK_OK(hg_tape_forward(tape));
	CHECK(hg_tensor_download(NULL, back, HG_F32) < 0 && hg_tensor_download(t, back, HG_U8) < 0);
	CHECK_EQ_I(log.lines, 1);
	CHECK_STR(hg_context_error(hg_tensor_context(t)), "download: tensor is f16, host array is u8");
	CHECK_OK(hg_tensor_download(t, back, HG_F32));
	CHECK(memcmp(x, back, sizeof x) == 0);
	hg_tape_free(tape);
	hg_params_free(p);
	hg_graph_free(g);
	hg_tensor_free(t);
	CHECK(f.out > 0);
	loan->deleter(loan);
	CHECK(f.out == 0 && f.bytes == 0);
	hg_context_free(f.plain);
}

static void create_without_memory_fails(void)
{
	struct faulty f = {.fail_at = 0};
	hg_context_config c = defaults();
	hg_context *ctx;
	c.device = HG_DEVICE_CPU;
	c.allocator = faulty_hooks(&f);
	CHECK_STATUS(hg_context_create(&c, &ctx), HG_ERR_NOMEM);
	CHECK(ctx == NULL && f.out == 0);
	CHECK_CONTAINS(hg_context_error(NULL), "memory");
}

static void allocation_sizes_that_overflow_fail(void)
{
	hg_context *ctx = test_context();
	void *p;
	CHECK_STATUS(hg__host_alloc(ctx, SIZE_MAX / 2, 4, "array", &p), HG_ERR_NOMEM);
	CHECK(p == NULL);
	CHECK_CONTAINS(hg_context_error(ctx), "array");
	CHECK_STATUS(hg__host_alloc(ctx, SIZE_MAX - 3, 1, "array", &p), HG_ERR_NOMEM);
	CHECK_OK(hg__host_alloc(ctx, 0, 4, "array", &p));
	CHECK(p == NULL);
	CHECK_OK(hg__device_alloc(ctx, 0, "array", &p));
	CHECK(p == NULL);
	hg__device_free(ctx, NULL, 0);
	hg__host_free(ctx, NULL, 0);
	hg_context_free(ctx);
}

static void null_context_is_accepted(void)
{
	CHECK(hg_context_seed(NULL) == 0 && hg_context_device(NULL) == HG_DEVICE_AUTO);
	CHECK_STR(hg_context_device_name(NULL), "");
	CHECK_STATUS(hg_context_synchronize(NULL), HG_ERR_ARG);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(context_reports_device_and_seed),
	    TEST(default_config_opens_a_device),
	    TEST(bad_config_is_refused_by_field_name),
	    TEST(missing_cuda_device_is_unsupported),
	    TEST(older_and_newer_config_structs_are_read),
	    TEST(result_struct_is_filled_up_to_its_size),
	    TEST(tensor_memory_is_counted),
	    TEST(workspace_grows_and_never_shrinks),
	    TEST(error_message_is_formatted_and_cut),
	    TEST(log_gets_lines_of_its_level),
	    TEST(threads_beyond_the_maximum_are_cut_and_logged),
	    TEST(allocator_hooks_see_every_byte),
	    TEST(last_object_closes_a_freed_context),
	    TEST(create_without_memory_fails),
	    TEST(allocation_sizes_that_overflow_fail),
	    TEST(null_context_is_accepted),
	};
	return RUN_TESTS(argc, argv, cases);
}
