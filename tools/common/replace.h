#ifndef HG_REPLACE_H
#define HG_REPLACE_H

#include <stdio.h>

/* A text file that appears complete or not at all: kept in memory, written under a temporary name beside its own, synchronised, renamed. */
struct replace {
	FILE *out; /* to print to */
	const char *path;
	char *temporary, *text;
	size_t length;
	int fd;            /* of the temporary file: what cannot be written is known before the work begins */
	char message[256]; /* why a call failed: "PATH: REASON" */
};
/* 0, or -1: nothing is left to end then. What is there under `path` and is not a regular file (a device, a link) is never replaced. */
int replace_begin(struct replace *file, const char *path);
/* keep 1: put the file in place; 0: drop it. 0, or -1, and nothing is left behind then. */
int replace_end(struct replace *file, int keep);

#endif
