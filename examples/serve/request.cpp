// SPDX-License-Identifier: MIT
#include "request.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "gbnf.hpp"
#include "json_rules.hpp"
#include "json_schema.hpp"
#include "request_fields.hpp"
#include "text_language.hpp"
#include "token_ids.hpp"

namespace intaglio::serve {
namespace {

/// @param name of the field  @param most texts of an array
std::vector<prompt_input> read_prompts(const json& prompt, const std::string& name, std::uint32_t most,
                                       const model_facts& model) {
  const std::string expected = "a string, token ids, or at most " + std::to_string(most) + " of these in an array";
  if (prompt.is_string()) return {prompt.get<std::string>()};
  if (!prompt.is_array() || prompt.empty()) refuse_field(name, expected, shown(prompt));
  if (prompt[0].is_number()) return {read_ids(prompt, name, model.vocab_size)};
  if (prompt.size() > most) refuse_field(name, expected, std::to_string(prompt.size()));
  std::vector<prompt_input> out;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i].is_string()) out.emplace_back(prompt[i].get<std::string>());
    else if (prompt[i].is_array()) out.emplace_back(read_ids(prompt[i], index(name, i), model.vocab_size));
    else refuse_field(index(name, i), "a string or token ids", shown(prompt[i]));
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
    if (problem != std::errc{} || end != key.data() + key.size() || id >= model.vocab_size || key != std::to_string(id))
      refuse_field("logit_bias", "token ids of 0 .. " + std::to_string(model.vocab_size - 1),
                   "'" + printable(key, 40) + "'");
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100))
      refuse_field("logit_bias." + key, "a number of -100 .. 100", shown(value));
    out.shape.logit_bias.emplace_back(static_cast<std::int32_t>(id), value.get<float>());
  }
}

form_writer form_of_choice(const json& list, const std::string& name) {
  const std::string expected = "an array of 1 .. 1000 strings";
  if (!list.is_array() || list.empty() || list.size() > 1000)
    refuse_field(name, expected, list.is_array() ? std::to_string(list.size()) : shown(list));
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!list[i].is_string()) refuse_field(index(name, i), "a string", shown(list[i]));
  return [list](grammar& to, json_rules&) {
    const grammar::rule any = to.add_rule();
    for (const json& each : list) to.add(any, {each.get<std::string>()});
    return any;
  };
}

/// The one form that a request asks for, in whichever field clients write it.
class form_reader {
 public:
  explicit form_reader(const limits& limit) : limit_(limit) {}

  void schema(const json& from, const std::string& name) {
    const auto read = std::make_shared<const json>(
        from.is_string() ? json_in_text(from, name, "a JSON schema, or a text of one", limit_) : from);
    take(name, grammar_of_schema(*read, name), [read, name](grammar& to, json_rules& rules) {
      const grammar::rule blank = to.add_rule({});
      to.add(blank, {" "});
      return to.add_rule({blank, add_schema(to, rules, *read, name)});
    });
  }
  void choice(const json& from, const std::string& name) {
    written(form_of_choice(from, name), name, "fewer and shorter strings");
  }
  /// All of the text matches.
  void regex(const json& from, const std::string& name) {
    std::shared_ptr<const text_language> language;
    try {
      language_budget budget;
      language =
          std::make_shared<const text_language>(text_language::of_pattern("^(?:" + text_of(from, name) + ")$", budget));
    } catch (const std::invalid_argument& problem) {
      refuse_field(name, std::string("a regular expression: ") + problem.what(), shown(from), "unsupported_schema");
    } catch (const std::length_error&) { refuse_field(name, "a smaller pattern", shown(from), "unsupported_schema"); }
    written(
        [language](grammar& to, json_rules&) {
          language_budget budget;
          return language->written(to, budget, character_form::plain);
        },
        name, "a smaller pattern");
  }
  void gbnf(const json& from, const std::string& name) {
    written([text = text_of(from, name)](grammar& to, json_rules&) { return add_gbnf(to, text); }, name,
            "a smaller grammar");
  }
  void any_object(const std::string& name) {
    take(name, any_json_object(), [](grammar& to, json_rules& rules) {
      return to.add_rule({rules.space, rules.any_object});
    });
  }
  void give(completion_request& to) {
    if (form_) to.shape.form_field = of_.substr(0, of_.find('.'));
    to.shape.form = std::move(form_);
    to.form_rule = std::move(rule_);
  }

 private:
  static std::string text_of(const json& from, const std::string& name) {
    if (!from.is_string()) refuse_field(name, "a string", shown(from));
    return from.get<std::string>();
  }
  /// @param smaller what the error says was expected if the form is too large
  void written(const form_writer& write, const std::string& name, const char* smaller) {
    grammar whole;
    try {
      json_rules rules(whole);
      whole.finish(write(whole, rules));
    } catch (const std::length_error&) {
      refuse_field(name, smaller, "more", "unsupported_schema");
    } catch (const std::invalid_argument& problem) {
      throw api_error(400, name + ": " + problem.what(), name, "unsupported_schema");
    }
    take(name, std::move(whole), write);
  }
  void take(const std::string& name, grammar whole, form_writer rule) {
    if (form_) refuse_field(name, "nothing beside " + of_, "a second form of the text");
    of_ = name;
    form_ = std::make_shared<const grammar>(std::move(whole));
    rule_ = std::move(rule);
  }
  const limits& limit_;
  std::shared_ptr<const grammar> form_;
  form_writer rule_;
  std::string of_;
};

/// OpenAI's field, with the schema also where other servers have it.
void read_response_format(const fields& from, const limits& limit, form_reader& to) {
  const json* const format = from.find("response_format");
  if (format == nullptr) return;
  const fields inside(*format, "response_format");
  const std::string type = inside.text("type");
  const json *const schema = inside.find("schema"), *const named = inside.find("json_schema");
  if (schema != nullptr && named != nullptr)
    refuse_field("response_format.schema", "nothing beside json_schema", shown(*schema));
  if (type != "text" && type != "json_object" && type != "json_schema")
    refuse_field("response_format.type", "'text', 'json_object' or 'json_schema'", "'" + printable(type, 40) + "'");
  if (type == "text" && (schema != nullptr || named != nullptr))
    refuse_field("response_format.type", "'json_schema' beside a schema", "'text'");
  if (named != nullptr) {
    const fields wrapped(*named, "response_format.json_schema");
    to.schema(wrapped.need("schema", "a JSON schema"), "response_format.json_schema.schema");
    wrapped.without_effect({"name", "description", "strict"});  // a form always holds strictly
    wrapped.refuse_unknown(limit.ignore_unknown);
  } else if (schema != nullptr) {
    to.schema(*schema, "response_format.schema");
    inside.without_effect({"name", "description", "strict"});
  } else if (type == "json_object") {
    to.any_object("response_format");
  } else if (type == "json_schema") {
    refuse_field("response_format.json_schema", "an object", "nothing");
  }
  inside.refuse_unknown(limit.ignore_unknown);
}

/// The fields of vLLM, llama.cpp's server and Ollama.
void read_other_forms(const fields& from, const limits& limit, form_reader& to) {
  if (const json* const each = from.find("guided_json")) to.schema(*each, "guided_json");
  if (const json* const each = from.find("guided_choice")) to.choice(*each, "guided_choice");
  if (const json* const each = from.find("json_schema"); each != nullptr && *each != json::object())
    to.schema(*each, "json_schema");
  if (const json* const each = from.find("format"); each != nullptr && *each != "") {
    if (*each == "json") to.any_object("format");
    else to.schema(*each, "format");
  }
  if (const json* const each = from.find("guided_regex")) to.regex(*each, "guided_regex");
  for (const char* const name : {"guided_grammar", "grammar"})
    if (const json* const each = from.find(name); each != nullptr && *each != "") to.gbnf(*each, name);
  from.refuse_unless_absent("guided_whitespace_pattern", "blanks are as a schema's form has them");
  from.without_effect({"guided_decoding_backend"});
  const json* const wanted = from.find("structured_outputs");
  if (wanted == nullptr) return;
  const fields inside(*wanted, "structured_outputs");
  if (const json* const each = inside.find("json")) to.schema(*each, inside.name("json"));
  if (const json* const each = inside.find("choice")) to.choice(*each, inside.name("choice"));
  if (inside.boolean("json_object", false)) to.any_object(inside.name("json_object"));
  if (const json* const each = inside.find("regex")) to.regex(*each, inside.name("regex"));
  if (const json* const each = inside.find("grammar")) to.gbnf(*each, inside.name("grammar"));
  inside.refuse_unless_absent({"structural_tag", "whitespace_pattern"}, "the server does not do this");
  inside.without_effect({"backend", "disable_fallback"});
  inside.refuse_unknown(limit.ignore_unknown);
}

void read_form(const fields& from, const limits& limit, completion_request& out) {
  form_reader form(limit);
  read_response_format(from, limit, form);
  read_other_forms(from, limit, form);
  form.give(out);
}

void read_sampling(const fields& from, const model_facts& model, completion_request& out) {
  sampling_options& s = out.sampling;
  s.temperature = from.number("temperature", 0, 2).value_or(1.0f);
  // 0 leaves the likeliest token, as the least share over 0 does.
  s.top_p = std::max(from.number("top_p", 0, 1).value_or(1.0f), 1e-6f);
  s.min_p = from.number("min_p", 0, 1).value_or(0.0f);
  // -1 and 0 are other servers' words for off.
  if (const auto k = from.integer("top_k", -1, model.vocab_size); k && *k > 0) s.top_k = static_cast<std::uint32_t>(*k);
  // Logits are divided by it: the least one keeps them finite.
  const auto repetition = from.number("repetition_penalty", 0.01, 10), repeat = from.number("repeat_penalty", 0.01, 10);
  if (repetition && repeat && *repetition != *repeat)
    refuse_field("repeat_penalty", "the same as repetition_penalty", number_text(*repeat));
  s.repeat_penalty = repetition ? *repetition : repeat.value_or(1.0f);
  s.repeat_last_n = from.natural("repeat_last_n", 0, model.context);
  out.shape.frequency_penalty = from.number("frequency_penalty", -2, 2).value_or(0.0f);
  out.shape.presence_penalty = from.number("presence_penalty", -2, 2).value_or(0.0f);
  // -1 is other servers' word for any.
  if (const auto seed = from.integer("seed", INT64_MIN, INT64_MAX); seed && *seed != -1)
    s.seed = static_cast<std::uint64_t>(*seed), out.seeded = true;
}

/// Reads the limit of tokens by both names; the newer name counts. -1: the number that the context has room for.
void read_max_tokens(const fields& from, const limits& limit, completion_request& out) {
  std::optional<std::int64_t> found;
  std::string_view name = "max_tokens";
  for (const std::string_view each : {"max_tokens", "max_completion_tokens"}) {
    const auto wanted = from.integer(each, -1, UINT32_MAX);
    if (wanted == 0) refuse_field(std::string(each), "-1 (what the context has room for), or 1 .. 4294967295", "0");
    if (wanted) found = wanted, name = each;
  }
  if (!found && !out.chat) found = 16;
  const std::uint32_t most = limit.completion_tokens;
  if (found && *found != -1) out.max_tokens = static_cast<std::uint32_t>(*found);
  if (most == 0) return;
  if (!out.max_tokens) out.max_tokens = most;
  if (*out.max_tokens > most)
    refuse_field(std::string(name), "at most " + std::to_string(most), std::to_string(*out.max_tokens));
}

/// Tokens that end the text, or may not, and those that are not drawn.
void read_ends(const fields& from, const model_facts& model, const limits& limit, completion_request& out) {
  out.stop_ids = read_id_list(from, "stop_token_ids", limit.stop_strings, model.vocab_size);
  for (const std::int32_t id : read_id_list(from, "suppress_tokens", limit.logit_bias, model.vocab_size))
    out.shape.logit_bias.emplace_back(id, shaping::never);
  out.shape.min_tokens = from.natural("min_tokens", 0, model.context).value_or(0);
  if (out.max_tokens && out.shape.min_tokens > *out.max_tokens)
    refuse_field("min_tokens", "at most max_tokens, " + std::to_string(*out.max_tokens),
                 std::to_string(out.shape.min_tokens));
  if (from.boolean("ignore_eos", false)) out.shape.min_tokens = UINT32_MAX;
}

/// The adapter that a request chooses: by the name of a model, or in the list `lora`.
std::optional<adapter_choice> read_adapter(const fields& from, const model_facts& model) {
  if (const json* const list = from.find("lora")) return read_adapters(*list, "lora", model);
  if (from.find("model") == nullptr) return {};
  const adapter_choice named = adapter_named(from.text("model"), model);
  return named.number != 0 ? std::optional(named) : std::nullopt;
}

completion_request read_common(const fields& from, const model_facts& model, const limits& limit, bool chat) {
  if (from.find("model") != nullptr) require_model(from.text("model"), model);
  completion_request out;
  out.adapter = read_adapter(from, model);
  out.chat = chat;
  read_sampling(from, model, out);
  read_max_tokens(from, limit, out);
  out.shift = read_context_shift(from, model.context, out.max_tokens);
  out.n = from.natural("n", 1, limit.n).value_or(1);
  read_stop(from, limit, out);
  read_logit_bias(from, model, limit, out);
  read_form(from, limit, out);
  out.stream = from.boolean("stream", false);
  if (const json* const options = from.find("stream_options")) {
    const fields inside(*options, "stream_options");
    out.include_usage = inside.boolean("include_usage", false);
    out.usage_so_far = inside.boolean("continuous_usage_stats", false);
    inside.refuse_unless_absent("include_obfuscation", "pieces are sent as they are");
    inside.refuse_unknown(limit.ignore_unknown);
  }
  from.refuse_unless_absent("store", "nothing is stored");
  read_ends(from, model, limit, out);
  // Fields about the client, on which the text does not depend.
  from.without_effect({"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key",
                       "prompt_cache_retention", "cache_prompt"});
  return out;
}

/// Reads the tokens that a thought may have; -1: the number that there is room for.
void read_thought_tokens(const fields& from, completion_request& out) {
  std::optional<std::int64_t> found;
  for (const std::string_view each : {"thinking_budget", "reasoning_budget", "thinking_budget_tokens"})
    if (const auto wanted = from.integer(each, -1, UINT32_MAX)) {
      if (found && *found != *wanted) refuse_field(std::string(each), std::to_string(*found), std::to_string(*wanted));
      found = wanted;
    }
  if (found && *found != -1) out.shape.thought_tokens = static_cast<std::uint32_t>(*found);
}

}  // namespace

adapter_choice adapter_named(std::string_view name, const model_facts& model) {
  for (std::uint32_t i = 0; i < model.adapters.size(); ++i)
    if (model.adapters[i].first == name) return {i + 1, 1};
  return {0, 0};
}

adapter_choice read_adapters(const json& list, const std::string& name, const model_facts& model) {
  if (!list.is_array()) refuse_field(name, "an array of adapters", shown(list));
  adapter_choice out{0, 0};
  for (std::size_t i = 0; i < list.size(); ++i) {
    const fields each(list[i], index(name, i));
    const auto count = static_cast<std::uint32_t>(model.adapters.size());
    if (count == 0) refuse_field(name, "none: the server has no --lora-by-request", "an adapter");
    each.need("id", "an adapter's number");
    const std::uint32_t id = *each.natural("id", 0, count - 1);
    const float scale = each.number("scale", -1000, 1000).value_or(1);
    each.refuse_unknown(false);
    if (scale == 0) continue;
    if (out.number != 0) refuse_field(name, "one adapter with a scale other than 0", "another one");
    out = {id + 1, scale};
  }
  return out;
}

void require_model(const std::string& name, const model_facts& model) {
  if (!model.any_name && name != model.id && adapter_named(name, model).number == 0 &&
      std::find(model.aliases.begin(), model.aliases.end(), name) == model.aliases.end())
    throw api_error(404, "model: expected '" + model.id + "', found '" + printable(name, 60) + "'", "model",
                    "model_not_found");
}

completion_request read_chat_request(const json& body, const model_facts& model, const limits& limit) {
  const fields from(body, {});
  completion_request out = read_common(from, model, limit, true);
  out.talk.turns = read_messages(from.need("messages", "an array"), limit);
  read_tools(from, limit, out.talk);
  read_template_names(from, out.talk);
  read_thought_tokens(from, out);
  if (from.find("truncation") != nullptr) {
    const std::string wanted = from.text("truncation");
    if (wanted != "auto" && wanted != "disabled")
      refuse_field("truncation", "'auto' or 'disabled'", "'" + printable(wanted, 40) + "'");
    out.truncate = wanted == "auto";
  }
  const auto alternatives = from.natural("top_logprobs", 0, limit.top_logprobs);
  if (from.boolean("logprobs", false)) out.shape.logprobs = alternatives.value_or(0);
  else if (alternatives.value_or(0) != 0)
    refuse_field("top_logprobs", "logprobs: true beside it", std::to_string(*alternatives));
  from.refuse_unless_absent({"audio", "prediction", "web_search_options"}, "the server has no such part");
  if (const json* const modes = from.find("modalities"); modes != nullptr && *modes != json::array({"text"}))
    refuse_field("modalities", "['text']", shown(*modes), "unsupported_parameter");
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

completion_request read_completion_request(const json& body, const model_facts& model, const limits& limit) {
  const fields from(body, {});
  completion_request out = read_common(from, model, limit, false);
  out.prompts = read_prompts(from.need("prompt", "a string or token ids"), "prompt", limit.prompts, model);
  if (const auto alternatives = from.natural("logprobs", 0, limit.top_logprobs)) out.shape.logprobs = *alternatives;
  if (const auto best = from.natural("best_of", 1, limit.n); best && *best != out.n)
    refuse_field("best_of", "the same as n", std::to_string(*best));
  if (const json* const suffix = from.find("suffix"); suffix != nullptr && *suffix != "") {
    out.suffix = from.text("suffix");
    if (out.shift) refuse_field("context_shift", "false beside a suffix, whose start is marked", "true");
    if (out.prompts.size() != 1 || out.prompts[0].index() != 0)
      refuse_field("prompt", "one text beside a suffix", shown(from.need("prompt", "a string")));
  }
  out.parse_special = from.boolean("parse_special", true);
  out.echo = from.boolean("echo", false);
  if (out.echo && out.shape.logprobs)
    refuse_field("echo", "false beside logprobs: the prompt's are not computed", "true");
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

tokenize_request read_tokenize_request(const json& body, const limits& limit) {
  const fields from(body, {});
  tokenize_request out{from.text("content"), from.boolean("add_special", false), from.boolean("parse_special", false)};
  from.without_effect({"model"});  // it only chose the model
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

std::vector<std::int32_t> read_detokenize_request(const json& body, const model_facts& model, const limits& limit) {
  const fields from(body, {});
  const json& tokens = from.need("tokens", "an array of token ids");
  if (!tokens.is_array()) refuse_field("tokens", "an array of token ids", shown(tokens));
  from.without_effect({"model"});  // it only chose the model
  from.refuse_unknown(limit.ignore_unknown);
  return tokens.empty() ? std::vector<std::int32_t>{} : read_ids(tokens, "tokens", model.vocab_size);
}

embedding_request read_embedding_request(const json& body, const model_facts& model, const limits& limit) {
  const fields from(body, {});
  embedding_request out;
  out.input = read_prompts(from.need("input", "a string or token ids"), "input", limit.embedded_texts, model);
  for (std::size_t i = 0; i < out.input.size(); ++i)
    if (const auto* const text = std::get_if<std::string>(&out.input[i]); text != nullptr && text->empty())
      refuse_field(out.input.size() == 1 ? "input" : index("input", i), "a text", "an empty one");
  if (from.find("encoding_format") != nullptr) {
    const std::string format = from.text("encoding_format");
    if (format != "float" && format != "base64")
      refuse_field("encoding_format", "'float' or 'base64'", "'" + printable(format, 40) + "'");
    out.base64 = format == "base64";
  }
  out.dimensions = from.natural("dimensions", 1, model.hidden_size);
  from.without_effect({"model", "user"});
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

rerank_request read_rerank_request(const json& body, const limits& limit) {
  const fields from(body, {});
  rerank_request out{
      from.text("query"), {}, from.natural("top_n", 1, UINT32_MAX), from.boolean("return_documents", false)};
  const json& documents = from.need("documents", "an array of texts");
  if (!documents.is_array() || documents.empty() || documents.size() > limit.embedded_texts)
    refuse_field("documents", "an array of 1 .. " + std::to_string(limit.embedded_texts) + " texts", shown(documents));
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const json& each = documents[i];
    if (each.is_string()) out.documents.push_back(each.get<std::string>());
    else if (each.is_object()) {
      const fields document(each, index("documents", i));
      out.documents.push_back(document.text("text"));
      document.refuse_unknown(limit.ignore_unknown);
    } else refuse_field(index("documents", i), "a text", shown(each));
  }
  from.without_effect({"model", "user"});
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

infer_request read_infer_request(const json& body, const limits& limit) {
  const fields from(body, {});
  infer_request out{from.text("prompt"), from.natural("top", 1, 100).value_or(5),
                    from.find("mode") ? from.text("mode") : "dense", from.natural("features", 1, 1u << 24)};
  if (out.mode != "walk" && out.mode != "dense" && out.mode != "compare")
    refuse_field("mode", "'walk', 'dense' or 'compare'", "'" + printable(out.mode, 40) + "'");
  if (out.prompt.empty()) refuse_field("prompt", "a text", "an empty one");
  from.without_effect({"model"});  // it only chose the model
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

trace_request read_trace_request(const json& body, const limits& limit) {
  const fields from(body, {});
  trace_request out;
  out.top = from.natural("top", 1, 32).value_or(5);
  const bool chat = from.find("messages") != nullptr;
  if (chat) out.messages = read_messages(from.need("messages", "an array"), limit);
  out.text = from.text(chat ? "reply" : "prompt");
  from.without_effect({"model"});  // it only chose the model
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

}  // namespace intaglio::serve
