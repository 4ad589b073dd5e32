// SPDX-License-Identifier: MIT
// Which SPIR-V module runs each kernel on a device, and in subgroups of which size.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "intaglio/gpu/device.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/module_text.hpp"
#include "intaglio/kernels/spirv/accept.hpp"
#include "intaglio/kernels/spirv/attention.hpp"
#include "intaglio/kernels/spirv/attention_chunk.hpp"
#include "intaglio/kernels/spirv/attention_cpu.hpp"
#include "intaglio/kernels/spirv/attention_few.hpp"
#include "intaglio/kernels/spirv/attention_halves.hpp"
#include "intaglio/kernels/spirv/attention_halves_portable.hpp"
#include "intaglio/kernels/spirv/dense_few.hpp"
#include "intaglio/kernels/spirv/dense_matmul.hpp"
#include "intaglio/kernels/spirv/dense_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/dense_rows.hpp"
#include "intaglio/kernels/spirv/embed.hpp"
#include "intaglio/kernels/spirv/expert_sum.hpp"
#include "intaglio/kernels/spirv/expert_tiles.hpp"
#include "intaglio/kernels/spirv/fixed.hpp"
#include "intaglio/kernels/spirv/halves.hpp"
#include "intaglio/kernels/spirv/head_norm.hpp"
#include "intaglio/kernels/spirv/head_rescore.hpp"
#include "intaglio/kernels/spirv/head_screen.hpp"
#include "intaglio/kernels/spirv/head_screen_portable.hpp"
#include "intaglio/kernels/spirv/layers.hpp"
#include "intaglio/kernels/spirv/layers_coded.hpp"
#include "intaglio/kernels/spirv/layers_cpu.hpp"
#include "intaglio/kernels/spirv/layers_dense.hpp"
#include "intaglio/kernels/spirv/layers_few.hpp"
#include "intaglio/kernels/spirv/layers_few_normed.hpp"
#include "intaglio/kernels/spirv/layers_long.hpp"
#include "intaglio/kernels/spirv/layers_many.hpp"
#include "intaglio/kernels/spirv/layers_many_normed.hpp"
#include "intaglio/kernels/spirv/layers_ternary_few.hpp"
#include "intaglio/kernels/spirv/matmul.hpp"
#include "intaglio/kernels/spirv/matmul_chunk.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_few.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_fragments.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_cpu.hpp"
#include "intaglio/kernels/spirv/matmul_few.hpp"
#include "intaglio/kernels/spirv/matmul_few_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_few_portable.hpp"
#include "intaglio/kernels/spirv/matmul_few_tiled.hpp"
#include "intaglio/kernels/spirv/matmul_portable.hpp"
#include "intaglio/kernels/spirv/norm_add.hpp"
#include "intaglio/kernels/spirv/norm_quantize.hpp"
#include "intaglio/kernels/spirv/norm_quantize_cpu.hpp"
#include "intaglio/kernels/spirv/pages.hpp"
#include "intaglio/kernels/spirv/rms_norm.hpp"
#include "intaglio/kernels/spirv/route.hpp"
#include "intaglio/kernels/spirv/sample.hpp"
#include "intaglio/kernels/spirv/sample_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_chunk.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_matrix.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_portable.hpp"
#include "intaglio/kernels/spirv/ternary_few.hpp"
#include "intaglio/kernels/spirv/ternary_few_matrix.hpp"
#include "intaglio/kernels/spirv/ternary_few_portable.hpp"
#include "intaglio/kernels/spirv/ternary_float.hpp"
#include "intaglio/kernels/spirv/ternary_float_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_matmul.hpp"
#include "intaglio/kernels/spirv/ternary_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_matmul_portable.hpp"
#include "intaglio/kernels/spirv/ternary_rows.hpp"
#include "intaglio/kernels/spirv/walk_down.hpp"
#include "intaglio/kernels/spirv/walk_down_cpu.hpp"
#include "intaglio/kernels/spirv/walk_down_portable.hpp"
#include "intaglio/kernels/spirv/walk_gate_up.hpp"
#include "intaglio/kernels/spirv/walk_gate_up_cpu.hpp"
#include "intaglio/kernels/spirv/walk_gate_up_portable.hpp"
#include "intaglio/kernels/spirv/walk_select.hpp"
#include "intaglio/kernels/spirv/walk_sum.hpp"
#include "intaglio/kernels/spirv/walk_trace.hpp"
#include "intaglio/kernels/spirv/walk_up.hpp"
#include "intaglio/kernels/splice.hpp"
#include "intaglio/runtime/module_source.hpp"
#include "intaglio/runtime/tuning.hpp"

namespace intaglio::runtime {

/// The subgroup size that kernels run at: 32, the width that their arithmetic is laid out for, where the device lets a
/// shader choose it, else the device's own.
struct subgroup_choice {
  std::uint32_t size = 0;
  std::uint32_t required = 0;  ///< what pipelines ask for; 0: the device has but one
};

inline subgroup_choice choose_subgroup(const gpu::device_limits& limits) {
  if (!limits.subgroup_size_selectable) return {limits.subgroup_size, 0};
  const std::uint32_t size = std::clamp(32u, limits.min_subgroup_size, limits.max_subgroup_size);
  return {size, size};
}

/// The modules in use; variants of one kernel differ in how they compute, not in what.
struct kernel_modules {
  bool wide_loads = false;  ///< modules for CPU drivers: 64-bit loads (needs shaderInt64, subgroups that broadcast) and
                            ///< no packed dot products
  bool in_one = false;  ///< decode with all layers in one dispatch, where the plan has that: with wide_loads relies on
                        ///< llvmpipe (shaders/layers_cpu.comp)
  bool integer_dot = true;      ///< ternary products by packed dot products, else by shifts and masks
  bool matrix = false;          ///< those of chunks by cooperative matrices of int8
  bool half_matrix = false;     ///< those of chunks by cooperative matrices of f16
  bool few_matrix = false;      ///< those of a few tokens by cooperative matrices of int8
  bool few_tiled = false;       ///< and x of such products in tiles of eight tokens
  bool few_halves = false;      ///< those of chunks that are a few tokens, by cooperative matrices of f16
  bool half_fragments = false;  ///< those of chunks whose invocations fill such matrices from memory
  bool long_contexts = false;   ///< of `layers` the module for those: a form of the dispatch
                                ///< (plan::sequence::in_one_long), not of the device
  bool dense_layers = false;    ///< of `layers_coded` the module for weights of 16 bits: a form of the dispatch
                                ///< (kernels::layers_coded::is_dense)
  std::uint32_t resident_workgroups = 0;  ///< with in_one and no wide_loads: workgroups of 1,024 invocations that
                                          ///< surely run at once (shaders/layers.comp)
  module_source source = &modules_of<>;
  std::shared_ptr<const tuning> tuned{};  ///< shapes of products that are not the plan's

  /// Workgroups of all layers in one dispatch on this device, as many as the plan has or as run at once; 0: not as many
  /// as the shapes need.
  std::uint32_t resident_parts(const plan::dispatch& call) const {
    const std::uint32_t parts = (std::min)(call.groups[0], resident_workgroups);
    return parts < (call.least_groups != 0 ? call.least_groups : call.groups[0]) ? 0 : parts;
  }
  /// Whether they do all layers in a dispatch of that form.
  bool run(const plan::dispatch& all) const {
    if (plan::has_exchange(all) && !few_halves) return false;  // these multiply matrices
    return all.subgroups == 1 ? wide_loads : !wide_loads && resident_parts(all) != 0;
  }
  /// Tells the variants of a device apart, whatever their sources.
  std::string name() const {
    std::string out = wide_loads ? "wide_loads" : integer_dot ? "integer_dot" : "portable";
    if (in_one) out += "+in_one";
    if (matrix) out += "+matrix";
    if (half_matrix) out += "+half_matrix";
    if (few_matrix) out += "+few_matrix";
    if (few_halves) out += "+few_halves";
    if (half_fragments) out += "+half_fragments";
    return out;
  }
  /// Changes with any module's source and with the choice of variants.
  std::string identity() const {
    namespace spirv = kernels::spirv;
    std::uint64_t mixed = wide_loads ? (in_one ? 4 : 3)
                                     : (in_one ? 8 : 0) +
                                           (matrix        ? 5
                                            : integer_dot ? 1
                                                          : 2) +
                                           (half_matrix ? 16 : 0) + (few_matrix ? 32 : 0) + (few_halves ? 64 : 0) +
                                           (half_fragments ? 128 : 0);
    for (const std::uint64_t hash : {spirv::embed_source_hash,
                                     spirv::norm_quantize_source_hash,
                                     spirv::ternary_matmul_source_hash,
                                     spirv::ternary_matmul_portable_source_hash,
                                     spirv::ternary_chunk_source_hash,
                                     spirv::ternary_few_source_hash,
                                     spirv::ternary_float_source_hash,
                                     spirv::attention_source_hash,
                                     spirv::attention_chunk_source_hash,
                                     spirv::attention_few_source_hash,
                                     spirv::attention_cpu_source_hash,
                                     spirv::dense_matmul_source_hash,
                                     spirv::dense_few_source_hash,
                                     spirv::dense_rows_source_hash,
                                     spirv::ternary_rows_source_hash,
                                     spirv::head_screen_source_hash,
                                     spirv::head_rescore_source_hash,
                                     spirv::sample_source_hash,
                                     spirv::sample_cpu_source_hash,
                                     spirv::accept_source_hash,
                                     spirv::layers_source_hash,
                                     spirv::layers_long_source_hash,
                                     spirv::layers_cpu_source_hash,
                                     spirv::layers_coded_source_hash,
                                     spirv::layers_dense_source_hash,
                                     spirv::layers_few_source_hash,
                                     spirv::layers_few_normed_source_hash,
                                     spirv::layers_many_source_hash,
                                     spirv::layers_ternary_few_source_hash,
                                     spirv::matmul_source_hash,
                                     spirv::head_norm_source_hash,
                                     spirv::norm_add_source_hash,
                                     spirv::rms_norm_source_hash,
                                     spirv::route_source_hash,
                                     spirv::expert_sum_source_hash,
                                     spirv::expert_tiles_source_hash,
                                     spirv::halves_source_hash,
                                     spirv::matmul_chunk_source_hash,
                                     spirv::matmul_chunk_few_source_hash,
                                     spirv::matmul_chunk_fragments_source_hash,
                                     spirv::attention_halves_source_hash,
                                     spirv::walk_gate_up_source_hash,
                                     spirv::walk_gate_up_cpu_source_hash,
                                     spirv::walk_down_source_hash,
                                     spirv::walk_down_cpu_source_hash,
                                     spirv::pages_source_hash,
                                     spirv::walk_select_source_hash,
                                     spirv::walk_up_source_hash,
                                     spirv::walk_sum_source_hash,
                                     spirv::walk_trace_source_hash,
                                     spirv::fixed_source_hash,
                                     spirv::matmul_few_source_hash,
                                     spirv::matmul_few_matrix_source_hash,
                                     spirv::matmul_few_tiled_source_hash,
                                     spirv::ternary_few_matrix_source_hash})
      mixed = (mixed ^ hash) * 0x9E3779B97F4A7C15u;
    if (tuned && !tuned->shapes.empty()) mixed = (mixed ^ tuned->hash()) * 0x9E3779B97F4A7C15u;
    return std::to_string(mixed);
  }

  std::span<const std::byte> of(kernels::kernel which) const { return source(*this, which); }
  /// The words of a kernel that gates, with the activation in its place.
  std::vector<std::uint32_t> with(kernels::kernel which, const shader::expression& activation) const {
    const auto bytes = of(which);
    std::vector<std::uint32_t> words(bytes.size() / 4);
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(words)).begin());
    return kernels::splicer(words, activation).spliced();
  }
};

template <std::uint64_t used>
std::span<const std::byte> modules_of(const kernel_modules& chosen, kernels::kernel which) {
  namespace spirv = kernels::spirv;
  constexpr auto has = [](kernels::kernel each) { return (used >> static_cast<unsigned>(each) & 1u) != 0; };
  using kernels::whole;
  switch (which) {
    case kernels::kernel::embed:
      if constexpr (has(kernels::kernel::embed)) return whole(spirv::embed_parts);
      break;
    case kernels::kernel::norm_quantize:
      if constexpr (has(kernels::kernel::norm_quantize))
        return chosen.wide_loads ? whole(spirv::norm_quantize_cpu_parts) : whole(spirv::norm_quantize_parts);
      break;
    case kernels::kernel::ternary_matmul:
      if constexpr (has(kernels::kernel::ternary_matmul)) {
        if (chosen.wide_loads) return whole(spirv::ternary_matmul_cpu_parts);
        return chosen.integer_dot ? whole(spirv::ternary_matmul_parts) : whole(spirv::ternary_matmul_portable_parts);
      }
      break;
    case kernels::kernel::ternary_few:
      if constexpr (has(kernels::kernel::ternary_few)) {
        if (chosen.few_matrix) return whole(spirv::ternary_few_matrix_parts);
        return chosen.integer_dot && !chosen.wide_loads ? whole(spirv::ternary_few_parts)
                                                        : whole(spirv::ternary_few_portable_parts);
      }
      break;
    case kernels::kernel::ternary_chunk:
      if constexpr (has(kernels::kernel::ternary_chunk)) {
        if (chosen.matrix) return whole(spirv::ternary_chunk_matrix_parts);
        return chosen.integer_dot && !chosen.wide_loads ? whole(spirv::ternary_chunk_parts)
                                                        : whole(spirv::ternary_chunk_portable_parts);
      }
      break;
    case kernels::kernel::ternary_float:
      if constexpr (has(kernels::kernel::ternary_float))
        return chosen.wide_loads ? whole(spirv::ternary_float_cpu_parts) : whole(spirv::ternary_float_parts);
      break;
    case kernels::kernel::attention:
      if constexpr (has(kernels::kernel::attention))
        return chosen.wide_loads ? whole(spirv::attention_cpu_parts) : whole(spirv::attention_parts);
      break;
    case kernels::kernel::attention_few:
      if constexpr (has(kernels::kernel::attention_few)) return whole(spirv::attention_few_parts);
      break;
    case kernels::kernel::attention_chunk:
      if constexpr (has(kernels::kernel::attention_chunk)) return whole(spirv::attention_chunk_parts);
      break;
    case kernels::kernel::dense_matmul:
      if constexpr (has(kernels::kernel::dense_matmul))
        return chosen.wide_loads ? whole(spirv::dense_matmul_cpu_parts) : whole(spirv::dense_matmul_parts);
      break;
    case kernels::kernel::dense_few:
      if constexpr (has(kernels::kernel::dense_few)) return whole(spirv::dense_few_parts);
      break;
    case kernels::kernel::ternary_rows:
      if constexpr (has(kernels::kernel::ternary_rows)) return whole(spirv::ternary_rows_parts);
      break;
    case kernels::kernel::dense_rows:
      if constexpr (has(kernels::kernel::dense_rows)) return whole(spirv::dense_rows_parts);
      break;
    case kernels::kernel::head_screen:
      if constexpr (has(kernels::kernel::head_screen))
        return chosen.integer_dot && !chosen.wide_loads ? whole(spirv::head_screen_parts)
                                                        : whole(spirv::head_screen_portable_parts);
      break;
    case kernels::kernel::head_rescore:
      if constexpr (has(kernels::kernel::head_rescore)) return whole(spirv::head_rescore_parts);
      break;
    case kernels::kernel::sample:
      if constexpr (has(kernels::kernel::sample)) {
        if (chosen.wide_loads) return whole(spirv::sample_cpu_parts);
        return whole(spirv::sample_parts);
      }
      break;
    case kernels::kernel::accept:
      if constexpr (has(kernels::kernel::accept)) return whole(spirv::accept_parts);
      break;
    case kernels::kernel::matmul:
      if constexpr (has(kernels::kernel::matmul)) {
        if (chosen.wide_loads) return whole(spirv::matmul_cpu_parts);
        return chosen.integer_dot ? whole(spirv::matmul_parts) : whole(spirv::matmul_portable_parts);
      }
      break;
    case kernels::kernel::attention_halves:
      if constexpr (has(kernels::kernel::attention_halves))
        return chosen.half_matrix ? whole(spirv::attention_halves_parts)
                                  : whole(spirv::attention_halves_portable_parts);
      break;
    case kernels::kernel::halves:
      if constexpr (has(kernels::kernel::halves)) return whole(spirv::halves_parts);
      break;
    case kernels::kernel::matmul_chunk:
      if constexpr (has(kernels::kernel::matmul_chunk)) {
        if constexpr ((used & kernels::few_chunk_bit) != 0)
          if (chosen.few_halves) return whole(spirv::matmul_chunk_few_parts);
        if (chosen.half_fragments) return whole(spirv::matmul_chunk_fragments_parts);
        return chosen.half_matrix ? whole(spirv::matmul_chunk_matrix_parts) : whole(spirv::matmul_chunk_parts);
      }
      break;
    case kernels::kernel::head_norm:
      if constexpr (has(kernels::kernel::head_norm)) return whole(spirv::head_norm_parts);
      break;
    case kernels::kernel::norm_add:
      if constexpr (has(kernels::kernel::norm_add)) return whole(spirv::norm_add_parts);
      break;
    case kernels::kernel::rms_norm:
      if constexpr (has(kernels::kernel::rms_norm)) return whole(spirv::rms_norm_parts);
      break;
    case kernels::kernel::walk_gate_up:
      if constexpr (has(kernels::kernel::walk_gate_up))
        return chosen.wide_loads    ? whole(spirv::walk_gate_up_cpu_parts)
               : chosen.integer_dot ? whole(spirv::walk_gate_up_parts)
                                    : whole(spirv::walk_gate_up_portable_parts);
      break;
    case kernels::kernel::walk_down:
      if constexpr (has(kernels::kernel::walk_down))
        return chosen.wide_loads    ? whole(spirv::walk_down_cpu_parts)
               : chosen.integer_dot ? whole(spirv::walk_down_parts)
                                    : whole(spirv::walk_down_portable_parts);
      break;
    case kernels::kernel::walk_select:
      if constexpr (has(kernels::kernel::walk_select)) return whole(spirv::walk_select_parts);
      break;
    case kernels::kernel::walk_up:
      if constexpr (has(kernels::kernel::walk_up)) return whole(spirv::walk_up_parts);
      break;
    case kernels::kernel::walk_sum:
      if constexpr (has(kernels::kernel::walk_sum)) return whole(spirv::walk_sum_parts);
      break;
    case kernels::kernel::walk_trace:
      if constexpr (has(kernels::kernel::walk_trace)) return whole(spirv::walk_trace_parts);
      break;
    case kernels::kernel::route:
      if constexpr (has(kernels::kernel::route)) return whole(spirv::route_parts);
      break;
    case kernels::kernel::expert_sum:
      if constexpr (has(kernels::kernel::expert_sum)) return whole(spirv::expert_sum_parts);
      break;
    case kernels::kernel::expert_tiles:
      if constexpr (has(kernels::kernel::expert_tiles)) return whole(spirv::expert_tiles_parts);
      break;
    case kernels::kernel::fixed:
      if constexpr (has(kernels::kernel::fixed)) return whole(spirv::fixed_parts);
      break;
    case kernels::kernel::matmul_few:
      if constexpr (has(kernels::kernel::matmul_few)) {
        if (chosen.few_tiled) return whole(spirv::matmul_few_tiled_parts);
        if (chosen.few_matrix) return whole(spirv::matmul_few_matrix_parts);
        return chosen.integer_dot && !chosen.wide_loads ? whole(spirv::matmul_few_parts)
                                                        : whole(spirv::matmul_few_portable_parts);
      }
      break;
    case kernels::kernel::pages:
      if constexpr (has(kernels::kernel::pages)) return whole(spirv::pages_parts);
      break;
    case kernels::kernel::layers:
      if constexpr (has(kernels::kernel::layers)) {
        if constexpr ((used & kernels::layers::long_contexts_bit) != 0)
          if (chosen.long_contexts && !chosen.wide_loads) return whole(spirv::layers_long_parts);
        return chosen.wide_loads ? whole(spirv::layers_cpu_parts) : whole(spirv::layers_parts);
      }
      break;
    case kernels::kernel::layers_coded:
      if constexpr (has(kernels::kernel::layers_coded)) {
        if constexpr ((used & kernels::layers_coded::dense_bit) != 0)
          if (chosen.dense_layers) return whole(spirv::layers_dense_parts);
        return whole(spirv::layers_coded_parts);
      }
      break;
    case kernels::kernel::layers_few:
      if constexpr (has(kernels::kernel::layers_few)) return whole(spirv::layers_few_parts);
      break;
    case kernels::kernel::layers_few_normed:
      if constexpr (has(kernels::kernel::layers_few_normed)) return whole(spirv::layers_few_normed_parts);
      break;
    case kernels::kernel::layers_many:
      if constexpr (has(kernels::kernel::layers_many)) return whole(spirv::layers_many_parts);
      break;
    case kernels::kernel::layers_many_normed:
      if constexpr (has(kernels::kernel::layers_many_normed)) return whole(spirv::layers_many_normed_parts);
      break;
    case kernels::kernel::layers_ternary_few:
      if constexpr (has(kernels::kernel::layers_ternary_few)) return whole(spirv::layers_ternary_few_parts);
      break;
  }
  return {};
}

/// Workgroups of all layers in one dispatch that surely run at once on a device, 0: not known. NVIDIA's have one on
/// each multiprocessor; the shader was tried nowhere else.
inline std::uint32_t resident_workgroups(const gpu::device& on) {
  const gpu::device_limits& limits = on.limits();
  constexpr std::uint32_t width = kernels::layers::resident_subgroup_width;
  constexpr std::uint32_t operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  if (on.description().vendor_id != 0x10DE || on.description().driver_name != "NVIDIA" ||
      choose_subgroup(limits).size != width || (limits.subgroup_operations & operations) != operations ||
      !on.has(gpu::feature::shader_integer_dot_product) || !on.has(gpu::feature::shader_int64) ||
      !on.has(gpu::feature::memory_model_device_scope) ||
      limits.max_workgroup_invocations < kernels::layers::resident_subgroups * width ||
      limits.max_shared_memory_bytes < kernels::layers::resident_shared_memory_bytes)
    return 0;
  return limits.multiprocessors;
}

/// What may run on a device, the fastest first.
inline std::vector<kernel_modules> usable_modules(const gpu::device& on, module_source source) {
  std::vector<kernel_modules> out;
  const bool broadcasts = (on.limits().subgroup_operations & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0;
  if (on.description().type == gpu::device_type::cpu && on.has(gpu::feature::shader_int64) && broadcasts) {
    if (on.description().driver_name == "llvmpipe" && on.has(gpu::feature::subgroup_extended_types))
      out.push_back({.wide_loads = true, .in_one = true, .source = source});
    out.push_back({.wide_loads = true, .source = source});
  }
  const bool matrix = on.has(gpu::feature::cooperative_matrix) && on.has(gpu::feature::shader_int8) &&
                      gpu::multiplies_int8(on.description().matrix_shapes) && choose_subgroup(on.limits()).size == 32;
  const bool half_matrix = on.has(gpu::feature::cooperative_matrix) && on.has(gpu::feature::shader_float16) &&
                           gpu::multiplies_halves(on.description().matrix_shapes) &&
                           choose_subgroup(on.limits()).size == 32 &&
                           on.limits().max_shared_memory_bytes >= kernels::matrix_shared_memory_bytes;
  const bool few_halves = half_matrix && gpu::multiplies_halves(on.description().matrix_shapes, 8);
  const bool half_fragments = few_halves && on.has(gpu::feature::shader_int64);
  const bool few_matrix = matrix && gpu::multiplies_int8(on.description().matrix_shapes, 8) &&
                          on.limits().max_shared_memory_bytes >= kernels::matrix_shared_memory_bytes;
  const std::uint32_t resident = resident_workgroups(on);
  if (on.has(gpu::feature::shader_integer_dot_product))
    for (const bool with_matrix : {true, false}) {
      if (with_matrix && !matrix && !half_matrix) continue;
      for (const bool in_one : {true, false})
        for (const bool fragments : {true, false}) {  // where a device's matrices are spread otherwise, without
          if ((in_one && resident == 0) || (fragments && (!with_matrix || !half_fragments))) continue;
          out.push_back({.in_one = in_one,
                         .integer_dot = true,
                         .matrix = with_matrix && matrix,
                         .half_matrix = with_matrix && half_matrix,
                         .few_matrix = with_matrix && few_matrix,
                         .few_halves = with_matrix && few_halves,
                         .half_fragments = fragments,
                         .resident_workgroups = in_one ? resident : 0,
                         .source = source});
        }
    }
  out.push_back({.integer_dot = false, .source = source});
  return out;
}
inline std::vector<kernel_modules> usable_modules(const gpu::device& on) { return usable_modules(on, &modules_of<>); }

}  // namespace intaglio::runtime
