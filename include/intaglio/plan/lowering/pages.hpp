// SPDX-License-Identifier: MIT
// How positions are copied from a cache to the pool of pages, and back.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

/// Makes the dispatches that copy positions between a cache and the pool of pages.
class pages_lowering : public dispatch_builder {
 public:
  using dispatch_builder::dispatch_builder;

  /// The dispatch that copies a slot's positions between the cache of a layer with this op and the pool. Every
  /// workgroup copies an octet of positions of a chunk.
  constexpr dispatch move(const ir::op& o) {
    dispatch d{.kernel = kernels::kernel::pages, .block = o.block};
    d_ = &d;
    constexpr auto at = kernels::push_ids<kernels::pages_kernel>;
    d.label.append("pages");
    const lowering_context alone{c_.config, c_.target, 1, c_.max_tokens, c_.context};
    const std::uint32_t own = alone.cache_positions(o.window), pool = c_.cache_positions(o.window);
    const layer_cache from = cache_for(o.kv_heads, o.head_dim, o.value_dim, own, o.window, c_.target),
                      to = cache_for(o.kv_heads, o.head_dim, o.value_dim, pool, o.window, c_.target);
    bind(at.keys, {region::keys, 0, 0}, from.key_bytes, true);
    bind(at.values, {region::values, 0, 0}, from.value_bytes, true);
    bind(at.pool_keys, {region::pool_keys, 0, 0}, to.key_bytes, true);
    bind(at.pool_values, {region::pool_values, 0, 0}, to.value_bytes, true);
    bind(at.state, {region::state, 0, 0}, c_.state_bytes(), false);
    kernels::pages_kernel::constants k{};
    k.head_dim = o.head_dim;
    k.value_dim = o.value_dim;
    k.positions = own;
    k.context = pool;
    k.cache_element = c_.target.cache_element;
    k.slot_words = c_.slot_words();
    k.page_size = c_.batch.page_size;
    k.slot_count = c_.batch.slot_count;
    d.subgroups = c_.target.work.embed_subgroups;
    const std::uint32_t chunk = (std::min)(c_.target.prefill_tokens, c_.context);
    d.groups = {(chunk + kernels::cache_octet - 1) / kernels::cache_octet, o.kv_heads, 1};
    kernels::store(k, d.specialization);
    return d;
  }
};
template <>
struct lowering_of<kernels::pages_kernel> : not_of_nodes {};

}  // namespace intaglio::plan
