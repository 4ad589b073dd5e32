// SPDX-License-Identifier: MIT
// How many sessions the server decodes together, and the pages of their KV cache: constants of each plan, known when it
// is engraved.
#pragma once

#include <intaglio/core/family.hpp>
#include <intaglio/plan/profile.hpp>
#include <intaglio/plan/resident.hpp>
#include <intaglio/plan/table.hpp>

#include <algorithm>
#include <cstdint>

namespace intaglio::serve {

/// Number of sessions at once. Where their passes can run the resident dispatch (plan/resident_rows.hpp), it is the
/// number that the dispatch takes: 32, or eight for shapes that layers_batch does not take.
inline constexpr std::uint32_t batch_slots = 16, small_batch_slots = kernels::layers_rows::most_tokens,
                               large_batch_slots = kernels::layers_batch::most_tokens;

/// Bytes of a state of all recurrent layers (plan/kept_state.hpp).
constexpr std::uint64_t state_bytes_of(const decoder_config& config) {
  const std::uint64_t taps = config.conv_taps == 0 ? 0 : config.conv_taps - 1;
  const delta_net_config& delta = config.delta_net;
  const std::uint64_t layer = delta.value_heads == 0
                                  ? plan::aligned(4 * taps * config.hidden_size)
                                  : plan::aligned(4 * taps * delta.qkv_size()) +
                                        plan::aligned(std::uint64_t{4} * delta.value_size() * delta.key_dim);
  return layers_with_state(config) * layer;
}

/// @param context positions of one session
/// @return pages for all slots where these and the states of recurrent layers take no more than 4 GiB (2 on CPU
///   drivers, which share the machine's memory), else the pages that fit; always enough for one session
constexpr plan::batch_shape batch_shape_with(std::uint32_t slot_count, const decoder_config& config,
                                             const plan::profile& target, std::uint32_t context) {
  const std::uint64_t position_bytes =
      std::uint64_t{2} * layers_with_keys(config) *
      kernels::key_cache_bytes(target.cache_element, config.num_key_value_heads, config.head_dim, 8) / 8;
  const std::uint64_t all = std::uint64_t{target.classes.front()->is_cpu ? 2u : 4u} << 30,
                      states = plan::batch_states(slot_count, state_bytes_of(config)) * state_bytes_of(config),
                      memory = all - std::min(all, states), counted = (std::uint64_t{1} << 31) / config.kv_size();
  const std::uint32_t page_size = context <= 1024 ? 8 : 64, one = (context + page_size - 1) / page_size;
  const std::uint64_t held = std::min(memory / position_bytes, counted) / page_size;
  return {slot_count, page_size,
          static_cast<std::uint32_t>(std::clamp<std::uint64_t>(held, one, std::uint64_t{slot_count} * one))};
}
/// @param slot_count sessions at once; 0: batch_slots
constexpr plan::batch_shape batch_shape_of(const decoder_config& config, const plan::profile& target,
                                           std::uint32_t context, std::uint32_t slot_count = 0) {
  return batch_shape_with(slot_count != 0 ? slot_count : batch_slots, config, target, context);
}

/// The shape of a batch whose products have the arithmetic of prompts, on GPUs f16 (plan::batch_shape::coded_products).
/// @param slot_count sessions at once; 0: the number that the resident dispatch takes
constexpr plan::batch_shape fast_batch_shape_of(const decoder_config& config, const plan::profile& target,
                                                std::uint32_t context, std::uint32_t slot_count = 0) {
  const auto resident = [&](std::uint32_t rows) {
    if (target.coded_chunks != plan::chunk_arithmetic::f16 || target.work.layers_subgroups <= 1 ||
        config.num_local_experts != 0)
      return false;
    if (config.model_type == architecture::gemma3)
      return plan::normed_slots_fit(config, kernels::codec::q8_0, rows, target.work.layers_parts);
    return config.model_type == architecture::llama && config.sliding_window == 0 &&
           plan::slots_fit(config, kernels::codec::q8_0, rows, target.work.layers_parts);
  };
  plan::batch_shape out = batch_shape_with(slot_count != 0               ? slot_count
                                           : resident(large_batch_slots) ? large_batch_slots
                                           : resident(small_batch_slots) ? small_batch_slots
                                                                         : batch_slots,
                                           config, target, context);
  out.coded_products = target.coded_chunks;
  return out;
}

}  // namespace intaglio::serve
