// SPDX-License-Identifier: MIT
// The paths of the server: OpenAI's, and some of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "access.hpp"
#include "http.hpp"
#include "limits.hpp"
#include "metrics.hpp"
#include "model_set.hpp"
#include "other_apis.hpp"
#include "pdf_service.hpp"
#include "token_engine.hpp"
#include "walk_service.hpp"

namespace intaglio::serve {

/// A file of the web page.
struct page_file {
  std::string_view path, content_type, content;
};

struct api_options {
  access_rules access;
  limits limit;
  std::vector<page_file> pages;
  /// What a model's file says of it without being loaded. @throws file_error
  std::function<model_head(const std::string& path)> read_head;
  std::string slot_folder;        ///< that slots are saved to; empty: they are not
  walk_service* walks = nullptr;  ///< nullptr: the model is not walked
  std::function<void(const http_request& request, int status, double seconds)> log;
};

class api : public http_application {
 public:
  api(model_set& models, metrics& counts, api_options options)
      : models_(models), counts_(counts), options_(std::move(options)) {}

  void admit(const http_request& head) override;
  bool is_light(const http_request& head) const override;
  http_reply answer(const http_request& request, std::function<void()> wake) override;
  http_reply error_reply(const api_error& error, const http_request& head) override;
  std::vector<std::pair<std::string, std::string>> common_fields(const http_request& head) override;
  void answered(const http_request& request, int status, double seconds) override;

 private:
  struct route;
  /// A request on its way through a handler.
  struct asked {
    const http_request& request;
    std::function<void()> wake;
    json body{};                                  ///< of a POST
    std::shared_ptr<const served_model> model{};  ///< of a route that has one
    const model_facts& facts() const { return model->facts; }
    const language& words() const { return model->words; }
  };
  class model_wait;
  static const std::vector<route>& routes();
  const route& route_of(const http_request& head) const;
  bool is_page(const http_request& head) const;

  http_reply models(const asked& of);
  http_reply model(const asked& of);
  http_reply completions(const asked& of);
  http_reply infill(const asked& of);
  http_reply messages(const asked& of);
  http_reply count_tokens(const asked& of);
  http_reply responses(const asked& of);
  http_reply stored_response(const asked& of);
  http_reply ollama_chat(const asked& of);
  http_reply ollama_generate(const asked& of);
  http_reply ollama_tags(const asked& of);
  http_reply ollama_show(const asked& of);
  http_reply ollama_version(const asked& of);
  http_reply embeddings(const asked& of);
  http_reply ollama_embed(const asked& of);
  http_reply rerank(const asked& of);
  http_reply properties(const asked& of);
  http_reply adapters(const asked& of);
  http_reply set_adapters(const asked& of);
  http_reply apply_template(const asked& of);
  http_reply slot_list(const asked& of);
  http_reply slot_action(const asked& of);
  http_reply tokenize(const asked& of);
  http_reply detokenize(const asked& of);
  http_reply pdf_text(const asked& of);
  http_reply health(const asked& of);
  http_reply exposition(const asked& of);
  http_reply plan(const asked& of);
  http_reply infer(const asked& of);
  http_reply trace(const asked& of);
  http_reply page(const asked& of);

  /// @throws api_error 400, at that field of the request: there are none
  walk_service& walks(const std::string& field = {}) const;
  /// @throws api_error 503: the one model is not loaded yet
  std::vector<listed_model> listed();
  /// @throws api_error 404: another model
  listed_model listed(const std::string& name);
  std::optional<std::string> model_named(const asked& of) const;
  http_reply run(const route& to, const asked& of);
  std::vector<std::vector<std::int32_t>> prompts_of(const asked& of, completion_request& wanted,
                                                    std::uint32_t& left_out) const;
  /// A chat's prompt, without its oldest turns where it asks for that. @param left_out messages that are not in it
  language::prompt chat_prompt(const asked& of, completion_request& wanted, std::uint32_t& left_out) const;
  using vectors = std::vector<std::vector<float>>;
  /// Has texts embedded. @param write the answer, from the vectors and the number of all tokens
  /// @param seconds where the second text of each begins, for scores of pairs; or empty  @param input the field
  http_reply embedded(const asked& of, std::vector<std::vector<std::int32_t>> texts,
                      std::function<json(vectors&& found, std::uint64_t tokens)> write,
                      std::vector<std::uint32_t> seconds = {}, const std::string& input = "input");
  /// Has an order of slots done. @param write the answer; may throw an api_error
  http_reply ordered(const asked& of, slot_order what, std::function<http_reply(const slot_outcome&)> write);
  /// Generations of a request, which run from here on.
  std::vector<std::shared_ptr<generation>> begin(const asked& of, completion_request& wanted);
  static void plan_reply(completion_request& of, const reply_layout& layout, bool in_thought);
  /// Tokens that a prompt may have.
  std::uint32_t most_of_prompt(const model_facts& model) const;
  std::vector<std::int32_t> checked_prompt(const model_facts& model, std::vector<std::int32_t> ids,
                                           const std::string& field) const;

  model_set& models_;
  metrics& counts_;
  api_options options_;
  response_store stored_;
  pdf_service pdfs_;
};

}  // namespace intaglio::serve
