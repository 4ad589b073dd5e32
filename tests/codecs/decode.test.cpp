// SPDX-License-Identifier: MIT
// Each codec's values against those of ggml, bit for bit: 64 blocks each (tests/codecs/vectors.hpp).
#include "intaglio/codecs/decode.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <tuple>
#include <vector>

#include "codecs/vectors.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

template <class C>
void compare() {
  const codec_vectors vectors(name(C::type));
  REQUIRE(vectors.blocks.size() == vector_blocks * C::bytes);
  std::vector<float> got(vector_blocks * C::elements);
  REQUIRE(codecs::decode_blocks(C::type, reinterpret_cast<const std::uint8_t*>(vectors.blocks.data()), vector_blocks,
                                got.data()));
  vectors.compare(got);
}

static_assert(codecs::is_listed(dtype::q5_0) && codecs::is_listed(dtype::mxfp4) && !codecs::is_listed(dtype::f32));

}  // namespace

TEST_CASE("codecs: decoding is ggml's, bit for bit", "[codecs]") {
  need_shared();
  [&]<class... C>(std::tuple<C...>*) { (compare<C>(), ...); }(static_cast<codecs::all*>(nullptr));
}

TEST_CASE("codecs: an exponent of MXFP4 that is NaN gives no numbers", "[codecs]") {
  std::array<std::uint8_t, codecs::mxfp4::bytes> block{255, 0x11};
  std::array<float, codecs::mxfp4::elements> out{};
  codecs::mxfp4::decode(block.data(), out.data());
  for (const float value : out) CHECK(std::isnan(value));
}
