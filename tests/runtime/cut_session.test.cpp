// SPDX-License-Identifier: MIT
// Models cut over several devices: the driver's one device, opened several times.
#include "intaglio/runtime/cut_session.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#include <deque>
#include <mutex>
#include <tuple>
#include <utility>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "gpu/failing_new.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/logits_apart.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What was read of files while one lives: begin and end of each range, by the program's own pread below.
class read_ranges {
 public:
  read_ranges() { current() = this; }
  read_ranges(const read_ranges&) = delete;
  read_ranges& operator=(const read_ranges&) = delete;
  ~read_ranges() { current() = nullptr; }
  static read_ranges*& current() {
    static read_ranges* one = nullptr;
    return one;
  }
  void note(std::uint64_t begin, std::uint64_t end) {
    const std::lock_guard own(guard_);
    list_.push_back({begin, end});
  }
  /// Bytes of the file below `size` that were read so often: [0] never, [1] once, [2] twice or more.
  std::array<std::uint64_t, 3> times(std::uint64_t from, std::uint64_t to) const {
    std::vector<std::pair<std::uint64_t, int>> borders;
    for (const auto& [begin, end] : list_)
      if (const std::uint64_t a = (std::max)(begin, from), b = (std::min)(end, to); a < b)
        borders.insert(borders.end(), {{a, 1}, {b, -1}});
    std::sort(borders.begin(), borders.end());
    std::array<std::uint64_t, 3> out{};
    int depth = 0;
    std::uint64_t at = from;
    for (const auto& [index, step] : borders) {
      out[static_cast<std::size_t>((std::min)(depth, 2))] += index - at;
      at = index, depth += step;
    }
    out[0] += to - at;
    return out;
  }

 private:
  std::mutex guard_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> list_;
};

}  // namespace

/// Instead of the C library's: io::mapped_file reads by it.
extern "C" ssize_t pread(int file, void* to, std::size_t size, off_t at) {
  const long got = syscall(SYS_pread64, file, to, size, at);
  if (read_ranges* const noted = read_ranges::current(); noted != nullptr && got > 0)
    noted->note(static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(at + got));
  return got;
}

namespace {

/// A file's plans for CPU drivers and for GPUs.
struct planned_file {
  io::checkpoint file;
  plan::planned cpu, portable;
  std::array<const plan::table*, 2> tables;

  explicit planned_file(const std::filesystem::path& path, std::uint32_t context = 128)
      : file(io::checkpoint::open(path)), cpu(plan_of(plan::profiles::cpu, context)),
        portable(plan_of(plan::profiles::portable, context)), tables{&cpu.table(), &portable.table()} {}
  plan::planned plan_of(const plan::profile& target, std::uint32_t context) const {
    return families::planned_of(file.config(), families::types_of(file).types, "tiny", target, context);
  }
};

/// One device, opened several times.
struct devices {
  std::deque<checked_device> opened;
  std::vector<gpu::device> list;
  /// @param turns how often the list has each of them
  explicit devices(std::size_t count, std::size_t turns = 1) {
    for (std::size_t i = 0; i < count; ++i) list.push_back(opened.emplace_back(i).device);
    for (std::size_t i = count; i < count * turns; ++i) list.push_back(list[i - count]);
  }
};

std::vector<std::int32_t> some_ids(std::size_t count, std::uint32_t vocabulary) {
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(static_cast<std::int32_t>((i * i * 7 + 3 * i + 5) % vocabulary));
  return out;
}

/// What a session says in several ways.
struct words {
  std::vector<float> logits, vector;
  std::vector<std::int32_t> greedy, drawn, drafted, again;
};

words all_of(basic_session& of) {
  const auto ids = some_ids(40, of.table().config->vocab_size);
  words out;
  out.logits = of.logits(ids).logits;
  out.vector = of.embed(ids);
  out.greedy = of.generate(ids, {.max_tokens = 8, .stop_at_end = false}).ids;
  // What begins alike stays in the caches of all stages.
  const auto rewound = std::span(ids).first(30);
  out.again = of.generate(rewound, {.max_tokens = 8, .stop_at_end = false, .chunk = 7}).ids;
  out.drawn = of.generate(rewound, {.temperature = 0.9f,
                                    .top_k = 40,
                                    .repeat_penalty = 1.3f,
                                    .seed = 5,
                                    .max_tokens = 12,
                                    .stop_at_end = false})
                  .ids;
  of.reset();
  std::vector<std::int32_t> twice(ids.begin(), ids.begin() + 12);
  twice.insert(twice.end(), ids.begin(), ids.begin() + 12);
  out.drafted = of.generate(twice, {.max_tokens = 12, .stop_at_end = false, .prompt_lookup_num_tokens = 7}).ids;
  return out;
}

}  // namespace

TEST_CASE("a model that is cut over two and three devices gives the bits of the whole", "[once]") {
  using cuts = std::vector<std::uint32_t>;
  const auto [path, after, turns] = GENERATE_COPY(
      std::tuple{conformance("qwen3-tiny", "conformance2", "confgen2.py") / "gguf/qwen3-tiny-bf16.gguf", cuts{}, 1},
      std::tuple{conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf", cuts{2, 6}, 1},
      std::tuple{conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf", cuts{1, 3, 5}, 2},
      std::tuple{shared("models/fable-bitnet-i2_s.gguf"), cuts{3}, 1});
  const std::size_t count = after.empty() ? 2 : after.size() + 1;
  INFO(path.string() << ", " << count << " stages, " << turns << " on each device");
  const planned_file plans(path);
  const devices on(count / static_cast<std::size_t>(turns), static_cast<std::size_t>(turns));
  basic_session whole(on.list.front(), plans.tables, plans.file, {.cache_folder = ""});
  const words expected = all_of(whole);
  basic_session cut = cut_session(on.list, plans.tables, plans.file, {.cache_folder = ""}, {.after = after});
  CHECK(cut.executor().is_stage());
  const auto resident = [](const basic_session& of) {
    return !of.executor().plan_of(runtime::pass_kind::decode).resident.empty();
  };
  CHECK(resident(cut) == resident(whole));
  const words found = all_of(cut);
  CHECK(found.logits == expected.logits);
  CHECK(found.vector == expected.vector);
  CHECK(found.greedy == expected.greedy);
  CHECK(found.again == expected.again);
  CHECK(found.drawn == expected.drawn);
  CHECK(found.drafted == expected.drafted);
  const auto count_of = [](const basic_session& of) { return of.executor().counters().recordings; };
  const auto recorded = count_of(cut);
  cut.reset();
  const auto ids = some_ids(70, plans.file.config().vocab_size);
  auto stream = cut.begin(ids, {.max_tokens = 30, .stop_at_end = false});
  REQUIRE(stream.next());
  stream.cancel();
  CHECK(count_of(cut) == recorded);
  whole.reset();
  const auto expected_ids = whole.generate(ids, {.max_tokens = 8, .stop_at_end = false}).ids;
  CHECK(cut.generate(ids, {.max_tokens = 8, .stop_at_end = false}).ids == expected_ids);
  cut.reset();
  // More chunks than a stage has slots for rows that leave it.
  static_assert(70 / 4 > 2 * plan::most_asked_passes);
  CHECK(cut.generate(ids, {.max_tokens = 8, .stop_at_end = false, .chunk = 4}).ids == expected_ids);
}

TEST_CASE("rows that cross on a queue for copies have the bits of the whole", "[once]") {
  const planned_file plans(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf");
  const words expected = [&] {
    const checked_device one;
    basic_session whole(one.device, plans.tables, plans.file, {.cache_folder = ""});
    return all_of(whole);
  }();
  faults::the_shim().reset();
  faults::with_copy_family = true;
  {
    gpu::device_options options;
    options.entry = &faults::entry;
    options.copies = true;
    const std::array on{gpu::device(options), gpu::device(options)};
    CHECK_FALSE(on[0].on()->shares(gpu::lane::copies));
    const std::array<gpu::device, 4> turns{on[0], on[1], on[0], on[1]};
    basic_session cut = cut_session(turns, plans.tables, plans.file, {.cache_folder = ""}, {.after = {1, 3, 5}});
    const words found = all_of(cut);
    CHECK(found.logits == expected.logits);
    CHECK(found.greedy == expected.greedy);
    CHECK(found.again == expected.again);
    CHECK(found.drawn == expected.drawn);
    CHECK(found.drafted == expected.drafted);
    cut.reset();
    const auto ids = some_ids(120, plans.file.config().vocab_size);
    const auto by_32 = cut.generate(ids, {.max_tokens = 4, .stop_at_end = false, .chunk = 32}).ids;
    cut.reset();
    CHECK(cut.generate(ids, {.max_tokens = 4, .stop_at_end = false, .chunk = 5}).ids == by_32);
  }
  faults::with_copy_family = false;
  CHECK(faults::the_shim().live().empty());
}

TEST_CASE("stages read each range of a file once, the last one a tied head too", "[once]") {
  const auto [name, tied] = GENERATE(table<std::string, bool>(
      {{"gemma3-tiny/gguf/gemma3-tiny-q8_0.gguf", true}, {"llama-tiny/gguf/llama-tiny-q4_0.gguf", false}}));
  INFO(name);
  const planned_file plans(conformance(name.substr(0, name.find('/'))) / name.substr(name.find('/') + 1));
  const io::checkpoint_tensor& embedding = *plans.file.find("token_embd.weight");
  const auto [file, begin] = std::pair{embedding.stored.file, embedding.stored.offset};
  const std::uint64_t end = begin + embedding.stored.bytes;
  const devices on(3);
  const std::uint64_t layers = plans.file.config().num_hidden_layers;
  read_ranges seen;
  const basic_session cut = cut_session(on.list, plans.tables, plans.file, {.cache_folder = ""},
                                        {.after = {1, static_cast<std::uint32_t>(layers - 1)}});
  const auto all = seen.times(0, file->size()), its = seen.times(begin, end);
  CHECK(its[tied ? 2 : 1] == end - begin);
  CHECK(all[2] == its[2]);
  CHECK(all[1] + all[2] > file->size() / 2);
}

namespace {

planned_file& bitnet_tiny() {
  static planned_file out(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf"), 64);
  return out;
}
constexpr std::array<std::int32_t, 5> prompt{1000, 246, 324, 532, 914};

/// Two stages behind the shim.
basic_session shimmed_cut(const session_options& wish) {
  gpu::device_options options;
  options.entry = &faults::entry;
  const std::array on{gpu::device(options), gpu::device(options)};
  return cut_session(on, bitnet_tiny().tables, bitnet_tiny().file, wish, {.after = {1}});
}
generation some_tokens(basic_session& of) { return of.generate(prompt, {.max_tokens = 5, .stop_at_end = false}); }

}  // namespace

TEST_CASE("stages of two device classes: each device has its own plan, and the tokens are those of the whole",
          "[once]") {
  const planned_file plans(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf");
  const gpu::device cpu;
  const gpu::device as_gpu = [] {
    gpu::device_options options;
    options.entry = &faults::entry;
    faults::the_shim().reset();
    faults::reported_type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    gpu::device out(options);
    faults::reported_type = {};
    return out;
  }();
  const auto ids = some_ids(40, plans.file.config().vocab_size);
  const generate_options wish{.max_tokens = 8, .stop_at_end = false};
  basic_session whole(cpu, plans.tables, plans.file, {.cache_folder = ""});
  const auto expected = whole.logits(ids).logits;
  whole.reset();
  const auto tokens = whole.generate(ids, wish).ids;
  const std::array on{as_gpu, cpu};
  const cut_options where{.after = {3}};
  const runtime::device_cut cut = runtime::cut_over(on, plans.tables, where);
  CHECK(cut.stages[0]->table().profile == "portable");
  CHECK(cut.stages[1]->table().profile == "cpu");
  {
    basic_session session = cut_session(on, plans.tables, plans.file, {.cache_folder = ""}, where);
    const logit_distance found = logits_apart(session.logits(ids).logits, std::span<const float>(expected));
    INFO(found.apart << " of " << found.largest);
    CHECK(found.apart < 0.01 * found.largest);
    session.reset();
    CHECK(session.generate(ids, wish).ids == tokens);
  }
  faults::the_shim().reset();
}

TEST_CASE("a device of a cut is lost, in each stage, in a prompt and in decode", "[once]") {
  const temporary_folder folder;
  const session_options wish{.cache_folder = folder.path()};
  faults::the_shim().reset();
  const auto expected = [&] {
    basic_session session = shimmed_cut(wish);
    return some_tokens(session).ids;
  }();
  for (const std::size_t nth : {0u, 1u, 2u, 3u, 6u, 7u}) {
    INFO("submission " << nth);
    {
      basic_session session = shimmed_cut(wish);
      faults::the_shim().arm(faults::id::vkQueueSubmit, nth, VK_ERROR_DEVICE_LOST);
      CHECK_THROWS_AS(some_tokens(session), device_lost);
      CHECK_THROWS_AS(some_tokens(session), device_lost);
    }
    CHECK(faults::the_shim().live().empty());
    CHECK(faults::the_shim().wrong_destroys() == 0);
    faults::the_shim().reset();
  }
  basic_session session = shimmed_cut(wish);
  CHECK(some_tokens(session).ids == expected);
}

TEST_CASE("no memory in one stage of a cut: at a submission the session goes on, at load nothing is left", "[once]") {
  const temporary_folder folder;
  const session_options wish{.cache_folder = folder.path()};
  faults::the_shim().reset();
  std::size_t allocations = 0;
  {
    basic_session session = shimmed_cut(wish);
    allocations = faults::the_shim().calls(faults::id::vkAllocateMemory);
    const auto expected = some_tokens(session).ids;
    for (const std::size_t nth : {0u, 1u, 2u, 5u}) {
      INFO("submission " << nth);
      session.reset();
      faults::the_shim().arm(faults::id::vkQueueSubmit, nth, VK_ERROR_OUT_OF_DEVICE_MEMORY);
      CHECK_THROWS_AS(some_tokens(session), out_of_memory);
      CHECK(some_tokens(session).ids == expected);
    }
  }
  CHECK(faults::the_shim().live().empty());
  REQUIRE(allocations > 8);
  for (const std::size_t nth : {std::size_t{0}, allocations / 4, allocations / 2, allocations - 1}) {
    INFO("allocation " << nth << " of " << allocations);
    faults::the_shim().reset();
    faults::the_shim().arm(faults::id::vkAllocateMemory, nth, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    try {
      basic_session session = shimmed_cut(wish);
      CHECK(some_tokens(session).ids.size() == 5);  // another type of memory had room
    } catch (const out_of_memory& typed) { CHECK_FALSE(typed.operation().empty()); }
    CHECK(faults::the_shim().live().empty());
  }
  faults::the_shim().reset();
}

TEST_CASE("what a cut session has not is refused, and so is a cut that is none") {
  const devices on(2);
  const planned_file& plans = bitnet_tiny();
  const auto cut = [&](const session_options& options, const cut_options& where) {
    return cut_session(on.list, plans.tables, plans.file, options, where);
  };
  const std::uint32_t layers = plans.file.config().num_hidden_layers;
  CHECK_THROWS_WITH(cut({.cache_folder = ""}, {.after = {layers}}), ContainsSubstring("cut: expected rising numbers"));
  CHECK_THROWS_WITH(cut({.cache_folder = "", .weight_budget = 1 << 20}, {}), ContainsSubstring("weight_budget"));
  CHECK_THROWS_WITH(cut({.cache_folder = ""}, {.rates = {1}}), ContainsSubstring("rates of the devices"));
  basic_session session = cut({.cache_folder = ""}, {.rates = {1, 1}});
  CHECK_THROWS_WITH(session.logits(prompt, 0, true), ContainsSubstring("hidden states"));
  const temporary_folder folder;
  CHECK_THROWS_WITH(session.save(std::filesystem::path(folder.path()) / "x"), ContainsSubstring("saved session"));
  CHECK_THROWS_WITH(session.restore(std::filesystem::path(folder.path()) / "x"), ContainsSubstring("saved session"));
}
