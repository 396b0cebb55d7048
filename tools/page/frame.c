/* How a page begins, and how it gets into its file. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "halfgraph/data.h"
#include "html.h"
#include "watch.h"

void page_begin(FILE *out)
{
	(void)fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta "
	            "name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
	            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	            "style-src 'unsafe-inline'\"/>\n<title>",
	            out);
}

static void print_lines(FILE *out, const char *const *line)
{
	for (; line && *line; line++)
		(void)fputs(*line, out);
}

void page_begin_body(FILE *out, const char *const *style)
{
	(void)fputs("</title>\n<style>\n", out);
	print_lines(out, page_style);
	print_lines(out, style);
	(void)fputs("</style>\n</head>\n<body>\n", out);
}

/* The logo: a pulse that runs through half a disc. */
void page_brand(FILE *out, const char *tool, int bad, const char *badge)
{
	(void)fprintf(out,
	              "<div class=\"brand\"><svg viewBox=\"0 0 26 26\" aria-hidden=\"true\"><path "
	              "d=\"M13 1a12 12 0 0 0 0 24z\" style=\"fill:var(--accentbg)\"/>"
	              "<circle cx=\"13\" cy=\"13\" r=\"12\" "
	              "style=\"fill:none;stroke:var(--accent);stroke-width:1.6\"/><path d=\"M1 "
	              "13h7l2.5-6 4 12 3-8 1.5 2h6\" "
	              "style=\"fill:none;stroke:var(--%s);stroke-width:1.9;stroke-linejoin:round\"/></"
	              "svg><span>%s</span><span class=\"badge %s\">",
	              bad ? "bad" : "good", tool, badge);
}

void page_brand_end(FILE *out)
{
	(void)fputs("</span></div>\n", out);
}

/* The page is built in memory. */
hg_status page_write(const char *path, void (*print)(FILE *out, const void *user), const void *user,
                     char *message)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	hg_status status = HG_ERR_NOMEM;
	*message = 0;
	if (out)
		print(out, user);
	const int incomplete = out && ferror(out);
	if (out && fclose(out) == 0 && !incomplete) {
		watch_hold();
		status = hg_file_write(path, text, size, message);
		watch_release();
	}
	free(text);
	return status;
}
