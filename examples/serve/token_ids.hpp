// SPDX-License-Identifier: MIT
// Token ids as requests have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "request_fields.hpp"

namespace intaglio::serve {

/// @param name of the field  @throws api_error 400: an empty array, or an item that is no token's id
inline std::vector<std::int32_t> read_ids(const json& list, const std::string& name, std::uint32_t vocab_size) {
  std::vector<std::int32_t> out;
  out.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto expected = [&] { return "a token id of 0 .. " + std::to_string(vocab_size - 1); };
    if (!list[i].is_number_unsigned() || list[i].get<std::uint64_t>() >= vocab_size)
      refuse_field(index(name, i), expected(), shown(list[i]));
    out.push_back(list[i].get<std::int32_t>());
  }
  if (out.empty()) refuse_field(name, "at least one token", "none");
  return out;
}

/// The ids of a field, at most `most`; none where the field is absent or empty. @throws api_error 400 naming the field
inline std::vector<std::int32_t> read_id_list(const fields& from, const char* name, std::size_t most,
                                              std::uint32_t vocab_size) {
  const json* const list = from.find(name);
  if (list == nullptr || *list == json::array()) return {};
  if (!list->is_array() || list->size() > most)
    refuse_field(name, "an array of at most " + std::to_string(most) + " token ids",
                 list->is_array() ? std::to_string(list->size()) : shown(*list));
  return read_ids(*list, name, vocab_size);
}

}  // namespace intaglio::serve
