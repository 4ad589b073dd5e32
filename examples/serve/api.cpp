// SPDX-License-Identifier: MIT
#include "api.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/core/version.hpp>
#include <intaglio/io/unicode.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <random>

#include "api_error.hpp"
#include "completion_reply.hpp"
#include "later_reply.hpp"
#include "request.hpp"
#include "uri.hpp"

namespace intaglio::serve {
namespace {

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

json model_entry(const model_facts& model) {
  return {{"id", model.id},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "intaglio"},
          {"context_length", model.context}};
}

std::string fingerprint() {
  return "intaglio-" + std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
         std::to_string(version_patch);
}

}  // namespace

struct api::route {
  std::string_view method, path;
  http_reply (api::*handler)(const http_request&, std::function<void()>);
  bool prefix = false;  ///< the path begins so
};

const std::vector<api::route>& api::routes() {
  static const std::vector<route> list{
      {"GET", "/v1/models", &api::models},
      {"GET", "/v1/models/", &api::model, true},
      {"POST", "/v1/chat/completions", &api::completions},
      {"POST", "/v1/completions", &api::completions},
      {"POST", "/v1/messages", &api::messages},
      {"POST", "/v1/messages/count_tokens", &api::count_tokens},
      {"POST", "/v1/responses", &api::responses},
      {"GET", "/v1/responses/", &api::stored_response, true},
      {"DELETE", "/v1/responses/", &api::stored_response, true},
      {"POST", "/api/chat", &api::ollama_chat},
      {"POST", "/api/generate", &api::ollama_generate},
      {"GET", "/api/tags", &api::ollama_tags},
      {"GET", "/api/ps", &api::ollama_tags},
      {"POST", "/api/show", &api::ollama_show},
      {"GET", "/api/version", &api::ollama_version},
      {"GET", "/props", &api::properties},
      {"POST", "/apply-template", &api::apply_template},
      {"POST", "/v1/infer", &api::infer},
      {"POST", "/v1/trace", &api::trace},
      {"POST", "/tokenize", &api::tokenize},
      {"POST", "/detokenize", &api::detokenize},
      {"GET", "/health", &api::health},
      {"GET", "/metrics", &api::exposition},
      {"GET", "/plan", &api::plan},
  };
  return list;
}

const api::route& api::route_of(const http_request& head) const {
  static const route pages{"GET", "", &api::page};
  const std::string_view method = head.method == "HEAD" ? std::string_view("GET") : std::string_view(head.method);
  const route* other = nullptr;
  const auto look = [&](const route& each, bool same_path) -> const route* {
    if (!same_path) return nullptr;
    if (each.method == method) return &each;
    other = &each;
    return nullptr;
  };
  for (const route& each : routes())
    if (const route* found = look(each, each.prefix ? head.path.starts_with(each.path) : head.path == each.path))
      return *found;
  for (const page_file& each : options_.pages)
    if (const route* found = look(pages, head.path == each.path)) return *found;
  if (other == nullptr) throw api_error(404, "there is no such path here", {}, "unknown_path");
  api_error refusal(405, "method: expected " + std::string(other->method) + " for this path, found another", {},
                    "method_not_allowed");
  refusal.allow = other->method;
  throw refusal;
}

void api::admit(const http_request& head) {
  require_access(options_.access, head, head.path != "/health");
  if (head.method == "OPTIONS" && !cors_fields(options_.access, head).empty()) return;
  const route& found = route_of(head);
  if (found.method != "POST") return;
  if (media_type(head.field("content-type")) != "application/json")
    throw api_error(415, "Content-Type: expected application/json, found another");
}

bool api::is_light(const http_request& head) const { return head.path == "/health" || head.path == "/metrics"; }

http_reply api::answer(const http_request& request, std::function<void()> wake) {
  if (request.method == "OPTIONS")
    return {.status = 204, .content_type = {}, .body = {}, .fields = {}, .pending = nullptr};
  try {
    return (this->*route_of(request).handler)(request, std::move(wake));
  } catch (const argument_error& error) {  // the library's own ranges
    throw api_error(400, error.what(), error.argument());
  }
}

http_reply api::error_reply(const api_error& error, const http_request& head) {
  http_reply out = json_reply(head.path.starts_with("/v1/messages") ? messages_error(error)
                              : head.path.starts_with("/api/")      ? json{{"error", error.what()}}
                                                                    : error_body(error));
  out.status = error.status;
  if (error.retry_after) out.fields.emplace_back("Retry-After", std::to_string(*error.retry_after));
  if (!error.allow.empty()) out.fields.emplace_back("Allow", error.allow);
  if (error.status == 401) out.fields.emplace_back("WWW-Authenticate", "Basic realm=\"intaglio\", charset=\"UTF-8\"");
  return out;
}

std::vector<std::pair<std::string, std::string>> api::common_fields(const http_request& head) {
  auto out = cors_fields(options_.access, head);
  out.emplace_back("X-Content-Type-Options", "nosniff");
  if (!head.id.empty()) out.emplace_back("X-Request-Id", head.id);
  return out;
}

void api::answered(const http_request& request, int status, double seconds) {
  bool known = false;
  for (const route& each : routes()) known = known || request.path == each.path;
  for (const page_file& each : options_.pages) known = known || request.path == each.path;
  counts_.request(known ? request.path : "other", status, seconds);
  if (options_.log) options_.log(request, status, seconds);
}

const model_facts& api::facts() const {
  if (const model_facts* found = engine_.facts()) return *found;
  throw api_error(503, "the model is being loaded", {}, "loading", 1);
}
const language& api::words() const {
  if (const language* found = engine_.words()) return *found;
  throw api_error(503, "the model is being loaded", {}, "loading", 1);
}

http_reply api::models(const http_request&, std::function<void()>) {
  return json_reply({{"object", "list"}, {"data", json::array({model_entry(facts())})}});
}

http_reply api::model(const http_request& request, std::function<void()>) {
  const std::string name = request.path.substr(std::string_view("/v1/models/").size());
  require_model(name, facts());
  return json_reply(model_entry(facts()));
}

std::vector<std::int32_t> api::checked_prompt(std::vector<std::int32_t> ids, const std::string& field) const {
  const std::uint32_t most = options_.limit.prompt_tokens != 0
                                 ? std::min(options_.limit.prompt_tokens, facts().context - 1)
                                 : facts().context - 1;
  if (ids.empty()) throw api_error(400, field + ": expected at least one token, found none", field);
  if (ids.size() > most)
    throw api_error(400,
                    // Clients that cut and ask again look for these words of OpenAI's.
                    field + ": expected at most " + std::to_string(most) +
                        " tokens (this model's maximum context length is " + std::to_string(facts().context) +
                        " tokens), found " + std::to_string(ids.size()),
                    field, "context_length_exceeded");
  return ids;
}

/// How the reply is taken apart, and the grammar of all of it, where calls or thoughts are to be minded.
void api::plan_reply(completion_request& of, const reply_layout& layout, bool in_thought) {
  const conversation& talk = of.talk;
  of.reading = reply_reading{layout, in_thought, talk.use != tool_use::none};
  if (of.shape.min_tokens != 0 && !talk.tools.empty())
    throw api_error(400, "min_tokens: expected nothing beside tools (nor ignore_eos), found a number of tokens",
                    "min_tokens", "unsupported_parameter");
  if (of.shape.thought_tokens && !layout.thinks())
    throw api_error(400, "thinking_budget: expected nothing: the model does not think aloud, found a limit",
                    "thinking_budget", "unsupported_parameter");
  if (talk.tools.empty() && !(of.shape.form && layout.thinks())) return;
  if (talk.use == tool_use::none && !of.shape.form && layout.begin.empty()) return;
  if (talk.use == tool_use::optional && of.shape.form && layout.begin.empty() && !layout.in_channels())
    throw api_error(400,
                    "response_format: expected nothing beside tools, or tool_choice 'none' or 'required': this model's "
                    "calls are JSON without a mark, found a form",
                    "response_format", "unsupported_parameter");
  reply_plan plan{in_thought, talk.use, talk.tools, talk.several, {}};
  if (talk.use != tool_use::required) plan.form = of.form_rule;
  of.shape.form = std::make_shared<const grammar>(reply_grammar(layout, plan));
  if (talk.use != tool_use::none) of.shape.form_field = "tools";
}

http_reply api::completions(const http_request& request, std::function<void()> wake) {
  const model_facts& model = facts();
  const json body = parse_json(request.body, options_.limit);
  const bool chat = request.path == "/v1/chat/completions";
  completion_request wanted =
      chat ? read_chat_request(body, model, options_.limit) : read_completion_request(body, model, options_.limit);
  completion_identity identity{random_name(chat ? "chatcmpl-" : "cmpl-"),
                               model.id,
                               fingerprint(),
                               unix_time(),
                               chat,
                               wanted.stream,
                               wanted.include_usage,
                               wanted.usage_so_far,
                               wanted.shape.logprobs.has_value(),
                               chat ? 1 : static_cast<std::uint32_t>(wanted.prompts.size()),
                               {}};
  for (const prompt_input& each : wanted.prompts)
    if (wanted.echo)
      identity.echo.push_back(each.index() == 0 ? std::get<0>(each)
                                                : as_utf8(words().tokens.decode(
                                                      std::get<1>(each), {.skip_control = false, .text_start = true})));
  http_reply out;
  out.pending = std::make_shared<completion_reply>(std::move(identity), begin(wanted, wake), counts_);
  return out;
}

std::vector<std::vector<std::int32_t>> api::prompts_of(completion_request& wanted) const {
  const language& language = words();
  std::vector<std::vector<std::int32_t>> out;
  if (wanted.chat) {
    wanted.talk.names = language.names_of(wanted.talk, options_.limit.ignore_unknown);
    language::prompt prompt = language.encode(wanted.talk);
    plan_reply(wanted, language.layout, prompt.in_thought);
    out.push_back(checked_prompt(std::move(prompt.ids), "messages"));
  }
  const auto markup = wanted.parse_special ? io::prompt_markup::read : io::prompt_markup::plain;
  for (const prompt_input& each : wanted.prompts)
    out.push_back(
        checked_prompt(each.index() == 0 ? language.encode(std::get<0>(each), markup) : std::get<1>(each), "prompt"));
  return out;
}

std::vector<std::shared_ptr<generation>> api::begin(completion_request& wanted, const std::function<void()>& wake) {
  const model_facts& model = facts();
  const language& language = words();
  const std::vector<std::vector<std::int32_t>> prompts = prompts_of(wanted);
  const std::string& of_form = wanted.shape.form_field;
  if (wanted.shape.form) {
    if ((wanted.shape.form->literal_bytes() & ~language.view.bytes.single()).any() ||
        (bytes_between(0x20, 0x7E) & ~language.view.bytes.single()).any())
      throw api_error(400, of_form + ": the model has no tokens for single bytes, so no form can be promised", of_form,
                      "unsupported_schema");
  }
  std::vector<std::shared_ptr<generation>> list;
  const std::uint64_t seed =
      wanted.seeded ? wanted.sampling.seed : (std::uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  for (const auto& prompt : prompts) {
    const std::uint32_t room = model.context - static_cast<std::uint32_t>(prompt.size()),
                        most = std::min(wanted.max_tokens.value_or(room), room);
    if (wanted.shape.form && wanted.shape.form->least_bytes() > most)
      throw api_error(400,
                      of_form + ": the shortest text has " + std::to_string(wanted.shape.form->least_bytes()) +
                          " bytes, and only " + std::to_string(most) + " tokens are allowed or left",
                      wanted.max_tokens ? "max_tokens" : of_form);
    for (std::uint32_t i = 0; i < wanted.n; ++i) try {
        list.push_back(std::make_shared<generation>(language.view, prompt, wanted, seed + i, most, wake));
      } catch (const match_limit& limit) {
        throw api_error(400, of_form + ": " + limit.what() + ": expected a simpler schema", of_form,
                        "unsupported_schema");
      }
  }
  runtime::validate(wanted.sampling, model.vocab_size, model.context);
  engine_.submit(list);
  return list;
}

http_reply api::properties(const http_request&, std::function<void()>) {
  const language& of = words();
  const auto text = [&](const std::optional<std::int32_t>& id) {
    return id ? as_utf8(of.tokens.piece(*id)) : std::string();
  };
  return json_reply({{"default_generation_settings", {{"n_ctx", facts().context}}},
                     {"total_slots", counts_.slot_count.load()},
                     {"model_alias", facts().id},
                     {"chat_template", of.file.chat_template.value_or("")},
                     {"tool_calls", of.layout.calls->name},
                     {"thinks", of.layout.thinks()},
                     {"bos_token", text(of.tokens.bos())},
                     {"eos_token", text(of.tokens.eos())},
                     {"modalities", {{"vision", false}, {"audio", false}}},
                     {"build_info", fingerprint()}});
}

http_reply api::apply_template(const http_request& request, std::function<void()>) {
  completion_request wanted = read_chat_request(parse_json(request.body, options_.limit), facts(), options_.limit);
  wanted.talk.names = words().names_of(wanted.talk, options_.limit.ignore_unknown);
  return json_reply({{"prompt", words().encode(wanted.talk).text}});
}

http_reply api::tokenize(const http_request& request, std::function<void()>) {
  const tokenize_request wanted = read_tokenize_request(parse_json(request.body, options_.limit), options_.limit);
  const io::tokenizer& tokens = words().tokens;
  const auto ids = tokens.encode(
      wanted.content, {.parse_special = wanted.parse_special, .add_bos = wanted.add_special && tokens.adds_bos()});
  return json_reply({{"tokens", ids}, {"count", ids.size()}});
}

http_reply api::detokenize(const http_request& request, std::function<void()>) {
  const auto ids = read_detokenize_request(parse_json(request.body, options_.limit), facts(), options_.limit);
  const std::string bytes = words().tokens.decode(ids, {.skip_control = false, .text_start = true});
  std::string text;
  io::append_replacing_invalid(text, bytes);
  return json_reply({{"content", text}});
}

http_reply api::health(const http_request&, std::function<void()>) {
  const engine_status now = engine_.status();
  constexpr std::array<const char*, 4> names{"loading", "ok", "recovering", "failed"};
  json out{{"status", names[static_cast<std::size_t>(now.state)]}};
  if (now.state == engine_state::loading) out["progress"] = now.loaded;
  if (!now.what.empty()) out["detail"] = now.what;
  if (const model_facts* model = engine_.facts()) {
    out["model"] = model->id;
    out["context"] = model->context;
    out["device"] = engine_.device();
    out["slots"] = counts_.slot_count.load();
    out["kv_page_positions"] = counts_.page_size.load();
    out["kv_pages"] = counts_.pages.load();
    out["walk"] = options_.walks != nullptr && options_.walks->ready();
    out["kv_pages_free"] = counts_.free_pages.load();
  }
  out["queue"] = counts_.waiting.load();
  out["running"] = counts_.running.load();
  http_reply reply = json_reply(out);
  reply.fields.emplace_back("Cache-Control", "no-store");
  if (now.state != engine_state::ready) {
    reply.status = 503;
    reply.fields.emplace_back("Retry-After", "1");
  }
  return reply;
}

http_reply api::exposition(const http_request&, std::function<void()>) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = counts_.text(),
          .fields = {},
          .pending = nullptr};
}

http_reply api::plan(const http_request&, std::function<void()>) {
  facts();
  return {.content_type = "text/html; charset=utf-8", .body = engine_.plan_page(), .fields = {}, .pending = nullptr};
}

http_reply api::page(const http_request& request, std::function<void()>) {
  for (const page_file& each : options_.pages)
    if (each.path == request.path) {
      http_reply out{.content_type = std::string(each.content_type),
                     .body = std::string(each.content),
                     .fields = {},
                     .pending = nullptr};
      out.fields.emplace_back("Cache-Control", "no-cache");
      // Nothing from elsewhere, and in no frame.
      out.fields.emplace_back("Content-Security-Policy",
                              "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' "
                              "data:; connect-src 'self'; frame-src 'self'; "
                              "base-uri 'none'; form-action 'none'; frame-ancestors 'self'");
      out.fields.emplace_back("Referrer-Policy", "no-referrer");
      return out;
    }
  throw api_error(404, "there is no such path here", {}, "unknown_path");
}

}  // namespace intaglio::serve
