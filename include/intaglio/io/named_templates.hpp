// SPDX-License-Identifier: MIT
// Several chat templates of one model. transformers and llama.cpp take the template named tool_use for a conversation
// with tools, and the default one for the others.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/error.hpp"

namespace intaglio::io {

/// A chat template and its name.
struct named_template {
  std::string name, text;
};

/// One Jinja template that does as `with_tools` where a conversation has tools, and as `usual` where it has none. Both
/// begin at the beginning of a line: Jinja removes the line break after a block. The outputs of nothing keep the white
/// space at their ends. A template's last line break is removed, as Jinja does at the end of a template.
[[gnu::cold]] inline std::string template_by_tools(std::string_view usual, std::string_view with_tools) {
  const auto inside = [](std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    return "\n" + std::string(text) + "{{ '' }}";
  };
  return "{% if tools %}" + inside(with_tools) + "{% else %}" + inside(usual) + "{% endif %}";
}

/// The template of a model that has several; absent without one named default. Names of templates that are not used go
/// to `warnings`, after `file` where it is not empty.
[[gnu::cold]] inline std::optional<std::string> united_templates(const std::vector<named_template>& all,
                                                                 std::string_view file,
                                                                 std::vector<std::string>& warnings) {
  const auto named = [&](std::string_view name) {
    const std::string* found = nullptr;
    for (const named_template& each : all)
      if (found == nullptr && each.name == name) found = &each.text;
    return found;
  };
  const std::string *const usual = named("default"), *const tools = named("tool_use");
  constexpr std::size_t most = 16;
  std::size_t others = 0;
  for (const auto& [name, text] : all) {
    if (usual != nullptr && (name == "default" || name == "tool_use")) continue;
    if (++others <= most) {
      const std::string line = "chat template '" + printable(name, 40) + "' is not used: expected " +
                               (usual == nullptr ? "one named default beside it" : "default or tool_use");
      warnings.push_back(file.empty() ? line : in_file(file, line));
    }
  }
  if (usual == nullptr) return std::nullopt;
  return tools == nullptr ? *usual : template_by_tools(*usual, *tools);
}

}  // namespace intaglio::io
