/* Names of classes: collecting them, checking them, and their code points. */
#include "class_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/texts.h"

/* ---- UTF-8 ---- */

/* The bytes of the code point at `at`, of which there are `left`; 0: it is none. Overlong forms,
 * surrogates and numbers above 10FFFF are none (RFC 3629). */
static int decode(const unsigned char *at, size_t left, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const int length = at[0] < 0x80       ? 1
	                   : at[0] >> 5 == 6  ? 2
	                   : at[0] >> 4 == 14 ? 3
	                   : at[0] >> 3 == 30 ? 4
	                                      : 0;
	if (length == 0 || (size_t)length > left)
		return 0;
	*code = length == 1 ? at[0] : at[0] & (0x7Fu >> length);
	for (int k = 1; k < length; k++) {
		if (at[k] >> 6 != 2)
			return 0;
		*code = *code << 6 | (at[k] & 0x3Fu);
	}
	return *code < least[length] || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)
	           ? 0
	           : length;
}

static int encode(uint32_t code, char out[4])
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	const int length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (int k = length - 1; k > 0; k--, code >>= 6)
		out[k] = (char)(0x80u | (code & 0x3Fu));
	out[0] = (char)((0xF00u >> length & 0xFFu) | code);
	return length;
}

/* ---- collecting ---- */

static hg_status put(struct hg__names *n, const char *bytes, int64_t count, char *message)
{
	if (n->bytes > HG__NAMES_MAX - count)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "names of classes: more than %" PRId64 " bytes", HG__NAMES_MAX);
	if (n->bytes + count > n->room) {
		const int64_t room = 2 * (n->bytes + count) + 64;
		HG__TRY(hg__data_grow((void **)&n->at, room, 1, "names of classes", message));
		n->room = room;
	}
	memcpy(n->at + n->bytes, bytes, (size_t)count);
	n->bytes += count;
	return HG_OK;
}

static hg_status end(struct hg__names *n, char *message)
{
	n->count++;
	return put(n, "", 1, message);
}

hg_status hg__names_add(struct hg__names *n, const char *text, size_t length, char *message)
{
	for (size_t at = 0; at < length;) {
		uint32_t code;
		const int size = decode((const unsigned char *)text + at, length - at, &code);
		const int good = size > 0 && code > 0;
		HG__TRY(put(n, good ? text + at : "?", good ? size : 1, message));
		at += good ? (size_t)size : 1;
	}
	return end(n, message);
}

hg_status hg__names_add_wide(struct hg__names *n, const uint32_t *text, int64_t length,
                             char *message)
{
	for (int64_t k = 0; k < length && text[k]; k++) {
		const uint32_t code = text[k];
		const int good = code <= 0x10FFFF && !(code >= 0xD800 && code < 0xE000);
		char bytes[4];
		HG__TRY(put(n, bytes, encode(good ? code : '?', bytes), message));
	}
	return end(n, message);
}

void hg__names_free(struct hg__names *n)
{
	free(n->at);
	*n = (struct hg__names){.at = NULL};
}

void hg__names_drop(hg_dataset *d)
{
	free(d->class_name);
	d->class_name = NULL;
	d->class_name_bytes = 0;
}

void hg__names_take(struct hg__names *n, hg_dataset *d)
{
	if (n->count != d->classes || n->count == 0) {
		hg__names_free(n);
		return;
	}
	hg__names_drop(d);
	d->class_name = n->at;
	d->class_name_bytes = n->bytes;
	*n = (struct hg__names){.at = NULL};
}

/* ---- for numpy ---- */

hg_status hg__names_widen(const char *names, int64_t bytes, uint32_t **wide, int64_t *count,
                          int64_t *width, char *message)
{
	int64_t here = 0, row = 0;
	*count = hg__texts_count(names, bytes);
	*width = 1; /* numpy has texts of no length, but not in every version */
	for (int64_t k = 0; k < bytes; k++) {
		const int begins = ((unsigned char)names[k] & 0xC0) != 0x80;
		here = names[k] ? here + begins : 0;
		*width = here > *width ? here : *width;
	}
	HG__TRY(
	    hg__data_alloc(*count * *width, sizeof **wide, "names of classes", (void **)wide, message));
	memset(*wide, 0, (size_t)(*count * *width) * sizeof **wide);
	here = 0;
	for (int64_t k = 0; k < bytes && row < *count;) {
		uint32_t code = '?';
		int size = decode((const unsigned char *)names + k, (size_t)(bytes - k), &code);
		size = size ? size : 1;
		if (code)
			(*wide)[row * *width + here++] = code;
		else
			here = 0;
		row += code == 0;
		k += size;
	}
	return HG_OK;
}

/* ---- in a dataset ---- */

hg_status hg__names_check(const hg_dataset *d, const char *origin, char *message)
{
	if (!d->class_name && d->class_name_bytes == 0)
		return HG_OK;
	if (d->class_name_bytes < 0 || d->class_name_bytes > HG__NAMES_MAX)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: names of classes: %" PRId64 " bytes, expected at most %" PRId64,
		                     origin, d->class_name_bytes, HG__NAMES_MAX);
	const int64_t count = hg__texts_count(d->class_name, d->class_name_bytes);
	if (count != d->classes)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: names of classes: there are %" PRId64 ", expected %" PRId32
		                     ", each with a terminating 0",
		                     origin, count < 0 ? 0 : count, d->classes);
	for (int64_t k = 0; k < d->class_name_bytes;) {
		uint32_t code;
		const int size = decode((const unsigned char *)d->class_name + k,
		                        (size_t)(d->class_name_bytes - k), &code);
		if (size == 0)
			return hg__data_fail(message, HG_ERR_FORMAT,
			                     "%s: names of classes: byte %" PRId64 " is not UTF-8", origin, k);
		k += size;
	}
	return HG_OK;
}

hg_status hg_dataset_name_classes(hg_dataset *d, const char *const *names, int32_t count,
                                  char *message)
{
	struct hg__names n = {.at = NULL};
	if (!d || (count && !names))
		return hg__data_fail(message, HG_ERR_ARG, "name_classes: %s is NULL",
		                     d ? "names" : "dataset");
	if (count != 0 && count != d->classes)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "%" PRId32 " names of classes, the dataset has %" PRId32 " classes",
		                     count, d->classes);
	hg_status status = HG_OK;
	for (int32_t c = 0; c < count && status == HG_OK; c++)
		status = names[c] ? hg__names_add(&n, names[c], strlen(names[c]), message)
		                  : hg__data_fail(message, HG_ERR_ARG,
		                                  "name_classes: the name of class %" PRId32 " is NULL", c);
	if (status < 0) {
		hg__names_free(&n);
		return status;
	}
	hg__names_drop(d);
	hg__names_take(&n, d);
	return HG_OK;
}

const char *hg_dataset_class_name(const hg_dataset *d, int64_t c)
{
	return d && c >= 0 ? hg__texts_at(d->class_name, d->class_name_bytes, c) : NULL;
}
