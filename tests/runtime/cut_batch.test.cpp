// SPDX-License-Identifier: MIT
// Batches cut over several devices: the driver's one device, opened several times.
#include "intaglio/runtime/cut_batch.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#include <deque>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "gpu/failing_new.hpp"
#include "intaglio/families/file_types.hpp"
#include "runtime/batch_and_alone.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A file's plan with a batch, for CPU drivers.
plan::planned plan_of(const io::checkpoint& file, const plan::batch_shape& shape, std::uint32_t context = 128) {
  return families::planned_of(file.config(), families::types_of(file).types, "tiny", plan::profiles::cpu, context,
                              shape);
}

/// One device, opened several times.
struct devices {
  std::deque<checked_device> opened;
  std::vector<gpu::device> list;
  explicit devices(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) list.push_back(opened.emplace_back(i).device);
  }
};

/// The tokens that sessions of a batch draw, and their logits, where the host sets one session's token; and a text's
/// vector.
struct words {
  std::array<std::vector<std::int32_t>, 3> drawn;
  std::array<std::vector<float>, 3> logits;
  std::vector<float> vector;
};
words all_of(basic_batch& of, std::uint32_t vocabulary) {
  words out;
  std::vector<batch_handle> who;
  for (std::uint32_t i = 0; i < 3; ++i)
    who.push_back(of.join(some_ids(9 + 30 * i, i + 1, vocabulary), {.max_tokens = 10, .keep_logits = true}));
  for (std::uint32_t step = 0; of.active() != 0; ++step) {
    REQUIRE(step < 100);
    for (const batch_token& each : of.step()) {
      const auto which = static_cast<std::size_t>(std::find(who.begin(), who.end(), each.of) - who.begin());
      out.drawn.at(which).push_back(each.id);
      const auto logits = of.logits(each.of);
      out.logits[which].insert(out.logits[which].end(), logits.begin(), logits.end());
      if (which == 1 && !each.last && out.drawn[which].size() == 4) of.set_next(each.of, 5);
    }
    if (step == 5) out.vector = of.embed(some_ids(40, 9, vocabulary));
  }
  return out;
}

}  // namespace

TEST_CASE("sessions of a batch over two and three devices draw what they draw alone", "[once]") {
  const auto [path, after] = GENERATE_COPY(
      std::pair{conformance("qwen3-tiny", "conformance2", "confgen2.py") / "gguf/qwen3-tiny-bf16.gguf",
                std::vector<std::uint32_t>{}},
      std::pair{conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf", std::vector<std::uint32_t>{2, 6}},
      std::pair{shared("models/fable-bitnet-i2_s.gguf"), std::vector<std::uint32_t>{3}});
  INFO(path.string());
  const std::size_t count = after.empty() ? 2 : after.size() + 1;
  const devices on(count);
  const io::checkpoint file = io::checkpoint::open(path);
  const plan::batch_shape shape{.slot_count = 2, .page_size = 16, .pages = 4 * 8};
  const auto cut = [&](std::span<const plan::table* const> tables, const io::checkpoint& from) {
    return cut_batch(on.list, tables, from, {.cache_folder = ""}, {.after = after});
  };
  both b(plan_of(file, shape), io::checkpoint::open(path), cut);
  CHECK(b.batch.slot_count() == 2 * count);
  check_mixed(b);

  const plan::planned wide = plan_of(file, {.slot_count = 4, .page_size = 16});
  const std::array<const plan::table*, 1> tables{&wide.table()};
  basic_batch whole(on.list.front(), tables, file, {.cache_folder = ""});
  const std::uint32_t vocabulary = file.config().vocab_size;
  const words expected = all_of(whole, vocabulary), found = all_of(b.batch, vocabulary);
  CHECK(found.drawn == expected.drawn);
  CHECK(found.logits == expected.logits);
  CHECK(found.vector == expected.vector);
}

namespace {

/// Two stages behind the shim.
struct shimmed {
  io::checkpoint file = io::checkpoint::open(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf"));
  plan::planned plan = plan_of(file, {.slot_count = 2, .page_size = 16, .pages = 8}, 64);
  std::array<const plan::table*, 1> tables{&plan.table()};

  basic_batch cut(const session_options& wish) const {
    gpu::device_options options;
    options.entry = &faults::entry;
    const std::array on{gpu::device(options), gpu::device(options)};
    return cut_batch(on, tables, file, wish, {.after = {1}});
  }
};
/// Two sessions, one in each group.
std::vector<std::int32_t> some_tokens(basic_batch& of) {
  std::array<batch_handle, 2> who{};
  for (std::uint32_t i = 0; i < 2; ++i)
    who[i] = of.join(some_ids(5 + i, i, of.table().config->vocab_size), {.max_tokens = 4});
  std::vector<std::int32_t> out;
  for (std::uint32_t step = 0; of.active() != 0; ++step) {
    REQUIRE(step < 50);
    for (const batch_token& each : of.step(2)) out.push_back(each.id);
  }
  return out;
}

}  // namespace

TEST_CASE("a device of a cut batch is lost, in each stage, in a prompt and in decode", "[once]") {
  const temporary_folder folder;
  const session_options wish{.cache_folder = folder.path()};
  const shimmed of;
  faults::the_shim().reset();
  const auto expected = [&] {
    basic_batch batch = of.cut(wish);
    return some_tokens(batch);
  }();
  REQUIRE(expected.size() == 8);
  for (const std::size_t nth : {0u, 1u, 2u, 3u, 7u, 12u}) {
    INFO("submission " << nth);
    {
      basic_batch batch = of.cut(wish);
      faults::the_shim().arm(faults::id::vkQueueSubmit, nth, VK_ERROR_DEVICE_LOST);
      CHECK_THROWS_AS(some_tokens(batch), device_lost);
      CHECK_THROWS_AS(some_tokens(batch), device_lost);
    }
    CHECK(faults::the_shim().live().empty());
    CHECK(faults::the_shim().wrong_destroys() == 0);
    faults::the_shim().reset();
  }
}

TEST_CASE("no memory in one stage of a cut batch: its sessions have left, and others join", "[once]") {
  const temporary_folder folder;
  const session_options wish{.cache_folder = folder.path()};
  const shimmed of;
  faults::the_shim().reset();
  std::size_t allocations = 0;
  {
    basic_batch batch = of.cut(wish);
    allocations = faults::the_shim().calls(faults::id::vkAllocateMemory);
    const auto expected = some_tokens(batch);
    for (const std::size_t nth : {0u, 1u, 2u, 5u, 9u}) {
      INFO("submission " << nth);
      faults::the_shim().arm(faults::id::vkQueueSubmit, nth, VK_ERROR_OUT_OF_DEVICE_MEMORY);
      CHECK_THROWS_AS(some_tokens(batch), out_of_memory);
      CHECK(batch.active() == 0);
      CHECK(some_tokens(batch) == expected);
    }
  }
  CHECK(faults::the_shim().live().empty());
  REQUIRE(allocations > 8);
  for (const std::size_t nth : {std::size_t{0}, allocations / 3, allocations - 1}) {
    INFO("allocation " << nth << " of " << allocations);
    faults::the_shim().reset();
    faults::the_shim().arm(faults::id::vkAllocateMemory, nth, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    try {
      basic_batch batch = of.cut(wish);
      CHECK(some_tokens(batch).size() == 8);  // another type of memory had room
    } catch (const out_of_memory& typed) { CHECK_FALSE(typed.operation().empty()); }
    CHECK(faults::the_shim().live().empty());
  }
  faults::the_shim().reset();
}

TEST_CASE("a cut batch wants plans with a batch, and is not of what a cut has not") {
  const devices on(2);
  const shimmed of;
  const plan::planned alone = plan_of(of.file, {}, 64);
  const std::array<const plan::table*, 1> without{&alone.table()};
  CHECK_THROWS_WITH(cut_batch(on.list, without, of.file, {.cache_folder = ""}), ContainsSubstring("one with a batch"));
  CHECK_THROWS_WITH(cut_batch(on.list, of.tables, of.file, {.cache_folder = "", .weight_budget = 1 << 20}),
                    ContainsSubstring("weight_budget"));
  basic_batch batch = cut_batch(on.list, of.tables, of.file, {.cache_folder = ""}, {.after = {1}});
  const temporary_folder folder;
  const auto path = std::filesystem::path(folder.path()) / "x";
  const auto refuses = ContainsSubstring("saved beginning: expected a model on one device");
  CHECK_THROWS_WITH(batch.save(some_ids(20, 0, batch.table().config->vocab_size), path), refuses);
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_THROWS_WITH(batch.restore(path), refuses);
  CHECK(batch.most_drafts() == 0);
  const std::array one{on.list.front()};
  CHECK(cut_batch(one, of.tables, of.file, {.cache_folder = ""}).slot_count() == 2);
}
