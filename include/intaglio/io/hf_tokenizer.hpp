// SPDX-License-Identifier: MIT
// The tokenizer of a Hugging Face directory: tokenizer.json, with tokenizer_config.json, chat_template.jinja and
// config.json where present. Only BPE in the two forms that io::tokenizer has; every other component is refused by
// name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/generation_config.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/io/sentencepiece_bpe.hpp"
#include "intaglio/io/strict_json.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// Reads tokenizer.json; model.vocab and model.merges go straight into vectors, since they are nearly all of the file.
class tokenizer_json : public strict_json {
 public:
  using strict_json::strict_json;
  std::vector<std::pair<std::string, std::uint64_t>> entries;  ///< text and id, in file order
  std::vector<std::string> merges;                             ///< "left right"

  bool key(string_t& name) override {
    if (part_ == part::vocab) return entries.emplace_back(std::move(name), 0), true;
    if (depth() == 1) outer_ = name;
    if (depth() == 2) inner_ = name;
    return strict_json::key(name);
  }
  bool start_object(std::size_t size) override {
    if (part_ != part::none) refuse_element();
    if (at("vocab")) return part_ = part::vocab, true;
    return strict_json::start_object(size);
  }
  bool end_object() override {
    if (part_ == part::vocab) return part_ = part::none, true;
    return strict_json::end_object();
  }
  bool start_array(std::size_t size) override {
    if (part_ == part::merges) return part_ = part::pair, sides_ = 0, true;
    if (part_ != part::none) refuse_element();
    if (at("merges")) return part_ = part::merges, true;
    return strict_json::start_array(size);
  }
  bool end_array() override {
    if (part_ == part::merges) return part_ = part::none, true;
    if (part_ != part::pair) return strict_json::end_array();
    if (sides_ != 2) refuse_element();
    return part_ = part::merges, true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (part_ == part::vocab) return entries.back().second = value, true;
    return part_ == part::none ? strict_json::number_unsigned(value) : refuse_element();
  }
  bool string(string_t& value) override {
    if (part_ == part::merges) return merges.push_back(std::move(value)), true;
    if (part_ != part::pair) return part_ == part::none ? strict_json::string(value) : refuse_element();
    if (value.empty() || sides_ == 2 || (sides_ == 0 && value.find(' ', 1) != std::string::npos)) refuse_element();
    if (sides_++ == 0) merges.push_back(std::move(value));
    else merges.back().append(" ").append(value);
    return true;
  }
  bool null() override { return part_ == part::none ? strict_json::null() : refuse_element(); }
  bool boolean(bool value) override { return part_ == part::none ? strict_json::boolean(value) : refuse_element(); }
  bool number_integer(number_integer_t value) override {
    return part_ == part::none ? strict_json::number_integer(value) : refuse_element();
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return part_ == part::none ? strict_json::number_float(value, text) : refuse_element();
  }

 private:
  enum class part { none, vocab, merges, pair };
  bool at(std::string_view name) const { return depth() == 2 && outer_ == "model" && inner_ == name; }
  [[noreturn]] bool refuse_element() const {
    if (part_ == part::vocab)
      refuse("model.vocab", "texts with natural numbers",
             "another kind of value at entry " + std::to_string(entries.size()));
    refuse("model.merges", "texts or pairs of texts",
           "another kind of value at entry " + std::to_string(merges.size()));
  }
  part part_ = part::none;
  std::string outer_, inner_;
  int sides_ = 0;
};

namespace hf {

/// (?i:'s|'t|...) and the rest of Llama 3's expression; `digits` is its third branch.
inline std::string llama3_expression(std::string_view digits) {
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + std::string(digits) +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}
inline constexpr std::string_view gpt2_expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Pre-tokenizer name of a byte-level file; nothing where pre_tokenizer is not byte-level. @throws file_error: unknown
/// component
inline std::optional<std::string> byte_level_pretokenizer(const json_place& field) {
  if (!field.present()) return std::nullopt;
  std::vector<json_place> steps{field};
  if (field["type"].text() == "Sequence") steps = field["pretokenizers"].elements();
  std::optional<std::string> split;
  bool digits = false;
  for (const json_place& step : steps) {
    const std::string type = step["type"].text();
    if (type == "Split" && step["pattern"]["Regex"].present()) {
      const std::string expression = step["pattern"]["Regex"].text();
      if (split) step.refuse("one Split");
      if (step["behavior"].text() != "Isolated" || step["invert"].boolean_or(false))
        step.refuse("behavior Isolated, not inverted");
      if (expression == llama3_expression(R"(\p{N}{1,3})")) split = "llama-bpe";
      else if (expression == llama3_expression(R"(\p{N})")) split = "qwen2";
      else if (expression == gpt2_expression) split = "gpt-2";
      else step["pattern"]["Regex"].refuse("the expression of Llama 3, Qwen 2 or GPT-2");
    } else if (type == "Digits" && !split && !digits) {
      if (!step["individual_digits"].boolean_or(false)) step.refuse("individual_digits true");
      digits = true;
    } else if (type == "ByteLevel") {
      if (step["add_prefix_space"].boolean_or(true)) step.refuse("add_prefix_space false");
      const bool expression = step["use_regex"].boolean_or(true);
      if (expression && split) step.refuse("use_regex false after a Split");
      if (digits && !expression) step.refuse("use_regex true after Digits");
      if (!expression && !split) step.refuse("a Split before it, or use_regex true");
      return digits ? "starcoder" : split ? *split : "gpt-2";
    } else {
      if (!split && !digits && steps.size() == 1) return std::nullopt;
      step["type"].refuse("Split by expression, Digits or ByteLevel");
    }
  }
  field.refuse("a ByteLevel step");
}

/// Fills the space rules of a SentencePiece-style file. @throws file_error: unknown component
inline void read_space_rules(const json_place& normalizer, const json_place& pre_tokenizer, vocabulary& out) {
  bool replaces = false;
  out.add_space_prefix = false;
  std::vector<json_place> steps;
  if (normalizer.present()) {
    if (normalizer["type"].text() == "Sequence") steps = normalizer["normalizers"].elements();
    else steps.push_back(normalizer);
  }
  for (const json_place& step : steps) {
    const std::string type = step["type"].text();
    if (type == "Prepend" && step["prepend"].text() == lower_block && !replaces) out.add_space_prefix = true;
    else if (type == "Replace" && step["pattern"]["String"].text_or("") == " " && step["content"].text() == lower_block)
      replaces = true;
    else step.refuse("Prepend U+2581, or Replace of a space by U+2581");
  }
  if (pre_tokenizer.present()) {
    const std::string type = pre_tokenizer["type"].text();
    if (type == "Metaspace" && !replaces && !*out.add_space_prefix && !pre_tokenizer["split"].boolean_or(true)) {
      if (pre_tokenizer["replacement"].text_or(lower_block) != lower_block) pre_tokenizer.refuse("replacement U+2581");
      const std::string scheme = pre_tokenizer["prepend_scheme"].text_or("always");
      if (scheme != "first" && scheme != "never") pre_tokenizer["prepend_scheme"].refuse("first or never");
      out.add_space_prefix = out.space_prefix_once = scheme == "first";
      replaces = true;
    } else if (!(type == "Split" && replaces && pre_tokenizer["pattern"]["String"].text_or("") == " ")) {
      pre_tokenizer.refuse(
          "none, Metaspace without split, or a Split at spaces, of which none are left");  // Gemma's Split splits
                                                                                           // nothing
    }
  }
  if (!replaces) normalizer.refuse("a Replace of spaces by U+2581");
}

/// Which special tokens the post-processor puts around a text. @return texts before and after it
inline std::pair<std::optional<std::string>, std::optional<std::string>> template_tokens(const json_place& field) {
  std::pair<std::optional<std::string>, std::optional<std::string>> out;
  if (!field.present()) return out;
  const std::string type = field["type"].text();
  std::vector<json_place> steps{field};
  if (type == "Sequence") steps = field["processors"].elements();
  for (const json_place& step : steps) {
    const std::string kind = step["type"].text();
    if (kind == "ByteLevel") continue;
    if (kind != "TemplateProcessing") step["type"].refuse("ByteLevel or TemplateProcessing");
    bool after = false;
    for (const json_place& part : step["single"].elements()) {
      if (part["Sequence"].present()) {
        after = true;
        continue;
      }
      auto& side = after ? out.second : out.first;
      if (side) part.refuse("one special token on each side of the text");
      side = part["SpecialToken"]["id"].text();
    }
  }
  return out;
}

/// A special token of tokenizer_config.json: a string, or an object with `content`.
inline std::optional<std::string> token_text(const json_place& field) {
  if (!field.present()) return std::nullopt;
  return field.is_object() ? field["content"].text() : field.text();
}

/// Puts vocab and added_tokens in the order of their ids; gaps become unused tokens. @throws file_error
inline void place_tokens(tokenizer_json& file, bool byte_fallback, const json_place& root, vocabulary& out) {
  struct token {
    std::uint64_t id;
    std::string text;
    token_type type;
  };
  std::vector<token> all;
  all.reserve(file.entries.size() + 64);
  const std::string unknown = root["model"]["unk_token"].text_or("");
  for (auto& [text, id] : file.entries) {
    const auto type = byte_fallback && byte_token_value(text) ? token_type::byte
                      : !unknown.empty() && text == unknown   ? token_type::unknown
                                                              : token_type::normal;
    all.push_back({id, std::move(text), type});
  }
  file.entries = {};
  std::sort(all.begin(), all.end(), [](const token& a, const token& b) { return a.id < b.id; });
  const std::size_t ordinary = all.size();
  for (const json_place& added : root["added_tokens"].elements()) {
    const std::uint64_t id = added["id"].natural();
    const std::string text = added["content"].text();
    if (text.empty()) added["content"].refuse("a text");
    for (const char* flag : {"single_word", "lstrip", "rstrip"})
      if (added[flag].boolean_or(false)) added[flag].refuse("false");
    const auto type = text == unknown                      ? token_type::unknown
                      : added["special"].boolean_or(false) ? token_type::control
                                                           : token_type::user_defined;
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(ordinary);
    const auto place = std::lower_bound(all.begin(), end, id, [](const token& t, std::uint64_t i) { return t.id < i; });
    if (place == end || place->id != id) all.push_back({id, text, type});
    else if (place->text == text) place->type = type;
    else added["content"].refuse("'" + printable(place->text) + "', the text of that id in model.vocab");
  }
  std::sort(all.begin(), all.end(), [](const token& a, const token& b) { return a.id < b.id; });
  const std::uint64_t limit = 4 * all.size() + 1024;
  if (!all.empty() && all.back().id >= limit)
    file.refuse("model.vocab", "ids below " + std::to_string(limit), std::to_string(all.back().id));
  for (auto& next : all) {
    if (next.id < out.tokens.size())
      file.refuse("model.vocab", "each id once",
                  "id " + std::to_string(next.id) + " for '" + printable(out.tokens.back()) + "' and '" +
                      printable(next.text) + "'");
    while (out.tokens.size() < next.id) {
      out.tokens.push_back("[PAD" + std::to_string(out.tokens.size()) + "]");
      out.token_types.push_back(static_cast<std::int32_t>(token_type::unused));
    }
    out.tokens.push_back(std::move(next.text));
    out.token_types.push_back(static_cast<std::int32_t>(next.type));
  }
}

inline std::optional<std::int64_t> id_of(const vocabulary& file, const std::optional<std::string>& text,
                                         const std::string& where) {
  if (!text) return std::nullopt;
  const auto at = std::find(file.tokens.begin(), file.tokens.end(), *text);
  if (at == file.tokens.end())
    throw file_error(file.source, std::nullopt, where, "the text of a token", "'" + printable(*text) + "'");
  return at - file.tokens.begin();
}

/// tokenizer_config.json and chat_template.jinja.
inline void read_config(const std::filesystem::path& directory, bool templated, vocabulary& out) {
  const auto path = directory / "tokenizer_config.json";
  strict_json document(path.string());
  if (std::filesystem::exists(path)) document.read_file(path);
  const json_place root(document.path(), "", document.root().is_null() ? nullptr : &document.root());
  const auto read_id = [&](const char* key, std::optional<std::int64_t>& id) {
    if (const auto text = token_text(root[key])) id = id_of(out, text, document.path() + ": " + key);
  };
  read_id("bos_token", out.bos_id);
  read_id("eos_token", out.eos_id);
  read_id("unk_token", out.unknown_id);
  if (const auto text = token_text(root["pad_token"]);
      text && std::find(out.tokens.begin(), out.tokens.end(), *text) != out.tokens.end())
    out.padding_id = id_of(out, text, "pad_token");
  if (!templated) {
    out.add_bos = root["add_bos_token"].boolean_or(false);
    out.add_eos = root["add_eos_token"].boolean_or(false);
  }
  const json_place text = root["chat_template"];
  if (text.is_string()) out.chat_template = text.text();
  else
    for (const json_place& named : text.elements())
      if (named["name"].text() == "default") out.chat_template = named["template"].text();
  if (const auto jinja = directory / "chat_template.jinja"; !out.chat_template && std::filesystem::exists(jinja)) {
    const mapped_file bytes(jinja);
    if (bytes.size() > 1 << 20)
      throw file_error(jinja.string(), std::nullopt, "chat template", "at most 1 MiB",
                       std::to_string(bytes.size()) + " bytes");
    std::string whole(static_cast<std::size_t>(bytes.size()), '\0');
    bytes.read(0, std::as_writable_bytes(std::span(whole)));
    out.chat_template = std::move(whole);
  }
}

/// config.json and generation_config.json, where they are there: the architecture, and the ends of a generation.
inline void read_model_config(const std::filesystem::path& directory, vocabulary& out) {
  const auto add = [&](const std::vector<std::int64_t>& ids) {
    for (const std::int64_t id : ids)
      if (std::find(out.end_ids.begin(), out.end_ids.end(), id) == out.end_ids.end()) out.end_ids.push_back(id);
  };
  if (const auto config = directory / "config.json"; std::filesystem::exists(config)) {
    strict_json document(config.string());
    document.read_file(config);
    const json_place root(document.path(), "", &document.root());
    if (out.architecture.empty()) out.architecture = root["model_type"].text_or("");
    add(eos_ids_of(root["eos_token_id"]));
    if (const json_place text = root["text_config"]; text.is_object()) add(eos_ids_of(text["eos_token_id"]));
  }
  if (const auto config = directory / "generation_config.json"; std::filesystem::exists(config))
    add(read_generation_config(config).eos_ids);
}

}  // namespace hf

/// Fills a vocabulary from the text of a tokenizer.json; `name` is for errors. @throws file_error
inline vocabulary vocabulary_from_tokenizer_json(std::string_view text, std::string name,
                                                 std::optional<std::filesystem::path> directory = std::nullopt) {
  tokenizer_json file(name);
  file.read_text(text);
  const json_place root(file.path(), "", &file.root());
  if (!root.is_object()) root.refuse("an object");
  const json_place model = root["model"];
  if (!model.present()) model.refuse("an object");
  if (model["vocab"].present()) model["vocab"].refuse("an object");
  if (model["merges"].present()) model["merges"].refuse("an array");
  vocabulary out;
  out.source = std::move(name);
  if (model["type"].text_or("BPE") != "BPE") model["type"].refuse("BPE");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model[key].text_or("").empty()) model[key].refuse("none");
  if (model["dropout"].present()) model["dropout"].refuse("none");
  if (file.entries.empty()) file.refuse("model.vocab", "tokens", "none");

  if (const auto pre = hf::byte_level_pretokenizer(root["pre_tokenizer"])) {
    out.model = "gpt2";
    out.pre_tokenizer = pre;
    if (root["normalizer"].present()) root["normalizer"].refuse("none before a byte-level pre-tokenizer");
    if (model["byte_fallback"].boolean_or(false))
      model["byte_fallback"].refuse("false with a byte-level pre-tokenizer");
    out.ignore_merges = model["ignore_merges"].boolean_or(false);
    hf::place_tokens(file, false, root, out);
  } else {
    out.model = "llama";
    if (!model["byte_fallback"].boolean_or(false)) model["byte_fallback"].refuse("true, or a byte-level pre-tokenizer");
    if (model["ignore_merges"].boolean_or(false)) model["ignore_merges"].refuse("false");
    if (file.merges.empty()) file.refuse("model.merges", "merges", "none");
    hf::read_space_rules(root["normalizer"], root["pre_tokenizer"], out);
    hf::place_tokens(file, true, root, out);
  }
  out.merges = std::move(file.merges);
  const auto [before, after] = hf::template_tokens(root["post_processor"]);
  const bool templated = root["post_processor"].present();
  out.bos_id = hf::id_of(out, before, "post_processor");
  out.eos_id = hf::id_of(out, after, "post_processor");
  if (templated) out.add_bos = before.has_value(), out.add_eos = after.has_value();
  if (const auto unknown = root["model"]["unk_token"].text_or(""); !unknown.empty())
    out.unknown_id = hf::id_of(out, unknown, "model.unk_token");
  if (directory) hf::read_config(*directory, templated, out);
  if (!out.add_bos) out.add_bos = false;
  return out;
}

/// Fills a vocabulary from a Hugging Face directory. @throws file_error naming file and place: missing, malformed, not
/// supported
inline vocabulary vocabulary_from_hf_directory(const std::filesystem::path& directory) {
  const auto path = directory / "tokenizer.json";
  const mapped_file bytes(path);
  if (bytes.size() > largest_json_bytes)
    throw file_error(path.string(), std::nullopt, "JSON", "at most " + std::to_string(largest_json_bytes) + " bytes",
                     std::to_string(bytes.size()));
  std::string text(static_cast<std::size_t>(bytes.size()), '\0');
  bytes.read(0, std::as_writable_bytes(std::span(text)));
  vocabulary out = vocabulary_from_tokenizer_json(text, path.string(), directory);
  hf::read_model_config(directory, out);
  return out;
}

}  // namespace intaglio::io
