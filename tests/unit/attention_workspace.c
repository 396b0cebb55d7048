/* The workspace of attention with scores from whole rows, on a graph with rows and columns so long
 * that a plan splits them: a GPU has a staging slot for each that the plan uses, and for no other.
 * Kernels keep to what they ask for: the bytes behind it keep a pattern. */
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "graphs.h"
#include "kernels/kernels.h"

enum { NODES = 3000, HEADS = 2, WIDTH = 64, BEHIND = 1 << 16, PATTERN = 0xA5 };

/* A ring, and a node with edges to and from all others. */
static struct coo ring_with_a_hub(void)
{
	struct coo list = coo_ring(NODES);
	for (int64_t i = 2; i < NODES - 1; i++) {
		coo_add(&list, 0, i);
		coo_add(&list, i, 0);
	}
	return list;
}

enum { IN_Q, IN_K, IN_V, IN_DY, IN_C, OUT_Y, OUT_DQ, OUT_DK, OUT_DV, OUT_LOG_SUM, OUT_DC, TENSORS };

struct run {
	hg_context *ctx;
	hg_graph *graph;
	hg_tensor *tensor[TENSORS];
	struct hg__attention_args forward;
	struct hg__attention_back_args back;
};

static hg_tensor *random_tensor(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols)
{
	hg_tensor *t = NULL;
	float *x = malloc((size_t)(rows * cols) * sizeof *x);
	CHECK(x);
	for (int64_t i = 0; i < rows * cols; i++)
		x[i] = (float)test_normal();
	CHECK_OK(hg_tensor_create(ctx, dtype, rows, cols, &t));
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	free(x);
	return t;
}

static void run_open(struct run *r, hg_score score)
{
	memset(r, 0, sizeof *r);
	r->ctx = test_context();
	r->graph = coo_graph(r->ctx, ring_with_a_hub());
	for (int i = 0; i < TENSORS; i++)
		r->tensor[i] =
		    i == OUT_LOG_SUM ? random_tensor(r->ctx, HG_F32, NODES, HEADS)
		    : i == IN_C || i == OUT_DC
		        ? random_tensor(r->ctx, HG_F32, 1, score == HG_SCORE_COSINE ? HEADS : WIDTH)
		        : random_tensor(r->ctx, HG_F16, NODES, WIDTH);
	r->forward.of = (struct hg__attention){.score = score,
	                                       .heads = HEADS,
	                                       .slope = 0.25f,
	                                       .scale = 0.125f,
	                                       .q = r->tensor[IN_Q]->mat,
	                                       .k = r->tensor[IN_K]->mat,
	                                       .v = r->tensor[IN_V]->mat};
	CHECK_OK(hg__graph_csr(r->graph, &r->forward.csr));
	CHECK_OK(hg__graph_csr_t(r->graph, 0, &r->back.csr_t));
	if (score != HG_SCORE_DOT) {
		r->forward.of.c = r->tensor[IN_C]->mat;
		r->back.dc = r->tensor[OUT_DC]->mat;
	}
	r->forward.y = r->back.y = r->tensor[OUT_Y]->mat;
	r->forward.log_sum = r->back.log_sum = r->tensor[OUT_LOG_SUM]->mat;
	r->back.csr = r->forward.csr;
	r->back.of = r->forward.of;
	r->back.dy = r->tensor[IN_DY]->mat;
	r->back.dq = r->tensor[OUT_DQ]->mat;
	r->back.dk = r->tensor[OUT_DK]->mat;
	r->back.dv = r->tensor[OUT_DV]->mat;
	CHECK(r->forward.csr.plan->splits > 0 && r->back.csr_t.plan->splits > 0);
	CHECK(r->forward.csr.plan->slots < 2 * r->forward.csr.plan->items);
}

static void run_close(struct run *r)
{
	for (int i = 0; i < TENSORS; i++)
		hg_tensor_free(r->tensor[i]);
	hg_graph_free(r->graph);
	hg_context_free(r->ctx);
}

/* Makes a workspace of `asked` bytes and BEHIND more, all of them PATTERN. */
static char *fill_workspace(struct run *r, size_t asked)
{
	void *memory = NULL;
	CHECK_OK(hg__workspace(r->ctx, asked + BEHIND, &memory));
	CHECK_OK(r->ctx->backend->fill(r->ctx, memory, PATTERN, asked + BEHIND));
	return memory;
}

static void check_behind(struct run *r, const char *memory, size_t asked)
{
	unsigned char *behind = malloc(BEHIND);
	CHECK(behind);
	CHECK_OK(r->ctx->backend->copy_out(r->ctx, behind, memory + asked, BEHIND));
	for (size_t i = 0; i < BEHIND; i++)
		CHECK_MSG(behind[i] == PATTERN, "byte %zu behind the workspace was written", i);
	free(behind);
}

static void kernels_keep_to_their_workspace(void)
{
	for (int score = HG_SCORE_DOT; score < HG_SCORE_COUNT; score++) {
		struct run r;
		run_open(&r, (hg_score)score);
		const struct hg__kernels *kernels = r.ctx->backend->kernels;
		size_t asked = kernels->attention.workspace(r.ctx, &r.forward);
		const char *memory = fill_workspace(&r, asked);
		CHECK_OK(kernels->attention.run(r.ctx, &r.forward));
		check_behind(&r, memory, asked);
		asked = kernels->attention_back.workspace(r.ctx, &r.back);
		memory = fill_workspace(&r, asked);
		CHECK_OK(kernels->attention_back.run(r.ctx, &r.back));
		check_behind(&r, memory, asked);
		run_close(&r);
	}
}

/* Bytes of `count` staging slots of so many columns. */
static size_t slots_of(const struct hg__csr *csr, int64_t cols)
{
	return (size_t)(csr->plan->slots * hg__leading(cols)) * sizeof(float);
}

/* Forward, a slot has the sums, and two numbers of each head; backward, it has the sums of dK and
 * dV, or of dQ, which come after a log sum and D of each row and head. */
static void gpu_has_a_slot_for_each_that_is_used(void)
{
	struct run r;
	run_open(&r, HG_SCORE_DOT);
	const struct hg__kernels *kernels = r.ctx->backend->kernels;
	const int is_cpu = !r.ctx->backend->tiles_count;
	const size_t columns = slots_of(&r.back.csr_t, 2 * WIDTH),
	             rows = slots_of(&r.forward.csr, WIDTH),
	             records = (NODES * HEADS * 2 * sizeof(float) + 255) / 256 * 256;
	if (!is_cpu) {
		CHECK_EQ_I(kernels->attention.workspace(r.ctx, &r.forward),
		           slots_of(&r.forward.csr, WIDTH + 2 * HEADS));
		CHECK_EQ_I(kernels->attention_back.workspace(r.ctx, &r.back),
		           records + (columns > rows ? columns : rows));
		/* without the pass over the columns, there are no sums of it */
		r.back.dk = r.back.dv = (struct hg__mat){0};
		CHECK_EQ_I(kernels->attention_back.workspace(r.ctx, &r.back), records + rows);
	}
	run_close(&r);
	if (is_cpu)
		SKIP("the CPU has no such kernel");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(kernels_keep_to_their_workspace),
	    TEST(gpu_has_a_slot_for_each_that_is_used),
	};
	return RUN_TESTS(argc, argv, cases);
}
