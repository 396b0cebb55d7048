/* Prints a finding in which every field is set. Usage: hg_doctor_finding JSON-FILE. The text goes
 * to standard output, and is checked here; the JSON goes to the file. Returns 1 if a part of the
 * text is missing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "findings.h"

static const hg_chain_link chain[] = {
    {3, 0, "exp", "scores", "scores/exp", 2, 12},
    {4, 0, "div", "scores", "scores/div", 3, 12},
    {5, 0, "linear", "out", "out/linear", 3, 12},
    {6, 0, "mse", "", "mse", 1, 1},
    {5, 1, "linear", "out", "gradient of out/linear", 3, 12},
    {4, 1, "div", "scores", "gradient of scores/div", 3, 12},
    {3, 1, "exp", "scores", "gradient of scores/exp", 3, 12},
    {-1, 1, "w0", "", "w0", 1, 2},
    {-1, 1, "w1", "", "w1", 1, 2},
    {-1, 1, "w2", "", "w2", 1, 2},
    {-1, 1, "w3", "", "w3", 1, 2},
    {-1, 1, "w4", "", "w4", 1, 2},
    {-1, 1, "w5", "", "w5", 1, 2},
};

static hg_remedy remedies[] = {
    {.option = "--precision fp16",
     .call = "",
     .why = "wider",
     .tried = 1,
     .failure = "the loss rises"},
    {.option = "", .call = "policy = hg_policy_fp32()", .why = "one op for both"},
    {.option = "--lr 0.001",
     .call = "",
     .why = "shorter steps",
     .tried = 1,
     .worked = 1,
     .loss_first = 2,
     .loss_last = 0.5},
    {.option = "", .call = "", .why = "add eps"},
};

static hg_finding full_finding(void)
{
	hg_finding f = {.size = sizeof f,
	                .cause = HG_CAUSE_STORE,
	                .step = 7,
	                .node = 3,
	                .op = "exp",
	                .op_words = "exponential",
	                .layer = "scores",
	                .tensor = "scores/exp",
	                .row = 5,
	                .col = 2,
	                .head = 2,
	                .head_of = "source",
	                .evaluation = 1,
	                .edge_row = -1,
	                .edge_col = -1,
	                .got = (double)INFINITY,
	                .wide = 99000,
	                .limit = 65520,
	                .bad = 2,
	                .count = 12,
	                .scale = 65536,
	                .partial_factor = 1,
	                .grown = "w0",
	                .grown_by = 300,
	                .operands = 2,
	                .operand = {{"x", "scores/linear", 5, 2, 11.5}, {"factor", "", -1, -1, 0.25}},
	                .top = {{5, 2, 1, 3, 3, HG_TERM_OWN},
	                        {0, 2, 1, 2, 2, HG_TERM_BIAS},
	                        {4, 2, 1, 1, 1, HG_TERM_ADDEND}},
	                .tops = 3,
	                .terms = 5,
	                .chain = chain,
	                .links = (int)(sizeof chain / sizeof *chain),
	                .remedy = remedies,
	                .remedies = (int)(sizeof remedies / sizeof *remedies),
	                .sentence = ""};
	return f;
}

static int lacks(const char *text, const char *what)
{
	if (!strstr(text, what))
		fprintf(stderr, "'%s' is not in the text\n", what);
	return !strstr(text, what);
}

int main(int argc, char **argv)
{
	static const char *const parts[] = {
	    "fp16 overflow: 5 neighbours of node 5 add up to 99000. Fix: --lr 0.001\n",
	    "--precision fp16   does not help: the loss rises\n",
	    "--lr 0.001         trains: loss 2 to 0.5\n",
	    "policy = hg_policy_fp32()\n                    one op for both\n",
	    "by hand\n                    add eps\n",
	    "exp: exponential, in scores, forward, op 3 of the step, in the evaluation after the\n",
	    "node 5, source head 2; 2 of 12 elements of scores/exp have this fault",
	    "w0 is 300 times as large as when the run began",
	    "made of       11.5   x: scores/linear\n",
	    "0.25   factor\n",
	    "   the node itself\n",
	    "   the bias\n",
	    "   node 4\n",
	    "and 2 more\n",
	    "-> 3 more",
	    "gradient of scores/exp (3 of 12) -> the weights w0 (1 of 2), w1 (1 of 2),",
	    "w2 (1 of 2), w3 (1 of 2) and 2 more\n",
	};
	static char text[1 << 14];
	const hg_dataset d = {.nodes = 12};
	const hg_finding f = full_finding();
	FILE *out = tmpfile(), *json = argc == 2 ? fopen(argv[1], "w") : NULL;
	int failed = !out || !json;
	if (failed)
		return fprintf(stderr, "no file to write\n"), 1;
	finding_print(out, &d, &f, NULL);
	failed |= finding_json(json, &d, &f) != 0;
	rewind(out);
	text[fread(text, 1, sizeof text - 1, out)] = 0;
	(void)fputs(text, stdout);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		failed |= lacks(text, parts[i]);
	failed |= fclose(out) != 0;
	return (fclose(json) != 0) | failed;
}
