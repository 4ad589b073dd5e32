// SPDX-License-Identifier: MIT
#include "api.hpp"

#include <intaglio/core/error.hpp>

#include <algorithm>

#include "api_error.hpp"
#include "query.hpp"
#include "request.hpp"
#include "uri.hpp"

namespace intaglio::serve {
namespace {

json model_entry(const listed_model& model) {
  json out{{"id", model.id},
           {"object", "model"},
           {"created", model.modified},
           {"owned_by", "intaglio"},
           {"status", {{"value", model.state}}}};
  if (model.loaded) out["context_length"] = model.loaded->facts.context;
  return out;
}

/// An adapter's entry in a list of models, in vLLM's form.
json adapter_entry(const listed_model& model, const std::string& name) {
  json out = model_entry(model);
  out["id"] = name, out["parent"] = model.id;
  return out;
}

bool has_no_body(const http_request& head) {
  const std::string_view length = head.field("content-length");
  return (length.empty() || length == "0") && head.field("transfer-encoding").empty();
}

}  // namespace

struct api::route {
  std::string_view method, path;
  http_reply (api::*handler)(const asked&);
  bool of_model = false;                       ///< asks a model, which is loaded for it
  bool prefix = false;                         ///< the path begins so
  bool empty = false;                          ///< a POST may have no body, which stands for an object without members
  bool plain = false;                          ///< computes with the model, and with no adapter of it
  std::string_view type = "application/json";  ///< of a POST's body
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
      {"POST", "/v1/embeddings", &api::embeddings, true, false, false, true},
      {"POST", "/api/embed", &api::ollama_embed, true, false, false, true},
      {"POST", "/api/embeddings", &api::ollama_embed, true, false, false, true},
      {"POST", "/v1/rerank", &api::rerank, true, false, false, true},
      {"POST", "/v1/reranking", &api::rerank, true, false, false, true},
      {"POST", "/rerank", &api::rerank, true, false, false, true},
      {"POST", "/reranking", &api::rerank, true, false, false, true},
      {"POST", "/api/show", &api::ollama_show},
      {"GET", "/api/version", &api::ollama_version},
      {"GET", "/props", &api::properties, true},
      {"GET", "/lora-adapters", &api::adapters, true},
      {"POST", "/lora-adapters", &api::set_adapters, true},
      {"POST", "/apply-template", &api::apply_template, true},
      {"GET", "/slots", &api::slot_list, true},
      {"POST", "/slots/", &api::slot_action, true, true, true},
      {"POST", "/v1/infer", &api::infer, true, false, false, true},
      {"POST", "/v1/trace", &api::trace, true, false, false, true},
      {"POST", "/tokenize", &api::tokenize, true},
      {"POST", "/detokenize", &api::detokenize, true},
      {"POST", "/pdf-text", &api::pdf_text, false, false, false, false, "application/pdf"},
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
  if (const route* found = look(pages, is_page(head))) return *found;
  if (other == nullptr) throw api_error(404, "there is no such path here", {}, "unknown_path");
  api_error refusal(405, "method: expected " + std::string(other->method) + " for this path, found another", {},
                    "method_not_allowed");
  refusal.allow = other->method;
  throw refusal;
}

bool api::is_page(const http_request& head) const {
  return std::any_of(options_.pages.begin(), options_.pages.end(),
                     [&](const page_file& each) { return each.path == head.path; });
}

void api::admit(const http_request& head) {
  // The page's files are the program's, and hold no secret: the page asks for the key itself.
  require_access(options_.access, head, head.path != "/health" && !is_page(head));
  if (head.method == "OPTIONS" && !cors_fields(options_.access, head).empty()) return;
  const route& found = route_of(head);
  // Browsers and other pages put what they like after the address of a file.
  if (!options_.limit.ignore_unknown && !is_page(head)) require_known_query(head, found.path);
  if (found.method != "POST" || (found.empty && has_no_body(head))) return;
  // Ollama asks for no type: its clients send none, and curl, with which its pages ask, that of a form. Pages of
  // elsewhere are refused by their Origin.
  const auto type = head.field("content-type");
  if (!type.empty() && media_type(type) != found.type && !head.path.starts_with("/api/"))
    throw api_error(415, "Content-Type: expected " + std::string(found.type) + ", found another");
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
  if (to.method == "POST" && to.type == "application/json")
    of->body = to.empty && request.body.empty() ? json::object() : parse_json(request.body, options_.limit);
  if (!to.of_model) return run(to, *of);
  http_reply out;
  out.pending = std::make_shared<model_wait>(*this, to, of, models_.ask(model_named(*of)));
  out.pending->poll();
  return out.pending->done() ? out.pending->reply() : out;
}

http_reply api::run(const route& to, const asked& of) {
  if (const auto name = to.plain ? model_named(of) : std::nullopt; name && adapter_named(*name, of.facts()).number != 0)
    throw api_error(400, "model: expected the model itself, found an adapter, which this path does not compute with",
                    "model", "unsupported_model");
  try {
    return (this->*to.handler)(of);
  } catch (const argument_error& error) {  // the library's own ranges
    throw api_error(400, error.what(), error.argument());
  }
}

/// The model's name in the body of a POST, or in ?model= of other requests and of lists.
std::optional<std::string> api::model_named(const asked& of) const {
  if (of.request.method == "POST" && !(of.body.is_array() && of.request.path == "/lora-adapters")) {
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
  if (error.status == 401) out.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"intaglio\"");
  return out;
}

std::vector<std::pair<std::string, std::string>> api::common_fields(const http_request& head) {
  auto out = cors_fields(options_.access, head);
  out.emplace_back("X-Content-Type-Options", "nosniff");
  if (!head.id.empty()) out.emplace_back("X-Request-Id", head.id);
  return out;
}

void api::answered(const http_request& request, int status, double seconds) {
  bool known = is_page(request);
  for (const route& each : routes()) known = known || request.path == each.path;
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
  for (const listed_model& each : listed()) {
    all.push_back(model_entry(each));
    if (!each.loaded) continue;
    for (const auto& [name, file] : each.loaded->facts.adapters) all.push_back(adapter_entry(each, name));
  }
  return json_reply({{"object", "list"}, {"data", std::move(all)}});
}

http_reply api::model(const asked& of) {
  const std::string name = of.request.path.substr(std::string_view("/v1/models/").size());
  const listed_model found = listed(name);
  return json_reply(found.loaded && adapter_named(name, found.loaded->facts).number != 0 ? adapter_entry(found, name)
                                                                                         : model_entry(found));
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
