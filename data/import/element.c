/* The numbers of numpy arrays, of any type and byte order. */
#include "import/element.h"

#include <string.h>

#include "halfgraph/dtype.h"

int hg__element_parse(const char *dtype, struct hg__element *type)
{
	const uint16_t probe = 1;
	const char native = *(const unsigned char *)&probe ? '<' : '>';
	if (strlen(dtype) != 3 || !strchr("<>|=", dtype[0]))
		return 0;
	const char kind = dtype[1];
	const int size = dtype[2] - '0';
	const int is_power = size == 1 || size == 2 || size == 4 || size == 8;
	if (!is_power || !strchr("iufb", kind) || (kind == 'f' && size == 1) ||
	    (kind == 'b' && size > 1))
		return 0;
	*type = (struct hg__element){
	    kind, size, size > 1 && dtype[0] != native && (dtype[0] == '<' || dtype[0] == '>')};
	return 1;
}

static uint64_t bits_of(struct hg__element type, const unsigned char *p)
{
	uint64_t bits = 0;
	unsigned char bytes[8] = {0};
	for (int k = 0; k < type.size; k++)
		bytes[k] = p[type.swap ? type.size - 1 - k : k];
	if (type.size == 1)
		return bytes[0];
	if (type.size == 2) {
		uint16_t half;
		memcpy(&half, bytes, sizeof half);
		return half;
	}
	if (type.size == 4) {
		uint32_t word;
		memcpy(&word, bytes, sizeof word);
		return word;
	}
	memcpy(&bits, bytes, sizeof bits);
	return bits;
}

int64_t hg__element_integer(struct hg__element type, const unsigned char *at)
{
	const uint64_t bits = bits_of(type, at);
	const int unused = 64 - 8 * type.size;
	return type.kind == 'i' ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

double hg__element_real(struct hg__element type, const unsigned char *at)
{
	const uint64_t bits = bits_of(type, at);
	if (type.kind != 'f')
		return type.kind == 'i' ? (double)hg__element_integer(type, at) : (double)bits;
	if (type.size == 2)
		return (double)hg_half_to_float((hg_half)bits);
	if (type.size == 4) {
		const uint32_t word = (uint32_t)bits;
		float x;
		memcpy(&x, &word, sizeof x);
		return (double)x;
	}
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}
