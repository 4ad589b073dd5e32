// SPDX-License-Identifier: MIT
// The kernel expert_tiles: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The pairs of token and choice that each expert has of a pass, in lists of list_tokens: output u32 [tiles, 2 +
/// list_tokens] has of a list its expert, how many pairs it holds, and which, rising, as token * experts_used + j.
/// Lists of an expert are neighbours, experts rise, and lists that nothing is left for hold none. tiles:
/// expert_tile_count(max_tokens, ...). The same whatever the order in which workgroups come. One workgroup an expert
/// (x).
inline constexpr kernel_interface expert_tiles_interface{
    "expert_tiles",
    {{{"choice"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"experts"}, {"experts_used"}, {"list_tokens"}, {"tiles"}, {"max_tokens"}}}};
/// Lists of expert_tiles that a number of tokens can take at most: the last list of every expert may hold a single
/// pair.
constexpr std::uint32_t expert_tile_count(std::uint32_t tokens, std::uint32_t experts, std::uint32_t experts_used,
                                          std::uint32_t list_tokens) {
  const std::uint64_t pairs = std::uint64_t{tokens} * experts_used, with_any = pairs < experts ? pairs : experts;
  return static_cast<std::uint32_t>((pairs + with_any * (list_tokens - 1)) / list_tokens);
}

struct expert_tiles_kernel {
  static constexpr kernel id = kernel::expert_tiles;
  static constexpr const kernel_interface& face = expert_tiles_interface;
  static constexpr candidate candidates[] = {{variant::expert_tiles, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t experts{};
    std::uint32_t experts_used{};
    std::uint32_t list_tokens{};
    std::uint32_t tiles{};
    std::uint32_t max_tokens{};
  };
};

}  // namespace intaglio::kernels
