// SPDX-License-Identifier: MIT
#include "../../examples/serve/request.hpp"

#include <catch2/catch_test_macros.hpp>

#include "../../examples/serve/access.hpp"
#include "../../examples/serve/api_error.hpp"
#include "../../examples/serve/uri.hpp"

using namespace intaglio::serve;

namespace {

const model_facts model{"fable", {"gpt"}, 4096, 512, 0};

int status_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const api_error& error) { return error.status; }
  return 200;
}

}  // namespace

TEST_CASE("a chat request with all it may have") {
  const auto found = read_chat_request(
      parse_json(
          R"({"model":"gpt","messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]}],
    "temperature":0.5,"top_p":0.25,"top_k":-1,"min_p":0.1,"repetition_penalty":1.5,"seed":-1,"max_tokens":5,"max_completion_tokens":7,"n":2,"stop":["a","b"],"stream":true,"logprobs":true,
    "top_logprobs":3,"logit_bias":{"7":-1.5},"stream_options":{"include_usage":true},"user":"x","tools":[],"unknown":{"x":1}})",
          {}),
      model, {});
  CHECK(found.messages.size() == 2);
  CHECK((found.messages[0].role == "system" && found.messages[1].content == "Hello"));
  CHECK((found.sampling.temperature == 0.5f && found.sampling.top_p == 0.25f && !found.sampling.top_k &&
         found.sampling.min_p == 0.1f && found.sampling.repeat_penalty == 1.5f));
  CHECK((found.seeded && found.sampling.seed == UINT64_MAX && found.max_tokens == 7u && found.n == 2));
  CHECK((found.stop.size() == 2 && found.stream && found.include_usage && found.shape.logprobs == 3u));
  CHECK(found.shape.logit_bias == std::vector<std::pair<std::int32_t, float>>{{7, -1.5f}});
}

TEST_CASE("prompts of a completion in each form") {
  const auto prompts = [](const char* body) {
    return read_completion_request(parse_json(body, {}), model, {}).prompts;
  };
  CHECK(prompts(R"({"prompt":"a"})") == std::vector<prompt_input>{"a"});
  CHECK(prompts(R"({"prompt":["a",[1,2]]})") == std::vector<prompt_input>{"a", std::vector<std::int32_t>{1, 2}});
  CHECK(prompts(R"({"prompt":[3,4]})") == std::vector<prompt_input>{std::vector<std::int32_t>{3, 4}});
}

TEST_CASE("JSON keeps to its limits") {
  const auto status = [](const std::string& text) { return status_of([&] { parse_json(text, {}); }); };
  CHECK(status(std::string(64, '[') + std::string(64, ']')) == 200);
  CHECK(status(std::string(65, '[') + std::string(65, ']')) == 400);
  CHECK(status(std::string(1'000'000, '[')) == 400);
  std::string many = "{";
  for (int i = 0; i < 1101; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  CHECK(status(many + "}") == 400);
  CHECK(status(R"({"a":1,"a":1})") == 400);
  CHECK(status("{} x") == 400);
}

TEST_CASE("keys, hosts and origins") {
  CHECK(same_text("secret", "secret"));
  for (const char* const other : {"", "secre", "secret1", "secretsecret", "Secret"})
    CHECK_FALSE(same_text("secret", other));
  CHECK(host_name("[::1]:80") == "::1");
  CHECK(host_name("LocalHost") == "localhost");
  CHECK(host_name("a:b").empty());
  CHECK(decoded_path("/a%20b") == "/a b");
  for (const char* const bad : {"", "a", "/%", "/%0", "/%zz", "/%00", "/%0a"}) CHECK_FALSE(decoded_path(bad));
  const auto status = [](const char* host, const char* origin, const access_rules& rules) {
    http_request head{"GET", "/", "", {{"host", host}}, "", ""};
    if (*origin != '\0') head.fields.emplace_back("origin", origin);
    return status_of([&] { require_access(rules, head, true); });
  };
  CHECK(status("localhost:8080", "", {}) == 200);
  CHECK(status("10.0.0.7", "", {}) == 200);
  CHECK(status("evil.example", "", {}) == 403);
  CHECK(status("my.example", "", {.api_key = {}, .hosts = {"my.example"}, .origins = {}}) == 200);
  CHECK(status("localhost:8080", "http://localhost:8080", {}) == 200);
  CHECK(status("localhost:8080", "http://localhost:9090", {}) == 403);
  CHECK(status("localhost:8080", "null", {}) == 403);
  CHECK(status("localhost", "", {.api_key = "k", .hosts = {}, .origins = {}}) == 401);
}
