/* --class-weights: balanced, or the numbers of a file. */
#include "weights.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The next number of the file, after blanks, commas and ends of lines. Returns 1; 0 at the end of
 * the file; -1, with a message, for anything else. */
static int number_read(FILE *in, const char *path, int64_t index, double *value, char *message)
{
	char text[64];
	size_t length = 0;
	int c = fgetc(in);
	while (c != EOF && (isspace(c) || c == ','))
		c = fgetc(in);
	if (c == EOF)
		return 0;
	for (; c != EOF && !isspace(c) && c != ',' && length + 1 < sizeof text; c = fgetc(in))
		text[length++] = (char)(isprint(c) ? c : '?');
	text[length] = 0;
	char *end = NULL;
	*value = strtod(text, &end);
	if (*end == 0 && *value >= 0.0 && *value <= 1e30)
		return 1;
	(void)snprintf(message, HG_DATA_MESSAGE,
	               "--class-weights %s: number %lld is \"%s\", expected one from 0 to 1e30", path,
	               (long long)index + 1, text);
	return -1;
}

static hg_status numbers_read(FILE *in, const char *path, int64_t count, float *weights,
                              char *message)
{
	int64_t found = 0;
	double value = 0.0;
	int more = number_read(in, path, 0, &value, message);
	for (; more > 0; more = number_read(in, path, found, &value, message)) {
		if (found < count)
			weights[found] = (float)value;
		found++;
	}
	if (more < 0)
		return HG_ERR_FORMAT;
	if (ferror(in)) {
		(void)snprintf(message, HG_DATA_MESSAGE, "--class-weights %s: %s", path, strerror(errno));
		return HG_ERR_IO;
	}
	if (found == count)
		return HG_OK;
	(void)snprintf(message, HG_DATA_MESSAGE, "--class-weights %s: %lld numbers, expected %lld",
	               path, (long long)found, (long long)count);
	return HG_ERR_FORMAT;
}

static hg_status file_read(const char *path, int64_t count, float *weights, char *message)
{
	FILE *in = fopen(path, "rb");
	if (!in) {
		(void)snprintf(message, HG_DATA_MESSAGE, "--class-weights %s: %s", path, strerror(errno));
		return HG_ERR_IO;
	}
	const hg_status status = numbers_read(in, path, count, weights, message);
	(void)fclose(in);
	return status;
}

const char *weights_file(const struct training *t)
{
	return t->class_weights && strcmp(t->class_weights, "balanced") != 0 ? t->class_weights : NULL;
}

static hg_status balance(const hg_dataset *d, hg_loss loss, int64_t count, float *weights)
{
	hg_train_data data = HG_TRAIN_DATA_INIT;
	data.labels = d->label;
	data.targets = d->target;
	data.target_cols = d->targets;
	data.train_mask = d->train_mask;
	return hg_train_balance(&data, d->graph_ptr ? d->graphs : d->nodes, loss, count, weights);
}

/* Labels are smoothed towards other classes, of which only cross-entropy has several. */
static hg_status smoothing_make(const struct training *t, hg_train_config *config, char *message)
{
	if (isnan(t->label_smoothing))
		return HG_OK;
	config->label_smoothing = (float)t->label_smoothing;
	if (config->loss == HG_LOSS_CROSS_ENTROPY || t->label_smoothing <= 0.0)
		return HG_OK;
	(void)snprintf(message, HG_DATA_MESSAGE,
	               "--label-smoothing is an option of --loss cross-entropy, but the run learns %s",
	               config->loss == HG_LOSS_BCE ? "several labels" : "numbers");
	return HG_ERR_ARG;
}

hg_status weights_make(const struct training *t, const hg_dataset *d, hg_train_config *config,
                       float **weights, char *message)
{
	const int64_t count = config->model.out_features;
	*weights = NULL;
	const hg_status smoothed = smoothing_make(t, config, message);
	if (smoothed < 0 || !t->class_weights)
		return smoothed;
	if (config->loss != HG_LOSS_CROSS_ENTROPY && config->loss != HG_LOSS_BCE) {
		(void)snprintf(message, HG_DATA_MESSAGE,
		               "--class-weights is an option of classes and labels, but the run learns "
		               "numbers");
		return HG_ERR_ARG;
	}
	*weights = count > 0 ? calloc((size_t)count, sizeof **weights) : NULL;
	if (!*weights) {
		(void)snprintf(message, HG_DATA_MESSAGE, "out of memory for the weights of %lld classes",
		               (long long)count);
		return HG_ERR_NOMEM;
	}
	config->class_weights = *weights;
	config->class_weight_count = count;
	return weights_file(t) ? file_read(weights_file(t), count, *weights, message)
	                       : balance(d, config->loss, count, *weights);
}
