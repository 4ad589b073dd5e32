// SPDX-License-Identifier: MIT
// Decode's attention at long contexts: heads that share keys and values are computed by one workgroup, so that these
// are read and converted to floats once (shaders/include/attention_together.glsl). The bits of the result are
// unchanged.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>

#include "intaglio/kernels/attention.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// Whether a dispatch is an attention of one token whose heads a device's workgroups can compute together.
constexpr bool attends_together(const dispatch& d, const kernels::device_class& device) {
  if (d.kernel != kernels::kernel::attention || device.is_cpu || !device.selects_subgroup_size ||
      device.subgroup_size != kernels::together_subgroup_width)
    return false;
  const auto c = kernels::constants_of<kernels::attention_kernel>(d.specialization);
  return c.splits > 1 && c.window == 0 && c.slot_words == 0 && c.heads_together == 1 && c.heads > c.kv_heads &&
         c.head_dim % 32 == 0 && d.groups[1] == 1 &&
         (c.head_dim <= kernels::most_shared_head_dim ||
          device.shared_memory_bytes >= kernels::usual_shared_memory_bytes);
}
/// First position from which decode with heads together is faster than the resident dispatch, or than attention head by
/// head. It depends on the bytes of a layer's keys and values up to that position; measured on an H200
/// (docs/lab/long_contexts.md).
/// @param layer the layer's cache  @param resident compare with the resident dispatch
constexpr std::uint32_t together_from(const layer_cache& layer, bool resident) {
  const std::uint64_t bytes = (resident ? 36u : 10u) << 20, position = layer.bytes() / (std::max)(1u, layer.positions);
  return static_cast<std::uint32_t>(bytes / (std::max<std::uint64_t>)(1, position));
}
/// A dispatch of attention whose workgroups each compute the heads that share keys and values.
/// @param d for which attends_together() is true
constexpr dispatch with_heads_together(const dispatch& d) {
  dispatch out = d;
  auto c = kernels::constants_of<kernels::attention_kernel>(d.specialization);
  const std::uint32_t sharing = c.heads / c.kv_heads,
                      groups = (sharing + kernels::most_heads_together - 1) / kernels::most_heads_together;
  c.heads_together = (sharing + groups - 1) / groups;
  out.groups[0] = c.kv_heads * groups;
  out.subgroups = kernels::together_subgroups;
  kernels::store(c, out.specialization);
  return out;
}

}  // namespace intaglio::plan
