// SPDX-License-Identifier: MIT
// Ollama's API, as its own clients use it: https://github.com/ollama/ollama/blob/main/docs/api.md
#include <intaglio/core/version.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "api.hpp"
#include "other_apis.hpp"
#include "request.hpp"

namespace intaglio::serve {
namespace {

using nanoseconds = std::chrono::nanoseconds;

/// What both of its bodies have: model, format, options, think, stream.
void take_common(const fields& from, bool ignore, json& out) {
  if (from.find("model") != nullptr) out["model"] = without_tag(from.text("model"));
  take_members(from, out, {{"format", "format"}});
  out["stream"] = from.boolean("stream", true);
  out["temperature"] = 0.8;  // what Ollama has where nothing is said
  if (const json* const think = from.find("think")) {
    if (think->is_boolean()) out["enable_thinking"] = *think;
    else if (think->is_string()) out["reasoning_effort"] = *think;
    else refuse_field("think", "true, false, 'low', 'medium' or 'high'", shown(*think));
  }
  if (from.boolean("truncate", false)) out["truncation"] = "auto";
  if (from.boolean("shift", false)) out["context_shift"] = true;
  from.without_effect({"keep_alive"});
  const json* const options = from.find("options");
  if (options == nullptr) return;
  const fields inside(*options, "options");
  take_members(inside, out,
               {{"temperature", "temperature"},
                {"top_k", "top_k"},
                {"top_p", "top_p"},
                {"min_p", "min_p"},
                {"seed", "seed"},
                {"stop", "stop"},
                {"repeat_penalty", "repeat_penalty"},
                {"repeat_last_n", "repeat_last_n"},
                {"presence_penalty", "presence_penalty"},
                {"frequency_penalty", "frequency_penalty"}});
  if (const auto most = inside.integer("num_predict", -2, UINT32_MAX))
    out["max_tokens"] = std::max<std::int64_t>(*most, -1);
  if (const auto keep = inside.integer("num_keep", -1, INT32_MAX); keep && out.contains("context_shift"))
    out["n_keep"] = *keep;
  // Options of how the model is loaded, which the server's own options decide.
  inside.without_effect({"num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "low_vram", "numa",
                         "use_mlock", "vocab_only"});
  inside.refuse_unknown(ignore);
}

/// Fields of both, in Ollama's words and in those of /v1/chat/completions.
constexpr std::array<field_names, 16> names_of_both{{{"options.temperature", "temperature"},
                                                     {"options.top_k", "top_k"},
                                                     {"options.top_p", "top_p"},
                                                     {"options.min_p", "min_p"},
                                                     {"options.seed", "seed"},
                                                     {"options.stop", "stop"},
                                                     {"options.repeat_penalty", "repeat_penalty"},
                                                     {"options.repeat_last_n", "repeat_last_n"},
                                                     {"options.presence_penalty", "presence_penalty"},
                                                     {"options.frequency_penalty", "frequency_penalty"},
                                                     {"options.num_predict", "max_tokens"},
                                                     {"options.num_keep", "n_keep"},
                                                     {"think", "enable_thinking"},
                                                     {"think", "reasoning_effort"},
                                                     {"shift", "context_shift"},
                                                     {"truncate", "truncation"}}};

void refuse_images(const fields& from) { from.refuse_unless_absent("images", "this model reads text alone"); }

/// The calls of a conversation, and which of them have results. Results name a call by its id or its function; without
/// either they come in the order of the calls.
class open_calls {
 public:
  /// Adds the calls of a message. @return them as /v1/chat/completions has them
  json add(const json& list, const std::string& name, bool ignore) {
    if (!list.is_array()) refuse_field(name, "an array of calls", shown(list));
    json out = json::array();
    for (std::size_t k = 0; k < list.size(); ++k) {
      const fields call(list[k], index(name, k));
      const json& function = call.need("function", "an object");
      const std::string called = fields(function, call.name("function")).text("name");
      list_.push_back({call.find("id") != nullptr ? call.text("id") : std::string(), called});
      out.push_back({{"id", id_of(list_.size() - 1)}, {"type", "function"}, {"function", function}});
      out.back()["function"].erase("index");
      call.without_effect({"type"});
      call.refuse_unknown(ignore);
    }
    return out;
  }
  /// The id of the call whose result the message has.
  std::string answer(const fields& message) {
    const auto text = [&](const char* key) { return message.find(key) != nullptr ? message.text(key) : std::string(); };
    const std::string id = text("tool_call_id"), newer = text("tool_name"), name = newer.empty() ? text("name") : newer;
    for (std::size_t k = 0; k < list_.size(); ++k) {
      entry& each = list_[k];
      if (each.answered || (!id.empty() && !each.id.empty() && each.id != id) || (!name.empty() && each.name != name))
        continue;
      each.answered = true;
      return id_of(k);
    }
    refuse_field(message.name("role"), "a call before it that has no result yet, by its id or name", "'tool'");
  }

 private:
  struct entry {
    std::string id, name;
    bool answered = false;
  };
  static std::string id_of(std::size_t k) { return "call" + std::to_string(10000 + k); }
  std::vector<entry> list_;
};

class ollama_reply : public generations_reply {
 public:
  ollama_reply(std::string model, bool chat, bool stream, std::vector<std::shared_ptr<generation>> list,
               metrics& counts)
      : generations_reply(std::move(list), stream, counts), model_(std::move(model)), chat_(chat) {}
  std::string_view stream_type() const override { return "application/x-ndjson"; }

 protected:
  std::string events(const choice& of, std::size_t, const news& what) override {
    // A call is sent when it is complete: when the next one has begun, or at the end.
    std::vector<call_made> whole;
    const std::size_t ready = !what.finish.empty() ? of.calls.size() : std::max<std::size_t>(of.calls.size(), 1) - 1;
    while (sent_calls_ < ready) whole.push_back(of.calls[sent_calls_++]);
    if (what.thought.empty() && what.text.empty() && whole.empty()) return {};
    json out = head();
    put(out, what.thought, what.text, whole);
    out["done"] = false;
    return json_text(out) + "\n";
  }
  std::string last_events() override {
    json out = head();
    put(out, {}, {}, {});
    put_end(out);
    return json_text(out) + "\n";
  }
  std::string error_events(const api_error& problem) override { return json_text({{"error", problem.what()}}) + "\n"; }
  json document() override {
    const choice& of = choices()[0];
    json out = head();
    put(out, of.thought, of.text, of.calls);
    put_end(out);
    return out;
  }

 private:
  json head() const { return {{"model", model_}, {"created_at", utc_text(std::time(nullptr))}}; }
  void put(json& to, const std::string& thought, const std::string& text, const std::vector<call_made>& calls) const {
    if (!chat_) {
      to["response"] = text;
      if (!thought.empty()) to["thinking"] = thought;
      return;
    }
    json message{{"role", "assistant"}, {"content", text}};
    if (!thought.empty()) message["thinking"] = thought;
    for (const call_made& each : calls)
      message["tool_calls"].push_back(
          {{"function", {{"name", each.name}, {"arguments", json::parse(each.arguments)}}}});
    to["message"] = std::move(message);
  }
  void put_end(json& to) const {
    const choice& of = choices()[0];
    const token_counts all = counted();
    const auto span = [](steady::duration time) { return std::chrono::duration_cast<nanoseconds>(time).count(); };
    to["done"] = true;
    to["done_reason"] = of.finish == "length" ? "length" : "stop";
    to["total_duration"] = span(of.from->last_token - of.from->arrived);
    to["load_duration"] = 0;
    to["prompt_eval_count"] = all.prompt;
    to["prompt_eval_duration"] = span(of.from->first_token - of.from->arrived);
    to["eval_count"] = all.completion;
    if (all.left_out != 0) to["truncated_messages"] = all.left_out;
    to["eval_duration"] = span(of.from->last_token - of.from->first_token);
  }

  std::string model_;
  bool chat_;
  std::size_t sent_calls_ = 0;
};

/// @param family of the model; empty: it is not loaded, and its file was not read
json details_of(const std::string& family) {
  return {{"parent_model", ""},   {"format", "gguf"},        {"family", family}, {"families", json::array({family})},
          {"parameter_size", ""}, {"quantization_level", ""}};
}

json ready_reply(const std::string& model, bool chat, const char* reason) {
  json out{{"model", model}, {"created_at", utc_text(std::time(nullptr))}, {"done", true}, {"done_reason", reason}};
  if (chat) out["message"] = {{"role", "assistant"}, {"content", ""}};
  else out["response"] = "";
  return out;
}

}  // namespace

json chat_of_ollama(const json& body, const limits& limit) {
  const fields from(body, {});
  json out{{"messages", json::array()}};
  take_common(from, limit.ignore_unknown, out);
  take_members(from, out, {{"tools", "tools"}});
  const json& list = from.need("messages", "an array");
  if (!list.is_array()) refuse_field("messages", "an array", shown(list));
  open_calls calls;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const fields message(list[i], index("messages", i));
    json next{{"role", message.text("role")}, {"content", ""}};
    take_members(message, next, {{"content", "content"}, {"thinking", "reasoning_content"}});
    refuse_images(message);
    if (const json* const made = message.find("tool_calls"))
      if (json added = calls.add(*made, message.name("tool_calls"), limit.ignore_unknown); !added.empty())
        next["tool_calls"] = std::move(added);
    if (next["role"] == "tool") next["tool_call_id"] = calls.answer(message);
    message.refuse_unknown(limit.ignore_unknown);
    out["messages"].push_back(std::move(next));
  }
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

json chat_of_ollama_prompt(const json& body, const limits& limit) {
  const fields from(body, {});
  json out = json::object();
  take_common(from, limit.ignore_unknown, out);
  refuse_images(from);
  from.refuse_unless_absent({"template", "context"}, "the server does not do this");
  const std::string prompt = from.find("prompt") != nullptr ? from.text("prompt") : std::string();
  const json* const suffix = from.find("suffix");
  const bool gap = suffix != nullptr && *suffix != "";
  if (gap) out["suffix"] = from.text("suffix");
  if (from.boolean("raw", false) || gap) {
    out["prompt"] = prompt;
    if (!out.contains("max_tokens")) out["max_tokens"] = -1;
    from.refuse_unless_absent("system", "a raw prompt, or one with a suffix, is all of it");
  } else {
    out["messages"] = json::array();
    if (from.find("system") != nullptr && !from.text("system").empty())
      out["messages"].push_back({{"role", "system"}, {"content", from.text("system")}});
    out["messages"].push_back({{"role", "user"}, {"content", prompt}});
  }
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

http_reply api::ollama_chat(const asked& of) try {
  const json chat = chat_of_ollama(of.body, options_.limit);
  http_reply out;
  if (chat["messages"].empty()) {  // a request without messages loads or unloads the model
    out.body = json_text(ready_reply(of.facts().id, true, "load"));
    return out;
  }
  completion_request wanted = read_chat_request(chat, of.facts(), options_.limit);
  out.pending = std::make_shared<ollama_reply>(of.facts().id, true, wanted.stream, begin(of, wanted), counts_);
  return out;
} catch (const api_error& refusal) { throw renamed(refusal, names_of_both); }

http_reply api::ollama_generate(const asked& of) try {
  const json& body = of.body;
  const json chat = chat_of_ollama_prompt(body, options_.limit);
  http_reply out;
  if (body.value("prompt", json()) == json() || body["prompt"] == "") {
    if (!chat.contains("prompt")) read_chat_request(chat, of.facts(), options_.limit);
    out.body = json_text(ready_reply(of.facts().id, false, "load"));
    return out;
  }
  completion_request wanted = chat.contains("prompt") ? read_completion_request(chat, of.facts(), options_.limit)
                                                      : read_chat_request(chat, of.facts(), options_.limit);
  out.pending = std::make_shared<ollama_reply>(of.facts().id, false, wanted.stream, begin(of, wanted), counts_);
  return out;
} catch (const api_error& refusal) {
  constexpr std::array<field_names, 1> own{{{"prompt", "messages"}}};
  throw renamed(renamed(refusal, names_of_both), own);
}

http_reply api::ollama_tags(const asked& of) {
  const bool running = of.request.path == "/api/ps";
  json all = json::array();
  for (const listed_model& each : listed()) {
    if (running && !each.loaded) continue;
    json next{{"name", each.id + ":latest"},
              {"model", each.id + ":latest"},
              {"modified_at", utc_text(static_cast<std::time_t>(each.modified))},
              {"size", each.file_bytes},
              {"digest", ""},
              {"details", details_of(each.loaded ? each.loaded->words.file.architecture : std::string())}};
    if (each.loaded) {
      const engine_gauges& gauges = each.loaded->engine.gauges();
      if (each.file_bytes == 0 || running) next["size"] = gauges.weights_bytes.load();
      if (running) {
        next["size_vram"] = gauges.weights_bytes + gauges.cache_bytes;
        next["context_length"] = each.loaded->facts.context;
        next["expires_at"] = "9999-12-31T00:00:00Z";  // until others need its memory
      }
    }
    all.push_back(std::move(next));
  }
  return json_reply({{"models", std::move(all)}});
}

http_reply api::ollama_show(const asked& of) {
  const fields from(of.body, {});
  const std::string name = without_tag(from.find("model") != nullptr ? from.text("model") : from.text("name"));
  from.without_effect({"verbose", "name", "system", "template", "options"});
  from.refuse_unknown(options_.limit.ignore_unknown);
  // Editors ask this of each model in the list: it is no reason to load one.
  const listed_model model = listed(name);
  model_head head;
  if (!model.loaded) head = options_.read_head(model.path);
  const language& words = model.loaded ? model.loaded->words : *head.words;
  const std::uint32_t context = model.loaded ? model.loaded->facts.context : head.context;
  const std::string& family = words.file.architecture;
  json capabilities = json::array({"completion"});
  if (words.chat) capabilities.push_back("tools");
  if (words.layout.thinks()) capabilities.push_back("thinking");
  return json_reply({{"modelfile", ""},
                     {"parameters", ""},
                     {"template", words.file.chat_template.value_or("")},
                     {"details", details_of(family)},
                     {"model_info",
                      {{"general.architecture", family},
                       {family + ".context_length", context},
                       {family + ".vocab_size", words.view.texts.size()}}},
                     {"capabilities", std::move(capabilities)}});
}

http_reply api::ollama_version(const asked&) {
  http_reply out;
  out.body = json_text({{"version", std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
                                        std::to_string(version_patch)}});
  return out;
}

}  // namespace intaglio::serve
