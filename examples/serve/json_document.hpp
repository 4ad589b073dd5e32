// SPDX-License-Identifier: MIT
// JSON of requests: parsed with limits on depth, values and members, in linear time. Keys keep the order of the text,
// since a schema's order is the order of the generated members.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

#include "limits.hpp"

namespace intaglio::serve {

using json = nlohmann::ordered_json;

/// @throws api_error 400: not JSON, too deep, too many values, a key twice; fixed texts, nothing of the input
json parse_json(std::string_view text, const limits& limit);

/// Always valid UTF-8 on one line.
std::string json_text(const json& value);

}  // namespace intaglio::serve
