// SPDX-License-Identifier: MIT
// One kernel call of a plan: its kernel, operands, constants, workgroups, and the memory that it reads and writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/by_pointer.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/shader/activation.hpp"

namespace intaglio::plan {

/// The memory that an address points into.
enum class region : std::uint8_t {
  none,         ///< the push constant is 0: the kernel does not read it
  arena,        ///< activations; offset from the arena's start
  weight,       ///< weights[slot]; this layer's copy where the weight is per layer
  keys,         ///< the key cache of this layer
  values,       ///< the value cache of this layer
  state,        ///< kernels/state.hpp
  ring,         ///< drawn tokens, read by the host
  pool_keys,    ///< the keys of this layer in the pool of pages (batch_shape)
  pool_values,  ///< the values of this layer in the pool of pages
  arguments,    ///< addresses that a resident dispatch reads from memory (kernels::layers)
  trace,        ///< contributions of features, read by the host (kernels::walk_trace)
  kept,         ///< the recurrent state of this layer (layer_cache::kept_bytes)
};

/// The name of a region in messages.
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
  std::uint64_t layer_stride = 0;  ///< distance between the offsets of two consecutive layers
  friend constexpr bool operator==(const operand&, const operand&) = default;
};

/// Bytes that a dispatch reads or writes, for hazards and bounds; `bytes` covers every token of the widest pass.
struct access {
  region where = region::none;
  bool write = false;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t layer_stride = 0;  ///< as in operand
};

/// The most memory ranges that a dispatch reads or writes.
inline constexpr std::size_t max_accesses = 11;
/// The most ops that one dispatch computes.
inline constexpr std::size_t max_merged_ops = 12;

/// One kernel call of a sequence.
struct dispatch {
  kernels::kernel kernel = kernels::kernel::embed;
  bool barrier = false;    ///< wait for all earlier dispatches before this one
  std::uint8_t block = 0;  ///< in the period: the kind of layer to which it belongs
  std::uint8_t rule = 0;   ///< last fusion rule that shaped it, index into plan::rules; 0 is none
  std::uint8_t access_count = 0;
  std::uint8_t op_count = 0;
  kernels::variant variant{};   ///< its module, set when it is fitted to a device (plan/fit.hpp)
  bool unrolls = false;         ///< fitted: marked loops of its module are unrolled (kernels::hint_loops)
  std::uint32_t subgroups = 1;  ///< workgroup size in subgroups; fitted: constant 0 has it in invocations
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::uint32_t least_groups = 0;  ///< for workgroups that wait for each other: the fewest workgroups (x) that can hold
                                   ///< the work; 0: `groups`
  std::array<operand, kernels::max_push_constants> push{};
  std::array<std::uint32_t, kernels::max_specialization_constants> specialization{};  ///< by id; floats as their bits
  std::array<access, max_accesses> accesses{};
  std::array<std::uint16_t, max_merged_ops> ops{};  ///< the graph's ops that this call computes
  const shader::expression* activation = nullptr;  ///< where the epilogue gates: source that is spliced into the kernel
                                                   ///< (kernels/splice.hpp)
  std::uint64_t weight_bytes = 0;                  ///< weights read in one pass
  text<64> label{};                                ///< "attn_q+attn_k+attn_v"

  /// Where a push constant points: d[kernels::push_ids<kernels::matmul_kernel>.weight].
  constexpr operand& operator[](kernels::push_id id) { return push[static_cast<std::size_t>(id)]; }
  constexpr const operand& operator[](kernels::push_id id) const { return push[static_cast<std::size_t>(id)]; }

  /// The activation of the dispatch; an arbitrary one if the dispatch has none.
  constexpr shader::activation_function act() const {
    return activation == nullptr ? shader::activation_function{} : shader::activation_function{*activation};
  }
};

/// The specialization constants of a dispatch of a kernel. @tparam Kernel its descriptor
template <class Kernel>
constexpr typename Kernel::constants constants_of(const dispatch& d) {
  return kernels::constants_of<Kernel>(d.specialization);
}
/// Calls `f` with the constants of a dispatch of one of some kernels, and with the indices of its push constants.
/// Members that one of the kernels lacks do not compile.
template <class... Kernels, class F>
constexpr void with_constants(const dispatch& d, kernels::kernel_list<Kernels...> among, F&& f) {
  kernels::visit(
      d.kernel,
      [&]<class Kernel>(std::type_identity<Kernel>) { f(constants_of<Kernel>(d), kernels::push_ids<Kernel>); }, among);
}
/// Changes the constants of a dispatch of a kernel. @param change called with them
template <class Kernel, class Change>
constexpr void change_constants(dispatch& d, Change&& change) {
  typename Kernel::constants c = constants_of<Kernel>(d);
  change(c);
  kernels::store(c, d.specialization);
}

/// The bytes that a dispatch reads and writes.
constexpr pointed<const access> accesses_of(const dispatch& d) {
  return {d.accesses.data(), d.accesses.data() + d.access_count};
}

/// Whether a dispatch has its module and all constants (plan/fit.hpp). An engraved dispatch has no workgroup size yet.
constexpr bool is_fitted(const dispatch& d) { return d.specialization[0] != 0; }

/// Whether a dispatch is the resident dispatch of a batch, whose workgroups wait for each other and multiply with
/// cooperative matrices. Its exchange has memory apart from the values of the steps.
constexpr bool has_exchange(const dispatch& d) {
  return kernels::exchange_offsets_of_their_own[static_cast<std::size_t>(d.kernel)];
}
/// Whether some workgroups of a resident dispatch only help the others.
constexpr bool has_helpers(const dispatch& d) { return kernels::have_helpers[static_cast<std::size_t>(d.kernel)]; }
/// Whether a dispatch computes all layers. The period of its sequence then describes its steps.
constexpr bool is_all_layers(const dispatch& d) { return kernels::do_all_layers[static_cast<std::size_t>(d.kernel)]; }
/// Whether a dispatch computes all layers with workgroups that wait for each other, so that all must run at once (a
/// persistent kernel). It is recorded only where the device can run them all at once (plan::runs).
constexpr bool is_resident(const dispatch& d) { return is_all_layers(d) && d.subgroups > 1; }
/// Whether a decode dispatch of all layers is compared with decode's chain at load, because prompts may round
/// differently.
constexpr bool is_held_against_chain(const dispatch& d) {
  return kernels::are_held_against_chain[static_cast<std::size_t>(d.kernel)];
}

/// Whether a dispatch is kernel turn on one stacked product, without norms over all heads and without norms after RoPE.
constexpr bool turns_stacked(const dispatch& d) {
  if (d.kernel != kernels::kernel::turn) return false;
  const auto c = constants_of<kernels::turn_kernel>(d);
  return c.norms != kernels::turn_norms::all_heads && c.norms != kernels::turn_norms::each_head_after &&
         c.rope_factor == 1.f && c.latent == 0 && c.q_stride == (c.heads + 2 * c.kv_heads) * c.head_dim;
}
/// Whether a dispatch is kernel turn that normalises each head of one stacked product and does nothing else.
constexpr bool normalises_heads(const dispatch& d) {
  if (!turns_stacked(d)) return false;
  const auto c = constants_of<kernels::turn_kernel>(d);
  return c.norms == kernels::turn_norms::each_head && c.biased == 0;
}

/// Whether an attention has scores that the resident dispatch can compute: without a soft cap, without sinks, and
/// without positions after the token.
constexpr bool has_plain_scores(const dispatch& d) {
  if (d.kernel == kernels::kernel::attention) {
    const auto c = constants_of<kernels::attention_kernel>(d);
    return c.softcap == 0.f && c.has_sinks == 0 && c.ahead == 0 && c.value_dim == 0;
  }
  const auto c = constants_of<kernels::attention_batch_kernel>(d);
  return c.softcap == 0.f && c.has_sinks == 0 && c.ahead == 0;
}

/// Layers whose exchange holds the unwritten pattern before the pass. Where these are not all layers, workgroups write
/// the pattern for the others during the pass.
constexpr std::uint32_t blank_layers(const dispatch& all, std::uint32_t layers) {
  return has_helpers(all) && layers > kernels::layers_batch::blank_layers ? kernels::layers_batch::blank_layers
                                                                          : layers;
}
/// Whether an access of an embedding fills memory with the unwritten pattern (kernels::embed_interface).
constexpr bool makes_blank(const dispatch& d, const access& a) {
  if (d.kernel != kernels::kernel::embed || a.where != region::arena) return false;
  constexpr auto at = kernels::push_ids<kernels::embed_kernel>;
  const auto is = [&](const operand& o) { return o.where == region::arena && o.offset == a.offset; };
  return is(d[at.blank]) || is(d[at.blank_spans]);
}

/// Alignment of offsets of values and weights: the widest load of a kernel, and a cache line.
inline constexpr std::uint64_t arena_alignment = 256;

/// Rounds up to the next multiple of an alignment.
constexpr std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment = arena_alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace intaglio::plan
