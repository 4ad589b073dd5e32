// SPDX-License-Identifier: MIT
// The ways in which bench can run decode, and the pairs of them that `bench --ab` compares. A new pair is one more row.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::tool {

/// How decode is driven.
struct decode_mode {
  bool record_each = false;             ///< record a command buffer for every token, submit it, wait for it
  std::uint32_t passes_per_submit = 0;  ///< 0: the number that keeps the device busy
  bool chain = false;                   ///< the chain of dispatches even where the device has the resident dispatch
  bool untimed = false;                 ///< no pass now and then with timestamps
  bool walk = false;                    ///< FFNs that are walked (docs/walk.md)
  bool screened = false;                ///< profile `screened`: the head's logits bounded by int8 rows first
};
/// Whether it takes another executor.
constexpr bool is_apart(const decode_mode& mode) { return mode.chain || mode.walk || mode.screened; }

struct ab_variant {
  std::string_view name;
  decode_mode mode;
};
struct ab_pair {
  std::string_view name, about;
  ab_variant first, second;
};

inline constexpr std::array ab_pairs{
    ab_pair{"record",
            "recording, submitting and awaiting every token against replay",
            {"record-per-token", {.record_each = true}},
            {"replay", {}}},
    ab_pair{"submit",
            "one token a submission against many",
            {"submit-per-token", {.passes_per_submit = 1}},
            {"replay", {}}},
    ab_pair{"layers",
            "the resident dispatch of all layers against the chain of dispatches",
            {"resident", {}},
            {"chain", {.chain = true}}},
    ab_pair{"walk",
            "dense FFNs against the exact walk of BitNet, or the full walk of f32, f16 and bf16",
            {"dense", {}},
            {"walk", {.walk = true}}},
    ab_pair{"screened",
            "the head as it is against the screened head, whose logits are bounded by int8 rows first",
            {"plain", {}},
            {"screened", {.screened = true}}},
    ab_pair{"times",
            "one pass in 128 timed kernel by kernel, the default, against none",
            {"timed", {}},
            {"untimed", {.untimed = true}}},
};

inline std::vector<std::string> ab_names() {
  std::vector<std::string> out;
  for (const ab_pair& each : ab_pairs) out.emplace_back(each.name);
  return out;
}

}  // namespace intaglio::tool
