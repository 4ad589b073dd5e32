// SPDX-License-Identifier: MIT
// The exceptions that leave the library. Every one derives from intaglio::error and carries what a program needs to
// react.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace intaglio {

/// Makes text of a file safe to print: control characters and bytes that are not UTF-8 become `\xHH`. The result is cut
/// after `limit` bytes.
inline std::string printable(std::string_view text, std::size_t limit = 120) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (out.size() + 4 > limit) return out + "...";
    const auto byte = static_cast<unsigned char>(text[i]);
    std::size_t length = byte < 0x80                   ? 1
                         : byte >= 0xC2 && byte < 0xE0 ? 2
                         : byte >= 0xE0 && byte < 0xF0 ? 3
                         : byte >= 0xF0 && byte < 0xF5 ? 4
                                                       : 0;
    bool whole = length != 0 && i + length <= text.size() && !(byte < 0x20 || byte == 0x7F);
    for (std::size_t k = 1; whole && k < length; ++k) whole = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
    if (whole && byte == 0xE0) whole = static_cast<unsigned char>(text[i + 1]) >= 0xA0;
    if (whole && byte == 0xED) whole = static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (whole && byte == 0xF0) whole = static_cast<unsigned char>(text[i + 1]) >= 0x90;
    if (whole && byte == 0xF4) whole = static_cast<unsigned char>(text[i + 1]) < 0x90;
    if (whole && byte == 0xC2) whole = static_cast<unsigned char>(text[i + 1]) >= 0xA0;  // C1 control characters
    if (whole) {
      out.append(text.substr(i, length));
      i += length;
    } else {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      ++i;
    }
  }
  return out;
}

/// True for UTF-8 without control characters, which names of keys and tensors must be.
inline bool is_printable(std::string_view text) { return printable(text, std::string::npos) == text; }

/// An offset in a file as messages print it: 0x24e0.
inline std::string hexadecimal(std::uint64_t number) {
  std::string out;
  do out.insert(out.begin(), "0123456789abcdef"[number & 15]);
  while (number >>= 4);
  return "0x" + out;
}

/// Puts the file's path in front of a warning, as errors have it.
inline std::string in_file(std::string_view path, std::string_view line) {
  return printable(path, 240).append(": ").append(line);
}

/// Largest number of bytes of an error's text. What a tool adds before and after it stays within 400 bytes.
inline constexpr std::size_t error_text_limit = 360;

/// Cuts a text to `limit` bytes, between characters, with "..." where something is left out. The result is one line.
inline std::string cut_text(std::string_view text, std::size_t limit) {
  std::string out(text);
  for (char& c : out)
    if (c == '\n') c = ' ';
  if (out.size() <= limit) return out;
  std::size_t end = limit < 3 ? 0 : limit - 3;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
  return out.substr(0, end) + "...";
}
/// Shortens a path that is too long to print: the end with the file's name is kept.
inline std::string path_text(std::string_view path, std::size_t limit) {
  const std::string whole = printable(path, std::string::npos);
  if (whole.size() <= limit) return whole;
  std::size_t begin = whole.size() - limit + 3;
  while (begin < whole.size() && (static_cast<unsigned char>(whole[begin]) & 0xC0) == 0x80) ++begin;
  return "..." + whole.substr(begin);
}

/// Root of every exception that the library throws.
class error : public std::runtime_error {
 public:
  /// @param what one line  @param details all problems, a line each, where there is more than one line
  explicit error(const std::string& what, std::vector<std::string> details = {})
      : std::runtime_error(what), details_(std::move(details)) {}

  /// All problems, a line each, where what() has room for the first only; else empty.
  const std::vector<std::string>& details() const noexcept { return details_; }

 private:
  std::vector<std::string> details_;
};

/// A file is missing, unreadable, malformed or does not match: "model.gguf: offset 0x24e0: tensor 'x': expected ...,
/// found ...". what() is one line of at most error_text_limit bytes.
class file_error : public error {
 public:
  /// @param offset in bytes, where one byte is to blame  @param what the key, tensor or field
  // The constructor takes views and is not inlined: hundreds of callers throw this error, and each would otherwise make
  // and destroy the strings itself.
  [[gnu::cold, gnu::noinline]] file_error(std::string_view path, std::optional<std::uint64_t> offset,
                                          std::string_view what, std::string_view expected = {},
                                          std::string_view found = {}, std::vector<std::string> details = {})
      : error(sentence(path, offset, what, expected, found), std::move(details)), path_(path), offset_(offset),
        subject_(what), expected_(expected), found_(found) {}

  /// The file.
  const std::string& path() const noexcept { return path_; }
  /// Offset of the byte in the file that is to blame; absent where there is none.
  std::optional<std::uint64_t> offset() const noexcept { return offset_; }
  /// The key, tensor or field that is to blame.
  const std::string& subject() const noexcept { return subject_; }
  /// What the file should have; may be empty.
  const std::string& expected() const noexcept { return expected_; }
  /// What the file has; may be empty.
  const std::string& found() const noexcept { return found_; }

 private:
  /// Joins the parts into one sentence. Every part is shortened before one of them is dropped.
  static std::string sentence(std::string_view path, std::optional<std::uint64_t> offset, std::string_view what,
                              std::string_view expected, std::string_view found) {
    const auto with = [&](std::size_t path_limit, std::size_t what_limit, std::size_t each) {
      return path_text(path, path_limit) + (offset ? ": offset " + hexadecimal(*offset) : "") + ": " +
             cut_text(what, what_limit) + (expected.empty() ? "" : ": expected " + cut_text(expected, each)) +
             (found.empty() ? "" : ", found " + cut_text(found, each));
    };
    std::string out = with(240, error_text_limit, error_text_limit);
    if (out.size() > error_text_limit) out = with(120, error_text_limit, error_text_limit);
    if (out.size() > error_text_limit) out = with(120, expected.empty() && found.empty() ? 200 : 90, 50);
    return out;
  }
  std::string path_;
  std::optional<std::uint64_t> offset_;
  std::string subject_, expected_, found_;
};

/// A sound model file that is not the model this program was engraved for.
class mismatch_error : public file_error {
 public:
  /// @param differences one line for each field: "num_hidden_layers: engraved 30, file 24"
  /// @param remedy the command that engraves the right program
  mismatch_error(std::string_view path, std::vector<std::string> differences, std::string remedy)
      : file_error(path, std::nullopt, text(differences, remedy), {}, {}, lines(differences, remedy)),
        differences_(std::move(differences)), remedy_(std::move(remedy)) {}

  /// The fields that differ, one line each.
  const std::vector<std::string>& differences() const noexcept { return differences_; }
  /// The command that engraves the right program; may be empty.
  const std::string& remedy() const noexcept { return remedy_; }

 private:
  static std::string text(const std::vector<std::string>& differences, const std::string& remedy) {
    std::string out = "the file does not match the engraved model";
    if (!differences.empty())
      out += (differences.size() == 1 ? ": " : " in " + std::to_string(differences.size()) + " values, the first: ") +
             cut_text(differences.front(), 90);
    return remedy.empty() ? out : out + "; engrave it with: " + remedy;
  }
  static std::vector<std::string> lines(std::vector<std::string> differences, const std::string& remedy) {
    if (!remedy.empty()) differences.push_back("engrave it with: " + remedy);
    return differences;
  }
  std::vector<std::string> differences_;
  std::string remedy_;
};

/// A value that the caller passed is outside the allowed range.
class argument_error : public error {
 public:
  /// @param most bytes of `found` in the message: more where it is a sentence of the library
  [[gnu::cold, gnu::noinline]] argument_error(std::string_view argument, std::string_view expected,
                                              std::string_view found, std::size_t most = 60)
      : error(cut_text(argument, 120) + ": expected " + cut_text(expected, 150) + ", found " + cut_text(found, most)),
        argument_(argument), expected_(expected), found_(found) {}

  /// The argument's name.
  const std::string& argument() const noexcept { return argument_; }
  /// The allowed values.
  const std::string& expected() const noexcept { return expected_; }
  /// The value that was passed.
  const std::string& found() const noexcept { return found_; }

 private:
  std::string argument_, expected_, found_;
};

/// Vulkan refused: no loader, no device, a missing feature, a failed call.
class device_error : public error {
 public:
  /// @param result the VkResult; 0 when the library refuses, not Vulkan
  [[gnu::cold, gnu::noinline]] device_error(std::string_view device, std::string_view operation, std::string_view what,
                                            int result = 0)
      : error(sentence(device, operation, what)), device_(device), operation_(operation), result_(result) {}

  /// The device's label; empty where no device was chosen yet.
  const std::string& device() const noexcept { return device_; }
  /// The operation that failed.
  const std::string& operation() const noexcept { return operation_; }
  /// The VkResult; 0 where the library refused.
  int result() const noexcept { return result_; }

 private:
  static std::string sentence(std::string_view device, std::string_view operation, std::string_view what) {
    std::string out(device);
    return out.append(device.empty() ? "" : ": ").append(operation).append(": ").append(what);
  }
  std::string device_, operation_;
  int result_;
};

/// The device stopped answering. Its session is lost; a new device and a new session can be made.
class device_lost : public device_error {
 public:
  using device_error::device_error;
};

/// An allocation on the device or inside the driver failed.
class out_of_memory : public device_error {
 public:
  using device_error::device_error;
};

}  // namespace intaglio
