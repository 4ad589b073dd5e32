// SPDX-License-Identifier: MIT
// /slots of llama.cpp's server: the state of the slots, and saving and restoring their tokens in files of a folder.
// https://github.com/ggml-org/llama.cpp/blob/master/tools/server
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>

#include "api.hpp"
#include "later_reply.hpp"
#include "other_apis.hpp"
#include "query.hpp"
#include "request_fields.hpp"

#include <intaglio/platform/path_text.hpp>

namespace intaglio::serve {
namespace {

json entry_of(std::size_t id, const slot_state& of, std::uint32_t context) {
  json out{{"id", id},
           {"n_ctx", context},
           {"speculative", of.drafts},
           {"is_processing", of.task != 0},
           {"n_tokens", of.tokens}};
  if (of.task == 0) return out;
  out["id_task"] = of.task;
  out["params"] = {{"n_predict", of.max_tokens},
                   {"seed", of.sampling.seed},
                   {"temperature", as_double(of.sampling.temperature)},
                   {"top_k", of.sampling.top_k.value_or(0)},
                   {"top_p", as_double(of.sampling.top_p)},
                   {"min_p", as_double(of.sampling.min_p)},
                   {"repeat_penalty", as_double(of.sampling.repeat_penalty)}};
  out["next_token"] = {
      {"has_next_token", of.drawn < of.max_tokens}, {"n_remain", of.max_tokens - of.drawn}, {"n_decoded", of.drawn}};
  return out;
}

/// A name in the folder that slots are saved to, and nothing else. @throws api_error 400
std::string checked_name(const std::string& name) {
  const auto refuse = [&](const char* found) {
    refuse_field("filename", "1 .. 128 of letters, digits, '.', '-' and '_', the first no '.'", found);
  };
  if (name.empty() || name.size() > 128) refuse("another number");
  if (name[0] == '.') refuse("a '.' in front");
  for (const char each : name)
    if (!((each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') || each == '.' ||
          each == '-' || each == '_'))
      refuse("another character");
  return name;
}

std::uint32_t slot_of(std::string_view text, std::uint32_t slot_count) {
  std::uint32_t out = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem != std::errc{} || end != text.data() + text.size() || out >= slot_count)
    throw api_error(404,
                    "slot: expected 0 .. " + std::to_string(slot_count - 1) + ", found '" + printable(text, 30) + "'",
                    "id_slot", "unknown_slot");
  return out;
}

slot_order::action action_of(const std::optional<std::string>& named) {
  if (named == "save") return slot_order::action::save;
  if (named == "restore") return slot_order::action::restore;
  if (named == "erase") return slot_order::action::erase;
  refuse_field("action", "?action=save, restore or erase", named ? '\'' + printable(*named, 30) + '\'' : "nothing");
}

}  // namespace

http_reply api::ordered(const asked& of, slot_order what, std::function<http_reply(const slot_outcome&)> write) {
  const auto reply = std::make_shared<later_reply>(of.wake);
  what.answer = [reply, write = std::move(write), model = of.model](const slot_outcome& found) {
    try {
      reply->give(write(found));
    } catch (const api_error& refusal) { reply->refuse(refusal); }
  };
  what.refuse = [reply](const api_error& error) { reply->refuse(error); };
  of.model->engine.order(std::move(what));
  http_reply out;
  out.pending = reply;
  return out;
}

http_reply api::slot_list(const asked& of) {
  const bool wants_free = query_value(of.request.query, "fail_on_no_slot").value_or("0") != "0";
  return ordered(of, {}, [wants_free, context = of.facts().context](const slot_outcome& found) {
    json all = json::array();
    bool is_free = false;
    for (std::size_t i = 0; i < found.list.size(); ++i) {
      is_free = is_free || found.list[i].task == 0;
      all.push_back(entry_of(i, found.list[i], context));
    }
    if (wants_free && !is_free) throw api_error(503, "no slot is free", {}, "no_slot", 1);
    return json_reply(all);
  });
}

http_reply api::slot_action(const asked& of) {
  slot_order what;
  what.slot = slot_of(std::string_view(of.request.path).substr(std::string_view("/slots/").size()),
                      static_cast<std::uint32_t>(of.model->engine.gauges().slot_count.load()));
  what.what = action_of(query_value(of.request.query, "action"));
  const fields from(of.body, {});
  from.without_effect({"model"});
  std::string name;
  if (what.what != slot_order::action::erase) {
    if (options_.slot_folder.empty())
      throw api_error(501, "this server saves no slots: expected --slot-save-path at its start, found none", {},
                      "not_supported");
    name = checked_name(from.text("filename"));
    what.file = platform::path_of(options_.slot_folder) / platform::path_of(name);
  }
  from.refuse_unknown(options_.limit.ignore_unknown);
  return ordered(of, what, [name, what = what.what, slot = what.slot](const slot_outcome& found) {
    json out{{"id_slot", slot}};
    if (what == slot_order::action::erase) {
      out["n_erased"] = found.positions;
      return json_reply(out);
    }
    const bool saved = what == slot_order::action::save;
    out["filename"] = name;
    out[saved ? "n_saved" : "n_restored"] = found.positions;
    out[saved ? "n_written" : "n_read"] = found.bytes;
    if (found.adapter.number != 0)  // requests with this choice find them, and no others
      out["lora"] = json::array({{{"id", found.adapter.number - 1}, {"scale", as_double(found.adapter.scale)}}});
    out["timings"] = {{saved ? "save_ms" : "restore_ms", found.milliseconds}};
    return json_reply(out);
  });
}

}  // namespace intaglio::serve
