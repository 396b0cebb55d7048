#include <string.h>

#include "autograd/about.h"
#include "harness.h"

/* The table of ops. Every record is complete, and the check of records refuses one that lacks
 * something, by name. */

static void every_record_is_complete(void)
{
	size_t count = 0;
	const struct hg__op *const *ops = hg__op_list(&count);
	CHECK(count > 0);
	for (size_t i = 0; i < count; i++) {
		char why[HG__MESSAGE];
		const hg_status status = hg__op_check(ops[i], why);
		CHECK_MSG(status == HG_OK, "%s", why);
		CHECK_STR(why, "");
	}
}

static void names_are_unique(void)
{
	size_t count = 0;
	const struct hg__op *const *ops = hg__op_list(&count);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			CHECK_MSG(strcmp(ops[i]->name, ops[j]->name) != 0, "two ops are called %s",
			          ops[i]->name);
}

/* ops.def, the records and the table agree: line i is hg__op_NAME, whose name is NAME. */
static void names_are_those_of_the_list(void)
{
	static const char *const names[] = {
#define HG_OP(name) #name,
#include "autograd/ops.def"
#undef HG_OP
	};
	size_t count = 0;
	const struct hg__op *const *ops = hg__op_list(&count);
	CHECK_EQ_I(count, sizeof names / sizeof names[0]);
	for (size_t i = 0; i < count; i++)
		CHECK_STR(ops[i]->name, names[i]);
}

/* Good samples are operands that the op accepts, for all extents. A sampler gives the same samples
 * every time. */
static void samples_hold_at_every_extent(void)
{
	static const struct hg__extent extents[] = {{0, 0, 1, 4, 1, HG_F16},
	                                            {1, 0, 1, 1, 1, HG_F32},
	                                            {5, 12, 2, 0, 3, HG_F16},
	                                            {33, 200, 4, 17, 8, HG_F32}};
	size_t count = 0;
	const struct hg__op *const *ops = hg__op_list(&count);
	for (size_t o = 0; o < count; o++)
		for (size_t e = 0; e < sizeof extents / sizeof extents[0]; e++) {
			struct hg__sample a, b;
			memset(&a, 0x11, sizeof a);
			memset(&b, 0x22, sizeof b);
			for (int i = 0; ops[o]->sample(i, &extents[e], &a); i++) {
				CHECK_EQ_I(ops[o]->sample(i, &extents[e], &b), 1);
				CHECK_EQ_I(a.n_in, b.n_in);
				CHECK_EQ_I(a.expect, b.expect);
				CHECK_STR(a.what, b.what);
				CHECK(memcmp(a.attr, b.attr, sizeof a.attr) == 0);
				for (int k = 0; k < a.n_in; k++)
					CHECK_MSG(a.in[k].shape.rows >= 0 && a.in[k].shape.cols >= 0,
					          "%s, \"%s\": operand %d has a negative extent", ops[o]->name, a.what,
					          k);
			}
		}
}

/* The check itself is tested: each of these makes one mistake in a copy of a good record. */
static int no_samples(int i, const struct hg__extent *extent, struct hg__sample *sample)
{
	(void)i, (void)extent, (void)sample;
	return 0;
}

static struct hg__known leaves_unset(const struct hg__range *r, struct hg__derivation *how)
{
	(void)r, (void)how;
	return hg__at_most((double)NAN);
}
static void leaves_gradients_unset(const struct hg__range *r, struct hg__gradients *grad)
{
	(void)r, (void)grad;
}

static void plant_no_name(struct hg__op *op)
{
	op->name = NULL;
}
static void plant_bad_name(struct hg__op *op)
{
	op->name = "Re-lu";
}
static void plant_no_words(struct hg__op *op)
{
	op->words = "";
}
static void plant_no_infer(struct hg__op *op)
{
	op->infer = NULL;
}
static void plant_no_range_back(struct hg__op *op)
{
	op->range_back = NULL;
}
static void plant_no_backward(struct hg__op *op)
{
	op->backward = NULL;
}
static void plant_no_cost(struct hg__op *op)
{
	op->cost = NULL;
}
static void plant_too_many_operands(struct hg__op *op)
{
	op->max_in = HG__MAX_IN + 1;
}
static void plant_same_beyond(struct hg__op *op)
{
	op->same = 1u << HG__MAX_IN;
}
static void plant_batch_without_graph(struct hg__op *op)
{
	op->traits |= HG__BATCH;
}
static void plant_no_samples(struct hg__op *op)
{
	op->sample = no_samples;
}
static void plant_samples_without_graph(struct hg__op *op)
{
	op->traits = HG__GRAPH;
}
static void plant_empty_range(struct hg__op *op)
{
	op->range = leaves_unset;
}
static void plant_empty_range_back(struct hg__op *op)
{
	op->range_back = leaves_gradients_unset;
}

static void plant_role_beyond(struct hg__op *op)
{
	static const struct hg__about about = {.operand = {"x", "y"}};
	op->about = &about;
}
static void plant_addend_beyond(struct hg__op *op)
{
	static const struct hg__about about = {.addends = 2u};
	op->about = &about;
}
static void plant_variance_without_norm(struct hg__op *op)
{
	static const struct hg__about about = {.critical = HG__VARIANCE};
	op->about = &about;
}
static void plant_edges_without_graph(struct hg__op *op)
{
	static const struct hg__about about = {.rows = HG__ROWS_EDGES};
	op->about = &about;
}
static void plant_values_without_graph(struct hg__op *op)
{
	op->edges = 1u;
}
static void plant_values_beyond(struct hg__op *op)
{
	op->edges = 2u;
}
static void plant_one_type_beyond(struct hg__op *op)
{
	op->one_type = 2u;
}
static void plant_tiles_without_unit_edges(struct hg__op *op)
{
	op->traits |= HG__TILES;
}
static int64_t stages_nothing(const struct hg__node *node, hg_mode mode, int64_t cols)
{
	(void)node;
	(void)mode;
	(void)cols;
	return 0;
}
static void plant_staged_without_tiles(struct hg__op *op)
{
	op->staged = stages_nothing;
}
static void plant_counts_without_graph(struct hg__op *op)
{
	op->traits |= HG__COUNTS_EDGES;
}
static void plant_ends_without_names(struct hg__op *op)
{
	static const struct hg__about about = {.traits = HG__JOINS_ENDS};
	op->about = &about;
}

static void incomplete_records_are_refused_by_name(void)
{
	static const struct {
		void (*plant)(struct hg__op *op);
		const char *says;
	} holes[] = {
	    {plant_no_name, "name is missing"},
	    {plant_bad_name, "found 'R'"},
	    {plant_no_words, "words are missing"},
	    {plant_no_infer, "infer is missing"},
	    {plant_no_range_back, "range_back is missing"},
	    {plant_no_backward, "backward is missing"},
	    {plant_no_cost, "cost is missing"},
	    {plant_too_many_operands, "operands"},
	    {plant_same_beyond, "same is 0x40"},
	    {plant_batch_without_graph, "BATCH without GRAPH"},
	    {plant_no_samples, "0 good and 0 bad samples"},
	    {plant_samples_without_graph, "is said to be good"},
	    {plant_empty_range, "range sets no bound"},
	    {plant_empty_range_back, "range_back sets no bound"},
	    {plant_role_beyond, "operand 1 is named, of 1"},
	    {plant_addend_beyond, "about names operands beyond the 1"},
	    {plant_variance_without_norm, "VARIANCE and norm go together"},
	    {plant_edges_without_graph, "rows without GRAPH"},
	    {plant_values_without_graph, "a row for each edge, without GRAPH"},
	    {plant_values_beyond, "edges is 0x2"},
	    {plant_one_type_beyond, "one_type is 0x2"},
	    {plant_tiles_without_unit_edges, "TILES without UNIT_EDGES"},
	    {plant_staged_without_tiles, "staged without TILES"},
	    {plant_counts_without_graph, "COUNTS_EDGES without GRAPH"},
	    {plant_ends_without_names, "scores of both ends have names"},
	};
	for (size_t i = 0; i < sizeof holes / sizeof holes[0]; i++) {
		struct hg__op op = hg__op_relu;
		char why[HG__MESSAGE];
		holes[i].plant(&op);
		CHECK_STATUS(hg__op_check(&op, why), HG_ERR_INTERNAL);
		CHECK_CONTAINS(why, holes[i].says);
		CHECK_CONTAINS(why, op.name ? op.name : "(no name)");
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_record_is_complete),
	    TEST(names_are_unique),
	    TEST(names_are_those_of_the_list),
	    TEST(samples_hold_at_every_extent),
	    TEST(incomplete_records_are_refused_by_name),
	};
	return RUN_TESTS(argc, argv, cases);
}
