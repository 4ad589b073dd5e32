// SPDX-License-Identifier: MIT
// The parts of a kernel's descriptor that all kernels share: its push constants and specialization constants as structs
// (`push`, `constants`), its modules with their demands, and the distribution of a dispatch on a device. The members of
// these structs name what the interface names; tools/check_layers compares them.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "intaglio/kernels/device_class.hpp"
#include "intaglio/kernels/interface.hpp"
#include "intaglio/kernels/kinds.hpp"
#include "intaglio/kernels/variant.hpp"

namespace intaglio::kernels {

/// A module of a kernel and its demands. The first candidate whose demands a device meets is used.
struct candidate {
  variant which;
  demands needs;
};

/// The type to which a kernel rounds its results, where a device's own square roots, divisions or order of sums may
/// change the rounding: int8 after a norm; f16, by cooperative matrices or after a norm; the cache's elements.
enum class rounding : std::uint8_t { none, int8, f16, cache };

/// Specialization constants by id, as bits.
using constant_words = std::array<std::uint32_t, max_specialization_constants>;

/// Constants from their words. @tparam Constants a struct of 4-byte members in the order of their ids
template <class Constants>
constexpr Constants constants_from(const constant_words& from) {
  static_assert(std::is_trivially_copyable_v<Constants> && sizeof(Constants) % 4 == 0);
  std::array<std::uint32_t, sizeof(Constants) / 4> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = from[i];
  return std::bit_cast<Constants>(words);
}
/// The constants of a kernel. @tparam Kernel its descriptor
template <class Kernel>
constexpr typename Kernel::constants constants_of(const constant_words& from) {
  return constants_from<typename Kernel::constants>(from);
}
/// Writes constants as words by id. @tparam Constants as of constants_from
template <class Constants>
constexpr void store(const Constants& what, constant_words& to) {
  const auto words = std::bit_cast<std::array<std::uint32_t, sizeof(Constants) / 4>>(what);
  for (std::size_t i = 0; i < words.size(); ++i) to[i] = words[i];
}

/// Index of a 64-bit push constant of a kernel.
enum class push_id : std::uint8_t {};
/// A descriptor's `push` in which every member is its own index.
template <class Push, std::size_t... Index>
constexpr Push numbered(std::index_sequence<Index...>) {
  return {static_cast<push_id>(Index)...};
}
/// The index of each push constant of a kernel, by the member of its descriptor's `push`:
/// push_ids<matmul_kernel>.weight.
template <class Kernel>
inline constexpr auto push_ids = numbered<typename Kernel::template push<push_id>>(
    std::make_index_sequence<sizeof(typename Kernel::template push<push_id>)>{});

/// The specialization constants of a kernel where each word is its own id.
template <class Constants>
inline constexpr Constants constant_ids = [] {
  constant_words words{};
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i;
  return constants_from<Constants>(words);
}();
/// A specialization constant of a kernel by its member.
template <auto Member>
struct constant_member;
template <class Constants, class Value, Value Constants::*Member>
struct constant_member<Member> {
  /// The id of the word that the member is made of; for an array the id of its first element.
  static constexpr std::uint32_t id =
      std::bit_cast<std::array<std::uint32_t, sizeof(Value) / 4>>(constant_ids<Constants>.*Member)[0];
};
/// The id of a specialization constant: constant_id<&matmul_kernel::constants::rows>.
template <auto Member>
inline constexpr std::uint32_t constant_id = constant_member<Member>::id;

/// How a kernel rounds its input; none if the kernel does not state it.
template <class Kernel>
constexpr rounding rounding_of(const typename Kernel::constants& c) {
  if constexpr (requires { Kernel::rounds(c); }) return Kernel::rounds(c);
  else return rounding::none;
}
/// Number of tokens in a proof of the kernel. A kernel with tiles needs more tokens than one tile has.
template <class Kernel>
constexpr std::uint32_t proof_tokens() {
  if constexpr (requires { Kernel::proof_tokens; }) return Kernel::proof_tokens;
  else return 2;
}
/// Whether a kernel computes all layers in one dispatch. It is made from a chain of dispatches, which is its reference.
template <class Kernel>
concept all_layers = requires { Kernel::does_all_layers; };
/// Whether a kernel's workgroups exchange values at offsets that its constants define.
template <class Kernel>
concept exchanging = requires(const typename Kernel::constants& c) { Kernel::exchange(c); };
/// Whether some of a kernel's workgroups help the others.
template <class Kernel>
concept helped = requires { Kernel::has_helpers; };

/// The distribution of a dispatch: workgroups, and subgroups of each.
struct launch {
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::uint32_t subgroups = 1;
  std::uint32_t least_groups = 0;  ///< fewest workgroups that wait for each other; 0: `groups`

  /// Number of workgroups that wait for each other on a device; 0: too few run there at once.
  constexpr std::uint32_t resident(const device_class& device) const {
    const std::uint32_t out = groups[0] < device.resident_workgroups ? groups[0] : device.resident_workgroups;
    return out < (least_groups != 0 ? least_groups : groups[0]) ? 0 : out;
  }
};
/// Tokens of a pass. Recordings for fewer rows than the sequence has get launches of their own.
struct pass_rows {
  std::uint32_t rows = 0;  ///< rows of the pass; 0: all
  std::uint32_t all = 0;   ///< rows of the sequence
  /// The share of the workgroups that the pass needs, where every row has the same number of them.
  constexpr std::uint32_t share(std::uint32_t groups) const {
    if (rows == 0) return groups;
    const std::uint32_t out = groups * rows / all;
    return out == 0 ? 1 : out;
  }
  /// Tokens of the pass. @param room tokens of the whole sequence
  constexpr std::uint32_t tokens(std::uint32_t room) const { return rows != 0 ? rows : room; }
};

/// The first module whose demands are met, for any dispatch. The last candidate of each kernel demands nothing.
template <class Kernel>
constexpr variant first_candidate(demands offers) {
  for (const candidate& each : Kernel::candidates)
    if (offers.has(each.needs)) return each.which;
  return Kernel::candidates[std::size(Kernel::candidates) - 1].which;
}

/// Fits a dispatch to a device: chooses its module, constants and launch. A descriptor that needs more than its list of
/// modules has a function `fit` of its own.
template <class Kernel>
constexpr variant fit(typename Kernel::constants& c, launch& of, const device_class& device, const pass_rows& pass) {
  if constexpr (requires { Kernel::fit(c, of, device, pass); }) {
    return Kernel::fit(c, of, device, pass);
  } else {
    of.groups[1] = pass.share(of.groups[1]);
    return first_candidate<Kernel>(device.offers());
  }
}

/// Fits a resident kernel to a device. Its workgroups wait for each other, so there may only be as many as run at once.
/// A pass over fewer sessions than the plan's slots has less to compute.
template <class Constants>
constexpr void fit_resident(Constants& c, launch& of, const device_class& device, const pass_rows& pass) {
  if (const std::uint32_t parts = of.resident(device); parts != of.groups[0]) c.parts = of.groups[0] = parts;
  of.groups[1] = pass.share(of.groups[1]);
  if constexpr (requires { c.slot_count; })
    if (pass.rows != 0 && pass.rows < c.slot_count) c.slot_count = pass.rows;
}

}  // namespace intaglio::kernels
