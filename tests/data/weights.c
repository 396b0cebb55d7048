/* Weights as safetensors files: those of PyTorch Geometric give its logits, a file that is written
 * gives the same bits back, and damaged or misfitting files are refused by name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "states.h"
#include "support.h"

enum { N = 6, FEATURES = 4, ATTRIBUTES = 2, CLASSES = 3, MOST = 64 };

struct peer_tensor {
	const char *name;
	int rank;
	int64_t dim[3];
};
/* A model of PyTorch Geometric: its tensors, and its logits. */
struct peer {
	const char *model, *what;
	struct peer_tensor tensor[MOST];
	double logits[N * CLASSES];
};
#include "weights_peers.h"

/* ---- a writer of its own ---- */

struct writer {
	char header[1 << 14];
	unsigned char data[1 << 14];
	size_t length, bytes;
};

static void put(struct writer *w, const char *name, const char *type, const char *shape,
                const void *data, size_t bytes)
{
	CHECK(w->bytes + bytes <= sizeof w->data);
	memcpy(w->data + w->bytes, data, bytes);
	w->length +=
	    (size_t)snprintf(w->header + w->length, sizeof w->header - w->length,
	                     "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,"
	                     "\"data_offsets\":[%zu,%zu]}",
	                     w->length ? "," : "{", name, type, shape, w->bytes, w->bytes + bytes);
	w->bytes += bytes;
	CHECK(w->length + 2 < sizeof w->header);
}

/* The bytes of a file: any length, any header, any data. */
static void write_parts(const char *path, uint64_t length, const char *header, size_t count,
                        const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");
	CHECK(file != NULL);
	for (int k = 0; k < 8; k++)
		CHECK(fputc((int)(length >> 8 * k & 255), file) != EOF);
	CHECK(fwrite(header, 1, count, file) == count);
	CHECK(bytes == 0 || fwrite(data, 1, bytes, file) == bytes);
	CHECK(fclose(file) == 0);
}

static void finish(struct writer *w, const char *path)
{
	w->header[w->length++] = '}';
	write_parts(path, w->length, w->header, w->length, w->data, w->bytes);
}

/* One of F32, BF16 and F16, which all hold the values of tools/peers/weights.py. */
static size_t encode(float x, int type, unsigned char *to)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	if (type == 0)
		bits = bits & 0xffffffffu;
	else if (type == 1)
		bits = bits >> 16;
	else
		bits = hg_half_from_float(x);
	const size_t bytes = type == 0 ? 4 : 2;
	for (size_t k = 0; k < bytes; k++)
		to[k] = (unsigned char)(bits >> 8 * k);
	return bytes;
}

static void put_peer_tensor(struct writer *w, const struct peer_tensor *t, int64_t number)
{
	static const char *const types[] = {"F32", "BF16", "F16"};
	unsigned char data[512];
	char shape[64] = "[";
	int64_t count = 1;
	size_t bytes = 0;
	for (int k = 0; k < t->rank; k++) {
		(void)snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d", k ? "," : "",
		               (int)t->dim[k]);
		count *= t->dim[k];
	}
	strcat(shape, "]");
	for (int64_t k = 0; k < count; k++) {
		float value = (float)((37 * k + 17 * number + 5) % 101 - 50) / 64.0f;
		if (strstr(t->name, "running_var"))
			value = fabsf(value) + 0.5f;
		bytes += encode(value, (int)(number % 3), data + bytes);
	}
	put(w, t->name, types[number % 3], shape, data, bytes);
}

static void write_peer(const struct peer *p, const char *path)
{
	static struct writer w;
	const int64_t batches = 7;
	w.length = w.bytes = 0;
	for (int64_t t = 0; t < MOST && p->tensor[t].name; t++)
		put_peer_tensor(&w, &p->tensor[t], t);
	if (strcmp(p->model, "gin") == 0)
		put(&w, "norms.0.num_batches_tracked", "I64", "[]", &batches, 8);
	finish(&w, path);
}

/* ---- a model to import into ---- */

struct subject {
	hg_context *ctx;
	hg_params *params;
	hg_model *model;
};

/* readout, depths: as in the model's configuration */
static void subject_open_task(struct subject *s, const char *model, const char *policy, int readout,
                              hg_readout_layers depths)
{
	hg_policy p;
	hg_model_config c = hg_model_config_default(model);
	s->ctx = test_context();
	c.readout = readout;
	c.readout_layers = depths;
	c.in_features = FEATURES;
	c.out_features = CLASSES;
	c.edge_features = hg_model_get_info(model)->edge_features ? ATTRIBUTES : 0;
	c.hidden = hg_model_get_info(model)->heads ? 2 : 5;
	c.heads = c.out_heads = 2;
	CHECK_OK(hg_policy_parse(policy, &p));
	CHECK_OK(hg_params_create(s->ctx, &p, &s->params));
	CHECK_OK(hg_model_create(s->params, &c, &s->model));
}

static void subject_open(struct subject *s, const char *model, const char *policy)
{
	subject_open_task(s, model, policy, -1, HG_READOUT_LAYERS);
}

static void subject_close(struct subject *s)
{
	hg_model_free(s->model);
	hg_params_free(s->params);
	hg_context_free(s->ctx);
}

static void take_weights(struct subject *s, const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_status status =
	    hg_params_import(s->params, hg_model_get_config(s->model), path, message);
	CHECK_MSG(status == HG_OK, "import: %s", message);
}

static void give_weights(struct subject *s, int native, const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_status status =
	    hg_params_export(s->params, native ? NULL : hg_model_get_config(s->model), path, message);
	CHECK_MSG(status == HG_OK, "export: %s", message);
}

/* The ring of tools/peers/weights.py, with self loops if the model wants them. */
static hg_graph *make_graph(const struct subject *s)
{
	static const int64_t rowptr[] = {0, 2, 5, 7, 9, 12, 14};
	static const int32_t col[] = {1, 5, 0, 2, 4, 1, 3, 2, 4, 1, 3, 5, 0, 4};
	hg_graph *graph = NULL, *looped = NULL;
	CHECK_OK(hg_graph_from_csr(s->ctx, N, N, 14, rowptr, col, NULL, &graph));
	if (!hg_model_get_info(hg_model_get_config(s->model)->name)->self_loops)
		return graph;
	CHECK_OK(hg_graph_add_self_loops(graph, &looped));
	hg_graph_free(graph);
	return looped;
}

static void predict(const struct subject *s, float *logits)
{
	float x[N * FEATURES], z[14 * ATTRIBUTES];
	int32_t col[14];
	int64_t rowptr[N + 1];
	hg_tensor *features = NULL, *edge_x = NULL;
	hg_tape *tape = NULL;
	hg_model_input input = HG_MODEL_INPUT_INIT;
	for (int i = 0; i < N; i++)
		for (int f = 0; f < FEATURES; f++)
			x[i * FEATURES + f] = (float)((7 * i + 3 * f) % 13 - 6) / 8.0f;
	input.graph = make_graph(s);
	CHECK_OK(hg_tensor_create(s->ctx, HG_F32, N, FEATURES, &features));
	CHECK_OK(hg_tensor_upload(features, x, HG_F32));
	input.x = features;
	if (hg_model_get_config(s->model)->edge_features) {
		CHECK_OK(hg_graph_download(input.graph, rowptr, col, NULL));
		for (int i = 0; i < N; i++)
			for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++)
				for (int f = 0; f < ATTRIBUTES; f++)
					z[e * ATTRIBUTES + f] = (float)((5 * i + 3 * col[e] + f) % 7 - 3) / 4.0f;
		CHECK_OK(hg_tensor_create(s->ctx, HG_F32, 14, ATTRIBUTES, &edge_x));
		CHECK_OK(hg_tensor_upload(edge_x, z, HG_F32));
		input.edge_x = edge_x;
	}
	CHECK_OK(hg_tape_create(s->params, HG_EVAL, &tape));
	const hg_var scores = hg_model_record(s->model, tape, &input);
	CHECK_MSG(hg_tape_compile(tape, scores) == HG_OK, "%s", hg_context_error(s->ctx));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(tape, scores), logits, HG_F32));
	hg_tape_free(tape);
	hg_tensor_free(features);
	hg_tensor_free(edge_x);
	hg_graph_free(input.graph);
}

/* All masters, one after the other. */
static float *masters_of(const struct subject *s, int64_t *count)
{
	float *all = malloc(1 << 16);
	CHECK(all != NULL);
	*count = 0;
	for (int64_t i = 0; i < hg_params_count(s->params); i++) {
		hg_tensor *master = hg_param_master(hg_params_at(s->params, i));
		CHECK_OK(hg_tensor_download(master, all + *count, HG_F32));
		*count += hg_tensor_rows(master) * hg_tensor_cols(master);
		CHECK(*count * 4 < 1 << 16);
	}
	return all;
}

static void check_same_masters(const struct subject *a, const struct subject *b)
{
	int64_t count = 0, again = 0;
	float *x = masters_of(a, &count), *y = masters_of(b, &again);
	CHECK(count == again && memcmp(x, y, (size_t)count * sizeof *x) == 0);
	free(x);
	free(y);
}

/* ---- PyTorch Geometric ---- */

static void logits_are_those_of_pytorch_geometric(void)
{
	for (size_t k = 0; k < sizeof peers / sizeof peers[0]; k++) {
		struct subject s;
		float logits[N * CLASSES];
		subject_open(&s, peers[k].model, "fp32");
		write_peer(&peers[k], scratch(0, "peer.safetensors"));
		take_weights(&s, scratch(0, "peer.safetensors"));
		predict(&s, logits);
		for (int i = 0; i < N * CLASSES; i++)
			CHECK_MSG(fabs((double)logits[i] - peers[k].logits[i]) <= 1e-5,
			          "%s, %s: logit %d: %.9g, %.9g", peers[k].model, peers[k].what, i,
			          (double)logits[i], peers[k].logits[i]);
		subject_close(&s);
	}
}

/* What is exported has the same names as the peer with PyG's own, and comes back bit for bit, into
 * half precision, too: masters are f32. */
static void round_trips_keep_every_bit(void)
{
	for (size_t k = 0; k < sizeof peers / sizeof peers[0]; k++)
		for (int native = 0; native < 2; native++) {
			struct subject a, b;
			subject_open(&a, peers[k].model, "fp32");
			subject_open(&b, peers[k].model, "fp16");
			write_peer(&peers[k], scratch(0, "peer.safetensors"));
			take_weights(&a, scratch(0, "peer.safetensors"));
			give_weights(&a, native, scratch(0, "out.safetensors"));
			take_weights(&b, scratch(0, "out.safetensors"));
			check_same_masters(&a, &b);
			give_weights(&b, native, scratch(1, "again.safetensors"));
			size_t count = 0, again = 0;
			unsigned char *x = read_bytes(scratch(0, "out.safetensors"), &count),
			              *y = read_bytes(scratch(1, "again.safetensors"), &again);
			CHECK(count == again && memcmp(x, y, count) == 0);
			CHECK(count % 8 == 0 || count % 4 == 0);
			free(x);
			free(y);
			subject_close(&a);
			subject_close(&b);
		}
}

/* Exports the weights of a model, and imports them into another one of zeros. */
static void goes_out_and_in(const char *name, int readout, hg_readout_layers depths)
{
	struct subject a, b;
	subject_open_task(&a, name, "fp32", readout, depths);
	subject_open_task(&b, name, "fp32", readout, depths);
	for (int64_t i = 0; i < hg_params_count(b.params); i++) {
		hg_tensor *master = hg_param_master(hg_params_at(b.params, i));
		const int64_t count = hg_tensor_rows(master) * hg_tensor_cols(master);
		float *zeros = calloc((size_t)count, sizeof *zeros);
		CHECK(zeros != NULL);
		CHECK_OK(hg_param_set(hg_params_at(b.params, i), zeros));
		free(zeros);
	}
	give_weights(&a, 0, scratch(0, "model.safetensors"));
	take_weights(&b, scratch(0, "model.safetensors"));
	check_same_masters(&a, &b);
	subject_close(&a);
	subject_close(&b);
}

/* Also those of models that have no peer in the table. */
static void every_model_goes_out_and_in(void)
{
	for (const char *const *name = hg_model_names(); *name; name++) {
		goes_out_and_in(*name, -1, HG_READOUT_LAYERS);
		for (int depths = HG_READOUT_LAYERS; depths <= HG_READOUT_ALL; depths++)
			goes_out_and_in(*name, HG_REDUCE_SUM, (hg_readout_layers)depths);
	}
}

static void odd_numbers_come_back(void)
{
	static const float odd[] = {NAN, -INFINITY, 1e-45f, -0.0f, 3e38f};
	struct subject a, b;
	float values[FEATURES * 5] = {0};
	subject_open(&a, "gcn", "fp32");
	subject_open(&b, "gcn", "fp32");
	memcpy(values, odd, sizeof odd);
	CHECK_OK(hg_param_set(hg_params_find(a.params, "conv0.weight"), values));
	give_weights(&a, 0, scratch(0, "odd.safetensors"));
	take_weights(&b, scratch(0, "odd.safetensors"));
	check_same_masters(&a, &b);
	subject_close(&a);
	subject_close(&b);
}

/* A state goes out with its best weights, and comes in with fresh moments. */
static void states_go_out_and_in(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_state *state = odd_state(), *other = odd_state();
	CHECK_MSG(hg_state_export(state, scratch(0, "s.safetensors"), message) == HG_OK, "%s", message);
	CHECK_MSG(hg_state_import(other, scratch(0, "s.safetensors"), message) == HG_OK, "%s", message);
	for (int64_t i = 0; i < state->tensors; i++) {
		const hg_state_tensor *x = &state->tensor[i], *y = &other->tensor[i];
		const size_t bytes = (size_t)(x->rows * x->cols) * sizeof(float);
		CHECK(memcmp(x->best, y->master, bytes) == 0 && !y->best && isinf(y->reach));
		for (size_t k = 0; k < bytes / sizeof(float); k++)
			CHECK(y->moment[0][k] <= 0.0f && y->moment[1][k] >= 0.0f);
	}
	CHECK(other->best.step == 0 && other->epochs == 0 && !hg_state_fault(other));
	hg_state_free(state);
	hg_state_free(other);
}

/* ---- damaged files ---- */

#define ONE "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
static const struct {
	const char *header; /* NULL: cut off */
	size_t bytes;       /* data behind it */
	const char *part;
} damages[] = {
    {"", 0, "header, byte 0: '[' or '{' expected"},
    {"[]", 0, "its header is not a JSON object"},
    {"{\"a\":3}", 0, "a: its dtype is not one of safetensors'"},
    {ONE, 8, "header, byte "},
    {ONE "}", 9, "has 9 bytes behind its header, and its tensors 8"},
    {ONE "}", 7, "a: its bytes 0 to 8 are not within the 7 that follow the header"},
    {ONE ",\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", 16,
     "duplicate object key"},
    {ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
     "b: its bytes begin at 4, those of the tensor before it end at 8: they overlap"},
    {ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}", 16,
     "b: its bytes begin at 12, those of the tensor before it end at 8: there is a hole"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
     "a: has 8 bytes, a F32 of shape [3] has 12"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "a: its bytes 8 to 0"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8,
     "a: its bytes -8 to 0"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8,
     "a: its data_offsets are not two integers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8.5]}}", 8,
     "a: its data_offsets are not two integers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8,
     "a: a length in its shape is not a number of elements"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,16],\"data_offsets\":[0,8]}}", 8,
     "a: a length in its shape is not a number of elements"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
     "a: its shape is not a list of at most 8 lengths"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1,
     "a: its dtype is not one of safetensors'"},
    {"{\"__metadata__\":3}", 0, "its __metadata__ is not an object"},
};

static void refuse_file(const char *path, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	struct subject s;
	subject_open(&s, "gcn", "fp32");
	CHECK_STATUS(hg_params_import(s.params, hg_model_get_config(s.model), path, message),
	             HG_ERR_FORMAT);
	CHECK_CONTAINS(message, part);
	CHECK_CONTAINS(message, path);
	subject_close(&s);
}

static void each_damage_is_refused_by_name(void)
{
	static const unsigned char zeros[64];
	const char *path = scratch(0, "bad.safetensors");
	for (size_t k = 0; k < sizeof damages / sizeof damages[0]; k++) {
		const size_t length = strlen(damages[k].header);
		write_parts(path, length, damages[k].header, length, zeros, damages[k].bytes);
		refuse_file(path, damages[k].part);
	}
	write_parts(path, 3, "{}", 2, NULL, 0);
	refuse_file(path, "is cut off: its header has 3 bytes, and 2 bytes follow its length");
	write_parts(path, 100000001, "{}", 2, NULL, 0);
	refuse_file(path, "its header would have 100000001 bytes, and at most 100000000 are read");
	write_parts(path, UINT64_MAX, "{}", 2, NULL, 0);
	refuse_file(path, "its header would have 18446744073709551615 bytes");
	write_text(path, "short");
	refuse_file(path, "has 5 bytes: not a safetensors file");
}

/* ---- files that do not fit ---- */

/* The tensors of the first peer, a GCN, with one change. NULL: left out. */
struct change {
	int64_t tensor;
	struct peer_tensor by;
	hg_status status;
	const char *part;
};
static const struct change changes[] = {
    {0, {NULL, 0, {0}}, HG_ERR_SHAPE, "has no tensor for conv0.bias, such as convs.0.bias"},
    {1,
     {NULL, 0, {0}},
     HG_ERR_SHAPE,
     "has 1 layers of a gcn (tensors whose names end with .lin.weight), the model has 2"},
    {1,
     {"conv1.lin.weight", 2, {5, 3}},
     HG_ERR_SHAPE,
     "conv1.lin.weight is [5, 3], conv0.weight needs [5, 4]"},
    {1,
     {"conv1.lin.weight", 1, {20}},
     HG_ERR_SHAPE,
     "conv1.lin.weight is [20], conv0.weight needs [5, 4]"},
    {4,
     {"conv2.lin.bias", 1, {3}},
     HG_ERR_SHAPE,
     "has conv2.lin.bias, for which a gcn of 2 layers has no place"},
    {4, {"conv3.lin.weight", 2, {3, 3}}, HG_ERR_SHAPE, "has 3 layers of a gcn"},
};

static void misfits_are_refused_by_name(void)
{
	for (size_t k = 0; k < sizeof changes / sizeof changes[0]; k++) {
		static struct writer w;
		struct subject a, b;
		char message[HG_DATA_MESSAGE] = "";
		const char *path = scratch(0, "misfit.safetensors");
		w.length = w.bytes = 0;
		for (int64_t t = 0; t < 5; t++) {
			const struct peer_tensor *of =
			    t == changes[k].tensor ? &changes[k].by : &peers[0].tensor[t];
			if (of->name)
				put_peer_tensor(&w, of, t);
		}
		finish(&w, path);
		subject_open(&a, "gcn", "fp32");
		subject_open(&b, "gcn", "fp32");
		CHECK_STATUS(hg_params_import(a.params, hg_model_get_config(a.model), path, message),
		             changes[k].status);
		CHECK_CONTAINS(message, changes[k].part);
		check_same_masters(&a, &b); /* nothing has changed */
		subject_close(&a);
		subject_close(&b);
	}
}

static void other_mistakes_are_refused_by_name(void)
{
	struct subject s, half;
	float large[FEATURES * 5] = {0};
	char message[HG_DATA_MESSAGE] = "";
	hg_state *state = NULL;
	const char *path = scratch(0, "x.safetensors");
	subject_open(&s, "gcn", "fp32");
	subject_open(&half, "gcn", "fp16");
	const hg_model_config *config = hg_model_get_config(s.model);
	large[7] = 1e6f;
	CHECK_OK(hg_param_set(hg_params_find(s.params, "conv0.weight"), large));
	give_weights(&s, 0, path);
	CHECK_STATUS(hg_params_import(half.params, config, path, message), HG_ERR_RANGE);
	CHECK_CONTAINS(message, "conv0.weight [1, 2] is 1e+06, beyond f16, in which it is used");
	give_weights(&s, 1, path);
	CHECK_STATUS(hg_params_import(half.params, NULL, path, message), HG_ERR_RANGE);
	hg_model_config other = *config;
	other.layers = 1;
	CHECK_STATUS(hg_params_export(s.params, &other, path, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "conv1.weight is no weight of a gcn with 1 layers");
	other.name = NULL;
	CHECK_STATUS(hg_params_export(s.params, &other, path, message), HG_ERR_ARG);
	CHECK_STATUS(hg_params_import(s.params, config, scratch(1, "absent"), message), HG_ERR_IO);
	CHECK_CONTAINS(message, "absent: cannot be read: No such file or directory");
	CHECK_STATUS(hg_params_import(s.params, config, "/dev/null", message), HG_ERR_IO);
	CHECK_CONTAINS(message, "not a regular file");
	CHECK_STATUS(hg_params_export(s.params, config, scratch(1, "no/x"), message), HG_ERR_IO);
	CHECK_STATUS(hg_params_export(NULL, config, path, message), HG_ERR_ARG);
	CHECK_STATUS(hg_params_import(s.params, config, NULL, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "params_import: path is NULL");
	CHECK_STATUS(hg_state_export(NULL, path, message), HG_ERR_ARG);
	CHECK_STATUS(hg_state_import(NULL, path, message), HG_ERR_ARG);
	CHECK_OK(hg_state_create(&state)); /* names as they are */
	CHECK_OK(hg_state_add_tensor(state, "w", 2, 3, 1, NULL));
	CHECK_OK(hg_state_export(state, path, message));
	CHECK_OK(hg_state_import(state, path, message));
	CHECK_STATUS(hg_params_import(s.params, NULL, path, message), HG_ERR_SHAPE);
	CHECK_CONTAINS(message, "has no tensor conv0.weight");
	hg_state_free(state);
	subject_close(&s);
	subject_close(&half);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(logits_are_those_of_pytorch_geometric),
	    TEST(round_trips_keep_every_bit),
	    TEST(every_model_goes_out_and_in),
	    TEST(odd_numbers_come_back),
	    TEST(states_go_out_and_in),
	    TEST(each_damage_is_refused_by_name),
	    TEST(misfits_are_refused_by_name),
	    TEST(other_mistakes_are_refused_by_name),
	};
	return RUN_TESTS(argc, argv, cases);
}
