/* Read YAML files by libyaml. A file is small: it describes where the data are. Anchors and aliases
 * need no care, because nothing walks through the whole file. */
#include "import/yaml_file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static yaml_node_t *node_at(const struct hg__yaml *y, int node)
{
	return y->document ? yaml_document_get_node(y->document, node) : NULL;
}

hg_status hg__yaml_fail(const struct hg__yaml *y, int node, const char *format, ...)
{
	char text[HG_DATA_MESSAGE];
	const yaml_node_t *at = node_at(y, node > 0 ? node : 1);
	va_list args;
	va_start(args, format);
	hg__data_say(text, format, args);
	va_end(args);
	return hg__data_fail(y->message, HG_ERR_FORMAT, "%s:%zu: %s", y->path,
	                     at ? at->start_mark.line + 1 : 1, text);
}

/* ---- the file ---- */

static hg_status read_text(const struct hg__folder *f, const char *name, const struct hg__yaml *y,
                           unsigned char *text, size_t *length)
{
	struct hg__bytes bytes;
	size_t got = 1;
	hg_status status = hg__folder_bytes(f, name, y->path, &bytes);
	while (status == HG_OK && got > 0 && *length <= HG__TEXT_MAX) {
		status = hg__bytes_read(&bytes, text + *length, HG__TEXT_MAX + 1 - *length, &got);
		*length += status == HG_OK ? got : 0;
	}
	hg__bytes_close(&bytes);
	if (status == HG_OK && *length > HG__TEXT_MAX)
		return hg__data_fail(y->message, HG_ERR_FORMAT,
		                     "%s: is longer than %d bytes: not a description of data", y->path,
		                     HG__TEXT_MAX);
	return status;
}

static hg_status fail_to_parse(const struct hg__yaml *y, const yaml_parser_t *parser)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return hg__data_fail(y->message, HG_ERR_NOMEM, "%s: out of memory for YAML", y->path);
	const size_t line =
	    parser->error == YAML_READER_ERROR ? parser->mark.line : parser->problem_mark.line;
	return hg__data_fail(y->message, HG_ERR_FORMAT, "%s:%zu: is not YAML: %s", y->path, line + 1,
	                     parser->problem ? parser->problem : "it cannot be parsed");
}

/* The parser takes time that grows with the square of the depth, and cannot be stopped meanwhile.
 * Brackets in texts count as well: a description of data has a handful of either. */
static hg_status check_depth(const struct hg__yaml *y, const unsigned char *text, size_t length)
{
	enum { MOST = 1000 };
	int64_t depth = 0;
	for (size_t k = 0; k < length && depth <= MOST; k++)
		depth += (text[k] == '[' || text[k] == '{') - (text[k] == ']' || text[k] == '}');
	return depth <= MOST ? HG_OK
	                     : hg__data_fail(y->message, HG_ERR_FORMAT,
	                                     "%s: lists are nested more than %d deep: not a "
	                                     "description of data",
	                                     y->path, MOST);
}

static hg_status parse(struct hg__yaml *y, const unsigned char *text, size_t length)
{
	yaml_parser_t parser;
	HG__TRY(check_depth(y, text, length));
	if (!yaml_parser_initialize(&parser))
		return hg__data_fail(y->message, HG_ERR_NOMEM, "%s: out of memory for YAML", y->path);
	yaml_parser_set_input_string(&parser, text, length);
	hg_status status =
	    hg__data_alloc(1, sizeof *y->document, "a YAML file", (void **)&y->document, y->message);
	if (status == HG_OK && !yaml_parser_load(&parser, y->document)) {
		status = fail_to_parse(y, &parser);
		free(y->document); /* nothing was loaded into it */
		y->document = NULL;
	}
	yaml_parser_delete(&parser);
	return status;
}

static hg_status load(const struct hg__folder *f, const char *name, struct hg__yaml *y)
{
	unsigned char *text = NULL;
	size_t length = 0;
	HG__TRY(hg__folder_path(f, name, &y->path));
	HG__TRY(hg__data_alloc(HG__TEXT_MAX + 1, 1, "a YAML file", (void **)&text, y->message));
	hg_status status = read_text(f, name, y, text, &length);
	if (status == HG_OK)
		status = parse(y, text, length);
	free(text);
	return status;
}

static hg_status find_file(const struct hg__folder *f, const char *file, const char **found)
{
	*found = NULL;
	for (int64_t k = 0; k < f->count; k++) {
		const char *name = f->name[k], *slash = strrchr(name, '/');
		const size_t folder = slash ? (size_t)(slash - name) : 0;
		const int is_made = folder >= 12 && strncmp(slash - 12, "preprocessed", 12) == 0 &&
		                    (folder == 12 || slash[-13] == '/');
		if (strcmp(slash ? slash + 1 : name, file) != 0 || is_made)
			continue;
		if (*found)
			return hg__data_fail(f->message, HG_ERR_FORMAT,
			                     "%s: holds %s and %s, expected one: give one of them instead",
			                     f->root, *found, name);
		*found = name;
	}
	return *found ? HG_OK
	              : hg__data_fail(f->message, HG_ERR_FORMAT, "%s: holds no %s", f->root, file);
}

hg_status hg__yaml_open(const char *path, const char *file, const hg_progress *progress,
                        struct hg__folder *f, struct hg__yaml *y, char *message)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	*y = (struct hg__yaml){.message = message};
	if (hg__folder_is(path)) {
		HG__TRY(hg__folder_open(f, path, progress, message));
		HG__TRY(hg__folder_list(f));
		HG__TRY(find_file(f, file, &name));
	} else {
		HG__TRY(hg__folder_open_around(f, path, progress, message));
	}
	slash = strrchr(name, '/');
	HG__TRY(hg__folder_stem(f, name, slash ? (size_t)(slash + 1 - name) : 0));
	return load(f, name, y);
}

void hg__yaml_close(struct hg__yaml *y)
{
	if (y->document)
		yaml_document_delete(y->document);
	free(y->document);
	free(y->path);
	*y = (struct hg__yaml){0};
}

/* ---- what it says ---- */

static const char *text_of(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

static int is_null(const yaml_node_t *node)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
	if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return 0;
	for (size_t k = 0; k < sizeof nulls / sizeof *nulls; k++)
		if (strcmp(text_of(node), nulls[k]) == 0)
			return 1;
	return 0;
}

/* Of a key that occurs twice the last value counts, as in PyYAML. */
static int value_of(const struct hg__yaml *y, const yaml_node_t *map, const char *key)
{
	int value = 0;
	const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
	for (; pair < map->data.mapping.pairs.top; pair++) {
		const yaml_node_t *name = node_at(y, pair->key);
		if (name->type == YAML_SCALAR_NODE && strcmp(text_of(name), key) == 0)
			value = pair->value;
	}
	return value > 0 && is_null(node_at(y, value)) ? 0 : value;
}

hg_status hg__yaml_get(const struct hg__yaml *y, int map, const char *key, yaml_node_type_t type,
                       int required, int *node)
{
	const yaml_node_t *in = node_at(y, map > 0 ? map : 1);
	*node = 0;
	if (!in || in->type != YAML_MAPPING_NODE)
		return hg__yaml_fail(y, map, "expected a mapping with the key %s", key);
	*node = value_of(y, in, key);
	if (*node == 0)
		return required ? hg__yaml_fail(y, map, "expected the key %s", key) : HG_OK;
	return node_at(y, *node)->type == type
	           ? HG_OK
	           : hg__yaml_fail(y, *node, "%s: expected a %s", key,
	                           type == YAML_SCALAR_NODE     ? "text or number"
	                           : type == YAML_SEQUENCE_NODE ? "list"
	                                                        : "mapping");
}

hg_status hg__yaml_text(const struct hg__yaml *y, int map, const char *key, int required,
                        const char **text)
{
	int node = 0;
	*text = NULL;
	HG__TRY(hg__yaml_get(y, map, key, YAML_SCALAR_NODE, required, &node));
	if (node == 0)
		return HG_OK;
	const yaml_node_t *at = node_at(y, node);
	if (strlen(text_of(at)) != at->data.scalar.length)
		return hg__yaml_fail(y, node, "%s: holds zero bytes", key);
	*text = text_of(at);
	return HG_OK;
}

hg_status hg__yaml_whole(const struct hg__yaml *y, int map, const char *key, int required,
                         int64_t *value)
{
	const char *text = NULL;
	*value = -1;
	HG__TRY(hg__yaml_text(y, map, key, required, &text));
	if (text && (!hg__lines_whole(&text, value) || *text))
		return hg__yaml_fail(y, map, "%s: expected a whole number from 0", key);
	return HG_OK;
}

/* So that a description reaches no file outside of its folder. */
static int is_inside(const char *path)
{
	const size_t length = strlen(path);
	return length > 0 && *path != '/' && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
	       !strstr(path, "/../") && !(length > 2 && strcmp(path + length - 3, "/..") == 0);
}

hg_status hg__yaml_path(const struct hg__yaml *y, int map, const char *key, const char **path)
{
	HG__TRY(hg__yaml_text(y, map, key, 1, path));
	return is_inside(*path)
	           ? HG_OK
	           : hg__yaml_fail(y, map, "%s: expected a file in the folder, found \"%.60s\"", key,
	                           *path);
}

int hg__yaml_count(const struct hg__yaml *y, int sequence)
{
	if (sequence == 0)
		return 0;
	const yaml_node_t *node = node_at(y, sequence);
	return (int)(node->data.sequence.items.top - node->data.sequence.items.start);
}

int hg__yaml_item(const struct hg__yaml *y, int sequence, int k)
{
	return node_at(y, sequence)->data.sequence.items.start[k];
}

hg_status hg__yaml_only(const struct hg__yaml *y, int map, const char *key, int *item)
{
	int list = 0;
	HG__TRY(hg__yaml_get(y, map, key, YAML_SEQUENCE_NODE, 1, &list));
	const int count = hg__yaml_count(y, list);
	if (count != 1)
		return hg__yaml_fail(y, list,
		                     "%s: expected one type, found %d: sets with several types of nodes "
		                     "or edges are not read",
		                     key, count);
	*item = hg__yaml_item(y, list, 0);
	return HG_OK;
}
