/* Prints a finding in which every field is set. Usage: hg_doctor_finding JSON-FILE. The text goes
 * to standard output, and is checked here; the JSON goes to the file. Returns 1 if a part of the
 * text is missing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "findings.h"
#include "names.h"

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

/* has_bad_score: one of its edges has a score of infinity. */
static hg_finding full_finding(int has_bad_score)
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
	                .attended = 1,
	                .edge = {{-1, -1, -1, (double)NAN, (double)NAN},
	                         {-1, -1, -1, (double)NAN, (double)NAN},
	                         {5, 4, 2, -1.5, 0.25}},
	                .has_bad_score = has_bad_score,
	                .bad_score = {5, 3, 2, (double)INFINITY, (double)NAN},
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
	    "   node 4   score -1.5, weight 0.25\n",
	    "it is a sum of 5 terms; the largest along an edge\n",
	    "  is that from node 4 to node 5, with score -1.5 and weight 0.25",
	    "and 2 more\n",
	    "-> 3 more",
	    "gradient of scores/exp (3 of 12) -> the weights w0 (1 of 2), w1 (1 of 2),",
	    "w2 (1 of 2), w3 (1 of 2) and 2 more\n",
	};
	static char text[1 << 14], sentence[SENTENCE_SIZE];
	const hg_dataset d = {.nodes = 12};
	const hg_finding f = full_finding(0), bad = full_finding(1);
	FILE *out = tmpfile(), *json = argc == 2 ? fopen(argv[1], "w") : NULL;
	int failed = !out || !json;
	if (failed)
		return fprintf(stderr, "no file to write\n"), 1;
	finding_print(out, &d, &f, NULL);
	failed |= finding_json(json, &d, &f) != 0;
	failed |= finding_json(json, &d, &bad) != 0;
	failed |= lacks(name_sentence(&d, &bad, sentence),
	                "is inf: the score of the edge from node 3 to node 5 in head 2 is inf");
	rewind(out);
	text[fread(text, 1, sizeof text - 1, out)] = 0;
	(void)fputs(text, stdout);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		failed |= lacks(text, parts[i]);
	failed |= fclose(out) != 0;
	return (fclose(json) != 0) | failed;
}
