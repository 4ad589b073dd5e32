// SPDX-License-Identifier: MIT
// The kernel layers: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// All layers of a decode pass in one dispatch, for one token and ternary products after quantising norms. A layer has
/// five steps: q, k, v with norm, RoPE and cache; attention; its projection; gate and up; down. Each step has `parts`
/// parts, one for each workgroup. The result has the bits of the chain of dispatches in the period.
/// arguments: addresses, argument_count a layer (kernels::layers). progress: u32 [progress_steps + steps * layers], 0
/// before the pass. ffns_before, ffns_after: FFNs of a layer before attention, 0 or 1, and after it, 1 or 2; the CPU
/// form supports only one, after attention.
/// The form for llvmpipe (layers_cpu) has workgroups of one subgroup, which may run at once or one after the other.
/// None waits for another for long: a workgroup that finds a step unfinished computes the step itself. spin_limit: loop
/// iterations that a workgroup waits in each step before it does so. progress is 0 again afterwards.
/// The form for GPUs (layers) has workgroups of 32 subgroups of 32, which all run at once. Each waits until the words
/// that it reads differ from the unwritten pattern ~0, which all exchanged bytes hold before the pass. heads_together:
/// 1, or for long contexts the 4 heads that share keys and values (layers_long; plan::resident_long_fits). spin_limit:
/// reads of one element after which a workgroup times out. The stream after the last layer is then NaN, and
/// progress[progress_timed_out] is 1 until it is cleared.
inline constexpr kernel_interface layers_interface{"layers",
                                                   {{{"arguments"}, {"progress"}, {"state"}}},
                                                   {{{"workgroup_size"},
                                                     {"hidden_size"},
                                                     {"intermediate_size"},
                                                     {"layers"},
                                                     {"parts"},
                                                     {"eps", field_type::f32},
                                                     {"spin_limit"},
                                                     {"head_dim"},
                                                     {"heads"},
                                                     {"kv_heads"},
                                                     {"context"},
                                                     {"rope_theta", field_type::f32},
                                                     {"cache_element"},
                                                     {"heads_together"},
                                                     {"subgroup_width"},
                                                     {"ffns_before"},
                                                     {"ffns_after"}}}};

namespace layers {
/// Addresses of a layer, in this order: the stream, keys, values, query, output of attention, the stream after
/// attention, gated, the stream after the layer; norm weight, weight and scales of q/k/v, of attention's projection, of
/// gate and up, of down; attention's partial results (as in the chain; none if no context has two spans). Then, for an
/// FFN before attention and for a second one after it: gated, the stream after it, and norm weight, weight and scales
/// of gate and up, and of down.
inline constexpr std::uint32_t argument_count = 21, first_weight = 8, steps = 5, arguments_of_ffn = 8;
/// Arguments for which workgroups wait, in the order of the steps that write them.
struct exchanged_arguments {
  std::array<std::uint32_t, 9> items{};
  std::uint32_t count = 0;
  constexpr void add(std::initializer_list<std::uint32_t> further) {
    for (const std::uint32_t each : further) items[count++] = each;
  }
};
/// Words of `progress`: the word that says whether a wait timed out, and the number of words before those of the steps.
inline constexpr std::uint32_t progress_timed_out = 3, progress_steps = 4;
/// Limits of the form for GPUs: its subgroups of 32 lanes, and its shared memory at most.
inline constexpr std::uint32_t resident_subgroups = 32, resident_subgroup_width = 32,
                               resident_shared_memory_bytes = 49152;
/// Bytes of `progress` for a number of layers.
constexpr std::uint64_t progress_bytes(std::uint32_t count) {
  return std::uint64_t{4} * (progress_steps + steps * count);
}
/// Bytes of `arguments` for a number of layers.
constexpr std::uint64_t argument_bytes(std::uint32_t count) { return std::uint64_t{8} * argument_count * count; }
/// Number of FFNs of a layer before attention and after it.
struct ffns {
  std::uint32_t before = 0, after = 1;
  /// FFNs beside the one that all layers have.
  constexpr std::uint32_t further() const { return before + after - 1; }
  constexpr std::uint32_t arguments(std::uint32_t plain, std::uint32_t each) const { return plain + further() * each; }
  constexpr exchanged_arguments exchanged(std::uint32_t plain, std::uint32_t each) const {
    exchanged_arguments out;
    if (before != 0) out.add({plain, plain + 1});
    out.add({3, 4, 5, 6, 7});
    if (after > 1) out.add({plain + before * each, plain + before * each + 1});
    return out;
  }
  friend constexpr bool operator==(const ffns&, const ffns&) = default;
};
}  // namespace layers

/// Descriptor of the kernel layers, which computes all layers of a decode pass with ternary weights.
struct layers_kernel {
  static constexpr kernel id = kernel::layers;
  static constexpr const kernel_interface& face = layers_interface;
  static constexpr bool does_all_layers = true;
  static constexpr candidate candidates[] = {
      {variant::layers_cpu, demand::wide_loads}, {variant::layers_long, {}}, {variant::layers, {}}};
  template <class T>
  struct push {
    T arguments, progress, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t hidden_size{};
    std::uint32_t intermediate_size{};
    std::uint32_t layers{};
    std::uint32_t parts{};
    float eps{};
    std::uint32_t spin_limit{};
    std::uint32_t head_dim{};
    std::uint32_t heads{};
    std::uint32_t kv_heads{};
    std::uint32_t context{};
    float rope_theta{};
    element cache_element{};
    std::uint32_t heads_together{};
    std::uint32_t subgroup_width{};
    std::uint32_t ffns_before{};
    std::uint32_t ffns_after{};
  };
  static constexpr std::uint32_t argument_count(const constants& c) {
    return layers::ffns{c.ffns_before, c.ffns_after}.arguments(layers::argument_count, layers::arguments_of_ffn);
  }
  static constexpr layers::exchanged_arguments exchanged(const constants& c) {
    return layers::ffns{c.ffns_before, c.ffns_after}.exchanged(layers::argument_count, layers::arguments_of_ffn);
  }

  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    if (of.subgroups > 1) fit_resident(c, of, device, pass);
    if (device.offers().has(demand::wide_loads)) return variant::layers_cpu;
    return c.heads_together != 1 ? variant::layers_long : variant::layers;
  }
};

}  // namespace intaglio::kernels
