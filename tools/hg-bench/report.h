#ifndef HG_BENCH_REPORT_H
#define HG_BENCH_REPORT_H

#include <stdint.h>

struct bench;

struct timing {
	double median, least, most; /* ms */
	int samples;
};

#define RESULT_MORE 10

/* One line of the table. Figures that do not apply are NAN, texts NULL. */
struct result {
	const char *op, *variant, *precision;
	const char *note; /* a remark for the end of the line */
	int64_t features;
	int heads;
	struct timing ms;
	double bytes, flops;
	double gather_ms, unordered_ms; /* the ceilings (bench.h) */
	double peer_ms;
	double error; /* largest err / bound of the check */
	double more[RESULT_MORE];
	const char *more_name[RESULT_MORE]; /* further figures, for JSON only; terminated by NULL */
};
struct result result_new(const char *op, const char *variant, const char *precision);

struct report {
	int file;      /* of --json; -1: none */
	int to_stdout; /* JSON instead of the table */
	double copy_tb_s;
	char driver[32], toolkit[32];
	int wrong, lost; /* number of wrong results; number of lines that could not be written */
};
/* Open the file of --json. Returns 0, or 2 after a sentence. */
int report_begin(struct bench *b);
void report_head(struct bench *b);
void report_result(struct bench *b, const struct result *r);
/* Report what cannot be measured here, and why. */
void report_absent(struct bench *b, const char *op, const char *variant, const char *why);
void report_end(struct bench *b);

#endif
