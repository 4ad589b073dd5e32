// SPDX-License-Identifier: MIT
// The kernel expert_tiles: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Groups the pairs of token and choice of a pass by expert, in lists of list_tokens. A list in output u32 [tiles, 2 +
/// list_tokens] has its expert, the number of its pairs, and the pairs in rising order as token * experts_used + j.
/// Lists of one expert are neighbours, experts rise, and lists that are left over hold no pairs. tiles:
/// expert_tile_count(max_tokens, ...). The result does not depend on the order in which workgroups run. One workgroup
/// an expert (x).
inline constexpr kernel_interface expert_tiles_interface{
    "expert_tiles",
    {{{"choice"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"experts"}, {"experts_used"}, {"list_tokens"}, {"tiles"}, {"max_tokens"}}}};
/// The most lists of expert_tiles that a number of tokens can fill: the last list of every expert may hold a single
/// pair.
constexpr std::uint32_t expert_tile_count(std::uint32_t tokens, std::uint32_t experts, std::uint32_t experts_used,
                                          std::uint32_t list_tokens) {
  const std::uint64_t pairs = std::uint64_t{tokens} * experts_used, with_any = pairs < experts ? pairs : experts;
  return static_cast<std::uint32_t>((pairs + with_any * (list_tokens - 1)) / list_tokens);
}

/// Descriptor of the kernel expert_tiles, which groups the tokens of a pass by expert.
struct expert_tiles_kernel {
  static constexpr kernel id = kernel::expert_tiles;
  static constexpr const kernel_interface& face = expert_tiles_interface;
  static constexpr candidate candidates[] = {{variant::expert_tiles, {}}};
  template <class T>
  struct push {
    T choice, output, state;
  };
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
