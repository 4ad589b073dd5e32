// SPDX-License-Identifier: MIT
// Sessions whose caches hold codes (kernels/cache_layout.hpp): the reference's bits alone, in a batch and after a
// file, and how far they are from a cache of floats.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <span>
#include <tuple>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/logits_apart.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;
using kernels::element;

namespace {

basic_session session_of(const checked_device& on, const plan::table& table, const io::checkpoint& file) {
  const std::array<const plan::table*, 1> tables{&table};
  return basic_session(on.device, tables, file, {.cache_folder = ""});  // proves the kernels
}

struct likeness {
  double apart = 0;                       ///< largest difference of logits, in parts of the largest logit
  std::size_t agreed = 0, positions = 0;  ///< positions of one text whose most likely successor is the same
};
/// Compares logits of a model with a coded cache and with a cache of floats, over one text.
likeness compared(const std::vector<float>& coded, const std::vector<float>& floats, std::size_t vocabulary) {
  likeness out;
  const logit_distance between = logits_apart(std::span(coded), std::span(floats));
  out.apart = between.apart / between.largest;
  const auto best = [&](const std::vector<float>& of, std::size_t at) {
    const auto row = std::span(of).subspan(at * vocabulary, vocabulary);
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  out.positions = floats.size() / vocabulary;
  for (std::size_t i = 0; i < out.positions; ++i) out.agreed += best(coded, i) == best(floats, i);
  return out;
}

/// Two sessions of a batch, one joining later, against a session alone.
void check_batch(const checked_device& on, const plan::table& table, const io::checkpoint& file, basic_session& alone,
                 const std::vector<std::int32_t>& ids) {
  const std::array<const plan::table*, 1> tables{&table};
  basic_batch batch(on.device, tables, file, {.cache_folder = ""});
  const std::vector<std::int32_t> other(ids.rbegin(), ids.rend());
  std::array<batch_handle, 2> who{batch.join(ids, {{}, 12}), {}};
  std::array<std::vector<std::int32_t>, 2> got;
  for (int step = 0; step == 0 || batch.active() != 0; ++step) {
    REQUIRE(step < 60);
    if (step == 2) who[1] = batch.join(other, {{.temperature = 0.8f, .seed = 3}, 12});
    for (const batch_token& token : batch.step(1))
      for (std::size_t i = 0; i < 2; ++i)
        if (token.of == who[i]) got[i].push_back(token.id);
  }
  alone.reset();
  CHECK(got[0] == alone.generate(ids, {.temperature = 0, .max_tokens = 12, .stop_at_end = false}).ids);
  alone.reset();
  CHECK(got[1] == alone.generate(other, {.temperature = 0.8f, .seed = 3, .max_tokens = 12, .stop_at_end = false}).ids);
}

}  // namespace

TEST_CASE("a coded cache of fable: near the logits of floats, the same tokens alone, in a batch and after a file") {
  checked_device on;
  const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const auto plan_of = [](const plan::profile& target) {
    return plan::planned::of<models::fable>(target, 200, {.slot_count = 3, .page_size = 16});
  };
  const plan::planned with_floats = plan_of(plan::profiles::cpu);
  basic_session floats = session_of(on, with_floats.table(), file);
  const auto ids = floats.encode(
      "Once upon a time, there was a little fox who lived in a big, dark forest with his mother. One day he found a "
      "red "
      "ball under a tree. He wanted to play with it, but the ball was stuck. The fox asked the owl for help.");
  const auto expected = floats.logits(ids).logits;
  for (const auto& [type, apart, agreed] : {std::tuple{element::q8_0, 0.02, 0.95}, {element::q4_0, 0.3, 0.7}}) {
    INFO(kernels::cache_codec_of(type).name);
    const plan::planned plan = plan_of(plan::with_cache(plan::profiles::cpu, type));
    CHECK(plan.table().cache_bytes() < with_floats.table().cache_bytes() / (type == element::q8_0 ? 3 : 6));
    CHECK(plan.table().hash != with_floats.table().hash);
    basic_session session = session_of(on, plan.table(), file);
    const likeness found = compared(session.logits(ids).logits, expected, file.config().vocab_size);
    INFO("apart " << found.apart << ", agreed " << found.agreed << " of " << found.positions);
    CHECK(found.apart > 0);
    CHECK(found.apart < apart);
    CHECK(static_cast<double>(found.agreed) >= agreed * static_cast<double>(found.positions));
    check_batch(on, plan.table(), file, session, ids);

    const temporary_folder folder;
    session.reset();
    session.generate(ids, {.temperature = 0, .max_tokens = 7, .stop_at_end = false});
    session.save(folder / "session");
    const auto uninterrupted = session.generate({.temperature = 0, .max_tokens = 9, .stop_at_end = false}).ids;
    basic_session other = session_of(on, plan.table(), file);
    other.restore(folder / "session");
    const auto again = other.generate({.temperature = 0, .max_tokens = 9, .stop_at_end = false});
    CHECK(again.ids == uninterrupted);
    CHECK(again.timings.prompt_tokens == 1);
    CHECK_THROWS_AS(floats.restore(folder / "session"), file_error);
  }
}

TEST_CASE("a coded cache of profiles for GPUs: prompts by chunks of f16, windows as rings, a batch's pool") {
  checked_device on;
  const io::checkpoint llama = io::checkpoint::open(conformance("llama-tiny") / "hf"),
                       gemma = io::checkpoint::open(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf");
  std::vector<std::int32_t> ids(90);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>((i * 7919 + 5) % 1000);
  const auto plan_of = [](const plan::profile& target) {
    return plan::planned::of<models::llama<llama_tiny, dtype::f16, dtype::f16, dtype::f32>>(
        target, 128, {.slot_count = 3, .page_size = 8});
  };
  const plan::planned exact = plan_of(plan::with_cache(plan::profiles::exact, element::q8_0)),
                      f16 = plan_of(plan::with_cache(plan::profiles::portable, element::q8_0)),
                      floats = plan_of(plan::profiles::portable);
  CHECK(f16.table().resident_decode.layers == 0);
  CHECK(f16.table().resident_batch.layers == 0);
  basic_session one = session_of(on, floats.table(), llama), two = session_of(on, f16.table(), llama),
                three = session_of(on, exact.table(), llama);
  CHECK(compared(two.logits(ids).logits, one.logits(ids).logits, llama_tiny.vocab_size).apart < 0.05);
  check_batch(on, exact.table(), llama, three, ids);

  const auto windows = [](const plan::profile& target) {
    return plan::planned::of<models::gemma3<gemma3_tiny, dtype::q8_0, dtype::f32>>(target, 512);
  };
  const plan::planned coded = windows(plan::with_cache(plan::profiles::cpu, element::q8_0)),
                      whole = windows(plan::profiles::cpu);
  CHECK(coded.table().caches[0].positions < 512);
  std::vector<std::int32_t> longer(240);
  for (std::size_t i = 0; i < longer.size(); ++i) longer[i] = static_cast<std::int32_t>((i * 104'729 + 7) % 1000);
  basic_session four = session_of(on, whole.table(), gemma), five = session_of(on, coded.table(), gemma);
  four.prefill(longer), five.prefill(longer);
  CHECK(compared(five.logits(ids).logits, four.logits(ids).logits, gemma3_tiny.vocab_size).apart < 0.05);
}
