// SPDX-License-Identifier: MIT
#include "intaglio/runtime/mapped_weights.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/pack.hpp"
#include "intaglio/runtime/weights.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "runtime/weight_bytes.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace intaglio;

namespace {

/// fable as a packed file for the CPU's plan, dense and walked.
std::filesystem::path packed_fable(const temporary_folder& folder) {
  const std::array<const plan::table*, 2> tables{&fable_table(), &fable_walk_table()};
  pack(io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")), tables, folder / "fable");
  return folder / "fable";
}

runtime::executor chain_of(const gpu::device& on, runtime::weight_memory weights,
                           const plan::table& table = fable_table()) {
  return runtime::executor(on, table, std::move(weights), chain_class(on), nullptr);
}
/// Tokens that greedy decoding draws after token 1.
std::vector<std::uint32_t> drawn(runtime::executor& run, std::uint32_t count) {
  const std::array<std::uint32_t, 1> first{1};
  run.begin(runtime::pass_kind::decode, 0, first, {}, count);
  while (run.pending()) {
    if (!run.may_submit()) run.wait();
    run.submit(HUGE_VAL, 1);
  }
  run.drain();
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < run.completed(); ++i) out.push_back(run.drawn(i));
  return out;
}

/// Drivers may offer to read the host's memory and yet refuse pages of a file, as NVIDIA's do; llvmpipe's does not.
void skip_unless_read_in_place(const gpu::device& on, const std::filesystem::path& path) {
  if (!on.has(gpu::feature::external_memory_host)) SKIP("the device has no VK_EXT_external_memory_host");
  if (on.description().driver_name != "llvmpipe" &&
      runtime::load_weights(on, fable_table(), io::checkpoint::open(path)).mapping == nullptr)
    SKIP("NOT RUN: needs a driver that reads pages of a file, found " << on.label());
}

}  // namespace

TEST_CASE("weights read in place are those that are copied, take no device memory and outlive the checkpoint",
          "[packed]") {
  const temporary_folder folder;
  checked_device on;
  const auto path = packed_fable(folder);
  skip_unless_read_in_place(on.device, path);
  std::vector<std::byte> expected;
  std::vector<std::uint32_t> text;
  {
    auto copied = runtime::load_weights(on.device, fable_table(), io::checkpoint::open(path),
                                        {.storage = runtime::weight_storage::copied});
    expected = weight_bytes(on.device, copied);
    auto run = chain_of(on.device, std::move(copied));
    text = drawn(run, 6);
  }
  const std::uint64_t before = on.device.counters().allocated_bytes;
  for (const std::uint64_t largest : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    runtime::load_progress last;
    auto weights = runtime::load_weights(on.device, fable_table(), io::checkpoint::open(path),
                                         {.progress = [&](const auto& at) { last = at; }, .largest_piece = largest});
    REQUIRE(weights.mapping != nullptr);
    CHECK(last.bytes_done == last.bytes_total);
    CHECK(last.bytes_total == expected.size());
    CHECK(last.tensors_done == last.tensors_total);
    CHECK((largest == 0 ? weights.placed.buffers.size() < 4 : weights.placed.buffers.size() > 2));
    CHECK(weights.placed.items.size() == runtime::allocate_weights(on.device, fable_table()).placed.items.size());
    CHECK(on.device.counters().allocated_bytes == before);
    for (const auto& each : weights.placed.items) CHECK(each.address % runtime::item_alignment == 0);
    CHECK(weight_bytes(on.device, weights) == expected);
    if (largest != 0) continue;
    std::filesystem::remove(path);  // the open file lives on
    auto run = chain_of(on.device, std::move(weights));
    CHECK(drawn(run, 6) == text);
    packed_fable(folder);
  }
}

TEST_CASE("the FFNs' weights alone may be mapped: the device's memory holds the others, and the tokens are the same",
          "[packed]") {
  const temporary_folder folder;
  checked_device on;
  const auto path = packed_fable(folder);
  skip_unless_read_in_place(on.device, path);
  const auto from = io::checkpoint::open(path);
  const plan::table& table = fable_table();
  std::uint64_t of_features = 0, all = 0;
  for (const plan::weight& each : table.weights) {
    const std::uint64_t bytes = each.bytes * (each.per_layer ? table.config->num_hidden_layers : 1);
    all += bytes, of_features += runtime::is_of_features(each) ? bytes : 0;
  }
  // Gate, up and down of 256 by 1,024 in 8 layers, two bits each.
  CHECK(of_features == 3 * 256 * 1024 / 4 * 8);
  const auto copied = runtime::load_weights(on.device, table, from, {.storage = runtime::weight_storage::copied});
  const auto expected = weight_bytes(on.device, copied);
  const std::uint64_t before = on.device.counters().allocated_bytes;
  runtime::load_progress last;
  auto weights = runtime::load_weights(
      on.device, table, from,
      {.progress = [&](const auto& at) { last = at; }, .storage = runtime::weight_storage::features_mapped});
  CHECK((last.bytes_done == last.bytes_total && last.tensors_done == last.tensors_total));
  const std::uint64_t taken = on.device.counters().allocated_bytes - before;
  CHECK((taken >= all - of_features && taken < all - of_features + 100'000));
  CHECK(weights.mapped_bytes == of_features);
  CHECK(weight_bytes(on.device, weights) == expected);
  auto run = chain_of(on.device, std::move(weights));
  CHECK(run.prove().kernel.empty());
  auto dense =
      chain_of(on.device, runtime::load_weights(on.device, table, from, {.storage = runtime::weight_storage::copied}));
  const auto text = drawn(dense, 6);
  CHECK(drawn(run, 6) == text);
  // Decode that walks reads of the mapping what fires, and holds no features in memory of the device either.
  auto features =
      runtime::load_weights(on.device, fable_walk_table(), from, {.storage = runtime::weight_storage::features_mapped});
  CHECK(features.mapped_bytes > of_features);  // by rows for passes of several tokens, and by features
  auto walk = chain_of(on.device, std::move(features), fable_walk_table());
  CHECK(drawn(walk, 6) == text);
}

TEST_CASE("a file that is cut or written to under a session changes no token: it is copied first", "[packed]") {
  const temporary_folder folder;
  checked_device on;
  const auto path = packed_fable(folder);
  skip_unless_read_in_place(on.device, path);
  const std::uint64_t whole = std::filesystem::file_size(path);
  auto weights = runtime::load_weights(on.device, fable_table(), io::checkpoint::open(path));
  const auto mapping = weights.mapping;
  REQUIRE(mapping != nullptr);
  auto run = chain_of(on.device, std::move(weights));
  const auto text = drawn(run, 4);
  CHECK(text.size() == 4);
  CHECK_FALSE(mapping->copied());
  SECTION("cut") { std::filesystem::resize_file(path, 8192); }
  SECTION("written to") {
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(whole / 2))
        .put('x');
  }
  CHECK(mapping->copied());
  CHECK(drawn(run, 4) == text);
}

TEST_CASE("where weights cannot be read in place they are copied, or that is an error where it was asked for",
          "[packed]") {
  const temporary_folder folder;
  const auto path = packed_fable(folder);
  const auto from = io::checkpoint::open(path);
  SECTION("the driver refuses the memory") {
    faults::the_shim().reset();
    gpu::device_options options;
    options.entry = &faults::entry;
    const checked_device on(options);
    skip_unless_read_in_place(on.device, path);
    faults::the_shim().arm(faults::id::vkAllocateMemory, 0, VK_ERROR_INVALID_EXTERNAL_HANDLE);
    CHECK(runtime::load_weights(on.device, fable_table(), from).mapping == nullptr);
    faults::the_shim().arm(faults::id::vkAllocateMemory, 0, VK_ERROR_INVALID_EXTERNAL_HANDLE);
    CHECK_THROWS_MATCHES(
        runtime::load_weights(on.device, fable_table(), from, {.storage = runtime::weight_storage::mapped}),
        device_error, MessageMatches(ContainsSubstring("VK_ERROR_INVALID_EXTERNAL_HANDLE")));
    CHECK(on.device.counters().allocated_bytes == 0);
  }
  SECTION("the file is no file, or not packed") {
    const checked_device on;
    std::ifstream file(path, std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto memory = io::checkpoint::open_packed(std::as_bytes(std::span(content)), "fable");
    CHECK(runtime::load_weights(on.device, fable_table(), memory).mapping == nullptr);
    CHECK_THROWS_AS(
        runtime::load_weights(on.device, fable_table(), memory, {.storage = runtime::weight_storage::mapped}),
        device_error);
    CHECK_THROWS_AS(
        runtime::load_weights(on.device, fable_table(), io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")),
                              {.storage = runtime::weight_storage::mapped}),
        argument_error);
  }
  SECTION("somebody has the file open for writing") {
    const checked_device on;
    const std::fstream writer(path, std::ios::in | std::ios::out | std::ios::binary);
    CHECK(runtime::load_weights(on.device, fable_table(), from).mapping == nullptr);
    CHECK_THROWS_MATCHES(
        runtime::load_weights(on.device, fable_table(), from, {.storage = runtime::weight_storage::mapped}),
        device_error, MessageMatches(ContainsSubstring("open for writing")));
  }
}
