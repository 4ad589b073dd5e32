// SPDX-License-Identifier: MIT
// Which logits a pass can do without (docs/kernels.md, "Screened head"): how far below the largest one a logit may lie and still count.
#ifndef INTAGLIO_SCREEN
#define INTAGLIO_SCREEN

// More than this, in logits, and too many rows would be computed twice: the head is then dense.
const float farthest_reach = 8.0;
const float everything = 3.0e38;

// What lies more than this below the largest logit has no chance; reference::screen_reach has the same numbers.
float reach(Words state) {
  float temperature = uintBitsToFloat(state.at[state_temperature]), penalty = uintBitsToFloat(state.at[state_repeat_penalty]);
  float top_p = uintBitsToFloat(state.at[state_top_p]), min_p = uintBitsToFloat(state.at[state_min_p]);
  if (penalty != 1.0 && min(state.at[state_repeat_last_n], state.at[state_position] + state.at[state_count]) != 0u) return everything;
  if (!(temperature >= 1e-6)) return 0.0;
  // Weights are 0 from 25 octaves on: 17.33 at temperature 1, at which the filters act.
  float far = 17.4 * temperature;
  if (top_p < 1.0) far = max(far, 17.4);
  else if (min_p >= 1e-4) far = min(far, 0.02 - canonical_log(min(min_p, 1.0)));
  return far <= farthest_reach ? far : everything;
}
#endif
