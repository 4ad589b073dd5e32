// SPDX-License-Identifier: MIT
// The whole path, file to logits, against implementations that are not ours, with the tolerances that their READMEs
// state and explain.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/io/gguf_writer.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

/// Floats after `header` bytes.
std::vector<float> read_floats(const std::filesystem::path& path, std::size_t header) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  REQUIRE(bytes.size() > header);
  std::vector<float> out((bytes.size() - header) / 4);
  std::memcpy(out.data(), bytes.data() + header, out.size() * 4);
  return out;
}
constexpr std::size_t npy_header = 128;

double relative_l2(std::span<const float> found, std::span<const float> expected) {
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = static_cast<double>(found[i]) - static_cast<double>(expected[i]);
    difference += d * d;
    whole += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(difference / whole);
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
    ab += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return ab / std::sqrt(aa * bb);
}

basic_session open(const checked_device& on, const plan::table& cpu, const plan::table& portable,
                   const std::filesystem::path& path) {
  const std::array<const plan::table*, 2> tables{&cpu, &portable};
  return basic_session(on.device, tables, io::checkpoint::open(path), {.cache_folder = ""});
}

/// Row of bitnet-tiny's embedding that is row `i` of the heads made here.
constexpr std::size_t head_row(std::size_t i) { return (i * 37 + 5) % 1024; }
constexpr std::size_t head_row_bytes = 256 * 2;

std::vector<char> shuffled_rows(const std::vector<char>& table) {
  std::vector<char> out(table.size());
  for (std::size_t i = 0; i < 1024; ++i)
    std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(head_row(i) * head_row_bytes), head_row_bytes,
                out.begin() + static_cast<std::ptrdiff_t>(i * head_row_bytes));
  return out;
}

/// A GGUF file with one more tensor, output.weight.
void write_untied(const std::filesystem::path& from, const std::filesystem::path& to) {
  const io::gguf file = io::gguf::open(from);
  io::gguf_writer out(to);
  for (const auto& value : file.first().values()) out.copy(file.first(), value);
  std::vector<char> head;
  for (const auto& tensor : file.tensors())
    out.add_tensor(tensor.name, tensor.type, std::span(tensor.shape).first(tensor.dimensions));
  out.add_tensor("output.weight", dtype::f16, std::array<std::uint64_t, 2>{256, 1024});
  out.begin();
  for (const auto& tensor : file.tensors()) {
    std::vector<char> data(static_cast<std::size_t>(tensor.bytes));
    file.first().file().read(tensor.offset, std::as_writable_bytes(std::span(data)));
    out.write(std::as_bytes(std::span(data)));
    if (tensor.name == "token_embd.weight") head = shuffled_rows(data);
  }
  REQUIRE(head.size() == 1024 * head_row_bytes);
  out.write(std::as_bytes(std::span(head)));
  out.finish();
}

/// The packed Hugging Face form with one more tensor, lm_head.weight in bf16, after the others.
void write_untied_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::ifstream in(from / "model.safetensors", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  auto header = nlohmann::json::parse(bytes.substr(8, length));
  std::string data = bytes.substr(8 + length);
  const auto& embedding = header["model.embed_tokens.weight"];
  REQUIRE(embedding["dtype"] == "BF16");
  const auto begin = data.begin() + embedding["data_offsets"][0].get<std::ptrdiff_t>(),
             end = data.begin() + embedding["data_offsets"][1].get<std::ptrdiff_t>();
  const std::vector<char> head = shuffled_rows({begin, end});
  header["lm_head.weight"] = {
      {"dtype", "BF16"}, {"shape", {1024, 256}}, {"data_offsets", {data.size(), data.size() + head.size()}}};
  data.append(head.begin(), head.end());
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  length = text.size();
  std::ofstream out(to / "model.safetensors", std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), 8) << text << data;
  auto config = read_json(from / "config.json");
  config["tie_word_embeddings"] = false;
  std::ofstream(to / "config.json") << config;
}

}  // namespace

TEST_CASE("fable gives the goldens of transformers", "[wide][second][lowered]") {
  checked_device on;
  basic_session session = open(on, fable_table(), fable_portable_table(), shared("models/fable-bitnet-i2_s.gguf"));
  const auto golden = read_json(shared("models/goldens/fable.json"));
  const auto logits = read_floats(shared("models/goldens/fable-logits.f32"), 0);
  const auto hidden = read_floats(shared("models/goldens/fable-hidden.f32"), 0);
  std::size_t index = 0;
  for (const auto& prompt : golden["prompts"]) {
    const auto ids = prompt["ids"].get<std::vector<std::int32_t>>();
    const bool states = index == golden["hidden"]["prompt"].get<std::size_t>();
    INFO("prompt " << index << " of " << ids.size() << " tokens");
    session.reset();
    const auto found = session.logits(ids, 0, states);
    const auto expected = std::span(logits).subspan(prompt["logits_row"].get<std::size_t>() * 4096, 4096);
    CHECK(relative_l2(std::span(found.logits).last(4096), expected) <=
          3 * prompt["spread"]["largest_relative_l2"].get<double>() + 1e-4);
    session.reset();
    const auto stable = prompt["greedy_stable"].get<std::uint32_t>();
    const auto greedy = prompt["greedy"].get<std::vector<std::int32_t>>();
    const auto drawn = session.generate(ids, {.max_tokens = std::max(stable, 1u), .stop_at_end = false});
    CHECK(std::equal(greedy.begin(), greedy.begin() + stable, drawn.ids.begin()));
    if (states) {
      const auto positions = golden["hidden"]["positions_before_first_flip"].get<std::vector<std::size_t>>();
      REQUIRE(ids.size() == 142);
      for (std::size_t state = 0; state < 9; ++state) {
        const auto mine = std::span(found.hidden).subspan(state * 142 * 256, 142 * 256),
                   theirs = std::span(hidden).subspan(state * 142 * 256, 142 * 256);
        INFO("state " << state);
        CHECK(relative_l2(mine.first(positions[state] * 256), theirs.first(positions[state] * 256)) <= 1e-4);
        CHECK(relative_l2(mine, theirs) <= 5e-2);
      }
    }
    ++index;
  }
  CHECK(index == 6);
}

TEST_CASE("bitnet-tiny gives the goldens of transformers in every form") {
  const auto folder = conformance("bitnet-tiny");
  const auto models = read_json(shared("conformance/models.json"));
  const auto& about = (models.contains("models") ? models["models"] : models)["bitnet-tiny"];
  const auto manifest = read_json(shared("conformance/bitnet-tiny/manifest.json"));
  const auto goldens = shared("conformance/bitnet-tiny/goldens/a8");
  checked_device on;
  for (const char* form :
       {"gguf/bitnet-tiny-b158-i2_s.gguf", "gguf/bitnet-tiny-b158-f16.gguf", "gguf/bitnet-tiny-b158-tq1_0.gguf",
        "gguf/bitnet-tiny-b158-tq2_0.gguf", "hf-bf16", "hf-packed", "hf-bitlinear"}) {
    basic_session session = open(on, bitnet_tiny_table(), bitnet_tiny_portable_table(), folder / form);
    for (const char* name : {"p1", "p4", "p17", "p100", "p200"}) {
      const auto ids = about["prompts"][name].get<std::vector<std::int32_t>>();
      const bool all = ids.size() == 4 || ids.size() == 17, exact = ids.size() == 1 || ids.size() == 4;
      INFO(form << " " << name);
      session.reset();
      const auto found = session.logits(ids, 0, true);
      const auto logits =
          read_floats(goldens / ("logits_" + std::string(name) + (all ? "_all.npy" : "_last.npy")), npy_header);
      const std::size_t count = logits.size() / 1024;
      const auto mine = std::span(found.logits).last(count * 1024);
      for (std::size_t t = 0; t < count; ++t) {
        const auto a = mine.subspan(t * 1024, 1024), b = std::span(logits).subspan(t * 1024, 1024);
        CHECK(largest_difference(a, b) <= (exact ? 1e-3 : 1.5));
        CHECK(cosine(a, b) >= 0.995);
      }
      if (exact && all) {
        const auto states = read_floats(goldens / ("hidden_" + std::string(name) + "_all.npy"), npy_header);
        CHECK(largest_difference(found.hidden, std::span(states).first(4 * ids.size() * 256)) <= 1e-3);
      }
      if (std::string_view(form) != "hf-packed" && std::string_view(form) != "gguf/bitnet-tiny-b158-i2_s.gguf")
        continue;
      // Tokens as far as no margin before them is under 1.
      for (const auto& variant : manifest["variants"]) {
        if (variant["name"] != "a8") continue;
        const auto greedy = variant["greedy"][name]["tokens"].get<std::vector<std::int32_t>>();
        const auto margins = variant["greedy"][name]["margins"].get<std::vector<double>>();
        std::uint32_t sure = 0;
        while (sure < greedy.size() && margins[sure] >= 1) ++sure;
        if (sure == 0) continue;
        session.reset();
        const auto drawn = session.generate(ids, {.max_tokens = sure, .stop_at_end = false});
        CHECK(std::equal(drawn.ids.begin(), drawn.ids.end(), greedy.begin()));
      }
    }
  }
}

TEST_CASE("bitnet-tiny with SiLU and f32 activations gives the goldens of its architecture in every form") {
  const auto folder = conformance("bitnet-tiny");
  const auto manifest = read_json(shared("conformance/bitnet-tiny/manifest.json"));
  checked_device on;
  std::size_t files = 0;
  for (const auto& variant : manifest["variants"]) {
    if (!variant["name"].get<std::string>().starts_with("silu")) continue;
    const auto goldens = shared("conformance/bitnet-tiny") / variant["dir"].get<std::string>();
    for (const auto& file : variant["files"]) {
      ++files;
      const auto form = file["path"].get<std::string>();
      const bool from_q6_k = form.find("-tq") != std::string::npos;
      basic_session session =
          from_q6_k ? open(on, bitnet_tiny_silu_f32_table(), bitnet_tiny_silu_f32_portable_table(), folder / form)
                    : open(on, bitnet_tiny_silu_table(), bitnet_tiny_silu_portable_table(), folder / form);
      for (const char* name : {"p1", "p4", "p17", "p100", "p200"}) {
        INFO(form << " " << name);
        const auto ids = manifest["prompts"][name]["ids"].get<std::vector<std::int32_t>>();
        const bool all = ids.size() == 4 || ids.size() == 17;
        session.reset();
        const auto found = session.logits(ids, 0, true);
        const auto logits =
            read_floats(goldens / ("logits_" + std::string(name) + (all ? "_all.npy" : "_last.npy")), npy_header);
        CHECK(largest_difference(std::span(found.logits).last(logits.size()), logits) <= 1e-3);
        if (all && variant["name"] == "silu") {
          const auto states = read_floats(goldens / ("hidden_" + std::string(name) + "_all.npy"), npy_header);
          CHECK(largest_difference(found.hidden, std::span(states).first(4 * ids.size() * 256)) <= 1e-3);
        }
        session.reset();
        const auto greedy = variant["greedy"][name]["tokens"].get<std::vector<std::int32_t>>();
        const auto drawn = session.generate(ids, {.max_tokens = 32, .stop_at_end = false});
        CHECK(drawn.ids == greedy);
      }
    }
  }
  CHECK(files == 4);
}

TEST_CASE("a head of its own gives its own rows' logits, bit for bit, from GGUF and from a folder") {
  const auto folder = conformance("bitnet-tiny");
  const temporary_folder made;
  write_untied(folder / "gguf/bitnet-tiny-b158-f16.gguf", made / "untied.gguf");
  std::filesystem::create_directory(made / "untied");
  write_untied_folder(folder / "hf-packed", made / "untied");
  const std::vector<std::int32_t> ids{1000, 246, 324, 532, 914};
  checked_device on;
  basic_session tied = open(on, bitnet_tiny_table(), bitnet_tiny_table(), folder / "gguf/bitnet-tiny-b158-f16.gguf");
  const auto expected = tied.logits(ids);
  for (const char* form : {"untied.gguf", "untied"}) {
    INFO(form);
    CHECK_THROWS_AS(open(on, bitnet_tiny_table(), bitnet_tiny_table(), made / form), mismatch_error);
    basic_session session = open(on, bitnet_tiny_untied_table(), bitnet_tiny_untied_table(), made / form);
    const auto found = session.logits(ids);
    std::size_t differing = 0;
    for (std::size_t t = 0; t < ids.size(); ++t)
      for (std::size_t i = 0; i < 1024; ++i)
        differing += found.logits[t * 1024 + i] != expected.logits[t * 1024 + head_row(i)];
    CHECK(differing == 0);
    session.reset();
    const auto drawn = session.generate(ids, {.max_tokens = 1, .stop_at_end = false});
    const auto last = std::span(found.logits).last(1024);
    CHECK(drawn.ids.at(0) == std::max_element(last.begin(), last.end()) - last.begin());
  }
}
