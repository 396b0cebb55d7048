/* Test inputs of attention, attention_weights and attention_epilogue. */
#include "autograd/ops/attention.h"

enum { ADD = HG_SCORE_ADD, DOT = HG_SCORE_DOT, COSINE = HG_SCORE_COSINE, ADD_V2 = HG_SCORE_ADD_V2 };

/* Operands, named by what they hold. */
enum has {
	HAS_K = 1,
	HAS_V = 2,
	HAS_C = 4,
	HAS_BIAS = 8,
	ONE_C = 16, /* c is [1, 1] */
	NO_GRAPH = 32,
	INTEGERS = 64, /* q is of integers */
	C_OF_HALVES = 128,
	FAR_APART = 256 /* scores that differ by far more than exp can hold */
};

/* Rows or columns too many. */
struct more {
	int q_rows, q_cols, k_rows, k_cols, v_rows, v_cols, c_cols, bias_rows, bias_cols;
};

struct row {
	const char *what;
	hg_status expect;
	int score;
	unsigned has;
	int heads; /* 0: those of the extent, at most 16 */
	float slope, scale, dropout;
	int wider; /* columns a head more than the extent's */
	struct more more;
};

#define KV (HAS_K | HAS_V)

/* Those with a mistake in v come last. */
static const struct row rows[] = {
    {"ADD", HG_OK, ADD, KV, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"ADD, q and k in one", HG_OK, ADD, HAS_V, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"ADD, slope 0, dropout", HG_OK, ADD, KV, 0, 0.0f, 1.0f, 0.4f, 0, {0}},
    {"ADD, slope 1", HG_OK, ADD, KV, 0, 1.0f, 1.0f, 0.0f, 1, {0}},
    {"ADD, bias", HG_OK, ADD, KV | HAS_BIAS, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"ADD, q and k in one, 16 heads, dropout", HG_OK, ADD, HAS_V, 16, 0.1f, 1.0f, 0.6f, 8, {0}},
    {"ADD, one head, bias, dropout", HG_OK, ADD, KV | HAS_BIAS, 1, 0.2f, 1.0f, 0.5f, 0, {0}},
    {"ADD, scores far apart", HG_OK, ADD, KV | FAR_APART, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"DOT", HG_OK, DOT, KV, 0, 0.2f, 0.5f, 0.0f, 0, {0}},
    {"DOT, all in one", HG_OK, DOT, 0, 0, 0.2f, 0.5f, 0.0f, 0, {0}},
    {"DOT, all in one, one head, dropout", HG_OK, DOT, 0, 1, 0.2f, 0.25f, 0.3f, 8, {0}},
    {"DOT, q and k in one, bias", HG_OK, DOT, HAS_V | HAS_BIAS, 0, 0.2f, 0.5f, 0.0f, 1, {0}},
    {"DOT, v is k, negative scale", HG_OK, DOT, HAS_K, 0, 0.2f, -0.25f, 0.0f, 0, {0}},
    {"DOT, 8 heads of eight columns more, dropout", HG_OK, DOT, KV, 8, 0.2f, 0.3f, 0.5f, 8, {0}},
    {"DOT, scores far apart", HG_OK, DOT, KV | FAR_APART, 0, 0.2f, 0.5f, 0.0f, 0, {0}},
    {"COSINE", HG_OK, COSINE, KV | HAS_C, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"COSINE, all one", HG_OK, COSINE, HAS_C | ONE_C, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"COSINE, all one, dropout", HG_OK, COSINE, HAS_C | ONE_C, 1, 0.2f, 1.0f, 0.5f, 8, {0}},
    {"COSINE, v is k, dropout", HG_OK, COSINE, HAS_K | HAS_C, 0, 0.2f, 1.0f, 0.5f, 1, {0}},
    {"COSINE, k is q, bias", HG_OK, COSINE, HAS_V | HAS_C | HAS_BIAS, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"COSINE, scores far apart",
     HG_OK,
     COSINE,
     KV | HAS_C | FAR_APART,
     0,
     0.2f,
     1.0f,
     0.0f,
     0,
     {0}},
    {"COSINE, all one, scores far apart, dropout",
     HG_OK,
     COSINE,
     HAS_C | ONE_C | FAR_APART,
     0,
     0.2f,
     1.0f,
     0.5f,
     0,
     {0}},
    {"ADD_V2", HG_OK, ADD_V2, KV | HAS_C, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"ADD_V2, all in one", HG_OK, ADD_V2, HAS_C, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"ADD_V2, v is k, dropout", HG_OK, ADD_V2, HAS_K | HAS_C, 0, 0.0f, 1.0f, 0.5f, 8, {0}},
    {"ADD_V2, scores far apart",
     HG_OK,
     ADD_V2,
     KV | HAS_C | FAR_APART,
     0,
     0.2f,
     1.0f,
     0.0f,
     0,
     {0}},
    {"ADD_V2, v is k, scores far apart, dropout",
     HG_OK,
     ADD_V2,
     HAS_K | HAS_C | FAR_APART,
     0,
     0.2f,
     1.0f,
     0.5f,
     0,
     {0}},
    {"ADD_V2, q and k in one, bias",
     HG_OK,
     ADD_V2,
     HAS_V | HAS_C | HAS_BIAS,
     0,
     0.1f,
     1.0f,
     0.0f,
     1,
     {0}},
    {"no score", HG_ERR_ARG, HG_SCORE_COUNT, KV, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"no head", HG_ERR_ARG, ADD, KV, -1, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"17 heads", HG_ERR_ARG, ADD, KV, 17, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"slope 2", HG_ERR_ARG, ADD, KV, 0, 2.0f, 1.0f, 0.0f, 0, {0}},
    {"scale infinite", HG_ERR_ARG, DOT, KV, 0, 0.2f, INFINITY, 0.0f, 0, {0}},
    {"dropout 1", HG_ERR_ARG, ADD, KV, 0, 0.2f, 1.0f, 1.0f, 0, {0}},
    {"dropout so near 1 that nothing is kept",
     HG_ERR_ARG,
     ADD,
     KV,
     0,
     0.2f,
     1.0f,
     1.0f - 0x1p-17f,
     0,
     {0}},
    {"q of integers", HG_ERR_DTYPE, ADD, KV | INTEGERS, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"no graph", HG_ERR_ARG, ADD, KV | NO_GRAPH, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"q has a row too many", HG_ERR_SHAPE, ADD, KV, 0, 0.2f, 1.0f, 0.0f, 0, {.q_rows = 1}},
    {"q has a column too many", HG_ERR_SHAPE, ADD, KV, 0, 0.2f, 1.0f, 0.0f, 0, {.q_cols = 1}},
    {"heads do not divide q", HG_ERR_SHAPE, DOT, KV, 3, 0.2f, 1.0f, 0.0f, 0, {.q_cols = 1}},
    {"a third of q is none of the heads'",
     HG_ERR_SHAPE,
     DOT,
     0,
     2,
     0.2f,
     1.0f,
     0.0f,
     0,
     {.q_cols = 3}},
    {"k has a row too many", HG_ERR_SHAPE, ADD, KV, 0, 0.2f, 1.0f, 0.0f, 0, {.k_rows = 1}},
    {"k has columns too many", HG_ERR_SHAPE, DOT, KV, 2, 0.2f, 1.0f, 0.0f, 0, {.k_cols = 2}},
    {"c missing", HG_ERR_ARG, ADD_V2, KV, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"c where none belongs", HG_ERR_ARG, DOT, KV | HAS_C, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"c has a column too many",
     HG_ERR_SHAPE,
     ADD_V2,
     KV | HAS_C,
     0,
     0.2f,
     1.0f,
     0.0f,
     0,
     {.c_cols = 1}},
    {"c of halves", HG_ERR_DTYPE, COSINE, KV | HAS_C | C_OF_HALVES, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"bias has a row too many",
     HG_ERR_SHAPE,
     ADD,
     KV | HAS_BIAS,
     0,
     0.2f,
     1.0f,
     0.0f,
     0,
     {.bias_rows = 1}},
    {"bias has a column too many",
     HG_ERR_SHAPE,
     ADD,
     KV | HAS_BIAS,
     0,
     0.2f,
     1.0f,
     0.0f,
     0,
     {.bias_cols = 1}},
    {"v missing", HG_ERR_ARG, ADD, HAS_K, 0, 0.2f, 1.0f, 0.0f, 0, {0}},
    {"v has a row too many", HG_ERR_SHAPE, ADD, KV, 0, 0.2f, 1.0f, 0.0f, 0, {.v_rows = 1}},
    {"heads do not divide v", HG_ERR_SHAPE, ADD, KV, 3, 0.2f, 1.0f, 0.0f, 0, {.v_cols = 1}},
};
enum { ROWS = sizeof rows / sizeof rows[0], MISTAKES_IN_V = 3 };

/* What q, k and v are drawn with: small enough that exp of a score says something, or so large that
 * it says which is the largest. Where the score has a c, that is large in their place. */
static void add_operand(struct hg__sample *s, const struct row *row, const struct hg__extent *x,
                        int present, int64_t more_rows, int64_t cols)
{
	if (!present)
		hg__sample_none(s);
	else
		hg__sample_add(s, x->n + more_rows, cols, x->state, HG__FILL_NORMAL,
		               row->has & FAR_APART && !(row->has & HAS_C) ? 30.0 : 1.0, 1);
}

/* Far apart: beta is 60, so that scores are from -60 to 60, and c of ADD_V2 is drawn with 30. */
static void add_c(struct hg__sample *s, const struct row *row, int64_t heads, int64_t width)
{
	const int cosine = row->score == COSINE;
	const int64_t cols = row->has & ONE_C ? 1 : cosine ? heads : width;
	if (!(row->has & HAS_C))
		hg__sample_none(s);
	else if (row->has & FAR_APART)
		hg__sample_add(s, 1, cols, HG_F32, cosine ? HG__FILL_CONST : HG__FILL_NORMAL,
		               cosine ? 60.0 : 30.0, 1);
	else
		hg__sample_normal(s, 1, cols + row->more.c_cols, row->has & C_OF_HALVES ? HG_F16 : HG_F32);
}

int hg__attention_sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	if (i >= ROWS)
		return 0;
	const struct row *row = &rows[i];
	const struct more *more = &row->more;
	const int most = x->heads < HG_ATTENTION_HEADS ? x->heads : HG_ATTENTION_HEADS;
	const int64_t heads = row->heads > 0 ? row->heads : most, d = heads * (x->d + row->wider),
	              q = row->score == ADD || d == 0 ? heads : d;
	const struct hg__attention_layout layout = hg__attention_layout(
	    (hg_score)row->score, (row->has & HAS_K) != 0, (row->has & HAS_V) != 0);
	const struct hg__attention_attr attr = {.score = (hg_score)row->score,
	                                        .heads = row->heads < 0 ? 0 : (int)heads,
	                                        .weighted = 1,
	                                        .slope = row->slope,
	                                        .scale = row->scale,
	                                        .dropout = row->dropout};
	hg__sample_begin(s, row->what, row->expect, !(row->has & NO_GRAPH));
	hg__sample_attr(s, &attr, sizeof attr);
	if (row->has & INTEGERS)
		hg__sample_integer(s, x->n, q);
	else
		add_operand(s, row, x, 1, more->q_rows, layout.parts * q + more->q_cols);
	add_operand(s, row, x, row->has & HAS_K, more->k_rows, q + more->k_cols);
	add_operand(s, row, x, row->has & HAS_V, more->v_rows, d + more->v_cols);
	add_c(s, row, heads, q);
	if (row->has & HAS_BIAS)
		hg__sample_normal(s, x->m + more->bias_rows, heads + more->bias_cols, x->state);
	return 1;
}

/* attention_weights takes any v, which it does not read. */
int hg__attention_weights_sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	return i < ROWS - MISTAKES_IN_V && hg__attention_sample(i, x, s);
}

/* ---- with an epilogue ---- */

enum { RELU = 1 + HG__ACT_relu, LEAKY = 1 + HG__ACT_leaky_relu, ELU = 1 + HG__ACT_elu };

/* What follows attention in sample i is epilogues[i % EPILOGUES]. */
static const struct {
	struct hg__epilogue_attr act_drop;
	int b, mean;
} epilogues[] = {
    {{0, 0.0f, 0.0f}, 1, 0},     {{ELU, 1.0f, 0.6f}, 1, 0},  {{0, 0.0f, 0.0f}, 1, 1},
    {{RELU, 0.0f, 0.0f}, 0, 0},  {{RELU, 0.0f, 0.5f}, 1, 0}, {{ELU, 1.0f, 0.3f}, 1, 1},
    {{LEAKY, 0.2f, 0.3f}, 1, 0}, {{ELU, 0.5f, 0.0f}, 1, 0},  {{0, 0.0f, 0.0f}, 0, 1},
    {{0, 0.0f, 0.4f}, 0, 0},     {{RELU, 0.0f, 0.5f}, 0, 1},
};
enum { EPILOGUES = sizeof epilogues / sizeof epilogues[0] };

static const struct {
	const char *what;
	hg_status expect;
	struct hg__epilogue_attr act_drop;
	int64_t rows, cols; /* of b, too many */
	int mean;
} mistakes[] = {
    {"b has two rows", HG_ERR_SHAPE, {RELU, 0.0f, 0.0f}, 1, 0, 0},
    {"b has a column too many", HG_ERR_SHAPE, {0, 0.0f, 0.0f}, 0, 1, 0},
    {"b has a column more than a head", HG_ERR_SHAPE, {0, 0.0f, 0.0f}, 0, 1, 1},
    {"p 1", HG_ERR_ARG, {RELU, 0.0f, 1.0f}, 0, 0, 0},
    {"alpha 0", HG_ERR_ARG, {ELU, 0.0f, 0.5f}, 0, 0, 0},
    {"sigmoid", HG_ERR_ARG, {1 + HG__ACT_sigmoid, 0.0f, 0.0f}, 0, 0, 0},
};
enum { MISTAKES = sizeof mistakes / sizeof mistakes[0] };

/* Adds b, of the width of the result, to an input of attention. */
static void follow(const struct hg__extent *x, const struct hg__epilogue_attr *act_drop, int mean,
                   int b, int64_t more_rows, int64_t more_cols, struct hg__sample *s)
{
	struct hg__attention_epilogue_attr attr = {
	    .act_drop = *act_drop, .mean = mean, .key = 20261120};
	memcpy(&attr.attention, s->attr, sizeof attr.attention);
	const int has_k = s->in[ATTENTION_K].shape.present, has_v = s->in[ATTENTION_V].shape.present;
	const struct hg__attention_layout layout =
	    hg__attention_layout(attr.attention.score, has_k, has_v);
	const struct hg__attention_place *v = &layout.side[SIDE_V];
	const int64_t heads = mean && attr.attention.heads > 0 ? attr.attention.heads : 1;
	const int64_t cols =
	    s->in[v->operand].shape.cols / (v->operand == ATTENTION_Q ? layout.parts : 1) / heads;
	hg__sample_attr(s, &attr, sizeof attr);
	while (s->n_in < ATTENTION_EPILOGUE_B)
		hg__sample_none(s);
	if (b)
		hg__sample_normal(s, 1 + more_rows, cols + more_cols, x->state);
}

/* All inputs are tried with attention alone. With an epilogue each width has every third of them;
 * which these are depends on the width. Multiples of 16 begin with the first. */
enum { EVERY = 3 };

int hg__attention_epilogue_sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	const int first = (int)(x->d % 16 % EVERY), used = (ROWS - first + EVERY - 1) / EVERY;
	if (i < used) {
		hg__attention_sample(first + EVERY * i, x, s);
		follow(x, &epilogues[i % EPILOGUES].act_drop, epilogues[i % EPILOGUES].mean,
		       epilogues[i % EPILOGUES].b, 0, 0, s);
		return 1;
	}
	const int m = i - used;
	if (m >= MISTAKES || !hg__attention_sample(0, x, s))
		return 0;
	s->what = mistakes[m].what;
	s->expect = mistakes[m].expect;
	follow(x, &mistakes[m].act_drop, mistakes[m].mean, 1, mistakes[m].rows, mistakes[m].cols, s);
	return 1;
}
