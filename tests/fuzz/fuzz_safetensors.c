/* The reader of safetensors files, into the params of a small GIN, which has every kind of
 * part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "halfgraph/halfgraph.h"

static hg_params *params;
static hg_model *model;

static void need(hg_status status)
{
	if (status < 0)
		abort();
}

static void make_model(void)
{
	hg_context *ctx = NULL;
	hg_model_config c = hg_model_config_default("gin");
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = HG_DEVICE_CPU;
	config.threads = 1;
	c.in_features = 3;
	c.out_features = 2;
	c.hidden = 2;
	need(hg_context_create(&config, &ctx));
	need(hg_params_create(ctx, NULL, &params));
	need(hg_model_create(params, &c, &model));
}

/* Success or one line of text; the params are those of the file, or as before. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char name[] = "/tmp/hg-fuzz-XXXXXX", message[HG_DATA_MESSAGE] = "";
	const int fd = mkstemp(name);
	if (!params)
		make_model();
	if (fd < 0 || (count > 0 && write(fd, bytes, count) != (ssize_t)count))
		abort();
	close(fd);
	const hg_status status = hg_params_import(params, hg_model_get_config(model), name, message);
	unlink(name);
	if (status < 0 && (!*message || strchr(message, '\n')))
		abort();
	return 0;
}
