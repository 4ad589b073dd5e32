// SPDX-License-Identifier: MIT
// Hybrids of Mamba-2 and attention, Granite 4.0 H and Nemotron-H, from folders, from GGUF and converted, against numpy
// (mamba2_hybrids.py); their states in sessions and batches.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/plan/verify.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "io/gguf_image.hpp"
#include "numpy_models.hpp"
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
    for (const char* model : {"granite", "granite_experts", "nemotron", "nemotron_experts"})
      for (const auto& [name, codec] : {std::pair{"converted.gguf", dtype::f32}, {"coded.gguf", dtype::q8_0}}) {
        options.codec = codec;
        io::convert(folder / "models" / model, folder / "models" / model / name, options);
      }
    return folder / "models";
  }();
  return out;
}

plan::planned planned(const io::checkpoint& file, const plan::profile& target, const plan::batch_shape& shape = {}) {
  return families::planned_of(file.config(), families::types_of(file).types, "hybrid", target, 256, shape);
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
  const std::string model = GENERATE("granite", "granite_experts", "nemotron", "nemotron_experts"),
                    form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) UNSCOPED_INFO(each);
  CHECK(file.warnings().empty());
  const bool narrow = form == "model.gguf";  // keys and values in f16, as on GPUs
  const plan::planned plan = planned(file, narrow ? plan::profiles::exact : plan::profiles::cpu);
  CHECK(plan::verify(plan.table()).empty());
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  for (const auto& [prompt, chunk] : {std::pair{"p17", 0u}, {"p100", 0u}, {"p100", 7u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    session.reset();
    const logits_result found = session.logits(prompt_of(made() / model, prompt), chunk);
    CHECK(largest_difference(found.logits, read_floats(made() / model / (std::string(prompt) + ".logits"))) <
          (narrow ? 1e-2 : 1e-3));
  }
}

TEST_CASE("a hybrid in Q8_0, with rows of other widths in f16, stays near numpy's logits", "[once]") {
  const std::string model = GENERATE("granite", "granite_experts", "nemotron", "nemotron_experts");
  INFO(model);
  const io::checkpoint file = io::checkpoint::open(made() / model / "coded.gguf");
  CHECK(file.find("blk.0.ssm_in_xbc.weight")->stored.type == dtype::q8_0);
  const plan::planned plan = planned(file, plan::profiles::cpu);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  const auto found = session.logits(prompt_of(made() / model, "p17")).logits;
  const std::vector<float> expected = read_floats(made() / model / "p17.logits");
  CHECK(largest_difference(found, expected) > 1e-4);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
    ab += a * b, aa += a * a, bb += b * b;
  }
  CHECK(ab / std::sqrt(aa * bb) > 0.997);  // numpy's own with these codes: 0.99994 and, of nemotron, 0.99791
}

TEST_CASE("what a GGUF of a hybrid states of its layers fits together, or is refused by its key", "[once]") {
  const temporary_folder folder;
  const auto refusal = [&](const std::string& model, const std::string& key, std::uint32_t type, const bytes& value) {
    gguf_image image = gguf_image::of(made() / model / "model.gguf");
    for (auto& each : image.keys)
      if (each.name == key) each = {key, type, value};
    try {
      (void)io::checkpoint::open(write_bytes(folder / "changed.gguf", image.build()));
    } catch (const file_error& error) {
      CHECK(std::string_view(error.what()).size() <= 400);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto number = [](std::uint32_t value) { return bytes_of(value); };
  const auto list = [](const std::vector<std::int32_t>& values) {
    bytes out = bytes_of(std::uint32_t{5});
    append(out, std::uint64_t{values.size()});
    for (const std::int32_t each : values) append(out, each);
    return out;
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refusal("granite", "granitehybrid.ssm.inner_size", 4, number(130)),
             ContainsSubstring("a multiple of granitehybrid.ssm.time_step_rank 8, found 130"));
  CHECK_THAT(refusal("granite", "granitehybrid.ssm.group_count", 4, number(3)),
             ContainsSubstring("a multiple of granitehybrid.ssm.group_count 3, found 8"));
  CHECK_THAT(refusal("granite", "granitehybrid.ssm.state_size", 4, number(300)),
             ContainsSubstring("ssm_state_size: expected 1 to 256, found 300"));
  CHECK_THAT(refusal("granite", "granitehybrid.ssm.conv_kernel", 4, number(9)), ContainsSubstring("found 9"));
  CHECK_THAT(refusal("granite", "granitehybrid.ssm.state_size", 4, number(24)),
             ContainsSubstring("rows of blk.0.ssm_in.weight: expected"));
  CHECK_THAT(refusal("granite", "granitehybrid.attention.head_count_kv", 4, number(2)),
             ContainsSubstring("0 for layers without attention and one other number, found one number"));
  CHECK_THAT(refusal("granite", "granitehybrid.attention.head_count_kv", 9, list({0, 0, 2, 0, 0, 4})),
             ContainsSubstring("found 2 and, in layer 5, 4"));
  CHECK_THAT(refusal("granite", "granitehybrid.attention.head_count_kv", 9, list({0, 0, 0, 0, 0, 0})),
             ContainsSubstring("num_key_value_heads: expected 1 to"));
  CHECK_THAT(refusal("granite", "granitehybrid.expert_shared_feed_forward_length", 4, number(95)),
             ContainsSubstring("expert_shared_feed_forward_length"));
  CHECK_THAT(refusal("granite_experts", "granitehybrid.expert_shared_feed_forward_length", 4, number(0)),
             ContainsSubstring("shared_expert_intermediate_size: expected 1 to"));
  const std::string width = "nemotron_h.feed_forward_length";
  CHECK_THAT(refusal("nemotron", width, 4, number(80)), ContainsSubstring("found one number"));
  CHECK_THAT(refusal("nemotron", width, 9, list({0, 80, 0, 80, 80, 0, 0, 0, 80})), ContainsSubstring("80 in layer 3"));
  CHECK_THAT(refusal("nemotron", width, 9, list({0, 80, 0, 0, 80, 0, 0, 0, 96})), ContainsSubstring("96 in layer 8"));
  CHECK_THAT(refusal("nemotron", width, 9, list({0, 80, 0})), ContainsSubstring("found 3"));
  CHECK_THAT(refusal("nemotron", width, 9, list({0, 0, 0, 0, 0, 0, 0, 0, 0})),
             ContainsSubstring("intermediate_size: expected 1 to"));
  const std::string mixture = "nemotron_h_moe.";
  CHECK_THAT(refusal("nemotron_experts", mixture + "feed_forward_length", 9, list({0, 36, 0, 0, 80, 40})),
             ContainsSubstring("40 in layer 5"));
  CHECK_THAT(refusal("nemotron_experts", mixture + "expert_feed_forward_length", 4, number(40)),
             ContainsSubstring("expected 36 as nemotron_h_moe.feed_forward_length of their layers, found 40"));
  CHECK_THAT(refusal("nemotron_experts", mixture + "expert_count", 4, number(0)),
             ContainsSubstring("expert_used_count': expected 0 without expert_count"));
  CHECK_THAT(refusal("nemotron_experts", mixture + "expert_shared_count", 4, number(2)),
             ContainsSubstring("expert_shared_count': expected 1, found 2"));
  CHECK_THAT(refusal("nemotron_experts", mixture + "expert_group_count", 4, number(4)),
             ContainsSubstring("expert_group_count': expected 1 or 0, found 4"));
}

TEST_CASE("a GGUF of a Granite without states says whether it is rotated, and its width twice", "[once]") {
  const temporary_folder folder;
  gguf_image image =
      gguf_image::of(conformance("granite-tiny", "conformance2", "confgen2.py") / "gguf/granite-tiny-f32.gguf");
  const auto opened = [&] {
    return io::checkpoint::open(write_bytes(folder / "changed.gguf", image.build())).config();
  };
  const decoder_config sound = opened();
  CHECK(sound.no_rope_layer_interval == 0);
  image.set("granite.expert_shared_feed_forward_length", sound.intermediate_size);
  image.set("granite.rope.scaling.finetuned", true);
  CHECK(opened() == sound);
  image.set("granite.rope.scaling.finetuned", false);
  CHECK(opened().no_rope_layer_interval == 1);
  image.set("granite.expert_shared_feed_forward_length", sound.intermediate_size + 1);
  CHECK_THROWS_AS(opened(), file_error);
}

TEST_CASE("a folder of a hybrid, its GGUF and what is converted have one config", "[once]") {
  for (const char* model : {"granite", "granite_experts", "nemotron", "nemotron_experts"}) {
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
  auto ids = prompt_of(made() / model, "p100");
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
  const std::vector<std::int32_t> after{5, 6, 7};
  CHECK(one.logits(after).logits == other.logits(after).logits);
}

TEST_CASE("sessions of hybrids in a batch draw what they draw alone, from states of others too", "[runtime]") {
  const std::string model = GENERATE("granite", "granite_experts", "nemotron", "nemotron_experts");
  INFO(model);
  io::checkpoint file = io::checkpoint::open(made() / model);
  plan::planned plan = planned(file, plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
  both b(std::move(plan), std::move(file));
  check_mixed(b);
  const auto ids = prompt_of(made() / model, "p100");
  const batch_options options{{.temperature = 0.8f, .seed = 3}, 20};
  const auto alone = b.drawn_alone(ids, options);
  const batch_handle one = b.batch.join(ids, options), two = b.batch.join(ids, options);
  CHECK(drawn_of(b.batch, one) == alone);
  CHECK(b.batch.cached_tokens(two) == 96);
  const batch_handle three = b.batch.join(ids, options);
  CHECK(drawn_of(b.batch, three) == alone);
  CHECK(b.batch.cached_tokens(three) == 96);
}
