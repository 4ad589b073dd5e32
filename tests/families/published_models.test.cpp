// SPDX-License-Identifier: MIT
// The published models on every class of devices: which plan each gets, proven for it, or the sentence that refuses it.
// The table of docs/devices.md is what comes out.
#include "intaglio/families/published_models.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/plan/device_plan.hpp"
#include "models_by_class.hpp"
#include "paths.hpp"

using namespace intaglio;
using namespace models_by_class;

namespace {

/// Names of the models that have no plan in a codec, by either profile.
std::vector<std::string_view> unplanned_in(dtype codec) {
  std::vector<std::string_view> out;
  for (const families::published_model& model : families::published_models) {
    const dtype its = model.ternary() ? dtype::f16 : codec;
    if (!planned(model, its, plan::profiles::portable) || !planned(model, its, plan::profiles::cpu))
      out.push_back(model.name);
  }
  return out;
}

/// Which plans are proven for a class: those of the portable profile, those of the narrow one, or neither for some
/// models.
std::string outcome(std::size_t of, const std::vector<row>& rows) {
  const auto is = [&](fit which) { return [of, which](const row& each) { return each.classes[of] == which; }; };
  if (std::all_of(rows.begin(), rows.end(), is(fit::portable))) return "portable";
  return std::any_of(rows.begin(), rows.end(), is(fit::none)) ? "narrow, some refused" : "narrow";
}

bool has_class(const std::set<pair>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const pair& each) { return each.first == name; });
}

/// A row for each class. @param coded, dense  the models in Q4_0 and in F16
std::string class_table(const std::vector<row>& coded, const std::vector<row>& dense, const std::set<pair>& compiled,
                        const std::set<pair>& ran) {
  std::string out =
      "| class | lanes | shared memory | invocations | Q4_0 and ternary | F16 | compiled | run |\n"
      "|---|--:|--:|--:|---|---|---|---|\n";
  const auto gpus = all_gpus();
  for (std::size_t i = 0; i < gpus.size(); ++i)
    out += "| `" + std::string(gpus[i]->name) + "` | " + std::to_string(gpus[i]->subgroup_size) + " | " +
           std::to_string(gpus[i]->shared_memory_bytes / 1024) + " KiB | " +
           std::to_string(gpus[i]->workgroup_invocations) + " | " + outcome(i, coded) + " | " + outcome(i, dense) +
           " | " + (has_class(compiled, gpus[i]->name) ? "yes" : "no") + " | " +
           (has_class(ran, gpus[i]->name) ? "yes" : "no") + " |\n";
  return out;
}

/// Values of a plan's weights that the checkpoint holds.
std::uint64_t parameters(const plan::table& t) {
  using enum plan::weight_layout;
  std::uint64_t out = 0;
  for (const plan::weight& each : t.weights) {
    const bool made = each.layout == rope_turns || each.layout == ternary_scales || each.layout == column_norms ||
                      each.layout == row_codes || each.layout == row_scales;
    if (!made) out += std::uint64_t{(std::max)(each.rows, 1u)} * (std::max)(each.columns, 1u) * t.copies(each);
  }
  return out;
}

/// A model's name and the number of its parameters, text only.
struct counted_model {
  std::string_view name;
  std::uint64_t parameters = 0;
};
/// Numbers of parameters as the models' pages state them. The pages of Falcon-E, Qwen3.5, Nemotron, EXAONE, dots.llm1,
/// MiniMax, Hunyuan, DeepSeek, Ling, Falcon-H1 and Trinity Mini round the number; the page of DeepSeek-V3 leaves the
/// layer out that drafts tokens. Here these have the sum of the tensors' shapes, and a Gemma 3 that of its text model.
constexpr std::array counted_models{
    counted_model{"falcon_e_1b", 1'719'764'992},
    counted_model{"falcon_e_3b", 3'053'586'432},
    counted_model{"mistral_7b_v03", 7'248'023'552},
    counted_model{"mistral_nemo_12b", 12'247'782'400},
    counted_model{"mistral_small_24b", 23'572'403'200},
    counted_model{"mixtral_8x22b", 140'630'071'296},
    counted_model{"llama_32_3b", 3'212'749'824},
    counted_model{"llama_33_70b", 70'553'706'496},
    counted_model{"tinyllama_11b", 1'100'048'384},
    counted_model{"smollm2_135m", 134'515'008},
    counted_model{"smollm2_360m", 361'821'120},
    counted_model{"smollm2_17b", 1'711'376'384},
    counted_model{"gemma3_12b", 11'766'034'176},
    counted_model{"gemma3_27b", 27'009'346'304},
    counted_model{"qwen25_14b", 14'770'033'664},
    counted_model{"qwen25_32b", 32'763'876'352},
    counted_model{"qwen25_72b", 72'706'203'648},
    counted_model{"qwen3_4b_2507", 4'022'468'096},
    counted_model{"qwen3_14b", 14'768'307'200},
    counted_model{"qwen3_32b", 32'762'123'264},
    counted_model{"qwen3_30b_a3b_2507", 30'532'122'624},
    counted_model{"qwen3_235b_a22b", 235'093'634'560},
    counted_model{"qwen35_27b", 26'895'998'464},
    counted_model{"olmo2_13b", 13'716'198'400},
    counted_model{"olmo2_32b", 32'234'279'936},
    counted_model{"olmo3_7b", 7'298'011'136},
    counted_model{"olmo3_32b", 32'233'522'176},
    counted_model{"nemotron_nano_12b_v2", 12'310'001'152},
    counted_model{"bitnet_embedding_06b", 596'336'640},
    counted_model{"glm_4_9b_chat", 9'399'951'360},
    counted_model{"exaone35_24b", 2'405'327'360},
    counted_model{"exaone35_78b", 7'818'448'896},
    counted_model{"exaone35_32b", 32'003'200'000},
    counted_model{"internlm25_7b", 7'737'708'544},
    counted_model{"internlm25_20b", 19'861'149'696},
    counted_model{"deepseek_moe_16b", 16'375'728'128},
    counted_model{"dots1_142b", 142'774'381'696},
    counted_model{"trinity_nano", 6'120'003'328},
    counted_model{"trinity_mini", 26'123'974'400},
    counted_model{"deepseek_v2", 235'741'434'880},
    counted_model{"deepseek_v3", 671'026'419'200},
    counted_model{"ling_lite_15", 16'801'974'272},
    counted_model{"ling_mini_20", 16'255'643'392},
    counted_model{"falcon_h1_05b", 521'411'104},
    counted_model{"falcon_h1_15b", 1'554'863'488},
    counted_model{"falcon_h1_3b", 3'149'392'384},
    counted_model{"falcon_h1_7b", 7'585'648'736},
    counted_model{"falcon_h1_34b", 33'642'516'224},
    counted_model{"minimax_m2", 228'689'764'864},
    counted_model{"hunyuan_a13b", 80'393'183'232},
    counted_model{"minicpm_1b", 1'360'246'272},
    counted_model{"minicpm_2b", 2'724'880'896},
    counted_model{"minicpm4_05b", 433'873'920},
    counted_model{"xverse_7b", 7'299'846'144},
    counted_model{"xverse_13b", 13'715'031'040},
    counted_model{"apertus_8b", 8'053'338'240},
    counted_model{"apertus_70b", 70'599'864'640},
    counted_model{"baichuan_7b", 7'000'559'616},
    counted_model{"orion_14b", 14'498'703'360},
    counted_model{"command_r_35b", 34'980'831'232},
    counted_model{"command_r_32b", 32'296'476'672},
    counted_model{"aya_expanse_8b", 8'028'033'024},
    counted_model{"command_r7b", 8'028'033'024},
    counted_model{"command_a", 111'057'580'032},
    counted_model{"starcoder2_3b", 3'030'371'328},
    counted_model{"starcoder2_7b", 7'173'923'840},
    counted_model{"starcoder2_15b", 15'957'889'024},
    counted_model{"stablelm_3b", 2'795'443'200},
    counted_model{"stablelm2_16b", 1'644'515'328},
    counted_model{"phi_2", 2'779'683'840},
    counted_model{"phi_15", 1'418'270'720},
    counted_model{"pythia_160m", 162'322'944},
    counted_model{"pythia_14b", 1'414'647'808},
    counted_model{"pythia_69b", 6'857'302'016},
    counted_model{"falcon_7b", 6'921'720'704},
    counted_model{"gpt2_124m", 124'439'808},
    counted_model{"gpt2_15b", 1'557'611'200},
    counted_model{"starcoderbase_1b", 1'137'207'296},
    counted_model{"starcoder_15b", 15'517'456'384},
};

}  // namespace

TEST_CASE("every published model has plans by both profiles", "[families]") {
  CHECK(unplanned_in(dtype::f16) == std::vector<std::string_view>{});
  CHECK(unplanned_in(dtype::bf16) == std::vector<std::string_view>{});
  CHECK(unplanned_in(dtype::q8_0) == std::vector<std::string_view>{"stories260k"});  // rows of 172 columns
}

TEST_CASE("plans of published models have the parameters that the models have", "[families]") {
  for (const counted_model& each : counted_models) {
    const families::published_model* model = families::find_published_model(each.name);
    INFO(each.name);
    REQUIRE(model != nullptr);
    const auto made = planned(*model, dtype::q8_0, plan::profiles::cpu);
    REQUIRE(made);
    CHECK(parameters(made->table()) == each.parameters);
  }
}

TEST_CASE("published models have names of their own, and are found by them", "[families]") {
  for (const families::published_model& each : families::published_models)
    CHECK(families::find_published_model(each.name) == &each);
  CHECK(families::find_published_model("none") == nullptr);
}

TEST_CASE("a family's layers are the template that its header has, which `intaglio engrave` writes down",
          "[families]") {
  for (const family& each : families_table) {
    const std::string layers(each.layers);
    INFO(name(each.type));
    std::ifstream file(in_source("include/intaglio/models/" + layers + ".hpp"));
    std::stringstream header;
    header << file.rdbuf();
    CHECK(header.str().find("\nstruct " + layers + " {\n") != std::string::npos);
  }
}

TEST_CASE("each published model has a plan that is proven for each class of GPUs, or one sentence", "[families]") {
  const auto coded = rows_in(dtype::q4_0), dense = rows_in(dtype::f16);
  const auto compiled = compiled_in("tests/amd/approved.txt"), ran = models_that_ran();
  const std::string page = text_of("docs/devices.md");
  std::vector<row> all = coded;  // a model that has no plan in Q4_0 has one in F16
  for (const row& each : dense)
    if (std::none_of(coded.begin(), coded.end(), [&](const row& other) { return other.name == each.name; }))
      all.push_back(each);
  CHECK(all.size() == families::published_models.size());
  for (const auto& [mark, found] :
       {std::pair{"classes", class_table(coded, dense, compiled, ran)},
        std::pair{"models by class", matrix(all, compiled, ran)}, std::pair{"refused in F16", refusals(dense)}}) {
    INFO("expected in docs/devices.md, between the marks of '" << mark << "':\n" << found);
    CHECK(marked(page, mark) == found);
  }
  for (const row& each : dense)
    for (const auto& [of, sentence] : each.refusals) {
      INFO(of << ", " << each.name << ": " << sentence);
      CHECK(sentence.size() <= 400);
      CHECK(sentence.find("expected 1 to ") != std::string::npos);
    }
}

TEST_CASE("what was compiled and what ran are published models on classes that there are", "[families]") {
  const auto gpus = all_gpus();
  const auto compiled = compiled_in("tests/amd/approved.txt"), ran = models_that_ran();
  CHECK(compiled.size() >= 15);
  for (const auto* list : {&compiled, &ran})
    for (const auto& [of, model] : *list) {
      INFO("class '" << of << "', model " << model);
      CHECK(families::find_published_model(model) != nullptr);
      CHECK(std::any_of(gpus.begin(), gpus.end(), [&](const device_class* each) { return each->name == of; }));
    }
  for (const measured_model& each : measured_models) {
    INFO(each.page << " has no '" << each.label << "'");
    CHECK(text_of(each.page).find(each.label) != std::string::npos);
  }
  CHECK(unknown_measured() == std::vector<std::string>{});
}

TEST_CASE("what does not fit into 16 KiB names the step and the bytes", "[families]") {
  const families::published_model* model = families::find_published_model("llama_3_8b");
  REQUIRE(model != nullptr);
  const auto narrow = planned(*model, dtype::f16, plan::profiles::cpu);
  REQUIRE(narrow);
  try {
    const plan::device_plan none(narrow->table(), plan::classes::v3d);
    FAIL("a head of 4,096 columns in f16 is staged for 16 KiB");
  } catch (const argument_error& refused) {
    CHECK(std::string_view(refused.what()).find("output (dense_matmul): expected 1 to 16384 bytes of shared memory") !=
          std::string_view::npos);
  }
}
