/* The generator of planted datasets: its promises, and the same numbers on every machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static hg_dataset *planted(const hg_planted_config *config)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	const hg_status status = hg_dataset_planted(config, &d, message);
	CHECK_MSG(status == HG_OK, "%s", message);
	return d;
}

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		h = (h ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001B3);
	return h;
}

static uint64_t hash_dataset(const hg_dataset *d)
{
	uint64_t h = UINT64_C(0xCBF29CE484222325);
	h = hash(h, d->rowptr, (size_t)(d->nodes + 1) * sizeof *d->rowptr);
	h = hash(h, d->col, (size_t)d->edges * sizeof *d->col);
	h = hash(h, d->label, (size_t)d->nodes * sizeof *d->label);
	h = hash(h, d->train_mask, (size_t)d->nodes);
	h = hash(h, d->test_mask, (size_t)d->nodes);
	return hash(h, d->feat, (size_t)(d->nodes * d->features) * sizeof(float));
}

static void same_seed_same_numbers(void)
{
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	config.nodes = 1000;
	config.hub_degree = 300;
	config.seed = 7;
	hg_dataset *a = planted(&config), *b = planted(&config);
	check_same(a, b);
	/* The same on other machines and compilers, if they are little-endian: the bytes are hashed. */
	CHECK_MSG(hash_dataset(a) == UINT64_C(0xE993B3211ED31ADF), "hash is %llx",
	          (unsigned long long)hash_dataset(a));
	config.seed = 8;
	hg_dataset *c = planted(&config);
	CHECK(hash_dataset(c) != hash_dataset(a));
	hg_dataset_free(a);
	hg_dataset_free(b);
	hg_dataset_free(c);
}

static void dataset_has_the_promised_properties(void)
{
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	hg_dataset *d = planted(&config);
	int64_t inside = 0, ordinary = 0, hubs = 0, split[3] = {0}, per_class[8] = {0};
	for (int64_t i = 0; i < d->nodes; i++) {
		const int64_t degree = d->rowptr[i + 1] - d->rowptr[i];
		hubs += degree > 3500;
		split[0] += d->train_mask[i];
		split[1] += d->val_mask[i];
		split[2] += d->test_mask[i];
		per_class[d->label[i]]++;
		for (int64_t e = d->rowptr[i]; degree <= 3500 && e < d->rowptr[i + 1]; e++)
			if (d->rowptr[d->col[e] + 1] - d->rowptr[d->col[e]] <= 3500) {
				ordinary++;
				inside += d->label[i] == d->label[d->col[e]];
			}
	}
	CHECK_EQ_I(d->nodes, 10000);
	CHECK_EQ_I(hubs, 8);
	CHECK(split[0] == 1000 && split[1] == 1000 && split[2] == 8000);
	for (int c = 0; c < 8; c++)
		CHECK_EQ_I(per_class[c], 1250);
	/* Degree 10, less the pairs that were drawn twice. 0.8 of the edges stay inside, and an eighth
	 * of the others. */
	CHECK_WITHIN((double)ordinary / (double)d->nodes, 9.6, 0.4);
	CHECK_WITHIN((double)inside / (double)ordinary, 0.825, 0.02);
	hg_dataset_free(d);
}

/* What the generator is for: at a hub, sums exceed 65504, while every value and every mean stays
 * small. */
static void hub_sums_overflow_f16(void)
{
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	char message[HG_DATA_MESSAGE] = "";
	config.scale = 32;
	hg_dataset *d = planted(&config);
	double largest_sum = 0, largest_mean = 0;
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t j = 0; j < d->features; j++) {
			double sum = 0;
			for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
				sum += (double)((float *)d->feat)[d->col[e] * d->features + j];
			const double mean = sum / fmax(1, (double)(d->rowptr[i + 1] - d->rowptr[i]));
			largest_sum = fmax(largest_sum, fabs(sum));
			largest_mean = d->rowptr[i + 1] - d->rowptr[i] > 3500 ? fmax(largest_mean, fabs(mean))
			                                                      : largest_mean;
		}
	CHECK(largest_sum > 65504 * 1.5);
	CHECK(largest_mean < 100 && largest_mean > 16);
	CHECK(d->feat_amax < 200);
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, message));
	hg_dataset_free(d);
}

static void degrees_follow_a_power_law(void)
{
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	config.nodes = 20000;
	config.hubs = 0;
	config.features = 0;
	hg_dataset *d = planted(&config);
	double sum = 0;
	int64_t count = 0;
	for (int64_t i = 0; i < d->nodes; i++) {
		const double degree = (double)(d->rowptr[i + 1] - d->rowptr[i]);
		if (degree >= 20) { /* Hill's estimator of the exponent over the tail */
			sum += log(degree / 19.5);
			count++;
		}
	}
	CHECK_WITHIN(1 + (double)count / sum, 2.5, 0.35);
	CHECK(d->feat == NULL && d->features == 0);
	hg_dataset_free(d);
}

static void bad_configurations_are_refused(void)
{
	static const struct {
		hg_planted_config config;
		const char *part;
	} bad[] = {
	    {{1, 100, 4, 0, 2, 3, 0, 1, 0, NULL}, "config.size is 1"},
	    {{sizeof(hg_planted_config), 100, 4, 0, 1, 3, 0, 1, 0, NULL}, "1 classes"},
	    {{sizeof(hg_planted_config), 19, 4, 0, 2, 3, 0, 1, 0, NULL},
	     "19 nodes, expected at least 10 per class"},
	    {{sizeof(hg_planted_config), INT64_C(1) << 31, 4, 0, 2, 3, 0, 1, 0, NULL},
	     "2147483648 nodes"},
	    {{sizeof(hg_planted_config), 100, -1, 0, 2, 3, 0, 1, 0, NULL}, "-1 features"},
	    {{sizeof(hg_planted_config), 100, 4, 0, 2, 100, 0, 1, 0, NULL}, "degree 100"},
	    {{sizeof(hg_planted_config), 100, 4, 0, 2, NAN, 0, 1, 0, NULL}, "degree nan"},
	    {{sizeof(hg_planted_config), 100, 4, 101, 2, 3, 0, 1, 0, NULL}, "101 hubs"},
	    {{sizeof(hg_planted_config), 100, 4, 1, 2, 3, 100, 1, 0, NULL}, "hub degree 100"},
	    {{sizeof(hg_planted_config), 100, 4, 1, 2, 3, 10, 0, 0, NULL}, "scale 0"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = NULL;
		CHECK_STATUS(hg_dataset_planted(&bad[k].config, &d, message), HG_ERR_ARG);
		CHECK_CONTAINS(message, bad[k].part);
		CHECK(d == NULL);
	}
}

/* How often the callback was called, which call says stop, and the phases that it was told. */
struct watcher {
	int allowed, calls, works;
	const char *what;
};

static int stop_then(void *user, const char *what, int64_t done, int64_t total)
{
	struct watcher *w = user;
	CHECK(done >= 0 && done < total);
	w->works += !w->what || strcmp(w->what, what) != 0;
	w->what = what;
	return w->calls++ == w->allowed;
}

/* Every phase calls the callback, and the first call that says stop is the last one. */
static void stops_on_request(void)
{
	hg_status status = HG_ERR_STATE;
	struct watcher w = {0};
	for (int allowed = 0; status != HG_OK; allowed++) {
		char message[HG_DATA_MESSAGE] = "";
		w = (struct watcher){.allowed = allowed};
		const hg_progress progress = {stop_then, &w};
		hg_planted_config config = HG_PLANTED_CONFIG_INIT;
		hg_dataset *d = NULL;
		config.progress = &progress;
		config.nodes = 1000;
		config.hub_degree = 300;
		status = hg_dataset_planted(&config, &d, message);
		if (status == HG_OK) {
			hg_dataset_free(d);
			break;
		}
		CHECK_STATUS(status, HG_ERR_STATE);
		CHECK_CONTAINS(message, "stopped on request while planting ");
		CHECK(d == NULL && w.calls == allowed + 1);
	}
	CHECK_EQ_I(w.works, 7); /* nodes, degrees, edges, hubs, labels, splits, features */
}

/* A long phase calls the callback again and again, not only at its beginning. */
static void callback_is_called_all_the_time(void)
{
	char message[HG_DATA_MESSAGE] = "";
	struct watcher w = {.allowed = 60};
	const hg_progress progress = {stop_then, &w};
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	hg_dataset *d = NULL;
	config.nodes = 2000000;
	config.progress = &progress;
	CHECK_STATUS(hg_dataset_planted(&config, &d, message), HG_ERR_STATE);
	/* 31 slabs of the identity and 30 of the shuffle, with one call each */
	CHECK_CONTAINS(message, "stopped on request while planting nodes");
	CHECK_EQ_I(w.calls, 61);
}

static void more_memory_than_there_is_is_refused(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	hg_dataset *d = NULL;
	struct watcher w = {0};
	const hg_progress progress = {stop_then, &w};
	config.nodes = INT32_MAX;
	config.features = 1000000; /* 8 PiB */
	config.progress = &progress;
	CHECK_STATUS(hg_dataset_planted(&config, &d, message), HG_ERR_NOMEM);
	CHECK_CONTAINS(message,
	               "planted: 2147483647 nodes, 21474900470 edges and 1000000 features need 8000");
	CHECK_CONTAINS(message, " GiB of memory, this machine has ");
	CHECK(d == NULL && w.calls == 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(same_seed_same_numbers),          TEST(dataset_has_the_promised_properties),
	    TEST(hub_sums_overflow_f16),           TEST(degrees_follow_a_power_law),
	    TEST(bad_configurations_are_refused),  TEST(stops_on_request),
	    TEST(callback_is_called_all_the_time), TEST(more_memory_than_there_is_is_refused)};
	return RUN_TESTS(argc, argv, cases);
}
