// SPDX-License-Identifier: MIT
// The list of all codecs of blocks, and functions that decode and encode by it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "intaglio/codecs/iq1_m.hpp"
#include "intaglio/codecs/iq1_s.hpp"
#include "intaglio/codecs/iq2_s.hpp"
#include "intaglio/codecs/iq2_xs.hpp"
#include "intaglio/codecs/iq2_xxs.hpp"
#include "intaglio/codecs/iq3_s.hpp"
#include "intaglio/codecs/iq3_xxs.hpp"
#include "intaglio/codecs/iq4_nl.hpp"
#include "intaglio/codecs/iq4_xs.hpp"
#include "intaglio/codecs/mxfp4.hpp"
#include "intaglio/codecs/nvfp4.hpp"
#include "intaglio/codecs/q1_0.hpp"
#include "intaglio/codecs/q2_0.hpp"
#include "intaglio/codecs/q2_k.hpp"
#include "intaglio/codecs/q3_k.hpp"
#include "intaglio/codecs/q4_0.hpp"
#include "intaglio/codecs/q4_1.hpp"
#include "intaglio/codecs/q4_k.hpp"
#include "intaglio/codecs/q5_0.hpp"
#include "intaglio/codecs/q5_1.hpp"
#include "intaglio/codecs/q5_k.hpp"
#include "intaglio/codecs/q6_k.hpp"
#include "intaglio/codecs/q8_0.hpp"

namespace intaglio::codecs {

/// All codecs of rows.h, in its order.
namespace listed {
template <class First, class... C>
std::tuple<C...> after_first(std::tuple<First, C...>*);  ///< all types but the first
#define INTAGLIO_NAMED(name, ...) , name
using all = decltype(after_first(static_cast<std::tuple<void * INTAGLIO_BLOCK_CODECS(INTAGLIO_NAMED)>*>(nullptr)));
#undef INTAGLIO_NAMED
}  // namespace listed
using all = listed::all;  ///< all codecs, as a tuple

static_assert(
    []<block_codec... C>(std::tuple<C...>*) {
      return ((C::elements % 32 == 0 && C::elements <= 256 && info(C::type).block_elements == C::elements &&
               info(C::type).block_bytes == C::bytes) &&
              ...);
    }(static_cast<all*>(nullptr)),
    "a codec's block: expected the sizes in core/dtype.hpp, in multiples of 32 up to 256 weights");

/// Calls `with.template operator()<C>()` for the codec C of this type. @return false where no codec has the type
template <class With>
constexpr bool with_codec(dtype type, With&& with) {
  return []<block_codec... C>(std::tuple<C...>*, dtype wanted, With& each) {
    return ((C::type == wanted && (each.template operator()<C>(), true)) || ...);
  }(static_cast<all*>(nullptr), type, with);
}

/// True for a type that decode_blocks reads.
constexpr bool is_listed(dtype type) {
  return with_codec(type, []<class C>() {});
}

/// Decodes whole blocks. @return false where no codec has the type
inline bool decode_blocks(dtype type, const std::uint8_t* from, std::size_t blocks, float* out) {
  return with_codec(type, [&]<class C>() {
    for (std::size_t b = 0; b < blocks; ++b) C::decode(from + b * C::bytes, out + b * C::elements);
  });
}

/// True for a type that encode_blocks writes.
constexpr bool is_encoded(dtype type) {
  bool out = false;
  with_codec(type, [&]<class C>() { out = requires(const float* x, std::uint8_t* block) { C::encode(x, block); }; });
  return out;
}

/// Encodes whole blocks of finite numbers. @return false where no codec writes the type
inline bool encode_blocks(dtype type, const float* x, std::size_t blocks, std::uint8_t* to) {
  bool out = false;
  with_codec(type, [&]<class C>() {
    if constexpr (requires { C::encode(x, to); }) {
      for (std::size_t b = 0; b < blocks; ++b) C::encode(x + b * C::elements, to + b * C::bytes);
      out = true;
    }
  });
  return out;
}

/// Whether every scale of a block is a number. @return true where no codec has the type
inline bool is_finite_block(dtype type, const std::uint8_t* block) {
  bool finite = true;
  with_codec(type, [&]<class C>() { finite = is_finite<C>(block); });
  return finite;
}

}  // namespace intaglio::codecs
