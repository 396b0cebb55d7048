/* Read the name of an order of the nodes from the command line. */
#include <string.h>

#include "commandline.h"
#include "halfgraph/order.h"

int tool_read_order(struct tool_line *line, const struct tool_option *option, const char *text)
{
	char names[160] = "";
	size_t count, used = 0;
	const hg_order_method *methods = hg_order_methods(&count);
	for (size_t k = 0; k <= count; k++) {
		const char *name = k < count ? methods[k].name : TOOL_ORIGINAL;
		if (strcmp(name, text) == 0)
			return tool_read_text(line, option, text);
		const int more = snprintf(names + used, sizeof names - used, "%s%s", k ? "|" : "", name);
		used = more > 0 && used + (size_t)more < sizeof names ? used + (size_t)more : used;
	}
	return tool_refuse(line, "%s is \"%s\", expected one of %s", option->name, text, names);
}
