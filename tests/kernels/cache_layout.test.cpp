// SPDX-License-Identifier: MIT
#include "intaglio/kernels/cache_layout.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace intaglio::kernels;

TEST_CASE("every key and every value has an element of its own, and all elements but those past the context are taken",
          "[law]") {
  constexpr std::uint32_t heads = 3, head_dim = 24;
  for (const std::uint32_t context : {1u, 8u, 13u, 64u}) {
    INFO("context " << context);
    std::vector<int> keys(key_cache_elements(heads, head_dim, context)),
        values(value_cache_elements(heads, head_dim, context));
    for (std::uint32_t head = 0; head < heads; ++head)
      for (std::uint32_t position = 0; position < context; ++position)
        for (std::uint32_t channel = 0; channel < head_dim; ++channel) {
          ++keys.at(key_cache_index(head, position, channel, head_dim, context));
          ++values.at(value_cache_index(head, position, channel, head_dim, context));
        }
    std::size_t taken = 0;
    for (const int each : keys) {
      CHECK(each <= 1);
      taken += static_cast<std::size_t>(each);
    }
    CHECK(taken == std::size_t{heads} * head_dim * context);
    CHECK(values == std::vector<int>(values.size(), 1));
  }
}

TEST_CASE(
    "eight channels of a key are neighbours, and after them those of the next position; a value's channels are all "
    "neighbours") {
  constexpr std::uint32_t head_dim = 64, context = 40;
  for (const std::uint32_t position : {0u, 6u, 17u})
    for (const std::uint32_t channel : {0u, 8u, 56u}) {
      const std::uint64_t at = key_cache_index(1, position, channel, head_dim, context);
      for (std::uint32_t c = 1; c < 8; ++c)
        CHECK(key_cache_index(1, position, channel + c, head_dim, context) == at + c);
      if (position % 8 != 7) CHECK(key_cache_index(1, position + 1, channel, head_dim, context) == at + 8);
      CHECK(value_cache_index(1, position, channel, head_dim, context) ==
            value_cache_index(1, position, 0, head_dim, context) + channel);
    }
  CHECK(key_cache_index(0, 8, 0, head_dim, context) == 8 * head_dim);
}

TEST_CASE("sizes hold where an index of 32 bits would not") {
  CHECK(key_cache_elements(64, 256, 1u << 20) == std::uint64_t{1} << 34);
  CHECK(key_cache_index(63, (1u << 20) - 1, 255, 256, 1u << 20) == (std::uint64_t{1} << 34) - 1);
  CHECK(value_cache_index(63, (1u << 20) - 1, 255, 256, 1u << 20) == (std::uint64_t{1} << 34) - 1);
}

TEST_CASE(
    "a ring holds its window for every token of a pass, in whole spans; spans of a window hold it wherever it begins",
    "[law]") {
  CHECK(attention_spans(1) == 1);
  CHECK(attention_spans(256) == 1);
  CHECK(attention_spans(257) == 2);
  for (const std::uint32_t window : {1u, 255u, 256u, 257u, 512u, 4096u})
    for (const std::uint32_t tokens : {1u, 8u, 512u}) {
      const std::uint32_t slot_count = ring_slots(window, tokens);
      INFO("window " << window << ", " << tokens << " tokens");
      CHECK(slot_count % attention_span == 0);
      CHECK(slot_count >= window + tokens - 1);
      CHECK(slot_count < window + tokens - 1 + attention_span);
      std::uint32_t most = 0;
      for (std::uint32_t last = window - 1; last < window + attention_span; ++last)
        most = std::max(most, last / attention_span - (last + 1 - window) / attention_span + 1);
      CHECK(attention_window_spans(window) == most);
    }
}

TEST_CASE("cache_layout: codes and factors of a coded cache have bytes of their own, in whole octets") {
  for (const element type : {element::q8_0, element::q4_0})
    for (const auto& [heads, head_dim, context] : {std::array{2u, 64u, 11u}, {1u, 96u, 8u}, {3u, 8u, 1u}}) {
      const std::uint32_t bits = cache_codec_of(type).bits;
      for (const bool is_value : {false, true}) {
        std::vector<int> used(key_cache_bytes(type, heads, head_dim, context));
        CHECK(used.size() == value_cache_bytes(type, heads, head_dim, context));
        CHECK(used.size() % 16 == 0);
        for (std::uint32_t head = 0; head < heads; ++head)
          for (std::uint32_t at = 0; at < context; ++at)
            for (std::uint32_t chunk = 0; chunk < head_dim / 8; ++chunk) {
              const coded_offsets offsets = cache_offsets(type, is_value, head, at, chunk, head_dim, context);
              for (std::uint64_t i = 0; i < bits; ++i) ++used.at(offsets.codes + i);
              if (chunk % 4 == 0) ++used.at(offsets.factor), ++used.at(offsets.factor + 1);
            }
        CHECK(*std::max_element(used.begin(), used.end()) == 1);
        CHECK(static_cast<std::size_t>(std::count(used.begin(), used.end(), 1)) ==
              std::size_t{heads} * context * (head_dim * bits / 8 + 2 * cache_blocks(head_dim)));
      }
    }
  CHECK(key_cache_bytes(element::q8_0, 8, 128, 131072) * 16 == key_cache_bytes(element::f16, 8, 128, 131072) / 2 * 17);
  CHECK(key_cache_bytes(element::q4_0, 8, 128, 131072) * 16 == key_cache_bytes(element::f16, 8, 128, 131072) / 4 * 18);
}
