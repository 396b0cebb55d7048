/* The files that a run begins from and leaves. */
#define _POSIX_C_SOURCE 200809L
#include "checkpoint.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static int refuse(char *message, const char *option, const char *path, const char *why)
{
	(void)snprintf(message, HG_DATA_MESSAGE, "%s %s%s", option, path, why);
	return 0;
}

static int same(const char *a, const char *b)
{
	return a && b && (strcmp(a, b) == 0 || tool_same_file(a, b));
}

/* A checkpoint may go where the run began from. */
static int is_free(const struct options *o, char *message)
{
	static const char dataset[] = " is the dataset itself: it is left as it is";
	if (same(o->save, o->training.data))
		return refuse(message, "--save", o->save, dataset);
	if (same(o->json, o->training.data))
		return refuse(message, "--json", o->json, dataset);
	if (same(o->json, o->resume))
		return refuse(message, "--json", o->json, " is the checkpoint to begin from: it is left as it is");
	return same(o->json, o->save) ? refuse(message, "--json", o->json, " is where --save goes: one file cannot be both") : 1;
}

/* The folder that a checkpoint is put into. */
static int can_save(const char *path, char *message)
{
	const char *slash = strrchr(path, '/');
	char folder[4096] = ".", why[128];
	if (slash)
		(void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
	if (access(folder, W_OK | X_OK) == 0)
		return 1;
	(void)snprintf(why, sizeof why, ": %s", strerror(errno));
	return refuse(message, "--save", path, why);
}

int files_check(const struct options *o, char *message)
{
	return is_free(o, message) && (!o->save || can_save(o->save, message));
}

hg_status checkpoint_resume(const struct options *o, hg_train *train, char *message)
{
	const hg_status status = o->resume ? hg_checkpoint_load(o->resume, train, message) : HG_OK;
	if (status == HG_INFO_DIFFERS)
		fprintf(stderr, "hg-train: %s\n", message);
	if (status >= 0)
		*message = 0;
	return status;
}

hg_status checkpoint_save(const struct options *o, hg_train *train, char *message)
{
	const hg_status status = o->save ? hg_checkpoint_save(train, o->save, message) : HG_OK;
	if (status >= 0)
		*message = 0;
	return status;
}
