// SPDX-License-Identifier: MIT
// Llama, Mistral and Gemma 3, file to logits and tokens, against transformers and, for blocks, float64 on the decoded
// weights: every form of the conformance set at most 1e-3 apart in all logits, and all greedy tokens. Plans are made at
// run time (plan/planned.hpp), the same as engraved ones.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

constexpr decoder_config llama_tiny{.model_type = architecture::llama,
                                    .hidden_size = 256,
                                    .intermediate_size = 768,
                                    .num_hidden_layers = 3,
                                    .num_attention_heads = 8,
                                    .num_key_value_heads = 2,
                                    .head_dim = 32,
                                    .vocab_size = 1024,
                                    .max_position_embeddings = 1024,
                                    .rope_theta = 500'000.f,
                                    .hidden_act = activation::silu,
                                    .tie_word_embeddings = false};
constexpr decoder_config llama_tiny_scaled = [] {
  auto out = llama_tiny;
  out.rope_scaling = {rope_type::llama3, 8.f, 1.f, 4.f, 64};
  return out;
}();
constexpr decoder_config mistral_tiny = [] {
  auto out = llama_tiny;
  out.num_key_value_heads = 4, out.vocab_size = 1000, out.rope_theta = 10'000.f;
  return out;
}();
constexpr decoder_config mistral_tiny_windowed = [] {
  auto out = mistral_tiny;
  out.sliding_window = 48;
  return out;
}();
constexpr decoder_config gemma3_tiny{.model_type = architecture::gemma3,
                                     .hidden_size = 256,
                                     .intermediate_size = 512,
                                     .num_hidden_layers = 7,
                                     .num_attention_heads = 4,
                                     .num_key_value_heads = 1,
                                     .head_dim = 64,
                                     .vocab_size = 1024,
                                     .max_position_embeddings = 1024,
                                     .rope_theta = 1e6f,
                                     .rope_scaling = {rope_type::linear, 8.f},
                                     .rms_norm_eps = 1e-6f,
                                     .hidden_act = activation::gelu_tanh,
                                     .sliding_window = 32,
                                     .sliding_window_pattern = 6,
                                     .rope_local_base_freq = 1e4f};
constexpr decoder_config gemma3_tiny_scalar = [] {
  auto out = gemma3_tiny;
  out.query_pre_attn_scalar = 96;
  return out;
}();

// The cache rounds nothing here, since the goldens come from one that does not.
constexpr plan::profile exact_portable = [] {
  auto out = plan::profiles::exact;
  out.cache_element = kernels::element::f32;
  return out;
}();
static_assert(plan::profiles::cpu.cache_element == kernels::element::f32);

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}
std::vector<float> read_npy(const std::filesystem::path& path) {
  constexpr std::size_t header = 128;
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  REQUIRE(bytes.size() > header);
  std::vector<float> out((bytes.size() - header) / 4);
  std::memcpy(out.data(), bytes.data() + header, out.size() * 4);
  return out;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    ab += static_cast<double>(a[i]) * b[i], aa += static_cast<double>(a[i]) * a[i],
        bb += static_cast<double>(b[i]) * b[i];
  return ab / std::sqrt(aa * bb);
}

/// How far an arithmetic may be from the goldens; greedy tokens count while the best two logits are further apart than
/// `margin`.
struct tolerance {
  double apart, cosine, margin;
};
constexpr tolerance of_f32{1e-3, 0, -1},
    of_f16{0.3, 0.9999, 0.3};  // the set's own, for float32 and float16 activations

/// One model of the set.
struct tiny {
  std::string model;
  std::filesystem::path folder = conformance(model);
  nlohmann::json prompts = read_json(shared("conformance/models.json"))["models"][model]["prompts"];
  nlohmann::json manifest = read_json(shared("conformance/" + model + "/manifest.json"));

  /// Runs a file of the model by `table` and holds it against the goldens of a variant.
  void check(const checked_device& on, const plan::table& table, const std::string& file, const std::string& variant,
             std::initializer_list<const char*> which, const tolerance& allowed = of_f32) const {
    const std::array<const plan::table*, 1> tables{&table};
    basic_session session(on.device, tables, io::checkpoint::open(folder / file), {.cache_folder = ""});
    const auto found =
        std::ranges::find_if(manifest["variants"], [&](const auto& each) { return each["name"] == variant; });
    REQUIRE(found != manifest["variants"].end());
    for (const char* name : which) {
      INFO(file << ", prompt " << name);
      const auto ids = prompts[name].get<std::vector<std::int32_t>>();
      const auto expected = read_npy(shared("conformance/" + model + "/goldens/" + variant + "/logits_" + name +
                                            (ids.size() == 17 ? "_all.npy" : "_last.npy")));
      session.reset();
      const auto logits = session.logits(ids).logits;
      REQUIRE(logits.size() >= expected.size());
      const auto last = std::span(logits).last(expected.size());
      double apart = 0;
      for (std::size_t i = 0; i < expected.size(); ++i)
        apart = std::max(apart, std::abs(static_cast<double>(last[i]) - static_cast<double>(expected[i])));
      CHECK(apart <= allowed.apart);
      const std::size_t vocabulary = table.config->vocab_size;
      for (std::size_t at = 0; at < expected.size(); at += vocabulary)
        CHECK(cosine(last.subspan(at, vocabulary), std::span(expected).subspan(at, vocabulary)) >= allowed.cosine);
      session.reset();
      auto greedy = (*found)["greedy"][name]["tokens"].get<std::vector<std::int32_t>>();
      const auto margins = (*found)["greedy"][name]["margins"].get<std::vector<double>>();
      greedy.resize(static_cast<std::size_t>(
          std::ranges::find_if(margins, [&](double each) { return each <= allowed.margin; }) - margins.begin()));
      REQUIRE(!greedy.empty());
      CHECK(
          session.generate(ids, {.max_tokens = static_cast<std::uint32_t>(greedy.size()), .stop_at_end = false}).ids ==
          greedy);
    }
  }
};

/// The plan for the device at hand.
template <class Model>
plan::planned plan_for(const checked_device& on) {
  return plan::planned::of<Model>(on.on_cpu() ? plan::profiles::cpu : exact_portable);
}

template <dtype W, dtype H = W>
using llama_in = models::llama<llama_tiny, W, H, dtype::f32>;
template <dtype W>
using gemma_in = models::gemma3<gemma3_tiny, W, dtype::f32>;

constexpr std::initializer_list<const char*> all_prompts{"p1", "p17", "p100", "p200"}, one_prompt{"p17"};

}  // namespace

TEST_CASE("llama-tiny gives the goldens of transformers in every float form", "[once]") {
  const tiny model{"llama-tiny"};
  checked_device on;
  const plan::planned f16 = plan_for<llama_in<dtype::f16>>(on), f32 = plan_for<llama_in<dtype::f32>>(on),
                      bf16 = plan_for<llama_in<dtype::bf16>>(on);
  model.check(on, f16.table(), "hf", "base", all_prompts);
  for (const char* file : {"hf-sharded", "hf-v5", "gguf/llama-tiny-f16.gguf"})
    model.check(on, f16.table(), file, "base", one_prompt);
  model.check(on, f32.table(), "gguf/llama-tiny-f32.gguf", "base", one_prompt);
  model.check(on, bf16.table(), "gguf/llama-tiny-bf16.gguf", "base", one_prompt);
}

TEST_CASE("llama-tiny gives the goldens of its scaled rotation") {
  const tiny model{"llama-tiny"};
  checked_device on;
  const plan::planned scaled = plan_for<models::llama<llama_tiny_scaled, dtype::f16>>(on);
  model.check(on, scaled.table(), "hf-rope31", "rope31", all_prompts);
  model.check(on, scaled.table(), "gguf/llama-tiny-rope31-f16.gguf", "rope31", one_prompt);
}

TEST_CASE("mistral-tiny gives the goldens of transformers with and without a window", "[once]") {
  const tiny model{"mistral-tiny"};
  checked_device on;
  const plan::planned plain = plan_for<models::llama<mistral_tiny, dtype::f16>>(on),
                      windowed = plan_for<models::llama<mistral_tiny_windowed, dtype::f16>>(on);
  const plan::planned f32 = plan_for<models::llama<mistral_tiny, dtype::f32>>(on);
  model.check(on, plain.table(), "hf", "base", all_prompts);
  for (const char* file : {"hf-v5", "hf-bin", "orig", "gguf/mistral-tiny-f16.gguf", "gguf/mistral-tiny-f32.gguf"})
    model.check(on, plain.table(), file, "base", one_prompt);
  model.check(on, windowed.table(), "hf-swa", "swa", all_prompts);
  model.check(on, windowed.table(), "orig-swa", "swa", one_prompt);
  model.check(on, f32.table(), "gguf/mistral-tiny-q4_k_m.gguf", "q4_k_m", one_prompt);
}

TEST_CASE("gemma3-tiny gives the goldens of transformers in every float form", "[once]") {
  const tiny model{"gemma3-tiny"};
  checked_device on;
  const plan::planned bf16 = plan_for<models::gemma3<gemma3_tiny, dtype::bf16>>(on),
                      f16 = plan_for<models::gemma3<gemma3_tiny, dtype::f16>>(on),
                      f32 = plan_for<gemma_in<dtype::f32>>(on),
                      scalar = plan_for<models::gemma3<gemma3_tiny_scalar, dtype::f32>>(on);
  model.check(on, bf16.table(), "hf", "base", all_prompts);
  for (const char* file : {"hf-v5", "hf-mm", "gguf/gemma3-tiny-bf16.gguf"})
    model.check(on, bf16.table(), file, "base", one_prompt);
  model.check(on, f16.table(), "gguf/gemma3-tiny-f16.gguf", "base", one_prompt);
  model.check(on, f32.table(), "gguf/gemma3-tiny-f32.gguf", "base", one_prompt);
  model.check(on, f32.table(), "gguf/gemma3-tiny-q4_k_m.gguf", "q4_k_m", one_prompt);
  model.check(on, scalar.table(), "hf-qpas", "qpas", one_prompt);
}

TEST_CASE("stories260K tells the golden story", "[once]") {
  checked_device on;
  const plan::planned plan = plan_for<models::stories260k<dtype::f32>>(on);
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, io::checkpoint::open(shared("models/stories260k/stories260K-f32.gguf")),
                        {.cache_folder = ""});
  const auto golden = read_json(shared("models/goldens/stories260k.json"));
  std::ifstream in(shared("models/goldens/stories260k-logits.f32"), std::ios::binary);
  std::vector<float> expected(golden["prompts"].size() * 512);
  in.read(reinterpret_cast<char*>(expected.data()), static_cast<std::streamsize>(expected.size() * 4));
  REQUIRE(in);
  for (const auto& prompt : golden["prompts"]) {
    const auto ids = prompt["ids"].get<std::vector<std::int32_t>>();
    const auto row = std::span(expected).subspan(prompt["logits_row"].get<std::size_t>() * 512, 512);
    session.reset();
    const auto logits = session.logits(ids).logits;
    double apart = 0;
    for (std::size_t i = 0; i < 512; ++i)
      apart =
          std::max(apart, std::abs(static_cast<double>(std::span(logits).last(512)[i]) - static_cast<double>(row[i])));
    CHECK(apart <= 1e-3);
    session.reset();
    const auto greedy = prompt["greedy"].get<std::vector<std::int32_t>>();
    const generation generated =
        session.generate(ids, {.max_tokens = static_cast<std::uint32_t>(greedy.size()), .stop_at_end = false});
    CHECK(generated.ids == greedy);
    // Without a text in front of it the first piece still has the blank that SentencePiece puts in front of a text.
    std::string_view story = generated.text;
    if (ids.size() == 1 && story.starts_with(' ')) story.remove_prefix(1);
    CHECK(prompt["greedy_text"].get<std::string>().ends_with(story));
  }
}

// Blocks: goldens of float64 on the decoded weights. A codec in one family, since its products' bits are held in every
// form by tests/kernels.
TEST_CASE("coded weights give the goldens of the decoded ones", "[once_plain]") {
  checked_device on;
  const tiny llama{"llama-tiny"}, gemma{"gemma3-tiny"};
  llama.check(on, plan_for<llama_in<dtype::q4_0, dtype::q6_k>>(on).table(), "gguf/llama-tiny-q4_0.gguf", "q4_0",
              one_prompt);
  llama.check(on, plan_for<llama_in<dtype::q4_1, dtype::q6_k>>(on).table(), "gguf/llama-tiny-q4_1.gguf", "q4_1",
              one_prompt);
  llama.check(on, plan_for<llama_in<dtype::q6_k>>(on).table(), "gguf/llama-tiny-q6_k.gguf", "q6_k", one_prompt);
  gemma.check(on, plan_for<gemma_in<dtype::q8_0>>(on).table(), "gguf/gemma3-tiny-q8_0.gguf", "q8_0", one_prompt);
  gemma.check(on, plan_for<gemma_in<dtype::q4_k>>(on).table(), "gguf/gemma3-tiny-q4_k.gguf", "q4_k", one_prompt);
}

TEST_CASE("a ring that went round goes back as far as it holds, and is fed anew beyond", "[once]") {
  checked_device on;
  const plan::planned windowed = plan::planned::of<models::llama<mistral_tiny_windowed, dtype::f16>>(
      plan::profiles::cpu);  // of other profiles the ring is longer
  const std::array<const plan::table*, 1> tables{&windowed.table()};
  const auto from = io::checkpoint::open(conformance("mistral-tiny") / "hf-swa");
  basic_session used(on.device, tables, from, {.cache_folder = ""}),
      fresh(on.device, tables, from, {.cache_folder = ""});
  std::vector<std::int32_t> ids(900);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(3 + i * i * 37 % 990);
  const plan::layer_cache& ring = windowed.table().cache_of(0);
  REQUIRE(ring.window == 48);
  REQUIRE(ring.positions < ids.size() - 200);  // it goes round
  const generate_options greedy{.max_tokens = 6, .stop_at_end = false};
  std::size_t held = 0;
  for (const std::uint32_t cut : {899u, 640u, 30u}) {
    INFO("back to " << cut);
    used.generate(ids, greedy);
    held += ring.holds(cut, 905);
    std::vector<std::int32_t> other(ids.begin(), ids.begin() + cut);
    other.insert(other.end(), {11, 12, 13});
    fresh.reset();
    CHECK(used.generate(other, greedy).ids == fresh.generate(other, greedy).ids);
  }
  CHECK(held >= 1);
  CHECK(held <= 2);
}

// BCML1 has its rows in panels; they are taken as Q4_1's blocks of the same values.
TEST_CASE("BCML1 weights give what the decoded ones give, in prompts and in decode", "[once]") {
  const tiny model{"llama-tiny"};
  const temporary_folder folder;
  const auto panels = folder / "bcml1.gguf", decoded = folder / "decoded.gguf";
  io::convert(model.folder / "hf", panels, {.codec = dtype::bcml1});
  io::convert(panels, decoded, {.codec = dtype::f32});
  checked_device on;
  const plan::planned coded = plan_for<models::llama<llama_tiny, dtype::q4_1, dtype::f16>>(on),
                      exact = plan_for<llama_in<dtype::f32>>(on);
  const auto session = [&](const plan::planned& plan, const std::filesystem::path& file) {
    const std::array<const plan::table*, 1> tables{&plan.table()};
    return basic_session(on.device, tables, io::checkpoint::open(file), {.cache_folder = ""});
  };
  basic_session of_panels = session(coded, panels), of_floats = session(exact, decoded);
  for (const char* name : {"p17", "p100"}) {
    const auto ids = model.prompts[name].get<std::vector<std::int32_t>>();
    of_panels.reset(), of_floats.reset();
    const auto found = of_panels.logits(ids).logits, expected = of_floats.logits(ids).logits;
    REQUIRE(found.size() == expected.size());
    double apart = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      apart = std::max(apart, std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])));
    INFO(name << ": " << apart);
    CHECK(apart <= 1e-3);
    of_panels.reset(), of_floats.reset();
    const generate_options greedy{.max_tokens = 32, .stop_at_end = false};
    CHECK(of_panels.generate(ids, greedy).ids == of_floats.generate(ids, greedy).ids);
  }
}

// The kernels that GPUs run, whatever device is at hand: chunks by tiles, spans of positions in workgroups of their
// own.
TEST_CASE("gemma3-tiny gives its goldens by the plan for GPUs too") {
  const tiny model{"gemma3-tiny"};
  checked_device on;
  const plan::planned bf16 = plan::planned::of<models::gemma3<gemma3_tiny, dtype::bf16>>(exact_portable);
  model.check(on, bf16.table(), "hf", "base", {"p100"});
}

// The form of any GPU, here without cooperative matrices on CPU drivers.
TEST_CASE("chunks multiplied as f16 stay as near the goldens as the set requires of float16", "[once]") {
  checked_device on;
  const plan::planned gemma = plan::planned::of<gemma_in<dtype::q8_0>>(plan::profiles::portable),
                      llama = plan::planned::of<llama_in<dtype::q4_k>>(plan::profiles::portable);
  tiny{"gemma3-tiny"}.check(on, gemma.table(), "gguf/gemma3-tiny-q8_0.gguf", "q8_0", {"p100"}, of_f16);
  tiny{"llama-tiny"}.check(on, llama.table(), "gguf/llama-tiny-q4_k.gguf", "q4_k", {"p17"}, of_f16);
}
