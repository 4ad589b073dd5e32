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
#include "other_apis.hpp"
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
  walk_service* walks = nullptr;  ///< nullptr: the model is not walked
  std::function<void(const http_request& request, int status, double seconds)> log;
};

class api : public http_application {
 public:
  api(token_engine& engine, metrics& counts, api_options options)
      : engine_(engine), counts_(counts), options_(std::move(options)) {}

  void admit(const http_request& head) override;
  bool is_light(const http_request& head) const override;
  http_reply answer(const http_request& request, std::function<void()> wake) override;
  http_reply error_reply(const api_error& error, const http_request& head) override;
  std::vector<std::pair<std::string, std::string>> common_fields(const http_request& head) override;
  void answered(const http_request& request, int status, double seconds) override;

 private:
  struct route;
  static const std::vector<route>& routes();
  const route& route_of(const http_request& head) const;

  http_reply models(const http_request& request, std::function<void()>);
  http_reply model(const http_request& request, std::function<void()>);
  http_reply completions(const http_request& request, std::function<void()> wake);
  http_reply messages(const http_request& request, std::function<void()> wake);
  http_reply count_tokens(const http_request& request, std::function<void()>);
  http_reply responses(const http_request& request, std::function<void()> wake);
  http_reply stored_response(const http_request& request, std::function<void()>);
  http_reply ollama_chat(const http_request& request, std::function<void()> wake);
  http_reply ollama_generate(const http_request& request, std::function<void()> wake);
  http_reply ollama_tags(const http_request& request, std::function<void()>);
  http_reply ollama_show(const http_request& request, std::function<void()>);
  http_reply ollama_version(const http_request& request, std::function<void()>);
  http_reply properties(const http_request& request, std::function<void()>);
  http_reply apply_template(const http_request& request, std::function<void()>);
  http_reply tokenize(const http_request& request, std::function<void()>);
  http_reply detokenize(const http_request& request, std::function<void()>);
  http_reply health(const http_request& request, std::function<void()>);
  http_reply exposition(const http_request& request, std::function<void()>);
  http_reply plan(const http_request& request, std::function<void()>);
  http_reply infer(const http_request& request, std::function<void()> wake);
  http_reply trace(const http_request& request, std::function<void()> wake);
  http_reply page(const http_request& request, std::function<void()>);

  /// @throws api_error 400, at that field of the request: there are none
  walk_service& walks(const std::string& field = {}) const;
  const model_facts& facts() const;
  const language& words() const;
  std::vector<std::vector<std::int32_t>> prompts_of(completion_request& wanted) const;
  /// Generations of a request, which run from here on.
  std::vector<std::shared_ptr<generation>> begin(completion_request& wanted, const std::function<void()>& wake);
  static void plan_reply(completion_request& of, const reply_layout& layout, bool in_thought);
  std::vector<std::int32_t> checked_prompt(std::vector<std::int32_t> ids, const std::string& field) const;

  token_engine& engine_;
  metrics& counts_;
  api_options options_;
  response_store stored_;
};

}  // namespace intaglio::serve
