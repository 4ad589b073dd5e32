// SPDX-License-Identifier: MIT
// What the tests of the kernels of attention share: a problem and its solution.
#pragma once

#include "intaglio/ir/op.hpp"
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
          {"has_sinks", s.sinks.empty() ? 0u : 1u},
          {"ahead", s.ahead}};
}
/// Sinks of heads, among them some that take most of a softmax and some that take nothing.
inline constexpr std::array<float, 4> some_sinks{0.5f, -3.f, 7.f, 1.25f};
/// The sinks of a shape on the device.
inline auto sinks_on(kernel_device& on, const reference::attention_shape& s) {
  return on.filled(s.sinks.empty() ? std::vector<float>{0.f} : std::vector<float>(s.sinks.begin(), s.sinks.end()));
}

/// Elements in the order of kernels/cache_layout.hpp as a cache holds them.
inline std::vector<std::byte> cache_of(const reference::attention_shape& s, bool is_value,
                                       const std::vector<float>& elements) {
  if (!kernels::is_coded(s.cache_element)) return elements_of(elements, s.cache_element);
  const std::uint32_t width = is_value ? s.value_width() : s.head_dim;
  const reference::cached form{s.cache_element, is_value, width, s.context};
  std::vector<std::byte> out(static_cast<std::size_t>(form.bytes(s.kv_heads)));
  std::vector<float> row(width);
  for (std::uint32_t head = 0; head < s.kv_heads; ++head)
    for (std::uint32_t at = 0; at < s.context; ++at) {
      for (std::uint32_t c = 0; c < width; ++c) {
        const auto index =
            (is_value ? kernels::value_cache_index : kernels::key_cache_index)(head, at, c, width, s.context);
        row[c] = elements[static_cast<std::size_t>(index)];
      }
      form.store(out, head, at, row);
    }
  return out;
}

/// Random queries and caches, and what attention makes of them.
struct attention_problem {
  reference::attention_shape shape;
  std::uint32_t position, tokens, room;
  std::vector<float> query, expected;
  std::vector<std::byte> keys, values;

  static attention_problem make(random_numbers& random, const reference::attention_shape& shape, std::uint32_t position,
                                std::uint32_t tokens, std::uint32_t room) {
    const std::uint32_t value_dim = shape.value_width();
    const std::size_t width = std::size_t{shape.heads} * shape.head_dim,
                      out_width = std::size_t{shape.heads} * value_dim;
    attention_problem out{shape,
                          position,
                          tokens,
                          room,
                          random.floats(room * width, -2, 2),
                          std::vector<float>(room * out_width, std::bit_cast<float>(0xa5a5a5a5u)),
                          {},
                          {}};
    auto k = random.floats(kernels::key_cache_elements(shape.kv_heads, shape.head_dim, shape.context), -2, 2);
    auto v = random.floats(kernels::value_cache_elements(shape.kv_heads, value_dim, shape.context), -2, 2);
    for (auto* list : {&k, &v})
      for (std::size_t i = 0; i < list->size(); i += 5) (*list)[i] *= 1e-5f;  // f16 values without a leading one
    // What is past the last position would show in any sum.
    for (std::uint32_t head = 0; head < shape.kv_heads && !shape.ring; ++head)
      for (std::uint32_t at = position + tokens; at < (shape.context + 7) / 8 * 8; ++at)
        for (std::uint32_t c = 0; c < shape.head_dim; ++c) {
          k[kernels::key_cache_index(head, at, c, shape.head_dim, shape.context)] = 60000.f;
          if (at < shape.context && c < value_dim)
            v[kernels::value_cache_index(head, at, c, value_dim, shape.context)] = std::nanf("");
        }
    // In a ring, slots of positions that have left every window.
    for (std::uint32_t head = 0; head < shape.kv_heads && shape.ring; ++head)
      for (std::uint32_t at = position + tokens - shape.context; at + shape.window <= position; ++at)
        for (std::uint32_t c = 0; c < shape.head_dim; ++c) {
          k[kernels::key_cache_index(head, at % shape.context, c, shape.head_dim, shape.context)] = 60000.f;
          v[kernels::value_cache_index(head, at % shape.context, c, shape.head_dim, shape.context)] = std::nanf("");
        }
    out.keys = cache_of(shape, false, k);
    out.values = cache_of(shape, true, v);
    reference::attention(shape, out.query, out.keys, out.values, position, tokens, out.expected);
    return out;
  }
};

}  // namespace intaglio::testing
