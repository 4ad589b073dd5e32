// SPDX-License-Identifier: MIT
// Reads the tokenizer of a Hugging Face directory: tokenizer.json, with tokenizer_config.json, chat_template.jinja and
// config.json where present. It supports BPE in the two forms of io::tokenizer, WordPiece and Unigram; every other
// component is refused by name.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/hf_tokenizer_config.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/io/pretokenizer_names.hpp"
#include "intaglio/io/sentencepiece_bpe.hpp"
#include "intaglio/io/strict_json.hpp"
#include "intaglio/io/tiktoken_list.hpp"
#include "intaglio/io/vocabulary.hpp"
#include "intaglio/io/wordpiece.hpp"

namespace intaglio::io {

/// Reads tokenizer.json. model.vocab and model.merges go directly into vectors, since they are nearly all of the file.
class tokenizer_json : public strict_json {
 public:
  using strict_json::strict_json;
  std::vector<std::pair<std::string, std::uint64_t>> entries;  ///< text and id, in file order
  std::vector<std::string> merges;                             ///< "left right"
  std::vector<float> scores;                                   ///< scores of Unigram's entries, whose ids are their
                                                               ///< indices

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
    if (part_ == part::pieces) return part_ = part::piece, sides_ = 0, true;
    if (part_ != part::none) refuse_element();
    if (at("merges")) return part_ = part::merges, true;
    if (at("vocab")) return part_ = part::pieces, true;
    return strict_json::start_array(size);
  }
  bool end_array() override {
    if (part_ == part::merges || part_ == part::pieces) return part_ = part::none, true;
    if (part_ != part::pair && part_ != part::piece) return strict_json::end_array();
    if (sides_ != 2) refuse_element();
    return part_ = part_ == part::pair ? part::merges : part::pieces, true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (part_ == part::vocab) return entries.back().second = value, true;
    if (part_ == part::piece) return score(static_cast<double>(value));
    return part_ == part::none ? strict_json::number_unsigned(value) : refuse_element();
  }
  bool string(string_t& value) override {
    if (part_ == part::merges) return merges.push_back(std::move(value)), true;
    if (part_ == part::piece && sides_++ == 0) return entries.emplace_back(std::move(value), entries.size()), true;
    if (part_ != part::pair) return part_ == part::none ? strict_json::string(value) : refuse_element();
    if (value.empty() || sides_ == 2 || (sides_ == 0 && value.find(' ', 1) != std::string::npos)) refuse_element();
    if (sides_++ == 0) merges.push_back(std::move(value));
    else merges.back().append(" ").append(value);
    return true;
  }
  bool null() override { return part_ == part::none ? strict_json::null() : refuse_element(); }
  bool boolean(bool value) override { return part_ == part::none ? strict_json::boolean(value) : refuse_element(); }
  bool number_integer(number_integer_t value) override {
    if (part_ == part::piece) return score(static_cast<double>(value));
    return part_ == part::none ? strict_json::number_integer(value) : refuse_element();
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (part_ == part::piece) return score(value);
    return part_ == part::none ? strict_json::number_float(value, text) : refuse_element();
  }

 private:
  enum class part { none, vocab, merges, pair, pieces, piece };
  bool score(double value) {
    if (sides_++ != 1) refuse_element();
    if (!(std::abs(value) <= double{(std::numeric_limits<float>::max)()}))
      refuse("model.vocab", "scores in the range of float", "another at entry " + std::to_string(entries.size()));
    return scores.push_back(static_cast<float>(value)), true;
  }
  bool at(std::string_view name) const { return depth() == 2 && outer_ == "model" && inner_ == name; }
  [[noreturn]] bool refuse_element() const {
    if (part_ == part::vocab)
      refuse("model.vocab", "texts with natural numbers",
             "another kind of value at entry " + std::to_string(entries.size()));
    if (part_ == part::pieces || part_ == part::piece)
      refuse("model.vocab", "pairs of a text and a score",
             "another kind of value at entry " + std::to_string(entries.size()));
    refuse("model.merges", "texts or pairs of texts",
           "another kind of value at entry " + std::to_string(merges.size()));
  }
  part part_ = part::none;
  std::string outer_, inner_;
  int sides_ = 0;
};

namespace hf {

/// Whether steps are Falcon's: punctuation, GPT-2's words, runs of digits, three digits. Its step ByteLevel is not the
/// last one.
[[gnu::cold]] inline bool are_falcon_steps(const std::vector<located_json>& steps) {
  return steps.size() == 4 && steps[0]["type"].text() == "Punctuation" &&
         steps[0]["behavior"].text_or("") == "Contiguous" && steps[1]["type"].text() == "ByteLevel" &&
         !steps[1]["add_prefix_space"].boolean_or(true) && steps[1]["use_regex"].boolean_or(true) &&
         steps[2]["type"].text() == "Digits" && !steps[2]["individual_digits"].boolean_or(false) &&
         steps[3]["type"].text() == "Split" && steps[3]["pattern"]["Regex"].text_or("") == "[0-9][0-9][0-9]" &&
         steps[3]["behavior"].text_or("") == "Isolated" && !steps[3]["invert"].boolean_or(false);
}

/// The pre-tokenizer of a byte-level file; absent where pre_tokenizer is not byte-level. @throws file_error: unknown
/// component
[[gnu::cold]] inline std::optional<pretokenizer> byte_level_pretokenizer(const located_json& field) {
  if (!field.present()) return std::nullopt;
  std::vector<located_json> steps{field};
  if (field["type"].text() == "Sequence") steps = field["pretokenizers"].elements();
  if (are_falcon_steps(steps)) return pretokenizer::falcon;
  std::vector<std::string> expressions;
  const auto known = [&]() -> const split_expressions* {
    for (const split_expressions& each : known_splits())
      if (each.steps == expressions) return &each;
    return nullptr;
  };
  bool removes = false;
  for (const located_json& step : steps) {
    const std::string type = step["type"].text();
    if (type == "Split" && step["pattern"]["Regex"].present()) {
      const std::string behavior = step["behavior"].text();
      const bool inverted = step["invert"].boolean_or(false);
      // "Removed" with `invert` gives the same pieces where the expressions match everything.
      if (behavior == "Removed" && inverted) removes = true;
      else if (behavior != "Isolated" || inverted) step.refuse("behavior Isolated, not inverted");
      expressions.push_back(step["pattern"]["Regex"].text());
      const bool begins = std::any_of(known_splits().begin(), known_splits().end(), [&](const auto& each) {
        return each.steps.size() >= expressions.size() &&
               std::equal(expressions.begin(), expressions.end(), each.steps.begin());
      });
      if (!begins) step["pattern"]["Regex"].refuse("the expression of a known pre-tokenizer (llama-bpe, qwen2, ...)");
    } else if (type == "Digits") {
      if (!step["individual_digits"].boolean_or(false)) step.refuse("individual_digits true");
      expressions.emplace_back(each_number);
    } else if (type == "ByteLevel") {
      if (step["add_prefix_space"].boolean_or(true)) step.refuse("add_prefix_space false");
      if (step["use_regex"].boolean_or(true)) expressions.emplace_back(gpt2_expression);
      const split_expressions* found = known();
      if (found == nullptr || (removes && expressions.size() != 1))
        step.refuse("the steps of a known pre-tokenizer (llama-bpe, qwen2, ...) before it");
      return found->kind;
    } else {
      if (expressions.empty() && steps.size() == 1) return std::nullopt;
      step["type"].refuse("Split by expression, Digits or ByteLevel");
    }
  }
  field.refuse("a ByteLevel step");
}

/// Whether text is normalised to NFC in front of a byte-level pre-tokenizer. @throws file_error: another normaliser
inline bool byte_level_nfc(const located_json& normalizer) {
  if (!normalizer.present()) return false;
  std::vector<located_json> steps{normalizer};
  if (normalizer["type"].text() == "Sequence") steps = normalizer["normalizers"].elements();
  for (const located_json& step : steps)
    if (step["type"].text() != "NFC") step.refuse("none, or NFC, before a byte-level pre-tokenizer");
  return !steps.empty();
}

/// Reads the space rules of a SentencePiece-style file. @throws file_error: unknown component
[[gnu::cold]] inline void read_space_rules(const located_json& normalizer, const located_json& pre_tokenizer,
                                           vocabulary& out) {
  bool replaces = false;
  out.add_space_prefix = false;
  std::vector<located_json> steps;
  if (normalizer.present()) {
    if (normalizer["type"].text() == "Sequence") steps = normalizer["normalizers"].elements();
    else steps.push_back(normalizer);
  }
  for (const located_json& step : steps) {
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
      if (scheme != "first" && scheme != "never" && scheme != "always")
        pre_tokenizer["prepend_scheme"].refuse("first, always or never");
      out.add_space_prefix = scheme != "never";
      out.space_prefix_once = scheme == "first";
      replaces = true;
    } else if (!(type == "Split" && replaces && pre_tokenizer["pattern"]["String"].text_or("") == " ")) {
      pre_tokenizer.refuse(
          "none, Metaspace without split, or a Split at spaces, of which none are left");  // Gemma's Split splits
                                                                                           // nothing
    }
  }
  if (!replaces) normalizer.refuse("a Replace of spaces by U+2581");
}

/// The special tokens that the post-processor puts around a text. @return the texts before and after it
[[gnu::cold]] inline std::pair<std::optional<std::string>, std::optional<std::string>> template_tokens(
    const located_json& field) {
  std::pair<std::optional<std::string>, std::optional<std::string>> out;
  if (!field.present()) return out;
  const std::string type = field["type"].text();
  std::vector<located_json> steps{field};
  if (type == "Sequence") steps = field["processors"].elements();
  for (const located_json& step : steps) {
    const std::string kind = step["type"].text();
    if (kind == "ByteLevel") continue;
    if ((kind == "BertProcessing" || kind == "RobertaProcessing") && !out.first) {
      const auto text = [&](const char* key) {
        const std::vector<located_json> pair = step[key].elements();
        if (pair.empty()) step[key].refuse("a token and its id");
        return pair.front().text();
      };
      out = {text("cls"), text("sep")};
      continue;
    }
    if (kind != "TemplateProcessing")
      step["type"].refuse("ByteLevel, BertProcessing, RobertaProcessing or TemplateProcessing");
    bool after = false;
    for (const located_json& part : step["single"].elements()) {
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

/// Whether the post-processor puts two special tokens between two texts, as RoBERTa's does.
[[gnu::cold]] inline bool doubles_separator(const located_json& field) {
  if (!field.present()) return false;
  std::vector<located_json> steps{field};
  if (field["type"].text() == "Sequence") steps = field["processors"].elements();
  for (const located_json& step : steps) {
    if (step["type"].text() == "RobertaProcessing") return true;
    if (step["type"].text() != "TemplateProcessing") continue;
    std::size_t sequences = 0, between = 0;
    for (const located_json& part : step["pair"].elements())
      if (part["Sequence"].present()) ++sequences;
      else if (sequences == 1) ++between;
    if (sequences == 2 && between == 2) return true;
  }
  return false;
}

/// Puts vocab and added_tokens in the order of their ids; gaps become unused tokens. @throws file_error
[[gnu::cold]] inline void place_tokens(tokenizer_json& file, bool byte_fallback, const located_json& root,
                                       vocabulary& out, const std::string& unknown) {
  struct token {
    std::uint64_t id;
    std::string text;
    token_type type;
  };
  const auto by_id = [](const token& a, const token& b) { return a.id < b.id; };
  std::vector<token> all;
  all.reserve(file.entries.size() + 64);
  for (auto& [text, id] : file.entries) {
    const auto type = byte_fallback && byte_token_value(text) ? token_type::byte
                      : !unknown.empty() && text == unknown   ? token_type::unknown
                                                              : token_type::normal;
    all.push_back({id, std::move(text), type});
  }
  file.entries = {};
  sort_once(all, by_id);
  const std::size_t ordinary = all.size();
  for (const located_json& added : root["added_tokens"].elements()) {
    const std::uint64_t id = added["id"].natural();
    const std::string text = added["content"].text();
    if (text.empty()) added["content"].refuse("a text");
    if (const added_token rule = added_rule(added, id); !rule.plain()) out.added.push_back(rule);
    const auto type = text == unknown                      ? token_type::unknown
                      : added["special"].boolean_or(false) ? token_type::control
                                                           : token_type::user_defined;
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(ordinary);
    const auto known = std::lower_bound(all.begin(), end, id, [](const token& t, std::uint64_t i) { return t.id < i; });
    if (known == end || known->id != id) all.push_back({id, text, type});
    else if (known->text == text) known->type = type;
    else added["content"].refuse("'" + printable(known->text) + "', the text of that id in model.vocab");
  }
  sort_once(all, by_id);
  const std::uint64_t limit = id_limit(all.size());
  if (!all.empty() && all.back().id >= limit)
    file.refuse("model.vocab", "ids below " + std::to_string(limit), std::to_string(all.back().id));
  for (auto& next : all) {
    if (next.id < out.tokens.size())
      file.refuse("model.vocab", "each id once",
                  "id " + std::to_string(next.id) + " for '" + printable(out.tokens.back()) + "' and '" +
                      printable(next.text) + "'");
    fill_to(next.id, out);
    out.tokens.push_back(std::move(next.text));
    out.token_types.push_back(static_cast<std::int32_t>(next.type));
  }
}

/// Reads WordPiece as BERT uses it. The tokens are stored as in GGUF: U+2581 is in front of those that begin a word,
/// other tokens have no prefix, and names in brackets are unchanged. @throws file_error: another normaliser or
/// pre-tokenizer
[[gnu::cold]] inline void read_wordpiece(tokenizer_json& file, const located_json& root, vocabulary& out) {
  const located_json model = root["model"], normalizer = root["normalizer"], splitter = root["pre_tokenizer"];
  constexpr std::string_view continues = "##";
  if (model["continuing_subword_prefix"].text_or(std::string(continues)) != continues)
    model["continuing_subword_prefix"].refuse("##");
  if (const located_json most = model["max_input_chars_per_word"]; most.present() && most.natural() != longest_word)
    most.refuse(std::to_string(longest_word));
  if (normalizer["type"].text() != "BertNormalizer") normalizer["type"].refuse("BertNormalizer");
  for (const char* key : {"clean_text", "handle_chinese_chars"})
    if (!normalizer[key].boolean_or(true)) normalizer[key].refuse("true");
  if (splitter["type"].text() != "BertPreTokenizer") splitter["type"].refuse("BertPreTokenizer");
  out.model = "bert";
  out.lowercase = normalizer["lowercase"].boolean_or(true);
  out.strip_accents = normalizer["strip_accents"].boolean_or(*out.lowercase);
  place_tokens(file, false, root, out, model["unk_token"].text_or(""));
  for (std::string& token : out.tokens) {
    if (token.size() > 1 && token.front() == '[' && token.back() == ']') continue;
    token = token.starts_with(continues) ? token.substr(continues.size()) : std::string(lower_block) + token;
  }
}

/// Reads how a Unigram file changes text: its normaliser's map, and white space. @throws file_error: another component
[[gnu::cold]] inline void read_unigram_rules(const located_json& normalizer, const located_json& pre_tokenizer,
                                             vocabulary& out) {
  const auto steps_of = [](const located_json& field, const char* key) {
    if (!field.present()) return std::vector<located_json>{};
    return field["type"].text() == "Sequence" ? field[key].elements() : std::vector<located_json>{field};
  };
  unigram_spaces& spaces = out.spaces;
  bool written = false;  // the normaliser itself writes U+2581
  for (const located_json& step : steps_of(normalizer, "normalizers")) {
    const std::string type = step["type"].text();
    const bool first = out.charsmap.empty() && !spaces.merged && !spaces.end_stripped;
    if (type == "Precompiled" && first) {
      const auto bytes = decode_base64(step["precompiled_charsmap"].text());
      if (!bytes || bytes->empty())
        throw file_error(step.file(), std::nullopt, step.where() + ".precompiled_charsmap", "base64", "another text");
      out.charsmap = *bytes;
    } else if (type == "Strip" && !spaces.merged && !step["strip_left"].boolean_or(false) &&
               step["strip_right"].boolean_or(false)) {
      spaces.end_stripped = true;
    } else if (const std::string content = step["content"].text_or("");
               type == "Replace" && step["pattern"]["Regex"].text_or("") == " {2,}" &&
               (content == " " || content == lower_block)) {
      spaces.merged = true, written = content == lower_block;
    } else {
      step.refuse("Precompiled, Strip at the right, or Replace of runs of spaces, in this order");
    }
  }
  bool prefixed = false;
  for (const located_json& step : steps_of(pre_tokenizer, "pretokenizers")) {
    const std::string type = step["type"].text();
    if (type == "WhitespaceSplit" && !spaces.split && !prefixed && !written) {
      spaces.split = true;
    } else if (type == "Metaspace" && !prefixed) {
      if (step["replacement"].text_or(lower_block) != lower_block) step["replacement"].refuse("U+2581");
      const bool always = step["add_prefix_space"].boolean_or(true);
      const std::string scheme = step["prepend_scheme"].text_or(always ? "always" : "never");
      if (scheme != "always" && scheme != "never" && (scheme != "first" || spaces.split))
        step["prepend_scheme"].refuse(spaces.split ? "always or never" : "first, always or never");
      out.add_space_prefix = scheme != "never";
      out.space_prefix_once = scheme == "first";
      spaces.words = step["split"].boolean_or(true);
      prefixed = true;
    } else {
      step.refuse("WhitespaceSplit, then Metaspace");
    }
  }
  if (!prefixed) pre_tokenizer.refuse("Metaspace");
}

/// Reads Unigram: texts with their scores; ids are indices. @throws file_error: another component
[[gnu::cold]] inline void read_unigram_json(tokenizer_json& file, const located_json& root, vocabulary& out) {
  const located_json unknown = root["model"]["unk_id"];
  if (file.scores.size() != file.entries.size()) file.refuse("model.vocab", "pairs of a text and a score", "an object");
  if (unknown.natural() >= file.entries.size())
    unknown.refuse("an id below " + std::to_string(file.entries.size()) + ", of a token");
  out.model = "t5";
  out.unknown_id = static_cast<std::int64_t>(unknown.natural());
  const std::string text = file.entries[static_cast<std::size_t>(*out.unknown_id)].first;
  read_unigram_rules(root["normalizer"], root["pre_tokenizer"], out);
  place_tokens(file, root["model"]["byte_fallback"].boolean_or(false), root, out, text);
  out.scores = std::move(file.scores);
  out.scores.resize(out.tokens.size());
}

/// Reads BPE, byte-level or of SentencePiece's kind. @throws file_error: another component
[[gnu::cold]] inline void read_bpe(tokenizer_json& file, const located_json& root, vocabulary& out) {
  const located_json model = root["model"];
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model[key].text_or("").empty()) model[key].refuse("none");
  if (model["dropout"].present() && model["dropout"].number() != 0) model["dropout"].refuse("none, or 0");
  if (const auto pre = byte_level_pretokenizer(root["pre_tokenizer"])) {
    out.model = "gpt2";
    out.nfc = byte_level_nfc(root["normalizer"]);
    if (model["byte_fallback"].boolean_or(false))
      model["byte_fallback"].refuse("false with a byte-level pre-tokenizer");
    out.ignore_merges = model["ignore_merges"].boolean_or(false);
    out.pre_tokenizer = std::string(name_of(*pre, *out.ignore_merges).name);
    place_tokens(file, false, root, out, model["unk_token"].text_or(""));
  } else {
    out.model = "llama";
    if (!model["byte_fallback"].boolean_or(false)) model["byte_fallback"].refuse("true, or a byte-level pre-tokenizer");
    if (model["ignore_merges"].boolean_or(false)) model["ignore_merges"].refuse("false");
    if (file.merges.empty()) file.refuse("model.merges", "merges", "none");
    read_space_rules(root["normalizer"], root["pre_tokenizer"], out);
    place_tokens(file, true, root, out, model["unk_token"].text_or(""));
  }
}

}  // namespace hf

/// Fills a vocabulary from the text of a tokenizer.json; `name` is for errors. @throws file_error
[[gnu::cold]] inline vocabulary vocabulary_from_tokenizer_json(
    std::string_view text, std::string name, std::optional<std::filesystem::path> directory = std::nullopt) {
  tokenizer_json file(name);
  file.read_text(text);
  const located_json root(file.path(), "", &file.root());
  if (!root.is_object()) root.refuse("an object");
  const located_json model = root["model"];
  if (!model.present()) model.refuse("an object");
  if (model["vocab"].present()) model["vocab"].refuse("an object");
  if (model["merges"].present()) model["merges"].refuse("an array");
  vocabulary out;
  out.source = std::move(name);
  const std::string kind = model["type"].text_or("BPE");
  if (kind != "BPE" && kind != "WordPiece" && kind != "Unigram") model["type"].refuse("BPE, WordPiece or Unigram");
  if (file.entries.empty()) file.refuse("model.vocab", "tokens", "none");
  if (kind == "Unigram") hf::read_unigram_json(file, root, out);
  else if (!file.scores.empty())
    file.refuse("model.vocab", "texts with natural numbers", "pairs of a text and a score");
  else if (kind == "WordPiece") hf::read_wordpiece(file, root, out);
  else hf::read_bpe(file, root, out);
  hf::judge_tokenizer_json(root, out);
  out.merges = std::move(file.merges);
  const auto [before, after] = hf::template_tokens(root["post_processor"]);
  const bool templated = root["post_processor"].present();
  out.bos_id = hf::id_of(out, before, "post_processor");
  out.eos_id = hf::id_of(out, after, "post_processor");
  out.doubles_separator = hf::doubles_separator(root["post_processor"]);
  if (templated) out.add_bos = before.has_value(), out.add_eos = after.has_value();
  if (const auto unknown = root["model"]["unk_token"].text_or(""); !unknown.empty())
    out.unknown_id = hf::id_of(out, unknown, "model.unk_token");
  if (directory)
    hf::read_config(*directory, templated ? hf::vocabulary_form::templated_json : hf::vocabulary_form::json, out);
  // A template may end a text with another token than the one that ends a generation (Qwen3-Embedding). As in
  // llama.cpp's converter the template's token becomes eos, and the other one ends a turn.
  if (const auto end = hf::id_of(out, after, "post_processor"); end && out.eos_id != end) {
    if (!out.eot_id) out.eot_id = out.eos_id;
    out.eos_id = end;
  }
  if (!out.add_bos) out.add_bos = false;
  return out;
}

/// Reads a vocabulary from a Hugging Face directory. @throws file_error naming file and key: missing, malformed, not
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
