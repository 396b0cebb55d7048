#include "core/context.h"
#include "strict.h"
#include "suite/battery.h"

/* A case for each op of the table, on a device on which no kernel may use more workspace than it
 * declares. */

static void whole_battery(const void *item)
{
	const struct hg__op *op = item;
	hg_context *ctx = test_context();
	struct battery_score score = {0};
	strict_make(ctx);
	battery_op(ctx, ctx->backend->kernels, op, &score);
	test_note("%-12s worst err/bound %.3f over %lld elements of %lld samples (%s)", op->name,
	          score.worst, (long long)score.count, (long long)score.samples, score.where);
	CHECK_MSG(score.samples > 0, "%s offers no good sample", op->name);
	CHECK_MSG(score.worst <= 1, "%s: err/bound = %.3f at %s", op->name, score.worst, score.where);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	enum { MOST_OPS = 128 };
	struct test_case cases[MOST_OPS];
	size_t count = 0;
	const struct hg__op *const *ops = hg__op_list(&count);
	if (count > MOST_OPS)
		return 1;
	for (size_t i = 0; i < count; i++)
		cases[i] = (struct test_case){ops[i]->name, 0, whole_battery, ops[i]};
	return test_main(argc, argv, cases, (int)count);
}
