/* XXH64: four independent lanes read 8 bytes each of a stripe of 32 and are mixed at the end. */
#include "hash.h"

#include <string.h>

static const uint64_t prime[5] = {UINT64_C(0x9E3779B185EBCA87), UINT64_C(0xC2B2AE3D27D4EB4F),
                                  UINT64_C(0x165667B19E3779F9), UINT64_C(0x85EBCA77C2B2AE63),
                                  UINT64_C(0x27D4EB2F165667C5)};
#define STRIPE 32

static uint64_t rotated(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

/* Little-endian. Compilers turn the expression into one load. */
static uint64_t load_4(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t load_8(const unsigned char *at)
{
	return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
	       (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 |
	       (uint64_t)at[7] << 56;
}

static uint64_t mixed(uint64_t lane, uint64_t input)
{
	return rotated(lane + input * prime[1], 31) * prime[0];
}

void hg__hash_begin(struct hg__hash *h)
{
	*h = (struct hg__hash){.lane = {prime[0] + prime[1], prime[1], 0, 0 - prime[0]}};
}

/* Add whole stripes. Local variables keep the lanes in registers. */
static void add_stripes(struct hg__hash *h, const unsigned char *at, size_t stripes)
{
	uint64_t a = h->lane[0], b = h->lane[1], c = h->lane[2], d = h->lane[3];
	for (; stripes > 0; stripes--, at += STRIPE) {
		a = mixed(a, load_8(at));
		b = mixed(b, load_8(at + 8));
		c = mixed(c, load_8(at + 16));
		d = mixed(d, load_8(at + 24));
	}
	h->lane[0] = a;
	h->lane[1] = b;
	h->lane[2] = c;
	h->lane[3] = d;
}

void hg__hash_add(struct hg__hash *h, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	const size_t held = (size_t)(h->total % STRIPE);
	h->total += count;
	if (held > 0) {
		const size_t more = STRIPE - held < count ? STRIPE - held : count;
		memcpy(h->rest + held, at, more);
		at += more;
		count -= more;
		if (held + more == STRIPE)
			add_stripes(h, h->rest, 1);
	}
	add_stripes(h, at, count / STRIPE);
	memcpy(h->rest, at + count / STRIPE * STRIPE, count % STRIPE);
}

uint64_t hg__hash_end(const struct hg__hash *h)
{
	static const int turn[4] = {1, 7, 12, 18};
	const unsigned char *at = h->rest, *end = at + h->total % STRIPE;
	uint64_t sum = prime[4];
	if (h->total >= STRIPE) {
		sum = 0;
		for (int k = 0; k < 4; k++)
			sum += rotated(h->lane[k], turn[k]);
		for (int k = 0; k < 4; k++)
			sum = (sum ^ mixed(0, h->lane[k])) * prime[0] + prime[3];
	}
	sum += h->total;
	for (; end - at >= 8; at += 8)
		sum = rotated(sum ^ mixed(0, load_8(at)), 27) * prime[0] + prime[3];
	for (; end - at >= 4; at += 4)
		sum = rotated(sum ^ load_4(at) * prime[0], 23) * prime[1] + prime[2];
	for (; at < end; at++)
		sum = rotated(sum ^ *at * prime[4], 11) * prime[0];
	sum = (sum ^ sum >> 33) * prime[1];
	sum = (sum ^ sum >> 29) * prime[2];
	return sum ^ sum >> 32;
}
