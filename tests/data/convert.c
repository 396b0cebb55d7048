/* The command line of h5convert: exit codes, one line for each error, and no file left after an
 * error. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

static void one_line(const char *text)
{
	const char *end = strchr(text, '\n');
	CHECK_MSG(end != NULL && end[1] == 0, "expected one line, found \"%s\"", text);
}

static void help_lists_the_formats(void)
{
	CHECK_EQ_I(run_convert("--help"), 0);
	CHECK_CONTAINS(convert_out, "\nexamples:\n  h5convert");
	CHECK_CONTAINS(convert_out, "--hub-degree");
	/* lines are short, and a long text continues on the next line */
	CHECK_EQ_I(run_convert("--help | awk 'length > 100'"), 0);
	CHECK_STR(convert_out, "");
	CHECK_EQ_I(run_convert("--help | grep -A1 -e --header"), 0);
	CHECK_CONTAINS(convert_out, "(default):\n                           yes if the counts fit\n");
	CHECK_EQ_I(run_convert("--list-formats"), 0);
	CHECK_CONTAINS(convert_out, "npz ");
	CHECK_CONTAINS(convert_out, "edges ");
	CHECK_CONTAINS(convert_out, "mtx ");
	CHECK_EQ_I(run_convert("--version"), 0);
	CHECK_CONTAINS(convert_out, "h5convert (HalfGraph) 0.");
}

/* Output that is lost is a failure: on a full disk, and with a closed descriptor, whose number no
 * other file may get. */
static void lost_output_is_a_failure(void)
{
	static const char *const printing[] = {"--help", "--list-formats", "--version",
	                                       "--inspect @/lost.h5", "--inspect @/lost.h5 --json"};
	static const char *const lost[] = {">/dev/full", ">&-"};
	char arguments[128];
	write_text(scratch(0, "lost.txt"), "0 1\n");
	/* nothing is printed, so nothing is lost */
	CHECK_EQ_I(run_convert("@/lost.txt -o @/lost.h5 --quiet >&-"), 0);
	for (size_t k = 0; k < sizeof printing / sizeof printing[0]; k++)
		for (size_t j = 0; j < 2; j++) {
			snprintf(arguments, sizeof arguments, "%s %s", printing[k], lost[j]);
			CHECK_EQ_I(run_convert(arguments), 1);
			CHECK_CONTAINS(convert_err, "h5convert: cannot write to standard output: ");
			one_line(convert_err);
		}
	CHECK_EQ_I(run_convert("--quiet @/lost.txt -o @/closed.h5 <&- >&- 2>&-"), 0);
	hg_dataset_free(must_read(scratch(0, "closed.h5")));
	CHECK_EQ_I(run_convert("--help | head -1"), 0);
	one_line(convert_out);
	CHECK_STR(convert_err, "");
}

static void usage_errors_end_with_2(void)
{
	static const struct {
		const char *arguments, *part;
	} bad[] = {
	    {"", "no input"},
	    {"@/in.txt", "no output: add -o"},
	    {"@/in.txt -o", "-o needs a value: OUT.h5"},
	    {"@/in.txt -o \"\"", "-o needs a value, found an empty one: OUT.h5"},
	    {"--from= @/in.txt -o @/o.h5", "--from needs a value, found an empty one: FORMAT"},
	    {"--inspect=", "--inspect needs a value, found an empty one: FILE.h5"},
	    {"--name \"\" @/in.txt -o @/o.h5", "--name needs a value, found an empty one: NAME"},
	    {"\"\" -o @/o.h5", "the name of input 1 is empty"},
	    {"--nonsense", "unknown option \"--nonsense\""},
	    {"--from csv @/in.txt -o @/o.h5", "--from csv is not known"},
	    {"@/in.dat -o @/o.h5", "in.dat: No such file or directory"},
	    {"--symmetrize=yes @/in.txt -o @/o.h5", "--symmetrize takes no value, found \"yes\""},
	    {"--synthetic star -o @/o.h5", "--synthetic is \"star\", expected one of planted"},
	    {"--synthetic planted @/in.txt -o @/o.h5", "reads no input"},
	    {"--synthetic planted --nodes ten -o @/o.h5",
	     "--nodes is \"ten\", expected a whole number from 0"},
	    {"--synthetic planted --seed -1 -o @/o.h5", "--seed is \"-1\""},
	    {"--synthetic planted --classes 5000000000 -o @/o.h5", "--classes is \"5000000000\""},
	    {"--synthetic planted --degree 1x -o @/o.h5", "--degree is \"1x\", expected a number"},
	    {"--nodes 5 @/in.txt -o @/o.h5", "--nodes belongs to --synthetic planted"},
	    {"--features-dtype f64 @/in.txt -o @/o.h5",
	     "--features-dtype is \"f64\", expected one of f16|f32"},
	    {"--json @/in.txt -o @/o.h5", "--json belongs to --inspect"},
	    {"--inspect @/a.h5 @/in.txt", "--inspect takes one file"},
	    {"--seal @/a.h5 @/in.txt", "--seal takes one file and no other option"},
	    {"@/in.txt -o -", "-o is \"-\", expected the name of a file"},
	    {"--fr\033[31mom", "unknown option \"--fr\\x1b[31mom\""},
	    {"--nodes '1\n2' --synthetic planted -o @/o.h5", "--nodes is \"1\\x0a2\", expected"},
	    {"'@/in.dat\033]0;x\007' -o @/o.h5", "in.dat\\x1b]0;x\\x07: No such file or directory"},
	    {"--seal @/a.h5 --json", "--seal takes one file and no other option"},
	    {"--seal @/absent.h5", "No such file or directory"},
	    {"--fold 2 @/in.txt -o @/o.h5", "--fold is \"2\", expected F/K"},
	    {"--fold 0/2 @/in.txt -o @/o.h5",
	     "--fold is \"0/2\", expected F/K: fold F, from 0, of K, at least 3"},
	    {"--fold 5/5x @/in.txt -o @/o.h5", "--fold is \"5/5x\""},
	    {"--fold 5/5 @/in.txt -o @/o.h5", "--fold is \"5/5\""},
	    {"--fold -1/5 @/in.txt -o @/o.h5", "--fold is \"-1/5\""},
	    {"--positional walk:3 @/in.txt -o @/o.h5",
	     "--positional is \"walk:3\", expected random-walk:K or laplacian:K"},
	    {"--positional laplacian:0 @/in.txt -o @/o.h5", "--positional is \"laplacian:0\""},
	    {"--positional laplacian:257 @/in.txt -o @/o.h5", "--positional is \"laplacian:257\""},
	    {"--positional laplacian:3, @/in.txt -o @/o.h5", "--positional is \"laplacian:3,\""},
	    {"--positional laplacian:3x @/in.txt -o @/o.h5", "--positional is \"laplacian:3x\""},
	    {"--fold 0/123456 @/in.txt -o @/o.h5", "--fold is \"0/123456\""},
	    {"--from mtx @/a.mtx @/b.mtx -o @/o.h5", "--from mtx takes one file, found 2"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		const int code = run_convert(bad[k].arguments);
		CHECK_MSG(code == 2, "\"%s\" ended with %d: %s", bad[k].arguments, code, convert_err);
		CHECK_CONTAINS(convert_err, bad[k].part);
		CHECK(strncmp(convert_err, "h5convert: ", 11) == 0);
		one_line(convert_err);
		CHECK(!file_exists(scratch(0, "o.h5")));
	}
}

static void bad_input_leaves_no_file(void)
{
	static const struct {
		const char *name, *text, *part;
	} bad[] = {
	    {"bad.txt", "0 1\n1 x\n", "bad.txt:2: expected two node numbers"},
	    {"bad.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n",
	     "bad.mtx:1: format array is not supported"},
	    {"bad.npz", "no zip", "bad.npz: not a zip archive"},
	    {"bad.h5", "no hdf5", "bad.h5: not an HDF5 file"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		char arguments[128];
		write_text(scratch(0, bad[k].name), bad[k].text);
		snprintf(arguments, sizeof arguments, "@/%s -o @/never.h5", bad[k].name);
		CHECK_EQ_I(run_convert(arguments), 2);
		CHECK_CONTAINS(convert_err, bad[k].part);
		one_line(convert_err);
		CHECK_EQ_I(count_scratch("never.h5"), 0);
	}
	CHECK_EQ_I(run_convert("--from npz @/absent.npz -o @/never.h5"), 2);
	CHECK_CONTAINS(convert_err, "No such file or directory");
	CHECK_EQ_I(run_convert("--inspect @/bad.h5"), 2);
	one_line(convert_err);
}

static void output_that_cannot_be_written_is_a_failure(void)
{
	write_text(scratch(0, "in.txt"), "0 1\n");
	CHECK_EQ_I(run_convert("@/in.txt -o @/no/such/out.h5"), 2);
	CHECK_CONTAINS(convert_err, "cannot be written: No such file or directory");
	one_line(convert_err);
	/* the input is not read if the output cannot be written */
	write_text(scratch(0, "bad.txt"), "not an edge\n");
	CHECK_EQ_I(run_convert("@/bad.txt -o @/no/such/out.h5"), 2);
	CHECK_CONTAINS(convert_err, "out.h5: cannot be written");
}

/* The disk is full after so many bytes: at the first byte, in the middle, at the last byte. HDF5
 * must not crash at the end of the process either. */
static void full_disk_leaves_no_file(void)
{
	struct rlimit before, small;
	struct stat info;
	CHECK_EQ_I(
	    run_convert("--synthetic planted --nodes 3000 --hub-degree 100 --quiet -o @/whole.h5"), 0);
	CHECK(stat(scratch(0, "whole.h5"), &info) == 0 && getrlimit(RLIMIT_FSIZE, &before) == 0);
	for (int k = 0; k <= 16; k++) {
		small = before;
		/* leaves 1 KiB for the message */
		small.rlim_cur =
		    k < 16 ? (rlim_t)(1024 + (info.st_size - 1024) / 16 * k) : (rlim_t)(info.st_size - 1);
		CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
		const int code = run_convert("@/whole.h5 -o @/full.h5");
		CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
		CHECK_EQ_I(code, 1);
		CHECK_CONTAINS(convert_err, "full.h5: cannot be written: File too large");
		one_line(convert_err);
		CHECK_EQ_I(count_scratch("full.h5"), 0);
	}
}

/* The output file must not be an input file, under any name. */
static void inputs_are_not_overwritten(void)
{
	static const char *const commands[] = {
	    "@/self.h5 -o @/self.h5", "@/self.h5 -o @/./self.h5",
	    "@/self.h5 -o @/hard.h5", "@/self.h5 -o @/soft.h5",
	    "@/soft.h5 -o @/self.h5", "--from edges @/in.txt @/self.txt -o @/self.txt",
	};
	write_text(scratch(0, "in.txt"), "0 1\n");
	write_text(scratch(0, "self.txt"), "0 1\n");
	CHECK_EQ_I(run_convert("@/in.txt --quiet -o @/self.h5"), 0);
	CHECK(link(scratch(0, "self.h5"), scratch(1, "hard.h5")) == 0);
	CHECK(symlink("self.h5", scratch(1, "soft.h5")) == 0);
	for (size_t k = 0; k < sizeof commands / sizeof commands[0]; k++) {
		CHECK_EQ_I(run_convert(commands[k]), 2);
		CHECK_CONTAINS(convert_err, "is also an input: it is not overwritten");
		one_line(convert_err);
	}
	hg_dataset_free(must_read(scratch(0, "self.h5")));
	hg_dataset_free(must_import("edges", scratch(0, "self.txt")));
}

/* A file that an importer reads beside the named one is not overwritten either. */
static void what_is_no_dataset_is_not_overwritten(void)
{
	write_text(scratch(0, "side_A.txt"), "1, 2\n2, 1\n");
	write_text(scratch(0, "side_graph_indicator.txt"), "1\n1\n");
	write_text(scratch(0, "empty.h5"), "");
	CHECK_EQ_I(run_convert("@/side_A.txt -o @/side_graph_indicator.txt"), 2);
	CHECK_CONTAINS(convert_err, "exists and is no dataset: it is not overwritten");
	one_line(convert_err);
	write_text(scratch(0, "in.txt"), "0 1\n");
	CHECK_EQ_I(run_convert("@/in.txt --quiet -o @/empty.h5"), 0);
	CHECK_EQ_I(run_convert("@/in.txt --quiet -o @/empty.h5"), 0);
}

static void converts_with_transforms(void)
{
	write_text(scratch(0, "in.txt"), "0 1\n1 2\n8 9\n");
	CHECK_EQ_I(run_convert("--from edges @/in.txt --self-loops --symmetrize --largest-component "
	                       "--name tri -o @/tri.h5"),
	           0);
	CHECK_CONTAINS(convert_out, "tri.h5: 3 nodes, 7 edges, 0 features, 0 classes");
	CHECK_STR(convert_err, "");
	CHECK_EQ_I(run_convert("--inspect @/tri.h5"), 0);
	CHECK_CONTAINS(convert_out, "name       tri");
	CHECK_CONTAINS(convert_out, "7 entries, symmetric, unweighted, 3 self loops");
	CHECK_EQ_I(run_convert("--inspect @/tri.h5 --json"), 0);
	one_line(convert_out);
	CHECK_CONTAINS(convert_out, "\"nodes\":3,\"edges\":7");
	/* the input is an HDF5 file */
	CHECK_EQ_I(run_convert("--quiet @/tri.h5 --name again -o @/again.h5"), 0);
	CHECK_STR(convert_out, "");
}

/* The ending _A.txt says TU, not edge list. A set without splits gets some. */
static void set_without_splits_gets_folds(void)
{
	write_text(scratch(0, "in.txt"), "0 1\n");
	CHECK_EQ_I(run_convert("@/in.txt --fold 0/3 -o @/never.h5"), 2);
	CHECK_CONTAINS(convert_err, "the dataset has no labels");
	write_text(scratch(0, "ring_A.txt"), "1, 2\n2, 1\n");
	write_text(scratch(0, "ring_graph_indicator.txt"), "1\n1\n2\n3\n4\n");
	write_text(scratch(0, "ring_graph_labels.txt"), "0\n0\n0\n0\n");
	CHECK_EQ_I(run_convert("@/ring_A.txt --fold 1/4 -o @/ring.h5"), 0);
	CHECK_CONTAINS(convert_out, "ring.h5: 5 nodes, 2 edges, 0 features, 1 classes");
	CHECK_EQ_I(run_convert("--inspect @/ring.h5"), 0);
	CHECK_CONTAINS(convert_out, "in 4 graphs");
	CHECK_CONTAINS(convert_out, "split      train 2, val 1, test 1");
}

/* The columns of all encodings follow the features, whose rows were normalised before. */
static void positional_encodings_are_appended(void)
{
	write_text(scratch(0, "in.txt"), "0 1\n1 2\n2 0\n2 3\n");
	CHECK_EQ_I(run_convert("@/in.txt --positional random-walk:3,laplacian:2 --row-normalize -o "
	                       "@/where.h5"),
	           0);
	CHECK_CONTAINS(convert_out, "where.h5: 4 nodes, 4 edges, 5 features");
	hg_dataset *d = must_read(scratch(0, "where.h5"));
	const float *x = d->feat;
	for (int i = 0; i < 4; i++)
		CHECK(x[i * 5] == 0.0f && x[i * 5 + 1] > 0.0f);
	CHECK(x[3 * 5 + 2] == 0.0f && x[0 * 5 + 2] > 0.0f); /* node 3 is in no triangle */
	hg_dataset_free(d);
}

/* Names come from files of others: no byte of them may control the terminal, and JSON must stay
 * valid. */
static void names_are_printed_harmlessly(void)
{
	static const struct {
		const char *name, *table, *json;
	} names[] = {
	    {"gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x98\x80",
	     "name       gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x98\x80\n",
	     "\"name\":\"gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x98\x80\""},
	    {"a\033[2J\nb\x7f", "name       a\\x1b[2J\\x0ab\\x7f\n",
	     "\"name\":\"a\\u001B[2J\\nb\x7f\""},
	    {"a\xff\xc3", "name       a\\xff\\xc3\n", "\"name\":\"a\\\\xff\\\\xc3\""},
	    {"\xc2\x9b", "name       \\xc2\\x9b\n", "\"name\":\"\xc2\x9b\""},
	    {"\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80",
	     "name       \\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\n", "\"name\":\"\\\\xc0"},
	};
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
		hg_dataset *d = small_dataset();
		free(d->name);
		d->name = strdup(names[k].name);
		must_write(d, scratch(0, "named.h5"));
		hg_dataset_free(d);
		CHECK_EQ_I(run_convert("--inspect @/named.h5"), 0);
		CHECK_CONTAINS(convert_out, names[k].table);
		CHECK_EQ_I(run_convert("--inspect @/named.h5 --json"), 0);
		CHECK_CONTAINS(convert_out, names[k].json);
	}
}

static void beyond_f16_is_refused_clipped_or_kept(void)
{
	static const int64_t shape[] = {2, 2};
	static const int32_t indptr[] = {0, 1, 2}, indices[] = {1, 0};
	static const float features[] = {1, 2, 3, 70000};
	struct npz_out *npz = npz_begin(scratch(0, "big.npz"));
	npz_add(npz, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(npz, "adj_indptr", "<i4", "(3,)", indptr, sizeof indptr);
	npz_add(npz, "adj_indices", "<i4", "(2,)", indices, sizeof indices);
	npz_add(npz, "attr_matrix", "<f4", "(2, 2)", features, sizeof features);
	npz_end(npz, 0);
	CHECK_EQ_I(run_convert("@/big.npz -o @/big.h5"), 2);
	CHECK_CONTAINS(convert_err, "features: row 1 (node 1), column 1 is 70000, beyond f16's 65504");
	CHECK_EQ_I(count_scratch("big.h5"), 0);
	CHECK_EQ_I(run_convert("@/big.npz --features-dtype f16 -o @/big.h5"), 2);
	CHECK_EQ_I(run_convert("@/big.npz --features-dtype f32 -o @/kept.h5"), 0);
	hg_dataset *d = must_read(scratch(0, "kept.h5"));
	CHECK(((float *)d->feat)[3] == 70000);
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("@/big.npz --clip -o @/clip.h5"), 0);
	d = must_read(scratch(0, "clip.h5"));
	CHECK(d->feat_dtype == HG_F32 && ((float *)d->feat)[3] == 65504);
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("@/big.npz --clip --features-dtype f16 -o @/clip16.h5"), 0);
	d = must_read(scratch(0, "clip16.h5"));
	CHECK(d->feat_dtype == HG_F16 && ((hg_half *)d->feat)[3] == 0x7BFF);
	hg_dataset_free(d);
}

/* Where labels leave classes out (years, for example), h5convert says so. */
static void empty_classes_are_counted(void)
{
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_name_classes(d, NULL, 0, NULL));
	d->classes = 2000000000;
	must_write(d, scratch(0, "empty.h5"));
	CHECK_EQ_I(run_convert("--inspect @/empty.h5"), 0);
	CHECK_CONTAINS(convert_out, " empty");
	/* so the table has no row for each of them, which would be 4 GB */
	CHECK_EQ_I(run_convert("--inspect @/empty.h5 --json | wc -c"), 0);
	CHECK(strtol(convert_out, NULL, 10) < 4000000);
	d->classes = 5;
	must_write(d, scratch(0, "empty.h5"));
	CHECK_EQ_I(run_convert("--inspect @/empty.h5"), 0);
	CHECK_CONTAINS(convert_out, ", 2 of 5 empty");
	hg_dataset_free(d);
}

static void planted_graphs_are_made(void)
{
	CHECK_EQ_I(run_convert("--synthetic planted --nodes 500 --classes 4 --features 16 --degree 6 "
	                       "--hubs 2 --hub-degree 200 --scale 2 --seed 3 -o @/p.h5"),
	           0);
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *expected = NULL, *d = must_read(scratch(0, "p.h5"));
	config.nodes = 500;
	config.classes = 4;
	config.features = 16;
	config.degree = 6;
	config.hubs = 2;
	config.hub_degree = 200;
	config.scale = 2;
	config.seed = 3;
	CHECK_OK(hg_dataset_planted(&config, &expected, message));
	check_same(d, expected);
	hg_dataset_free(d);
	hg_dataset_free(expected);
	CHECK_EQ_I(run_convert("--synthetic planted --nodes 5 -o @/q.h5"), 2);
	CHECK_CONTAINS(convert_err, "planted: 5 nodes, expected at least 10 per class");
}

/* Starts h5convert with these arguments. Its error output goes to the file stderr. A signal that is
 * sent before its handlers are in place is delivered when they are. */
static pid_t start(char **argv)
{
	sigset_t all, before;
	fflush(stdout);
	sigfillset(&all);
	CHECK(sigprocmask(SIG_BLOCK, &all, &before) == 0);
	const pid_t child = fork();
	if (child == 0) {
		if (!freopen(test_path("stderr"), "w", stderr))
			_exit(98);
		execv(HG_H5CONVERT, argv);
		_exit(99);
	}
	CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
	CHECK(child >= 0);
	return child;
}

/* Starts h5convert with these arguments and sends it a signal a moment later. It must end with exit
 * code 130. */
static void start_and_signal(char **argv, int milliseconds, int number)
{
	const struct timespec moment = {0, milliseconds * 1000000L};
	int status = 0;
	const pid_t child = start(argv);
	nanosleep(&moment, NULL);
	kill(child, number);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 130);
	size_t count = 0;
	unsigned char *said = read_bytes(test_path("stderr"), &count);
	snprintf(convert_err, sizeof convert_err, "%.*s", (int)count, (char *)said);
	free(said);
}

/* Ctrl-C at several moments of a long run: one line of output, no file, no temporary file. */
static void interrupted_runs_leave_no_file(void)
{
	char path[256], program[] = "h5convert", quiet[] = "--quiet", synthetic[] = "--synthetic",
	                planted[] = "planted", nodes[] = "--nodes", n[] = "3000000",
	                out_option[] = "-o";
	char *argv[] = {program, quiet, synthetic, planted, nodes, n, out_option, path, NULL};
	snprintf(path, sizeof path, "%s", test_path("long.h5"));
	for (int wait = 0; wait <= 3; wait++) {
		start_and_signal(argv, 60 * wait, SIGINT);
		CHECK(*convert_err == 0 ||
		      strstr(convert_err, "h5convert: stopped on request while planting") == convert_err);
		CHECK_EQ_I(count_scratch("long.h5"), 0);
	}
}

/* Ctrl-C twice while the file is being written: the second one must not leave half a file. */
static void interrupted_writing_leaves_no_file(void)
{
	char path[256], program[] = "h5convert", quiet[] = "--quiet", synthetic[] = "--synthetic",
	                planted[] = "planted", nodes[] = "--nodes", n[] = "400000",
	                degree[] = "--degree", few[] = "1", out_option[] = "-o";
	char *argv[] = {program, quiet, synthetic,  planted, nodes, n,
	                degree,  few,   out_option, path,    NULL};
	int status = 0, waited = 0;
	snprintf(path, sizeof path, "%s", test_path("twice.h5"));
	const pid_t child = start(argv);
	nanosleep(&(struct timespec){0, 50000000}, NULL); /* the attempt to open the file is over */
	while (count_scratch(".tmp") == 0 && ++waited < 60000)
		nanosleep(&(struct timespec){0, 500000}, NULL);
	/* Apart from each other, or the second is lost; but close, or the program has ended. */
	for (int k = 0; k < 3; k++) {
		kill(child, SIGINT);
		nanosleep(&(struct timespec){0, 20000}, NULL);
	}
	CHECK(waitpid(child, &status, 0) == child);
	/* What happens first decides: the end of the file, the end of the program, or the first
	 * signal. */
	CHECK(waited < 60000 && WIFEXITED(status) &&
	      (WEXITSTATUS(status) == 130 || WEXITSTATUS(status) == 0));
	CHECK_EQ_I(count_scratch(".tmp"), 0);
}

/* A pipe that has no writer, and one that stays open without another byte. */
static void waiting_for_a_pipe_can_be_ended(void)
{
	char path[256], target[256], program[] = "h5convert", from[] = "--from", edges[] = "edges",
	                             out_option[] = "-o";
	char *argv[] = {program, from, edges, path, out_option, target, NULL};
	snprintf(path, sizeof path, "%s", test_path("pipe"));
	snprintf(target, sizeof target, "%s", test_path("piped.h5"));
	CHECK(mkfifo(path, 0600) == 0);
	for (int with_writer = 0; with_writer < 2; with_writer++) {
		const int writer = with_writer ? open(path, O_RDWR) : -1;
		CHECK(!with_writer || write(writer, "0 1\n", 4) == 4);
		start_and_signal(argv, 300, SIGTERM);
		CHECK(*convert_err == 0 ||
		      strcmp(convert_err, "h5convert: stopped on request while reading\n") == 0);
		CHECK_EQ_I(count_scratch("piped.h5"), 0);
		if (with_writer)
			close(writer);
	}
}

/* A file that another program has changed is refused with a message that says how to accept it,
 * which is then done. */
static void changed_files_are_sealed(void)
{
	write_text(scratch(0, "in.txt"), "0 1\n1 2\n");
	CHECK_EQ_I(run_convert("@/in.txt -o @/changed.h5 --quiet"), 0);
	const hid_t file = H5Fopen(scratch(0, "changed.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0);
	H5Gclose(H5Gcreate2(file, "notes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	H5Fclose(file);
	CHECK_EQ_I(run_convert("--inspect @/changed.h5"), 2);
	CHECK_CONTAINS(convert_err, "changed.h5: does not fit its checksum");
	CHECK_CONTAINS(convert_err, "if on purpose, h5convert --seal computes a new checksum\n");
	CHECK_EQ_I(run_convert("--seal @/changed.h5"), 0);
	CHECK_STR(convert_out, "");
	CHECK_EQ_I(run_convert("--inspect @/changed.h5"), 0);
	write_text(scratch(0, "text.h5"), "no HDF5");
	CHECK_EQ_I(run_convert("--seal @/text.h5"), 2);
	CHECK_CONTAINS(convert_err, "HDF5's signature is neither");
	one_line(convert_err);
}

/* Content of a source that a dataset cannot hold is reported once, and only with -v. */
static void left_out_content_is_reported(void)
{
	static const int64_t shape[] = {2, 2}, pointers[] = {0, 1, 2};
	static const int32_t columns[] = {1, 0}, labels[] = {0, 1};
	write_text(scratch(0, "mol_A.txt"), "1, 2\n2, 1\n1, 2\n");
	write_text(scratch(0, "mol_graph_indicator.txt"), "1\n1\n");
	write_text(scratch(0, "mol_graph_labels.txt"), "1\n");
	CHECK_EQ_I(run_convert("@/mol_A.txt -o @/mol.h5"), 0);
	CHECK_CONTAINS(convert_err,
	               "mol_A.txt: 1 of 3 edges repeat an earlier edge and were merged with it\n");
	CHECK(!strstr(convert_err, "not read"));
	CHECK_EQ_I(run_convert("--quiet @/mol_A.txt -o @/mol.h5"), 0);
	CHECK_STR(convert_err, "");

	struct npz_out *out = npz_begin(scratch(0, "more.npz"));
	npz_add(out, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(out, "adj_indptr", "<i8", "(3,)", pointers, sizeof pointers);
	npz_add(out, "adj_indices", "<i4", "(2,)", columns, sizeof columns);
	npz_add(out, "labels", "<i4", "(2,)", labels, sizeof labels);
	npz_add(out, "edge_attr", "<i4", "(2,)", columns, sizeof columns);
	npz_add(out, "labels_data", "<i4", "(2,)", labels, sizeof labels);
	npz_end(out, 0);
	CHECK_EQ_I(run_convert("@/more.npz -o @/more.h5"), 0);
	CHECK_CONTAINS(convert_err, "more.npz: not read: edge_attr.npy, labels_data.npy\n");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(help_lists_the_formats),
	    TEST(lost_output_is_a_failure),
	    TEST(usage_errors_end_with_2),
	    TEST(changed_files_are_sealed),
	    TEST(bad_input_leaves_no_file),
	    TEST(output_that_cannot_be_written_is_a_failure),
	    TEST(full_disk_leaves_no_file),
	    TEST(inputs_are_not_overwritten),
	    TEST(what_is_no_dataset_is_not_overwritten),
	    TEST(converts_with_transforms),
	    TEST(set_without_splits_gets_folds),
	    TEST(positional_encodings_are_appended),
	    TEST(names_are_printed_harmlessly),
	    TEST(beyond_f16_is_refused_clipped_or_kept),
	    TEST(empty_classes_are_counted),
	    TEST(planted_graphs_are_made),
	    TEST(interrupted_runs_leave_no_file),
	    TEST(interrupted_writing_leaves_no_file),
	    TEST(left_out_content_is_reported),
	    TEST(waiting_for_a_pipe_can_be_ended),
	};
	return RUN_TESTS(argc, argv, cases);
}
