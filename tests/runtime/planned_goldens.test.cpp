// SPDX-License-Identifier: MIT
// Files of families, planned by their own configs at run time, against goldens of transformers
// (shared/conformance2/README.md says how they were made and how far implementations agree).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

std::vector<float> read_npy(const std::filesystem::path& path) {
  constexpr std::size_t header = 128;
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  INFO(path.string());
  REQUIRE(bytes.size() > header);
  std::vector<float> out((bytes.size() - header) / 4);
  std::memcpy(out.data(), bytes.data() + header, out.size() * 4);
  return out;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double out = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    out = std::max(out, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return out;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    ab += x * y, aa += x * x, bb += y * y;
  }
  return ab / std::sqrt(aa * bb);
}

struct golden_file {
  const char *model, *variant, *path;
  std::uint32_t context = 256;  ///< of the plan: longer prompts are left out
  std::size_t least = 1;        ///< tokens of the shortest prompt that is asked
};
std::ostream& operator<<(std::ostream& out, const golden_file& of) { return out << of.model << "/" << of.path; }

/// Files without blocks.
constexpr golden_file of_families[] = {{"gemma2-tiny", "base", "gguf/gemma2-tiny-bf16.gguf"},
                                       {"gemma2-tiny", "base", "gguf/gemma2-tiny-f32.gguf"},
                                       {"gemma2-tiny", "base", "hf"},
                                       {"gemma2-tiny", "qpas", "hf-qpas"},
                                       {"gemma4-tiny", "base", "gguf/gemma4-tiny-bf16.gguf"},
                                       {"gemma4-tiny", "base", "gguf/gemma4-tiny-f32.gguf"},
                                       {"gemma4-tiny", "base", "hf"},
                                       {"gemma4d-tiny", "base", "gguf/gemma4d-tiny-bf16.gguf"},
                                       {"gemma4d-tiny", "base", "gguf/gemma4d-tiny-f32.gguf"},
                                       {"gemma4d-tiny", "base", "hf"},
                                       {"gptoss-tiny", "base", "hf"},
                                       {"gptoss-tiny", "base", "hf-deq"},
                                       {"gptoss-tiny", "trunc", "gguf/gptoss-tiny-bf16.gguf"},
                                       {"gptoss-tiny", "trunc", "gguf/gptoss-tiny-deq-f32.gguf"},
                                       {"gptoss-tiny", "trunc", "gguf/gptoss-tiny-f32.gguf"},
                                       {"gptoss-tiny", "trunc", "hf-trunc"},
                                       {"granite-tiny", "base", "gguf/granite-tiny-bf16.gguf"},
                                       {"granite-tiny", "base", "gguf/granite-tiny-f32.gguf"},
                                       {"granite-tiny", "base", "hf"},
                                       {"lfm2-tiny", "base", "gguf/lfm2-tiny-bf16.gguf"},
                                       {"lfm2-tiny", "base", "gguf/lfm2-tiny-f32.gguf"},
                                       {"lfm2-tiny", "base", "hf"},
                                       {"llamabit-tiny", "a8", "gguf/llamabit-tiny-i2_s.gguf"},
                                       {"llamabit-tiny", "a8", "hf-bf16"},
                                       {"llamabit-tiny", "a8", "hf-bitlinear"},
                                       {"llamabit-tiny", "a8", "hf-packed"},
                                       {"llamabit-tiny", "f32act", "gguf/llamabit-tiny-bf16.gguf"},
                                       {"llamabit-tiny", "f32act", "gguf/llamabit-tiny-f32.gguf"},
                                       {"llamabit-tiny", "tq1_0", "gguf/llamabit-tiny-tq1_0.gguf"},
                                       {"llamabit-tiny", "tq2_0", "gguf/llamabit-tiny-tq2_0.gguf"},
                                       {"olmo2-tiny", "base", "gguf/olmo2-tiny-bf16.gguf"},
                                       {"olmo2-tiny", "base", "gguf/olmo2-tiny-f32.gguf"},
                                       {"olmo2-tiny", "base", "hf"},
                                       {"phi3-tiny", "base", "gguf/phi3-tiny-bf16.gguf"},
                                       {"phi3-tiny", "base", "gguf/phi3-tiny-f32.gguf"},
                                       {"phi3-tiny", "base", "hf"},
                                       {"phi3-tiny", "longlong", "gguf/phi3-tiny-longrope-bf16.gguf"},
                                       {"phi3-tiny", "longlong", "gguf/phi3-tiny-longrope-f32.gguf"},
                                       {"phi3-tiny", "longlong", "hf-longlong"},
                                       {"phi3-tiny", "longrope", "gguf/phi3-tiny-longrope-bf16.gguf", 256, 65},
                                       {"phi3-tiny", "longrope", "gguf/phi3-tiny-longrope-bf16.gguf", 64},
                                       {"phi3-tiny", "longrope", "gguf/phi3-tiny-longrope-f32.gguf", 256, 65},
                                       {"phi3-tiny", "longrope", "gguf/phi3-tiny-longrope-f32.gguf", 64},
                                       {"phi3-tiny", "longrope", "hf-longrope", 256, 65},
                                       {"phi3-tiny", "longrope", "hf-longrope", 64},
                                       {"phi3-tiny", "swa", "hf-swa"},
                                       {"qwen2-tiny", "base", "gguf/qwen2-tiny-bf16.gguf"},
                                       {"qwen2-tiny", "base", "gguf/qwen2-tiny-f32.gguf"},
                                       {"qwen2-tiny", "base", "hf"},
                                       {"qwen3-tiny", "base", "gguf/qwen3-tiny-bf16.gguf"},
                                       {"qwen3-tiny", "base", "gguf/qwen3-tiny-f32.gguf"},
                                       {"qwen3-tiny", "base", "hf"},
                                       {"qwen35-tiny", "base", "gguf/qwen35-tiny-bf16.gguf"},
                                       {"qwen35-tiny", "base", "gguf/qwen35-tiny-f32.gguf"},
                                       {"qwen35-tiny", "base", "hf"},
                                       {"qwen3moe-tiny", "base", "gguf/qwen3moe-tiny-bf16.gguf"},
                                       {"qwen3moe-tiny", "base", "gguf/qwen3moe-tiny-f32.gguf"},
                                       {"qwen3moe-tiny", "base", "hf"},
                                       {"qwen3moe-tiny", "nonorm", "hf-nonorm"},
                                       {"qwen3next-tiny", "base", "gguf/qwen3next-tiny-bf16.gguf"},
                                       {"qwen3next-tiny", "base", "gguf/qwen3next-tiny-f32.gguf"},
                                       {"qwen3next-tiny", "base", "hf"},
                                       {"qwen3u-tiny", "base", "gguf/qwen3u-tiny-bf16.gguf"},
                                       {"qwen3u-tiny", "base", "gguf/qwen3u-tiny-f32.gguf"},
                                       {"qwen3u-tiny", "base", "hf"},
                                       {"qwen3u-tiny", "q8_0", "gguf/qwen3u-tiny-q8_0.gguf"},
                                       {"smollm3-tiny", "base", "gguf/smollm3-tiny-bf16.gguf"},
                                       {"smollm3-tiny", "base", "gguf/smollm3-tiny-f32.gguf"},
                                       {"smollm3-tiny", "base", "hf"}};
/// Every matrix in one codec.
constexpr golden_file in_blocks[] = {
    {"qwen3-tiny", "q5_0", "gguf/qwen3-tiny-q5_0.gguf"},    {"qwen3-tiny", "q5_1", "gguf/qwen3-tiny-q5_1.gguf"},
    {"qwen3-tiny", "q2_k", "gguf/qwen3-tiny-q2_k.gguf"},    {"qwen3-tiny", "q3_k", "gguf/qwen3-tiny-q3_k.gguf"},
    {"qwen3-tiny", "q5_k", "gguf/qwen3-tiny-q5_k.gguf"},    {"qwen3-tiny", "iq4_nl", "gguf/qwen3-tiny-iq4_nl.gguf"},
    {"qwen3-tiny", "iq4_xs", "gguf/qwen3-tiny-iq4_xs.gguf"}};
/// Mixes of codecs as llama-quantize writes them: more bits for v and down of some layers, other codecs where rows are
/// no multiple of 256.
constexpr golden_file in_mixes[] = {{"qwen3-tiny", "q4_k_m", "gguf/qwen3-tiny-q4_k_m.gguf"},
                                    {"qwen3-tiny", "q3_k_m", "gguf/qwen3-tiny-q3_k_m.gguf"},
                                    {"qwen3-tiny", "q2_k_mix", "gguf/qwen3-tiny-q2_k_mix.gguf"},
                                    {"qwen3u-tiny", "q4_k_m", "gguf/qwen3u-tiny-q4_k_m.gguf"},
                                    {"qwen3u-tiny", "q4_k_s", "gguf/qwen3u-tiny-q4_k_s.gguf"},
                                    {"qwen3u-tiny", "q5_k_m", "gguf/qwen3u-tiny-q5_k_m.gguf"},
                                    {"qwen3u-tiny", "q3_k_m", "gguf/qwen3u-tiny-q3_k_m.gguf"},
                                    {"qwen3u-tiny", "q2_k_mix", "gguf/qwen3u-tiny-q2_k_mix.gguf"},
                                    {"qwen3u-tiny", "iq4_xs_mix", "gguf/qwen3u-tiny-iq4_xs_mix.gguf"},
                                    {"qwen3u-tiny", "q6_k", "gguf/qwen3u-tiny-q6_k.gguf"},
                                    {"qwen2-tiny", "q4_k_m", "gguf/qwen2-tiny-q4_k_m.gguf"},
                                    {"phi3-tiny", "q4_k_m", "gguf/phi3-tiny-q4_k_m.gguf"},
                                    {"gemma2-tiny", "q4_k_m", "gguf/gemma2-tiny-q4_k_m.gguf"},
                                    {"qwen3moe-tiny", "q4_k_m", "gguf/qwen3moe-tiny-q4_k_m.gguf"},
                                    {"gptoss-tiny", "mxfp4_moe", "gguf/gptoss-tiny-mxfp4_moe.gguf"},
                                    {"qwen3moe-tiny", "mxfp4_moe", "gguf/qwen3moe-tiny-mxfp4_moe.gguf"}};
/// Pairs that are not computed: the golden has a config that the file does not state.
constexpr golden_file of_other_configs[] = {
    {"llamabit-tiny", "a8", "gguf/llamabit-tiny-f32.gguf"},       // a plain Llama
    {"llamabit-tiny", "a8", "gguf/llamabit-tiny-bf16.gguf"},      // a plain Llama too
    {"llamabit-tiny", "f32act", "gguf/llamabit-tiny-i2_s.gguf"},  // inputs of I2_S are int8
    {"llamabit-tiny", "f32act", "hf-packed"},                     // inputs are int8, as quantization_config says
    {"llamabit-tiny", "f32act", "hf-bf16"},
    {"llamabit-tiny", "f32act", "hf-bitlinear"},
    {"gptoss-tiny", "base", "gguf/gptoss-tiny-f32.gguf"},  // GGUF has no key for a YaRN that is not rounded
    {"gptoss-tiny", "base", "gguf/gptoss-tiny-bf16.gguf"},
    {"gptoss-tiny", "base", "gguf/gptoss-tiny-deq-f32.gguf"}};

io::checkpoint opened(const golden_file& of) {
  return io::checkpoint::open(conformance(of.model, "conformance2", "confgen2.py") / of.path);
}

/// Whether a file stands for its family: its hidden states and the tokens after all prompts are compared.
bool is_base(const golden_file& of) {
  return std::string_view(of.path) == "hf" || std::string_view(of.path) == "hf-bitlinear";
}

/// The embedding and what each layer gives. A golden has the last norm's output too, which logits show.
/// @param positions  of the prompt that the golden has: all, or the last one
void check_hidden(std::span<const float> found, std::span<const float> expected, std::size_t width, std::size_t prompt,
                  std::size_t positions) {
  const std::size_t rows = found.size() / width / prompt;
  REQUIRE(rows * prompt * width == found.size());
  REQUIRE((rows + 1) * positions * width == expected.size());
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t row = 0; row < rows; ++row)
    CHECK(largest_difference(found.subspan(((row + 1) * prompt - positions) * width, positions * width),
                             expected.subspan(row * positions * width, positions * width)) <
          1e-3 * static_cast<double>(largest));
}

/// Logits of the prompts and the greedy tokens, of a file held in some types. Hidden states and the tokens of all
/// prompts belong to files that stand for their family; others draw those of p17.
void check_goldens(const golden_file& each, const io::checkpoint& file, const families::weight_types& types) {
  const std::filesystem::path golden = shared("conformance2") / each.model;
  const std::uint32_t context = each.context;
  const auto plans = [&](const plan::profile& target) {
    return families::planned_of(file.config(), types, each.model, target, context);
  };
  const plan::planned cpu = plans(plan::profiles::cpu), portable = plans(plan::profiles::portable);
  checked_device on;
  const std::array<const plan::table*, 2> tables{&cpu.table(), &portable.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});

  std::ifstream in(golden / "manifest.json");
  const auto manifest = nlohmann::json::parse(in);
  const auto variant =
      *std::ranges::find_if(manifest["variants"], [&](const auto& v) { return v["name"] == each.variant; });
  const auto tolerance = variant["tolerance"];
  for (const auto& [name, all] :
       {std::pair{"p4", true}, {"p17", true}, {"p1", false}, {"p100", false}, {"p200", false}}) {
    INFO(name);
    const auto ids = manifest["prompts"][name]["ids"].get<std::vector<std::int32_t>>();
    if (ids.size() > context || ids.size() < each.least) continue;
    const auto read = [&](const char* of) {
      return read_npy(golden / "goldens" / each.variant / (of + std::string(name) + (all ? "_all" : "_last") + ".npy"));
    };
    const auto expected = read("logits_");
    session.reset();
    const bool hidden = is_base(each) && !tolerance.contains("exact_prompts") && ids.size() >= 17;
    const logits_result found = session.logits(ids, 0, hidden);
    REQUIRE(found.logits.size() >= expected.size());
    const std::span<const float> last = std::span(found.logits).last(expected.size());
    // A value beside a boundary of int8 may be rounded the other way; some prompts have none.
    const bool exact = !tolerance.contains("exact_prompts") ||
                       std::ranges::count(tolerance["exact_prompts"], nlohmann::json(name)) != 0;
    CHECK(largest_difference(last, expected) <
          (exact ? 1e-3 : tolerance["float32_other_prompts"]["max_abs"].get<double>()));
    if (!exact) CHECK(cosine(last, expected) >= tolerance["float32_other_prompts"]["min_cos"].get<double>());
    if (hidden)
      check_hidden(found.hidden, read("hidden_"), file.config().hidden_size, ids.size(), all ? ids.size() : 1);
    if (!is_base(each) && name != std::string_view("p17")) continue;
    const auto tokens = variant["greedy"][name]["tokens"].get<std::vector<std::int32_t>>();
    session.reset();
    CHECK(session.generate(ids, {.max_tokens = static_cast<std::uint32_t>(tokens.size()), .stop_at_end = false}).ids ==
          tokens);
  }
}

/// Another type for each of some matrices of a layer, its values all kept.
void hold(families::weight_types& types, std::uint32_t layer, std::string_view name, dtype type) {
  types.matrices.push_back({std::string(name), type, static_cast<std::uint8_t>(layer)});
}

/// In what a file's matrices are computed: as they are stored.
families::weight_types stored_types(const io::checkpoint& file) {
  const families::file_types codecs = families::types_of(file);
  CHECK_FALSE(codecs.recoded);
  return codecs.types;
}

}  // namespace

TEST_CASE("every pair of a file and a golden is compared, but for nine whose file does not state the golden's config",
          "[once]") {
  std::vector<std::string> wanted, known;
  for (const auto& folder : std::filesystem::directory_iterator(shared("conformance2"))) {
    if (!std::filesystem::exists(folder.path() / "manifest.json")) continue;
    std::ifstream in(folder.path() / "manifest.json");
    const auto manifest = nlohmann::json::parse(in);
    for (const auto& variant : manifest["variants"])
      for (const auto& file : variant["files"])
        wanted.push_back(manifest["model"].get<std::string>() + " " + variant["name"].get<std::string>() + " " +
                         file["path"].get<std::string>());
  }
  const auto add = [&](std::span<const golden_file> files) {
    for (const golden_file& each : files)
      if (each.least == 1) known.push_back(std::string(each.model) + " " + each.variant + " " + each.path);
  };
  add(of_families), add(in_blocks), add(in_mixes), add(of_other_configs);
  CHECK(std::size(of_other_configs) == 9);
  std::ranges::sort(wanted), std::ranges::sort(known);
  CHECK(wanted.size() > 80);
  CHECK(known == wanted);
}

TEST_CASE("files of a family give the goldens of transformers", "[once]") {
  const golden_file each = GENERATE(from_range(std::begin(of_families), std::end(of_families)));
  INFO(each);
  const io::checkpoint file = opened(each);
  const families::weight_types types = stored_types(file);
  check_goldens(each, file, types);
}

TEST_CASE("files in each codec of blocks are computed as they are stored, and give the goldens", "[once]") {
  const golden_file each = GENERATE(from_range(std::begin(in_blocks), std::end(in_blocks)));
  INFO(each);
  const io::checkpoint file = opened(each);
  const families::weight_types types = stored_types(file);
  const auto type = dtype_from_name(each.variant);
  CHECK((types.layers == type && types.embedding == type && types.head == type));
  check_goldens(each, file, types);
}

TEST_CASE("files of several codecs give the goldens, each matrix in its own", "[once]") {
  const golden_file each = GENERATE(from_range(std::begin(in_mixes), std::end(in_mixes)));
  INFO(each);
  const io::checkpoint file = opened(each);
  const families::weight_types types = stored_types(file);
  CHECK_FALSE(types.matrices.empty());
  check_goldens(each, file, types);
}

// What bf16 holds f32 holds too: the goldens are the same, whatever layer has which of them.
TEST_CASE("layers of several types, in any sequence, give the goldens of one", "[once]") {
  const golden_file each = GENERATE(golden_file{"qwen3-tiny", "base", "gguf/qwen3-tiny-bf16.gguf"},
                                    golden_file{"qwen3u-tiny", "base", "gguf/qwen3u-tiny-bf16.gguf"});
  INFO(each);
  const io::checkpoint file = opened(each);
  families::weight_types types = families::types_of(file).types;
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    for (const auto name : {"attn_q.weight", "attn_k.weight"})
      hold(types, layer, name, layer == 2 ? dtype::f32 : dtype::bf16);
    hold(types, layer, "attn_v.weight", layer == 0 ? dtype::bf16 : dtype::f32);
    hold(types, layer, "attn_output.weight", dtype::bf16);
    hold(types, layer, "ffn_gate.weight", layer == 1 ? dtype::bf16 : dtype::f32);
    hold(types, layer, "ffn_up.weight", dtype::f32);
    hold(types, layer, "ffn_down.weight", layer == 1 ? dtype::f32 : dtype::bf16);
  }
  types.sets = {0, 1, 2};
  check_goldens(each, file, types);
}

TEST_CASE("sessions of a batch, and one that was saved, go on as alone: layers that share caches, int8 inputs",
          "[once]") {
  const golden_file each =
      GENERATE(golden_file{"gemma4-tiny", "base", "hf"}, golden_file{"llamabit-tiny", "a8", "hf-packed"});
  INFO(each);
  const io::checkpoint file = opened(each);
  const plan::planned plan = families::planned_of(file.config(), stored_types(file), each.model, plan::profiles::cpu,
                                                  128, {.slot_count = 2, .page_size = 8});
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  std::ifstream in(shared("conformance2") / each.model / "manifest.json");
  const auto manifest = nlohmann::json::parse(in);
  const auto ids = manifest["prompts"]["p100"]["ids"].get<std::vector<std::int32_t>>();
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  const auto all = session.generate(ids, {.max_tokens = 12, .stop_at_end = false}).ids;
  const temporary_folder folder;
  session.generate(ids, {.max_tokens = 6, .stop_at_end = false});
  session.save(folder / "half");
  session.reset();
  session.restore(folder / "half");
  auto rest = session.generate({.max_tokens = 6, .stop_at_end = false}).ids;
  CHECK(std::equal(rest.begin(), rest.end(), all.begin() + 6, all.end()));
  basic_batch batch(on.device, tables, file, {.cache_folder = ""});
  const std::vector<std::int32_t> other(ids.rbegin(), ids.rbegin() + 40);
  const batch_handle one = batch.join(ids, {.max_tokens = 12}), two = batch.join(other, {.max_tokens = 8});
  std::vector<std::int32_t> drawn;
  while (batch.active() != 0)
    for (const batch_token& token : batch.step())
      if (token.of.slot == one.slot && token.of.number == one.number) drawn.push_back(token.id);
  CHECK(drawn == all);
  CHECK(two.number != one.number);
}
