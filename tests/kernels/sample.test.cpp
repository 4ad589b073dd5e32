// SPDX-License-Identifier: MIT
#include "intaglio/reference/sample.hpp"

#include <limits>
#include <map>

#include "intaglio/kernels/declared_modules.hpp"
#include "intaglio/runtime/sampling.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;
namespace at = kernels::state;

namespace {

constexpr std::uint32_t max_tokens = 3, context = 60, ring_size = 7;

/// Runs kernel, in each form that is right for it, and reference on the same state; all must leave the same words
/// everywhere.
std::uint32_t both(kernel_device& on, const std::vector<float>& logits, std::vector<std::uint32_t> state,
                   std::uint32_t subgroups, bool cpu = false, std::uint32_t groups = 1000, bool narrow = false) {
  on.wide_loads = cpu;  // the module for CPU drivers
  std::uint32_t token = 0;
  for (const kernels::sample_form form :
       {kernels::sample_form::any, kernels::sample_form::greedy, kernels::sample_form::interim}) {
    const bool interim = form == kernels::sample_form::interim;
    if (form == kernels::sample_form::greedy ? !(std::bit_cast<float>(state[at::temperature]) < 1e-6f) : interim && cpu)
      continue;
    // llvmpipe ends an invocation's loops after 65,535 turns in all (docs/modules.md), and a workgroup has at most 32
    // subgroups there: of the largest vocabularies the first tokens then.
    const std::uint32_t turns = 512, most = on.device().description().type == gpu::device_type::cpu
                                                ? turns * 32 * on.subgroup_size()
                                                : kernels::largest_vocabulary;
    const auto vocab =
        std::min(static_cast<std::uint32_t>(logits.size()), interim ? most : kernels::largest_vocabulary);
    const std::uint32_t enough = interim ? std::min(32u, (vocab - 1) / turns / on.subgroup_size() + 1) : 1;
    const std::span<const float> some = std::span(logits).first(vocab);
    std::vector<std::uint32_t> ring(ring_size, 0xa5a5a5a5u), left = state, left_ring = ring;
    reference::sample(some, max_tokens, context, left, left_ring);
    INFO("form " << static_cast<std::uint32_t>(form) << ", vocabulary " << vocab);
    const auto l = on.filled(std::vector<float>(some.begin(), some.end())), s = on.filled(state), r = on.filled(ring);
    const auto scratch = on.poisoned(kernels::sample_scratch_bytes(vocab)),
               counters = on.filled(std::vector<std::uint32_t>(1));
    on.run(kernels::kernel::sample, std::max(subgroups, enough),
           {{"vocab_size", vocab},
            {"ring_size", ring_size},
            {"context", context},
            {"max_tokens", max_tokens},
            {"draws", 1u},
            {"slice", kernels::sample_slice(vocab)},
            {"form", static_cast<std::uint32_t>(form)},
            {"narrow", narrow ? 1u : 0u}},
           {{"logits", &l}, {"state", &s}, {"ring", &r}, {"scratch", &scratch}, {"counters", &counters}},
           {cpu ? 1u : std::min(groups, kernels::sample_lists(vocab)), 1, 1});
    CHECK(s.read<std::uint32_t>() == left);
    CHECK(r.read<std::uint32_t>() == left_ring);
    CHECK(counters.read<std::uint32_t>()[0] == 0);
    if (form == kernels::sample_form::any) token = left[at::tokens];
  }
  return token;
}

std::vector<std::uint32_t> state_for(const sampling_options& options, std::uint32_t position, random_numbers& random,
                                     std::uint32_t vocab) {
  auto state = fresh_state(position, 1, max_tokens, context);
  runtime::write_sampling(options, state);
  state[at::generated] = 12;
  for (std::uint32_t i = 0; i <= position && i < context; ++i)
    state[at::history(max_tokens) + i] = random.below(vocab + 3);
  return state;
}

}  // namespace

TEST_CASE("sample: the reference's token for every combination of parameters", "[dear]") {
  kernel_device on;
  random_numbers random(7);
  for (const std::uint32_t vocab : {5u, 259u, 4096u})
    for (int round = 0; round < 24; ++round) {
      auto logits = random.floats(vocab, -9, 9);
      if (round % 3 == 0)
        for (float& l : logits) l = std::nearbyint(l);  // many equal ones
      if (round % 5 == 0)
        for (std::size_t i = 0; i < logits.size(); i += 3) logits[i] = -std::numeric_limits<float>::infinity();
      sampling_options options;
      const float temperatures[] = {0, 0.7f, 1, 3};
      options.temperature = temperatures[random.below(4)];
      if (random.below(2) != 0) options.top_k = 1 + random.below(std::min(vocab, 40u));
      if (random.below(2) != 0) options.top_p = random.between(0.05f, 1);
      if (random.below(2) != 0) options.min_p = random.between(0, 0.3f);
      if (random.below(2) != 0) options.repeat_penalty = random.between(0.8f, 1.8f);
      options.repeat_last_n = random.below(context);
      options.seed = std::uint64_t{random.below(~0u)} << 32 | random.below(~0u);
      const auto state = state_for(options, random.below(context + 2), random, vocab);
      INFO("vocabulary " << vocab << ", round " << round << ", temperature " << options.temperature << ", top_k "
                         << options.top_k.value_or(0) << ", top_p " << options.top_p << ", min_p " << options.min_p
                         << ", penalty " << options.repeat_penalty);
      const std::uint32_t subgroups[] = {1, 2, 4};
      both(on, logits, state, subgroups[round % 3], round % 4 == 3, round % 2 == 0 ? 1000 : 5, round % 4 == 1);
    }
}

TEST_CASE("sample: the largest vocabularies, by the fewest subgroups that a plan gives them", "[dear]") {
  kernel_device on;
  random_numbers random(10);
  for (const std::uint32_t vocab : {8192u, 128'256u, 262'208u})
    for (int round = 0; round < 3; ++round) {
      const auto logits = random.floats(vocab, -9, 9);
      const sampling_options options{.temperature = 0.7f,
                                     .top_k = 20u + random.below(20),
                                     .top_p = 0.85f,
                                     .min_p = 0.01f,
                                     .repeat_penalty = 1.2f,
                                     .repeat_last_n = context,
                                     .seed = random.below(~0u)};
      INFO("vocabulary " << vocab << ", round " << round);
      both(on, logits, state_for(options, context - 1, random, vocab), kernels::least_sample_subgroups(vocab),
           round == 0, 1000, round == 1);
    }
  for (const std::uint32_t vocab : {8192u, 32'000u, 128'256u, 262'208u})
    CHECK(kernels::shared_memory_bytes(
              "sample", {kernels::given<&kernels::sample_kernel::constants::workgroup_size>(16 * 16),
                         kernels::given<&kernels::sample_kernel::constants::subgroup_width>(16),
                         kernels::given<&kernels::sample_kernel::constants::vocab_size>(vocab),
                         kernels::given<&kernels::sample_kernel::constants::slice>(kernels::sample_slice(vocab)),
                         kernels::given<&kernels::sample_kernel::constants::draws>(1),
                         kernels::given<&kernels::sample_kernel::constants::form>(2),
                         kernels::given<&kernels::sample_kernel::constants::narrow>(1)}) <= 16384);
}

TEST_CASE("sample: top-k and top-p cut among equal logits as a sort does, up to the largest vocabulary", "[dear]") {
  kernel_device on;
  random_numbers random(12);
  for (const std::uint32_t vocab : {1000u, 262'208u}) {
    std::vector<std::pair<const char*, std::vector<float>>> cases;
    cases.emplace_back("all equal", std::vector<float>(vocab, -2.5f));
    cases.emplace_back("one spike", std::vector<float>(vocab, -40.f)).second[vocab / 3] = 60.f;
    auto& levels = cases.emplace_back("ties at the cut", std::vector<float>(vocab)).second;
    for (std::uint32_t i = 0; i < vocab; ++i) levels[i] = static_cast<float>((i * 2654435761u >> 7) % 3);
    auto& steps = cases.emplace_back("neighbouring numbers", std::vector<float>(vocab)).second;
    for (std::uint32_t i = 0; i < vocab; ++i) steps[i] = std::bit_cast<float>(0x3f800000u + (i * 40503u) % vocab);
    auto& signs = cases.emplace_back("both zeros, no hope for half", std::vector<float>(vocab)).second;
    for (std::uint32_t i = 0; i < vocab; ++i)
      signs[i] = i % 2 != 0 ? -std::numeric_limits<float>::infinity() : i % 4 != 0 ? -0.0f : 0.0f;
    auto& widest =
        cases.emplace_back("the ends of f32", std::vector<float>(vocab, std::numeric_limits<float>::lowest())).second;
    for (std::uint32_t i = 0; i < vocab; i += 5) widest[i] = std::numeric_limits<float>::max();
    auto& stairs = cases.emplace_back("slices that are octaves apart", std::vector<float>(vocab)).second;
    for (std::uint32_t i = 0; i < vocab; ++i)
      stairs[i] = static_cast<float>((i * 40503u) % 64) * 0.03f - static_cast<float>(i / 256 * 37 % 101);
    auto& one_slice = cases.emplace_back("all that is likely in one slice", std::vector<float>(vocab, -3.f)).second;
    for (std::uint32_t i = 0; i < 200; ++i) one_slice[vocab / 2 + i] = 9.f - 0.05f * static_cast<float>(i * 77 % 200);
    auto& quantised = cases.emplace_back("a bell in steps of a 64th", std::vector<float>(vocab)).second;
    for (float& l : quantised)
      l = std::nearbyint(64 * (random.between(-3, 3) + random.between(-3, 3) + random.between(-3, 3))) / 64;
    auto& scales = cases.emplace_back("slices of other widths, with numbers about 0", std::vector<float>(vocab)).second;
    for (std::uint32_t i = 0; i < vocab; ++i)
      scales[i] =
          (random.between(-1, 1) + random.between(-1, 1)) * std::ldexp(4.f, -static_cast<int>(i / 256 * 37 % 101));
    const sampling_options ways[] = {{.temperature = 1, .top_k = vocab / 2 + 1},
                                     {.temperature = 1, .top_k = vocab / 9, .top_p = 0.9999f},
                                     {.temperature = 0.7f, .top_p = 0.61f},
                                     {.temperature = 1.5f, .top_k = vocab - 1, .top_p = 0.9f},
                                     {.temperature = 2, .top_k = 9},
                                     {.temperature = 1.2f, .min_p = 0.4f},
                                     {.temperature = 0.9f}};
    for (const auto& [name, logits] : cases)
      for (sampling_options how : ways) {
        how.seed = random.below(~0u);
        INFO("vocabulary " << vocab << ", " << name << ", top_k " << how.top_k.value_or(0) << ", top_p " << how.top_p);
        for (const bool cpu : {false, true})
          CHECK(both(on, logits, state_for(how, 7, random, vocab), kernels::least_sample_subgroups(vocab), cpu, 1000,
                     vocab > 1000 && how.top_p < 1) < vocab);
      }
  }
}

TEST_CASE("sample: logits that are no numbers give the token that is none; no token of the pass changes nothing") {
  kernel_device on;
  random_numbers random(8);
  auto logits = random.floats(100, -1, 1);
  const auto state = state_for({}, 4, random, 100);
  logits[77] = std::bit_cast<float>(0xffc00001u);
  CHECK(both(on, logits, state, 1) == 100);
  logits[77] = std::numeric_limits<float>::infinity();
  CHECK(both(on, logits, state, 2) == 100);
  for (float& l : logits) l = -std::numeric_limits<float>::infinity();
  CHECK(both(on, logits, state, 1) == 100);
  auto paused = state;
  paused[at::count] = 0;
  both(on, logits, paused, 1);
}

TEST_CASE("sample: a seed draws the same text again, other seeds draw in proportion") {
  kernel_device on;
  random_numbers random(9);
  const std::vector<float> logits{0, std::log(2.0f), std::log(5.0f)};
  std::map<std::uint32_t, int> drawn;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    drawn[both(on, logits, state_for({.temperature = 1, .seed = seed}, 3, random, 3), 1)] += 1;
  CHECK(drawn[2] > 100);
  CHECK(drawn[2] < 150);
  CHECK(drawn[1] > 30);
  CHECK(drawn[1] < 75);
}

TEST_CASE("sample: several draws are those of the tokens one by one, and leave state and ring alone") {
  kernel_device on;
  random_numbers random(11);
  constexpr std::uint32_t draws = 3;
  for (const std::uint32_t vocab : {259u, 4096u})
    for (int round = 0; round < 8; ++round) {
      const auto logits = random.floats(draws * vocab, -9, 9);
      const sampling_options options{.temperature = round % 2 == 0 ? 0.f : 0.9f,
                                     .top_k = 30,
                                     .top_p = 0.9f,
                                     .repeat_penalty = round < 4 ? 1.f : 1.3f,
                                     .repeat_last_n = 20,
                                     .seed = random.below(~0u)};
      const std::uint32_t count = 1 + random.below(draws);
      auto state = state_for(options, random.below(context), random, vocab);
      state[at::count] = count;
      for (std::uint32_t i = 0; i < context; ++i) state[at::history(max_tokens) + i] = random.below(vocab);
      const auto l = on.filled(logits), s = on.filled(state),
                 r = on.filled(std::vector<std::uint32_t>(ring_size, 0xa5a5a5a5u)),
                 drawn = on.filled(std::vector<std::uint32_t>(draws, 0xa5a5a5a5u));
      const auto scratch = on.poisoned(draws * kernels::sample_scratch_bytes(vocab)),
                 counters = on.filled(std::vector<std::uint32_t>(draws));
      on.run(kernels::kernel::sample, 2,
             {{"vocab_size", vocab},
              {"ring_size", ring_size},
              {"context", context},
              {"max_tokens", max_tokens},
              {"draws", draws},
              {"slice", kernels::sample_slice(vocab)}},
             {{"logits", &l},
              {"state", &s},
              {"ring", &r},
              {"scratch", &scratch},
              {"drawn", &drawn},
              {"counters", &counters}},
             {kernels::sample_lists(vocab), draws, 1});
      std::vector<std::uint32_t> expected(draws, 0xa5a5a5a5u);
      for (std::uint32_t i = 0; i < count; ++i)
        expected[i] = reference::successor(std::span(logits).subspan(i * vocab, vocab), max_tokens, context, state, i);
      INFO("vocabulary " << vocab << ", round " << round);
      CHECK(drawn.read<std::uint32_t>() == expected);
      CHECK(s.read<std::uint32_t>() == state);
      CHECK(r.read<std::uint32_t>() == std::vector<std::uint32_t>(ring_size, 0xa5a5a5a5u));
    }
}

TEST_CASE(
    "sample: rows of a batch draw or do not, each as it would alone, whatever the slices; nobody's row stays as it "
    "is") {
  kernel_device on;
  random_numbers random(13);
  constexpr std::uint32_t rows = 4, page_size = 16, pages = kernels::state::slot_pages(context, page_size),
                          words = kernels::state::slot_words(context, page_size);
  using form = kernels::sample_form;
  const struct {
    std::uint32_t vocab, slice;
    std::vector<int> drawing;  // rows
    form by;
  } passes[] = {{9000, 256, {0}, form::any},
                {9000, 1024, {0}, form::any},
                {9001, 256, {0}, form::any},  // more slices than workgroups of a row that draws nothing, and fewer; no
                                              // whole quads
                {9000, 256, {0, 1, 2, 3}, form::any},
                {9000, 1024, {0, 1, 2, 3}, form::any},
                {9000, 256, {}, form::greedy},
                {9000, 1024, {}, form::greedy},
                {9001, 256, {}, form::greedy},
                {124, 256, {}, form::greedy}};
  for (const auto& [vocab, slice, drawing, by] : passes) {
    const auto logits = random.floats(rows * vocab, -9, 9);
    std::vector<std::uint32_t> state(kernels::state::batch_words(rows, context, page_size)),
        ring(rows * ring_size, 0xa5a5a5a5u);
    state[at::count] = rows;
    for (std::uint32_t row = 0; row < rows; ++row) {
      const bool draws = std::ranges::find(drawing, static_cast<int>(row)) != drawing.end();
      const sampling_options options{.temperature = draws ? 0.9f : 0.f,
                                     .top_k = 30,
                                     .top_p = 0.9f,
                                     .repeat_penalty = row == 3 ? 1.3f : 1.f,
                                     .repeat_last_n = 20,
                                     .seed = random.below(~0u)};
      auto slot = fresh_state(11 + row, row == 2 ? 0 : 1, 1 + pages, context);
      runtime::write_sampling(options, slot);
      slot[at::generated] = 12;
      slot[kernels::state::limit] = row == 1 ? 13 : context;  // that row's next position is its last
      for (std::uint32_t i = 0; i < context; ++i) slot[at::history(1 + pages) + i] = random.below(vocab);
      std::copy(slot.begin(), slot.begin() + std::min<std::ptrdiff_t>(words, std::ssize(slot)),
                state.begin() + kernels::state::first_slot + row * words);
    }
    auto left = state, left_ring = ring;
    for (std::uint32_t row = 0; row < rows; ++row) {
      if (row == 2) continue;
      const auto slot = std::span(left).subspan(kernels::state::first_slot + row * words, words);
      reference::sample(std::span(logits).subspan(row * vocab, vocab), 1 + pages, context, slot,
                        std::span(left_ring).subspan(row * ring_size, ring_size));
      if (slot[at::position] >= slot[kernels::state::limit]) slot[at::count] = 0;
    }
    const auto l = on.filled(logits), s = on.filled(state), r = on.filled(ring);
    const auto scratch = on.poisoned(rows * kernels::sample_scratch_bytes(vocab, slice)),
               counters = on.filled(std::vector<std::uint32_t>(rows));
    on.run(kernels::kernel::sample, 2,
           {{"vocab_size", vocab},
            {"ring_size", ring_size},
            {"context", context},
            {"max_tokens", 1 + pages},
            {"draws", 1u},
            {"slot_words", words},
            {"slice", slice},
            {"form", static_cast<std::uint32_t>(by)}},
           {{"logits", &l}, {"state", &s}, {"ring", &r}, {"scratch", &scratch}, {"counters", &counters}},
           {by == form::greedy ? std::min(kernels::sample_lists(vocab, slice), kernels::sample_greedy_workers)
                               : kernels::sample_lists(vocab, slice),
            rows, 1});
    INFO("vocabulary " << vocab << ", slice " << slice << ", drawing " << drawing.size() << ", form "
                       << static_cast<std::uint32_t>(by));
    CHECK(s.read<std::uint32_t>() == left);
    CHECK(r.read<std::uint32_t>() == left_ring);
    CHECK(counters.read<std::uint32_t>() == std::vector<std::uint32_t>(rows));
  }
}
