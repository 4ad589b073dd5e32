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

json model_entry(const listed_model& model) {
  json out{{"id", model.id},
           {"object", "model"},
           {"created", model.modified},
           {"owned_by", "intaglio"},
           {"status", {{"value", model.state}}}};
  if (model.loaded) out["context_length"] = model.loaded->facts.context;
  return out;
}

bool has_no_body(const http_request& head) {
  const std::string_view length = head.field("content-length");
  return (length.empty() || length == "0") && head.field("transfer-encoding").empty();
}

std::string fingerprint() {
  return "intaglio-" + std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
         std::to_string(version_patch);
}

}  // namespace

struct api::route {
  std::string_view method, path;
  http_reply (api::*handler)(const asked&);
  bool of_model = false;  ///< asks a model, which is loaded for it
  bool prefix = false;    ///< the path begins so
  bool empty = false;     ///< a POST may have no body, which stands for an object without members
};

const std::vector<api::route>& api::routes() {
  static const std::vector<route> list{
      {"GET", "/v1/models", &api::models},
      {"GET", "/v1/models/", &api::model, false, true},
      {"POST", "/v1/chat/completions", &api::completions, true},
      {"POST", "/v1/completions", &api::completions, true},
      {"POST", "/infill", &api::infill, true},
      {"POST", "/v1/messages", &api::messages, true},
      {"POST", "/v1/messages/count_tokens", &api::count_tokens, true},
      {"POST", "/v1/responses", &api::responses, true},
      {"GET", "/v1/responses/", &api::stored_response, false, true},
      {"DELETE", "/v1/responses/", &api::stored_response, false, true},
      {"POST", "/api/chat", &api::ollama_chat, true},
      {"POST", "/api/generate", &api::ollama_generate, true},
      {"GET", "/api/tags", &api::ollama_tags},
      {"GET", "/api/ps", &api::ollama_tags},
      {"POST", "/v1/embeddings", &api::embeddings, true},
      {"POST", "/api/embed", &api::ollama_embed, true},
      {"POST", "/api/embeddings", &api::ollama_embed, true},
      {"POST", "/v1/rerank", &api::rerank, true},
      {"POST", "/v1/reranking", &api::rerank, true},
      {"POST", "/rerank", &api::rerank, true},
      {"POST", "/reranking", &api::rerank, true},
      {"POST", "/api/show", &api::ollama_show},
      {"GET", "/api/version", &api::ollama_version},
      {"GET", "/props", &api::properties, true},
      {"POST", "/apply-template", &api::apply_template, true},
      {"GET", "/slots", &api::slot_list, true},
      {"POST", "/slots/", &api::slot_action, true, true, true},
      {"POST", "/v1/infer", &api::infer, true},
      {"POST", "/v1/trace", &api::trace, true},
      {"POST", "/tokenize", &api::tokenize, true},
      {"POST", "/detokenize", &api::detokenize, true},
      {"GET", "/health", &api::health},
      {"GET", "/metrics", &api::exposition},
      {"GET", "/plan", &api::plan, true},
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
  if (found.method != "POST" || (found.empty && has_no_body(head))) return;
  // Ollama asks for no type: its clients send none, and curl, with which its pages ask, that of a form. Pages of elsewhere
  // are refused by their Origin.
  const auto type = head.field("content-type");
  if (!type.empty() && media_type(type) != "application/json" && !head.path.starts_with("/api/"))
    throw api_error(415, "Content-Type: expected application/json, found another");
}

bool api::is_light(const http_request& head) const { return head.path == "/health" || head.path == "/metrics"; }

/// Waits until a request's model answers, and then has the request done.
class api::model_wait : public pending_reply {
 public:
  model_wait(api& of, const route& to, std::shared_ptr<asked> asked, std::shared_ptr<model_set::visit> visit)
      : api_(of), to_(to), asked_(std::move(asked)), visit_(std::move(visit)) {}
  bool streams() const override { return false; }
  std::string poll() override {
    if (!done()) try {
        asked_->model = visit_->look();
      } catch (const api_error& refusal) { refusal_ = refusal; }
    if (done()) visit_.reset();
    return {};
  }
  bool done() const override { return asked_->model != nullptr || refusal_; }
  http_reply reply() override {
    if (refusal_) throw *refusal_;
    return api_.run(to_, *asked_);
  }
  void cancel() override { visit_.reset(), asked_->model.reset(); }

 private:
  api& api_;
  const route& to_;
  std::shared_ptr<asked> asked_;
  std::shared_ptr<model_set::visit> visit_;
  std::optional<api_error> refusal_;
};

http_reply api::answer(const http_request& request, std::function<void()> wake) {
  if (request.method == "OPTIONS")
    return {.status = 204, .content_type = {}, .body = {}, .fields = {}, .pending = nullptr};
  const route& to = route_of(request);
  const auto of = std::make_shared<asked>(asked{request, std::move(wake)});
  if (to.method == "POST")
    of->body = to.empty && request.body.empty() ? json::object() : parse_json(request.body, options_.limit);
  if (!to.of_model) return run(to, *of);
  http_reply out;
  out.pending = std::make_shared<model_wait>(*this, to, of, models_.ask(model_named(*of)));
  out.pending->poll();
  return out.pending->done() ? out.pending->reply() : out;
}

http_reply api::run(const route& to, const asked& of) {
  try {
    return (this->*to.handler)(of);
  } catch (const argument_error& error) {  // the library's own ranges
    throw api_error(400, error.what(), error.argument());
  }
}

/// In the body of a POST, or behind ?model=.
std::optional<std::string> api::model_named(const asked& of) const {
  if (of.request.method == "POST") {
    const fields from(of.body, {});
    if (from.find("model") == nullptr) return {};
    return of.request.path.starts_with("/api/") ? without_tag(from.text("model")) : from.text("model");
  }
  return query_value(of.request.query, "model");
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

std::vector<listed_model> api::listed() {
  std::vector<listed_model> out = models_.list();
  if (models_.only() != nullptr && !out[0].loaded) throw api_error(503, "the model is being loaded", {}, "loading", 1);
  return out;
}

listed_model api::listed(const std::string& name) {
  std::vector<listed_model> all = listed();
  if (models_.only() != nullptr) require_model(name, all[0].loaded->facts);
  for (listed_model& each : all)
    if (each.id == name || models_.only() != nullptr) return std::move(each);
  models_.ask(name);  // says which there are
  return std::move(all[0]);
}

http_reply api::models(const asked&) {
  json all = json::array();
  for (const listed_model& each : listed()) all.push_back(model_entry(each));
  return json_reply({{"object", "list"}, {"data", std::move(all)}});
}

http_reply api::model(const asked& of) {
  return json_reply(model_entry(listed(of.request.path.substr(std::string_view("/v1/models/").size()))));
}

std::uint32_t api::most_of_prompt(const model_facts& model) const {
  const std::uint32_t limit = options_.limit.prompt_tokens;
  return limit != 0 ? std::min(limit, model.context - 1) : model.context - 1;
}

std::vector<std::int32_t> api::checked_prompt(const model_facts& model, std::vector<std::int32_t> ids,
                                              const std::string& field) const {
  const std::uint32_t most = most_of_prompt(model);
  if (ids.empty()) throw api_error(400, field + ": expected at least one token, found none", field);
  if (ids.size() > most)
    throw api_error(400,
                    // Clients that cut and ask again look for these words of OpenAI's.
                    field + ": expected at most " + std::to_string(most) +
                        " tokens (this model's maximum context length is " + std::to_string(model.context) +
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

http_reply api::completions(const asked& of) {
  const model_facts& model = of.facts();
  const json& body = of.body;
  const bool chat = of.request.path == "/v1/chat/completions";
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
                                                : as_utf8(of.words().tokens.decode(
                                                      std::get<1>(each), {.skip_control = false, .text_start = true})));
  http_reply out;
  out.pending = std::make_shared<completion_reply>(std::move(identity), begin(of, wanted), counts_);
  return out;
}

language::prompt api::chat_prompt(const asked& of, completion_request& wanted, std::uint32_t& left_out) const {
  const language& words = of.words();
  if (wanted.truncate) {
    // Room for what is asked for, at most half of the context; a quarter where nothing is said.
    const std::uint32_t context = of.facts().context,
                        room = std::min(wanted.max_tokens.value_or(context / 4), context / 2),
                        most = std::min(most_of_prompt(of.facts()), context - room);
    conversation part = wanted.talk;
    left_out = static_cast<std::uint32_t>(leave_out_oldest(wanted.talk.turns, [&](const std::vector<turn>& turns) {
      part.turns = turns;
      return words.encode(part).ids.size() <= most;
    }));
  }
  return words.encode(wanted.talk);
}

std::vector<std::vector<std::int32_t>> api::prompts_of(const asked& of, completion_request& wanted,
                                                       std::uint32_t& left_out) const {
  const language& language = of.words();
  std::vector<std::vector<std::int32_t>> out;
  if (wanted.chat) {
    wanted.talk.names = language.names_of(wanted.talk, options_.limit.ignore_unknown);
    language::prompt prompt = chat_prompt(of, wanted, left_out);
    plan_reply(wanted, language.layout, prompt.in_thought);
    out.push_back(checked_prompt(of.facts(), std::move(prompt.ids), "messages"));
  }
  if (wanted.suffix) {
    out.push_back(checked_prompt(
        of.facts(), language.encode_gap(std::get<0>(wanted.prompts[0]), *wanted.suffix, "suffix"), "prompt"));
    return out;
  }
  const auto markup = wanted.parse_special ? io::prompt_markup::read : io::prompt_markup::plain;
  for (const prompt_input& each : wanted.prompts)
    out.push_back(checked_prompt(
        of.facts(), each.index() == 0 ? language.encode(std::get<0>(each), markup) : std::get<1>(each), "prompt"));
  return out;
}

std::vector<std::shared_ptr<generation>> api::begin(const asked& of, completion_request& wanted) {
  const model_facts& model = of.facts();
  const language& language = of.words();
  std::uint32_t left_out = 0;
  const std::vector<std::vector<std::int32_t>> prompts = prompts_of(of, wanted, left_out);
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
        list.push_back(std::make_shared<generation>(language.view, prompt, wanted, seed + i, most, of.wake));
        list.back()->model = of.model;
        list.back()->left_out = left_out;
      } catch (const match_limit& limit) {
        throw api_error(400, of_form + ": " + limit.what() + ": expected a simpler schema", of_form,
                        "unsupported_schema");
      }
  }
  runtime::validate(wanted.sampling, model.vocab_size, model.context);
  of.model->engine.submit(list);
  return list;
}

http_reply api::properties(const asked& of) {
  const language& words = of.words();
  const auto text = [&](const std::optional<std::int32_t>& id) {
    return id ? as_utf8(words.tokens.piece(*id)) : std::string();
  };
  return json_reply({{"default_generation_settings", {{"n_ctx", of.facts().context}}},
                     {"total_slots", of.model->engine.gauges().slot_count.load()},
                     {"model_alias", of.facts().id},
                     {"chat_template", words.file.chat_template.value_or("")},
                     {"tool_calls", words.layout.calls->name},
                     {"thinks", words.layout.thinks()},
                     {"bos_token", text(words.tokens.bos())},
                     {"eos_token", text(words.tokens.eos())},
                     {"modalities", {{"vision", false}, {"audio", false}}},
                     {"build_info", fingerprint()}});
}

http_reply api::apply_template(const asked& of) {
  completion_request wanted = read_chat_request(of.body, of.facts(), options_.limit);
  wanted.talk.names = of.words().names_of(wanted.talk, options_.limit.ignore_unknown);
  std::uint32_t left_out = 0;
  return json_reply({{"prompt", chat_prompt(of, wanted, left_out).text}});
}

http_reply api::tokenize(const asked& of) {
  const tokenize_request wanted = read_tokenize_request(of.body, options_.limit);
  const io::tokenizer& tokens = of.words().tokens;
  const auto ids = tokens.encode(
      wanted.content, {.parse_special = wanted.parse_special, .add_bos = wanted.add_special && tokens.adds_bos()});
  return json_reply({{"tokens", ids}, {"count", ids.size()}});
}

http_reply api::detokenize(const asked& of) {
  const auto ids = read_detokenize_request(of.body, of.facts(), options_.limit);
  const std::string bytes = of.words().tokens.decode(ids, {.skip_control = false, .text_start = true});
  std::string text;
  io::append_replacing_invalid(text, bytes);
  return json_reply({{"content", text}});
}

http_reply api::health(const asked&) {
  const token_engine* const only = models_.only();
  // Models of a folder come and go: their server is well while it answers.
  const engine_status now = only != nullptr ? only->status() : engine_status{engine_state::ready, 1, {}};
  constexpr std::array<const char*, 4> names{"loading", "ok", "recovering", "failed"};
  json out{{"status", names[static_cast<std::size_t>(now.state)]}};
  if (now.state == engine_state::loading) out["progress"] = now.loaded;
  if (!now.what.empty()) out["detail"] = now.what;
  std::uint64_t queue = 0, running = 0;
  const auto add = [&](const token_engine& of, json& to) {
    const engine_gauges& gauges = of.gauges();
    queue += gauges.waiting, running += gauges.running;
    to["context"] = of.facts()->context;
    to["device"] = of.device();
    to["slots"] = gauges.slot_count.load();
    to["kv_page_positions"] = gauges.page_size.load();
    to["kv_pages"] = gauges.pages.load();
    to["kv_pages_free"] = gauges.free_pages.load();
  };
  if (only == nullptr) {
    out["models"] = json::array();
    for (const listed_model& each : models_.list()) {
      json next{{"model", each.id}, {"status", each.state}};
      if (!each.what.empty()) next["detail"] = each.what;
      if (each.loaded) add(each.loaded->engine, next);
      out["models"].push_back(std::move(next));
    }
    const auto [taken, most] = models_.memory();
    out["memory_bytes"] = taken;
    if (most != 0) out["memory_limit_bytes"] = most;
  } else if (const model_facts* model = only->facts()) {
    out["model"] = model->id;
    add(*only, out);
  }
  out["walk"] = options_.walks != nullptr && options_.walks->ready();
  out["queue"] = queue;
  out["running"] = running;
  http_reply reply = json_reply(out);
  reply.fields.emplace_back("Cache-Control", "no-store");
  if (now.state != engine_state::ready) {
    reply.status = 503;
    reply.fields.emplace_back("Retry-After", "1");
  }
  return reply;
}

http_reply api::exposition(const asked&) {
  const std::vector<listed_model> all = models_.list();
  std::vector<labelled_gauges> engines;
  if (const token_engine* const only = models_.only()) engines.push_back({{}, &only->gauges()});
  else
    for (const listed_model& each : all)
      if (each.loaded) engines.push_back({each.id, &each.loaded->engine.gauges()});
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = counts_.text(engines),
          .fields = {},
          .pending = nullptr};
}

http_reply api::plan(const asked& of) {
  return {.content_type = "text/html; charset=utf-8",
          .body = of.model->engine.plan_page(),
          .fields = {},
          .pending = nullptr};
}

http_reply api::page(const asked& of) {
  for (const page_file& each : options_.pages)
    if (each.path == of.request.path) {
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
