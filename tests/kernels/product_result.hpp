// SPDX-License-Identifier: MIT
// What a product of either kind of weights leaves, how its memory begins, what is compared.
#pragma once

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/reference/canonical.hpp"
#include "kernels/kernel_device.hpp"

namespace intaglio::testing {

struct product_result {
  std::vector<float> output;
  std::vector<std::byte> keys, values;
};

/// Every buffer starts as poison, the output of `add` as a ramp.
template <class Problem>
product_result initial(const Problem& p) {
  const auto& s = p.shape;
  const auto cache = [&](const auto& elements) {
    return std::vector<std::byte>(
        s.epilogue == kernels::epilogue::rope_cache
            ? elements(s.kv_size / s.head_dim, s.head_dim, s.context) * reference::elements::size_bytes(s.cache_element)
            : 4,
        poison);
  };
  product_result out{std::vector<float>(p.room * p.output_width(), std::bit_cast<float>(0xa5a5a5a5u)),
                     cache(kernels::key_cache_elements), cache(kernels::value_cache_elements)};
  if (s.epilogue == kernels::epilogue::add)
    for (std::size_t i = 0; i < out.output.size(); ++i) out.output[i] = static_cast<float>(i % 17) - 8.0f;
  return out;
}

inline void check(kernel_device& on, const product_result& found, const product_result& expected) {
  CHECK_SAME(on, found.output, expected.output);
  if (on.device().description().type != gpu::device_type::cpu) return;
  CHECK(found.keys == expected.keys);
  CHECK(found.values == expected.values);
}

}  // namespace intaglio::testing
