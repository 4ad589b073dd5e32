// SPDX-License-Identifier: MIT
// The published models on every class of GPUs: which plan is proven there, which was compiled for it, which model ran.
// The facts are plans made here, the approved file of tests/amd and the tables of measured models in docs/lab. The
// tables of docs/devices.md come out (published_models.test.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/families/published_models.hpp"
#include "intaglio/plan/device_plan.hpp"
#include "paths.hpp"

namespace models_by_class {

using namespace intaglio;
using plan::device_class;

inline std::vector<const device_class*> all_gpus() {
  std::vector<const device_class*> out(std::begin(plan::classes::gpus), std::end(plan::classes::gpus));
  out.insert(out.end(), std::begin(plan::classes::other_gpus), std::end(plan::classes::other_gpus));
  return out;
}

/// A model's plan with weights in this codec; nothing where the codec's blocks do not divide its rows.
inline std::optional<plan::planned> planned(const families::published_model& model, dtype codec,
                                            const plan::profile& target) {
  try {
    return families::planned_of(*model.config, model.types(codec), model.name, target,
                                (std::min)(4096u, model.config->max_position_embeddings));
  } catch (const argument_error&) { return std::nullopt; }
}

/// Which of a model's two plans is proven for a class: that of profile portable, else that of profile cpu, else none.
enum class fit { portable, narrow, none };

/// A model in one codec, and what is proven on each class of all_gpus(); a sentence for each class that refuses it.
struct row {
  std::string_view name;
  std::string_view codec;
  std::vector<fit> classes;
  std::map<std::string_view, std::string> refusals;
};

/// The sentence that refuses a plan for a class; nothing where the plan is proven.
inline std::optional<std::string> refusal(const plan::table& engraved, const device_class& device) {
  try {
    const plan::device_plan fitted(engraved, device);
    return std::nullopt;
  } catch (const argument_error& refused) { return std::string(refused.what()); }
}

/// All models that have plans in a codec. A ternary model has its own.
inline std::vector<row> rows_in(dtype codec) {
  std::vector<row> out;
  for (const families::published_model& model : families::published_models) {
    const dtype its = model.ternary() ? dtype::f16 : codec;
    const auto portable = planned(model, its, plan::profiles::portable),
               narrow = planned(model, its, plan::profiles::cpu);
    if (!portable || !narrow) continue;
    row& each = out.emplace_back(row{model.name, model.ternary() ? "ternary" : name(codec), {}, {}});
    for (const device_class* of : all_gpus()) {
      if (!refusal(portable->table(), *of)) {
        each.classes.push_back(fit::portable);
        continue;
      }
      auto refused = refusal(narrow->table(), *of);
      each.classes.push_back(refused ? fit::none : fit::narrow);
      if (refused) each.refusals.emplace(of->name, std::move(*refused));
    }
  }
  return out;
}

/// A file of the tree as one text.
inline std::string text_of(std::string_view path) {
  std::ifstream file(in_source(path));
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

/// The text between two marks of a page.
inline std::string marked(const std::string& page, const std::string& mark) {
  const std::string begin = "<!-- " + mark + " -->\n", end = "<!-- end of " + mark + " -->";
  const std::size_t from = page.find(begin), to = page.find(end);
  return from == std::string::npos || to == std::string::npos
             ? "no marks"
             : page.substr(from + begin.size(), to - from - begin.size());
}

using pair = std::pair<std::string, std::string>;  ///< a class and a model

/// The classes of the Radeons for which Mesa compiles without hardware (tests/amd/run).
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 5> radeons{
    {{"VEGA10", "gcn"}, {"VANGOGH", "rdna"}, {"NAVI21", "rdna"}, {"NAVI31", "amd_wave32"}, {"GFX1201", "amd_wave32"}}};

/// What an approved file of tests/amd says was compiled: a line for each Radeon, below it a line for each model.
/// A Radeon without a class is returned as the class "".
inline std::set<pair> compiled_in(std::string_view path) {
  std::set<pair> out;
  std::istringstream lines(text_of(path));
  std::string line, device;
  while (std::getline(lines, line)) {
    if (const std::size_t at = line.find("(RADV "); at != std::string::npos) {
      const std::string radeon = line.substr(at + 6, line.find(')') - at - 6);
      const auto found = std::find_if(radeons.begin(), radeons.end(), [&](auto& each) { return each.first == radeon; });
      device = found == radeons.end() ? "" : std::string(found->second);
    } else if (!line.starts_with(' ') && line.find(" pipelines") != std::string::npos)
      out.emplace(device, line.substr(0, line.find(' ')));
  }
  return out;
}

/// A model that ran on an H100 or H200, and how a page of docs/lab calls it there.
struct measured_model {
  std::string_view name, label;
  std::string_view page = "docs/lab/families.md";
};
inline constexpr std::array measured_models{
    measured_model{"fable", "fable, H200", "docs/lab/frame_loops.md"},
    measured_model{"bitnet_2b_4t", "BitNet 2B"},
    measured_model{"bitnet_embedding_06b", "BitNet-Embedding 0.6B"},
    measured_model{"mistral_7b", "Mistral 7B"},
    measured_model{"llama_31_8b", "Llama-3.1-8B"},
    measured_model{"llama_32_1b", "Llama-3.2-1B"},
    measured_model{"gemma3_1b", "Gemma-3 1B"},
    measured_model{"gemma3_4b", "Gemma-3 4B"},
    measured_model{"mixtral_8x7b", "Mixtral 8x7B"},
    measured_model{"qwen3_embedding_06b", "Qwen3-Embedding 0.6B"},
    measured_model{"qwen3_4b", "Qwen3 4B"},
    measured_model{"qwen3_30b_a3b", "Qwen3 30B-A3B"},
    measured_model{"qwen25_05b", "Qwen2.5 0.5B"},
    measured_model{"qwen25_3b", "Qwen2.5 3B"},
    measured_model{"qwen25_7b", "Qwen2.5 7B"},
    measured_model{"smollm3_3b", "SmolLM3 3B"},
    measured_model{"granite_33_8b", "Granite 3.3 8B"},
    measured_model{"granite_4_h_micro", "Granite 4.0 H micro"},
    measured_model{"granite_4_h_tiny", "Granite 4.0 H tiny"},
    measured_model{"nemotron_h_8b", "Nemotron-H 8B"},
    measured_model{"nemotron_nano_9b_v2", "Nemotron Nano 9B v2"},
    measured_model{"nemotron_3_nano", "Nemotron 3 Nano"},
    measured_model{"olmo2_7b", "OLMo 2 7B"},
    measured_model{"phi_4_mini", "Phi-4-mini"},
    measured_model{"qwen35_4b", "Qwen3.5 4B"},
    measured_model{"qwen3next_80b_a3b", "Qwen3-Next 80B-A3B"},
    measured_model{"qwen35_35b_a3b", "Qwen3.5 35B-A3B"},
    measured_model{"olmoe_1b_7b", "OLMoE 1B-7B"},
    measured_model{"glm_4_9b", "GLM-4 9B"},
    measured_model{"ling_lite_15", "Ling Lite 1.5"},
    measured_model{"ling_mini_20", "Ling Mini 2.0"},
    measured_model{"minicpm_2b", "MiniCPM 2B"},
    measured_model{"minicpm4_05b", "MiniCPM4 0.5B"},
    measured_model{"xverse_7b", "XVERSE 7B"},
    measured_model{"baichuan_7b", "Baichuan 7B"},
    measured_model{"orion_14b", "Orion 14B"},
    measured_model{"glm_45_air", "GLM-4.5 Air"},
    measured_model{"lfm2_12b", "LFM2 1.2B"},
    measured_model{"lfm2_8b_a1b", "LFM2 8B-A1B"},
    measured_model{"gemma2_2b", "Gemma 2 2B"},
    measured_model{"gemma2_9b", "Gemma 2 9B"},
    measured_model{"gemma3n_e2b", "Gemma 3n E2B"},
    measured_model{"gemma3n_e4b", "Gemma 3n E4B"},
    measured_model{"gemma4_e2b", "Gemma 4 E2B"},
    measured_model{"gemma4_e4b", "Gemma 4 E4B"},
    measured_model{"gemma4_31b", "Gemma 4 31B"},
    measured_model{"gemma4_26b_a4b", "Gemma 4 26B-A4B"},
    measured_model{"gptoss_20b", "gpt-oss 20B"},
    measured_model{"gptoss_120b", "gpt-oss 120B"},
    measured_model{"bge_base", "bge base"},
    measured_model{"bge_large", "bge large"},
    measured_model{"minilm_l6", "MiniLM L6"},
    measured_model{"nomic_embed_v15", "nomic-embed v1.5"},
    measured_model{"deepseek_v2_lite", "DeepSeek-V2-Lite"},
    measured_model{"glm_47_flash", "GLM-4.7-Flash"},
    measured_model{"command_r7b", "Command R7B"},
    measured_model{"trinity_nano", "Trinity Nano", "docs/lab/family_marks.md"},
    measured_model{"trinity_mini", "Trinity Mini", "docs/lab/family_marks.md"},
    measured_model{"qwen15_moe_a27b", "Qwen1.5 MoE A2.7B", "docs/lab/family_marks.md"},
    measured_model{"moonlight_16b", "Moonlight 16B", "docs/lab/family_marks.md"},
    measured_model{"deepseek_moe_16b", "DeepSeekMoE 16B", "docs/lab/family_marks.md"},
    measured_model{"ernie45_21b_a3b", "ERNIE 4.5 21B-A3B", "docs/lab/family_marks.md"},
    measured_model{"hunyuan_a13b", "Hunyuan A13B", "docs/lab/family_marks.md"},
    measured_model{"mixtral_8x22b", "Mixtral 8x22B", "docs/lab/family_marks.md"},
    measured_model{"dots1_142b", "dots.llm1", "docs/lab/family_marks.md"},
    measured_model{"qwen3_235b_a22b", "Qwen3 235B-A22B", "docs/lab/family_marks.md"},
    measured_model{"deepseek_v2", "DeepSeek-V2", "docs/lab/family_marks.md"},
    measured_model{"minimax_m2", "MiniMax-M2", "docs/lab/family_marks.md"},
    measured_model{"glm_45", "GLM-4.5", "docs/lab/family_marks.md"},
    measured_model{"ernie45_300b_a47b", "ERNIE 4.5 300B-A47B", "docs/lab/family_marks.md"},
};

/// The first cells of the tables in docs/lab/families.md that begin with no measured model's label. Heads of tables and
/// models that are not published ones are known.
inline std::vector<std::string> unknown_measured() {
  const std::array known{"model", "decode", "encoder", "`examples/custom_model`", "--"};
  std::vector<std::string> out;
  std::istringstream lines(text_of("docs/lab/families.md"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) continue;
    const std::string cell = line.substr(line.find_first_not_of("| "));
    const auto begins = [&](std::string_view with) { return cell.starts_with(with); };
    if (std::any_of(known.begin(), known.end(), begins)) continue;
    if (!std::any_of(measured_models.begin(), measured_models.end(), [&](auto& each) { return begins(each.label); }))
      out.push_back(cell.substr(0, cell.find(" |")));
  }
  return out;
}

/// Classes and models of which a figure was measured: on an H100 or H200; those that ran there as a chain of dispatches
/// ran the plan of the class nvidia, which is that of h100 without the resident dispatch.
inline std::set<pair> models_that_ran() {
  std::set<pair> out;
  for (const measured_model& each : measured_models) {
    out.emplace("h100", each.name);
    std::istringstream lines(text_of(each.page));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("| " + std::string(each.label) + " ") && line.find("| chain |") != std::string::npos)
        out.emplace("nvidia", each.name);
  }
  return out;
}

/// A row for each model, a column for each class.
/// @param compiled, ran  classes and models
inline std::string matrix(const std::vector<row>& rows, const std::set<pair>& compiled, const std::set<pair>& ran) {
  std::string out = "| model | codec |", line = "|---|---|";
  for (const device_class* of : all_gpus()) out += " `" + std::string(of->name) + "` |", line += "---|";
  out += "\n" + line + "\n";
  for (const row& each : rows) {
    out += "| `" + std::string(each.name) + "` | " + std::string(each.codec) + " |";
    for (std::size_t i = 0; i < each.classes.size(); ++i) {
      const pair key{all_gpus()[i]->name, each.name};
      out += each.classes[i] == fit::portable ? " P" : each.classes[i] == fit::narrow ? " N" : " none";
      out += compiled.contains(key) ? "C" : "";
      out += ran.contains(key) ? "R |" : " |";
    }
    out += "\n";
  }
  return out;
}

/// A row for each violation that refuses models for a class: the first step of the plan that does not fit.
inline std::string refusals(const std::vector<row>& rows) {
  std::map<pair, std::string> models;  // of a class and a violation
  for (const row& each : rows)
    for (const auto& [of, sentence] : each.refusals) {
      const std::size_t at = sentence.find(", found ");
      std::string& list = models[{std::string(of), sentence.substr(at == sentence.npos ? 0 : at + 8)}];
      list += (list.empty() ? "`" : ", `") + std::string(each.name) + "`";
    }
  std::string out = "| class | first step that does not fit | models |\n|---|---|---|\n";
  for (const auto& [key, list] : models) out += "| `" + key.first + "` | " + key.second + " | " + list + " |\n";
  return out;
}

}  // namespace models_by_class
