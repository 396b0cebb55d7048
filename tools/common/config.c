#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/data.h"

/* Where something is in the file; both count from 1, columns in bytes. */
struct place {
	int line, column;
};

struct config {
	struct tool_line *line;
	const char *path;
	json_t *held; /* what the options' texts point to: an array */
};

static int refuse(const struct config *c, struct place at, const char *why)
{
	/* the file's name may take the whole message; the reason then fits no more */
	return tool_refuse(c->line, "%s:%d:%d: %s", c->path, at.line, at.column, why);
}

/* ---- places ---- */

/* Walk over JSON text that is known to be valid. */
struct walk {
	const char *at;
	struct place place;
	int depth;
};

static void step(struct walk *w)
{
	if (*w->at == '\n')
		w->place = (struct place){w->place.line + 1, 1};
	else
		w->place.column++;
	w->at++;
}

static void skip_string(struct walk *w)
{
	for (step(w); *w->at && *w->at != '"'; step(w))
		if (*w->at == '\\')
			step(w);
	step(w);
}

static void skip_space(struct walk *w)
{
	while (*w->at && strchr(" \t\r\n", *w->at))
		step(w);
}

static void skip_value(struct walk *w)
{
	const int depth = w->depth;
	do {
		if (*w->at == '"') {
			skip_string(w);
			continue;
		}
		w->depth += strchr("{[", *w->at) ? 1 : strchr("}]", *w->at) ? -1 : 0;
		step(w);
	} while (*w->at && (w->depth > depth || !strchr(",}]", *w->at)));
}

/* The place of member `number` of the outermost object: of its name, and of its value. */
static void find_member(const char *text, size_t number, struct place *name, struct place *value)
{
	struct walk w = {.at = text, .place = {1, 1}};
	skip_space(&w);
	for (size_t k = 0; *w.at; k++) {
		step(&w); /* over { or , */
		skip_space(&w);
		*name = w.place;
		skip_string(&w);
		skip_space(&w);
		step(&w); /* over : */
		skip_space(&w);
		*value = w.place;
		if (k == number)
			return;
		skip_value(&w);
	}
}

/* ---- names ---- */

/* The number of insertions, deletions and replacements that make one name the other. */
static int distance(const char *a, const char *b)
{
	enum { LONGEST = 63 };
	int row[LONGEST + 1];
	const int n = (int)strlen(a), m = (int)strlen(b) < LONGEST ? (int)strlen(b) : LONGEST;
	for (int j = 0; j <= m; j++)
		row[j] = j;
	for (int i = 1; i <= n; i++) {
		int before = row[0]++;
		for (int j = 1; j <= m; j++) {
			const int replaced = before + (a[i - 1] != b[j - 1]);
			before = row[j];
			const int shorter = row[j] < row[j - 1] ? row[j] : row[j - 1];
			row[j] = replaced < shorter + 1 ? replaced : shorter + 1;
		}
	}
	return row[m];
}

static const char *bare(const char *name)
{
	return name + strspn(name, "-");
}

/* The option of this name, as a number for tool_option_at; -1: there is none, and *nearest is the
 * name that looks most like it. */
static int find_option(const struct tool_line *line, const char *name, const char **nearest)
{
	int least = -1;
	for (size_t k = 0; k < tool_option_count(line); k++) {
		const struct tool_option *option = tool_option_at(line, k);
		if (option->line_only)
			continue;
		const int far = distance(bare(option->name), name);
		if (far == 0)
			return (int)k;
		if (least < 0 || far < least) {
			least = far;
			*nearest = bare(option->name);
		}
	}
	return -1;
}

/* ---- values ---- */

static const char *kind_of(const json_t *value)
{
	static const char *const kinds[] = {
	    [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a text",
	    [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
	    [JSON_FALSE] = "false",      [JSON_NULL] = "null"};
	return kinds[json_typeof(value)];
}

/* What the file must hold for an option; NULL: the value is of that kind. */
static const char *expected_kind(const struct tool_option *o, const json_t *value)
{
	if (!o->argument && o->choices)
		return json_is_boolean(value) || json_is_string(value) ? NULL : "true, false or a text";
	if (!o->argument)
		return json_is_boolean(value) ? NULL : "true or false";
	if (o->read == tool_read_integer)
		return json_is_integer(value) ? NULL : "a whole number";
	if (o->read == tool_read_real)
		return json_is_number(value) ? NULL : "a number";
	return json_is_string(value) ? NULL : "a text";
}

/* The value as it would be typed, held by c; NULL: out of memory. */
static const char *text_of(const struct config *c, json_t *value)
{
	if (json_is_string(value))
		return json_string_value(value); /* of the file's object, which is held */
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
	json_t *copy = text ? json_string(text) : NULL;
	free(text);
	return json_array_append_new(c->held, copy) == 0 ? json_string_value(copy) : NULL;
}

static int set_option(struct config *c, size_t number, json_t *value, struct place at)
{
	const struct tool_option *option = tool_option_at(c->line, number);
	const char *kind = expected_kind(option, value);
	char why[512];
	if (kind) {
		(void)snprintf(why, sizeof why, "\"%s\" is %s, expected %s", bare(option->name),
		               kind_of(value), kind);
		return refuse(c, at, why);
	}
	if (json_is_false(value))
		return 0;
	const char *text = json_is_true(value) ? NULL : text_of(c, value);
	if (!json_is_true(value) && !text)
		return tool_refuse(c->line, "%s: out of memory", c->path);
	if (text && !*text)
		(void)snprintf(why, sizeof why, "\"%s\" is empty: %s", bare(option->name),
		               option->argument ? option->argument : "a choice");
	else if (tool_option_set(c->line, number, text) == 0)
		return 0;
	else
		(void)snprintf(why, sizeof why, "%s", c->line->message);
	return refuse(c, at, why);
}

static int set_all(struct config *c, const char *text, json_t *object, int lines_before)
{
	const char *name;
	json_t *value;
	size_t number = 0;
	json_object_foreach(object, name, value)
	{
		const char *nearest = "";
		char why[512];
		struct place at = {1, 1}, value_at = {1, 1};
		const int option = find_option(c->line, name, &nearest);
		if (text)
			find_member(text, number++, &at, &value_at);
		else
			at.line = value_at.line = lines_before + 1;
		if (option < 0) {
			(void)snprintf(why, sizeof why, "\"%.64s\" is no option: did you mean \"%s\"?", name,
			               nearest);
			return refuse(c, at, why);
		}
		if (set_option(c, (size_t)option, value, value_at))
			return -1;
	}
	return 0;
}

/* ---- the file ---- */

enum { MOST_BYTES = 1 << 26 };

/* text, malloc'd := the file. Returns 0, or -1 through tool_refuse. */
static int read_text(struct tool_line *line, const char *path, char **text)
{
	FILE *file = fopen(path, "rb");
	size_t size = 0, room = 1 << 12;
	*text = file ? malloc(room) : NULL;
	while (*text && size < MOST_BYTES) {
		size += fread(*text + size, 1, room - 1 - size, file);
		if (size < room - 1)
			break;
		char *more = realloc(*text, room *= 2);
		if (!more)
			free(*text);
		*text = more;
	}
	const int error = !file || ferror(file) ? errno : 0;
	if (file)
		(void)fclose(file);
	if (*text && !error && size < MOST_BYTES) {
		(*text)[size] = '\0';
		return strlen(*text) == size ? 0 : tool_refuse(line, "%s: holds a byte 0", path);
	}
	return tool_refuse(line, "%s: cannot be read: %s", path,
	                   error                ? strerror(error)
	                   : size >= MOST_BYTES ? "it is too large for a file of options"
	                                        : "out of memory");
}

/* Does the text begin with a JSON line of a tool? */
static int is_lines(const char *text)
{
	json_error_t error;
	json_t *first = json_loads(text, JSON_DISABLE_EOF_CHECK, &error);
	const int has_event = json_is_object(first) && json_object_get(first, "event");
	json_decref(first);
	return has_event;
}

/* The options in the last of several JSON lines. */
static int set_from_lines(struct config *c, const char *text)
{
	const char *last = text, *end = text + strlen(text);
	json_error_t error;
	int before = 0, lines = 0;
	for (const char *at = text; at < end; lines++) {
		const char *newline = strchr(at, '\n');
		if (*at != '\n') {
			last = at;
			before = lines;
		}
		at = newline ? newline + 1 : end;
	}
	json_t *object = json_loads(last, 0, &error), *config = json_object_get(object, "config");
	const struct place at = {before + 1, 1};
	json_array_append(c->held, object);
	const int bad = json_is_object(config)
	                    ? set_all(c, NULL, config, before)
	                    : refuse(c, at, "the last line has no \"config\": is the run complete?");
	json_decref(object);
	return bad;
}

static int set_from_object(struct config *c, const char *text)
{
	json_error_t error;
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	int bad = 0;
	if (!object)
		bad = refuse(c, (struct place){error.line, error.column + !error.column}, error.text);
	else if (!json_is_object(object))
		bad = refuse(c, (struct place){1, 1}, "expected an object: {\"data\": \"cora.h5\", ...}");
	else
		bad = json_array_append(c->held, object) ? tool_refuse(c->line, "out of memory")
		                                         : set_all(c, text, object, 0);
	json_decref(object);
	return bad;
}

int tool_config_read(struct tool_line *line, const char *path, json_t **held)
{
	struct config c = {line, path, json_array()};
	char *text = NULL;
	*held = c.held;
	int bad = c.held ? read_text(line, path, &text) : tool_refuse(line, "out of memory");
	if (!bad)
		bad = is_lines(text) ? set_from_lines(&c, text) : set_from_object(&c, text);
	free(text);
	return bad;
}

/* ---- writing ---- */

static json_t *value_of(const struct tool_option *o, const char *text)
{
	if (!text)
		return json_true();
	if (o->read == tool_read_integer)
		return json_integer(strtoll(text, NULL, 10));
	return o->read == tool_read_real ? json_real(strtod(text, NULL)) : json_string(text);
}

json_t *tool_config_make(const struct tool_line *line)
{
	json_t *config = json_object();
	int failed = !config;
	for (size_t i = 0; !failed && i < tool_option_count(line); i++) {
		/* shared options, such as the dataset, first */
		const size_t k = (i + line->count) % tool_option_count(line);
		const struct tool_option *o = tool_option_at(line, k);
		if (line->given[k] && !o->line_only)
			failed = json_object_set_new(config, bare(o->name), value_of(o, line->text[k]));
	}
	if (!failed)
		return config;
	json_decref(config);
	return NULL;
}

/* 9 digits give back every number that an option takes to the library, which has them as float. */
hg_status tool_config_write(const json_t *config, const char *path, char *message)
{
	char *text = json_dumps(config, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	if (!text) {
		(void)snprintf(message, HG_DATA_MESSAGE, "%s: cannot be written: out of memory", path);
		return HG_ERR_NOMEM;
	}
	const size_t length = strlen(text);
	text[length] = '\n'; /* instead of the end, which a file does not need */
	const hg_status status = hg_file_write(path, text, length + 1, message);
	free(text);
	return status;
}
