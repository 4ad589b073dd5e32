// SPDX-License-Identifier: MIT
// /v1/chat/completions and /v1/completions, and generations as all APIs begin them: prompts in tokens, the reply's
// form.
#include "api.hpp"

#include <intaglio/io/unicode.hpp>

#include <algorithm>
#include <chrono>
#include <random>

#include "api_error.hpp"
#include "completion_reply.hpp"
#include "request.hpp"

namespace intaglio::serve {
namespace {

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

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
  if (of.shape.thought_tokens && !layout.thinks())
    throw api_error(400, "thinking_budget: expected nothing: the model does not think aloud, found a limit",
                    "thinking_budget", "unsupported_parameter");
  if (talk.tools.empty() && !(of.shape.form && layout.thinks())) return;
  if (talk.use == tool_use::none && !of.shape.form && layout.begin.empty()) return;
  if (talk.use == tool_use::optional && of.shape.form && layout.begin.empty() && !layout.in_channels())
    throw api_error(400,
                    of.shape.form_field +
                        ": expected nothing beside tools, or tool_choice 'none' or 'required': this model's calls are "
                        "JSON without a mark, found a form",
                    of.shape.form_field, "unsupported_parameter");
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
    // Leave room for the requested tokens, at most half of the context; a quarter if the request gives no number.
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
  if (!wanted.adapter) wanted.adapter = of.model->engine.default_adapter();
  std::vector<std::shared_ptr<generation>> list;
  const std::uint64_t seed =
      wanted.seeded ? wanted.sampling.seed : (std::uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  for (const auto& prompt : prompts) {
    const std::uint32_t room = model.context - static_cast<std::uint32_t>(prompt.size()),
                        most = wanted.shift ? *wanted.max_tokens : std::min(wanted.max_tokens.value_or(room), room);
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

}  // namespace intaglio::serve
