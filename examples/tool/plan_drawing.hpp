// SPDX-License-Identifier: MIT
// Drawings of a plan's sequences, for pages: dispatch by dispatch, with the arena over time below. Static SVG and CSS;
// follows the reader's light or dark setting.
#pragma once

#include <intaglio/plan/explain.hpp>

#include "console.hpp"
#include "html_text.hpp"
#include "plan_page_style.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace intaglio::tool {

/// Times of one sequence from a bench: microseconds of each dispatch in the order prologue, one layer (the mean over
/// layers), epilogue.
struct measured_times {
  std::string sequence;  ///< "decode" or "prefill"
  std::vector<double> microseconds;
  double stream_bytes_per_second = 0;  ///< of the streaming read in the same run, 0: unknown
  std::string device;
};

/// What the pages of plans are made of.
class plan_drawing {
 protected:
  struct column {
    const plan::dispatch* call;
    std::uint32_t repeats;
  };
  static constexpr int column_width = 140, left = 84, gap = 10, card_top = 34, card_height = 88, bars_top = 136,
                       bars_height = 84, map_top = 264;

  static std::string px(double value) { return fixed(value, 1); }
  static std::string size_text(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }
  static std::string cut(std::string_view text, std::size_t most) {
    return text.size() <= most ? std::string(text) : std::string(text.substr(0, most - 1)) + "\u2026";
  }
  static std::string label(double x, double y, std::string_view style, const std::string& text) {
    return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" class=\"" + std::string(style) + "\">" + html_escaped(text) +
           "</text>";
  }
  static std::string box(double x, double y, double width, double height, std::string_view style,
                         const std::string& tip = {}) {
    return "<rect x=\"" + px(x) + "\" y=\"" + px(y) + "\" width=\"" + px(width) + "\" height=\"" + px(height) +
           "\" rx=\"5\" class=\"" + std::string(style) + "\">" +
           (tip.empty() ? "" : "<title>" + html_escaped(tip) + "</title>") + "</rect>";
  }

  static std::vector<column> columns(const plan::sequence& s) {
    std::vector<column> out;
    for (const auto& each : s.prologue) out.push_back({&each, 1});
    const std::span<const plan::dispatch> layers = s.recorded()[1];
    for (const auto& each : layers) out.push_back({&each, s.resident.empty() ? s.times(each) : 1});
    for (const auto& each : s.epilogue) out.push_back({&each, 1});
    return out;
  }
  /// All rules after a dispatch: the table keeps the last one, a product's epilogue tells the earlier one.
  static std::vector<std::uint8_t> rules_of(const plan::dispatch& d) {
    std::vector<std::uint8_t> out;
    kernels::epilogue epilogue{};
    kernels::visit(d.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
      if constexpr (requires { &Kernel::constants::epilogue; }) epilogue = plan::constants_of<Kernel>(d).epilogue;
    });
    constexpr std::string_view by_epilogue[] = {"", "residual_add", "stack_qkv", "gate_up"};
    if (const auto index = static_cast<std::size_t>(epilogue); index < std::size(by_epilogue) && index != 0)
      out.push_back(plan::rule_index(by_epilogue[index]));
    if (d.rule != 0 && std::find(out.begin(), out.end(), d.rule) == out.end()) out.push_back(d.rule);
    return out;
  }
  static std::string rule_names(const plan::dispatch& d) {
    std::string out;
    for (const auto each : rules_of(d)) out += (out.empty() ? "" : ", ") + std::string(plan::rules[each].name);
    return out;
  }

  static std::string head(const std::string& title) {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
           "content=\"width=device-width, "
           "initial-scale=1\">\n<title>" +
           html_escaped(title) + "</title>\n<style>" + std::string(plan_page_style) +
           "</style>\n</head>\n<body>\n<main>\n";
  }
  static std::string tabs(bool resident, std::uint32_t chunk) {
    return "<input type=\"radio\" name=\"tab\" id=\"tab-decode\" checked><input type=\"radio\" name=\"tab\" "
           "id=\"tab-resident_decode\">"
           "<input type=\"radio\" name=\"tab\" id=\"tab-prefill\">\n<nav><label for=\"tab-decode\">Decode, one "
           "token</label>" +
           std::string(resident ? "<label for=\"tab-resident_decode\">Decode, resident dispatch</label>" : "") +
           "<label for=\"tab-prefill\">Prefill, " + std::to_string(chunk) + " tokens</label></nav>\n";
  }
  static std::string figure(const std::string& value, const std::string& what) {
    return "<div><b>" + value + "</b><span>" + what + "</span></div>";
  }
  /// The largest time, or number of bytes of weights, of a column.
  static double largest_of(const std::vector<column>& all, const measured_times* times) {
    double out = 1e-9;
    for (std::size_t i = 0; i < all.size(); ++i)
      out = std::max(out, all[i].repeats * (times != nullptr ? times->microseconds[i]
                                                             : static_cast<double>(all[i].call->weight_bytes)));
    return out;
  }
  static double x_of(std::size_t index) { return left + static_cast<double>(index) * column_width; }
  /// What is once and what is repeated, above the columns of a picture of some height.
  static std::string brackets(const plan::sequence& s, double total) {
    std::string out;
    const auto bracket = [&](std::size_t first, std::size_t count, const std::string& text) {
      if (count == 0) return;
      const double from = x_of(first) + 4, to = x_of(first + count) - 6;
      out += "<path class=\"bracket\" d=\"M" + px(from) + " 24 V18 H" + px(to) + " V24\"/>" +
             label((from + to) / 2, 13, "bracket-text", text) + "\n";
    };
    bracket(0, s.prologue.size(), "once");
    const std::size_t middle = s.recorded()[1].size();
    if (!s.resident.empty()) bracket(s.prologue.size(), middle, "all " + std::to_string(s.layers) + " layers");
    std::size_t first = s.prologue.size();
    for (std::uint8_t kind = 0; s.resident.empty() && kind < s.pattern.kinds(); ++kind) {
      const auto part = s.block(kind);
      if (!part.empty()) bracket(first, part.size(), "\u00d7 " + std::to_string(s.times(part.front())) + " layers");
      first += part.size();
    }
    bracket(s.prologue.size() + middle, s.epilogue.size(), "once");
    if (middle != 0)
      out += "<rect class=\"period\" x=\"" + px(x_of(s.prologue.size())) + "\" y=\"26\" width=\"" +
             px(static_cast<double>(middle) * column_width - 2) + "\" height=\"" + px(total - 34) + "\" rx=\"8\"/>\n";
    return out;
  }
  struct drawn {
    std::string svg;
    double width, height;
  };
  /// @param scale height of the bars: what a bar of full height stands for; 0: the largest one
  static drawn picture(const plan::sequence& s, const std::vector<column>& all, const measured_times* times,
                       double scale = 0) {
    // Address space: one band between neighbouring borders, as tall as the logarithm of its bytes, so that small values
    // stay legible.
    std::set<std::uint64_t> borders{0, s.arena_bytes};
    for (const auto& v : s.values) borders.insert({v.offset, v.offset + v.bytes});
    std::map<std::uint64_t, double> height_at;
    double height = 0;
    std::uint64_t before = 0;
    for (const std::uint64_t at : borders) {
      if (at != 0) height += std::max(18.0, 5.0 * std::log2(static_cast<double>(at - before) / 256.0 + 1));
      height_at[at] = height;
      before = at;
    }
    const double width = left + static_cast<double>(all.size()) * column_width + gap;
    const double total = map_top + height + 24;
    std::string out = "<svg role=\"img\" aria-label=\"" + std::string(s.name) + " sequence\" width=\"" + px(width) +
                      "\" height=\"" + px(total) + "\" viewBox=\"0 0 " + px(width) + " " + px(total) + "\">\n";

    out += brackets(s, total);
    const double largest = scale != 0 ? scale : largest_of(all, times);
    out += label(left - 12, bars_top + 12, "axis", times != nullptr ? "time" : "weights") +
           label(left - 12, map_top - 10, "axis", "arena");
    for (std::size_t i = 0; i < all.size(); ++i) out += column_picture(all[i], i, x_of(i), largest, times);

    for (const auto& [at, y] : height_at) {
      out += "<path class=\"grid\" d=\"M" + px(left - 6) + " " + px(map_top + y) + " H" + px(width - gap) + "\"/>";
      out += label(left - 12, map_top + y + 4, "axis", size_text(at));
    }
    for (const auto& v : s.values) {
      const double x = x_of(v.first) + 4, y = map_top + height_at[v.offset] + 1.5;
      const double w = x_of(std::min<std::size_t>(v.last + 1, all.size())) - 6 - x,
                   h = height_at[v.offset + v.bytes] - height_at[v.offset] - 3;
      const std::string name(v.name.view());
      out += box(x, y, w, h, "value",
                 name + ": " + std::string(intaglio::name(v.type)) + " x " + std::to_string(v.width) + " a token, " +
                     size_text(v.bytes) + " at " + std::to_string(v.offset) + ", dispatches " +
                     std::to_string(v.first) + " to " + std::to_string(v.last));
      const auto room = static_cast<std::size_t>(std::max(2.0, w / 6.6 - 1));
      const std::string text = name + "  " + std::string(intaglio::name(v.type)) + "[" + std::to_string(v.width) + "]";
      out += label(x + 7, y + h / 2 + 4, "value-text", cut(text.size() <= room ? text : name, room)) + "\n";
    }
    return {out + "</svg>", width, total};
  }

  static std::string column_picture(const column& of, std::size_t index, double x, double largest,
                                    const measured_times* times) {
    const plan::dispatch& d = *of.call;
    const std::string kernel(kernels::interface_of(d.kernel).name);
    const double wide = column_width - 10;
    std::string out;
    if (d.barrier)
      out += "<path class=\"barrier\" d=\"M" + px(x) + " " + std::to_string(card_top) + " v" +
             std::to_string(card_height) + "\"><title>barrier: waits for all earlier dispatches</title></path>";
    const std::string names = rule_names(d);
    out += box(x + 4, card_top, wide, card_height, "card " + kernel,
               kernel + " " + std::string(d.label.view()) + (names.empty() ? "" : ", fused by " + names));
    out += label(x + wide - 4, card_top + card_height - 10, "number", std::to_string(index)) +
           label(x + 13, card_top + 19, "kernel", kernel);
    std::string words(d.label.view());
    if (words.ends_with(".weight")) words.resize(words.size() - 7);
    double y = card_top + 38;
    for (int line = 0; line < 2 && !words.empty(); ++line, y += 15) {  // tensors break at their +
      std::size_t end = words.size();
      if (end > 18) {
        end = words.rfind('+', 17);
        end = end == std::string::npos ? 18 : end + 1;
      }
      out += label(x + 13, y, "tensors", line == 1 ? cut(words, 18) : words.substr(0, end));
      words.erase(0, end);
    }
    out += label(x + 13, card_top + card_height - 10, "small",
                 std::to_string(d.groups[0]) + (d.groups[1] > 1 ? " \u00d7 " + std::to_string(d.groups[1]) : "") +
                     (d.groups[0] * d.groups[1] == 1 ? " group" : " groups"));
    const double each = times != nullptr ? times->microseconds[index] : static_cast<double>(d.weight_bytes),
                 value = each * of.repeats;
    const double height = value <= 0 ? 0 : std::max(2.0, (bars_height - 18) * value / largest);
    out += box(x + 4, bars_top + bars_height - height, wide, height, "bar " + kernel);
    std::string text = times == nullptr ? (d.weight_bytes == 0 ? "" : size_text(d.weight_bytes))
                                        : fixed(each, each < 100 ? 1 : 0) + " \u00b5s";
    if (!text.empty() && of.repeats > 1) text += " \u00d7 " + std::to_string(of.repeats);
    double top = height;
    if (times != nullptr && times->sequence.starts_with("decode") && times->stream_bytes_per_second > 0 &&
        d.weight_bytes != 0 && value > 0) {  // wide passes read weights for many tokens
      const double limit = of.repeats * static_cast<double>(d.weight_bytes) / times->stream_bytes_per_second * 1e6;
      const double at = (bars_height - 18) * std::min(limit, largest) / largest;
      top = std::max(top, at);
      out +=
          "<path class=\"limit\" d=\"M" + px(x + 4) + " " + px(bars_top + bars_height - at) + " h" + px(wide) + "\"/>";
      text += ", " + fixed(100 * limit / value, 0) + " %";
    }
    return out + label(x + 4 + wide / 2, bars_top + bars_height - top - 5, "bar-text", text) + "\n";
  }

  static std::string legend(const std::vector<column>& all) {
    std::string out = "<p class=\"legend\">";
    std::set<std::string> seen;
    for (const auto& each : all)
      if (const std::string kernel(kernels::interface_of(each.call->kernel).name); seen.insert(kernel).second)
        out += "<span><i class=\"" + kernel + "\"></i>" + kernel + "</span>";
    return out + "<span><i class=\"wait\"></i>barrier</span></p>\n";
  }

  static std::string listing(const std::vector<column>& all, const measured_times* times) {
    std::string out =
        "<details><summary>Every dispatch as a table</summary><div "
        "class=\"scroll\"><table><thead><tr><th>#</th><th>kernel</th><th>tensors</th><th>times</th><th>barrier</"
        "th><th>groups</"
        "th><th>weights</th><th>rules</th>";
    out += times != nullptr ? "<th>\u00b5s</th></tr></thead><tbody>" : "</tr></thead><tbody>";
    for (std::size_t i = 0; i < all.size(); ++i) {
      const plan::dispatch& d = *all[i].call;
      out += "<tr><td>" + std::to_string(i) + "</td><td>" + std::string(kernels::interface_of(d.kernel).name) +
             "</td><td>" + html_escaped(d.label.view()) + "</td><td>" + std::to_string(all[i].repeats) + "</td><td>" +
             (d.barrier ? "yes" : "") + "</td><td>" + std::to_string(d.groups[0]) + " \u00d7 " +
             std::to_string(d.groups[1]) + "</td><td>" + plan::explanation::number(d.weight_bytes) + "</td><td>" +
             rule_names(d) + "</td>" + (times != nullptr ? "<td>" + fixed(times->microseconds[i], 1) + "</td>" : "") +
             "</tr>";
    }
    return out + "</tbody></table></div></details>\n";
  }

  static std::string memory(const plan::table& of, const std::string& where = {}) {
    const std::uint64_t cache = of.cache_bytes(), arena = of.arena_bytes();
    const std::pair<std::string, std::uint64_t> parts[] = {
        {"weights", of.weight_bytes()},
        {"KV cache of " + std::to_string(of.context) + " positions", cache},
        {"arena", arena},
        {"state", of.state_bytes()}};
    double total = 0;
    for (const auto& each : parts) total += static_cast<double>(each.second);
    std::string out = "<h2>Device memory" + where + ": " + bytes_text(total) + "</h2><div class=\"stack\">";
    int index = 0;
    for (const auto& each : parts)
      out += "<div class=\"part" + std::to_string(index++) +
             "\" style=\"flex-grow:" + fixed(1000 * static_cast<double>(each.second) / total, 3) + "\" title=\"" +
             each.first + "\"></div>";
    out += "</div><p class=\"legend\">";
    index = 0;
    for (const auto& each : parts)
      out += "<span><i class=\"part" + std::to_string(index++) + "\"></i>" + each.first + ", " +
             size_text(each.second) + "</span>";
    return out + "</p>\n";
  }
};

}  // namespace intaglio::tool
