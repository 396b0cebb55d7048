/* Checks lines of JSON against a schema. Usage: hg_doctor_schema SCHEMA FILE. Returns 1 after a
 * line that says what does not fit.
 *
 * Only these keywords of JSON Schema are understood: $ref into $defs, oneOf, type, const, enum,
 * properties, required, items, description. Any other keyword is refused, so that no rule of the
 * schema is ignored. Also refused are a property without a description, and a field of a line that
 * the schema does not have. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *schema;

/* Why the last value did not fit. */
static char why[512];

static int fail(const char *path, const char *what, const char *which)
{
	(void)snprintf(why, sizeof why, "%s: %s %s", path, what, which);
	return -1;
}

static json_t *resolve(json_t *rule)
{
	static const char begin[] = "#/$defs/";
	const char *ref = json_string_value(json_object_get(rule, "$ref"));
	if (!ref)
		return rule;
	return strncmp(ref, begin, sizeof begin - 1) == 0
	           ? json_object_get(json_object_get(schema, "$defs"), ref + sizeof begin - 1)
	           : NULL;
}

/* ---- the schema itself ---- */

static int check_rule(json_t *rule, const char *path);

static int check_properties(json_t *properties, const char *path)
{
	const char *name;
	json_t *property;
	json_object_foreach(properties, name, property)
	{
		char deeper[256];
		(void)snprintf(deeper, sizeof deeper, "%.200s.%s", path, name);
		if (!json_string_length(json_object_get(property, "description")))
			return fail(deeper, "has no", "description");
		if (check_rule(property, deeper))
			return -1;
	}
	return 0;
}

static int check_rule(json_t *rule, const char *path)
{
	static const char *const known[] = {"$ref",       "oneOf",    "type",  "const",      "enum",
	                                    "properties", "required", "items", "description"};
	const char *word;
	json_t *value;
	size_t i;
	json_object_foreach(rule, word, value)
	{
		size_t k = 0;
		while (k < sizeof known / sizeof *known && strcmp(known[k], word) != 0)
			k++;
		if (k == sizeof known / sizeof *known)
			return fail(path, "unknown keyword", word);
	}
	if (!resolve(rule))
		return fail(path, "no such", json_string_value(json_object_get(rule, "$ref")));
	json_array_foreach(json_object_get(rule, "oneOf"), i, value)
	{
		if (check_rule(value, path))
			return -1;
	}
	json_array_foreach(json_object_get(rule, "required"), i, value)
	{
		if (!json_object_get(json_object_get(rule, "properties"), json_string_value(value)))
			return fail(path, "requires an unknown", json_string_value(value));
	}
	value = json_object_get(rule, "items");
	return value && check_rule(value, path)
	           ? -1
	           : check_properties(json_object_get(rule, "properties"), path);
}

static int check_schema(void)
{
	const char *name;
	json_t *rule;
	json_object_foreach(json_object_get(schema, "$defs"), name, rule)
	{
		if (check_rule(rule, name))
			return -1;
	}
	return json_object_size(json_object_get(schema, "$defs")) ? 0
	                                                          : fail("schema", "has no", "$defs");
}

/* ---- lines ---- */

static int fits(json_t *rule, json_t *value, const char *path);

static int has_type(const char *type, json_t *value)
{
	return strcmp(type, "object") == 0    ? json_is_object(value)
	       : strcmp(type, "array") == 0   ? json_is_array(value)
	       : strcmp(type, "string") == 0  ? json_is_string(value)
	       : strcmp(type, "integer") == 0 ? json_is_integer(value)
	       : strcmp(type, "number") == 0  ? json_is_number(value)
	       : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
	       : strcmp(type, "null") == 0    ? json_is_null(value)
	                                      : 0;
}

static int fits_object(json_t *rule, json_t *value, const char *path)
{
	json_t *properties = json_object_get(rule, "properties");
	const char *name;
	json_t *field;
	size_t i;
	json_t *event = json_object_get(json_object_get(properties, "event"), "const");
	if (event && !json_equal(event, json_object_get(value, "event")))
		return fail(path, ".event: is not", json_string_value(event));
	json_array_foreach(json_object_get(rule, "required"), i, field)
	{
		if (!json_object_get(value, json_string_value(field)))
			return fail(path, "lacks", json_string_value(field));
	}
	json_object_foreach(value, name, field)
	{
		char deeper[256];
		(void)snprintf(deeper, sizeof deeper, "%.200s.%s", path, name);
		if (!json_object_get(properties, name))
			return fail(deeper, "is not in", "the schema");
		if (fits(json_object_get(properties, name), field, deeper))
			return -1;
	}
	return 0;
}

static int fits_one(json_t *rules, json_t *value, const char *path)
{
	char best[sizeof why] = "";
	int count = 0;
	size_t i;
	json_t *rule;
	json_array_foreach(rules, i, rule)
	{
		count += fits(rule, value, path) == 0;
		/* Keep the reason of the alternative that fits down to the longest path. An alternative for
		 * another event is not the one that the line is meant to fit. */
		if (!*best || strstr(best, ".event: ") || strcspn(why, ":") > strcspn(best, ":"))
			memcpy(best, why, sizeof best);
	}
	memcpy(why, best, sizeof why);
	return count == 1 ? 0 : count ? fail(path, "fits several of", "oneOf") : -1;
}

static int fits_enum(json_t *list, json_t *value, const char *path)
{
	size_t i;
	json_t *word;
	json_array_foreach(list, i, word)
	{
		if (json_equal(word, value))
			return 0;
	}
	return fail(path, "is not in the enum:",
	            json_is_string(value) ? json_string_value(value) : "not a text");
}

static int fits(json_t *rule, json_t *value, const char *path)
{
	json_t *at = resolve(rule), *constant = json_object_get(at, "const"),
	       *items = json_object_get(at, "items");
	const char *type = json_string_value(json_object_get(at, "type"));
	size_t i;
	json_t *item;
	if (json_object_get(at, "oneOf"))
		return fits_one(json_object_get(at, "oneOf"), value, path);
	if (type && !has_type(type, value))
		return fail(path, "is not of type", type);
	if (constant && !json_equal(constant, value))
		return fail(path, "is not",
		            json_is_string(constant) ? json_string_value(constant) : "that number");
	if (json_object_get(at, "enum") && fits_enum(json_object_get(at, "enum"), value, path))
		return -1;
	json_array_foreach(items ? value : NULL, i, item)
	{
		if (fits(items, item, path))
			return -1;
	}
	return json_object_get(at, "properties") ? fits_object(at, value, path) : 0;
}

static int check_lines(FILE *in)
{
	static char line[1 << 22];
	int number = 0, bad = 0;
	while (!bad && fgets(line, sizeof line, in)) {
		json_t *value = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		number++;
		bad = !value ? fail("line", "is no", "JSON") : fits(schema, value, "line");
		json_decref(value);
		if (bad)
			fprintf(stderr, "line %d: %s\n", number, why);
	}
	if (!number)
		fprintf(stderr, "there is no line\n");
	return bad || !number;
}

int main(int argc, char **argv)
{
	FILE *in = argc == 3 ? fopen(argv[2], "r") : NULL;
	schema = in ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (!schema)
		return fprintf(stderr, "no schema, or no file\n"), 1;
	int bad = check_schema();
	if (bad)
		fprintf(stderr, "schema: %s\n", why);
	else
		bad = check_lines(in);
	json_decref(schema);
	return fclose(in) || bad;
}
