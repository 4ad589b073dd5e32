// SPDX-License-Identifier: MIT
#include "intaglio/kernels/rope_table.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numbers>

using namespace intaglio;

namespace {
constexpr double turn = 2 * std::numbers::pi;

/// Radians a position, out of the table.
double frequency(std::uint64_t turns) { return std::ldexp(static_cast<double>(turns), -64) * turn; }

/// transformers' modeling_rope_utils.py in f64, by wavelengths.
double expected(std::uint32_t pair, std::uint32_t head_dim, double theta, const rope_scaling_config& s) {
  const double plain = 1 / std::pow(theta, 2.0 * pair / head_dim), factor = static_cast<double>(s.factor),
               old = s.original_max_position_embeddings;
  if (s.type == rope_type::plain) return plain;
  if (s.type == rope_type::linear) return plain / factor;
  const double low = static_cast<double>(s.low_freq_factor), high = static_cast<double>(s.high_freq_factor),
               wavelength = turn / plain;
  if (wavelength > old / low) return plain / factor;
  if (wavelength < old / high) return plain;
  const double smooth = (old / wavelength - low) / (high - low);
  return (1 - smooth) * plain / factor + smooth * plain;
}
}  // namespace

TEST_CASE("tables of every scaling are transformers' frequencies", "[kernels][rope_table]") {
  struct model {
    float theta;
    std::uint32_t head_dim;
    rope_scaling_config scaling;
  };
  for (const model& each : {model{10'000.f, 128, {}}, model{1e6f, 256, {rope_type::linear, 8.f}},
                            model{500'000.f, 128, {rope_type::llama3, 8.f, 1.f, 4.f, 8192}},
                            model{500'000.f, 64, {rope_type::llama3, 32.f, 1.f, 4.f, 8192}},
                            model{500'000.f, 32, {rope_type::llama3, 8.f, 1.f, 4.f, 64}}}) {
    const auto table = kernels::rope_table({each.theta, each.scaling}, each.head_dim, 0);
    REQUIRE(table.size() == each.head_dim / 2);
    for (std::uint32_t pair = 0; pair < table.size(); ++pair) {
      const double wanted = expected(pair, each.head_dim, static_cast<double>(each.theta), each.scaling);
      CHECK(std::abs(frequency(table[pair]) - wanted) < 1e-13 * wanted + 0x1p-60);  // a table counts in 2^-64 turns
      for (const std::uint32_t position : {1u, 4095u, 131'071u}) {
        const auto [sine, cosine] = kernels::rope_from_turns(position, table[pair]);
        CHECK(std::abs(static_cast<double>(sine) - std::sin(position * wanted)) < 1e-4);
        CHECK(std::abs(static_cast<double>(cosine) - std::cos(position * wanted)) < 1e-4);
      }
    }
  }
}

TEST_CASE("YaRN divides slow pairs, and grows into that from pair to pair", "[kernels][rope_table]") {
  // transformers' _compute_yarn_parameters in f64 (shared/conformance2/reference2.py): a Qwen2.5 by 4, a gpt-oss, and
  // that with the ramp between whole pairs.
  struct model {
    float theta;
    std::uint32_t head_dim;
    rope_scaling_config scaling;
    std::vector<std::pair<std::uint32_t, double>> frequencies;
  };
  const rope_scaling_config oss{rope_type::yarn, 32.f, 1.f, 32.f, 4096, 1.3465736f, false},
      whole{rope_type::yarn, 32.f, 1.f, 32.f, 4096, 1.3465736f, true};
  for (const model& each : {model{1e6f,
                                  128,
                                  {rope_type::yarn, 4.f, 1.f, 32.f, 32'768, 1.1386294f},
                                  {{0, 1.0},
                                   {20, 0.013335214321633239},
                                   {24, 0.005375321490790102},
                                   {30, 0.0010643609812470017},
                                   {40, 4.4456985250973074e-05},
                                   {63, 3.102344401879299e-07}}},
                            model{150'000.f,
                                  64,
                                  oss,
                                  {{8, 0.050813274815461475},
                                   {9, 0.03170569618466377},
                                   {12, 0.00679495948973222},
                                   {17, 0.0001293187012450632},
                                   {18, 3.8308812373753384e-05}}},
                            model{150'000.f,
                                  64,
                                  whole,
                                  {{8, 0.050813274815461475},
                                   {9, 0.031620752275346484},
                                   {12, 0.00701571391050439},
                                   {17, 0.00022794779579512524},
                                   {31, 3.0235114281192144e-07}}}}) {
    const auto table = kernels::rope_table({each.theta, each.scaling}, each.head_dim, 0);
    for (const auto& [pair, wanted] : each.frequencies) {
      INFO(each.head_dim << ' ' << pair);
      CHECK(std::abs(frequency(table[pair]) - wanted) < 1e-13 * wanted + 0x1p-60);
    }
  }
}

TEST_CASE("llama3 leaves fast pairs, divides slow ones, and blends between", "[kernels][rope_table]") {
  const rope_scaling_config scaling{rope_type::llama3, 8.f, 1.f, 4.f, 8192};
  const auto plain = kernels::rope_table({500'000.f}, 128, 0),
             scaled = kernels::rope_table({500'000.f, scaling}, 128, 0);
  std::size_t same = 0, divided = 0, between = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double share = static_cast<double>(scaled[i]) / static_cast<double>(plain[i]);
    if (scaled[i] == plain[i]) ++same;
    else if (std::abs(share - 0.125) < 1e-9) ++divided;
    else ++between;
    CHECK((share >= 0.125 - 1e-9 && share <= 1));
  }
  CHECK(same == 29);
  CHECK(between == 6);
  CHECK(divided == 29);
}

TEST_CASE("every fourth layer does not turn", "[kernels]") {
  const rope_parameters how{.theta = 5e6f, .no_rope_interval = 4};
  const auto plain = kernels::rope_table({.theta = 5e6f}, 64, 3);
  for (std::uint32_t layer = 0; layer < 9; ++layer) {
    const auto table = kernels::rope_table(how, 64, layer);
    CHECK(table == (layer % 4 == 3 ? std::vector<std::uint64_t>(32) : plain));
  }
  CHECK(kernels::rope_from_turns(123'456, 0).cosine == 1.f);
  CHECK(kernels::rope_from_turns(123'456, 0).sine == 0.f);
}

TEST_CASE("channels that do not turn have no turns, and longrope divides by its factors", "[kernels]") {
  longrope_factors factors;
  factors.short_factor.fill(1.f), factors.long_factor.fill(4.f);
  rope_parameters how{.theta = 1e4f, .scaling = {.type = rope_type::longrope}, .rotary_dim = 24};
  const auto plain = kernels::rope_table({.theta = 1e4f}, 24, 0), few = kernels::rope_table(how, 32, 0, factors);
  REQUIRE(few.size() == 16);
  for (std::size_t pair = 0; pair < 16; ++pair) CHECK(few[pair] == (pair < 12 ? plain[pair] : 0));
  how.long_context = true;
  const auto many = kernels::rope_table(how, 32, 0, factors);
  for (std::size_t pair = 0; pair < 16; ++pair) CHECK(many[pair] == few[pair] / 4);
}
