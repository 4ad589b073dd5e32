// SPDX-License-Identifier: MIT
// Reads the files beside a Hugging Face vocabulary: tokenizer_config.json, added_tokens.json, the chat template, and
// the ends of a generation in config.json and generation_config.json.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/generation_config.hpp"
#include "intaglio/io/hf_tokenizer_keys.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/io/named_templates.hpp"
#include "intaglio/io/strict_json.hpp"
#include "intaglio/io/vocabulary.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io::hf {

/// A special token of tokenizer_config.json: a string, or an object with `content`.
inline std::optional<std::string> token_text(const located_json& field) {
  if (!field.present()) return std::nullopt;
  return field.is_object() ? field["content"].text() : field.text();
}

/// The rules of an added token, an element of added_tokens or of added_tokens_decoder.
inline added_token added_rule(const located_json& added, std::uint64_t id) {
  return {.id = static_cast<std::int64_t>(id),
          .single_word = added["single_word"].boolean_or(false),
          .lstrip = added["lstrip"].boolean_or(false),
          .rstrip = added["rstrip"].boolean_or(false),
          .normalized = added["normalized"].boolean_or(!added["special"].boolean_or(false))};
}

/// The largest accepted id: gaps become tokens, which must not be many more than the file has.
inline std::uint64_t id_limit(std::size_t tokens) { return 4 * std::uint64_t{tokens} + 1024; }

/// Fills the gap up to an id with unused tokens.
inline void fill_to(std::uint64_t id, vocabulary& out) {
  while (out.tokens.size() < id) {
    out.tokens.push_back("[PAD" + std::to_string(out.tokens.size()) + "]");
    out.token_types.push_back(static_cast<std::int32_t>(token_type::unused));
    if (!out.scores.empty()) out.scores.push_back(0);
  }
}
/// Id of a token by its text; absent without a text. @throws file_error for a text that is no token
inline std::optional<std::int64_t> id_of(const vocabulary& file, const std::optional<std::string>& text,
                                         const std::string& where) {
  if (!text) return std::nullopt;
  const auto at = std::find(file.tokens.begin(), file.tokens.end(), *text);
  if (at == file.tokens.end())
    throw file_error(file.source, std::nullopt, where, "the text of a token", "'" + printable(*text) + "'");
  return at - file.tokens.begin();
}

/// Adds a token that a file beside the vocabulary names, or adds facts about a token of the vocabulary.
/// @param field of the token in its file  @throws file_error: the id has another text, or is far behind the others
inline void add_token(const located_json& field, const std::string& text, bool special, const added_token& rule,
                      vocabulary& out) {
  const auto id = static_cast<std::uint64_t>(rule.id);
  if (text.empty()) field.refuse("a text");
  if (id >= id_limit(out.tokens.size())) field.refuse("an id below " + std::to_string(id_limit(out.tokens.size())));
  const auto type = static_cast<std::int32_t>(special ? token_type::control : token_type::user_defined);
  if (id >= out.tokens.size()) {
    fill_to(id, out);
    out.tokens.push_back(text);
    out.token_types.push_back(type);
    if (!out.scores.empty()) out.scores.push_back(0);
  } else if (out.tokens[static_cast<std::size_t>(id)] != text) {
    field.refuse("'" + printable(out.tokens[static_cast<std::size_t>(id)]) + "', the text of token " +
                 std::to_string(id) + " in " + printable(platform::path_of(out.source).filename().string(), 60));
  } else if (auto& known = out.token_types[static_cast<std::size_t>(id)];
             known != static_cast<std::int32_t>(token_type::unknown) &&
             known != static_cast<std::int32_t>(token_type::byte)) {
    known = type;
  }
  std::erase_if(out.added, [&](const added_token& each) { return each.id == rule.id; });
  // By score, a user-defined piece of the model itself is found otherwise than a token that was added to it.
  if (!rule.plain() || !out.scores.empty()) out.added.push_back(rule);
}

/// Texts that tokenizer_config.json or special_tokens_map.json names as special tokens.
inline std::vector<std::string> special_texts(const located_json& root) {
  std::vector<std::string> out;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"})
    if (auto text = token_text(root[key])) out.push_back(std::move(*text));
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    if (root[key].is_object()) continue;  // names of tokens of other kinds, for example of an image
    for (const located_json& each : root[key].elements())
      if (auto text = token_text(each)) out.push_back(std::move(*text));
  }
  return out;
}

/// Reads added_tokens_decoder of tokenizer_config.json or, for a vocabulary without a list of its own,
/// added_tokens.json. As in transformers, the second counts only without the first. @throws file_error
[[gnu::cold]] inline void read_added_tokens(const std::filesystem::path& directory, const located_json& config,
                                            bool list_counts, vocabulary& out) {
  const located_json decoder = config["added_tokens_decoder"];
  std::vector<std::pair<std::uint64_t, std::string>> keys;  // ascending by id
  const auto sort_keys = [&] { sort_once(keys, std::less<>{}); };
  for (const std::string& key : decoder.keys()) {
    std::uint64_t id = 0;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (problem != std::errc{} || end != key.data() + key.size() || id > 0x7FFFFFFF)
      decoder[key.c_str()].refuse("a token's id as its key");
    keys.emplace_back(id, key);
  }
  sort_keys();
  for (const auto& [id, key] : keys) {
    const located_json token = decoder[key.c_str()];
    add_token(token["content"], token["content"].text(), token["special"].boolean_or(false), added_rule(token, id),
              out);
  }
  const auto path = directory / "added_tokens.json";
  if (decoder.present() || !std::filesystem::exists(path)) return;
  strict_json document(path.string());
  document.read_file(path);
  const located_json list(document.path(), "", &document.root());
  std::vector<std::string> special = special_texts(config);
  if (const auto map = directory / "special_tokens_map.json"; std::filesystem::exists(map)) {
    strict_json named(map.string());
    named.read_file(map);
    for (std::string& text : special_texts(located_json(named.path(), "", &named.root())))
      special.push_back(std::move(text));
  }
  for (const std::string& text : list.keys()) keys.emplace_back(list[text.c_str()].natural(), text);
  sort_keys();
  std::size_t ignored = 0;
  for (const auto& [id, text] : keys) {
    const bool named = std::find(special.begin(), special.end(), text) != special.end();
    if (list_counts)
      add_token(list[text.c_str()], text, named, {.id = static_cast<std::int64_t>(id), .normalized = !named}, out);
    else ignored += id >= out.tokens.size() || out.tokens[static_cast<std::size_t>(id)] != text;
  }
  if (ignored != 0)
    out.warnings.push_back(printable(path.string(), 240) + ": " + std::to_string(ignored) +
                           " tokens are not in tokenizer.json and are ignored");
}
/// Reads a chat template from a file. @throws file_error where it is longer than 1 MiB
inline std::string whole_template(const std::filesystem::path& path) {
  const mapped_file bytes(path);
  if (bytes.size() > 1 << 20)
    throw file_error(path.string(), std::nullopt, "chat template", "at most 1 MiB",
                     std::to_string(bytes.size()) + " bytes");
  std::string whole(static_cast<std::size_t>(bytes.size()), '\0');
  bytes.read(0, std::as_writable_bytes(std::span(whole)));
  return whole;
}

/// The templates that a key has: one, whose name is default, or a list of named ones.
inline std::vector<named_template> chat_templates_of(const located_json& field) {
  std::vector<named_template> out;
  const auto add = [&](const std::string& name, const std::string& text) { out.push_back({name, text}); };
  if (field.is_string()) add("default", field.text());
  else
    for (const located_json& each : field.elements()) add(each["name"].text(), each["template"].text());
  return out;
}

/// The chat template of a folder. As in transformers chat_template.jinja goes before tokenizer_config.json;
/// chat_template.json is read where neither has one. Further templates are in additional_chat_templates.
[[gnu::cold]] inline std::optional<std::string> folder_chat_template(const std::filesystem::path& directory,
                                                                     const located_json& config,
                                                                     std::vector<std::string>& warnings) {
  if (const auto jinja = directory / "chat_template.jinja"; std::filesystem::exists(jinja)) {
    std::set<std::string> names;
    const auto more = directory / "additional_chat_templates";
    if (std::filesystem::is_directory(more))
      for (const auto& each : std::filesystem::directory_iterator(more))
        if (each.path().extension() == ".jinja") names.insert(each.path().stem().string());
    names.erase("default");
    std::vector<named_template> all;
    const auto add = [&](const std::string& name, std::string text) { all.push_back({name, std::move(text)}); };
    add("default", whole_template(jinja));
    for (const std::string& name : names)
      add(name, name == "tool_use" ? whole_template(more / "tool_use.jinja") : std::string());
    return united_templates(all, jinja.string(), warnings);
  }
  if (const located_json own = config["chat_template"]; own.present())
    if (auto found = united_templates(chat_templates_of(own), own.file(), warnings)) return found;
  const auto path = directory / "chat_template.json";
  if (!std::filesystem::exists(path)) return std::nullopt;
  strict_json document(path.string());
  document.read_file(path);
  const located_json own = located_json(document.path(), "", &document.root())["chat_template"];
  return own.present() ? united_templates(chat_templates_of(own), path.string(), warnings) : std::nullopt;
}

/// The source of a vocabulary, which decides which keys of tokenizer_config.json count.
enum class vocabulary_form : std::uint8_t {
  templated_json,  ///< a tokenizer.json that states the tokens around a text
  json,            ///< a tokenizer.json that does not
  model,           ///< tokenizer.model
};

/// Reads tokenizer_config.json, added_tokens.json and the chat template.
[[gnu::cold]] inline void read_config(const std::filesystem::path& directory, vocabulary_form form, vocabulary& out) {
  const auto path = directory / "tokenizer_config.json";
  strict_json document(path.string());
  const bool there = std::filesystem::exists(path);
  if (there) document.read_file(path);
  const located_json root(document.path(), "", document.root().is_null() ? nullptr : &document.root());
  read_added_tokens(directory, root, form == vocabulary_form::model, out);
  const auto read_id = [&](const char* key, std::optional<std::int64_t>& id) {
    if (const auto text = token_text(root[key])) id = id_of(out, text, document.path() + ": " + key);
  };
  read_id("bos_token", out.bos_id);
  read_id("eos_token", out.eos_id);
  read_id("unk_token", out.unknown_id);
  if (const auto text = token_text(root["pad_token"]);
      text && std::find(out.tokens.begin(), out.tokens.end(), *text) != out.tokens.end())
    out.padding_id = id_of(out, text, "pad_token");
  for (const std::string& text : special_texts(root))
    if (std::find(out.tokens.begin(), out.tokens.end(), text) == out.tokens.end())
      out.warnings.push_back(printable(path.string(), 240) + ": special token '" + printable(text, 60) +
                             "' is not in the vocabulary and is ignored");
  judge_tokenizer_config(root, out);
  const bool model = form == vocabulary_form::model, templated = form == vocabulary_form::templated_json;
  if (!model) judge_doubly_stated(root, templated, out);
  if (!templated) {
    out.add_bos = root["add_bos_token"].boolean_or(model && out.add_bos.value_or(false));
    out.add_eos = root["add_eos_token"].boolean_or(model && out.add_eos.value_or(false));
  }
  // Without `legacy` transformers puts the space only in front of a text, with it also after each special token.
  if (model && there && out.model == "llama" && out.add_space_prefix.value_or(true)) {
    out.space_prefix_once = !root["legacy"].boolean_or(false);
    out.add_space_prefix = root["add_prefix_space"].boolean_or(true);
  }
  out.chat_template = folder_chat_template(directory, root, out.warnings);
}

/// Reads config.json and generation_config.json, where they exist: the architecture, and the ends of a generation.
[[gnu::cold]] inline void read_model_config(const std::filesystem::path& directory, vocabulary& out) {
  const auto add = [&](const std::vector<std::int64_t>& ids) {
    for (const std::int64_t id : ids)
      if (std::find(out.end_ids.begin(), out.end_ids.end(), id) == out.end_ids.end()) out.end_ids.push_back(id);
  };
  if (const auto config = directory / "config.json"; std::filesystem::exists(config)) {
    strict_json document(config.string());
    document.read_file(config);
    const located_json root(document.path(), "", &document.root());
    if (out.architecture.empty()) out.architecture = root["model_type"].text_or("");
    add(eos_ids_of(root["eos_token_id"]));
    add(eos_ids_of(root["eod_token_id"]));  // the end of a document, in Hunyuan
    if (const located_json text = root["text_config"]; text.is_object()) add(eos_ids_of(text["eos_token_id"]));
  }
  if (const auto config = directory / "generation_config.json"; std::filesystem::exists(config))
    add(read_generation_config(config).eos_ids);
}

}  // namespace intaglio::io::hf
