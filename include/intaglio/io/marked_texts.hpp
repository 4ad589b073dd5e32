// SPDX-License-Identifier: MIT
// Texts in which the texts of special tokens are replaced by numbers between marks. A chat template that runs over the
// texts then cannot mistake them for its own markup.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/compiler.hpp"

namespace intaglio::io {

/// Marks texts of special tokens in data, so that a template prints them as plain text.
class marked_texts {
 public:
  /// @param special texts of special tokens, the longest first; must outlive this object
  /// @param mark a text that occurs in none of the texts
  marked_texts(const std::vector<std::string>& special, std::string mark) : special_(special), mark_(std::move(mark)) {}

  /// The replaced texts, by their numbers.
  const std::vector<std::string_view>& found() const { return found_; }

  std::string hidden(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view rest = text.substr(at);
      const auto special = std::find_if(special_.begin(), special_.end(),
                                        [&](const std::string& each) { return rest.starts_with(each); });
      if (special == special_.end()) {
        out += rest.front(), ++at;
        continue;
      }
      out += mark_ + std::to_string(found_.size()) + ";";
      found_.push_back(*special);
      at += special->size();
    }
    return out;
  }

  /// Replaces such texts within the strings of a JSON text, whose structure is unchanged. Strings of only letters,
  /// digits and underscores are unchanged too: they are the names that templates use.
  std::string hidden_in_strings(std::string_view json) {
    std::string out;
    for (std::size_t at = 0; at < json.size();) {
      const std::size_t begin = (std::min)(json.find('"', at), json.size());
      out += json.substr(at, begin - at);
      if (begin == json.size()) break;
      std::size_t end = begin + 1;
      while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      end = (std::min)(end, json.size());
      const std::string_view inside = json.substr(begin + 1, end - begin - 1);
      out += '"';
      out += std::all_of(inside.begin(), inside.end(), is_of_names) ? std::string(inside) : hidden(inside);
      if (end < json.size()) out += '"';
      at = end + 1;
    }
    return out;
  }

 private:
  static bool is_of_names(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  const std::vector<std::string>& special_;
  std::string mark_;
  std::vector<std::string_view> found_;
};

}  // namespace intaglio::io
