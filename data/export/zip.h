#ifndef HG_DATA_EXPORT_ZIP_H
#define HG_DATA_EXPORT_ZIP_H

#include "internal.h"

/* A zip archive while it is written, member after member, without compression (PKWARE's
 * APPNOTE.TXT, 6.3). libzip is not used because it first collects all members in memory or in files
 * of its own. Sizes and offsets always have 64 bits, so archives beyond 4 GiB take the same path as
 * small ones. No times are stored: equal members give equal archives. */

/* More than a dataset has arrays. */
#define HG__ZIP_MEMBERS 48
#define HG__ZIP_NAME 32

struct hg__zip_member {
	char name[HG__ZIP_NAME];
	int64_t offset, bytes;
	uint32_t crc;
};

struct hg__zip_out {
	int fd;           /* an empty file, open for writing */
	const char *path; /* for messages */
	char *message;
	int64_t at; /* the length so far */
	struct hg__zip_member member[HG__ZIP_MEMBERS];
	int members;
};

/* Begin a member; its bytes follow by hg__zip_add. */
HG_NODISCARD hg_status hg__zip_member(struct hg__zip_out *zip, const char *name);
HG_NODISCARD hg_status hg__zip_add(struct hg__zip_out *zip, const void *bytes, int64_t count);
/* Complete the header of the member, which precedes its bytes but holds their checksum. */
HG_NODISCARD hg_status hg__zip_member_end(struct hg__zip_out *zip);
/* Write the directory. */
HG_NODISCARD hg_status hg__zip_end(struct hg__zip_out *zip);

#endif
