#include "core/context.h"

#include <stdio.h>
#include <string.h>

#include "core/dlpack_abi.h"
#include "core/versioned.h"
#include "halfgraph/ops_graph.h"
#include "unit/faulty.h"

static hg_context_config defaults(void)
{
	const hg_context_config c = HG_CONTEXT_CONFIG_INIT;
	return c;
}

static void a_context_knows_itself(void)
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

static void defaults_choose_a_device(void)
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

static void each_bad_field_is_named(void)
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
	c.threads = 100000000; /* a team that no machine can start */
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
	c.size = 100000; /* nothing behind the struct is read */
	refused(&c, HG_ERR_ARG, "size");
	CHECK_STATUS(hg_context_create(NULL, NULL), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(NULL), "NULL");
}

static void an_absent_device_is_said_to_be_absent(void)
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

/* A caller with older headers knows fewer fields, one with newer headers more. */
static void other_versions_are_understood(void)
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
	refused(&newer.now, HG_ERR_ARG, "unknown"); /* a field that would be ignored */
	hg_context_config older = defaults();
	older.size = offsetof(hg_context_config, seed);
	older.device = HG_DEVICE_CPU;
	older.seed = 77; /* beyond what the caller's struct has */
	CHECK_OK(hg_context_create(&older, &ctx));
	CHECK_EQ_I(hg_context_seed(ctx), 0);
	hg_context_free(ctx);
}

static void results_fill_what_the_caller_has(void)
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

static void memory_is_counted(void)
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

static void the_workspace_grows_and_stays(void)
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

static void errors_are_sentences(void)
{
	hg_context *ctx = test_context();
	CHECK_STATUS(hg__fail(ctx, HG_ERR_SHAPE, "spmm: X has %d rows", 3), HG_ERR_SHAPE);
	CHECK_STR(hg_context_error(ctx), "spmm: X has 3 rows");
	/* the old one inside the new one */
	CHECK_STATUS(hg__fail(ctx, HG_ERR_ARG, "layer 2: %s", hg_context_error(ctx)), HG_ERR_ARG);
	CHECK_STR(hg_context_error(ctx), "layer 2: spmm: X has 3 rows");
	CHECK_STATUS(hg__fail(NULL, HG_ERR_ARG, "nobody"), HG_ERR_ARG);
	char name[2 * HG__MESSAGE];
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = 0;
	CHECK_STATUS(hg__fail(ctx, HG_ERR_ARG, "%s", name), HG_ERR_ARG);
	CHECK_EQ_I(strlen(hg_context_error(ctx)), HG__MESSAGE - 1);
	hg_context_free(ctx);
}

struct heard {
	int lines, worst;
	char last[256];
};

static void listen(void *user, hg_log_level level, const char *message)
{
	struct heard *h = user;
	h->lines++;
	h->worst = (int)level > h->worst ? (int)level : h->worst;
	snprintf(h->last, sizeof h->last, "%s", message);
}

static void the_log_keeps_its_level(void)
{
	struct heard heard = {0};
	hg_context_config c = defaults();
	hg_context *ctx;
	c.device = HG_DEVICE_CPU;
	c.log = listen;
	c.log_user = &heard;
	c.log_level = HG_LOG_INFO;
	CHECK_OK(hg_context_create(&c, &ctx));
	heard.lines = heard.worst = 0;
	hg__log(ctx, HG_LOG_DEBUG, "too fine");
	CHECK_EQ_I(heard.lines, 0);
	hg__log(ctx, HG_LOG_INFO, "epoch %d", 7);
	CHECK_EQ_I(heard.lines, 1);
	CHECK_STR(heard.last, "epoch 7");
	hg__log(ctx, HG_LOG_ERROR, "bad");
	CHECK(heard.lines == 2 && heard.worst == (int)HG_LOG_INFO);
	hg_context_free(ctx);
	hg__log(NULL, HG_LOG_ERROR, "nobody");
}

static void hooks_see_every_byte(void)
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

/* Freed first, a context waits for what was made from it, warns once, and then forgets the caller's
 * log. */
static void the_last_object_closes_the_context(void)
{
	struct faulty f;
	struct heard heard = {0};
	hg_context *ctx = faulty_context(&f);
	hg_tensor *t;
	hg_graph *g;
	hg_params *p;
	hg_tape *tape;
	struct DLManagedTensorVersioned *loan;
	const int32_t dst[] = {1, 2}, src[] = {0, 1};
	float x[6] = {1, 2, 3, 4, 5, 6}, back[6];
	void *kept;
	CHECK_OK(hg__workspace(ctx, 1000, &kept));
	CHECK_OK(hg_tensor_create(ctx, HG_F16, 3, 2, &t));
	CHECK_OK(hg_graph_from_coo(ctx, 3, 3, 2, dst, src, NULL, NULL, &g));
	CHECK_OK(hg_params_create(ctx, NULL, &p));
	CHECK_OK(hg_tape_create(p, HG_EVAL, &tape));
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	CHECK_OK(hg_tensor_to_dlpack(t, NULL, &loan));
	ctx->log = listen;
	ctx->log_user = &heard;
	hg_context_free(ctx);
	CHECK(heard.lines == 1 && heard.worst == (int)HG_LOG_WARN);
	CHECK_CONTAINS(heard.last, "freed before its objects");
	CHECK_OK(hg_tape_compile(
	    tape, hg_spmm(tape, g, hg_tape_input(tape, t, "x", 6.0), HG_NONE, HG_NORM_NONE, 1.0f)));
	CHECK_OK(hg_tape_forward(tape));
	CHECK(hg_tensor_download(NULL, back, HG_F32) < 0 && hg_tensor_download(t, back, HG_U8) < 0);
	CHECK_EQ_I(heard.lines, 1);
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

static void no_memory_for_a_context(void)
{
	struct faulty f = {NULL, 0, 0, 0, 0};
	hg_context_config c = defaults();
	hg_context *ctx;
	c.device = HG_DEVICE_CPU;
	c.allocator.alloc = faulty_alloc;
	c.allocator.free = faulty_free;
	c.allocator.user = &f;
	CHECK_STATUS(hg_context_create(&c, &ctx), HG_ERR_NOMEM);
	CHECK(ctx == NULL && f.out == 0);
	CHECK_CONTAINS(hg_context_error(NULL), "memory");
}

static void sizes_that_overflow(void)
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

static void without_a_context(void)
{
	CHECK(hg_context_seed(NULL) == 0 && hg_context_device(NULL) == HG_DEVICE_AUTO);
	CHECK_STR(hg_context_device_name(NULL), "");
	CHECK_STATUS(hg_context_synchronize(NULL), HG_ERR_ARG);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_context_knows_itself),
	    TEST(defaults_choose_a_device),
	    TEST(each_bad_field_is_named),
	    TEST(an_absent_device_is_said_to_be_absent),
	    TEST(other_versions_are_understood),
	    TEST(results_fill_what_the_caller_has),
	    TEST(memory_is_counted),
	    TEST(the_workspace_grows_and_stays),
	    TEST(errors_are_sentences),
	    TEST(the_log_keeps_its_level),
	    TEST(hooks_see_every_byte),
	    TEST(the_last_object_closes_the_context),
	    TEST(no_memory_for_a_context),
	    TEST(sizes_that_overflow),
	    TEST(without_a_context),
	};
	return RUN_TESTS(argc, argv, cases);
}
