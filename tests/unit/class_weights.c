/* Weights of classes and label smoothing in training runs: the loss of an epoch is PyTorch's, a run
 * goes on with the same bits, and what does not fit is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/train.h"
#include "small_run.h"

enum { N = SMALL_N, C = SMALL_C };

/* ---- the loss ---- */

struct scene {
	struct planted task;
	struct planted_run run;
};

static void scene_open(struct scene *s, hg_context *ctx)
{
	const struct planted_features features = {.noise = 1.0, .signal = 1.0};
	test_reseed(31);
	s->task = planted_make(coo_hub(N, SMALL_M, 9, 0), SMALL_D, C, features);
	planted_split(&s->task, 40, 30);
	planted_open(&s->run, ctx, &s->task, HG_F32, 0);
}

static void scene_close(struct scene *s)
{
	planted_close(&s->run);
	planted_free(&s->task);
}

static double first_loss;

static int note_loss(void *user, const hg_train_event *event)
{
	(void)user;
	first_loss = event->loss;
	return 0;
}

/* With learning rate 0 and no dropout, the logits after the epoch are those of its loss. */
static hg_train_config still(hg_loss loss)
{
	hg_train_config c = small_config("gcn", "fp32");
	c.model.dropout = 0.0f;
	c.optim.lr = 0.0f;
	c.epochs = c.eval_every = 1;
	c.loss = loss;
	c.progress = note_loss;
	return c;
}

static double largest;

static void predict(struct scene *s, const hg_train_config *c, float *x)
{
	planted_begin(&s->run, c);
	CHECK_MSG(hg_train_run(s->run.train, &s->run.report) == HG_OK, "%s",
	          hg_context_error(s->run.ctx));
	int32_t row[N];
	CHECK_OK(hg_train_predict(s->run.train, row, x));
	largest = 0.0;
	for (int i = 0; i < N * C; i++)
		largest = fmax(largest, fabs((double)x[i]));
}

/* -log softmax(x)[k] */
static double surprise(const float *x, int64_t k)
{
	double sum = 0.0;
	for (int c = 0; c < C; c++)
		sum += exp((double)x[c]);
	return log(sum) - (double)x[k];
}

/* The bound of the op: gamma_{n + 2 d + 10} (2 |X| + log d) (1 - e + e max w / min w). */
static void the_loss_of_classes_is_pytorchs(void)
{
	static const struct {
		float weight[C];
		int none;
		float smoothing;
	} rows[] = {{{1.0f, 2.5f, 0.25f}, 0, 0.0f},
	            {{1.0f, 1.0f, 1.0f}, 1, 0.2f},
	            {{0.5f, 3.0f, 1.5f}, 0, 0.1f},
	            {{1.0f, 1.0f, 1.0f}, 0, 0.0f}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct scene s;
		float x[N * C];
		hg_train_config c = still(HG_LOSS_CROSS_ENTROPY);
		const double e = (double)rows[i].smoothing;
		double sum = 0.0, weights = 0.0, most = 0.0, least = INFINITY;
		c.class_weights = rows[i].none ? NULL : rows[i].weight;
		c.class_weight_count = rows[i].none ? 0 : C;
		c.label_smoothing = rows[i].smoothing;
		scene_open(&s, test_context());
		predict(&s, &c, x);
		for (int k = 0; k < N; k++) {
			const double w = (double)rows[i].weight[s.task.label[k]];
			if (!s.task.train[k])
				continue;
			weights += w;
			sum += (1.0 - e) * w * surprise(x + k * C, s.task.label[k]);
			for (int j = 0; j < C; j++)
				sum += e / C * (double)rows[i].weight[j] * surprise(x + k * C, j);
		}
		for (int j = 0; j < C; j++) {
			most = fmax(most, (double)rows[i].weight[j]);
			least = fmin(least, (double)rows[i].weight[j]);
		}
		const double bound = (N + 2 * C + 10) * 0x1p-24 * (2.0 * largest + log(C)) *
		                     (1.0 - e + e * most / least) * 1.001;
		CHECK_MSG(fabs(first_loss - sum / weights) <= bound, "row %zu: %.9g, expected %.9g", i,
		          first_loss, sum / weights);
		scene_close(&s);
	}
}

static void the_loss_of_labels_is_pytorchs(void)
{
	static const float weight[C] = {4.0f, 0.5f, 1.0f};
	struct scene s;
	float x[N * C], target[N * C];
	hg_train_config c = still(HG_LOSS_BCE);
	double sum = 0.0;
	int count = 0;
	c.class_weights = weight;
	c.class_weight_count = C;
	scene_open(&s, test_context());
	for (int i = 0; i < N * C; i++)
		target[i] = i % 7 == 0 ? NAN : (float)(s.task.label[i / C] == i % C);
	s.run.data.labels = NULL;
	s.run.data.targets = target;
	s.run.data.target_cols = C;
	predict(&s, &c, x);
	for (int i = 0; i < N * C; i++) {
		const double w = (double)weight[i % C], v = (double)x[i], t = (double)target[i];
		if (!s.task.train[i / C] || isnan(target[i]))
			continue;
		count++;
		sum += w * t * log1p(exp(-v)) + (1.0 - t) * (v + log1p(exp(-v)));
	}
	const double each = 2.0 * largest + 6.0 * (largest + log(2.0)),
	             bound = (N * C + 10) * 0x1p-24 * each * 1.001;
	CHECK_MSG(fabs(first_loss - sum / count) <= bound, "%.9g, expected %.9g", first_loss,
	          sum / count);
	scene_close(&s);
}

/* ---- balancing ---- */

static void balanced_weights(void)
{
	static const int32_t label[] = {0, 0, 0, 1, 1, 3, -1, 0};
	static const uint8_t mask[] = {1, 1, 1, 1, 1, 1, 1, 0};
	static const float target[] = {1, 0, 0, 0, 1, 0, 0, NAN, 0, 0, 0, 0, 1, 1, 1, 1};
	float w[4], ones[2];
	hg_train_data d = HG_TRAIN_DATA_INIT;
	d.labels = label;
	d.train_mask = mask;
	CHECK_OK(hg_train_balance(&d, 8, HG_LOSS_CROSS_ENTROPY, 4, w));
	/* 6 rows are learnt, of 4 classes: 3, 2, 0 and 1 */
	const float expected[] = {0.5f, 0.75f, 1.0f, 1.5f};
	CHECK(memcmp(w, expected, sizeof w) == 0);
	d.targets = target;
	d.target_cols = 2;
	CHECK_OK(hg_train_balance(&d, 8, HG_LOSS_BCE, 2, ones));
	/* ones and zeros that are learnt: column 0 has 3 and 4, column 1 has 1 and 5 */
	CHECK(ones[0] >= 4.0f / 3.0f && ones[0] <= 4.0f / 3.0f && ones[1] >= 5.0f && ones[1] <= 5.0f);
	d.train_mask = NULL;
	CHECK_OK(hg_train_balance(&d, 1, HG_LOSS_BCE, 2, ones)); /* no zeros, no ones */
	CHECK(ones[0] >= 1.0f && ones[0] <= 1.0f && ones[1] >= 1.0f && ones[1] <= 1.0f);
	CHECK_STATUS(hg_train_balance(NULL, 8, HG_LOSS_BCE, 2, ones), HG_ERR_ARG);
	CHECK_STATUS(hg_train_balance(&d, 8, HG_LOSS_BCE, 2, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_train_balance(&d, -1, HG_LOSS_BCE, 2, ones), HG_ERR_ARG);
	CHECK_STATUS(hg_train_balance(&d, 8, HG_LOSS_BCE, 3, w), HG_ERR_ARG);
	CHECK_STATUS(hg_train_balance(&d, 8, HG_LOSS_MSE, 2, ones), HG_ERR_ARG);
	CHECK_STATUS(hg_train_balance(&d, 8, HG_LOSS_CROSS_ENTROPY, 0, w), HG_ERR_ARG);
	d.labels = NULL;
	CHECK_STATUS(hg_train_balance(&d, 8, HG_LOSS_CROSS_ENTROPY, 4, w), HG_ERR_ARG);
}

/* ---- states ---- */

static const float some[C] = {0.5f, 1.0f, 2.0f}, others[C] = {0.5f, 1.0f, 3.0f};

static hg_train_config weighted(const float *weights, float smoothing)
{
	hg_train_config c = small_config("gcn", "fp16");
	c.class_weights = weights;
	c.class_weight_count = weights ? C : 0;
	c.label_smoothing = smoothing;
	return c;
}

static void hand_over(struct small_run *from, struct small_run *to)
{
	hg_state *state = small_state(from);
	CHECK_MSG(hg_train_set_state(to->train, state) == HG_OK, "%s", hg_context_error(to->ctx));
	hg_state_free(state);
}

static void resumed_runs_have_the_same_bits(void)
{
	check_resumed_run(test_context, weighted(some, 0.0f), hand_over);
	check_resumed_run(test_context, weighted(some, 0.1f), hand_over);
}

static void other_weights_are_reported(void)
{
	static const struct {
		const float *weights;
		float smoothing;
		const char *message;
	} rows[] = {{others, 0.0f, "the class weights differ from those of the state"},
	            {NULL, 0.0f, "the class weights differ from those of the state"},
	            {some, 0.25f, "train.label_smoothing is 0 in the state, the run has 0.25"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		static struct small_run a, b;
		small_open(&a, test_context(), weighted(some, 0.0f));
		small_open(&b, test_context(), weighted(rows[i].weights, rows[i].smoothing));
		hg_state *state = small_state(&a);
		CHECK_STATUS(hg_train_set_state(b.train, state), HG_INFO_DIFFERS);
		CHECK_MSG(strstr(hg_context_error(b.ctx), rows[i].message), "row %zu: %s", i,
		          hg_context_error(b.ctx));
		hg_state_free(state);
		small_close(&a);
		small_close(&b);
	}
}

/* ---- what is refused ---- */

static void bad_weights_are_refused(void)
{
	static const float negative[C] = {1.0f, -1.0f, 1.0f}, nan[C] = {1.0f, NAN, 1.0f},
	                   zero[C] = {1.0f, 1.0f, 0.0f};
	static const struct {
		hg_loss loss;
		const float *weights;
		int64_t count;
		float smoothing;
		const char *message;
	} rows[] = {
	    {HG_LOSS_CROSS_ENTROPY, some, 2, 0.0f, "train: 2 class_weights, the model has 3"},
	    {HG_LOSS_CROSS_ENTROPY, NULL, 3, 0.0f, "class_weights is NULL"},
	    {HG_LOSS_CROSS_ENTROPY, negative, C, 0.0f, "class_weights[1] is -1, expected a number"},
	    {HG_LOSS_CROSS_ENTROPY, nan, C, 0.0f, "class_weights[1] is "},
	    {HG_LOSS_CROSS_ENTROPY, zero, C, 0.0f, "class_weights[2] is 0, but the training set has"},
	    {HG_LOSS_CROSS_ENTROPY, NULL, 0, 1.0f, "label_smoothing is 1, expected at least 0"},
	    {HG_LOSS_CROSS_ENTROPY, NULL, 0, NAN, "label_smoothing is "},
	    {HG_LOSS_MSE, some, C, 0.0f, "class_weights are of cross-entropy and BCE"},
	    {HG_LOSS_BCE, NULL, 0, 0.1f, "label_smoothing is 0.1, expected 0"}};
	struct scene s;
	float target[N * C] = {0.0f};
	scene_open(&s, test_context());
	s.run.data.targets = target;
	s.run.data.target_cols = C;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		hg_train *train = NULL;
		hg_train_config c = small_config("gcn", "fp16");
		c.loss = rows[i].loss;
		c.class_weights = rows[i].weights;
		c.class_weight_count = rows[i].count;
		c.label_smoothing = rows[i].smoothing;
		CHECK_STATUS(hg_train_create(s.run.ctx, &c, &s.run.data, &train), HG_ERR_ARG);
		CHECK_MSG(strstr(hg_context_error(s.run.ctx), rows[i].message), "row %zu: %s", i,
		          hg_context_error(s.run.ctx));
	}
	scene_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(the_loss_of_classes_is_pytorchs),
	    TEST(the_loss_of_labels_is_pytorchs),
	    TEST(balanced_weights),
	    TEST(resumed_runs_have_the_same_bits),
	    TEST(other_weights_are_reported),
	    TEST(bad_weights_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
