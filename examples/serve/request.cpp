// SPDX-License-Identifier: MIT
#include "request.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <intaglio/core/error.hpp>
#include <intaglio/core/number_text.hpp>

#include "api_error.hpp"
#include "json_schema.hpp"

namespace intaglio::serve {
namespace {

/// The value as errors show it, cut and escaped.
std::string shown(const json& value) { return printable(json_text(value), 60); }

/// Members of an object with their types and ranges. null counts as absent, as clients send it for defaults.
class fields {
 public:
  fields(const json& of, std::string where) : of_(of), where_(std::move(where)) {
    if (!of_.is_object()) refuse_field(where_.empty() ? "body" : where_, "an object", shown(of_));
  }
  std::string name(std::string_view key) const {
    return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
  }
  const json* find(std::string_view key) const {
    const auto at = of_.find(std::string(key));
    return at == of_.end() || at->is_null() ? nullptr : &*at;
  }
  const json& need(std::string_view key, const std::string& expected) const {
    const json* const value = find(key);
    if (value == nullptr) refuse_field(name(key), expected, "nothing");
    return *value;
  }
  std::string text(std::string_view key) const {
    const json& value = need(key, "a string");
    if (!value.is_string()) refuse_field(name(key), "a string", shown(value));
    return value.get<std::string>();
  }
  bool boolean(std::string_view key, bool absent) const {
    const json* const value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) refuse_field(name(key), "true or false", shown(*value));
    return value->get<bool>();
  }
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most) const {
    const json* const value = find(key);
    if (value == nullptr) return {};
    const auto range = [&] { return "an integer of " + std::to_string(least) + " .. " + std::to_string(most); };
    if (!value->is_number_integer()) refuse_field(name(key), range(), shown(*value));
    if (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      refuse_field(name(key), range(), shown(*value));
    const auto out = value->get<std::int64_t>();
    if (out < least || out > most) refuse_field(name(key), range(), shown(*value));
    return out;
  }
  std::optional<std::uint32_t> natural(std::string_view key, std::uint32_t least, std::uint32_t most) const {
    const auto out = integer(key, least, most);
    return out ? std::optional(static_cast<std::uint32_t>(*out)) : std::nullopt;
  }
  /// @param open the range does not have `least` itself
  std::optional<float> number(std::string_view key, double least, double most, bool open = false) const {
    const json* const value = find(key);
    if (value == nullptr) return {};
    const auto range = [&] {
      return (open ? "a number over " : "a number of ") + number_text(static_cast<float>(least)) +
             (open ? ", at most " : " .. ") + number_text(static_cast<float>(most));
    };
    if (!value->is_number()) refuse_field(name(key), range(), shown(*value));
    const double out = value->get<double>();
    if (!(out >= least && out <= most) || (open && out == least)) refuse_field(name(key), range(), shown(*value));
    const auto narrow = static_cast<float>(out);
    return open && narrow <= static_cast<float>(least) ? std::nextafter(static_cast<float>(least), 1.0f) : narrow;
  }
  /// Fields that ask for what this server has not: refused instead of passed over.
  void refuse_unless_absent(std::string_view key, const std::string& why) const {
    const json* const value = find(key);
    if (value == nullptr || (value->is_boolean() && !value->get<bool>()) ||
        ((value->is_array() || value->is_object() || value->is_string()) && value->empty()))
      return;
    refuse_field(name(key), "nothing: " + why, shown(*value), "unsupported_parameter");
  }

 private:
  const json& of_;
  std::string where_;
};

std::string index(const std::string& name, std::size_t i) { return name + "[" + std::to_string(i) + "]"; }

std::vector<std::int32_t> read_ids(const json& list, const std::string& name, const model_facts& model) {
  std::vector<std::int32_t> out;
  out.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto expected = [&] { return "a token id of 0 .. " + std::to_string(model.vocab_size - 1); };
    if (!list[i].is_number_unsigned() || list[i].get<std::uint64_t>() >= model.vocab_size)
      refuse_field(index(name, i), expected(), shown(list[i]));
    out.push_back(list[i].get<std::int32_t>());
  }
  if (out.empty()) refuse_field(name, "at least one token", "none");
  return out;
}

std::vector<prompt_input> read_prompts(const json& prompt, const model_facts& model, const limits& limit) {
  const std::string expected =
      "a string, token ids, or at most " + std::to_string(limit.prompts) + " of these in an array";
  if (prompt.is_string()) return {prompt.get<std::string>()};
  if (!prompt.is_array() || prompt.empty()) refuse_field("prompt", expected, shown(prompt));
  if (prompt[0].is_number()) return {read_ids(prompt, "prompt", model)};
  if (prompt.size() > limit.prompts) refuse_field("prompt", expected, std::to_string(prompt.size()));
  std::vector<prompt_input> out;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i].is_string()) out.emplace_back(prompt[i].get<std::string>());
    else if (prompt[i].is_array()) out.emplace_back(read_ids(prompt[i], index("prompt", i), model));
    else refuse_field(index("prompt", i), "a string or token ids", shown(prompt[i]));
  }
  return out;
}

std::string read_content(const json& content, const std::string& name) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) refuse_field(name, "a string or an array of text parts", shown(content));
  std::string out;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const fields part(content[i], index(name, i));
    if (const std::string type = part.text("type"); type != "text")
      refuse_field(part.name("type"), "'text': this model reads nothing else", "'" + printable(type, 40) + "'",
                   "unsupported_parameter");
    out += part.text("text");
  }
  return out;
}

std::vector<turn> read_messages(const json& list, const limits& limit) {
  const std::string expected = "an array of 1 .. " + std::to_string(limit.messages) + " messages";
  if (!list.is_array() || list.empty()) refuse_field("messages", expected, list.is_array() ? "none" : shown(list));
  if (list.size() > limit.messages) refuse_field("messages", expected, std::to_string(list.size()));
  std::vector<turn> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const fields message(list[i], index("messages", i));
    std::string role = message.text("role");
    if (role == "developer") role = "system";
    if (role != "system" && role != "user" && role != "assistant")
      refuse_field(message.name("role"), "'system', 'developer', 'user' or 'assistant'",
                   "'" + printable(role, 40) + "'");
    out.push_back({std::move(role), read_content(message.need("content", "a string"), message.name("content"))});
  }
  return out;
}

void read_stop(const fields& from, const limits& limit, completion_request& out) {
  const json* const stop = from.find("stop");
  if (stop == nullptr) return;
  const std::string expected = "a string, or an array of at most " + std::to_string(limit.stop_strings) +
                               " strings, of 1 .. " + std::to_string(limit.stop_bytes) + " bytes";
  const auto add = [&](const json& each, const std::string& name) {
    if (!each.is_string()) refuse_field(name, expected, shown(each));
    const auto& text = each.get_ref<const std::string&>();
    if (text.empty() || text.size() > limit.stop_bytes)
      refuse_field(name, expected, std::to_string(text.size()) + " bytes");
    out.stop.push_back(text);
  };
  if (!stop->is_array()) return add(*stop, "stop");
  if (stop->size() > limit.stop_strings) refuse_field("stop", expected, std::to_string(stop->size()) + " strings");
  for (std::size_t i = 0; i < stop->size(); ++i) add((*stop)[i], index("stop", i));
}

void read_logit_bias(const fields& from, const model_facts& model, const limits& limit, completion_request& out) {
  const json* const bias = from.find("logit_bias");
  if (bias == nullptr) return;
  const std::string expected =
      "an object of at most " + std::to_string(limit.logit_bias) + " token ids and numbers of -100 .. 100";
  if (!bias->is_object()) refuse_field("logit_bias", expected, shown(*bias));
  if (bias->size() > limit.logit_bias) refuse_field("logit_bias", expected, std::to_string(bias->size()));
  for (const auto& [key, value] : bias->items()) {
    std::uint32_t id = 0;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (problem != std::errc{} || end != key.data() + key.size() || id >= model.vocab_size)
      refuse_field("logit_bias", "token ids of 0 .. " + std::to_string(model.vocab_size - 1),
                   "'" + printable(key, 40) + "'");
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100))
      refuse_field("logit_bias." + key, "a number of -100 .. 100", shown(value));
    out.shape.logit_bias.emplace_back(static_cast<std::int32_t>(id), value.get<float>());
  }
}

void read_response_format(const fields& from, completion_request& out) {
  const json* const format = from.find("response_format");
  if (format == nullptr) return;
  const fields inside(*format, "response_format");
  const std::string type = inside.text("type");
  if (type == "text") return;
  if (type == "json_object") out.shape.form = std::make_shared<const grammar>(any_json_object());
  else if (type == "json_schema") {
    const fields named(inside.need("json_schema", "an object"), "response_format.json_schema");
    out.shape.form = std::make_shared<const grammar>(
        grammar_of_schema(named.need("schema", "a JSON schema"), "response_format.json_schema.schema"));
  } else
    refuse_field("response_format.type", "'text', 'json_object' or 'json_schema'", "'" + printable(type, 40) + "'");
  if (!out.stop.empty())
    refuse_field("stop", "nothing beside response_format: the text could end before it parses", "stop strings");
}

void read_sampling(const fields& from, const model_facts& model, completion_request& out) {
  sampling_options& s = out.sampling;
  s.temperature = from.number("temperature", 0, 2).value_or(1.0f);
  s.top_p = from.number("top_p", 0, 1, true).value_or(1.0f);
  s.min_p = from.number("min_p", 0, 1).value_or(0.0f);
  // -1 and 0 are other servers' words for off.
  if (const auto k = from.integer("top_k", -1, model.vocab_size); k && *k > 0) s.top_k = static_cast<std::uint32_t>(*k);
  const auto repetition = from.number("repetition_penalty", 0, 10, true),
             repeat = from.number("repeat_penalty", 0, 10, true);
  s.repeat_penalty = repetition ? *repetition : repeat.value_or(1.0f);
  s.repeat_last_n = from.natural("repeat_last_n", 0, model.context).value_or(std::min(64u, model.context));
  out.shape.frequency_penalty = from.number("frequency_penalty", -2, 2).value_or(0.0f);
  out.shape.presence_penalty = from.number("presence_penalty", -2, 2).value_or(0.0f);
  if (const auto seed = from.integer("seed", INT64_MIN, INT64_MAX))
    s.seed = static_cast<std::uint64_t>(*seed), out.seeded = true;
}

completion_request read_common(const fields& from, const model_facts& model, const limits& limit, bool chat) {
  if (from.find("model") != nullptr) {
    const std::string wanted = from.text("model");
    if (wanted != model.id && std::find(model.aliases.begin(), model.aliases.end(), wanted) == model.aliases.end())
      throw api_error(404, "model: expected '" + model.id + "', found '" + printable(wanted, 60) + "'", "model",
                      "model_not_found");
  }
  completion_request out;
  out.chat = chat;
  read_sampling(from, model, out);
  const std::uint32_t most = limit.completion_tokens != 0 ? limit.completion_tokens : UINT32_MAX;
  // Both names of the limit; the newer one counts.
  const auto older = from.natural("max_tokens", 1, UINT32_MAX),
             newer = from.natural("max_completion_tokens", 1, UINT32_MAX);
  if (newer) out.max_tokens = newer;
  else if (older) out.max_tokens = older;
  else if (!chat) out.max_tokens = 16;
  if (out.max_tokens && *out.max_tokens > most)
    refuse_field(newer ? "max_completion_tokens" : "max_tokens", "at most " + std::to_string(most),
                 std::to_string(*out.max_tokens));
  if (!out.max_tokens && limit.completion_tokens != 0) out.max_tokens = most;
  out.n = from.natural("n", 1, limit.n).value_or(1);
  read_stop(from, limit, out);
  read_logit_bias(from, model, limit, out);
  read_response_format(from, out);
  out.stream = from.boolean("stream", false);
  if (const json* const options = from.find("stream_options")) {
    const fields inside(*options, "stream_options");
    out.include_usage = inside.boolean("include_usage", false);
    out.usage_so_far = inside.boolean("continuous_usage_stats", false);
  }
  return out;
}

}  // namespace

completion_request read_chat_request(const json& body, const model_facts& model, const limits& limit) {
  const fields from(body, {});
  completion_request out = read_common(from, model, limit, true);
  out.messages = read_messages(from.need("messages", "an array"), limit);
  const auto alternatives = from.natural("top_logprobs", 0, limit.top_logprobs);
  if (from.boolean("logprobs", false)) out.shape.logprobs = alternatives.value_or(0);
  else if (alternatives.value_or(0) != 0)
    refuse_field("top_logprobs", "logprobs: true beside it", std::to_string(*alternatives));
  for (const std::string_view each : {"tools", "functions"})
    from.refuse_unless_absent(each, "the server calls no tools");
  for (const std::string_view each : {"audio", "prediction", "web_search_options"})
    from.refuse_unless_absent(each, "the server has no such part");
  return out;
}

completion_request read_completion_request(const json& body, const model_facts& model, const limits& limit) {
  const fields from(body, {});
  completion_request out = read_common(from, model, limit, false);
  out.prompts = read_prompts(from.need("prompt", "a string or token ids"), model, limit);
  if (const auto alternatives = from.natural("logprobs", 0, limit.top_logprobs)) out.shape.logprobs = *alternatives;
  if (const auto best = from.natural("best_of", 1, limit.n); best && *best != out.n)
    refuse_field("best_of", "the same as n", std::to_string(*best));
  from.refuse_unless_absent("echo", "the prompt is not repeated");
  from.refuse_unless_absent("suffix", "text is only continued at its end");
  return out;
}

tokenize_request read_tokenize_request(const json& body) {
  const fields from(body, {});
  return {from.text("content"), from.boolean("add_special", false), from.boolean("parse_special", false)};
}

std::vector<std::int32_t> read_detokenize_request(const json& body, const model_facts& model, const limits&) {
  const json& tokens = fields(body, {}).need("tokens", "an array of token ids");
  if (!tokens.is_array()) refuse_field("tokens", "an array of token ids", shown(tokens));
  return tokens.empty() ? std::vector<std::int32_t>{} : read_ids(tokens, "tokens", model);
}

infer_request read_infer_request(const json& body) {
  const fields from(body, {});
  infer_request out{from.text("prompt"), from.natural("top", 1, 100).value_or(5),
                    from.find("mode") ? from.text("mode") : "dense", from.natural("features", 1, 1u << 24)};
  if (out.mode != "walk" && out.mode != "dense" && out.mode != "compare")
    refuse_field("mode", "'walk', 'dense' or 'compare'", "'" + printable(out.mode, 40) + "'");
  if (out.prompt.empty()) refuse_field("prompt", "a text", "an empty one");
  return out;
}

trace_request read_trace_request(const json& body, const limits& limit) {
  const fields from(body, {});
  trace_request out;
  out.top = from.natural("top", 1, 32).value_or(5);
  const bool chat = from.find("messages") != nullptr;
  if (chat) out.messages = read_messages(from.need("messages", "an array"), limit);
  out.text = from.text(chat ? "reply" : "prompt");
  return out;
}

}  // namespace intaglio::serve
