// SPDX-License-Identifier: MIT
// Converts text to token ids and back, for the vocabulary models of the supported families.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/added_tokens.hpp"
#include "intaglio/io/byte_level_bpe.hpp"
#include "intaglio/io/end_of_generation.hpp"
#include "intaglio/io/nfc.hpp"
#include "intaglio/io/sentencepiece_bpe.hpp"
#include "intaglio/io/unigram.hpp"
#include "intaglio/io/vocabulary.hpp"
#include "intaglio/io/vocabulary_check.hpp"
#include "intaglio/io/wordpiece.hpp"

namespace intaglio::io {

/// Bytes [begin, end) of a text.
struct text_range {
  std::size_t begin = 0, end = 0;
};

/// Options of turning text into tokens.
struct encode_options {
  bool parse_special = false;  ///< texts of control tokens become these tokens; else they are plain text
  bool add_bos = false;        ///< puts BOS in front, unless parse_special reads one there
  bool add_eos = false;
  array_view<const text_range> plain =
      {};  ///< ranges where parse_special does not apply, ascending and disjoint; for text that a user typed
};

/// Options of turning tokens into text.
struct decode_options {
  bool skip_control = false;  ///< leaves control tokens out; else their text is printed
  bool text_start = true;     ///< the ids start a text: the space that encoding put in front of it is removed
};

/// The longest text that can be encoded.
inline constexpr std::size_t longest_text_bytes = std::size_t{1} << 30;

/// A tokenizer, built from a vocabulary that it validates completely. It is immutable, so any number of threads may use
/// it. Bytes that are not UTF-8 are kept: decode(encode(text)) == text for every byte string, with three exceptions. A
/// literal U+2581 in SentencePiece models decodes to a space. WordPiece loses case, accents and white space. Unigram
/// normalises.
class tokenizer {
 public:
  /// @param embedding_rows rows of the model's token embedding, where known
  /// @throws file_error naming the entry of the vocabulary at fault
  [[gnu::cold]] explicit tokenizer(const vocabulary& file, std::optional<std::uint64_t> embedding_rows = std::nullopt) {
    if (file.model != "gpt2" && file.model != "bert" && file.model != "t5" && file.model != "llama")
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.model", "gpt2, llama, bert or t5",
                       file.model.empty() ? "none" : "'" + printable(file.model) + "'");
    warnings_ = file.warnings;
    if (file.token_types.empty() && !file.tokens.empty())
      warnings_.push_back("tokenizer.ggml.token_type is missing: byte and control tokens are known by id and text");
    types_ = checked_token_types(file);
    check_token_texts(file, types_, embedding_rows);
    check_scores(file);
    rows_ = (std::max)(size(), static_cast<std::size_t>(embedding_rows.value_or(0)));
    const special_ids ids = checked_special_ids(file, warnings_);
    bos_ = ids.bos, eos_ = ids.eos, unknown_ = ids.unknown, padding_ = ids.padding;
    check_special_types(file, types_);
    if (std::string line = empty_tokens_warning(file); !line.empty()) warnings_.push_back(std::move(line));
    nfc_ = file.nfc;
    doubles_separator_ = file.doubles_separator;
    if (file.model == "gpt2") build_byte_level(file);
    else if (file.model == "bert") build_wordpiece(file);
    else if (file.model == "t5") build_unigram(file);
    else build_sentencepiece(file);
    read_defaults(file);
  }

  std::size_t size() const { return types_.size(); }
  std::optional<std::int32_t> bos() const { return bos_; }
  std::optional<std::int32_t> eos() const { return eos_; }
  std::optional<std::int32_t> unknown() const { return unknown_; }
  std::optional<std::int32_t> padding() const { return padding_; }
  /// Whether the model needs BOS in front of a whole text; encode adds it only when its options say so.
  bool adds_bos() const { return adds_bos_; }
  bool adds_eos() const { return adds_eos_; }
  /// Whether two EOS are between two texts that an encoder reads together.
  bool doubles_separator() const { return doubles_separator_; }
  /// Tokens after which a generation ends: EOS, EOT, others that the files name, and control tokens with known texts,
  /// ascending.
  const std::vector<std::int32_t>& end_of_generation_ids() const { return end_of_generation_; }
  bool is_end_of_generation(std::int32_t id) const {
    return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), id);
  }
  /// Oddities of the vocabulary that do no harm, one sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// The pre-tokenizer of a byte-level BPE; absent for SentencePiece vocabularies.
  std::optional<pretokenizer> pretokenizer_kind() const {
    const auto* model = std::get_if<byte_level_bpe>(&model_);
    return model ? std::optional{model->kind()} : std::nullopt;
  }

  /// The type of a token. Rows of the embedding after the last token are unused and have no text. @throws
  /// argument_error: id out of range
  token_type type(std::int32_t id) const {
    const std::size_t at = checked(id);
    return at < size() ? types_[at] : token_type::unused;
  }
  /// The bytes of a token, which are not always whole characters. @throws argument_error: id out of range
  std::string_view piece(std::int32_t id) const { return checked(id) < size() ? texts_[id] : std::string_view{}; }

  /// The control, unknown or user-defined token with this text.
  std::optional<std::int32_t> special_id(std::string_view text) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const bool special =
          types_[i] == token_type::control || types_[i] == token_type::unknown || types_[i] == token_type::user_defined;
      if (special && texts_[static_cast<std::int32_t>(i)] == text) return static_cast<std::int32_t>(i);
    }
    return std::nullopt;
  }

  /// The tokens of a text. The time is linear in the text, up to a logarithm. @throws argument_error: more than 1 GiB
  /// of text, BOS or EOS requested but not in the vocabulary
  std::vector<std::int32_t> encode(std::string_view text, const encode_options& options = {}) const {
    if (text.size() > longest_text_bytes)
      throw argument_error("text", "at most 1 GiB", std::to_string(text.size()) + " bytes");
    if (options.add_bos && !bos_) throw argument_error("add_bos", "a BOS token in the vocabulary", "none");
    if (options.add_eos && !eos_) throw argument_error("add_eos", "an EOS token in the vocabulary", "none");
    std::vector<std::int32_t> out;
    out.reserve(text.size() / 4 + 2);
    const auto allowed = [&](std::size_t begin, std::size_t bytes, std::int32_t id) {
      // Other user-defined tokens are text like any other, even where a user typed them.
      if (types_[static_cast<std::size_t>(id)] == token_type::user_defined && !is_markup_text(texts_[id])) return true;
      const auto after = std::partition_point(options.plain.begin(), options.plain.end(),
                                              [&](const text_range& r) { return r.end <= begin; });
      return after == options.plain.end() || after->begin >= begin + bytes;
    };
    if (options.add_bos) out.push_back(*bos_);
    encoder work{{}, {}, {}, out};
    (options.parse_special ? special_ : always_)
        .split(
            text, allowed, [&](std::size_t begin, std::size_t end) { encode_plain(text, begin, end, work); },
            [&](std::size_t begin, std::int32_t id) {
              const bool written_bos = options.add_bos && begin == 0 && id == *bos_;
              if (!written_bos) out.push_back(id);
            });
    if (options.add_eos) out.push_back(*eos_);
    return out;
  }

  /// The bytes of all tokens. @throws argument_error: id out of range
  std::string decode(std::span<const std::int32_t> ids, const decode_options& options = {}) const {
    std::string out;
    bool start = options.text_start;
    for (const std::int32_t id : ids) {
      out.append(printed_piece(id, options.skip_control, start));
      start = start && options.skip_control && type(id) == token_type::control;
    }
    return out;
  }

  /// piece(id) as it is printed: empty for control tokens that are skipped, and without an added space at the start of
  /// a text.
  std::string_view printed_piece(std::int32_t id, bool skip_control, bool text_start) const {
    std::string_view text = piece(id);
    const token_type kind = type(id);
    if (skip_control && kind == token_type::control) return {};
    const auto* model = std::get_if<sentencepiece_bpe>(&model_);
    const auto* best = std::get_if<unigram>(&model_);
    const bool spaced = std::holds_alternative<wordpiece>(model_) || (model && model->adds_space_prefix()) ||
                        (best && best->adds_space_prefix());
    if (text_start && spaced && kind == token_type::normal && text.starts_with(' ')) text.remove_prefix(1);
    return text;
  }

 private:
  /// The output of encoding a text, and its scratch memory.
  struct encoder {
    merge_scratch scratch;
    std::string normal, escaped;
    std::vector<std::int32_t>& out;
  };

  /// Encodes a stretch of text between added tokens: first tokens that are searched for in normalised text, then the
  /// model's own tokens.
  void encode_plain(std::string_view whole, std::size_t begin, std::size_t end, encoder& work) const {
    std::string_view text = whole.substr(begin, end - begin);
    if (nfc_) text = work.normal = to_nfc(text);
    normalized_.split(
        text, [](std::size_t, std::size_t, std::int32_t) { return true; },
        [&](std::size_t from, std::size_t to) {
          const std::string_view plain = text.substr(from, to - from);
          if (const auto* model = std::get_if<byte_level_bpe>(&model_))
            model->encode(plain, texts_, ordinary_, work.scratch, work.out);
          else if (const auto* pieces = std::get_if<wordpiece>(&model_)) pieces->encode(plain, work.out);
          else if (const auto* best = std::get_if<unigram>(&model_))
            best->encode(plain, begin == 0 && from == 0, work.out);
          else
            std::get<sentencepiece_bpe>(model_).encode(plain, begin == 0 && from == 0, work.scratch, work.escaped,
                                                       work.out);
        },
        [&](std::size_t, std::int32_t id) { work.out.push_back(id); });
  }

  std::size_t checked(std::int32_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= rows_)
      throw argument_error("token id", "0 .. " + std::to_string(rows_ - 1), std::to_string(id));
    return static_cast<std::size_t>(id);
  }

  /// @param raw raw(id) gives the bytes of a token, for tokens that plain text may become
  [[gnu::cold]] void build_byte_level(const vocabulary& file) {
    texts_.reserve(size());
    ordinary_ = token_index{size()};
    std::size_t foreign = 0, duplicates = 0;
    std::vector<std::int32_t> ordinary;
    for (std::size_t i = 0; i < size(); ++i) {
      if (types_[i] == token_type::byte)
        throw file_error(file.source, std::nullopt, "tokenizer.ggml.token_type[" + std::to_string(i) + "]",
                         "no byte tokens in a gpt2 vocabulary", "6");
      std::optional<std::string> raw;
      if (types_[i] == token_type::normal && !(raw = from_byte_alphabet(file.tokens[i]))) ++foreign;
      texts_.add(raw ? *raw : file.tokens[i]);
      if (raw && !raw->empty()) ordinary.push_back(static_cast<std::int32_t>(i));
    }
    for (const std::int32_t id : ordinary) duplicates += ordinary_.insert(texts_, id) != id;
    if (foreign)
      warnings_.push_back(std::to_string(foreign) +
                          " ordinary tokens are not in the byte alphabet and never come out of text");
    warn_duplicates(duplicates);
    const pretokenizer_name name = resolved_pretokenizer(file, warnings_);
    pretokenizer_adds_bos_ = name.adds_bos;
    const bool ignore_merges = file.ignore_merges.value_or(name.ignore_merges);
    if (std::string line = check_merges(file, ordinary, texts_, ignore_merges); !line.empty())
      warnings_.push_back(std::move(line));
    const auto& model = model_.emplace<byte_level_bpe>(file, name.kind, ignore_merges, texts_, ordinary_);
    if (model.missing_bytes() != 0)
      warnings_.push_back(std::to_string(model.missing_bytes()) +
                          " of the 256 bytes have no token: text loses them where no other token has them");
    collect_special(file, true);
  }

  [[gnu::cold]] void build_sentencepiece(const vocabulary& file) {
    texts_ = spaced_texts(file, types_);
    token_texts escaped;
    escaped.reserve(size());
    for (std::size_t i = 0; i < size(); ++i)
      escaped.add(is_spaced(types_[i]) ? escape_spaces(file.tokens[i]) : file.tokens[i]);
    token_index ordinary{size()};
    std::size_t duplicates = 0;
    for (std::size_t i = 0; i < size(); ++i)
      if ((types_[i] == token_type::normal || types_[i] == token_type::user_defined) && !file.tokens[i].empty())
        duplicates += ordinary.insert(escaped, static_cast<std::int32_t>(i)) != static_cast<std::int32_t>(i);
    warn_duplicates(duplicates);
    model_.emplace<sentencepiece_bpe>(file, types_, escaped, std::move(ordinary));
    // With scores the model itself finds user-defined tokens in escaped text; with ranks they are literal texts, as in
    // tokenizer.json.
    collect_special(file, !file.merges.empty());
  }

  [[gnu::cold]] void build_wordpiece(const vocabulary& file) {
    if (!unknown_)
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.unknown_token_id", "a token for words without pieces",
                       "none");
    texts_.reserve(size());
    token_texts written;
    written.reserve(size());
    token_index ordinary{size()};
    std::size_t duplicates = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const bool text = types_[i] == token_type::normal;
      texts_.add(text ? unescape_spaces(file.tokens[i]) : file.tokens[i]);
      written.add(file.tokens[i]);
      if (text && !file.tokens[i].empty()) duplicates += ordinary.insert(written, id) != id;
    }
    warn_duplicates(duplicates);
    model_.emplace<wordpiece>(file, std::move(written), std::move(ordinary), *unknown_);
    collect_special(file, true);
  }

  [[gnu::cold]] void build_unigram(const vocabulary& file) {
    if (!unknown_)
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.unknown_token_id",
                       "a token for characters without pieces", "none");
    texts_ = spaced_texts(file, types_);
    token_texts written;
    written.reserve(size());
    for (const std::string& token : file.tokens) written.add(token);
    model_.emplace<unigram>(file, types_, written, *unknown_);
    collect_special(file, true);
  }

  /// @param user_defined whether these tokens are searched for in the raw text; else only those that the file adds are
  [[gnu::cold]] void collect_special(const vocabulary& file, bool user_defined) {
    std::vector<std::pair<std::string_view, std::int32_t>> all, always, normalized;
    std::vector<std::string> normal_texts;
    std::vector<const added_token*> rules(size(), nullptr);
    for (const added_token& rule : file.added) rules[checked(static_cast<std::int32_t>(rule.id))] = &rule;
    normal_texts.reserve(file.added.size());
    for (std::size_t i = 0; i < size(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const std::string_view text = file.tokens[i];
      if (text.empty()) continue;
      if (types_[i] == token_type::control || types_[i] == token_type::unknown) all.emplace_back(text, id);
      if (types_[i] != token_type::user_defined || !(user_defined || rules[i])) continue;
      if (rules[i] && is_found_escaped(file, *rules[i])) continue;
      if (rules[i] && rules[i]->normalized && !is_markup_text(text))
        normalized.emplace_back(normal_texts.emplace_back(nfc_ ? to_nfc(text) : std::string(text)), id);
      else all.emplace_back(text, id), always.emplace_back(text, id);
    }
    special_ = {std::move(all), file.added};
    always_ = {std::move(always), file.added};
    normalized_ = {std::move(normalized), file.added};
  }

  void warn_duplicates(std::size_t count) {
    if (count)
      warnings_.push_back(std::to_string(count) +
                          " tokens repeat the text of an earlier one; the first of each text encodes it");
  }

  void read_defaults(const vocabulary& file) {
    const bool sentences = std::holds_alternative<sentencepiece_bpe>(model_);
    if (file.add_bos.value_or(false) && !bos_)
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.bos_token_id", "a token, as add_bos_token is true",
                       "none");
    if (file.add_eos.value_or(false) && !eos_)
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.eos_token_id", "a token, as add_eos_token is true",
                       "none");
    adds_bos_ = file.add_bos.value_or(bos_ && (sentences || pretokenizer_adds_bos_));
    adds_eos_ = file.add_eos.value_or(false);
    end_of_generation_ = end_of_generation_tokens(file, types_);
  }

  std::vector<token_type> types_;
  std::size_t rows_ = 0;  ///< number of ids that a model may draw: tokens, and rows of its embedding after them
  token_texts texts_;
  token_index ordinary_;
  std::variant<std::monostate, byte_level_bpe, sentencepiece_bpe, wordpiece, unigram> model_;
  added_tokens special_, always_;  ///< all added tokens; added tokens found without parse_special
  added_tokens normalized_;        ///< added tokens that are found in normalised text
  std::optional<std::int32_t> bos_, eos_, unknown_, padding_;
  bool adds_bos_ = false, adds_eos_ = false, pretokenizer_adds_bos_ = false, nfc_ = false, doubles_separator_ = false;
  std::vector<std::int32_t> end_of_generation_;
  std::vector<std::string> warnings_;
};

}  // namespace intaglio::io
