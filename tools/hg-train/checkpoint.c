/* The files that a run reads at its start and writes at its end. */
#include "checkpoint.h"

#include "files.h"
#include "tool.h"
#include "watch.h"

hg_status files_check(const struct options *o, char *message)
{
	const struct tool_file files[] = {
	    {"--data", o->training.data, TOOL_READ, "the dataset itself"},
	    {"--resume", o->resume, TOOL_RENEWED, "the checkpoint to begin from"},
	    {"--save", o->save, TOOL_REPLACED, NULL},
	    {"--json", o->json, TOOL_STREAMED, NULL},
	};
	return tool_files_check(files, sizeof files / sizeof *files, message);
}

hg_status checkpoint_resume(const struct options *o, hg_train *train, char *message)
{
	const hg_status status = o->resume ? hg_checkpoint_load(o->resume, train, message) : HG_OK;
	if (status == HG_INFO_DIFFERS)
		tool_say("hg-train", "%s", message);
	if (status >= 0)
		*message = 0;
	return status;
}

hg_status checkpoint_save(const struct options *o, hg_train *train, char *message)
{
	watch_hold();
	const hg_status status = o->save ? hg_checkpoint_save(train, o->save, message) : HG_OK;
	watch_release();
	if (status >= 0)
		*message = 0;
	return status;
}
