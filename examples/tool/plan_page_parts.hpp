// SPDX-License-Identifier: MIT
// Parts of a plan's page: escaped text, SVG shapes, and the columns of dispatches.
#pragma once

#include <intaglio/plan/explain.hpp>

#include "console.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::tool {

/// Writes the parts of a plan's page that need no state.
class plan_page_parts {
 protected:
  /// A dispatch, and how often it runs.
  struct column {
    const plan::dispatch* call;
    std::uint32_t repeats;
  };
  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text)
      c == '<'   ? out += "&lt;"
      : c == '>' ? out += "&gt;"
      : c == '&' ? out += "&amp;"
      : c == '"' ? out += "&quot;"
                 : out += c;
    return out;
  }
  static std::string px(double value) { return fixed(value, 1); }
  static std::string size_text(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }
  static std::string cut(std::string_view text, std::size_t most) {
    return text.size() <= most ? std::string(text) : std::string(text.substr(0, most - 1)) + "\u2026";
  }
  static std::string label(double x, double y, std::string_view style, const std::string& text) {
    return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" class=\"" + std::string(style) + "\">" + escaped(text) +
           "</text>";
  }
  static std::string box(double x, double y, double width, double height, std::string_view style,
                         const std::string& tip = {}) {
    return "<rect x=\"" + px(x) + "\" y=\"" + px(y) + "\" width=\"" + px(width) + "\" height=\"" + px(height) +
           "\" rx=\"5\" class=\"" + std::string(style) + "\">" +
           (tip.empty() ? "" : "<title>" + escaped(tip) + "</title>") + "</rect>";
  }

  static std::vector<column> columns(const plan::sequence& s) {
    std::vector<column> out;
    for (const auto& each : s.prologue) out.push_back({&each, 1});
    const std::span<const plan::dispatch> layers = s.recorded()[1];
    for (const auto& each : layers) out.push_back({&each, s.resident.empty() ? s.times(each) : 1});
    for (const auto& each : s.epilogue) out.push_back({&each, 1});
    return out;
  }
  /// All rules behind a dispatch: the table keeps the last one, a product's epilogue gives the earlier one.
  static std::vector<std::uint8_t> rules_of(const plan::dispatch& d) {
    std::vector<std::uint8_t> out;
    const auto& face = kernels::interface_of(d.kernel);
    if (const auto at = face.specialization_index("epilogue"); at < face.specialization_count()) {
      constexpr std::string_view by_epilogue[] = {"", "residual_add", "stack_qkv", "gate_up"};
      const std::uint32_t epilogue = d.specialization[at];
      if (epilogue < std::size(by_epilogue) && epilogue != 0) out.push_back(plan::rule_index(by_epilogue[epilogue]));
    }
    if (d.rule != 0 && std::find(out.begin(), out.end(), d.rule) == out.end()) out.push_back(d.rule);
    return out;
  }
  static std::string rule_names(const plan::dispatch& d) {
    std::string out;
    for (const auto each : rules_of(d)) out += (out.empty() ? "" : ", ") + std::string(plan::rules[each].name);
    return out;
  }

  static std::string legend(const std::vector<column>& all) {
    std::string out = "<p class=\"legend\">";
    std::set<std::string> seen;
    for (const auto& each : all)
      if (const std::string kernel(kernels::interface_of(each.call->kernel).name); seen.insert(kernel).second)
        out += "<span><i class=\"" + kernel + "\"></i>" + kernel + "</span>";
    return out + "<span><i class=\"wait\"></i>barrier</span></p>\n";
  }
};

}  // namespace intaglio::tool
