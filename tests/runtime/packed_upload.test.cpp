// SPDX-License-Identifier: MIT
#include "intaglio/runtime/packed_upload.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "gpu/checked_device.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/runtime/pack.hpp"
#include "intaglio/runtime/weights.hpp"
#include "runtime/tables.hpp"
#include "runtime/weight_bytes.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

constexpr std::uint64_t chunk = io::packed_layout::chunk_bytes;

/// Fable as a packed file.
struct packed_fable {
  temporary_folder folder;
  std::filesystem::path path = folder / "fable";
  packed_fable() {
    const std::array<const plan::table*, 1> tables{&fable_table()};
    pack(io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")), tables, path);
  }
};

}  // namespace

TEST_CASE("pieces of an upload cover all items once and part no chunk", "[packed]") {
  const std::vector<std::uint64_t> sizes{100, 3 * chunk + 7, 256, 1, chunk, chunk + 1, 10 * chunk, 5 * chunk - 1, 2};
  std::uint64_t all = 0;
  for (const std::uint64_t each : sizes) all += runtime::item_bytes(each);
  for (const std::uint64_t piece_bytes : {chunk, 2 * chunk, 3 * chunk + 1000, 64 * chunk}) {
    INFO(piece_bytes);
    const auto pieces = runtime::upload_pieces(sizes, piece_bytes);
    std::vector<std::uint64_t> done(sizes.size());
    std::uint64_t covered = 0;
    for (const runtime::upload_piece& piece : pieces) {
      CHECK(!piece.ranges.empty());
      std::uint64_t at = 0;
      for (const auto& range : piece.ranges) {
        CHECK(range.begin == done[range.item]);  // in order, without gaps
        CHECK((range.begin % chunk == 0 && (range.end % chunk == 0 || range.end == sizes[range.item])));
        CHECK(range.at == at);
        CHECK(range.stop - range.at ==
              (range.end == sizes[range.item] ? runtime::item_bytes(range.end) : range.end) - range.begin);
        done[range.item] = range.end;
        at = range.stop;
      }
      CHECK(at <= piece_bytes);
      covered += at;
    }
    CHECK(done == sizes);
    CHECK(covered == all);
    if (piece_bytes == 64 * chunk) CHECK(pieces.size() == 1);
  }
  CHECK(runtime::upload_pieces({}, chunk).empty());
}

TEST_CASE("an upload of any shape gives the same weights and reports its progress", "[packed]") {
  const checked_device on;
  const packed_fable made;
  const auto& table = fable_table();
  const auto from = io::checkpoint::open(made.path);
  const runtime::packed_weights image(*from.packed(), table);
  const auto split = runtime::split_weights(table);
  const auto expected = weight_bytes(
      on.device,
      runtime::load_weights(on.device, table, io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"))));
  for (const bool staged : {true, false})
    for (const unsigned threads : {1u, 3u})
      for (const runtime::upload_shape shape :
           {runtime::upload_shape{.piece_bytes = chunk, .slot_count = 1, .memory_bytes = 1},
            runtime::upload_shape{.piece_bytes = 3 * chunk, .slot_count = 5, .memory_bytes = 300'000},
            runtime::upload_shape{}}) {
        std::vector<runtime::load_progress> reports;
        auto items = runtime::load_packed(
            on.device, table, split, image,
            {.progress = [&](const auto& now) { reports.push_back(now); }, .threads = threads, .staged = staged},
            shape);
        const bool in_place = !staged && on.on_cpu();
        CHECK((items.buffers.size() == 1) == (in_place || shape.memory_bytes > 1'000'000));
        CHECK(weight_bytes(on.device, runtime::weights_of(table, split, std::move(items))) == expected);
        REQUIRE(reports.size() >= 2);
        CHECK(reports.front().bytes_done == 0);
        for (std::size_t i = 1; i < reports.size(); ++i) CHECK(reports[i].bytes_done > reports[i - 1].bytes_done);
        CHECK(
            (reports.back().bytes_done == reports.back().bytes_total && reports.back().bytes_total == expected.size()));
        CHECK((reports.back().tensors_done == reports.back().tensors_total &&
               reports.back().tensors_total == 1 + 8 * 11 + 1));
      }
}

TEST_CASE("a packed file that is cut or changed while it is uploaded is an error that names the offset", "[packed]") {
  const checked_device on;
  for (const bool staged : {true, false})
    for (const bool cut : {true, false}) {
      const packed_fable made;
      const auto from = io::checkpoint::open(made.path);
      const runtime::packed_weights image(*from.packed(), fable_table());
      const auto split = runtime::split_weights(fable_table());
      const std::uint64_t before = on.device.counters().allocated_bytes;
      const io::packed_weight& last = from.packed()->weights.back();
      const std::uint64_t offset = last.offset + (last.copies - 1) * last.step();
      const auto harm = [&](const runtime::load_progress& at) {
        if (at.bytes_done != 0) return;
        if (cut) std::filesystem::resize_file(made.path, offset + 1);
        else
          std::fstream(made.path, std::ios::in | std::ios::out | std::ios::binary)
              .seekp(static_cast<std::streamoff>(offset))
              .put('x')
              .put('y');
      };
      try {
        runtime::load_packed(on.device, fable_table(), split, image, {.progress = harm, .threads = 3, .staged = staged},
                             {.piece_bytes = 2 * chunk});
        FAIL("damaged weights were uploaded");
      } catch (const file_error& caught) {
        CHECK_THAT(caught.what(), ContainsSubstring(cut ? "the file was cut while it was being read" : "checksum of "));
        CHECK(caught.offset() >= offset - offset % 256);
      }
      CHECK(on.device.counters().allocated_bytes == before);
    }
}

TEST_CASE("what the callback throws ends an upload that several threads are at", "[packed]") {
  const checked_device on;
  const packed_fable made;
  const auto from = io::checkpoint::open(made.path);
  struct enough {};
  const std::uint64_t before = on.device.counters().allocated_bytes;
  for (const bool staged : {true, false}) {
    int calls = 0;
    CHECK_THROWS_AS(runtime::load_weights(on.device, fable_table(), from,
                                          {.progress =
                                               [&](const auto&) {
                                                 if (++calls == 2) throw enough{};
                                               },
                                           .threads = 4,
                                           .staged = staged,
                                           .storage = runtime::weight_storage::copied}),
                    enough);
    CHECK(on.device.counters().allocated_bytes == before);
  }
}
