/* The configuration of an import, and its notes: sentences about what the import did beside the
 * dataset itself. */
#include <inttypes.h>
#include <stdarg.h>

#include "core/versioned.h"
#include "import/importers.h"

hg_status hg__import_configure(const hg_import_config *caller, hg_import_config *config,
                               char *message)
{
	*config = (hg_import_config)HG_IMPORT_CONFIG_INIT;
	if (caller && !hg__struct_read(config, sizeof *config, caller))
		return hg__data_fail(
		    message, HG_ERR_ARG,
		    "import: config.size is not set (start from HG_IMPORT_CONFIG_INIT), or a "
		    "field unknown to this version is used");
	if ((unsigned)config->header > HG_HEADER_NO)
		return hg__data_fail(message, HG_ERR_ARG, "import: config.header is %d, not an hg_header",
		                     (int)config->header);
	if (config->folds < 0 || config->fold < 0 || (config->folds && config->fold >= config->folds))
		return hg__data_fail(message, HG_ERR_ARG,
		                     "import: config.fold is %" PRId64 " of %" PRId64
		                     ", expected folds from 0",
		                     config->fold, config->folds);
	return HG_OK;
}

void hg__import_note(const hg_import_config *config, const char *format, ...)
{
	char sentence[HG_DATA_MESSAGE];
	va_list args;
	if (!config->note)
		return;
	va_start(args, format);
	hg__data_say(sentence, format, args);
	va_end(args);
	config->note(config->user, sentence);
}

void hg__import_note_merged(const hg_import_config *config, const char *path, int64_t read,
                            int64_t kept, int weighted)
{
	if (read > kept)
		hg__import_note(config,
		                "%s: %" PRId64 " of %" PRId64
		                " edges repeat an earlier edge and were merged with it%s",
		                path, read - kept, read, weighted ? ": weights add up" : "");
}
