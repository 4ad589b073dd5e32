// SPDX-License-Identifier: MIT
// A plan as text for the terminal, and as JSON. Only the plan's table is read.
#pragma once

#include <cstdio>
#include <string>

#include "intaglio/core/array_view.hpp"
#include "intaglio/plan/bytes_moved.hpp"
#include "intaglio/plan/rules.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// Parts of the texts that explain(), explain_json() and their variants for cut models (plan/explain_cut.hpp) write.
namespace explanation {

/// Digits with commas between thousands: "4,122,336".
inline std::string number(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

/// Text with blanks up to a width, after it or, with `right`, in front of it. Longer text is not cut.
inline std::string padded(std::string text, std::size_t width, bool right = false) {
  const std::string gap(text.size() < width ? width - text.size() : 0, ' ');
  return right ? gap + text : text + gap;
}

/// The name of a kernel, as its shader is named.
inline std::string_view name(kernels::kernel which) { return kernels::interface_of(which).name; }

/// Appends the line of one dispatch; `section` says how often the dispatch is recorded.
inline void row(std::string& out, std::string_view section, const dispatch& d) {
  const std::string groups = std::to_string(d.groups[0]) + " x " + std::to_string(d.groups[1]) +
                             (d.groups[2] > 1 ? " x " + std::to_string(d.groups[2]) : "");
  out += "  " + padded(std::string(section), 9) + (d.barrier ? "| " : "  ") +
         padded(padded(std::string(name(d.kernel)), 15) + ' ' + std::string(d.label.view()), 48) +
         padded(groups, 12, true) + padded(number(d.weight_bytes), 15, true) + "  " + std::string(rules[d.rule].name);
  if (d.activation != nullptr) out += (d.rule == 0 ? "" : ", ") + std::string(d.activation->name);
  while (out.back() == ' ') out.pop_back();
  out += '\n';
}

/// Appends one sequence: a line of sums, its dispatches, and the values of its arena.
inline void describe(std::string& out, const sequence& s) {
  out += std::string(s.name) + ": up to " + std::to_string(s.max_tokens) + (s.max_tokens == 1 ? " token" : " tokens") +
         " a pass, " + number(s.dispatch_count()) + " dispatches, " + number(s.barrier_count()) + " barriers, reads " +
         number(s.weight_bytes()) + " bytes of weights, arena of " + number(s.arena_bytes) + " bytes\n";
  out += "  section    kernel          tensors                               groups   weight bytes  rule\n";
  for (const auto& d : s.prologue) row(out, "once", d);
  for (const auto& d : s.resident) row(out, "once", d);
  for (const auto& d : s.resident_long) row(out, "or", d);
  for (std::size_t i = 0; i < s.period.size(); ++i)
    row(out,
        i == 0 || s.period[i].block != s.period[i - 1].block
            ? (s.resident.empty() ? "x " : "step x ") + std::to_string(s.times(s.period[i]))
            : "",
        s.period[i]);
  for (const auto& d : s.epilogue) row(out, "once", d);
  out += "  arena";
  if (s.blank_bytes != 0)
    out +=
        ", all ones before the pass from " + number(s.blank_offset) + " to " + number(s.blank_offset + s.blank_bytes);
  out += '\n';
  for (const auto& v : s.values)
    out += "    " + padded(std::string(v.name.view()), 18) + padded(std::string(intaglio::name(v.type)), 6) +
           padded(number(v.offset), 12, true) + " .. " + padded(number(v.offset + v.bytes), 12) + "dispatches " +
           std::to_string(v.first) + " to " + std::to_string(v.last) + '\n';
}

/// A JSON string of a text that has no control characters.
inline std::string quoted(std::string_view words) {
  std::string out = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// A JSON array of what `each` writes for each item.
template <class List, class Each>
std::string array(const List& list, Each&& each) {
  std::string out = "[";
  for (const auto& item : list) out.append(out.size() > 1 ? "," : "").append(each(item));
  return out + "]";
}

/// A dispatch as a JSON object, with its specialization constants by name.
inline std::string json(const dispatch& d) {
  const auto& face = kernels::interface_of(d.kernel);
  std::string constants;
  for (std::size_t i = 1; i < face.specialization_count(); ++i)
    constants.append(i > 1 ? "," : "")
        .append(quoted(face.specialization[i].name))
        .append(":")
        .append(std::to_string(d.specialization[i]));
  return "{\"kernel\":" + quoted(face.name) + ",\"tensors\":" + quoted(d.label.view()) +
         ",\"barrier\":" + (d.barrier ? "true" : "false") + ",\"groups\":[" + std::to_string(d.groups[0]) + "," +
         std::to_string(d.groups[1]) + "," + std::to_string(d.groups[2]) +
         "],\"subgroups\":" + std::to_string(d.subgroups) + ",\"weight_bytes\":" + std::to_string(d.weight_bytes) +
         ",\"rule\":" + quoted(rules[d.rule].name) +
         ",\"activation\":" + (d.activation == nullptr ? "null" : quoted(d.activation->name)) +
         ",\"merged_ops\":" + std::to_string(d.op_count) + ",\"specialization\":{" + constants + "}}";
}

/// A sequence as a JSON object: its sums, dispatches and values.
inline std::string json(const sequence& s) {
  auto calls = [](array_view<const dispatch> part) { return array(part, [](const dispatch& d) { return json(d); }); };
  return "{\"name\":" + quoted(s.name) + ",\"max_tokens\":" + std::to_string(s.max_tokens) +
         ",\"layers\":" + std::to_string(s.layers) + ",\"dispatches\":" + std::to_string(s.dispatch_count()) +
         ",\"barriers\":" + std::to_string(s.barrier_count()) +
         ",\"weight_bytes\":" + std::to_string(s.weight_bytes()) + ",\"arena_bytes\":" + std::to_string(s.arena_bytes) +
         ",\"prologue\":" + calls(s.prologue) + ",\"resident\":" + calls(s.resident) +
         ",\"resident_long\":" + calls(s.resident_long) + ",\"long_from\":" + std::to_string(s.long_from) +
         ",\"period\":" + calls(s.period) + ",\"epilogue\":" + calls(s.epilogue) + ",\"values\":" +
         array(s.values,
               [](const placed_value& v) {
                 return "{\"name\":" + quoted(v.name.view()) + ",\"type\":" + quoted(intaglio::name(v.type)) +
                        ",\"width\":" + std::to_string(v.width) + ",\"offset\":" + std::to_string(v.offset) +
                        ",\"bytes\":" + std::to_string(v.bytes) + ",\"first\":" + std::to_string(v.first) +
                        ",\"last\":" + std::to_string(v.last) + "}";
               }) +
         "}";
}

}  // namespace explanation

/// The plan as a page of text: every dispatch with its barrier (|), groups, bytes and rule; the arena; the device
/// memory.
inline std::string explain(const table& t, std::string_view model) {
  using explanation::number;
  const std::uint64_t cache = t.cache_bytes();
  std::string out = std::string(model) + " for profile " + std::string(t.profile) + "\n";
  out += "device memory: weights " + number(t.weight_bytes()) + ", cache " + number(cache) + " (" + number(t.context) +
         " positions, " + std::string(kernels::cache_codec_of(t.cache_element).name) + "), arena " +
         number(t.arena_bytes()) + ", state " + number(t.state_bytes()) + " bytes\n";
  std::string codecs;
  for (const codec_bytes& each : weights_by_codec(t))
    (codecs += codecs.empty() ? "" : ", ") += std::string(each.codec) + ' ' + number(each.bytes);
  out += "computed in: " + codecs + " bytes; a token moves " + number(bytes_moved(t, t.decode, 0, 1)) + '\n';
  if (t.batch.layers != 0)
    out += "batch: " + number(t.shape.slot_count) + " slots, a pool of " + number(t.shape.pages) + " pages of " +
           number(t.shape.page_size) + " positions, " + number(t.pool_bytes()) + " bytes, arena " +
           number((std::max)(t.batch.arena_bytes, t.resident_batch.arena_bytes)) + ", state " +
           number(t.batch_state_bytes()) + " bytes\n";
  out += '\n';
  for (const sequence* s : {&t.decode, &t.resident_decode, &t.prefill, &t.batch, &t.resident_batch, &t.moves}) {
    if (s->layers == 0) continue;
    explanation::describe(out, *s);
    out += '\n';
  }
  out += "rules\n";
  for (std::size_t i = 1; i < rules.size(); ++i)
    out += "  " + explanation::padded(std::string(rules[i].name), 15) + std::string(rules[i].merges) + ": " +
           std::string(rules[i].reason) + '\n';
  return out;
}

/// The plan as JSON, for scripts: the content of explain(), and the specialization constants.
inline std::string explain_json(const table& t, std::string_view model) {
  using explanation::quoted;
  return "{\"model\":" + quoted(model) + ",\"profile\":" + quoted(t.profile) +
         ",\"context\":" + std::to_string(t.context) + ",\"weight_bytes\":" + std::to_string(t.weight_bytes()) +
         ",\"codecs\":" +
         explanation::array(weights_by_codec(t),
                            [](const codec_bytes& each) {
                              return "{\"name\":" + quoted(each.codec) + ",\"bytes\":" + std::to_string(each.bytes) +
                                     "}";
                            }) +
         ",\"bytes_per_token\":" + std::to_string(bytes_moved(t, t.decode, 0, 1)) +
         ",\"cache_type\":" + quoted(kernels::cache_codec_of(t.cache_element).name) +
         ",\"cache_bytes\":" + std::to_string(t.cache_bytes()) + ",\"state_bytes\":" + std::to_string(t.state_bytes()) +
         ",\"hash\":" + explanation::quoted(std::to_string(t.hash)) + ",\"rules\":" +
         explanation::array(std::span(rules).subspan(1),
                            [](const rule& r) {
                              return "{\"name\":" + quoted(r.name) + ",\"merges\":" + quoted(r.merges) +
                                     ",\"reason\":" + quoted(r.reason) + "}";
                            }) +
         ",\"sequences\":[" + explanation::json(t.decode) + "," +
         (t.resident_decode.prologue.empty() ? std::string() : explanation::json(t.resident_decode) + ",") +
         explanation::json(t.prefill) + "," + explanation::json(t.logits) +
         (t.verify.has_head ? "," + explanation::json(t.verify) : std::string()) +
         (t.batch.layers != 0
              ? "," + explanation::json(t.batch) +
                    (t.resident_batch.layers != 0 ? "," + explanation::json(t.resident_batch) : std::string()) + "," +
                    explanation::json(t.moves)
              : std::string()) +
         "]}";
}

}  // namespace intaglio::plan
