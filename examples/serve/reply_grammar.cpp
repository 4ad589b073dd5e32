// SPDX-License-Identifier: MIT
#include "reply_grammar.hpp"

#include <deque>
#include <map>
#include <optional>
#include <stdexcept>

#include "api_error.hpp"
#include "json_rules.hpp"
#include "json_schema.hpp"
#include "request_fields.hpp"

namespace intaglio::serve {
namespace {

using rule = grammar::rule;
using part = grammar::part;

byte_set all_text() { return bytes_between(0x00, 0xFE); }

class reply_writer {
 public:
  reply_writer(grammar& to, const reply_layout& layout, const reply_plan& wanted)
      : g_(to), rules_(to), layout_(layout), wanted_(wanted) {
    if (wanted.use == tool_use::none) return;
    for (const tool_function& each : wanted.tools) arguments_.push_back(arguments_of(each));
  }

  rule start() {
    if (layout_.in_channels()) return in_channels();
    const rule rest = rest_after({});
    if (!wanted_.in_thought && layout_.thought.empty()) return rest;
    const rule thought = text(mark_watch({}, layout_.thought_end, false), {.mark = rest, .may_end = may_end()});
    return wanted_.in_thought ? thought : rest_after(thought);
  }

 private:
  struct goals {
    std::optional<rule> thought{}, mark{}, bare{};
    bool may_end = true;
  };

  bool may_end() const { return wanted_.use != tool_use::required && !wanted_.form; }
  bool is_bare() const { return layout_.begin.empty(); }

  /// Text up to where something else begins; one rule for each state of the watch.
  rule text(const mark_watch& begin, const goals& to) {
    std::map<std::uint32_t, rule> made;
    std::deque<std::pair<rule, mark_watch>> waiting;
    const auto rule_of = [&](const mark_watch& at) {
      const auto [known, fresh] = made.try_emplace(at.state(), 0);
      if (fresh) {
        known->second = g_.add_rule();
        waiting.emplace_back(known->second, at);
      }
      return known->second;
    };
    const rule out = rule_of(begin);
    for (; !waiting.empty(); waiting.pop_front()) {
      const auto [from, at] = waiting.front();
      std::map<rule, byte_set> next;
      for (unsigned byte = 0; byte < 256; ++byte) {
        mark_watch after = at;
        std::optional<rule> goal;
        switch (after.step(static_cast<unsigned char>(byte))) {
          case mark_watch::found::nothing:
            goal = rule_of(after);
            break;
          case mark_watch::found::thought:
            goal = to.thought;
            break;
          case mark_watch::found::mark:
            goal = to.mark;
            break;
          case mark_watch::found::bare_call:
            goal = to.bare;
            break;
          case mark_watch::found::impossible:
            break;
        }
        if (goal) next[*goal].set(byte);
      }
      for (const auto& [goal, bytes] : next) g_.add(from, {bytes, goal});
      if (to.may_end) g_.add(from, {});
    }
    return out;
  }

  /// What comes where no thought is open. @param thought what follows the mark of one, if there may be one
  rule rest_after(const std::optional<rule>& thought) {
    const bool calls = wanted_.use != tool_use::none;
    if (may_end()) {
      const std::string_view opening = thought ? std::string_view(layout_.thought) : std::string_view();
      goals to{.thought = thought};
      if (calls && !is_bare()) to.mark = calls_begun();
      if (calls && is_bare()) to.bare = g_.add_rule({tail()});
      return text(mark_watch(opening, layout_.begin, calls && is_bare()), to);
    }
    const rule out = g_.add_rule(), gap = g_.add_rule({});
    for (const char* each : {" ", "\n", "\n\n"}) g_.add(gap, {each});
    if (calls) g_.add(out, {gap, calls_whole()});
    if (wanted_.form) g_.add(out, {gap, wanted_.form(g_, rules_)});
    if (thought) g_.add(out, {gap, mark(layout_.thought), *thought});
    return out;
  }

  /// A mark byte by byte: a control token needs no tokens for its single bytes.
  rule mark(std::string_view of) {
    if (of.empty() || of.front() != control_byte) return g_.add_rule({std::string(of)});
    std::vector<part> parts;
    for (const char each : of) parts.emplace_back(byte_set().set(static_cast<unsigned char>(each)));
    const rule out = g_.add_rule();
    g_.add(out, parts);
    return out;
  }

  rule arguments_of(const tool_function& of) {
    if (of.parameters.is_null()) return g_.add_rule({"{", rules_.space, "}"});
    if (of.parameters.empty()) return rules_.any_object;
    return add_schema(g_, rules_, of.parameters, of.where);
  }

  /// `: "NAME", "arguments": {...}}` for each tool.
  rule tail() {
    const rule out = g_.add_rule(), end = g_.add_rule({rules_.space, "}"}),
               key = g_.add_rule({"\"", rules_.space, ",", rules_.space, "\"" + std::string(layout_.calls->key) + "\"",
                                  rules_.space, ":", rules_.space});
    const rule names = g_.add_rule();
    for (std::size_t i = 0; i < arguments_.size(); ++i) g_.add(names, {wanted_.tools[i].name, key, arguments_[i], end});
    g_.add(out, {rules_.space, ":", rules_.space, "\"", names});
    return out;
  }
  rule object() { return g_.add_rule({"{", rules_.space, "\"name\"", tail()}); }

  rule calls_whole() { return is_bare() ? object() : g_.add_rule({mark(layout_.begin), calls_begun()}); }

  /// Behind the mark that begins a call: the call, and others.
  rule calls_begun() {
    const bool several = wanted_.several && layout_.calls->several;
    if (layout_.calls->shape == call_shape::list) {
      const rule one = object(), more = g_.add_rule({});
      if (several) g_.add(more, {",", rules_.space, one, more});
      return closed(g_.add_rule({rules_.space, "[", rules_.space, one, more, rules_.space, "]"}));
    }
    const rule out = g_.add_rule(), again = g_.add_rule({});
    if (layout_.calls->shape == call_shape::headed) {
      const rule middle = mark(layout_.middle);
      for (std::size_t i = 0; i < arguments_.size(); ++i)
        g_.add(out, {wanted_.tools[i].name, middle, arguments_[i], again});
    } else {
      g_.add(out, {closed(g_.add_rule({rules_.space, object()})), again});
    }
    if (several) g_.add(again, {rules_.space, mark(layout_.begin), out});
    return out;
  }
  rule closed(rule call) { return layout_.end.empty() ? call : g_.add_rule({call, rules_.space, mark(layout_.end)}); }

  /// Messages of harmony, of which the prompt has begun the first: thoughts and words in front of calls, then the
  /// answer or a call.
  rule in_channels() {
    const rule channel = mark(layout_.channel), message = mark(layout_.message), body = g_.add_rule({});
    g_.add(body, {all_text(), body});
    const rule out = g_.add_rule();
    const rule next = g_.add_rule({mark(layout_.over), mark(layout_.start), "assistant", out});
    g_.add(out, {channel, "analysis", message, body, next});
    if (wanted_.form) g_.add(out, {channel, "final", message, wanted_.form(g_, rules_)});
    else if (may_end()) g_.add(out, {channel, "final", message, body});
    if (may_end()) g_.add(out, {channel, "analysis", message, body});  // it may be cut in its thoughts
    if (wanted_.use == tool_use::none) return out;
    g_.add(out, {channel, "commentary", message, body, next});
    const rule typed = g_.add_rule({});
    g_.add(typed, {" ", mark(layout_.constrain), "json"});
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      g_.add(out, {channel, "commentary to=functions." + wanted_.tools[i].name, typed, message, arguments_[i]});
      g_.add(out, {" to=functions." + wanted_.tools[i].name, channel, "commentary", typed, message, arguments_[i]});
    }
    return out;
  }

  grammar& g_;
  json_rules rules_;
  const reply_layout& layout_;
  const reply_plan& wanted_;
  std::vector<rule> arguments_;  ///< by tool
};

}  // namespace

void check_parameters(const tool_function& of) {
  if (of.parameters.is_null()) return;
  if (!of.parameters.is_object()) refuse_field(of.where, "a JSON schema of an object", shown(of.parameters));
  const auto type = of.parameters.find("type");
  if (type != of.parameters.end() ? *type != "object" : !of.parameters.empty() && !of.parameters.contains("properties"))
    refuse_field(of.where + ".type", "'object'", type != of.parameters.end() ? shown(*type) : "nothing");
  if (!of.parameters.empty()) grammar_of_schema(of.parameters, of.where);
}

grammar reply_grammar(const reply_layout& layout, const reply_plan& wanted) {
  grammar out;
  try {
    out.finish(reply_writer(out, layout, wanted).start());
  } catch (const std::length_error&) {
    refuse_field(wanted.use == tool_use::none ? "response_format" : "tools", "fewer or smaller schemas", "more",
                 "unsupported_schema");
  }
  return out;
}

}  // namespace intaglio::serve
