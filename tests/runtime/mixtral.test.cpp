// SPDX-License-Identifier: MIT
// A mixture of experts, file to logits and tokens, against a forward pass in double precision that shares nothing with
// the kernels.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "gpu/checked_device.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "io/vocabularies.hpp"
#include "mixtral_model.hpp"
#include "runtime/logits_apart.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using testing::mixtral_model, testing::mixtral_tiny;

namespace {

using in_f32 = models::mixtral<mixtral_tiny, dtype::f32, dtype::f32, dtype::f32>;
// The kernels that GPUs run, with a cache that rounds nothing.
constexpr plan::profile exact_portable = [] {
  auto out = plan::profiles::exact;
  out.cache_element = kernels::element::f32;
  return out;
}();

const mixtral_model& model() {
  static const mixtral_model made(mixtral_tiny, 11);
  return made;
}
const std::vector<std::int32_t>& prompt() {
  static const std::vector<std::int32_t> ids = [] {
    std::vector<std::int32_t> out;
    for (std::int32_t i = 0; i < 37; ++i) out.push_back(i * 53 % 288);
    return out;
  }();
  return ids;
}
const std::vector<std::vector<double>>& expected() {
  static const auto found = model().logits(prompt());
  return found;
}

double apart(std::span<const float> found, std::span<const double> wanted) { return logits_apart(found, wanted).apart; }

void check(const checked_device& on, const plan::table& table, io::checkpoint file) {
  const std::array<const plan::table*, 1> tables{&table};
  basic_session session(on.device, tables, std::move(file), {.cache_folder = ""});
  // All at once, as a prompt, and then a token at a time.
  const auto whole = session.logits(prompt()).logits;
  REQUIRE(whole.size() == prompt().size() * 288);
  double worst = 0;
  for (std::size_t t = 0; t < prompt().size(); ++t)
    worst = std::max(worst, apart(std::span(whole).subspan(t * 288, 288), expected()[t]));
  CHECK(worst <= 5e-5);
  session.reset();
  static const auto greedy = model().greedy(prompt(), 12);
  CHECK(session.generate(prompt(), {.max_tokens = 12, .stop_at_end = false}).ids == greedy);
}

}  // namespace

TEST_CASE("Mixtral's routing gives the logits and tokens of a forward pass in double precision", "[once_plain]") {
  checked_device on;
  const temporary_folder folder;
  auto words = small_sentencepiece();
  for (std::size_t i = words.tokens.size(); i < mixtral_tiny.vocab_size; ++i)
    words.tokens.push_back("piece" + std::to_string(i)), words.token_types.push_back(1), words.scores.push_back(-100);
  model().write_gguf(folder / "tiny.gguf", words);
  const plan::planned chained = plan::planned::of<in_f32>(plan::profiles::cpu),
                      tiled = plan::planned::of<in_f32>(exact_portable);
  check(on, chained.table(), io::checkpoint::open(folder / "tiny.gguf"));
  check(on, tiled.table(), io::checkpoint::open(folder / "tiny.gguf"));
  CHECK(model().chosen().size() == mixtral_tiny.num_local_experts);  // every expert had tokens
}

TEST_CASE("a Hugging Face folder, whose experts are tensors of their own, gives the same", "[once]") {
  checked_device on;
  const temporary_folder folder;
  model().write_hf(folder.path());
  const auto file = io::checkpoint::open(folder.path());
  CHECK(file.config() == mixtral_tiny);
  const plan::planned chained = plan::planned::of<in_f32>(plan::profiles::cpu);
  check(on, chained.table(), io::checkpoint::open(folder.path()));
}

namespace {

/// Logits of 33 tokens in chunks of 16, 16 and 1, whose experts have lists of tokens, and token by token.
template <class Model>
void check_chunks(const checked_device& on, const std::filesystem::path& file, plan::profile profile) {
  const auto logits_of = [&](std::uint32_t tokens) {
    profile.prefill_tokens = profile.logits_tokens = tokens;
    profile.work.tile_tokens = profile.verify_tokens = std::min(tokens, 8u);
    const plan::planned made = plan::planned::of<Model>(profile);
    const auto lists = std::ranges::count_if(
        made.table().logits.period, [](const plan::dispatch& d) { return d.kernel == kernels::kernel::expert_tiles; });
    CHECK(lists == (tokens == 1 ? 0 : 1));
    const std::array<const plan::table*, 1> tables{&made.table()};
    basic_session session(on.device, tables, io::checkpoint::open(file), {.cache_folder = ""});
    return session.logits(std::span(prompt()).first(33)).logits;
  };
  const auto chunks = logits_of(16), alone = logits_of(1);
  REQUIRE(chunks.size() == 33 * 288);
  CHECK(std::memcmp(chunks.data(), alone.data(), 4 * chunks.size()) == 0);
}

}  // namespace

TEST_CASE("a chunk whose tokens are taken by expert has the bits of token by token, of dense weights and of blocks",
          "[once]") {
  checked_device on;
  const temporary_folder folder;
  auto words = small_sentencepiece();
  for (std::size_t i = words.tokens.size(); i < mixtral_tiny.vocab_size; ++i)
    words.tokens.push_back("piece" + std::to_string(i)), words.token_types.push_back(1), words.scores.push_back(-100);
  model().write_gguf(folder / "tiny.gguf", words);
  check_chunks<models::mixtral<mixtral_tiny, dtype::q8_0, dtype::f32, dtype::f32>>(on, folder / "tiny.gguf",
                                                                                   exact_portable);
  check_chunks<models::mixtral<mixtral_tiny, dtype::bf16, dtype::f32, dtype::f32>>(on, folder / "tiny.gguf",
                                                                                   exact_portable);
  check_chunks<models::mixtral<mixtral_tiny, dtype::q4_0, dtype::f32, dtype::f32>>(on, folder / "tiny.gguf",
                                                                                   plan::profiles::cpu);
}

TEST_CASE(
    "chunks whose products besides the experts' round to f16 give the logits of exact chunks to 5e-3 of the largest, "
    "and their tokens",
    "[once]") {
  using in_f16 = models::mixtral<mixtral_tiny, dtype::f16, dtype::f16, dtype::f16>;
  checked_device on;
  const temporary_folder folder;
  auto words = small_sentencepiece();
  for (std::size_t i = words.tokens.size(); i < mixtral_tiny.vocab_size; ++i)
    words.tokens.push_back("piece" + std::to_string(i)), words.token_types.push_back(1), words.scores.push_back(-100);
  model().write_gguf(folder / "tiny.gguf", words);
  const plan::planned f16 = plan::planned::of<in_f16>(plan::profiles::portable),
                      exact = plan::planned::of<in_f16>(plan::profiles::exact);
  const auto is_halved = [](const plan::planned& of) {
    const auto& period = of.table().prefill.period;
    return std::any_of(period.begin(), period.end(),
                       [](const plan::dispatch& d) { return d.kernel == kernels::kernel::matmul_chunk; });
  };
  CHECK(is_halved(f16));
  CHECK_FALSE(is_halved(exact));
  const auto run = [&](const plan::planned& of) {
    const std::array<const plan::table*, 1> tables{&of.table()};
    basic_session session(on.device, tables, io::checkpoint::open(folder / "tiny.gguf"), {.cache_folder = ""});
    auto logits = session.logits(prompt()).logits;
    session.reset();
    return std::pair(std::move(logits), session.generate(prompt(), {.max_tokens = 12, .stop_at_end = false}).ids);
  };
  const auto [rounded, tokens] = run(f16);
  const auto [wanted, expected_tokens] = run(exact);
  REQUIRE(rounded.size() == wanted.size());
  const auto [worst, largest] = logits_apart(std::span(rounded), std::span(wanted));
  INFO("largest logit " << largest << ", apart by " << worst);
  CHECK(worst > 0);  // 0.011 of 7.7 on llvmpipe; 0: nothing was rounded
  CHECK(worst <= 5e-3 * largest);
  CHECK(tokens == expected_tokens);
}
