/* Name a dataset after the file that it came from. */
#include <string.h>

#include "import/importers.h"

hg_status hg__import_name(hg_dataset *d, const char *path, char *message)
{
	const char *slash = strrchr(path, '/');
	HG__TRY(hg__data_copy_text(slash ? slash + 1 : path, &d->name, message));
	char *dot = strchr(d->name, '.');
	if (dot && dot != d->name)
		*dot = 0;
	return HG_OK;
}
