// SPDX-License-Identifier: MIT
// One kernel call of a plan: its operands, constants and workgroups, what memory it touches, and what it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/message.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/shader/activation.hpp"

namespace intaglio::plan {

/// The memory that an address points into.
enum class region : std::uint8_t {
  none,         ///< the push constant is 0: the kernel does not read it
  arena,        ///< activations; offset from the arena's start
  weight,       ///< weights[slot], of this layer where the weight is per layer
  keys,         ///< the key cache of this layer
  values,       ///< the value cache of this layer
  state,        ///< kernels/state.hpp
  ring,         ///< drawn tokens, read by the host
  pool_keys,    ///< the keys of this layer in the pool of pages (batch_shape)
  pool_values,  ///< its values there
  arguments,    ///< addresses that all layers in one dispatch take from memory (kernels::layers)
  trace,        ///< what features added, read by the host (kernels::walk_trace)
  kept,         ///< what this layer keeps beside these (layer_cache::kept_bytes)
};

std::string_view constexpr name(region where) {
  constexpr std::string_view names[] = {"none", "arena",     "weight",      "keys",      "values", "state",
                                        "ring", "pool keys", "pool values", "arguments", "trace",  "kept"};
  return names[static_cast<std::size_t>(where)];
}

/// Where one address push constant points.
struct operand {
  region where = region::none;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
  std::uint64_t layer_stride = 0;  ///< what a layer's place is behind that of the layer before
  friend constexpr bool operator==(const operand&, const operand&) = default;
};

/// Bytes that a dispatch touches, for hazards and bounds; `bytes` covers every token of the widest pass.
struct access {
  region where = region::none;
  bool write = false;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t layer_stride = 0;  ///< as of operand
};

inline constexpr std::size_t max_accesses = 11;
inline constexpr std::size_t max_merged_ops = 12;

/// One kernel call of a sequence.
struct dispatch {
  kernels::kernel kernel = kernels::kernel::embed;
  bool barrier = false;    ///< wait for all earlier dispatches before this one
  std::uint8_t block = 0;  ///< in the period: the kind of layer that it is part of
  std::uint8_t rule = 0;   ///< last fusion rule that shaped it, index into plan::rules; 0 is none
  std::uint8_t access_count = 0;
  std::uint8_t op_count = 0;
  kernels::variant variant{};   ///< its module, once fitted to a device (plan/fit.hpp)
  bool unrolls = false;         ///< fitted: its module's marked loops are written out (kernels::hint_loops)
  std::uint32_t subgroups = 1;  ///< workgroup size in subgroups; fitted, specialization constant 0 is its invocations
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::uint32_t least_groups = 0;  ///< of workgroups that wait for each other: with fewer than these (x) there is no
                                   ///< room; 0: as many as groups says
  std::array<operand, kernels::max_push_constants> push{};
  std::array<std::uint32_t, kernels::max_specialization_constants> specialization{};  ///< by id; floats as their bits
  std::array<access, max_accesses> accesses{};
  std::array<std::uint16_t, max_merged_ops> ops{};  ///< the graph's ops that this call does
  const shader::expression* activation =
      nullptr;                     ///< where the epilogue gates: what is written into the kernel (kernels/splice.hpp)
  std::uint64_t weight_bytes = 0;  ///< weights read in one pass
  text<64> label{};                ///< "attn_q+attn_k+attn_v"

  /// The activation of the dispatch; an arbitrary one where it has none.
  constexpr shader::activation_function act() const {
    return activation == nullptr ? shader::activation_function{} : shader::activation_function{*activation};
  }
};

/// Whether a dispatch has its module and all constants (plan/fit.hpp): an engraved one has no workgroup size yet.
constexpr bool is_fitted(const dispatch& d) { return d.specialization[0] != 0; }

/// Whether a dispatch is all layers of a batch's pass, by workgroups that wait for each other and multiply by
/// cooperative matrices. The memory of their exchange is apart from that of the steps.
constexpr bool has_exchange(const dispatch& d) {
  return kernels::exchange_places_of_their_own[static_cast<std::size_t>(d.kernel)];
}
/// Whether some workgroups of such a dispatch help the others.
constexpr bool has_helpers(const dispatch& d) { return kernels::have_helpers[static_cast<std::size_t>(d.kernel)]; }
/// Whether a dispatch is all layers: what it does is said by the steps of its sequence.
constexpr bool is_all_layers(const dispatch& d) { return kernels::do_all_layers[static_cast<std::size_t>(d.kernel)]; }
/// All layers by workgroups that wait for each other and so must all run at once: recorded only where the device has
/// what that takes (plan::runs).
constexpr bool is_resident(const dispatch& d) { return is_all_layers(d) && d.subgroups > 1; }
/// Whether such a dispatch of a token is held against decode's own chain at load, since prompts may round otherwise.
constexpr bool is_held_against_chain(const dispatch& d) {
  return kernels::are_held_against_chain[static_cast<std::size_t>(d.kernel)];
}

/// Whether it is turn of one stacked product, without norms of all heads at once and without norms behind the rotation.
constexpr bool turns_stacked(const dispatch& d) {
  if (d.kernel != kernels::kernel::turn) return false;
  const auto c = kernels::constants_of<kernels::turn_kernel>(d.specialization);
  return c.norms != kernels::turn_norms::all_heads && c.norms != kernels::turn_norms::each_head_behind &&
         c.rope_factor == 1.f && c.q_stride == (c.heads + 2 * c.kv_heads) * c.head_dim;
}
/// Whether it is turn that normalises each head of one stacked product, and does no more.
constexpr bool normalises_heads(const dispatch& d) {
  if (!turns_stacked(d)) return false;
  const auto c = kernels::constants_of<kernels::turn_kernel>(d.specialization);
  return c.norms == kernels::turn_norms::each_head && c.biased == 0;
}

/// Whether an attention of one or a few tokens has scores that resident layers compute: without bounds, sinks and
/// positions behind a token.
constexpr bool has_plain_scores(const dispatch& d) {
  if (d.kernel == kernels::kernel::attention) {
    const auto c = kernels::constants_of<kernels::attention_kernel>(d.specialization);
    return c.softcap == 0.f && c.has_sinks == 0 && c.ahead == 0;
  }
  const auto c = kernels::constants_of<kernels::attention_few_kernel>(d.specialization);
  return c.softcap == 0.f && c.has_sinks == 0 && c.ahead == 0;
}

/// Layers whose exchange holds the not-written pattern before the pass; where these are not all, workgroups
/// make the others so.
constexpr std::uint32_t blank_layers(const dispatch& all, std::uint32_t layers) {
  return has_helpers(all) && layers > kernels::layers_many::blank_layers ? kernels::layers_many::blank_layers : layers;
}
/// What an embedding makes blank for those who wait (kernels::embed_interface), beside what it computes.
constexpr bool makes_blank(const dispatch& d, const access& a) {
  if (d.kernel != kernels::kernel::embed || a.where != region::arena) return false;
  const auto is = [&](std::string_view name) {
    const operand& o = d.push[kernels::embed_interface.push_index(name)];
    return o.where == region::arena && o.offset == a.offset;
  };
  return is("blank") || is("blank_spans");
}

/// Offsets of values and weights are multiples of this: the widest load of a kernel, and a cache line.
inline constexpr std::uint64_t arena_alignment = 256;

constexpr std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment = arena_alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace intaglio::plan
