// SPDX-License-Identifier: MIT
#include "intaglio/runtime/packed_weights.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <fstream>
#include <random>

#include "gpu/checked_device.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/pack.hpp"
#include "intaglio/runtime/weights.hpp"
#include "runtime/tables.hpp"
#include "runtime/weight_bytes.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

/// Checksum of a weight's bytes as an image gives them.
template <class Image>
std::uint64_t sum_of(const Image& image, const plan::table& of, std::uint32_t slot, std::uint32_t layer) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(of.weights[slot].bytes));
  image.fill(slot, layer, 0, bytes);
  return io::checksum(bytes);
}

}  // namespace

TEST_CASE("packed weights are those that the model's own file gives, for every plan that it was packed for",
          "[packed]") {
  const temporary_folder folder;
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array<const plan::table*, 3> tables{&fable_table(), &fable_portable_table(), &fable_screened_table()};
  std::uint64_t last = 0, calls = 0;
  const auto bytes =
      pack(from, tables, folder / "fable", {.threads = 2, .progress = [&](std::uint64_t done, std::uint64_t total) {
                                              CHECK((done >= last && done <= total));
                                              last = done, ++calls;
                                            }});
  CHECK(bytes == std::filesystem::file_size(folder / "fable"));
  CHECK(calls > 10);
  const auto packed = io::checkpoint::open(folder / "fable");
  CHECK(packed.config() == from.config());
  CHECK(packed.vocabulary()->tokens == from.vocabulary()->tokens);
  CHECK(packed.vocabulary()->chat_template == from.vocabulary()->chat_template);
  REQUIRE(packed.packed() != nullptr);
  CHECK(packed.packed()->codec == "i2_s");
  // What the plans have in common is there once: the two without a screened head want the same.
  CHECK(packed.packed()->weights.size() == fable_screened_table().weights.size());
  for (const plan::table* table : tables) {
    INFO(table->profile);
    CHECK(runtime::holds_weights(*packed.packed(), *table));
    runtime::weight_image image(from, *table);
    image.measure(2, [](std::uint64_t) {});
    const runtime::packed_weights copy(*packed.packed(), *table);
    std::size_t wrong = 0;
    for (std::uint32_t slot = 0; slot < table->weights.size(); ++slot)
      for (std::uint32_t layer = 0; layer < (table->weights[slot].per_layer ? table->config->num_hidden_layers : 1);
           ++layer)
        wrong += sum_of(image, *table, slot, layer) != sum_of(copy, *table, slot, layer);
    CHECK(wrong == 0);
  }
  CHECK_THROWS_AS(pack(packed, tables, folder / "again"), argument_error);
}

TEST_CASE("a packed model loads as its own file does, and damage is found on the way", "[packed]") {
  checked_device on;
  const temporary_folder folder;
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array<const plan::table*, 1> tables{&fable_table()};
  pack(from, tables, folder / "fable");
  const auto packed = io::checkpoint::open(folder / "fable");
  const auto content = [&](const runtime::weight_memory& of) { return weight_bytes(on.device, of); };
  const auto expected = content(runtime::load_weights(on.device, fable_table(), from));
  for (const bool staged : {false, true}) {
    const auto copied = runtime::load_weights(on.device, fable_table(), packed,
                                              {.staged = staged, .storage = runtime::weight_storage::copied});
    CHECK(copied.mapping == nullptr);
    CHECK(content(copied) == expected);
  }
  CHECK(content(runtime::load_weights(on.device, fable_table(), packed,
                                      {.largest_piece = 1000, .storage = runtime::weight_storage::copied})) ==
        expected);

  const io::packed_weight& weight = packed.packed()->weights[3];
  std::fstream(folder / "fable", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(weight.offset + weight.bytes / 2))
      .put('x')
      .put('y');
  const std::uint64_t before = on.device.counters().allocated_bytes;
  for (const auto storage : {runtime::weight_storage::copied, runtime::weight_storage::automatic}) {
    try {
      runtime::load_weights(on.device, fable_table(), io::checkpoint::open(folder / "fable"), {.storage = storage});
      FAIL("damaged weights were loaded");
    } catch (const file_error& caught) {
      CHECK_THAT(caught.what(), ContainsSubstring("checksum of ") && ContainsSubstring(weight.layout.substr(0, 20)));
    }
    CHECK(on.device.counters().allocated_bytes == before);
  }
}

TEST_CASE("a packed file of another plan, model or version of the layouts is refused", "[packed]") {
  const temporary_folder folder;
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array<const plan::table*, 1> tables{&fable_table()};
  pack(from, tables, folder / "fable");
  const auto packed = io::checkpoint::open(folder / "fable");
  CHECK_FALSE(runtime::holds_weights(*packed.packed(), fable_screened_table()));
  try {
    runtime::packed_weights(*packed.packed(), fable_screened_table());
    FAIL("weights were found that are not there");
  } catch (const file_error& caught) {
    CHECK(caught.offset() == packed.packed()->index_offset);
    CHECK_THAT(caught.what(), ContainsSubstring("a weight for the plan 'screened'") && ContainsSubstring("row_codes") &&
                                  ContainsSubstring("found 'token_embd.weight"));
  }
  io::packed_image other = *packed.packed();
  other.layout_version += 1;
  CHECK_FALSE(runtime::holds_weights(other, fable_table()));
  CHECK_THROWS_AS(runtime::packed_weights(other, fable_table()), file_error);
  CHECK_THROWS_AS(runtime::require_match(packed, bitnet_tiny_table()), mismatch_error);
}

TEST_CASE("the version of the layouts stands for the bytes of each", "[packed]") {
  // Where one of these changes, plan::weight_layout_version must rise: files packed before would be taken for what they
  // are not.
  REQUIRE(plan::weight_layout_version == 2);
  io::running_checksum all;
  const auto add = [&](const plan::table& table, const io::checkpoint& from) {
    runtime::weight_image image(from, table);
    image.measure(1, [](std::uint64_t) {});
    for (std::uint32_t slot = 0; slot < table.weights.size(); ++slot) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(table.weights[slot].bytes));
      image.fill(slot, 0, 0, bytes);
      all.add(bytes);
    }
    return all.take();
  };
  const auto fable = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  CHECK(add(fable_screened_table(), fable) == 0x7f426b8f5aca1ad9ull);
  // Groups of rows of each codec: words that differ everywhere, which no file need hold.
  std::vector<std::uint64_t> sums;
  for (const auto type : {kernels::codec::f16, kernels::codec::q8_0, kernels::codec::q4_0, kernels::codec::q4_1,
                          kernels::codec::q4_k, kernels::codec::q6_k}) {
    constexpr std::uint32_t columns = 512, rows = 8;
    std::mt19937 random(static_cast<unsigned>(type));
    std::vector<std::byte> file(rows * kernels::file_row_bytes(type, columns)),
        packed(kernels::matmul_weight_bytes(type, rows, columns));
    for (auto& each : file) each = static_cast<std::byte>(random());
    const std::array<std::span<const std::byte>, 1> source{file};
    kernels::repack_matmul(type, kernels::row_order::plain(rows), source, columns, 0, packed);
    sums.push_back(io::checksum(packed));
  }
  CHECK(sums == std::vector<std::uint64_t>{0xebe033b574863795ull, 0xaaf2795fc66feefcull, 0xc9663cdd8bea9d52ull,
                                           0x66ecd73dffdc3b3cull, 0x855067b6034e65e6ull, 0xff81f17370379462ull});
}
