/* Read the name of an order of the nodes from the command line. */
#include <string.h>

#include "commandline.h"
#include "halfgraph/order.h"

const char *const *tool_order_names(void)
{
	enum { MOST = 15 };
	static const char *name[MOST + 1];
	size_t count;
	const hg_order_method *methods = hg_order_methods(&count);
	for (size_t k = 0; k < count && k < MOST - 1; k++)
		name[k] = methods[k].name;
	name[count < MOST - 1 ? count : MOST - 1] = TOOL_ORIGINAL;
	return name;
}

int tool_read_order(struct tool_line *line, const struct tool_option *option, const char *text)
{
	char list[160];
	for (const char *const *name = tool_order_names(); *name; name++)
		if (strcmp(*name, text) == 0)
			return tool_read_text(line, option, text);
	return tool_refuse(line, "%s is \"%s\", expected one of %s", option->name, text,
	                   tool_join(tool_order_names(), "|", list, sizeof list));
}
