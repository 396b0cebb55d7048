/* Several runs on one page. */
#include "compare.h"

#include "files.h"
#include "page.h"
#include "tool.h"

static int say(const char *message, hg_status status)
{
	tool_say("hg-train", "%s", *message ? message : hg_status_text(status));
	return tool_code_of(status);
}

/* The page must not overwrite what it is made of. */
static hg_status check_files(const struct options *o, char *message)
{
	struct tool_file files[COMPARED_MOST + 1] = {{"--html", o->html, TOOL_REPLACED, NULL}};
	for (int k = 0; k < o->compared; k++)
		files[k + 1] =
		    (struct tool_file){"--compare", o->run[k], TOOL_READ, "one of the runs to compare"};
	return tool_files_check(files, (size_t)o->compared + 1, message);
}

int compare_run(const struct options *o)
{
	struct record run[COMPARED_MOST] = {{0}};
	char message[HG_DATA_MESSAGE] = "";
	hg_status status = check_files(o, message);
	for (int k = 0; k < o->compared && status >= 0; k++)
		status = record_read(&run[k], o->run[k], message);
	int code = status < 0 ? say(message, status) : TOOL_DONE;
	if (status >= 0) {
		const struct comparison comparison = {run, o->compared};
		status = page_write(o->html, page_compare_print, &comparison, message);
		if (status < 0) /* the file could be written before */
			code = (say(message, status), TOOL_FAILED);
	}
	for (int k = 0; k < o->compared; k++)
		record_free(&run[k]);
	return code;
}
