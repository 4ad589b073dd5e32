// SPDX-License-Identifier: MIT
// What the tests of the kernels of attention share: a problem and its solution.
#pragma once

#include "intaglio/reference/attention.hpp"
#include "kernels/kernel_device.hpp"

namespace intaglio::testing {

/// The constants of a shape that all forms of attention have.
inline std::vector<named_value> attention_constants(const reference::attention_shape& s) {
  return {{"heads", s.heads},
          {"kv_heads", s.kv_heads},
          {"head_dim", s.head_dim},
          {"context", s.context},
          {"cache_element", static_cast<std::uint32_t>(s.cache_element)},
          {"scale", s.scale},
          {"window", s.window},
          {"ring", s.ring ? 1u : 0u},
          {"softcap", s.softcap},
          {"has_sinks", s.sinks.empty() ? 0u : 1u}};
}
/// Sinks of heads, among them some that take most of a softmax and some that take nothing.
inline constexpr std::array<float, 4> some_sinks{0.5f, -3.f, 7.f, 1.25f};
/// The sinks of a shape on the device.
inline auto sinks_on(kernel_device& on, const reference::attention_shape& s) {
  return on.filled(s.sinks.empty() ? std::vector<float>{0.f} : std::vector<float>(s.sinks.begin(), s.sinks.end()));
}

/// Random queries and caches, and what attention makes of them.
struct attention_problem {
  reference::attention_shape shape;
  std::uint32_t position, tokens, room;
  std::vector<float> query, expected;
  std::vector<std::byte> keys, values;

  static attention_problem make(random_numbers& random, const reference::attention_shape& shape, std::uint32_t position,
                                std::uint32_t tokens, std::uint32_t room) {
    const std::size_t width = std::size_t{shape.heads} * shape.head_dim;
    attention_problem out{shape,
                          position,
                          tokens,
                          room,
                          random.floats(room * width, -2, 2),
                          std::vector<float>(room * width, std::bit_cast<float>(0xa5a5a5a5u)),
                          {},
                          {}};
    auto k = random.floats(kernels::key_cache_elements(shape.kv_heads, shape.head_dim, shape.context), -2, 2);
    auto v = random.floats(kernels::value_cache_elements(shape.kv_heads, shape.head_dim, shape.context), -2, 2);
    for (auto* list : {&k, &v})
      for (std::size_t i = 0; i < list->size(); i += 5) (*list)[i] *= 1e-5f;  // halves without a leading one
    // What lies past the last position would show in any sum.
    for (std::uint32_t head = 0; head < shape.kv_heads && !shape.ring; ++head)
      for (std::uint32_t at = position + tokens; at < (shape.context + 7) / 8 * 8; ++at)
        for (std::uint32_t c = 0; c < shape.head_dim; ++c) {
          k[kernels::key_cache_index(head, at, c, shape.head_dim, shape.context)] = 60000.f;
          if (at < shape.context)
            v[kernels::value_cache_index(head, at, c, shape.head_dim, shape.context)] = std::nanf("");
        }
    // In a ring, slots of positions that have left every window.
    for (std::uint32_t head = 0; head < shape.kv_heads && shape.ring; ++head)
      for (std::uint32_t at = position + tokens - shape.context; at + shape.window <= position; ++at)
        for (std::uint32_t c = 0; c < shape.head_dim; ++c) {
          k[kernels::key_cache_index(head, at % shape.context, c, shape.head_dim, shape.context)] = 60000.f;
          v[kernels::value_cache_index(head, at % shape.context, c, shape.head_dim, shape.context)] = std::nanf("");
        }
    out.keys = elements_of(k, shape.cache_element);
    out.values = elements_of(v, shape.cache_element);
    reference::attention(shape, out.query, out.keys, out.values, position, tokens, out.expected);
    return out;
  }
};

}  // namespace intaglio::testing
