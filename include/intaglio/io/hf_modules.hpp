// SPDX-License-Identifier: MIT
// modules.json of a sentence-transformers folder: the modules after a model's states besides pooling. Source:
// sentence-transformers, models/Dense.py and SentenceTransformer.py.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/core/family.hpp"
#include "intaglio/io/config_key_rule.hpp"
#include "intaglio/io/strict_json.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {

/// A Dense module: the product W x, without a bias and an activation.
struct dense_module {
  std::filesystem::path folder;  ///< where its config.json and its weights are
  std::uint32_t in = 0, out = 0;
};

/// Reads a Dense module's config.json. @error file_error: a bias, an activation
[[gnu::cold]] inline dense_module read_dense_module(const std::filesystem::path& folder) {
  strict_json document((folder / "config.json").string());
  document.read_file(folder / "config.json");
  const located_json root(document.path(), "", &document.root());
  if (!root.is_object()) document.refuse("config.json", "a JSON object", document.root().type_name());
  const auto features = [&](const char* key) {
    const std::uint64_t value = root[key].natural();
    if (value == 0 || value > (std::numeric_limits<std::uint32_t>::max)()) root[key].refuse("a number from 1");
    return static_cast<std::uint32_t>(value);
  };
  if (root["bias"].boolean_or(true)) document.refuse("bias", "false", "true");
  const std::string act = root["activation_function"].text_or("torch.nn.modules.activation.Tanh");
  if (!act.ends_with(".Identity")) document.refuse("activation_function", "Identity", "'" + printable(act, 80) + "'");
  return {folder, features("in_features"), features("out_features")};
}

/// Reads the Dense modules of a folder, none or two: hidden_size to some width and back; that width becomes the
/// config's dense_features. Modules that are neither Dense, pooling nor a norm of the vector are named in a warning.
/// @error file_error: malformed, a Dense module in a family that has none, another number or other widths
[[gnu::cold]] inline std::vector<dense_module> read_modules(const std::filesystem::path& folder, decoder_config& c,
                                                            std::vector<std::string>& warnings) {
  const auto path = folder / "modules.json";
  std::vector<dense_module> out;
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return out;
  strict_json document(path.string());
  document.read_file(path);
  const located_json root(document.path(), "", &document.root());
  for (const located_json& module : root.elements()) {
    const std::string type = module["type"].text(), name = type.substr(type.rfind('.') + 1);
    if (name == "Transformer" || name == "Pooling" || name == "Normalize") continue;
    if (name != "Dense") {
      warnings.push_back(
          in_file(path.string(), "module '" + printable(type, 80) + "' is not computed: vectors are those without it"));
      continue;
    }
    const std::string within = module["path"].text();
    if (within.empty() || within.find_first_of("/\\:") != within.npos || within.front() == '.')
      module["path"].refuse("the name of a folder");
    if (!family_of(c.model_type).dense_products)
      document.refuse("modules", "no Dense module after this family", "'" + printable(within, 60) + "'");
    out.push_back(read_dense_module(folder / platform::path_of(within)));
  }
  if (out.empty()) return out;
  if (out.size() != 2) document.refuse("Dense modules", "none or 2", std::to_string(out.size()));
  if (out[0].in != c.hidden_size || out[1].in != out[0].out || out[1].out != c.hidden_size)
    document.refuse("Dense modules",
                    "hidden_size " + std::to_string(c.hidden_size) + " to some features and back to hidden_size",
                    std::to_string(out[0].in) + " to " + std::to_string(out[0].out) + " and " +
                        std::to_string(out[1].in) + " to " + std::to_string(out[1].out));
  c.dense_features = out[0].out;
  return out;
}

/// The folder of the Pooling module, which modules.json names.
[[gnu::cold]] inline std::filesystem::path pooling_folder(const std::filesystem::path& folder) {
  const auto path = folder / "modules.json";
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return folder / "1_Pooling";
  strict_json document(path.string());
  document.read_file(path);
  for (const located_json& module : located_json(document.path(), "", &document.root()).elements()) {
    const std::string within = module["path"].text_or("");
    if (module["type"].text().ends_with("Pooling") && !within.empty() && within.find_first_of("/\\:") == within.npos &&
        within.front() != '.')
      return folder / platform::path_of(within);
  }
  return folder / "1_Pooling";
}

/// Keys of sentence_bert_config.json.
inline constexpr config_key_rule sentence_key_rules[] = {
    {"max_seq_length"},
    {"do_lower_case", config_key_use::read, ""},  // nothing makes texts lower case in front of the tokenizer
    {"transformer_task", config_key_use::harmless},
    {"modality_config", config_key_use::harmless},
    {"module_output_name", config_key_use::harmless},
    {"processing_kwargs", config_key_use::harmless},
    {"unpad_inputs", config_key_use::harmless},
};
/// Keys of config_sentence_transformers.json.
inline constexpr config_key_rule prompt_key_rules[] = {
    {"prompts"},
    {"default_prompt_name"},
    {"model_type", config_key_use::harmless},
    {"similarity_fn_name", config_key_use::harmless},
    {"__version__", config_key_use::harmless},
};

/// Warns of what sentence-transformers does to texts and this library does not: a limit of tokens below the context's,
/// lower case, and a prompt in front of each text. @error file_error: malformed
[[gnu::cold]] inline void judge_sentence_keys(const std::filesystem::path& folder, const decoder_config& c,
                                              std::vector<std::string>& warnings) {
  const auto read = [&](const char* name, std::span<const config_key_rule> rules, const auto& judge) {
    const auto path = folder / name;
    if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return;
    strict_json document(path.string());
    document.read_file(path);
    const located_json root(document.path(), "", &document.root());
    judge_config_keys(root, rules, "embeddings", warnings);
    judge(root, [&](const std::string& line) { warnings.push_back(in_file(path.string(), line)); });
  };
  read("sentence_bert_config.json", sentence_key_rules, [&](const located_json& root, const auto& warn) {
    const located_json most = root["max_seq_length"];
    if (most.present() && most.natural() < c.max_position_embeddings)
      warn("max_seq_length " + std::to_string(most.natural()) + " is not used: texts are not cut, and may have " +
           std::to_string(c.max_position_embeddings) + " tokens");
  });
  read("config_sentence_transformers.json", prompt_key_rules, [&](const located_json& root, const auto& warn) {
    const std::string name = root["default_prompt_name"].text_or("");
    if (name.empty()) return;
    const std::string prompt = root["prompts"][name.c_str()].text_or("");
    if (!prompt.empty())
      warn("default_prompt_name '" + printable(name, 40) + "' is not used: the caller puts '" + printable(prompt, 80) +
           "' in front of a text");
  });
}

}  // namespace intaglio::io
