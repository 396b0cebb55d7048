/* How files are written: completely or not at all, with the mode of the old file, while other
 * writers write, and after writers that were killed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

static void file_is_replaced_at_once(void)
{
	const char *path = scratch(0, "replace.h5");
	write_text(path, "something else");
	hg_dataset *d = small_dataset();
	must_write(d, path);
	hg_dataset_free(must_read(path));
	CHECK_EQ_I(count_scratch(".tmp"), 0);
	hg_dataset_free(d);
}

static int stop_now(void *user, const char *what, int64_t done, int64_t total)
{
	(void)what;
	(void)done;
	(void)total;
	return --*(int *)user < 0;
}

/* A writer that is stopped at any of its steps leaves the old file, and no other file. */
static void stopped_writer_leaves_no_file(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	const char *path = scratch(0, "stopped.h5");
	hg_status status = HG_ERR_STATE;
	for (int allowed = 0; status == HG_ERR_STATE; allowed++) {
		int left = allowed;
		const hg_progress progress = {stop_now, &left};
		CHECK(!file_exists(path));
		status = hg_dataset_write_watched(d, path, &progress, message);
		if (status == HG_ERR_STATE)
			/* in words, not with the names of arrays */
			CHECK_CONTAINS(message, "stopped on request while writing ");
		CHECK_EQ_I(count_scratch(".tmp"), 0);
		CHECK(allowed < 100);
	}
	CHECK_STATUS(status, HG_OK);
	hg_dataset_free(d);
}

/* Written a second later, the file has the same bytes. */
static void equal_datasets_are_equal_files(void)
{
	size_t count[2] = {0, 0};
	unsigned char *bytes[2];
	hg_dataset *d = small_dataset();
	for (int k = 0; k < 2; k++) {
		must_write(d, scratch(0, "twice.h5"));
		bytes[k] = read_bytes(scratch(0, "twice.h5"), &count[k]);
		nanosleep(&(struct timespec){1, 0}, NULL);
	}
	CHECK(count[0] == count[1] && memcmp(bytes[0], bytes[1], count[0]) == 0);
	free(bytes[0]);
	free(bytes[1]);
	hg_dataset_free(d);
}

static void unwritable_places_are_errors(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK_STATUS(hg_dataset_write(d, scratch(0, "no/such/folder.h5"), message), HG_ERR_IO);
	CHECK_CONTAINS(message, "No such file or directory");
	CHECK(mkdir(scratch(1, "folder.h5"), 0700) == 0);
	CHECK_STATUS(hg_dataset_write(d, scratch(1, "folder.h5"), message), HG_ERR_IO);
	CHECK_CONTAINS(message, "not a regular file");
	CHECK(symlink("target.h5", scratch(2, "link.h5")) == 0);
	CHECK_STATUS(hg_dataset_write(d, scratch(2, "link.h5"), message), HG_ERR_IO);
	CHECK_CONTAINS(message, "not a regular file");
	CHECK_EQ_I(count_scratch(".tmp"), 0);
	hg_dataset_free(d);
}

/* hg_file_write writes the whole content in the place of the old file, or changes nothing. */
static void files_are_written_completely_or_not_at_all(void)
{
	char message[HG_DATA_MESSAGE] = "";
	size_t count = 0;
	const char *path = scratch(0, "page.html");
	CHECK_OK(hg_file_try(path, message));
	CHECK(!file_exists(path));
	CHECK_OK(hg_file_write(path, "", 0, message));
	CHECK_OK(hg_file_write(path, "a page\0 and more", 16, message));
	CHECK_OK(hg_file_try(path, message));
	unsigned char *bytes = read_bytes(path, &count);
	CHECK(count == 16 && memcmp(bytes, "a page\0 and more", 16) == 0);
	free(bytes);
	CHECK_STATUS(hg_file_write(NULL, "", 0, message), HG_ERR_ARG);
	CHECK_STATUS(hg_file_write(path, NULL, 1, message), HG_ERR_ARG);
	CHECK_STATUS(hg_file_try(NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_file_write(scratch(1, "no/such/page.html"), "x", 1, message), HG_ERR_IO);
	CHECK_CONTAINS(message, "page.html: cannot be written: No such file or directory");
	CHECK_STATUS(hg_file_try(scratch(1, "no/such/page.html"), message), HG_ERR_IO);
	CHECK_STATUS(hg_file_try("/dev/null", message), HG_ERR_IO);
	CHECK_CONTAINS(message, "not a regular file");
	char longest[257] = {0}; /* one character too many for a name; the temporary name fits */
	memset(longest, 'a', 256);
	CHECK_STATUS(hg_file_try(longest, message), HG_ERR_IO);
	CHECK_CONTAINS(message, "too long");
	CHECK_EQ_I(count_scratch(".tmp"), 0);
}

/* ---- existing files ---- */

static mode_t mode_of(const char *path)
{
	struct stat info;
	CHECK(stat(path, &info) == 0);
	return info.st_mode & 07777;
}

/* A file keeps its mode when it is written again, so that nobody else can read the new content. */
static void mode_of_a_file_is_kept(void)
{
	static const mode_t modes[] = {0600, 0640, 0644, 0666, 0700};
	char message[HG_DATA_MESSAGE] = "";
	const char *path = scratch(0, "mode.h5");
	hg_dataset *d = small_dataset();
	const mode_t before = umask(022);
	must_write(d, path);
	CHECK_EQ_I(mode_of(path), 0644);
	for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++) {
		CHECK(chmod(path, modes[k]) == 0);
		must_write(d, path);
		CHECK_EQ_I(mode_of(path), modes[k]);
		CHECK_OK(hg_file_write(path, "text", 4, message));
		CHECK_EQ_I(mode_of(path), modes[k]);
	}
	(void)umask(before);
	hg_dataset_free(d);
}

static void read_only_file_is_not_replaced(void)
{
	char message[HG_DATA_MESSAGE] = "";
	const char *path = scratch(0, "kept.h5");
	hg_dataset *d = small_dataset();
	must_write(d, path);
	CHECK(chmod(path, 0444) == 0);
	CHECK_STATUS(hg_dataset_write(d, path, message), HG_ERR_IO);
	CHECK_CONTAINS(message, "kept.h5: cannot be written: it is read-only");
	CHECK_STATUS(hg_file_try(path, message), HG_ERR_IO);
	CHECK_STATUS(hg_file_seal(path, message), HG_ERR_IO);
	hg_dataset_free(must_read(path));
	CHECK_EQ_I(count_scratch("kept.h5"), 1);
	hg_dataset_free(d);
}

/* A name may have at most 255 bytes, and the temporary name of the same file must fit, too. */
static void longest_names_can_be_written(void)
{
	static const int lengths[] = {101, 248, 255};
	char name[256], directory[256], path[512], message[HG_DATA_MESSAGE] = "";
	snprintf(directory, sizeof directory, "%s", scratch(0, "x"));
	*strrchr(directory, '/') = 0;
	for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
		for (int wide = 0; wide < 2; wide++) {
			for (int i = 0; i < lengths[k]; i++)
				name[i] = !wide ? 'n' : (i + lengths[k]) % 2 ? '\xc3' : '\xa4';
			name[0] = 'n';
			name[lengths[k] - 1] = 'n';
			name[lengths[k]] = 0;
			snprintf(path, sizeof path, "%s/%s", directory, name);
			const hg_status status = hg_file_write(path, "text", 4, message);
			CHECK_MSG(status == HG_OK, "%s", message);
			CHECK(unlink(path) == 0);
		}
	CHECK_EQ_I(count_scratch(".tmp"), 0);
}

/* ---- two writers ---- */

/* A progress callback that stops a writer in the middle. It sends one byte to the test, and waits
 * for a byte from the test, or is killed. */
static int wait_inside(void *user, const char *what, int64_t done, int64_t total)
{
	int *const pipes = user; /* descriptors to the test and from it; -1: it has stopped already */
	char word = 'w';
	(void)what;
	(void)done;
	(void)total;
	if (pipes[0] >= 0 && (write(pipes[0], &word, 1) != 1 || read(pipes[1], &word, 1) != 1))
		_exit(1);
	pipes[0] = -1;
	return 0;
}

struct writer {
	pid_t child;
	int to, from;
};

/* Starts a process, which is then in the middle of writing. */
static struct writer begin_writer(const char *path)
{
	int told[2], heard[2];
	char word;
	CHECK(pipe(told) == 0 && pipe(heard) == 0);
	const pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		int pipes[2] = {told[1], heard[0]};
		const hg_progress progress = {wait_inside, pipes};
		char message[HG_DATA_MESSAGE] = "";
		_exit(hg_dataset_write_watched(small_sparse(), path, &progress, message) == HG_OK ? 0 : 2);
	}
	CHECK(close(told[1]) == 0 && close(heard[0]) == 0 && read(told[0], &word, 1) == 1);
	return (struct writer){child, heard[1], told[0]};
}

/* The exit code of the process; -1: it was killed. */
static int end_writer(struct writer w, int kills)
{
	int code = 0;
	CHECK(kills ? kill(w.child, SIGKILL) == 0 : write(w.to, "w", 1) == 1);
	CHECK(waitpid(w.child, &code, 0) == w.child);
	CHECK(close(w.to) == 0 && close(w.from) == 0);
	return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

/* The next writer of a file removes what a killed writer of the same file has left, and no other
 * file. */
static void files_of_killed_writers_are_removed(void)
{
	const char *path = scratch(0, "left.h5");
	hg_dataset *d = small_dataset();
	write_text(scratch(1, "left.h5.tmp"), "a file of the user's own");
	CHECK_EQ_I(end_writer(begin_writer(path), 1), -1);
	CHECK_EQ_I(count_scratch("left.h5"), 2);
	must_write(d, scratch(2, "other.h5"));
	CHECK_EQ_I(count_scratch("left.h5"), 2);
	const struct writer first = begin_writer(path), second = begin_writer(path);
	CHECK_EQ_I(end_writer(first, 1), -1);
	CHECK_EQ_I(end_writer(second, 1), -1);
	must_write(d, path);
	CHECK_EQ_I(count_scratch("left.h5"), 2); /* the file, and one of the user's */
	hg_dataset *back = must_read(path);
	check_same(d, back);
	CHECK(remove(scratch(1, "left.h5.tmp")) == 0);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

/* A second writer does not disturb one that is running. Both write, and the file is that of the
 * later one. */
static void running_writer_is_not_disturbed(void)
{
	const char *path = scratch(0, "both.h5");
	hg_dataset *d = small_dataset(), *sparse = small_sparse();
	const struct writer slow = begin_writer(path);
	must_write(d, path);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	CHECK_EQ_I(count_scratch("both.h5"), 2);
	CHECK_EQ_I(end_writer(slow, 0), 0);
	hg_dataset_free(back);
	back = must_read(path);
	check_same(sparse, back);
	CHECK_EQ_I(count_scratch("both.h5"), 1);
	hg_dataset_free(back);
	hg_dataset_free(sparse);
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(file_is_replaced_at_once),
	    TEST(stopped_writer_leaves_no_file),
	    TEST(equal_datasets_are_equal_files),
	    TEST(unwritable_places_are_errors),
	    TEST(files_are_written_completely_or_not_at_all),
	    TEST(mode_of_a_file_is_kept),
	    TEST(read_only_file_is_not_replaced),
	    TEST(longest_names_can_be_written),
	    TEST(files_of_killed_writers_are_removed),
	    TEST(running_writer_is_not_disturbed),
	};
	return RUN_TESTS(argc, argv, cases);
}
