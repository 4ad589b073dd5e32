// SPDX-License-Identifier: MIT
// Each codec's values against those of ggml, bit for bit: 64 blocks of ../shared/conformance2/codecs each.
#include "intaglio/codecs/decode.hpp"

#include <array>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "codecs/vectors.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

template <class C>
void compare() {
  const std::string file = upper(name(C::type)), blocks = npy_data(file + ".blocks.npy"),
                    values = npy_data(file + ".values.npy");
  INFO(file);
  REQUIRE(blocks.size() == 64 * C::bytes);
  REQUIRE(values.size() == 64 * C::elements * sizeof(float));
  std::vector<float> got(64 * C::elements);
  REQUIRE(codecs::decode_blocks(C::type, reinterpret_cast<const std::uint8_t*>(blocks.data()), 64, got.data()));
  std::size_t differing = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::uint32_t wanted = 0;
    std::memcpy(&wanted, values.data() + 4 * i, 4);
    if (std::bit_cast<std::uint32_t>(got[i]) != wanted && ++differing == 1)
      FAIL_CHECK("value " << i << ": expected " << std::bit_cast<float>(wanted) << ", found " << got[i]);
  }
  CHECK(differing == 0);
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
