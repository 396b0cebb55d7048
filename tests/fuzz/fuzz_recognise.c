/* The format of an input. The first line is the name of a file, the rest what it holds; in a zip
 * archive the names of the members matter, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

static char folder[] = "/tmp/hg-fuzz-XXXXXX";

static void remove_folder(void)
{
	rmdir(folder);
}

/* A link to the file in memory, of this name. */
static void link_file(const uint8_t *name, size_t length, const char *target, char path[96])
{
	static int made;
	if (!made && (!mkdtemp(folder) || atexit(remove_folder) != 0))
		abort();
	made = 1;
	int used = snprintf(path, 96, "%s/", folder);
	for (size_t k = 0; k < length && k < 40; k++)
		path[used++] = (char)(name[k] && name[k] != '/' ? name[k] : '_');
	path[used++] = length && name[0] != '.' ? 0 : 'x'; /* neither "" nor "." nor ".." */
	path[used] = 0;
	if (symlink(target, path) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char path[96], message[HG_DATA_MESSAGE] = "";
	const hg_importer *importer = NULL;
	const uint8_t *end = count ? memchr(bytes, '\n', count) : NULL;
	const size_t name = end ? (size_t)(end - bytes) : count, rest = end ? count - name - 1 : 0;
	link_file(bytes, name, fuzz_file(bytes + (count - rest), rest), path);
	const hg_status status = hg_import_recognise(path, &importer, message);
	unlink(path);
	if ((status == HG_OK) != (importer != NULL) || (status < 0 && !*message) ||
	    strchr(message, '\n')) {
		fprintf(stderr, "recognise: %s, \"%s\"\n", hg_status_name(status), message);
		abort();
	}
	return 0;
}
