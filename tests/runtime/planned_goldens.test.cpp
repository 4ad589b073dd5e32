// SPDX-License-Identifier: MIT
// Files of families, planned by their own configs at run time, against goldens of transformers
// (shared/conformance2/README.md says how they were made and how far implementations agree).
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/runtime/basic_session.hpp"

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

struct golden_file {
  const char *model, *variant, *path;
};
std::ostream& operator<<(std::ostream& out, const golden_file& of) { return out << of.model << "/" << of.path; }

}  // namespace

TEST_CASE("files of a family give the goldens of transformers", "[once]") {
  const golden_file each =
      GENERATE(golden_file{"qwen3-tiny", "base", "hf"}, golden_file{"qwen3u-tiny", "base", "hf"},
               golden_file{"qwen3-tiny", "base", "gguf/qwen3-tiny-f32.gguf"},
               golden_file{"qwen3-tiny", "base", "gguf/qwen3-tiny-bf16.gguf"},
               golden_file{"qwen3u-tiny", "base", "gguf/qwen3u-tiny-bf16.gguf"},
               golden_file{"qwen3u-tiny", "q8_0", "gguf/qwen3u-tiny-q8_0.gguf"},
               golden_file{"qwen3moe-tiny", "base", "hf"}, golden_file{"qwen3moe-tiny", "nonorm", "hf-nonorm"},
               golden_file{"qwen3moe-tiny", "base", "gguf/qwen3moe-tiny-f32.gguf"},
               golden_file{"qwen3moe-tiny", "base", "gguf/qwen3moe-tiny-bf16.gguf"},
               golden_file{"qwen2-tiny", "base", "hf"}, golden_file{"qwen2-tiny", "base", "gguf/qwen2-tiny-f32.gguf"},
               golden_file{"qwen2-tiny", "base", "gguf/qwen2-tiny-bf16.gguf"});
  INFO(each);
  const std::filesystem::path golden = shared("conformance2") / each.model,
                              folder = conformance(each.model, "conformance2", "confgen2.py");
  const io::checkpoint file = io::checkpoint::open(folder / each.path);
  const families::file_types codecs = families::types_of(file);
  CHECK_FALSE(codecs.recoded);
  constexpr std::uint32_t context = 256;
  const auto plans = [&](const plan::profile& target) {
    return families::planned_of(file.config(), codecs.types, each.model, target, context);
  };
  const plan::planned cpu = plans(plan::profiles::cpu), portable = plans(plan::profiles::portable);
  checked_device on;
  const std::array<const plan::table*, 2> tables{&cpu.table(), &portable.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});

  std::ifstream in(golden / "manifest.json");
  const auto manifest = nlohmann::json::parse(in);
  for (const auto& [name, all] :
       {std::pair{"p4", true}, {"p17", true}, {"p1", false}, {"p100", false}, {"p200", false}}) {
    INFO(name);
    const auto ids = manifest["prompts"][name]["ids"].get<std::vector<std::int32_t>>();
    const auto expected = read_npy(golden / "goldens" / each.variant /
                                   ("logits_" + std::string(name) + (all ? "_all" : "_last") + ".npy"));
    session.reset();
    const logits_result found = session.logits(ids);
    REQUIRE(found.logits.size() >= expected.size());
    const std::span<const float> last = std::span(found.logits).last(expected.size());
    CHECK(largest_difference(last, expected) < 1e-3);
  }
  for (const auto& variant : manifest["variants"]) {
    if (variant["name"] != each.variant) continue;
    const auto ids = manifest["prompts"]["p17"]["ids"].get<std::vector<std::int32_t>>();
    const auto tokens = variant["greedy"]["p17"]["tokens"].get<std::vector<std::int32_t>>();
    text_stream stream =
        session.begin(ids, {.max_tokens = static_cast<std::uint32_t>(tokens.size()), .stop_at_end = false});
    while (stream.next()) {}
    CHECK(stream.result().ids == tokens);
  }
}
