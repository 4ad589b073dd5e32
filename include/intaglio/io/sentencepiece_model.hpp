// SPDX-License-Identifier: MIT
// Reads a vocabulary from SentencePiece's tokenizer.model: a protobuf ModelProto (sentencepiece_model.proto). It
// supports only BPE with identity normalisation, which Llama, Mistral and Gemma use; another model or normaliser is
// refused by name.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "intaglio/core/error.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// Limits of a SentencePiece model that is read.
struct sentencepiece_limits {
  static constexpr std::uint64_t file_bytes = std::uint64_t{64} << 20;
  static constexpr std::size_t pieces = 4'194'304;
};

/// A field of a protobuf message: a number (varint or fixed), or bytes.
struct protobuf_field {
  std::uint32_t number = 0;
  bool is_text = false;
  std::uint64_t value = 0;
  std::string_view text{};
  std::size_t offset = 0;  ///< of the field in the file
};

/// Reads the fields of one message in order.
class protobuf_cursor {
 public:
  /// @param offset of `bytes` in the file
  protobuf_cursor(std::string_view bytes, std::size_t offset, const std::string& path)
      : bytes_(bytes), offset_(offset), path_(&path) {}

  /// Reads the next field; absent at the end. @throws file_error: a field that is cut, of a removed or unknown wire
  /// type, a number longer than 64 bits
  std::optional<protobuf_field> next() {
    if (at_ == bytes_.size()) return std::nullopt;
    protobuf_field out;
    out.offset = offset_ + at_;
    const std::uint64_t key = varint();
    if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF) refuse("field number", "1 to 536870911", std::to_string(key >> 3));
    out.number = static_cast<std::uint32_t>(key >> 3);
    switch (key & 7) {
      case 0:
        out.value = varint();
        break;
      case 1:
        out.value = fixed(8);
        break;
      case 2: {
        const std::uint64_t size = varint();
        if (size > bytes_.size() - at_)
          refuse("length of field " + std::to_string(out.number), "at most " + std::to_string(bytes_.size() - at_),
                 std::to_string(size));
        out.is_text = true;
        out.text = bytes_.substr(at_, static_cast<std::size_t>(size));
        out.value = offset_ + at_;
        at_ += static_cast<std::size_t>(size);
        break;
      }
      case 5:
        out.value = fixed(4);
        break;
      default:
        refuse("wire type of field " + std::to_string(out.number), "0, 1, 2 or 5", std::to_string(key & 7));
    }
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, std::string expected, std::string found) const {
    throw file_error(*path_, offset_ + at_, "protobuf: " + what, std::move(expected), std::move(found));
  }
  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_ == bytes_.size()) refuse("number", "more bytes", "the end of the message");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      if (shift == 63 && byte > 1) break;
      out |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return out;
    }
    refuse("number", "at most 64 bits", "more");
  }
  std::uint64_t fixed(std::size_t size) {
    if (bytes_.size() - at_ < size)
      refuse("number", std::to_string(size) + " bytes", std::to_string(bytes_.size() - at_));
    std::uint64_t out = 0;
    std::memcpy(&out, bytes_.data() + at_, size);
    at_ += size;
    return out;
  }

  std::string_view bytes_;
  std::size_t offset_, at_ = 0;
  const std::string* path_;
};

/// Reads a ModelProto: 1 pieces, 2 trainer_spec, 3 normalizer_spec.
class sentencepiece_reader {
 public:
  sentencepiece_reader(std::string_view bytes, std::string path) : path_(std::move(path)) {
    out_.source = path_;
    out_.model = "llama";
    out_.add_space_prefix = true;
    protobuf_cursor fields(bytes, 0, path_);
    while (const auto field = fields.next()) {
      if (field->number < 1 || field->number > 5 || field->number == 4) continue;  // self test data, extensions
      if (!field->is_text) refuse(field->offset, "field " + std::to_string(field->number), "a message", "a number");
      protobuf_cursor message(field->text, static_cast<std::size_t>(field->value), path_);
      if (field->number == 1) read_piece(message, field->offset);
      else if (field->number == 2) read_trainer(message);
      else if (field->number == 3) read_normalizer(message);
      else read_denormalizer(message);
    }
    finish();
  }
  vocabulary result() && { return std::move(out_); }

 private:
  [[noreturn]] void refuse(std::size_t offset, std::string what, std::string expected, std::string found) const {
    throw file_error(path_, offset, std::move(what), std::move(expected), std::move(found));
  }
  std::string_view text(const protobuf_field& field, std::string_view what) const {
    if (!field.is_text) refuse(field.offset, std::string(what), "text", "a number");
    return field.text;
  }
  std::uint64_t number(const protobuf_field& field, std::string_view what) const {
    if (field.is_text) refuse(field.offset, std::string(what), "a number", "text");
    return field.value;
  }
  bool truth(const protobuf_field& field, std::string_view what) const {
    const std::uint64_t value = number(field, what);
    if (value > 1) refuse(field.offset, std::string(what), "true or false", std::to_string(value));
    return value == 1;
  }

  void read_piece(protobuf_cursor& fields, std::size_t offset) {
    std::optional<std::string> piece;
    float score = 0.f;
    std::uint64_t type = 1;
    while (const auto field = fields.next()) {
      if (field->number == 1) piece = std::string(text(*field, "piece"));
      else if (field->number == 2)
        score = std::bit_cast<float>(static_cast<std::uint32_t>(number(*field, "score of a piece")));
      else if (field->number == 3) type = number(*field, "type of a piece");
    }
    const std::string what = "piece " + std::to_string(out_.tokens.size());
    if (!piece || piece->empty()) refuse(offset, what, "a text", "none");
    if (type < 1 || type > 6) refuse(offset, what + ": type", "1 to 6", std::to_string(type));
    if (out_.tokens.size() == sentencepiece_limits::pieces)
      refuse(offset, "number of pieces", "at most " + std::to_string(sentencepiece_limits::pieces), "more");
    out_.tokens.push_back(std::move(*piece));
    out_.scores.push_back(score);
    out_.token_types.push_back(static_cast<std::int32_t>(type));
  }

  void read_trainer(protobuf_cursor& fields) {
    while (const auto field = fields.next()) {
      const auto id = [&](std::string_view what) {
        return static_cast<std::int64_t>(std::bit_cast<std::int32_t>(static_cast<std::uint32_t>(number(*field, what))));
      };
      switch (field->number) {
        case 3:
          kind_ = number(*field, "trainer_spec.model_type"), kind_offset_ = field->offset;
          break;
        case 24:
          if (truth(*field, "trainer_spec.treat_whitespace_as_suffix"))
            refuse(field->offset, "trainer_spec.treat_whitespace_as_suffix", "false", "true");
          break;
        case 35:
          byte_fallback_ = truth(*field, "trainer_spec.byte_fallback");
          break;
        case 40:
          unknown_ = id("trainer_spec.unk_id");
          break;
        case 41:
          bos_ = id("trainer_spec.bos_id");
          break;
        case 42:
          eos_ = id("trainer_spec.eos_id");
          break;
        case 43:
          padding_ = id("trainer_spec.pad_id");
          break;
        default:
          break;
      }
    }
  }

  void read_normalizer(protobuf_cursor& fields) {
    while (const auto field = fields.next()) {
      switch (field->number) {
        case 2:
          refuse_charsmap(*field, "normalizer_spec.precompiled_charsmap");
          break;
        case 3:
          out_.add_space_prefix = truth(*field, "normalizer_spec.add_dummy_prefix");
          break;
        case 4:
          removes_spaces_ = truth(*field, "normalizer_spec.remove_extra_whitespaces");
          break;
        case 5:
          if (!truth(*field, "normalizer_spec.escape_whitespaces"))
            refuse(field->offset, "normalizer_spec.escape_whitespaces", "true", "false");
          break;
        default:
          break;
      }
    }
  }

  /// Reads what decoded text goes through: nothing, in the models that are read.
  void read_denormalizer(protobuf_cursor& fields) const {
    while (const auto field = fields.next())
      if (field->number == 2) refuse_charsmap(*field, "denormalizer_spec.precompiled_charsmap");
  }
  void refuse_charsmap(const protobuf_field& field, const char* what) const {
    if (const std::size_t size = text(field, what).size(); size != 0)
      refuse(field.offset, what, "none (normaliser 'identity')", std::to_string(size) + " bytes");
  }

  void finish() {
    constexpr std::string_view kinds[] = {"", "UNIGRAM", "BPE", "WORD", "CHAR"};
    if (kind_ != 2)
      refuse(kind_offset_, "trainer_spec.model_type", "BPE",
             kind_ >= 1 && kind_ <= 4 ? std::string(kinds[kind_]) : std::to_string(kind_));
    if (!byte_fallback_) refuse(kind_offset_, "trainer_spec.byte_fallback", "true", "false");
    out_.remove_extra_whitespaces = removes_spaces_;
    const auto id = [](std::int64_t value) { return value < 0 ? std::nullopt : std::optional(value); };  // -1: none
    out_.unknown_id = id(unknown_);
    out_.bos_id = id(bos_);
    out_.eos_id = id(eos_);
    out_.padding_id = id(padding_);
    out_.add_bos = out_.bos_id.has_value();
    out_.add_eos = false;
  }

  std::string path_;
  vocabulary out_;
  // Defaults of the proto.
  std::uint64_t kind_ = 1;
  std::size_t kind_offset_ = 0;
  bool byte_fallback_ = false, removes_spaces_ = true;
  std::int64_t unknown_ = 0, bos_ = 1, eos_ = 2, padding_ = -1;
};
/// Reads the vocabulary of tokenizer.model, a protobuf of SentencePiece.
/// @param path that errors name  @throws file_error
inline vocabulary vocabulary_from_sentencepiece(std::string_view bytes, std::string path) {
  return sentencepiece_reader(bytes, std::move(path)).result();
}

/// Reads a vocabulary from a tokenizer.model; io::tokenizer validates it. @throws file_error
inline vocabulary vocabulary_from_sentencepiece_file(const std::filesystem::path& path) {
  const mapped_file file(path);
  if (file.size() > sentencepiece_limits::file_bytes)
    throw file_error(file.path(), std::nullopt, "too large for a SentencePiece model",
                     "at most " + std::to_string(sentencepiece_limits::file_bytes) + " bytes",
                     std::to_string(file.size()));
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  return vocabulary_from_sentencepiece(bytes, file.path());
}

}  // namespace intaglio::io
