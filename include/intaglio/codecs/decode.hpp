// SPDX-License-Identifier: MIT
// The list of codecs that have a header of their own, and decoding by it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "intaglio/codecs/iq4_nl.hpp"
#include "intaglio/codecs/iq4_xs.hpp"
#include "intaglio/codecs/mxfp4.hpp"
#include "intaglio/codecs/q2_k.hpp"
#include "intaglio/codecs/q3_k.hpp"
#include "intaglio/codecs/q5_0.hpp"
#include "intaglio/codecs/q5_1.hpp"
#include "intaglio/codecs/q5_k.hpp"

namespace intaglio::codecs {

using all = std::tuple<q5_0, q5_1, q2_k, q3_k, q5_k, iq4_nl, iq4_xs, mxfp4>;

/// Calls `with.template operator()<C>()` for the codec of this type. @return false where no header has it
template <class With>
constexpr bool with_codec(dtype type, With&& with) {
  return []<block_codec... C>(std::tuple<C...>*, dtype wanted, With& each) {
    static_assert(((info(C::type).block_elements == C::elements && info(C::type).block_bytes == C::bytes) && ...));
    return ((C::type == wanted && (each.template operator()<C>(), true)) || ...);
  }(static_cast<all*>(nullptr), type, with);
}

/// True for a type that decode_blocks reads.
constexpr bool is_listed(dtype type) {
  return with_codec(type, []<class C>() {});
}

/// Decodes whole blocks. @return false where no header has the type
inline bool decode_blocks(dtype type, const std::uint8_t* from, std::size_t blocks, float* out) {
  return with_codec(type, [&]<class C>() {
    for (std::size_t b = 0; b < blocks; ++b) C::decode(from + b * C::bytes, out + b * C::elements);
  });
}

}  // namespace intaglio::codecs
