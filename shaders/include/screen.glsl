// SPDX-License-Identifier: MIT
// Finds which logits a pass does not need (docs/kernels.md, "Screened head"). The including shader has `rows`.
#ifndef INTAGLIO_SCREEN
#define INTAGLIO_SCREEN

// With a reach further below the largest logit too many rows would be computed twice.
const float farthest_reach = 8.0;
const uint fewest_shares = 16u;  // of the workgroups, for a rank above 1

// A logit counts if it is not more than `reach` below the logit of `rank`, both taken before any penalty; with rank 0
// every logit counts.
struct screening {
  uint rank;
  float reach;
};

// reference::screening_of has the same code and explains it.
screening screening_of(Words state, uint groups) {
  float temperature = uintBitsToFloat(state.at[state_temperature]),
        penalty = uintBitsToFloat(state.at[state_repeat_penalty]);
  float top_p = uintBitsToFloat(state.at[state_top_p]), min_p = uintBitsToFloat(state.at[state_min_p]);
  uint top_k = state.at[state_top_k],
       penalised =
           penalty == 1.0 ? 0u : min(state.at[state_repeat_last_n], state.at[state_position] + state.at[state_count]);
  const screening none = screening(0u, 0.0);
  if (penalised != 0u && !(penalty > 1.0)) return none;
  screening s = screening(1u, 0.0);
  if (temperature >= 1e-6) {
    s.reach = 17.4 * temperature;
    if (top_p < 1.0) s.reach = max(s.reach, 17.4);
    else if (min_p >= 1e-4) s.reach = min(s.reach, 0.02 - canonical_log(min(min_p, 1.0)));
    if (!(s.reach <= farthest_reach)) {
      if (top_k == 0u || top_k >= rows) return none;
      s = screening(top_k, 0.0);
    }
  }
  if (penalised >= groups || s.rank > groups - penalised) return none;
  s.rank += penalised;
  if (s.rank > 1u) s.rank = max(s.rank, fewest_shares);
  return s.rank <= groups ? s : none;
}
#endif
