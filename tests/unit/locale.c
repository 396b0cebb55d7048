#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comma.h"
#include "halfgraph/doctor.h"
#include "small_run.h"

/* What the library says has a decimal point in every locale of the program around it, and what it
 * says can be typed: a remedy is an option of hg-train. */

enum { ROOM = 1 << 16 };
struct said {
	char text[ROOM];
	size_t length;
};

static void collect(void *user, const char *line)
{
	struct said *s = user;
	s->length += (size_t)snprintf(s->text + s->length, ROOM - s->length, "%s\n", line);
	CHECK(s->length < ROOM);
}

/* Explanation and plan of a run that is made in the locale of the moment. */
static void describe(struct said *s)
{
	struct small_run r;
	s->length = 0;
	small_open(&r, test_context(), small_config("gat", "fp16"));
	CHECK_OK(hg_tape_explain(hg_train_tape(r.train), collect, s));
	CHECK_OK(hg_tape_print(hg_train_tape(r.train), collect, s));
	small_close(&r);
}

static void tapes_are_told_alike(void)
{
	static struct said here, there;
	describe(&here);
	test_comma_begin();
	describe(&there);
	test_comma_end();
	CHECK_CONTAINS(here.text, "MiB");
	CHECK_STR(there.text, here.text);
}

static void messages_are_alike(void)
{
	struct small_run r;
	small_open(&r, test_context(), small_config("gcn", "fp16"));
	hg_state *state = small_state(&r);
	small_close(&r);
	hg_train_config c = small_config("gcn", "fp16");
	c.model.dropout = 0.25f;
	test_comma_begin();
	small_open(&r, test_context(), c);
	CHECK_EQ_I(hg_train_set_state(r.train, state), HG_INFO_DIFFERS);
	test_comma_end();
	CHECK_CONTAINS(hg_context_error(r.ctx), "0.25");
	CHECK_CONTAINS(hg_context_error(r.ctx), "0.5");
	hg_state_free(state);
	small_close(&r);
}

/* The first finding's remedy of that option, and the finding as a sentence. */
static void examine(const char *option, char *remedy, char *sentence)
{
	struct small_run r;
	const hg_doctor_report *report = NULL;
	hg_doctor_config doctor_config = HG_DOCTOR_CONFIG_INIT;
	hg_doctor *doctor = NULL;
	hg_train_config c = small_config("gin", "fp16-naive");
	c.model.lambda = 60000.5f;
	c.epochs = 1;
	small_open(&r, test_context(), c);
	small_go(&r);
	CHECK_OK(hg_doctor_create_train(r.train, &doctor_config, &doctor));
	CHECK_OK(hg_doctor_examine(doctor, 1, &report));
	CHECK(report->findings > 0);
	const hg_finding *f = &report->finding[0];
	CHECK(hg_finding_sentence(f, NULL, NULL, sentence, 1024) > 0);
	*remedy = 0;
	for (int k = 0; k < f->remedies; k++)
		if (strncmp(f->remedy[k].option, option, strlen(option)) == 0)
			snprintf(remedy, 64, "%s", f->remedy[k].option);
	hg_doctor_free(doctor);
	small_close(&r);
}

static void remedies_can_be_typed(void)
{
	char remedy[2][64], sentence[2][1024], *end = NULL;
	examine("--lambda", remedy[0], sentence[0]);
	test_comma_begin();
	examine("--lambda", remedy[1], sentence[1]);
	test_comma_end();
	CHECK_STR(remedy[1], remedy[0]);
	CHECK_STR(sentence[1], sentence[0]);
	const double value = strtod(remedy[0] + strlen("--lambda "), &end);
	CHECK_MSG(*remedy[0] && *end == 0 && value != floor(value),
	          "\"%s\" has no fraction: nothing is tested", remedy[0]);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(tapes_are_told_alike),
	    TEST(messages_are_alike),
	    TEST(remedies_can_be_typed),
	};
	return RUN_TESTS(argc, argv, cases);
}
