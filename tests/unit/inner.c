/* A tape inside somebody else's computation: its backward pass starts from a gradient that was
 * given, and ends in the gradient of its input. */
#include "unit/tape.h"

#include "halfgraph/model.h"
#include "halfgraph/ops_norm.h"

enum { N = 60, D = 6, C = 3 };

static void fill(float *values, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		values[i] = (float)test_normal();
}

/* A model on a variable: its loss is either the squared error with `targets`, or the inner product
 * with `given`. */
struct part {
	struct bench b;
	hg_model *model;
	hg_tensor *x, *given;
	hg_var x_var, y;
};

static void part_open(struct part *p, const char *policy, const float *x, const float *targets,
                      double amax)
{
	hg_policy named = policy_named(policy);
	hg_model_config config = hg_model_config_default("gcn");
	named.loss_scale.enabled = 0;
	config.in_features = D;
	config.out_features = C;
	config.hidden = 8;
	config.dropout = 0.0f;
	bench_open(&p->b, test_context(), named, HG_TRAIN);
	p->b.graph = coo_graph(p->b.ctx, coo_path(N));
	CHECK_OK(hg_model_create(p->b.params, &config, &p->model));
	p->x = tensor_of(&p->b, HG_F32, N, D, x, HG_F32);
	p->given = tensor_of(&p->b, HG_F32, N, C, targets, HG_F32);
	p->x_var = hg_tape_variable(p->b.tape, p->x, "x");
	p->y = hg_model_record_on(p->model, p->b.tape, p->b.graph, p->x_var);
	hg_tape_keep(p->b.tape, p->y);
	const hg_var given = hg_tape_input(p->b.tape, p->given, "given", amax),
	             loss = targets ? hg_mse(p->b.tape, p->y, given, HG_NONE)
	                            : hg_inner(p->b.tape, p->y, given);
	CHECK_MSG(hg_tape_compile(p->b.tape, loss) == HG_OK, "%s", hg_context_error(p->b.ctx));
	CHECK_OK(hg_tape_forward(p->b.tape));
}

static void part_close(struct part *p)
{
	hg_tape_free(p->b.tape);
	p->b.tape = NULL;
	hg_model_free(p->model);
	bench_close(&p->b);
}

static void check_same(const hg_tensor *a, const hg_tensor *b, const char *what)
{
	static float u[N * D], v[N * D];
	const int64_t count = hg_tensor_rows(a) * hg_tensor_cols(a);
	CHECK(count <= N * D && count == hg_tensor_rows(b) * hg_tensor_cols(b));
	CHECK_OK(hg_tensor_download(a, u, HG_F32));
	CHECK_OK(hg_tensor_download(b, v, HG_F32));
	int64_t nonzero = 0;
	for (int64_t i = 0; i < count; i++) {
		CHECK_MSG(memcmp(&u[i], &v[i], sizeof u[i]) == 0, "%s, element %lld: %g and %g", what,
		          (long long)i, (double)u[i], (double)v[i]);
		nonzero += u[i] != 0.0f;
	}
	CHECK_MSG(nonzero > 0, "%s is zero", what);
}

/* The gradient of the squared error, computed here with the roundings of that loss, gives the bits
 * that the loss gives. The first forward pass has another gradient in its place. */
static void given_gradient_is_as_good_as_a_loss(const char *policy)
{
	static float x[N * D], targets[N * C], y[N * C], given[N * C];
	struct part whole, part;
	fill(x, N * D);
	fill(targets, N * C);
	part_open(&whole, policy, x, targets, -1.0);
	part_open(&part, policy, x, NULL, 4.0);
	check_same(hg_tape_value(whole.b.tape, whole.y), hg_tape_value(part.b.tape, part.y), "result");
	CHECK_OK(hg_tensor_download(hg_tape_value(part.b.tape, part.y), y, HG_F32));
	for (int i = 0; i < N * C; i++)
		given[i] = 2.0f * (y[i] - targets[i]) * (1.0f / (float)(N * C));
	CHECK_OK(hg_tensor_upload(part.given, given, HG_F32));
	CHECK_OK(hg_tape_backward(whole.b.tape));
	CHECK_OK(hg_tape_backward(part.b.tape));
	check_same(hg_tape_grad(whole.b.tape, whole.x_var), hg_tape_grad(part.b.tape, part.x_var),
	           "gradient of x");
	for (int64_t k = 0; k < hg_params_count(part.b.params); k++)
		check_same(hg_param_grad(hg_params_at(whole.b.params, k)),
		           hg_param_grad(hg_params_at(part.b.params, k)),
		           hg_param_name(hg_params_at(part.b.params, k)));
	part_close(&part);
	part_close(&whole);
}

static void gradients_have_the_bits_of_a_loss_in_fp32(void)
{
	given_gradient_is_as_good_as_a_loss("fp32");
}

static void gradients_have_the_bits_of_a_loss_in_fp16(void)
{
	given_gradient_is_as_good_as_a_loss("fp16");
}

/* The bound on the gradient that enters the tape: the caller's, or the largest element. */
static void bound_is_given_or_measured(void)
{
	static const struct {
		double amax, expected;
	} cases[] = {{-1.0, 3.0}, {8.0, 8.0}, {1024.0, 1024.0}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct bench b;
		const float x[] = {1, 2, 3, 4}, given[] = {-3, 2, 1, 0};
		double found = 0.0;
		bench_open(&b, test_context(), policy_named("fp16"), HG_TRAIN);
		const hg_var v = hg_tape_variable(b.tape, tensor_of(&b, HG_F16, 2, 2, x, HG_F32), "x");
		const hg_var y = hg_relu(b.tape, v);
		const hg_var g = hg_tape_input(b.tape, tensor_of(&b, HG_F32, 2, 2, given, HG_F32), "given",
		                               cases[k].amax);
		CHECK_OK(hg_tape_compile(b.tape, hg_inner(b.tape, y, g)));
		for (int64_t i = 0; i < hg_tape_narrowings(b.tape); i++) {
			hg_narrowing n = HG_NARROWING_INIT;
			CHECK_OK(hg_tape_narrowing(b.tape, i, &n));
			if (n.backward && strcmp(n.op, "relu") == 0)
				found = n.bound;
		}
		/* rounded to a half once, relative to 2^-11 */
		CHECK_WITHIN(found, cases[k].expected, cases[k].expected * 0x1p-10);
		bench_close(&b);
	}
}

static void models_refuse_what_they_cannot_read(void)
{
	struct part p;
	static float x[N * D];
	hg_tape *tape;
	hg_tensor *wrong;
	fill(x, N * D);
	part_open(&p, "fp32", x, NULL, 1.0);
	CHECK_OK(hg_tensor_create(p.b.ctx, HG_F32, N, D + 1, &wrong));
	static const struct {
		int graph, model, variable;
		hg_status status;
		const char *part;
	} cases[] = {{0, 1, 1, HG_ERR_ARG, "graph is NULL"},
	             {1, 0, 1, HG_ERR_ARG, "model is NULL"},
	             {1, 1, 0, HG_ERR_ARG, "not a variable of this tape"},
	             {1, 1, 2, HG_ERR_SHAPE, "features have 7 columns, the model has in_features 6"}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		CHECK_OK(hg_tape_create(p.b.params, HG_TRAIN, &tape));
		const hg_var v = cases[k].variable
		                     ? hg_tape_variable(tape, cases[k].variable == 2 ? wrong : p.x, "x")
		                     : HG_NONE;
		(void)hg_model_record_on(cases[k].model ? p.model : NULL, tape,
		                         cases[k].graph ? p.b.graph : NULL, v);
		CHECK_STATUS(hg_tape_status(tape), cases[k].status);
		CHECK_CONTAINS(hg_context_error(p.b.ctx), cases[k].part);
		hg_tape_free(tape);
	}
	hg_tensor_free(wrong);
	part_close(&p);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(gradients_have_the_bits_of_a_loss_in_fp32),
	    TEST(gradients_have_the_bits_of_a_loss_in_fp16),
	    TEST(bound_is_given_or_measured),
	    TEST(models_refuse_what_they_cannot_read),
	};
	return RUN_TESTS(argc, argv, cases);
}
