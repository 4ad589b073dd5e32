// SPDX-License-Identifier: MIT
// Sessions of a batch with drafts draw what they draw without, in fewer passes where drafts are right.
#include "intaglio/runtime/batch_drafts.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "runtime/batch_and_alone.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

/// Runs all sessions to their ends. @return what each drew, by number, and the steps that were taken
struct run_of {
  std::map<std::uint64_t, std::vector<std::int32_t>> drawn;
  std::size_t steps = 0;
};
run_of run_all(basic_batch& from, std::uint32_t tokens = 1) {
  run_of out;
  for (; from.active() != 0 && out.steps < 500; ++out.steps)
    for (const batch_token& token : from.step(tokens)) out.drawn[token.of.number].push_back(token.id);
  return out;
}

std::vector<std::int32_t> repeated(std::uint32_t count, std::uint32_t period, std::uint32_t vocabulary) {
  std::vector<std::int32_t> out = some_ids(period, 3, vocabulary);
  while (out.size() < count) out.push_back(out[out.size() - period]);
  return out;
}

/// Sessions with prompt lookup, alone and beside each other, greedy and drawn.
/// @param repeats tokens that say again what they have said
void check_lookup(both& b, const std::vector<std::int32_t>& repeats) {
  INFO(b.plan.table().model << ", " << b.plan.table().profile);
  const std::uint32_t vocabulary = b.plan.table().config->vocab_size, most = b.batch.most_drafts();
  REQUIRE(most == b.batch.slot_count() - 1);
  const std::vector<sampling_options> ways{
      {}, {.temperature = 0.3f, .top_k = 40, .seed = 5}, {.temperature = 0.9f, .repeat_penalty = 1.2f, .seed = 9}};
  std::map<std::uint64_t, std::vector<std::int32_t>> expected;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto ids = std::vector<std::int32_t>(repeats.begin(), repeats.end() - static_cast<std::ptrdiff_t>(i));
    const batch_options options{
        .sampling = ways[i], .max_tokens = 48, .prompt_lookup_num_tokens = most, .max_matching_ngram_size = 3};
    const auto alone = b.drawn_alone(ids, options);
    const batch_handle who = b.batch.join(ids, options);
    CHECK(run_all(b.batch, 3).drawn[who.number] == alone);
    CHECK(b.batch.free_pages() == b.plan.table().shape.pages);
  }
  CHECK(b.batch.drafts().drafted > 0);
  CHECK(b.batch.drafts().accepted <= b.batch.drafts().drafted);
  for (std::size_t i = 0; i < 2; ++i) {  // with one slot left for drafts of both
    const auto ids = repeated(30, static_cast<std::uint32_t>(5 + i), vocabulary);
    const batch_options options{.sampling = ways[i], .max_tokens = 30, .prompt_lookup_num_tokens = most};
    expected[b.batch.join(ids, options).number] = b.drawn_alone(ids, options);
  }
  CHECK(run_all(b.batch).drawn == expected);
}

/// Drafts of a caller that knows what comes, and of one that does not.
void check_given(both& b) {
  const std::uint32_t vocabulary = b.plan.table().config->vocab_size;
  const batch_options options{.sampling = {.temperature = 0.8f, .seed = 3}, .max_tokens = 25};
  const auto ids = some_ids(21, 5, vocabulary);
  const auto expected = b.drawn_alone(ids, options);
  const auto with = [&](auto&& drafts) {
    const batch_handle who = b.batch.join(ids, options);
    std::vector<std::int32_t> got;
    std::size_t steps = 0;
    for (; b.batch.active() != 0 && steps < 100; ++steps) {
      if (!got.empty()) b.batch.draft(who, drafts(got.size()));
      for (const batch_token& token : b.batch.step()) got.push_back(token.id);
    }
    CHECK(got == expected);
    return steps;
  };
  const auto right = [&](std::size_t from) { return std::span(expected).subspan(from); };
  const std::size_t plain = with([](std::size_t) { return std::span<const std::int32_t>(); });
  CHECK(plain - with(right) == 24 - 24 / b.batch.slot_count());  // all slots' rows are right
  std::vector<std::int32_t> wrong(3);
  CHECK(with([&](std::size_t from) {
          for (std::size_t i = 0; i < wrong.size(); ++i)
            wrong[i] = from + i < expected.size()
                           ? (expected[from + i] + (i == 1 ? 1 : 0)) % static_cast<std::int32_t>(vocabulary)
                           : 1;
          return std::span<const std::int32_t>(wrong);
        }) < plain);
}

/// A caller that draws on the host, not always as the device does: its tokens are those without drafts, and each has
/// the logits that it was drawn from, in fewer steps where drafts are right.
void check_host(both& b, const batch_options& options, const std::vector<std::int32_t>& ids) {
  INFO(b.plan.table().model << ", " << b.plan.table().profile);
  const auto vocabulary = static_cast<std::int32_t>(b.plan.table().config->vocab_size);
  // Each third token is the one after the device's.
  const auto chosen = [&](std::int32_t of_device, std::size_t at) {
    return at % 3 == 2 ? (of_device + 1) % vocabulary : of_device;
  };
  struct host_run {
    std::vector<std::int32_t> ids;
    std::vector<std::vector<float>> logits;
    std::size_t steps = 0;
    draft_counts drafts;
  };
  const auto with = [&](const batch_options& how, const std::vector<std::int32_t>& known) {
    host_run out;
    const batch_handle who = b.batch.join(ids, how);
    for (; b.batch.active() != 0 && out.steps < 200; ++out.steps) {
      if (!out.ids.empty() && !known.empty())
        b.batch.draft(who, std::span(known).subspan((std::min)(out.ids.size(), known.size())));
      const std::span<const batch_token> drawn = b.batch.step();
      if (drawn.empty()) continue;
      REQUIRE(drawn.size() == 1);
      for (std::optional<batch_token> next = drawn.front(); next; next = b.batch.next_drafted(who)) {
        REQUIRE((next->of == who && next->finite));
        const std::span<const float> logits = b.batch.logits(who);
        out.logits.emplace_back(logits.begin(), logits.end());
        out.ids.push_back(chosen(next->id, out.ids.size()));
        if (next->last) break;
        if (out.ids.back() != next->id) b.batch.set_next(who, out.ids.back());
        CHECK(b.batch.history(who).size() == ids.size() + out.ids.size());
      }
    }
    out.drafts = b.batch.drafts(who);
    CHECK_FALSE(b.batch.next_drafted(who));
    CHECK(b.batch.free_pages() == b.plan.table().shape.pages);
    return out;
  };
  batch_options plainly = options;
  plainly.prompt_lookup_num_tokens = 0;
  const host_run plain = with(plainly, {});
  REQUIRE(plain.ids.size() == options.max_tokens);
  const auto check_same = [&](const host_run& found) {
    CHECK(found.ids == plain.ids);
    CHECK(found.logits == plain.logits);
    CHECK(found.drafts.accepted <= found.drafts.drafted);
    CHECK(plain.steps - found.steps == found.drafts.accepted);  // each that is right saves a pass
  };
  check_same(with(options, {}));
  const host_run right = with(plainly, plain.ids);
  check_same(right);
  CHECK(right.drafts.drafted > 0);
  CHECK(right.drafts.accepted == right.drafts.drafted);
  std::vector<std::int32_t> wrong = plain.ids;
  for (std::size_t i = 1; i < wrong.size(); i += 4) wrong[i] = (wrong[i] + 1) % vocabulary;
  const host_run some = with(plainly, wrong);
  check_same(some);
  CHECK(some.drafts.accepted > 0);
  CHECK(some.drafts.accepted < some.drafts.drafted);
}

}  // namespace

TEST_CASE("who draws on the host has drafts too, and draws what it draws without") {
  {
    both b(plan::planned::of<models::llama<llama_tiny, dtype::f16, dtype::f16, dtype::f32>>(
               plan::profiles::exact, 128, {.slot_count = 4, .page_size = 8}),
           io::checkpoint::open(conformance("llama-tiny") / "hf"));
    const auto ids = repeated(40, 7, llama_tiny.vocab_size);
    check_host(b, {.max_tokens = 30, .keep_logits = true, .prompt_lookup_num_tokens = 3}, ids);
    check_host(b,
               {.sampling = {.temperature = 0.8f, .repeat_penalty = 1.2f, .seed = 4},
                .max_tokens = 24,
                .keep_logits = true,
                .prompt_lookup_num_tokens = 2},
               ids);
    const batch_handle who = b.batch.join(ids, {.max_tokens = 9, .keep_logits = true});
    CHECK_FALSE(b.batch.next_drafted(who));
    b.batch.draft(who, std::vector<std::int32_t>{1, 2});
    run_all(b.batch);
    // a session that samples on the device gets no offers
    const batch_handle other = b.batch.join(ids, {.max_tokens = 9});
    for (int i = 0; b.batch.has(other) && i < 20; ++i) {
      if (!b.batch.step().empty() && b.batch.has(other)) b.batch.draft(other, std::vector<std::int32_t>{1, 2});
      CHECK_FALSE(b.batch.next_drafted(other));
    }
  }
  both b(plan::planned::of<models::gemma3<gemma3_tiny, dtype::q8_0, dtype::f32>>(plan::profiles::cpu, 512,
                                                                                 {.slot_count = 3, .page_size = 64}),
         io::checkpoint::open(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf"));
  check_host(b, {.max_tokens = 20, .keep_logits = true, .prompt_lookup_num_tokens = 2},
             repeated(40, 7, gemma3_tiny.vocab_size));
}

TEST_CASE("sessions of a batch with drafts draw what they draw without: BitNet, Llama, Gemma with windows", "[once]") {
  {
    both b(plan::planned::of<models::fable>(plan::profiles::cpu, 128, {.slot_count = 4, .page_size = 16}),
           io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")));
    check_lookup(b,
                 b.batch.encode("The fox saw a red ball. The dog saw a red ball. The fox saw a red ball. The dog saw a "
                                "red ball. The fox saw a"));
    CHECK(b.batch.drafts().accepted > 0);
    check_given(b);
  }
  {
    both b(plan::planned::of<models::llama<llama_tiny, dtype::f16, dtype::f16, dtype::f32>>(
               plan::profiles::exact, 128, {.slot_count = 3, .page_size = 8}),
           io::checkpoint::open(conformance("llama-tiny") / "hf"));
    check_lookup(b, repeated(40, 7, llama_tiny.vocab_size));
  }
  both b(plan::planned::of<models::gemma3<gemma3_tiny, dtype::q8_0, dtype::f32>>(plan::profiles::cpu, 512,
                                                                                 {.slot_count = 3, .page_size = 64}),
         io::checkpoint::open(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf"));
  check_lookup(b, repeated(40, 7, gemma3_tiny.vocab_size));
  check_given(b);
}

TEST_CASE("sessions of a batch with drafts draw what they draw without where a BitNet's pass is one dispatch",
          "[once][gpu]") {
  both b(plan::planned::of<models::fable>(plan::profiles::portable, 128, {.slot_count = 8, .page_size = 16}),
         io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")));
  if (!b.batch.executor().runs_resident()) SKIP("NOT RUN: needs a GPU that runs a batch's pass as one dispatch");
  check_lookup(b,
               b.batch.encode("The fox saw a red ball. The dog saw a red ball. The fox saw a red ball. The dog saw a "
                              "red ball. The fox saw a"));
  CHECK(b.batch.drafts().accepted > 0);
  check_given(b);
  check_host(b, {.max_tokens = 30, .keep_logits = true, .prompt_lookup_num_tokens = 3},
             repeated(40, 7, b.plan.table().config->vocab_size));
}

TEST_CASE("drafts that cannot be are refused by name") {
  io::checkpoint file = io::checkpoint::open(conformance("lfm2-tiny", "conformance2", "confgen2.py") / "hf");
  plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, "lfm2-tiny",
                                            plan::profiles::cpu, 256, {.slot_count = 3, .page_size = 16});
  both recurrent(std::move(plan), std::move(file));
  const std::vector<std::int32_t> ids{1, 2, 3};
  CHECK(recurrent.batch.most_drafts() == 0);
  CHECK_THROWS_AS(recurrent.batch.join(ids, {.max_tokens = 2, .prompt_lookup_num_tokens = 1}), argument_error);
  CHECK_THROWS_AS(recurrent.batch.draft(recurrent.batch.join(ids, {.max_tokens = 2}), ids), argument_error);

  both b(plan::planned::of<models::fable>(plan::profiles::cpu, 128, {.slot_count = 3, .page_size = 16}),
         io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")));
  CHECK_THROWS_AS(b.batch.join(ids, {.max_tokens = 2, .prompt_lookup_num_tokens = 3}), argument_error);
  CHECK_THROWS_AS(b.batch.join(ids, {.max_tokens = 2, .prompt_lookup_num_tokens = 2, .max_matching_ngram_size = 1}),
                  argument_error);
  CHECK(b.batch.active() == 0);
  const batch_handle who = b.batch.join(ids, {.max_tokens = 2});
  CHECK_THROWS_AS(b.batch.draft(who, std::vector<std::int32_t>{99'999}), argument_error);
  b.batch.leave(who);
  CHECK_THROWS_AS(b.batch.draft(who, ids), argument_error);
}

TEST_CASE("a wrong draft whose numbers are none changes nothing of what its session draws") {
  std::ifstream in(conformance("llama-tiny") / "gguf/llama-tiny-f32.gguf", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const io::gguf parsed = io::gguf::from_memory(std::as_bytes(std::span(text)), "tiny");
  const io::gguf_tensor *norm = parsed.find_tensor("blk.0.attn_norm.weight"),
                        *embedding = parsed.find_tensor("token_embd.weight");
  REQUIRE((norm != nullptr && embedding != nullptr));
  const auto put = [&](const io::gguf_tensor& to, std::uint64_t index, float value) {
    std::memcpy(text.data() + to.offset + 4 * index, &value, sizeof value);
  };
  constexpr std::int32_t spoiling = 700;
  put(*norm, 5, 3e38f);
  for (std::uint64_t token = 0; token < llama_tiny.vocab_size; ++token)
    put(*embedding, token * llama_tiny.hidden_size + 5, token == spoiling ? 1.f : 0.f);
  const temporary_folder folder;
  std::ofstream(folder / "spoiled.gguf", std::ios::binary) << text;
  both b(plan::planned::of<models::llama<llama_tiny, dtype::f32, dtype::f32, dtype::f32>>(
             plan::profiles::cpu, 128, {.slot_count = 3, .page_size = 8}),
         io::checkpoint::open(folder / "spoiled.gguf"), false);
  const auto ids = some_ids(13, 5, 600);
  for (const bool on_host : {false, true}) {
    const batch_options options{.max_tokens = 20, .keep_logits = on_host};
    const auto expected = b.drawn_alone(ids, options);
    const draft_counts before = b.batch.drafts();
    const batch_handle who = b.batch.join(ids, options);
    std::vector<std::int32_t> got;
    for (int i = 0; b.batch.active() != 0 && i < 100; ++i) {
      if (got.size() == 4 || got.size() == 19) b.batch.draft(who, std::vector<std::int32_t>{spoiling, 3});
      for (const batch_token& token : b.batch.step()) {
        CHECK(token.finite);
        got.push_back(token.id);
      }
      CHECK_FALSE(b.batch.next_drafted(who));
      if (on_host && got.size() == 5) b.batch.set_next(who, got.back());  // it waits to be fed anew
    }
    CHECK(got == expected);
    CHECK(b.batch.drafts().drafted > before.drafted);
    CHECK(b.batch.free_pages() == b.plan.table().shape.pages);
  }
}
