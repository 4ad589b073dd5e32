// SPDX-License-Identifier: MIT
// /infill of llama.cpp's server, as editors ask it: https://github.com/ggml-org/llama.cpp/blob/master/tools/server
#include <array>

#include "api.hpp"
#include "other_apis.hpp"
#include "request.hpp"

namespace intaglio::serve {
namespace {

class infill_reply : public generations_reply {
 public:
  infill_reply(std::string model, bool stream, std::vector<std::shared_ptr<generation>> list, metrics& counts)
      : generations_reply(std::move(list), stream, counts), model_(std::move(model)) {}

 protected:
  std::string events(const choice&, std::size_t, const news& what) override {
    return what.text.empty() ? std::string() : event_text({{"content", what.text}, {"stop", false}});
  }
  std::string last_events() override { return event_text(end({})); }
  std::string error_events(const api_error& problem) override { return event_text(error_body(problem)); }
  json document() override { return end(choices()[0].text); }

 private:
  json end(const std::string& text) const {
    const choice& of = choices()[0];
    const token_counts all = counted();
    return {{"content", text},
            {"model", model_},
            {"stop", true},
            {"stop_type", of.finish == "length"   ? "limit"
                          : of.stopped_by.empty() ? "eos"
                                                  : "word"},
            {"stopping_word", of.stopped_by},
            {"tokens_predicted", all.completion},
            {"tokens_evaluated", all.prompt},
            {"tokens_cached", all.cached}};
  }
  std::string model_;
};

/// The body of /v1/completions that a body of /infill means. @throws api_error 400
json completion_of_infill(const json& body, const limits& limit) {
  const fields from(body, {});
  json out{{"max_tokens", -1}, {"temperature", 0.8}};  // what llama.cpp has where nothing is said
  const std::string after = from.text("input_suffix");
  if (after.empty()) refuse_field("input_suffix", "a text", "an empty one");
  out["prompt"] = from.text("input_prefix") + (from.find("prompt") != nullptr ? from.text("prompt") : std::string());
  out["suffix"] = after;
  take_members(from, out,
               {{"model", "model"},
                {"n_predict", "max_tokens"},
                {"stream", "stream"},
                {"temperature", "temperature"},
                {"top_k", "top_k"},
                {"top_p", "top_p"},
                {"min_p", "min_p"},
                {"seed", "seed"},
                {"stop", "stop"},
                {"repeat_penalty", "repeat_penalty"},
                {"repeat_last_n", "repeat_last_n"},
                {"cache_prompt", "cache_prompt"}});
  if (out["max_tokens"] == 0) out["max_tokens"] = 1;  // editors warm the cache so
  from.refuse_unless_absent("input_extra", "texts of other files are not read");
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

}  // namespace

http_reply api::infill(const asked& of) try {
  completion_request wanted =
      read_completion_request(completion_of_infill(of.body, options_.limit), of.facts(), options_.limit);
  http_reply out;
  out.pending = std::make_shared<infill_reply>(of.facts().id, wanted.stream, begin(of, wanted), counts_);
  return out;
} catch (const api_error& refusal) {
  constexpr std::array<field_names, 3> names{
      {{"n_predict", "max_tokens"}, {"input_suffix", "suffix"}, {"input_prefix", "prompt"}}};
  throw renamed(refusal, names);
}

}  // namespace intaglio::serve
