/* --check: what a dataset will do in fp16, for people and for programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "h5convert.h"
#include "halfgraph/version.h"
#include "jsonl.h"
#include "tool.h"

/* Findings of one kind that are printed. */
enum { SHOWN = 5 };

static int code_of(const hg_fitness *r)
{
	static const int codes[HG_SEVERITIES] = {TOOL_DONE, TOOL_BAD_RUN, TOOL_BAD_INPUT};
	return codes[r->verdict];
}

static int out_of_memory(const char *path)
{
	tool_say("h5convert", "%s: out of memory", path);
	return TOOL_FAILED;
}

/* ---- for people ---- */

static int64_t count_severity(const hg_fitness *r, hg_severity severity)
{
	int64_t count = 0;
	for (int64_t k = 0; k < r->findings; k++)
		count += r->finding[k].severity == severity;
	return count;
}

static void print_verdict(const char *file, const hg_fitness *r)
{
	static const char *const verdicts[HG_SEVERITIES] = {"fit for fp16", "not fit as it is",
	                                                    "refused"};
	static const char *const words[HG_SEVERITIES] = {"note", "loss", "fault"},
	                         *const several[HG_SEVERITIES] = {"notes", "losses", "faults"};
	printf("%s: %s", file, verdicts[r->verdict]);
	const char *separator = ": ";
	for (int s = HG_SEVERITIES - 1; s >= 0; s--) {
		const int64_t count = count_severity(r, (hg_severity)s);
		if (count)
			printf("%s%" PRId64 " %s", separator, count, count == 1 ? words[s] : several[s]);
		separator = count ? ", " : separator;
	}
	putchar('\n');
}

static void print_facts(const hg_fitness *r)
{
	if (r->nodes == 0)
		return;
	printf("  looked at %" PRId64 " nodes", r->nodes);
	if (r->batch)
		printf(" in %" PRId64 " graphs", r->graphs);
	printf(", %" PRId64 " %sedges, %" PRId64 " columns", r->edges, r->weighted ? "weighted " : "",
	       r->columns);
	printf("%s\n", r->columns == 0 ? "" : r->sparse ? " (sparse)" : " (dense)");
}

/* The findings are sorted by severity, kind and badness. */
int fitness_print(const char *path, const hg_fitness *r)
{
	char *file = tool_printable(path);
	if (!file)
		return out_of_memory(path);
	print_verdict(file, r);
	free(file);
	print_facts(r);
	int64_t alike = 0;
	for (int64_t k = 0; k < r->findings; k++) {
		const hg_fitness_finding *f = &r->finding[k], *next = f + 1;
		const char *severity = hg_severity_name(f->severity);
		char sentence[HG_DATA_MESSAGE] = "";
		const int last =
		    k + 1 == r->findings || next->kind != f->kind || next->severity != f->severity;
		if (alike++ < SHOWN && hg_fitness_sentence(r, k, sentence) == HG_OK)
			printf("  %-7s  %s\n", severity, sentence);
		if (last && alike > SHOWN)
			printf("  %-7s  ... and %" PRId64 " more of this kind (--json lists all)\n", severity,
			       alike - SHOWN);
		alike = last ? 0 : alike;
	}
	return code_of(r);
}

/* ---- for programs ---- */

static int write_column(const hg_fitness_column *c, int64_t at)
{
	return jsonl_write(
	    stdout,
	    json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
	              "s:f, s:I, s:I}",
	              "event", "check_column", "column", (json_int_t)at, "values",
	              (json_int_t)c->values, "nonzero", (json_int_t)c->nonzero, "nonfinite",
	              (json_int_t)c->nonfinite, "overflow", (json_int_t)c->overflow, "vanish",
	              (json_int_t)c->vanish, "subnormal", (json_int_t)c->subnormal, "least", c->least,
	              "most", c->most, "mean", c->mean, "deviation", c->deviation, "error", c->error,
	              "low", c->low, "high", c->high, "noise", c->noise, "distinct",
	              (json_int_t)c->distinct, "distinct_half", (json_int_t)c->distinct_half));
}

static int write_finding(const hg_fitness *r, int64_t k)
{
	const hg_fitness_finding *f = &r->finding[k];
	char sentence[HG_DATA_MESSAGE] = "";
	return hg_fitness_sentence(r, k, sentence) == HG_OK
	           ? jsonl_write(stdout,
	                         json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:f, s:s, s:s, s:s}",
	                                   "event", "check_finding", "kind",
	                                   hg_fitness_kind_name(f->kind), "severity",
	                                   hg_severity_name(f->severity), "weights", f->weights, "at",
	                                   (json_int_t)f->at, "count", (json_int_t)f->count, "of",
	                                   (json_int_t)f->of, "value", f->value, "option", f->option,
	                                   "call", f->call, "sentence", sentence))
	           : -1;
}

static int write_summary(const char *path, const hg_fitness *r)
{
	static const char *const verdicts[HG_SEVERITIES] = {"fit", "loss", "refused"};
	return jsonl_write(
	    stdout,
	    json_pack("{s:s, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:I}", "event",
	              "check_summary", "version", hg_version_string(), "file", json_text(path),
	              "verdict", verdicts[r->verdict], "findings", (json_int_t)r->findings, "nodes",
	              (json_int_t)r->nodes, "edges", (json_int_t)r->edges, "graphs",
	              (json_int_t)r->graphs, "columns", (json_int_t)r->columns, "sparse", r->sparse,
	              "weighted", r->weighted, "isolated", (json_int_t)r->isolated, "most_neighbours",
	              (json_int_t)r->most_neighbours));
}

int fitness_json(const char *path, const hg_fitness *r)
{
	int failed = 0;
	for (int64_t j = 0; !failed && j < r->columns; j++)
		failed = write_column(&r->column[j], j);
	if (!failed && r->weighted)
		failed = write_column(&r->weight, -1);
	for (int64_t k = 0; !failed && k < r->findings; k++)
		failed = write_finding(r, k);
	if (!failed)
		failed = write_summary(path, r);
	if (failed && !ferror(stdout)) /* tool_finish reports what stdout did not take */
		return out_of_memory(path);
	return failed ? TOOL_FAILED : code_of(r);
}
