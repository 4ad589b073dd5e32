// SPDX-License-Identifier: MIT
// Hybrids of Mamba-2 and attention, Granite 4.0 H and Nemotron-H, from folders, from GGUF and converted, against numpy
// (mamba2_hybrids.py); their states in sessions and batches.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/plan/verify.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "python.hpp"
#include "runtime/batch_and_alone.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/mamba2_hybrids.py", {(folder / "models").string()});
    io::convert_options options;
    options.codec = dtype::f32;
    for (const char* model : {"granite", "granite_experts", "nemotron"})
      io::convert(folder / "models" / model, folder / "models" / model / "converted.gguf", options);
    return folder / "models";
  }();
  return out;
}

std::vector<float> read_floats(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  REQUIRE(in);
  std::vector<float> out(static_cast<std::size_t>(in.tellg()) / sizeof(float));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(float)));
  return out;
}

std::vector<std::int32_t> prompt_of(const std::string& model, const std::string& name) {
  std::ifstream in(made() / model / "prompts.json");
  return nlohmann::json::parse(in)[name].get<std::vector<std::int32_t>>();
}

plan::planned planned(const io::checkpoint& file, const plan::profile& target, const plan::batch_shape& shape = {}) {
  return families::planned_of(file.config(), families::types_of(file).types, "hybrid", target, 256, shape);
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    out = std::max(out, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return out;
}

/// Runs all sessions to their ends. @return what the session drew
std::vector<std::int32_t> drawn_of(basic_batch& from, const batch_handle& who) {
  std::vector<std::int32_t> out;
  for (int i = 0; from.active() != 0 && i < 500; ++i)
    for (const batch_token& token : from.step(3))
      if (token.of.number == who.number) out.push_back(token.id);
  return out;
}

}  // namespace

TEST_CASE("hybrids of Mamba-2 and attention give numpy's logits, decoded and in chunks", "[once]") {
  const std::string model = GENERATE("granite", "granite_experts", "nemotron"),
                    form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) UNSCOPED_INFO(each);
  CHECK(file.warnings().empty());
  const plan::planned plan = planned(file, plan::profiles::cpu);
  CHECK(plan::verify(plan.table()).empty());
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  for (const auto& [prompt, chunk] : {std::pair{"p17", 0u}, {"p100", 0u}, {"p100", 7u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    session.reset();
    const logits_result found = session.logits(prompt_of(model, prompt), chunk);
    CHECK(largest_difference(found.logits, read_floats(made() / model / (std::string(prompt) + ".logits"))) < 1e-3);
  }
}

TEST_CASE("a folder of a hybrid, its GGUF and what is converted have one config", "[once]") {
  for (const char* model : {"granite", "granite_experts", "nemotron"}) {
    INFO(model);
    decoder_config folder = io::checkpoint::open(made() / model).config();
    CHECK(folder == io::checkpoint::open(made() / model / "converted.gguf").config());
    folder.max_position_embeddings = 1 << 20;  // as llama.cpp's converter writes of models without rotation
    CHECK(io::config_differences(folder, io::checkpoint::open(made() / model / "model.gguf").config()).empty());
  }
}

TEST_CASE("a session of a hybrid goes on from copies of its states, saved and restored", "[runtime]") {
  const std::string model = GENERATE("granite", "nemotron");
  INFO(model);
  const io::checkpoint file = io::checkpoint::open(made() / model);
  const plan::planned plan = planned(file, plan::profiles::cpu);
  CHECK(plan.table().kept_bytes() != 0);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session one(on.device, tables, file, {.cache_folder = ""}),
      other(on.device, tables, file, {.cache_folder = ""});
  auto ids = prompt_of(model, "p100");
  const auto said = [](basic_session& of, const std::vector<std::int32_t>& prompt) {
    return of.generate(prompt, {.max_tokens = 12, .stop_at_end = false});
  };
  const generation first = said(one, ids);
  CHECK(first.ids == said(other, ids).ids);
  const generation again = said(one, ids);  // from its copy in front of the last token
  CHECK((again.ids == first.ids && again.timings.cached_tokens == 99));
  auto branch = ids;
  branch[85] = 11;
  other.reset();
  const generation parted = said(one, branch);
  CHECK((parted.ids == said(other, branch).ids && parted.timings.cached_tokens == 64));
  const temporary_folder folder;
  one.save(folder / "session");
  other.restore(folder / "session");
  const std::vector<std::int32_t> behind{5, 6, 7};
  CHECK(one.logits(behind).logits == other.logits(behind).logits);
}

TEST_CASE("sessions of hybrids in a batch draw what they draw alone, from states of others too", "[runtime]") {
  const std::string model = GENERATE("granite", "granite_experts", "nemotron");
  INFO(model);
  io::checkpoint file = io::checkpoint::open(made() / model);
  plan::planned plan = planned(file, plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
  both b(std::move(plan), std::move(file));
  check_mixed(b);
  const auto ids = prompt_of(model, "p100");
  const batch_options options{{.temperature = 0.8f, .seed = 3}, 20};
  const auto alone = b.drawn_alone(ids, options);
  const batch_handle one = b.batch.join(ids, options), two = b.batch.join(ids, options);
  CHECK(drawn_of(b.batch, one) == alone);
  CHECK(b.batch.cached_tokens(two) == 96);
  const batch_handle three = b.batch.join(ids, options);
  CHECK(drawn_of(b.batch, three) == alone);
  CHECK(b.batch.cached_tokens(three) == 96);
}
