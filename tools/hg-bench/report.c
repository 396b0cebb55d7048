#define _POSIX_C_SOURCE 200809L

#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "files.h"
#include "graphs.h"
#include "halfgraph/data.h"
#include "halfgraph/version.h"
#include "json.h"
#include "stream.h"
#include "tool.h"

struct result result_new(const char *op, const char *variant, const char *precision)
{
	const double none = (double)NAN;
	return (struct result){.op = op,
	                       .variant = variant,
	                       .precision = precision,
	                       .bytes = none,
	                       .flops = none,
	                       .gather_ms = none,
	                       .unordered_ms = none,
	                       .peer_ms = none,
	                       .error = none,
	                       .ms = {none, none, none, 0}};
}

int report_begin(struct bench *b)
{
	struct report *r = &b->report;
	const char *path = b->options.json, *why;
	char message[HG_DATA_MESSAGE] = "";
	r->file = -1;
	r->to_stdout = path && strcmp(path, "-") == 0;
	if (r->to_stdout)
		(void)setvbuf(stdout, NULL, _IONBF, 0); /* as stream_line expects */
	if (!path || r->to_stdout)
		return 0;
	const struct tool_file files[] = {
	    {"--graph", graph_is_file(b->options.graph) ? b->options.graph : NULL, TOOL_READ,
	     "the graph itself"},
	    {"--json", path, TOOL_STREAMED, NULL},
	};
	if (tool_files_check(files, sizeof files / sizeof *files, message) < 0) {
		tool_say("hg-bench", "%s", message);
		return TOOL_BAD_INPUT;
	}
	r->file = json_open(path, &why);
	if (r->file >= 0)
		return 0;
	tool_say("hg-bench", "%s: cannot be written: %s", path, why);
	return TOOL_BAD_INPUT;
}

void report_head(struct bench *b)
{
	struct report *r = &b->report;
	b->device->versions(r->driver, r->toolkit, sizeof r->driver);
	if (r->to_stdout)
		return;
	printf("# HalfGraph %s (%s) on %s", hg_version_string(), HG_COMMIT,
	       hg_context_device_name(b->ctx));
	if (*r->toolkit)
		printf(", driver %s, CUDA %s", r->driver, r->toolkit);
	printf("; copy %.3g TB/s\n# %s: %" PRId64 " nodes, %" PRId64 " edges, longest row %" PRId64
	       ", seed %" PRId64 "\n",
	       r->copy_tb_s, b->graph_name, hg_graph_rows(b->graph), hg_graph_edges(b->graph),
	       b->rowptr[b->longest + 1] - b->rowptr[b->longest], b->options.seed);
	reorder_print(&b->reorder);
	printf("%-18s %-30s %-10s %5s %2s %10s %22s %9s %6s %7s", "op", "variant", "precision", "F",
	       "h", "ms", "(least .. most)", "TB/s", "roof", "gather");
	if (b->reorder.unordered)
		printf(" %9s", "unordered");
	printf(" %7s %9s\n", "peer", "err/bound");
	fflush(stdout);
}

/* Print a figure in a column, "-" for NAN. */
static void put_figure(int width, int decimals, double value)
{
	if (isnan(value))
		printf(" %*s", width, "-");
	else if (fabs(value) < 1e6)
		printf(" %*.*f", width, decimals, value);
	else
		printf(" %*.2g", width, value);
}

/* Print a width or a number of heads, "-" for 0. */
static void put_count(int width, int64_t count)
{
	if (count)
		printf(" %*" PRId64, width, count);
	else
		printf(" %*s", width, "-");
}

static void print_row(const struct bench *b, const struct result *r)
{
	char spread[40] = "";
	const double tb_s = r->bytes / r->ms.median * 1e-9;
	if (r->ms.samples > 1)
		snprintf(spread, sizeof spread, "(%.4f .. %.4f)", r->ms.least, r->ms.most);
	printf("%-18s %-30s %-10s", r->op, r->variant, r->precision ? r->precision : "");
	put_count(5, r->features);
	put_count(2, r->heads);
	put_figure(10, 4, r->ms.median);
	printf(" %22s", spread);
	put_figure(9, 3, tb_s);
	put_figure(6, 2, tb_s / b->report.copy_tb_s);
	put_figure(7, 2, r->ms.median / r->gather_ms);
	if (b->reorder.unordered)
		put_figure(9, 2, r->ms.median / r->unordered_ms);
	put_figure(7, 2, r->peer_ms / r->ms.median);
	put_figure(9, 3, r->error);
	if (!isnan(r->flops))
		printf("  %.3g TFLOP/s", r->flops / r->ms.median * 1e-9);
	printf("%s%s\n", r->note ? "  " : "", r->note ? r->note : "");
	fflush(stdout);
}

static void describe(const struct bench *b, struct json *j, const char *op, const char *variant)
{
	const struct report *r = &b->report;
	json_begin(j);
	json_text(j, "version", hg_version_string());
	json_text(j, "commit", HG_COMMIT);
	json_text(j, "device", hg_context_device_name(b->ctx));
	json_text(j, "driver", r->driver);
	json_text(j, "cuda", r->toolkit);
	json_text(j, "graph", b->graph_name);
	json_integer(j, "nodes", hg_graph_rows(b->graph));
	json_integer(j, "edges", hg_graph_edges(b->graph));
	json_integer(j, "seed", b->options.seed);
	reorder_json(&b->reorder, j);
	json_text(j, "op", op);
	json_text(j, "variant", variant);
}

static void put_line(struct bench *b, struct json *j)
{
	struct report *r = &b->report;
	if (json_end(j)) {
		fputs("hg-bench: a result is too long for a line of JSON\n", stderr);
		r->lost++;
	} else if (r->to_stdout) {
		j->text[j->length - 1] = '\0';      /* stream_line adds the newline */
		(void)stream_line(stdout, j->text); /* tool_finish reports a failure */
	} else if (r->file >= 0 && json_append(r->file, j)) {
		stream_say("hg-bench", b->options.json, errno);
		r->lost++;
	}
}

static void write_json(struct bench *b, const struct result *r)
{
	static const char *const norm[] = {"none", "left", "right", "both", "in"};
	struct json j;
	describe(b, &j, r->op, r->variant);
	if (r->precision)
		json_text(&j, "precision", r->precision);
	if (r->features)
		json_integer(&j, "features", r->features);
	if (r->heads)
		json_integer(&j, "heads", r->heads);
	json_text(&j, "norm", norm[b->options.norm]);
	json_integer(&j, "weights", b->options.weights);
	json_number(&j, "ms", r->ms.median);
	json_number(&j, "ms_min", r->ms.least);
	json_number(&j, "ms_max", r->ms.most);
	json_integer(&j, "samples", r->ms.samples);
	json_number(&j, "bytes", r->bytes);
	json_number(&j, "tb_s", r->bytes / r->ms.median * 1e-9);
	json_number(&j, "copy_tb_s", b->report.copy_tb_s);
	json_number(&j, "roofline", r->bytes / r->ms.median * 1e-9 / b->report.copy_tb_s);
	json_number(&j, "tflop_s", r->flops / r->ms.median * 1e-9);
	json_number(&j, "gather_ms", r->gather_ms);
	json_number(&j, "over_gather", r->ms.median / r->gather_ms);
	if (b->reorder.unordered) {
		json_number(&j, "unordered_ms", r->unordered_ms);
		json_number(&j, "over_unordered", r->ms.median / r->unordered_ms);
	}
	json_number(&j, "peer_ms", r->peer_ms);
	json_number(&j, "faster_than_peer", r->peer_ms / r->ms.median);
	json_number(&j, "err_over_bound", r->error);
	for (int i = 0; i < RESULT_MORE && r->more_name[i]; i++)
		json_number(&j, r->more_name[i], r->more[i]);
	if (r->note)
		json_text(&j, "note", r->note);
	put_line(b, &j);
}

void report_result(struct bench *b, const struct result *r)
{
	if (!b->report.to_stdout)
		print_row(b, r);
	if (b->report.to_stdout || b->report.file >= 0)
		write_json(b, r);
}

void report_absent(struct bench *b, const char *op, const char *variant, const char *why)
{
	struct json j;
	if (!b->report.to_stdout) {
		printf("%-18s %-30s n/a: %s\n", op, variant, why);
		fflush(stdout);
	}
	describe(b, &j, op, variant);
	json_text(&j, "absent", why);
	put_line(b, &j);
}

void report_end(struct bench *b)
{
	struct report *r = &b->report;
	if (r->file >= 0 && close(r->file)) {
		stream_say("hg-bench", b->options.json, errno);
		r->lost++;
	}
	r->file = -1;
}
