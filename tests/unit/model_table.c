#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/model.h"
#include "harness.h"

/* The tables of parameters in halfgraph/model.h, compared with models: every name, shape, type and
 * initial value, in their order. HG_MODEL_H is the path of the header. */

enum { F = 11, C = 3, H = 5, K = 2, O = 4, L = 3, E = 7, CELLS = 5, ROWS = 120 };

struct row {
	char of[32]; /* "gcn", "gin, node task" */
	char name[32], shape[16], working[16], initial[32];
};

static struct row table[ROWS];
static int rows;

/* Splits a line of a table into its cells, which are separated by two blanks or more. Returns their
 * number. *first: the column of the first one. */
static int cells_of(const char *line, char cell[CELLS][48], int *first)
{
	int count = 0;
	const char *p = line;
	while (*p == ' ')
		p++;
	*first = (int)(p - line);
	while (*p && count < CELLS) {
		const char *end = strstr(p, "  ");
		const int length = end ? (int)(end - p) : (int)strlen(p);
		snprintf(cell[count++], sizeof cell[0], "%.*s", length, p);
		for (p += length; *p == ' ';)
			p++;
	}
	return count;
}

static int names_a_parameter(const char *text)
{
	return strncmp(text, "convL.", 6) == 0 || strncmp(text, "head.", 5) == 0 ||
	       strncmp(text, "embed.", 6) == 0 || strncmp(text, "input.", 6) == 0;
}

/* A row without a model or task belongs to the one that a row above it names. */
static void table_read(void)
{
	char line[256], cell[CELLS][48], of[32] = "";
	FILE *file = fopen(HG_MODEL_H, "r");
	CHECK(file != NULL);
	rows = 0;
	while (fgets(line, sizeof line, file)) {
		int first;
		line[strcspn(line, "\n")] = 0;
		const int count = strncmp(line, " *     ", 7) ? 0 : cells_of(line + 2, cell, &first);
		const int own = count == CELLS && names_a_parameter(cell[1]);
		if (!own && !(count == CELLS - 1 && names_a_parameter(cell[0])))
			continue;
		if (own)
			snprintf(of, sizeof of, "%.31s", cell[0]);
		CHECK(rows < ROWS);
		struct row *row = &table[rows++];
		snprintf(row->of, sizeof row->of, "%.31s", of);
		snprintf(row->name, sizeof row->name, "%.31s", cell[own]);
		snprintf(row->shape, sizeof row->shape, "%.15s", cell[own + 1]);
		snprintf(row->working, sizeof row->working, "%.15s", cell[own + 2]);
		snprintf(row->initial, sizeof row->initial, "%.31s", cell[own + 3]);
	}
	fclose(file);
	test_note("%d rows in model.h", rows);
	CHECK(rows >= 20);
}

struct place {
	const char *model;
	int graph_task, layer;
};

/* Is the model one of these, which blanks separate? */
static int is_one_of(const struct place *at, const char *models)
{
	char list[64], name[32];
	snprintf(list, sizeof list, " %s ", models);
	snprintf(name, sizeof name, " %s ", at->model);
	return strstr(list, name) != NULL;
}

static int has_embedding(const struct place *at)
{
	return is_one_of(at, "agnn gt gine");
}

static int has_head(const struct place *at)
{
	return is_one_of(at, "gin gine agnn gt");
}

static int64_t width_out(const struct place *at, int layer)
{
	const int last = !has_head(at) && !at->graph_task && layer == L - 1;
	return last ? C : is_one_of(at, "gat gatv2 gt") ? K * H : H;
}

/* "in", "cols", "2 cols", "1" */
static int64_t value_of(const struct place *at, const char *symbol)
{
	const int last = !at->graph_task && at->layer == L - 1;
	const char *space = strchr(symbol, ' ');
	if (space)
		return atoi(symbol) * value_of(at, space + 1);
	if (strcmp(symbol, "in") == 0)
		return at->layer || has_embedding(at) ? width_out(at, at->layer ? at->layer - 1 : 0) : F;
	if (strcmp(symbol, "out") == 0)
		return width_out(at, at->layer);
	if (strcmp(symbol, "cols") == 0)
		return last ? O * C : K * H;
	return strcmp(symbol, "C") == 0   ? C
	       : strcmp(symbol, "F") == 0 ? F
	       : strcmp(symbol, "E") == 0 ? E
	                                  : atoi(symbol);
}

static void check_initial(hg_param *param, const char *initial)
{
	hg_tensor *master = hg_param_master(param);
	const int64_t n = hg_tensor_rows(master) * hg_tensor_cols(master);
	const double a = sqrt(6.0 / (double)(hg_tensor_rows(master) + hg_tensor_cols(master)));
	float *x = calloc((size_t)n, sizeof *x);
	double amax = 0.0;
	CHECK(x != NULL);
	CHECK_OK(hg_tensor_download(master, x, HG_F32));
	for (int64_t i = 0; i < n; i++) {
		amax = fmax(amax, fabs((double)x[i]));
		CHECK(*initial == 'G' || x[i] == (float)atoi(initial));
	}
	/* That the largest of n uniform numbers is below a / 2 has a probability of 2^-n. */
	CHECK(*initial != 'G' || (amax <= a && (n < 20 || amax > a / 2)));
	free(x);
}

/* Checks that the next parameter of the model is that of this row, in this layer. */
static void check_row(const struct row *row, const struct place *at, hg_params *params,
                      int64_t *next)
{
	char name[48], high[8], wide[8];
	hg_param *param = hg_params_at(params, (*next)++);
	const char *rest = row->name;
	CHECK(param != NULL);
	if (strncmp(rest, "convL", 5) == 0) {
		snprintf(name, sizeof name, "conv%d%s", at->layer, rest + 5);
		rest = name;
	}
	CHECK_STR(hg_param_name(param), rest);
	CHECK_EQ_I(sscanf(row->shape, "[%7[a-zA-Z0-9 ], %7[a-zA-Z0-9 ]]", high, wide), 2);
	CHECK_EQ_I(hg_tensor_rows(hg_param_master(param)), value_of(at, high));
	CHECK_EQ_I(hg_tensor_cols(hg_param_master(param)), value_of(at, wide));
	const int state = strcmp(row->working, "state") == 0;
	CHECK_EQ_I(hg_tensor_dtype(hg_param_working(param)), state ? HG_F16 : HG_F32);
	CHECK_EQ_I((hg_param_flags(param) & HG_PARAM_BUFFER) != 0,
	           strcmp(row->working, "f32 buffer") == 0);
	check_initial(param, row->initial);
}

static void check_rows(const char *of, const struct place *at, hg_params *params, int64_t *next)
{
	int found = 0;
	for (int i = 0; i < rows; i++)
		if (strcmp(table[i].of, of) == 0)
			check_row(&table[i], at, params, next), found++;
	CHECK_MSG(found > 0, "model.h has no rows for %s", of);
}

static void check_model(const char *name, int graph_task, hg_readout_layers depths)
{
	hg_context *ctx = test_context();
	hg_params *params = NULL;
	hg_model *model = NULL;
	hg_model_config config = hg_model_config_default(name);
	int64_t next = 0;
	config.in_features = F;
	config.out_features = C;
	config.hidden = H;
	config.heads = K;
	config.out_heads = O;
	config.layers = L;
	config.readout = graph_task ? HG_REDUCE_SUM : -1;
	config.readout_layers = depths;
	config.edge_features = E;
	CHECK_OK(hg_params_create(ctx, NULL, &params));
	CHECK_OK(hg_model_create(params, &config, &model));
	struct place at = {name, graph_task, 0};
	if (has_embedding(&at))
		check_rows("embedding", &at, params, &next);
	for (; at.layer < L; at.layer++)
		check_rows(name, &at, params, &next);
	at.layer = L - 1;
	if (!graph_task && has_head(&at))
		check_rows("head, node task", &at, params, &next);
	if (depths == HG_READOUT_LAST)
		check_rows("graph task, HG_READOUT_LAST", &at, params, &next);
	at.layer = 0;
	if (depths == HG_READOUT_ALL)
		check_rows("graph task, HG_READOUT_ALL", &at, params, &next);
	for (; graph_task && depths != HG_READOUT_LAST && at.layer < L; at.layer++)
		check_rows("graph task, each layer L", &at, params, &next);
	CHECK_EQ_I(next, hg_params_count(params));
	test_note("%s, %s task: %d parameters", name, graph_task ? "graph" : "node", (int)next);
	hg_model_free(model);
	hg_params_free(params);
	hg_context_free(ctx);
}

static void table_lists_the_parameters_of_models(void)
{
	table_read();
	for (const char *const *name = hg_model_names(); *name; name++) {
		check_model(*name, 0, HG_READOUT_LAYERS);
		for (int depths = HG_READOUT_LAYERS; depths <= HG_READOUT_ALL; depths++)
			check_model(*name, 1, (hg_readout_layers)depths);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(table_lists_the_parameters_of_models)};
	return RUN_TESTS(argc, argv, cases);
}
