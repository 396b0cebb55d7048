/* In a locale with a decimal comma the messages of the library have a decimal point, as in every
 * other. So the remedies of the doctor, which are options of hg-train, can be typed as they are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comma.h"
#include "halfgraph/doctor.h"
#include "small_run.h"

enum { ROOM = 1 << 16 };
struct lines {
	char text[ROOM];
	size_t length;
};

static void collect(void *user, const char *line)
{
	struct lines *out = user;
	out->length += (size_t)snprintf(out->text + out->length, ROOM - out->length, "%s\n", line);
	CHECK(out->length < ROOM);
}

/* The explanation and the plan of a run that is made in the current locale. */
static void describe(struct lines *out)
{
	struct small_run r;
	out->length = 0;
	small_open(&r, test_context(), small_config("gat", "fp16"));
	CHECK_OK(hg_tape_explain(hg_train_tape(r.train), collect, out));
	CHECK_OK(hg_tape_print(hg_train_tape(r.train), collect, out));
	small_close(&r);
}

static void explanations_are_the_same_in_every_locale(void)
{
	static struct lines here, there;
	describe(&here);
	test_comma_begin();
	describe(&there);
	test_comma_end();
	CHECK_CONTAINS(here.text, "MiB");
	CHECK_STR(there.text, here.text);
}

static void messages_have_a_decimal_point(void)
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

/* The first finding of a run as a sentence, and its remedy that is this option ("" if there is
 * none). */
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
	small_train(&r);
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

static void remedies_have_a_decimal_point(void)
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
	    TEST(explanations_are_the_same_in_every_locale),
	    TEST(messages_have_a_decimal_point),
	    TEST(remedies_have_a_decimal_point),
	};
	return RUN_TESTS(argc, argv, cases);
}
