// SPDX-License-Identifier: MIT
// Proofs of attention over a cache or a pool of pages, and of moves between these.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/reference/attention.hpp"
#include "intaglio/runtime/kernel_trial.hpp"

namespace intaglio::runtime::proofs {

/// An attention in a plan, whichever kernel computes it: its shape without sinks, and where its operands are bound.
struct planned_attention {
  reference::attention_shape shape;
  std::uint32_t splits = 1;
  bool has_sinks = false;
  kernels::push_id query{}, keys{}, values{}, output{}, state{}, sinks{};

  [[gnu::cold]] explicit planned_attention(const plan::dispatch& call) {
    using kernels_of_attention = kernels::kernel_list<kernels::attention_kernel, kernels::attention_batch_kernel,
                                                      kernels::attention_chunk_kernel, kernels::attention_f16_kernel>;
    plan::with_constants(call, kernels_of_attention{}, [&](const auto& c, const auto& at) {
      shape = {c.heads, c.kv_heads, c.head_dim, c.context,   c.cache_element,
               c.scale, c.window,   c.ahead,    c.ring != 0, c.softcap};
      has_sinks = c.has_sinks != 0;
      query = at.query, keys = at.keys, values = at.values, output = at.output, state = at.state, sinks = at.sinks;
      if constexpr (requires { c.value_dim; }) shape.value_dim = c.value_dim;
      if constexpr (requires { c.splits; }) splits = c.splits;
    });
  }
};

/// First positions of the runs that are compared: one span, and where spans are merged two of them. Where several
/// workgroups merge them there are two such runs, because the counters must be as before.
/// @param several whether the kernel computes several tokens at once
inline std::vector<std::uint32_t> attention_positions(const kernel_trial& trial,
                                                      const reference::attention_shape& shape, std::uint32_t splits,
                                                      bool several) {
  const std::uint32_t latest =
      (std::min)(shape.context, trial.table->context) - trial.tokens;  // a pool has more positions than a slot may take
  std::vector<std::uint32_t> out{(std::min)(kernel_trial::position, latest)};
  if (splits > 1) out.insert(out.end(), 2, (std::min)(kernels::attention_span + kernel_trial::position, latest));
  if (several) out.push_back((std::min)(kernels::attention_span - kernel_trial::position, latest));
  if (trial.batched) out.push_back((std::min)(kernels::attention_span - 1, latest));
  return out;
}

/// Compares attention at some positions with the reference. @return the largest difference, relative to the largest
/// value
[[gnu::cold]] inline double attention(kernel_trial& trial, const plan::dispatch& call) {
  const planned_attention its(call);
  reference::attention_shape shape = its.shape;
  const bool alone = call.kernel == kernels::kernel::attention;
  const std::size_t size = std::size_t{shape.heads} * shape.head_dim,
                    out_size = std::size_t{shape.heads} * shape.value_width();
  const std::uint32_t splits = its.splits;
  std::vector<std::uint32_t> positions = attention_positions(trial, shape, splits, !alone);
  std::uint32_t filled_positions = *std::max_element(positions.begin(), positions.end()) + trial.tokens;
  if (shape.ring) {  // once around
    positions.push_back(shape.context + kernel_trial::position);
    filled_positions = shape.context;
  }
  // With any factor of the scores, made-up scores have the usual size: larger scores would be rounded more coarsely.
  const float usual = 1 / std::sqrt(static_cast<float>(shape.head_dim));
  std::vector<float> query = trial.floats(trial.tokens * size);
  if (shape.scale > usual)
    for (float& each : query) each *= usual / shape.scale;
  const auto sink_values = trial.floats(shape.heads);
  if (its.has_sinks) shape.sinks = sink_values;
  const gpu::buffer sinks = trial.filled(sink_values, shape.heads);
  const gpu::buffer in = trial.filled(query, trial.width * size), keys = trial.room(trial.cache_of(call).key_bytes),
                    values = trial.room(trial.cache_of(call).value_bytes),
                    partials = trial.room(
                        kernels::attention_partial_bytes(trial.width, shape.heads, splits, shape.value_width())),
                    counters = trial.room(kernels::attention_counter_bytes(trial.width, shape.heads));
  const reference::cached key_form{shape.cache_element, false, shape.head_dim, shape.context},
      value_form{shape.cache_element, true, shape.value_width(), shape.context};
  for (std::uint32_t head = 0; head < shape.kv_heads; ++head)
    for (std::uint32_t at = 0; at < filled_positions; ++at) {
      trial.put(keys, key_form, head, at);
      trial.put(values, value_form, head, at);
    }
  double worst = 0;
  for (const std::uint32_t first : positions) {
    const gpu::buffer out = trial.room(4 * trial.width * out_size), memory = trial.memory_of(trial.state(first));
    kernel_trial::bound_buffers buffers{
        {its.query, &in}, {its.keys, &keys}, {its.values, &values}, {its.output, &out}, {its.state, &memory}};
    if (!shape.sinks.empty()) buffers.emplace_back(its.sinks, &sinks);
    constexpr auto at = kernels::push_ids<kernels::attention_kernel>;
    if (alone) buffers.insert(buffers.end(), {{at.partials, &partials}, {at.counters, &counters}});
    trial.run(call, buffers);
    std::vector<float> expected, found;
    for (std::uint32_t t = 0; t < trial.tokens; ++t) {
      if (t % 7 != 0 && t + 8 < trial.tokens)
        continue;  // for many tokens only some of each tile and the last ones: the reference is slow
      std::vector<float> row_expected(out_size);
      reference::attend_token(shape, std::span(query).subspan(t * size, size), keys.mapped(), values.mapped(), first,
                              trial.tokens, t, row_expected);
      const auto row = read<float>(out, t * out_size, out_size);
      expected.insert(expected.end(), row_expected.begin(), row_expected.end());
      found.insert(found.end(), row.begin(), row.end());
    }
    worst = (std::max)(worst, apart(found, expected));
  }
  return worst;
}

/// Moves to the pool, in pages that are out of order, and back.
[[gnu::cold]] inline double pages(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::pages_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::pages_kernel>;
  namespace word = kernels::state;
  const std::uint32_t heads = call.groups[1], width = c.head_dim, narrow = c.value_dim,
                      value_width = narrow != 0 ? narrow : width, own = c.positions, pool = c.context,
                      page = c.page_size;
  const auto type = c.cache_element;
  const std::uint32_t count = (std::min)({own, page + (std::min)(page, 11u), trial.table->context});
  const plan::layer_cache &alone = trial.table->caches[call.block], all = trial.table->pool(call.block);
  const gpu::buffer keys = trial.room(alone.key_bytes), values = trial.room(alone.value_bytes),
                    pool_keys = trial.room(all.key_bytes), pool_values = trial.room(all.value_bytes),
                    back_keys = trial.room(alone.key_bytes), back_values = trial.room(alone.value_bytes);
  auto words = trial.slots_of(trial.state());
  const std::uint32_t last = trial.table->shape.pages - 1;
  words[word::first_slot + word::page_table] = last;
  if (trial.table->slot_pages() > 1) words[word::first_slot + word::page_table + 1] = 0;
  const auto pooled_position = [&](std::uint32_t position) {
    return (position < page ? last : 0) * page + position % page;
  };
  const reference::cached own_keys{type, false, width, own}, own_values{type, true, value_width, own},
      all_keys{type, false, width, pool}, all_values{type, true, value_width, pool};
  for (std::uint32_t head = 0; head < heads; ++head)
    for (std::uint32_t position = 0; position < count; ++position) {
      trial.put(keys, own_keys, head, position);
      trial.put(values, own_values, head, position);
    }
  words[word::move_end] = (count + kernels::cache_octet - 1) / kernels::cache_octet;
  for (const std::uint32_t way : {word::move_to_pool, word::move_from_pool}) {
    words[word::move] = way;
    const gpu::buffer memory = trial.filled(words, 0);
    const bool there = way == word::move_to_pool;
    trial.run(call, {{at.keys, there ? &keys : &back_keys},
                     {at.values, there ? &values : &back_values},
                     {at.pool_keys, &pool_keys},
                     {at.pool_values, &pool_values},
                     {at.state, &memory}});
  }
  bool same = true;
  const auto compare = [&](const reference::cached& one, const reference::cached& all_of_it, const gpu::buffer& before,
                           const gpu::buffer& back, const gpu::buffer& pooled) {
    for (std::uint32_t head = 0; head < heads; ++head)
      for (std::uint32_t position = 0; position < count; ++position)
        for (std::uint32_t channel = 0; channel < one.head_dim; ++channel) {
          const float number = one.read(before.mapped(), head, position, channel);
          same = same && number == one.read(back.mapped(), head, position, channel) &&
                 number == all_of_it.read(pooled.mapped(), head, pooled_position(position), channel);
        }
  };
  compare(own_keys, all_keys, keys, back_keys, pool_keys);
  compare(own_values, all_values, values, back_values, pool_values);
  return same ? 0 : 1;
}

}  // namespace intaglio::runtime::proofs
