// SPDX-License-Identifier: MIT
// A screened head in a whole session: the text of the dense head, whatever the sampling, and weights that are made of
// the checkpoint's.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "gpu/checked_device.hpp"
#include "intaglio/kernels/row_codes.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"

using namespace intaglio;

namespace {
const io::checkpoint& fable_file() {
  static const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  return file;
}
}  // namespace

TEST_CASE("a screened head writes the dense head's text", "[runtime][head]") {
  const checked_device on;
  const std::array<const plan::table*, 2> dense_tables{&fable_table(), &fable_portable_table()},
      screened_tables{&fable_screened_table(), &fable_screened_table()};
  basic_session dense(on.device, dense_tables, fable_file(), {.cache_folder = ""}),
      screened(on.device, screened_tables, fable_file(), {.cache_folder = ""});
  const auto ids = dense.encode("Once upon a time, there was a little fox who lived in a big, dark forest with his");
  for (const generate_options& options :
       {generate_options{.max_tokens = 60},
        generate_options{.temperature = 0.7f, .min_p = 0.05f, .seed = 3, .max_tokens = 60},
        generate_options{.temperature = 0.3f, .top_k = 30, .seed = 4, .max_tokens = 30},
        generate_options{.temperature = 1.5f, .top_p = 0.95f, .seed = 5, .max_tokens = 20},
        generate_options{.repeat_penalty = 1.2f, .max_tokens = 20},
        generate_options{
            .temperature = 1.1f, .top_k = 12, .top_p = 0.9f, .repeat_penalty = 1.1f, .seed = 6, .max_tokens = 40}}) {
    INFO("temperature " << options.temperature << ", min_p " << options.min_p << ", top_p " << options.top_p
                        << ", penalty " << options.repeat_penalty);
    dense.reset();
    screened.reset();
    const auto expected = dense.generate(ids, options);
    CHECK(expected.ids.size() > 5);
    CHECK(screened.generate(ids, options).ids == expected.ids);
  }
}

TEST_CASE("row codes of a checkpoint are those of its rows", "[runtime][head]") {
  const plan::table& table = fable_screened_table();
  const auto& from = fable_file();
  runtime::weight_image image(from, table);
  image.measure(2, [](std::uint64_t) {});
  std::size_t found = 0;
  for (std::uint32_t slot = 0; slot < table.weights.size(); ++slot) {
    const plan::weight& w = table.weights[slot];
    if (w.layout != plan::weight_layout::row_codes && w.layout != plan::weight_layout::row_scales) continue;
    ++found;
    const std::size_t row_bytes = w.layout == plan::weight_layout::row_scales ? 4 : w.columns;
    REQUIRE(w.bytes == row_bytes * w.rows);
    std::vector<std::byte> whole(w.bytes), parts(w.bytes);
    image.fill(slot, 0, 0, whole);
    for (std::size_t begin = 0; begin < parts.size(); begin += 1001)
      image.fill(slot, 0, begin, std::span(parts).subspan(begin, std::min<std::size_t>(1001, parts.size() - begin)));
    CHECK(whole == parts);
    std::vector<float> row(w.columns);
    std::vector<std::int8_t> codes(w.columns);
    for (const std::uint32_t r : {0u, 17u, w.rows - 1}) {
      from.read_f32(from.at("token_embd.weight"), r, 1, row);
      const float scale = kernels::row_codes(row, codes);
      const void* const expected = row_bytes == 4 ? static_cast<const void*>(&scale) : codes.data();
      CHECK(std::memcmp(whole.data() + r * row_bytes, expected, row_bytes) == 0);
    }
  }
  CHECK(found == 2);
}
