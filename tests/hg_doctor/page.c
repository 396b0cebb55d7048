/* Checks that a page is well-formed and needs no other file. Usage: hg_doctor_page FILE. Returns 1
 * after a line that says where it is not.
 *
 *     elements are closed in order; attributes are quoted, and no element has one twice; & begins
 *     an entity; nothing is fetched: there is no URL, script, src, href or import
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEP = 64, WORD = 32 };

struct page {
	const char *text, *at;
	char open[DEEP][WORD]; /* elements that are not closed yet */
	int depth;
};

static int fail(const struct page *p, const char *what)
{
	int line = 1;
	for (const char *c = p->text; c < p->at; c++)
		line += *c == '\n';
	fprintf(stderr, "line %d: %s: %.60s\n", line, what, p->at);
	return -1;
}

static int entity(struct page *p)
{
	static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strncmp(p->at, known[i], strlen(known[i])) == 0) {
			p->at += strlen(known[i]);
			return 0;
		}
	const size_t digits = strncmp(p->at, "&#", 2) == 0 ? strspn(p->at + 2, "0123456789") : 0;
	if (!digits || p->at[2 + digits] != ';')
		return fail(p, "an & that begins no entity");
	p->at += 3 + digits;
	return 0;
}

/* Reads a name of letters, digits, "-" and ":". */
static int word(struct page *p, char *name)
{
	size_t length = 0;
	while (isalnum((unsigned char)p->at[length]) ||
	       (length && strchr("-:", p->at[length]) && p->at[length]))
		length++;
	if (!length || length >= WORD)
		return fail(p, "a name is missing or too long");
	memcpy(name, p->at, length);
	name[length] = 0;
	p->at += length;
	return 0;
}

/* name="value" */
static int attribute(struct page *p, char *names, size_t room)
{
	char name[WORD], listed[WORD + 2];
	if (word(p, name))
		return -1;
	(void)snprintf(listed, sizeof listed, " %s ", name);
	if (strstr(names, listed))
		return fail(p, "an element has an attribute twice");
	if (strlen(names) + strlen(listed) + 1 < room)
		strcat(names, listed);
	if (strcmp(name, "src") == 0 || strcmp(name, "href") == 0 || strncmp(name, "on", 2) == 0)
		return fail(p, "an attribute that fetches or runs something");
	if (strncmp(p->at, "=\"", 2) != 0)
		return fail(p, "an attribute without a quoted value");
	for (p->at += 2; *p->at != '"';) {
		if (!*p->at || *p->at == '<')
			return fail(p, "a value without an end");
		if (*p->at != '&')
			p->at++;
		else if (entity(p))
			return -1;
	}
	p->at++;
	return 0;
}

static int close_element(struct page *p)
{
	char name[WORD];
	p->at += 2;
	if (word(p, name))
		return -1;
	if (!p->depth || strcmp(p->open[p->depth - 1], name) != 0)
		return fail(p, "a closing tag of an element that is not open");
	p->depth--;
	if (*p->at++ != '>')
		return fail(p, "a closing tag without an end");
	return 0;
}

static int open_element(struct page *p)
{
	char name[WORD], names[1024] = "";
	p->at++;
	if (word(p, name))
		return -1;
	if (strcmp(name, "script") == 0 || strcmp(name, "link") == 0 || strcmp(name, "iframe") == 0 ||
	    strcmp(name, "img") == 0)
		return fail(p, "an element that fetches or runs something");
	while (*p->at == ' ') {
		p->at++;
		if (attribute(p, names, sizeof names))
			return -1;
	}
	if (strncmp(p->at, "/>", 2) == 0) {
		p->at += 2;
		return 0;
	}
	if (*p->at++ != '>' || p->depth == DEEP)
		return fail(p, p->depth == DEEP ? "too deep" : "a tag without an end");
	strcpy(p->open[p->depth++], name);
	if (strcmp(name, "style") == 0)
		p->at = strstr(p->at, "</style>") ? strstr(p->at, "</style>") : p->at;
	return 0;
}

static int read_page(struct page *p)
{
	static const char *const never[] = {"http:", "https:", "url(", "@import", "@font-face", "//"};
	static const char begin[] = "<!doctype html>\n";
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		if (strstr(p->text, never[i])) {
			p->at = strstr(p->text, never[i]);
			return fail(p, "a URL or an import");
		}
	if (strncmp(p->at, begin, sizeof begin - 1) != 0)
		return fail(p, "no doctype");
	for (p->at += sizeof begin - 1; *p->at;) {
		int bad = 0;
		if ((unsigned char)*p->at < 0x20 && *p->at != '\n')
			bad = fail(p, "a control character");
		else if (*p->at == '<')
			bad = p->at[1] == '/' ? close_element(p) : open_element(p);
		else if (*p->at == '&')
			bad = entity(p);
		else if (*p->at == '>')
			bad = fail(p, "a > outside of a tag");
		else
			p->at++;
		if (bad)
			return -1;
	}
	return p->depth ? fail(p, "the page ends within an element") : 0;
}

int main(int argc, char **argv)
{
	enum { MOST = 1 << 26 };
	FILE *in = argc == 2 ? fopen(argv[1], "r") : NULL;
	char *text = in ? malloc(MOST) : NULL;
	if (!text)
		return 1;
	const size_t length = fread(text, 1, MOST - 1, in);
	text[length] = 0;
	struct page page = {.text = text, .at = text};
	const int bad = strlen(text) != length || read_page(&page);
	free(text);
	return fclose(in) || bad;
}
