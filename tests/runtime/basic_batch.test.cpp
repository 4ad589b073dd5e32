// SPDX-License-Identifier: MIT
// Sessions of a batch against sessions alone: the same tokens and the same bits of logits, whatever sessions join and
// leave beside them. Plans are made at run time.
#include "intaglio/runtime/basic_batch.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "runtime/batch_and_alone.hpp"
#include "runtime/logits_apart.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

io::checkpoint fable_file() { return io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")); }
plan::planned fable_plan(const plan::profile& profile, const plan::batch_shape& shape) {
  return plan::planned::of<models::fable>(profile, 128, shape);
}

/// llama-tiny with a channel that is zero in all tokens but one, and huge in this token after the first norm: a
/// session with the token has logits that are no numbers from there on. Every weight is finite, so that loading takes
/// it.
constexpr std::int32_t spoiling = 700;
std::string spoiled_llama() {
  std::ifstream in(conformance("llama-tiny") / "gguf/llama-tiny-f32.gguf", std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), {});
  const io::gguf parsed = io::gguf::from_memory(std::as_bytes(std::span(file)), "tiny");
  const io::gguf_tensor *norm = parsed.find_tensor("blk.0.attn_norm.weight"),
                        *embedding = parsed.find_tensor("token_embd.weight");
  REQUIRE((norm != nullptr && embedding != nullptr && norm->type == dtype::f32 && embedding->type == dtype::f32));
  const auto put = [&](const io::gguf_tensor& to, std::uint64_t index, float value) {
    std::memcpy(file.data() + to.offset + 4 * index, &value, sizeof value);
  };
  constexpr std::uint64_t channel = 5;
  put(*norm, channel, 3e38f);
  for (std::uint64_t token = 0; token < llama_tiny.vocab_size; ++token)
    put(*embedding, token * llama_tiny.hidden_size + channel, token == spoiling ? 1.f : 0.f);
  return file;
}

}  // namespace

TEST_CASE("sessions of a batch draw what they draw alone, whatever joins and leaves: BitNet, both profiles") {
  for (const plan::profile* profile : {&plan::profiles::cpu, &plan::profiles::portable}) {
    INFO(profile->name);
    both b(fable_plan(*profile, {.slot_count = 3, .page_size = 16}), fable_file());
    check_mixed(b);
  }
}

TEST_CASE("sessions of a batch draw what they draw alone: Llama, and Gemma with windows past which a ring has gone") {
  {
    both b(plan::planned::of<models::llama<llama_tiny, dtype::f16, dtype::f16, dtype::f32>>(
               plan::profiles::cpu, 128, {.slot_count = 3, .page_size = 8}),
           io::checkpoint::open(conformance("llama-tiny") / "hf"));
    check_mixed(b);
  }
  both b(plan::planned::of<models::gemma3<gemma3_tiny, dtype::q8_0, dtype::f32>>(plan::profiles::exact, 512,
                                                                                 {.slot_count = 3, .page_size = 64}),
         io::checkpoint::open(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf"));
  check_mixed(b);
}

TEST_CASE("sessions of a batch draw what they draw alone: biases, norms of all heads, q, k and v of two codecs") {
  struct form {
    const char *model, *path;
    const plan::profile* profile;
  };
  for (const auto& [model, path, profile] : {form{"qwen2-tiny", "gguf/qwen2-tiny-bf16.gguf", &plan::profiles::exact},
                                             form{"qwen2-tiny", "gguf/qwen2-tiny-q4_k_m.gguf", &plan::profiles::cpu},
                                             form{"olmo2-tiny", "gguf/olmo2-tiny-bf16.gguf", &plan::profiles::exact}}) {
    INFO(path);
    io::checkpoint file = io::checkpoint::open(conformance(model, "conformance2", "confgen2.py") / path);
    plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model, *profile, 128,
                                              {.slot_count = 3, .page_size = 16});
    both b(std::move(plan), std::move(file));
    check_mixed(b);
  }
}

TEST_CASE(
    "where a batch's products are f16, what a session draws is what it draws without a batch while it is the only "
    "one, and beside others the same with any others, close to that") {
  constexpr plan::batch_shape four{.slot_count = 4, .page_size = 8, .coded_products = plan::chunk_arithmetic::f16},
      sixteen{.slot_count = 16, .page_size = 64, .coded_products = plan::chunk_arithmetic::f16};
  both coded(
      plan::planned::of<models::gemma3<gemma3_tiny, dtype::q8_0, dtype::f32>>(plan::profiles::portable, 512, sixteen),
      io::checkpoint::open(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf"));
  both dense(plan::planned::of<models::llama<llama_tiny, dtype::f16, dtype::f16, dtype::f32>>(plan::profiles::portable,
                                                                                              512, four),
             io::checkpoint::open(conformance("llama-tiny") / "hf"));
  const auto drawn_in = [](basic_batch& batch, const std::vector<std::int32_t>& ids, const batch_options& options,
                           std::uint32_t step) {
    std::vector<std::int32_t> out;
    const batch_handle who = batch.join(ids, options);
    while (batch.has(who))
      for (const batch_token& token : batch.step(step))
        if (token.of == who) out.push_back(token.id);
    return out;
  };
  for (both* const b : {&coded, &dense}) {
    const auto ids = some_ids(20, 3, b->plan.table().config->vocab_size);
    for (const batch_options& options :
         {batch_options{{.temperature = 4.f, .seed = 5}, 12}, batch_options{{.temperature = 0}, 6}})
      CHECK(drawn_in(b->batch, ids, options, 3) == b->drawn_alone(ids, options));
    // Logits of a session without others, then beside another one; the host replaces some tokens by its own.
    for (const bool beside : {false, true}) {
      batch_handle other;
      if (beside) other = b->batch.join(some_ids(9, 4, 512), {{}, 40});
      const batch_handle who = b->batch.join(ids, {{}, 20, true});
      for (std::uint32_t drawn = 0; drawn < 7;) {
        b->batch.step();
        if (b->batch.history(who).size() == ids.size()) continue;
        if (++drawn % 3 == 1) b->batch.set_next(who, static_cast<std::int32_t>(100 + drawn));
      }
      const std::vector<float> found(b->batch.logits(who).begin(), b->batch.logits(who).end());
      const std::vector<std::int32_t>& history = b->batch.history(who);
      CHECK(history[ids.size()] == 101);
      b->alone.reset();
      const auto exact = b->alone.logits(std::span(history).first(history.size() - 1)).logits;
      const logit_distance between = logits_apart(std::span(found), std::span(exact).last(found.size()));
      INFO(b->plan.table().model << ": " << between.apart << " of " << between.largest);
      CHECK(between.apart < 0.02 * between.largest);
      b->batch.leave(who);
      if (beside) b->batch.leave(other);
    }
  }
  const batch_handle stays = dense.batch.join(some_ids(5, 9, 512), {{}, 400});
  check_mixed(
      dense,
      [&](const std::vector<std::int32_t>& ids, const batch_options& options) {
        return drawn_in(dense.batch, ids, options, 1);
      },
      1);
  CHECK(dense.batch.has(stays));
}

TEST_CASE("a batch's logits have the bits of a session's, and the host may draw instead") {
  both b(fable_plan(plan::profiles::cpu, {.slot_count = 3, .page_size = 32}), fable_file());
  const auto first = some_ids(37, 1, 4096), second = some_ids(5, 2, 4096);
  const batch_handle a = b.batch.join(first, {{}, 8, true}), c = b.batch.join(second, {{}, 8});
  std::vector<std::int32_t> so_far = first;
  std::vector<float> found;
  for (int i = 0; i < 7; ++i) {
    b.batch.step();
    if (b.batch.history(a).size() <= so_far.size()) continue;
    const auto logits = b.batch.logits(a);
    found.assign(logits.begin(), logits.end());
    so_far = b.batch.history(a);
    if (so_far.size() == first.size() + 2) {  // the host's choice instead of the second token
      b.batch.set_next(a, 1234);
      so_far.back() = 1234;
    }
  }
  CHECK(so_far[first.size() + 1] == 1234);
  const auto fed = std::span(so_far).first(so_far.size() - 1);
  const auto expected = b.alone.logits(fed).logits;
  CHECK(std::equal(found.begin(), found.end(), expected.end() - 4096));
  CHECK(b.batch.history(a) == so_far);
  CHECK_THROWS_AS(b.batch.logits(c), argument_error);
  CHECK_THROWS_AS(b.batch.set_next(a, 4096), argument_error);
  b.batch.leave(a);
  b.batch.leave(a);
  CHECK_THROWS_AS(b.batch.history(a), argument_error);
  CHECK(b.batch.active() == 1);
}

TEST_CASE("prompts that begin alike share their pages, which are fed once, and what does not fit is refused") {
  both b(fable_plan(plan::profiles::cpu, {.slot_count = 3, .page_size = 16, .pages = 9}), fable_file());
  const auto ids = some_ids(50, 3, 4096);
  auto other = ids;
  other[40] = 7;  // parts in the third page
  const batch_options options{{.temperature = 0.8f, .seed = 3}, 14};
  const auto expected = b.drawn_alone(ids, options), expected_other = b.drawn_alone(other, options);
  const auto collect = [&](std::initializer_list<batch_handle> whose) {
    std::map<std::uint64_t, std::vector<std::int32_t>> out;
    for (int i = 0; b.batch.active() != 0 && i < 100; ++i)
      for (const batch_token& token : b.batch.step()) out[token.of.number].push_back(token.id);
    std::vector<std::vector<std::int32_t>> lists;
    for (const batch_handle each : whose) lists.push_back(out[each.number]);
    return lists;
  };
  const batch_handle first = b.batch.join(ids, options);
  CHECK(b.batch.free_pages() == 5);  // of 9, for 63 positions
  const batch_handle second = b.batch.join(ids, options);
  CHECK(b.batch.free_pages() == 1);
  CHECK_FALSE(b.batch.fits(other, 14));
  CHECK_THROWS_AS(b.batch.join(other, options), argument_error);
  CHECK(b.batch.fits(std::span(ids).first(3), 14));
  for (int i = 0; i < 3; ++i) b.batch.step();  // two chunks of the first, then the second, which finds three pages
  CHECK(b.batch.cached_tokens(first) == 0);
  CHECK(b.batch.cached_tokens(second) == 48);
  CHECK(b.batch.free_pages() == 4);
  CHECK(b.batch.fits(other, 14));  // shares two of its four
  const batch_handle third = b.batch.join(other, options);
  CHECK(b.batch.free_pages() == 2);
  CHECK_THROWS_AS(b.batch.join(std::span(ids).first(1), options), argument_error);  // no slot
  // Only what came after the first steps is collected here.
  const auto lists = collect({second, third});
  CHECK(std::equal(lists[0].rbegin(), lists[0].rend(), expected.rbegin()));
  CHECK(lists[1] == expected_other);
  CHECK(b.batch.free_pages() == 9);

  // What a session drew is remembered too: the next turn of its talk is fed from there.
  auto turn = ids;
  turn.insert(turn.end(), expected.begin(), expected.end());
  turn.insert(turn.end(), {5, 6, 7});
  const batch_handle again = b.batch.join(turn, options);
  b.batch.step();
  CHECK(b.batch.cached_tokens(again) == 48);
  CHECK(collect({again})[0].size() + 1 >= 13);
  CHECK_THROWS_AS(b.batch.join({}, options), argument_error);
  CHECK_THROWS_AS(b.batch.join(some_ids(120, 1, 4096), options), argument_error);  // past the context
  CHECK_THROWS_AS(b.batch.join(ids, {{}, 0}), argument_error);
  CHECK_THROWS_AS(b.batch.join(std::array{4096}, options), argument_error);
}

TEST_CASE(
    "a session whose logits are no numbers leaves alone; the others, and who has its slot and its pages next, draw "
    "what they draw alone") {
  const temporary_folder folder;
  std::ofstream(folder / "spoiled.gguf", std::ios::binary) << spoiled_llama();
  // As many pages as the sessions have, so that pages of sessions that left are taken again at once.
  both b(plan::planned::of<models::llama<llama_tiny, dtype::f32, dtype::f32, dtype::f32>>(
             plan::profiles::cpu, 128, {.slot_count = 3, .page_size = 8, .pages = 20}),
         io::checkpoint::open(folder / "spoiled.gguf"),
         false);  // whose proof has no room for such weights
  const batch_options options{{.temperature = 0.9f, .seed = 4}, 20};
  const auto first = some_ids(20, 1, 600), second = some_ids(45, 2, 600);
  auto bad = some_ids(30, 3, 600), same = bad;
  bad[17] = spoiling;
  const auto expected = b.drawn_alone(first, options), expected_second = b.drawn_alone(second, options),
             expected_same = b.drawn_alone(same, options);
  std::map<std::uint64_t, std::vector<std::int32_t>> got;
  std::vector<std::uint64_t> failed;
  const auto step = [&](std::uint32_t tokens) {
    for (const batch_token& token : b.batch.step(tokens)) {
      if (token.finite) {
        got[token.of.number].push_back(token.id);
        continue;
      }
      CHECK((token.id == -1 && token.last));
      CHECK_FALSE(b.batch.has(token.of));
      failed.push_back(token.of.number);
    }
  };
  const batch_handle one = b.batch.join(first, options);
  step(1);
  const batch_handle spoils = b.batch.join(bad, options);
  const batch_handle fed_next =
      b.batch.join(second, options);  // 45 tokens are two chunks: the caches are cleaned between them
  for (int i = 0; i < 3; ++i) step(2);
  CHECK(failed == std::vector{spoils.number});
  CHECK(b.batch.active() == 2);
  // It is refused again, and leaves nothing behind.
  const batch_handle again = b.batch.join(bad, options);
  step(1);
  step(1);
  CHECK(failed == std::vector{spoils.number, again.number});
  CHECK(b.batch.cached_tokens(again) == 0);
  const batch_handle in_its_place = b.batch.join(same, options);
  for (int i = 0; b.batch.active() != 0 && i < 100; ++i) step(1);
  CHECK(failed.size() == 2);
  CHECK(got[one.number] == expected);
  CHECK(got[fed_next.number] == expected_second);
  CHECK(got[in_its_place.number] == expected_same);
  CHECK(b.batch.free_pages() == 20);
  // Alone it is the same.
  b.batch.join(bad, options);
  for (int i = 0; b.batch.active() != 0 && i < 10; ++i) step(3);
  CHECK(failed.size() == 3);
}

TEST_CASE(
    "sessions take pages as they grow: who joined last gives way, waits, and goes on with the same tokens; nobody "
    "joins meanwhile",
    "[dear]") {
  both b(fable_plan(plan::profiles::cpu, {.slot_count = 4, .page_size = 8, .pages = 20}),
         fable_file());  // 160 positions; all four want up to 4 x 119
  std::vector<std::vector<std::int32_t>> ids, expected, got(4);
  std::vector<batch_handle> who;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const batch_options options{{.temperature = i == 2 ? 0.f : 0.9f, .repeat_penalty = 1.1f, .seed = i}, 100, i == 3};
    ids.push_back(some_ids(4 + 5 * i, 20 + i, 4096));
    expected.push_back(b.drawn_alone(ids[i], options));
    if (b.batch.fits(ids[i], options.max_tokens)) who.push_back(b.batch.join(ids[i], options));
  }
  CHECK(who.size() == 2);  // each takes 64 positions ahead
  std::uint32_t waited = 0;
  for (std::uint32_t i = 0; who.size() < 4 || b.batch.active() != 0; ++i) {
    REQUIRE(i < 1000);
    for (const batch_token& token : b.batch.step(i % 4 == 3 ? 2 : 1))
      for (std::size_t at = 0; at < who.size(); ++at)
        if (who[at] == token.of) got[at].push_back(token.id);
    const std::uint32_t waiting = b.batch.waiting_for_pages();
    waited += waiting;
    if (waiting != 0) {
      CHECK_FALSE(b.batch.fits(std::span(ids[0]).first(1), 1));
      CHECK_THROWS_AS(b.batch.join(std::span(ids[0]).first(1), {{}, 1}), argument_error);
    }
    const auto next = static_cast<std::uint32_t>(who.size());
    if (next < 4 && b.batch.fits(ids[next], 100))
      who.push_back(b.batch.join(
          ids[next], {{.temperature = next == 2 ? 0.f : 0.9f, .repeat_penalty = 1.1f, .seed = next}, 100, next == 3}));
  }
  CHECK(waited != 0);
  CHECK(got == expected);
  CHECK(b.batch.free_pages() == 20);
}
