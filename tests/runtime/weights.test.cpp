// SPDX-License-Identifier: MIT
#include "intaglio/runtime/weights.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

std::uint64_t item_bytes(const plan::table& of, std::uint32_t slot) { return of.weights[slot].bytes; }

/// All weights of a plan as they are in device memory, one after another.
std::vector<std::byte> whole_image(const plan::table& of, const io::checkpoint& from) {
  runtime::weight_image image(from, of);
  image.measure(2, [](std::uint64_t) {});
  std::vector<std::byte> out;
  for (std::uint32_t slot = 0; slot < of.weights.size(); ++slot)
    for (std::uint32_t layer = 0; layer < (of.weights[slot].per_layer ? of.config->num_hidden_layers : 1); ++layer) {
      const std::size_t at = out.size();
      out.resize(at + item_bytes(of, slot));
      image.fill(slot, layer, 0, std::span(out).subspan(at));
    }
  return out;
}

std::vector<std::byte> downloaded(const gpu::device& on, const plan::table& of, const runtime::weight_memory& weights) {
  gpu::transfer transfer(on);
  std::vector<std::byte> out;
  for (std::uint32_t slot = 0; slot < of.weights.size(); ++slot)
    for (std::uint32_t layer = 0; layer < (of.weights[slot].per_layer ? of.config->num_hidden_layers : 1); ++layer) {
      const auto& item = weights.placed.items[weights.first[slot] + layer];
      CHECK(item.bytes == item_bytes(of, slot));
      CHECK(item.address == weights.address(of, slot, layer));
      CHECK(item.address % runtime::item_alignment == 0);
      const std::size_t at = out.size();
      out.resize(at + item.bytes);
      transfer.download(weights.placed.buffers[item.buffer], item.offset, std::span(out).subspan(at));
    }
  return out;
}

}  // namespace

TEST_CASE("repacked weights say what the checkpoint says") {
  const plan::table& table = fable_table();
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  runtime::weight_image image(from, table);
  image.measure(2, [](std::uint64_t) {});
  std::size_t ternary = 0, scales = 0;
  for (std::uint32_t slot = 0; slot < table.weights.size(); ++slot) {
    const plan::weight& w = table.weights[slot];
    const std::uint32_t layer = w.per_layer ? 3 : 0;
    std::vector<std::byte> bytes(w.bytes);
    image.fill(slot, layer, 0, bytes);
    const auto source = [&](std::size_t s) -> const io::checkpoint_tensor& {
      return from.at((w.per_layer ? "blk." + std::to_string(layer) + "." : "") + std::string(w.sources[s].view()));
    };
    INFO(w.sources[0].view() << " slot " << slot);
    if (w.layout == plan::weight_layout::ternary_scales) {
      ++scales;
      for (std::size_t s = 0; s < w.source_count; ++s) {
        float scale = 0;
        std::memcpy(&scale, bytes.data() + 4 * s, 4);
        CHECK(scale == from.ternary(source(s)).scale());
      }
    } else if (w.layout == plan::weight_layout::ternary_tiles) {
      ++ternary;
      std::vector<std::uint32_t> words(bytes.size() / 4);
      std::memcpy(words.data(), bytes.data(), bytes.size());
      std::vector<std::vector<std::int8_t>> codes;
      for (std::size_t s = 0; s < w.source_count; ++s) {
        codes.emplace_back(std::size_t{w.source_rows[s]} * w.columns);
        from.ternary(source(s)).rows(0, w.source_rows[s], codes.back());
      }
      const auto order = w.order == plan::row_order::rope_pairs
                             ? kernels::row_order::rope_pairs(w.head_dim, w.source_rows[0], w.source_rows[1])
                         : w.order == plan::row_order::gate_up ? kernels::row_order::gate_up(w.source_rows[0])
                                                               : kernels::row_order::plain(w.source_rows[0]);
      std::size_t wrong = 0;
      for (std::uint32_t position = 0; position < w.rows; ++position) {
        const auto row = order(position);
        for (std::uint32_t column = 0; column < w.columns; ++column)
          wrong += static_cast<int>(kernels::tile_code(words, position, column, w.columns)) - 1 !=
                   codes[row.tensor][std::size_t{row.row} * w.columns + column];
      }
      CHECK(wrong == 0);
    } else {
      std::vector<float> values(std::size_t{w.rows} * w.columns);
      from.read_f32(source(0), 0, w.rows, values);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint16_t half = 0;
        float whole = 0;
        if (bytes.size() == values.size() * 4) std::memcpy(&whole, bytes.data() + 4 * i, 4);
        else std::memcpy(&half, bytes.data() + 2 * i, 2), whole = f32_from_f16(half);
        wrong += whole != values[i];
      }
      CHECK(wrong == 0);
    }
  }
  CHECK(ternary == 4);
  CHECK(scales == 4);
}

TEST_CASE("any range of a weight is the same range of the whole") {
  const plan::table& table = fable_table();
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-tq2_0.gguf"));
  runtime::weight_image image(from, table);
  image.measure(1, [](std::uint64_t) {});
  std::mt19937 random(3);
  for (std::uint32_t slot = 0; slot < table.weights.size(); ++slot) {
    std::vector<std::byte> whole(table.weights[slot].bytes);
    image.fill(slot, 1, 0, whole);
    for (int round = 0; round < 20; ++round) {
      const std::size_t begin = random() % whole.size(), size = 1 + random() % (whole.size() - begin);
      std::vector<std::byte> part(size);
      image.fill(slot, 1, begin, part);
      CHECK(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
    }
  }
}

TEST_CASE("every form of one model gives the same bytes") {
  const auto reference = whole_image(fable_table(), io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")));
  for (const char* form : {"models/fable-bitnet-tq2_0.gguf", "models/fable-bitnet", "models/fable-bitnet-packed"}) {
    INFO(form);
    CHECK(whole_image(fable_table(), io::checkpoint::open(shared(form))) == reference);
  }
  const auto folder = conformance("bitnet-tiny");
  // Two scales of the I2_S file and of hf-bitlinear are f32 numbers one step below the bf16 number of the others.
  const std::vector<std::vector<std::string>> groups{
      {"gguf/bitnet-tiny-b158-i2_s.gguf", "hf-bitlinear"},
      {"hf-packed", "hf-bf16", "gguf/bitnet-tiny-b158-f16.gguf", "gguf/bitnet-tiny-b158-tq1_0.gguf",
       "gguf/bitnet-tiny-b158-tq2_0.gguf"}};
  for (const auto& group : groups) {
    const auto tiny = whole_image(bitnet_tiny_table(), io::checkpoint::open(folder / group[0]));
    for (const auto& form : group) {
      INFO(form);
      CHECK(whole_image(bitnet_tiny_table(), io::checkpoint::open(folder / form)) == tiny);
    }
  }
}

TEST_CASE("loaded weights are the image, however memory is split") {
  checked_device on;
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const auto image = whole_image(fable_table(), from);
  for (const std::uint64_t piece : {std::uint64_t{0}, std::uint64_t{1} << 20, std::uint64_t{1000}}) {
    for (const bool staged : {false, true}) {
      std::vector<runtime::load_progress> reports;
      const auto weights = runtime::load_weights(
          on.device, fable_table(), from,
          {.progress = [&](const auto& now) { reports.push_back(now); }, .largest_piece = piece, .staged = staged});
      CHECK(downloaded(on.device, fable_table(), weights) == image);
      CHECK((piece == 0) == (weights.placed.buffers.size() == 1));
      REQUIRE(reports.size() >= 2);
      CHECK(reports.front().bytes_done == 0);
      CHECK(reports.back().bytes_done == reports.back().bytes_total);
      CHECK(reports.back().tensors_done == reports.back().tensors_total);
      CHECK(reports.back().tensors_total == 1 + 8 * 11 + 1);
      for (std::size_t i = 1; i < reports.size(); ++i) CHECK(reports[i].bytes_done >= reports[i - 1].bytes_done);
    }
  }
}

TEST_CASE("a model that was not engraved is refused with the list of differences") {
  checked_device on;
  try {
    runtime::load_weights(on.device, fable_table(),
                          io::checkpoint::open(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf")));
    FAIL("another model was loaded");
  } catch (const mismatch_error& caught) {
    CHECK(caught.differences().size() >= 4);
    const std::string text = caught.what();
    CHECK(std::ranges::count(caught.differences(), "num_hidden_layers: engraved 8, file 3") == 1);
    CHECK(text.find("intaglio engrave ") != std::string::npos);
    CHECK(text.find("bitnet-tiny-b158-i2_s.gguf -o DIR") != std::string::npos);
  }
}

TEST_CASE("what the callback throws ends the load and leaves nothing behind") {
  checked_device on;
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::uint64_t before = on.device.counters().allocated_bytes;
  struct enough {};
  int calls = 0;
  CHECK_THROWS_AS(runtime::load_weights(on.device, fable_table(), from,
                                        {.progress =
                                             [&](const auto&) {
                                               if (++calls == 2) throw enough{};
                                             }}),
                  enough);
  CHECK(on.device.counters().allocated_bytes == before);
}

TEST_CASE("a file that is cut or changed while it is loaded is an error") {
  checked_device on;
  const temporary_folder folder;
  const std::filesystem::path copy = folder / "model.gguf";
  for (const bool cut : {true, false}) {
    std::filesystem::copy_file(shared("models/fable-bitnet-i2_s.gguf"), copy,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
    const auto from = io::checkpoint::open(copy);
    bool done = false;
    CHECK_THROWS_AS(runtime::load_weights(on.device, fable_table(), from,
                                          {.progress =
                                               [&](const auto&) {
                                                 if (done) return;
                                                 done = true;
                                                 if (cut) std::filesystem::resize_file(copy, 1'000'000);
                                                 else std::ofstream(copy, std::ios::app) << "more";
                                               }}),
                    file_error);
  }
}

TEST_CASE("a model that does not fit is refused before anything is allocated") {
  const plan::table& table = fable_table();
  const auto need = runtime::needed_memory(table);
  CHECK_NOTHROW(runtime::require_memory(table, need.total(), "device"));
  try {
    runtime::require_memory(table, need.total() - need.caches / 2, "device");
    FAIL("a model larger than the device was accepted");
  } catch (const out_of_memory& caught) {
    const std::string text = caught.what();
    CHECK(text.find("need ") != std::string::npos);
    CHECK(text.find("the largest context that fits is 256") != std::string::npos);
  }
  CHECK_THROWS_AS(runtime::require_memory(table, 1000, "device"), out_of_memory);
}
