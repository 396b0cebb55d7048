/* Every public header is included twice, and the single ones before the one that includes them all.
 * So none of them depends on those before it, and all can be included again. (That each compiles
 * alone, as C11 and as C++17, is another test: tests/CMakeLists.txt.) */
#include "halfgraph/train.h"

#include "halfgraph/tensor.h"

#include "halfgraph/tape.h"

#include "halfgraph/step.h"

#include "halfgraph/status.h"

#include "halfgraph/shadow.h"

#include "halfgraph/schedule.h"

#include "halfgraph/progress.h"

#include "halfgraph/policy.h"

#include "halfgraph/param.h"

#include "halfgraph/order.h"

#include "halfgraph/optim.h"

#include "halfgraph/ops_attention.h"

#include "halfgraph/ops.h"

#include "halfgraph/model.h"

#include "halfgraph/metrics.h"

#include "halfgraph/graph.h"

#include "halfgraph/export.h"

#include "halfgraph/dtype.h"

#include "halfgraph/doctor.h"

#include "halfgraph/dlpack.h"

#include "halfgraph/upload.h"

#include "halfgraph/file.h"

#include "halfgraph/dataset.h"

#include "halfgraph/checkpoint.h"

#include "halfgraph/attach.h"

#include "halfgraph/data.h"

#include "halfgraph/context.h"

#include "halfgraph/halfgraph.h"

#include "harness.h"
#include "unit/inits.h"

static void every_initialiser_sets_the_size(void)
{
	const struct test_inits i = test_inits_make();
	CHECK(i.context.size == sizeof i.context && i.memory.size == sizeof i.memory &&
	      i.facts.size == sizeof i.facts);
	CHECK(i.loss_scale.size == sizeof i.loss_scale && i.plan.size == sizeof i.plan &&
	      i.optim.size == sizeof i.optim && i.step.size == sizeof i.step);
	CHECK(i.input.size == sizeof i.input && i.data.size == sizeof i.data &&
	      i.data.input.size == sizeof i.data.input && i.report.size == sizeof i.report);
	CHECK(i.locality.size == sizeof i.locality && i.order.size == sizeof i.order &&
	      i.order_report.size == sizeof i.order_report);
	CHECK(i.doctor.size == sizeof i.doctor);
	CHECK(i.planted.size == sizeof i.planted && i.step_config.size == sizeof i.step_config &&
	      i.step_launch.size == sizeof i.step_launch);
	CHECK(i.rows.size == sizeof i.rows && i.upload.size == sizeof i.upload &&
	      i.attention.size == sizeof i.attention);
	CHECK(i.order_report.before.size == sizeof i.locality &&
	      i.order_report.after.size == sizeof i.locality);
	CHECK(i.import.size == sizeof i.import && i.narrowing.size == sizeof i.narrowing &&
	      i.trial.size == sizeof i.trial && i.observer.size == sizeof i.observer &&
	      i.observation.size == sizeof i.observation);
}

static void defaults_are_the_documented_ones(void)
{
	const struct test_inits i = test_inits_make();
	CHECK(i.context.device == HG_DEVICE_AUTO && i.context.log == NULL &&
	      i.context.log_level == HG_LOG_WARN && i.context.allocator.alloc == NULL);
	CHECK(i.loss_scale.enabled && i.loss_scale.init_scale == 65536.0f);
	CHECK(i.optim.kind == HG_ADAM && i.optim.lr == 0.01f && i.optim.eps == 1e-8f);
	CHECK(i.input.x_amax < 0 && i.data.input.x_amax == i.input.x_amax);
	CHECK(i.attention.score == HG_SCORE_ADD && i.attention.heads == 1 &&
	      i.attention.slope == 0.2f && i.attention.scale == 1.0f && i.attention.dropout == 0.0f);
	CHECK(i.narrowing.node == -1 && i.narrowing.op[0] == 0 && i.step.overflow_node == -1);
}

/* Programs store values of these types, so their sizes must not change. */
static void small_types_have_fixed_sizes(void)
{
	CHECK(sizeof(hg_half) == 2 && sizeof(hg_var) == 4 && sizeof(hg_status) == 4 &&
	      sizeof(hg_dtype) == 4);
	CHECK(HG_F16 == 0 && HG_F32 == 1 && HG_I32 == 2 && HG_I64 == 3 && HG_U8 == 4);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(every_initialiser_sets_the_size),
	                                         TEST(defaults_are_the_documented_ones),
	                                         TEST(small_types_have_fixed_sizes)};
	return RUN_TESTS(argc, argv, cases);
}
