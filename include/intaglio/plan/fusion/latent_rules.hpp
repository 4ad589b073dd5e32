// SPDX-License-Identifier: MIT
// The rule for latent attention: the ops between the products and attention.
#pragma once

#include <cstddef>

#include "intaglio/plan/fusion/product_rules.hpp"

namespace intaglio::plan {

/// Rules for latent attention: one node rotates and stores the latent vector and the key's rotated channels.
class latent_rules : public product_rules {
 public:
  using product_rules::product_rules;

 protected:
  /// Merges the ops that follow the norm of a latent vector: the rotations of queries and of the key, the joins of
  /// rotated channels with latent ones, and the way to the cache. @return false if op i is no such norm
  constexpr bool latent_turn(std::size_t i, node& n) {
    const std::size_t key = reader(at(i).out, kind::join, i);
    if (key == nowhere || uses(at(i).out) != 2 || at(i).weight == ir::none || at(i).head_dim != 0) return false;
    const std::size_t write = reader(at(key).out, kind::cache_write, key), query = other_join(key),
                      key_rope = rope_of(key), query_rope = query == nowhere ? nowhere : rope_of(query);
    if (write == nowhere || uses(at(key).out) != 1 || at(write).in[1] != at(i).out || at(write).value_dim == 0 ||
        at(write).kv_heads != 1 || key_rope == nowhere || query_rope == nowhere ||
        at(key_rope).rope != at(query_rope).rope || at(key_rope).head_dim != at(query_rope).head_dim)
      return false;
    for (const ir::value_id made : {at(i).in[0], at(key_rope).in[0], at(query_rope).in[0], at(query).in[0]})
      if (maker(made) == nowhere || maker(made) > i) return false;
    for (const auto index : {i, key_rope, query_rope, key, query, write}) take(n, index);
    n.lowered = true;
    n.kernel = kernels::kernel::turn;
    n.rule = rule_index("turn");
    n.in = at(query_rope).in[0], n.k_in = at(key_rope).in[0], n.v_in = at(i).in[0], n.up_in = at(query).in[0];
    n.out = at(query).out;
    n.norm = at(i).weight, n.eps = at(i).eps;
    n.rope = at(query_rope).rope;
    n.heads = at(query).heads, n.kv_heads = 1, n.head_dim = at(query_rope).head_dim;
    n.value_dim = at(write).value_dim, n.window = at(write).window;
    return true;
  }

 private:
  /// The join of the same block that is not `one`.
  constexpr std::size_t other_join(std::size_t one) const {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      if (i != one && !taken_[i] && at(i).kind == kind::join && together(at(i), at(one))) return i;
    return nowhere;
  }
  /// The rotation of the second operand of a join, if nothing else reads it.
  constexpr std::size_t rope_of(std::size_t join) const {
    const std::size_t i = maker(at(join).in[1]);
    return i < join && at(i).kind == kind::rope && uses(at(i).out) == 1 ? i : nowhere;
  }
};

}  // namespace intaglio::plan
