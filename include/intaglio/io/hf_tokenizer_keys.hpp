// SPDX-License-Identifier: MIT
// The meaning of each key of tokenizer_config.json and tokenizer.json to this library. Key names: transformers'
// PreTrainedTokenizerBase and its subclasses, tokenizers' serialised components.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/config_key_rule.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io::hf {

/// The families of a key that no tokenizer uses.
inline constexpr const char* unused = "";

/// Keys of tokenizer_config.json.
inline constexpr config_key_rule tokenizer_config_key_rules[] = {
    {"added_tokens_decoder"},
    {"additional_special_tokens"},
    {"extra_special_tokens"},
    {"model_specific_special_tokens"},
    {"bos_token"},
    {"eos_token"},
    {"unk_token"},
    {"pad_token"},
    {"sep_token"},
    {"cls_token"},
    {"mask_token"},
    {"chat_template"},
    // Keys that the vocabulary states too where it is a tokenizer.json.
    {"add_bos_token"},
    {"add_eos_token"},
    {"add_prefix_space"},
    {"do_lower_case"},
    {"strip_accents"},
    {"tokenize_chinese_chars"},
    {"legacy"},
    // Keys that would change the tokens of a text.
    {"split_special_tokens", config_key_use::read, unused},
    {"never_split", config_key_use::read, unused},
    {"sp_model_kwargs", config_key_use::read, unused},
    // Keys about how texts are cut and filled up, which callers of transformers ask for.
    {"model_max_length", config_key_use::harmless},
    {"max_length", config_key_use::harmless},
    {"max_len", config_key_use::harmless},
    {"padding", config_key_use::harmless},
    {"padding_side", config_key_use::harmless},
    {"pad_to_multiple_of", config_key_use::harmless},
    {"pad_token_type_id", config_key_use::harmless},
    {"stride", config_key_use::harmless},
    {"truncation", config_key_use::harmless},
    {"truncation_side", config_key_use::harmless},
    {"truncation_strategy", config_key_use::harmless},
    // Keys of tokenizers in Python, whose steps tokenizer.json states.
    {"do_basic_tokenize", config_key_use::harmless},
    {"do_word_tokenize", config_key_use::harmless},
    {"do_subword_tokenize", config_key_use::harmless},
    {"keep_accents", config_key_use::harmless},
    {"remove_space", config_key_use::harmless},
    {"trim_offsets", config_key_use::harmless},
    {"errors", config_key_use::harmless},
    {"extra_ids", config_key_use::harmless},
    {"monolingual_vocab_file", config_key_use::harmless},
    // Keys about a whole text that is made of tokens; byte-level BPE has none of these changes.
    {"clean_up_tokenization_spaces", config_key_use::harmless},
    {"spaces_between_special_tokens", config_key_use::harmless},
    // Keys about programs and other inputs.
    {"auto_map", config_key_use::harmless},
    {"backend", config_key_use::harmless},
    {"device_map", config_key_use::harmless},
    {"fix_mistral_regex", config_key_use::harmless},
    {"from_slow", config_key_use::harmless},
    {"is_fast", config_key_use::harmless},
    {"is_local", config_key_use::harmless},
    {"local_files_only", config_key_use::harmless},
    {"model_input_names", config_key_use::harmless},
    {"model_type", config_key_use::harmless},
    {"name_or_path", config_key_use::harmless},
    {"processor_class", config_key_use::harmless},
    {"response_schema", config_key_use::harmless},
    {"special_tokens_map_file", config_key_use::harmless},
    {"tokenizer_class", config_key_use::harmless},
    {"tokenizer_file", config_key_use::harmless},
    {"tokenizer_type", config_key_use::harmless},
    {"torch_dtype", config_key_use::harmless},
    {"transformers_version", config_key_use::harmless},
    {"trust_remote_code", config_key_use::harmless},
    {"use_default_system_prompt", config_key_use::harmless},
    {"use_fast", config_key_use::harmless},
    {"verbose", config_key_use::harmless},
    {"vocab_file", config_key_use::harmless},
    {"vocab_size", config_key_use::harmless},
};

/// Keys of tokenizer.json.
inline constexpr config_key_rule tokenizer_json_key_rules[] = {
    {"version", config_key_use::harmless},
    {"truncation", config_key_use::harmless},  // callers of transformers ask for it
    {"padding", config_key_use::harmless},
    {"added_tokens"},
    {"normalizer"},
    {"pre_tokenizer"},
    {"post_processor"},
    {"decoder"},
    {"model"},
};
/// Keys of its model.
inline constexpr config_key_rule tokenizer_model_key_rules[] = {
    {"type"},
    {"vocab"},
    {"merges"},
    {"scores"},
    {"dropout"},
    {"unk_token"},
    {"unk_id"},
    {"continuing_subword_prefix"},
    {"end_of_word_suffix"},
    {"max_input_chars_per_word"},
    {"byte_fallback"},
    {"ignore_merges"},
    {"fuse_unk", config_key_use::harmless},  // these vocabularies have tokens for all bytes
};

/// Warns of keys of tokenizer_config.json that are unknown or not used.
[[gnu::cold]] inline void judge_tokenizer_config(const located_json& root, vocabulary& out) {
  std::vector<std::string> lines;
  judge_config_keys(root, tokenizer_config_key_rules, "the tokenizer", lines);
  // Many files name the tokens of images and sounds, each by a key of its own.
  for (std::string& line : lines)
    if (line.find("_token' is unknown") == std::string::npos) out.warnings.push_back(std::move(line));
}

/// Warns where tokenizer_config.json and tokenizer.json differ: programs do not agree which of them counts, and this
/// library takes tokenizer.json. @param templated whether tokenizer.json states the tokens around a text
[[gnu::cold]] inline void judge_doubly_stated(const located_json& config, bool templated, vocabulary& out) {
  const bool words = out.model == "bert";
  const std::pair<const char*, std::optional<bool>> rows[] = {
      {"add_prefix_space", words ? std::nullopt : std::optional(out.add_space_prefix.value_or(false))},
      {"do_lower_case", out.lowercase.value_or(false)},
      {"strip_accents", out.strip_accents.value_or(false)},
      {"tokenize_chinese_chars", words ? std::optional(true) : std::nullopt},
      {"add_bos_token", templated ? std::optional(out.add_bos.value_or(false)) : std::nullopt},
      {"add_eos_token", templated ? std::optional(out.add_eos.value_or(false)) : std::nullopt}};
  for (const auto& [key, taken] : rows) {
    const located_json stated = config[key];
    if (!taken || !stated.present() || stated.boolean_or(*taken) == *taken) continue;
    out.warnings.push_back(in_file(stated.file(), "key '" + std::string(key) + "': expected " +
                                                      (*taken ? "true" : "false") +
                                                      " as tokenizer.json has it, found " +
                                                      (*taken ? "false" : "true") + ": tokenizer.json is used"));
  }
}

/// The steps by which a decoder makes a text of tokens, for each model of a vocabulary.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 4> decoder_steps{{
    {"gpt2", "ByteLevel"},
    {"llama", "Replace ByteFallback Fuse Strip Metaspace"},
    {"bert", "WordPiece"},
    {"t5", "Replace ByteFallback Fuse Strip Metaspace"},
}};

/// Warns of a decoder's steps that would make another text than this library makes. Without a decoder there are none.
[[gnu::cold]] inline void judge_decoder(const located_json& field, vocabulary& out) {
  if (!field.present()) return;
  std::vector<located_json> steps{field};
  if (field["type"].text() == "Sequence") steps = field["decoders"].elements();
  const auto* const row = std::find_if(decoder_steps.begin(), decoder_steps.end(),
                                       [&](const auto& each) { return each.first == out.model; });
  const auto fits = [&](const located_json& step) {
    const std::string type = step["type"].text();
    if (row == decoder_steps.end() ||
        (" " + std::string(row->second) + " ").find(" " + type + " ") == std::string::npos)
      return false;
    if (type == "Replace")
      return step["pattern"]["String"].text_or("") == "\u2581" && step["content"].text_or("") == " ";
    if (type == "Metaspace") return step["replacement"].text_or("\u2581") == "\u2581";
    if (type != "Strip") return true;
    const auto count = [&](const char* key) { return step[key].present() ? step[key].natural() : 0; };
    return step["content"].text_or("") == " " && count("start") <= 1 && count("stop") == 0;
  };
  for (const located_json& step : steps)
    if (!fits(step))
      out.warnings.push_back("'" + printable(step.where(), 60) + "' " + printable(step["type"].text(), 40) +
                             " is not used: texts are made of tokens without it");
}

/// Checks the tokens that a template puts around a text: each stands for itself, and all are of the first text.
/// @throws file_error: another token, or several
[[gnu::cold]] inline void judge_template(const located_json& field, vocabulary& out) {
  if (!field.present()) return;
  std::vector<located_json> steps{field};
  if (field["type"].text() == "Sequence") steps = field["processors"].elements();
  for (const located_json& step : steps) {
    if (step["type"].text() != "TemplateProcessing") continue;
    for (const located_json& part : step["single"].elements())
      for (const bool special : {false, true}) {
        const located_json of = part[special ? "SpecialToken" : "Sequence"];
        if (const located_json type = of["type_id"]; type.present() && type.natural() != 0)
          out.warnings.push_back("'" + printable(type.where(), 80) + "' is not used: all tokens are of text 0");
        if (!special || !of.present()) continue;
        const std::string& text = of["id"].text();
        const located_json ids = step["special_tokens"][text.c_str()]["ids"];
        if (!ids.present()) continue;
        const std::vector<located_json> each = ids.elements();
        std::size_t at = 0;
        while (at < out.tokens.size() && out.tokens[at] != text) ++at;
        if (at < out.tokens.size() && (each.size() != 1 || each[0].natural() != at))
          ids.refuse(std::to_string(at) + " alone, the id of '" + printable(text, 40) + "'");
      }
  }
}

/// Warns of keys of tokenizer.json that are unknown or not used. As in other warnings of a vocabulary, the file is not
/// named in them.
[[gnu::cold]] inline void judge_tokenizer_json(const located_json& root, vocabulary& out) {
  std::vector<std::string> lines;
  judge_config_keys(root, tokenizer_json_key_rules, "the tokenizer", lines);
  judge_config_keys(root["model"], tokenizer_model_key_rules, "the tokenizer", lines);
  for (std::string& line : lines) out.warnings.push_back(line.substr(in_file(root.file(), "").size()));
  judge_decoder(root["decoder"], out);
  judge_template(root["post_processor"], out);
}

}  // namespace intaglio::io::hf
