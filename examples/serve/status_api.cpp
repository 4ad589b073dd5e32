// SPDX-License-Identifier: MIT
// /health, /metrics, /props, /lora-adapters and /plan: how the server and its models are.
#include "api.hpp"

#include <array>

#include "api_error.hpp"
#include "other_apis.hpp"
#include "request.hpp"

namespace intaglio::serve {

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

/// Adapters as llama.cpp's server lists them. Scales apply to requests that choose none.
http_reply api::adapters(const asked& of) {
  const adapter_choice chosen = of.model->engine.default_adapter();
  json out = json::array();
  for (const auto& [name, file] : of.facts().adapters) {
    const bool adds = out.size() + 1 == chosen.number;
    out.push_back(
        {{"id", out.size()}, {"name", name}, {"path", file}, {"scale", adds ? as_double(chosen.scale) : 0.0}});
  }
  return json_reply(std::move(out));
}

/// A list as requests have it in `lora`, for those that follow and choose none.
http_reply api::set_adapters(const asked& of) {
  of.model->engine.default_adapter() = read_adapters(of.body, "body", of.facts());
  return json_reply({{"success", true}});
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
  out["pdf_bytes"] = pdfs_.there() ? options_.limit.body_bytes : 0;
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

}  // namespace intaglio::serve
