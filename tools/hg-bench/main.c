#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "graphs.h"
#include "tool.h"
#include "variants.h"
#include "watch.h"

struct command {
	hg_status (*run_command)(struct bench *b);
};
static const struct command commands[] = {{bench_spmm},         {bench_sddmm},     {bench_gemm},
                                          {bench_edge_softmax}, {bench_attention}, {bench_epoch},
                                          {bench_epoch},        {bench_batches},   {bench_group},
                                          {bench_convert},      {bench_ops}};
_Static_assert(sizeof commands / sizeof *commands == COMMANDS, "each has a name");
#define STEP 6
#define BATCHES 7
#define GROUP 8

static const struct device *device_of(const hg_context *ctx)
{
#ifdef HG_HAVE_CUDA
	if (hg_context_device(ctx) == HG_DEVICE_CUDA)
		return &device_cuda;
#endif
	(void)ctx;
	return &device_host;
}

static hg_status measure_all(struct bench *b)
{
	HG__TRY(workload_make(b, b->options.graph, b->options.weights));
	HG__TRY(copy_rate(b, &b->report.copy_tb_s));
	report_head(b);
	return commands[b->options.command].run_command(b);
}

static int peer_check(const struct bench *b)
{
	if (!b->options.peer || b->device->peers)
		return 0;
	tool_say("hg-bench", "--peer cusparse needs a GPU; this runs on %s",
	         hg_context_device_name(b->ctx));
	return TOOL_BAD_INPUT;
}

static int report_error(const char *sentence, hg_status status)
{
	tool_say("hg-bench", "%s", sentence);
	return watch_interrupted() ? TOOL_INTERRUPTED : tool_code_of(status);
}

static int run_command(struct bench *b)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = (hg_device)b->options.device;
	config.threads = (int)b->options.threads;
	config.seed = (uint64_t)b->options.seed;
	hg_status status = hg_context_create(&config, &b->ctx);
	if (status < 0)
		return report_error(hg_context_error(NULL), status);
	b->device = device_of(b->ctx);
	int code = peer_check(b);
	if (!code)
		code = report_begin(b);
	if (!code)
		status = measure_all(b);
	if (status < 0)
		code = report_error(hg_context_error(b->ctx), status);
	report_end(b);
	workload_free(b);
	hg_context_free(b->ctx);
	return code ? code : b->report.wrong || b->report.lost;
}

/* Defaults that depend on the command. */
static void defaults(struct options *o)
{
	if (!o->graph)
		o->graph = o->command == STEP || o->command == GROUP ? "cora-like"
		           : o->command == BATCHES                   ? "qm9-like"
		                                                     : "tiny";
	if (o->readout == READOUT_UNSET)
		o->readout = o->command == BATCHES ? 1 + HG_REDUCE_MEAN : 0;
	if (!o->repeat)
		o->repeat = 7;
}

int main(int argc, char **argv)
{
	struct bench b = {.report.file = -1};
	tool_begin(argv);
	int code;
	if (tool_describes(&options_about, argc, argv, &code))
		return tool_finish("hg-bench", code);
	code = options_parse(argc, argv, &b.options);
	if (!code && b.options.help) {
		tool_help_print(stdout, &options_about);
	} else if (!code) {
		const struct variant_list *variants = variants_of(command_names[b.options.command].name);
		const int list = variants && strcmp(b.options.variant, "list") == 0;
		defaults(&b.options);
		b.policy = &b.options.policy[0];
		if (list)
			variant_print(variants);
		else if (variants)
			code = variant_check(variants, b.options.variant);
		if (!code && !list)
			code = run_command(&b);
	}
	return tool_finish("hg-bench", code);
}
