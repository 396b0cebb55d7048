/* Where Q, K and V are among the operands of attention. */
#include "autograd/ops/attention.h"

enum { Q = ATTENTION_Q, K = ATTENTION_K, V = ATTENTION_V };

struct hg__attention_layout hg__attention_layout(hg_score score, int has_k, int has_v)
{
	struct hg__attention_layout layout = {.side = {{Q, 0}, {K, 0}, {V, 0}}, .parts = 1};
	if (!has_k && score == HG_SCORE_COSINE)
		layout.side[SIDE_K] = layout.side[SIDE_Q];
	else if (!has_k) {
		layout.side[SIDE_K] = (struct hg__attention_place){Q, 1};
		layout.parts = 2;
	}
	if (!has_v && !has_k && score == HG_SCORE_DOT) {
		layout.side[SIDE_V] = (struct hg__attention_place){Q, 2};
		layout.parts = 3;
	} else if (!has_v)
		layout.side[SIDE_V] = layout.side[SIDE_K];
	return layout;
}

void hg__attention_sides(const struct hg__attention_layout *layout,
                         const struct hg__mat of[HG__MAX_IN], struct hg__mat side[SIDES])
{
	for (int i = 0; i < SIDES; i++) {
		const struct hg__attention_place *at = &layout->side[i];
		const int64_t cols = of[at->operand].cols / (at->operand == Q ? layout->parts : 1);
		side[i] = hg__mat_cols(of[at->operand], at->part * cols, cols);
	}
}
