// SPDX-License-Identifier: MIT
#include "../../examples/serve/request.hpp"

#include <catch2/catch_test_macros.hpp>

#include "../../examples/serve/access.hpp"
#include "../../examples/serve/api_error.hpp"
#include "../../examples/serve/query.hpp"
#include "../../examples/serve/text_match.hpp"
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
      parse_json(R"({"model":"gpt","messages":[{"role":"developer","content":"Be brief."},{"role":"user",)"
                 R"("content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]}],
    "temperature":0.5,"top_p":0.25,"top_k":-1,"min_p":0.1,"repetition_penalty":1.5,"seed":-2,"max_tokens":5,)"
                 R"("max_completion_tokens":7,"n":2,"stop":["a","b"],"stream":true,"logprobs":true,
    "top_logprobs":3,"logit_bias":{"7":-1.5},"stream_options":{"include_usage":true},"user":"x","tools":[],)"
                 R"("tool_choice":"auto","metadata":{"x":1},"audio":null})",
                 {}),
      model, {});
  CHECK(found.talk.turns.size() == 2);
  CHECK((found.talk.turns[0].role == "system" && found.talk.turns[1].content == "Hello"));
  CHECK((found.sampling.temperature == 0.5f && found.sampling.top_p == 0.25f && !found.sampling.top_k &&
         found.sampling.min_p == 0.1f && found.sampling.repeat_penalty == 1.5f));
  CHECK((found.seeded && found.sampling.seed == UINT64_MAX - 1 && found.max_tokens == 7u && found.n == 2));
  CHECK((found.stop.size() == 2 && found.stream && found.include_usage && found.shape.logprobs == 3u));
  CHECK(found.shape.logit_bias == std::vector<std::pair<std::int32_t, float>>{{7, -1.5f}});
}

namespace {

completion_request chat_of(const std::string& more, const limits& limit = {}) {
  return read_chat_request(parse_json(R"({"messages":[{"role":"user","content":"a"}])" + more + "}", {}), model, limit);
}
/// "": taken; else what the refusal says.
std::string refusal_of(const std::string& more, const limits& limit = {}) {
  try {
    chat_of(more, limit);
  } catch (const api_error& error) {
    CHECK(error.status == 400);
    CHECK(std::string_view(error.what()).size() <= 400);
    return error.what();
  }
  return {};
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("fields that are not known are refused by name, in each object of a request") {
  CHECK(has(refusal_of(R"(,"temprature":0)"), "temprature: expected a field that this server knows (temperature?)"));
  CHECK(has(refusal_of(R"(,"max_token":5)"), "(max_tokens?)"));
  CHECK(has(refusal_of(R"(,"options":{"num_ctx":5})"), "options"));
  CHECK(has(refusal_of(R"(,"num_predict":5)"), "num_predict"));
  CHECK(has(refusal_of(R"(,"unknown":null)"), "unknown"));
  CHECK_FALSE(has(refusal_of(R"(,"\u0001\n":1)"), "\n"));
  CHECK(has(refusal_of(R"(,"stream_options":{"include_usge":true})"), "stream_options.include_usge"));
  CHECK(has(refusal_of(R"(,"response_format":{"type":"json_object","schemas":{}})"), "response_format.schemas"));
  CHECK(has(refusal_of(R"(,"response_format":{"type":"json_schema","json_schema":{"schema":{},"stric":true}})"),
            "response_format.json_schema.stric"));
  CHECK(has(refusal_of(R"(,"structured_outputs":{"jsn":{}})"), "structured_outputs.jsn"));
  const limits ignoring{.ignore_unknown = true};
  CHECK(refusal_of(R"(,"temprature":0,"stream_options":{"x":1},"response_format":{"type":"text","y":1})", ignoring)
            .empty());
  const auto messages = [](const char* list) {
    return status_of(
        [&] { read_chat_request(parse_json(std::string(R"({"messages":)") + list + "}", {}), model, {}); });
  };
  CHECK(messages(R"([{"role":"user","content":"a","weight":1}])") == 400);
  CHECK(messages(R"([{"role":"user","content":[{"type":"text","text":"a","x":1}]}])") == 400);
  CHECK(messages(R"([{"role":"assistant","content":"a","tool_calls":[{"id":"1"}]}])") == 400);
  CHECK(messages(R"([{"role":"assistant","content":"a","tool_calls":[],"refusal":null,"name":"b"}])") == 200);
  // What /v1/responses answers, sent back.
  CHECK(
      messages(R"([{"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]},)"
               R"({"role":"user","content":"b"}])") == 200);
  const auto rerank = [](const char* document) {
    return status_of([&] {
      read_rerank_request(parse_json(std::string(R"({"query":"a","documents":[)") + document + "]}", {}), {});
    });
  };
  CHECK((rerank(R"({"text":"a"})") == 200 && rerank(R"({"text":"a","title":"b"})") == 400));
  CHECK(status_of([] { read_tokenize_request(parse_json(R"({"content":"a","add_specials":true})", {}), {}); }) == 400);
  CHECK(status_of([] { read_detokenize_request(parse_json(R"({"tokens":[1],"x":1})", {}), model, {}); }) == 400);
  CHECK(status_of([] { read_infer_request(parse_json(R"({"prompt":"a","x":1})", {}), {}); }) == 400);
  CHECK(status_of([] { read_trace_request(parse_json(R"({"prompt":"a","x":1})", {}), {}); }) == 400);
  CHECK(status_of([] { read_completion_request(parse_json(R"({"prompt":"a","x":1})", {}), model, {}); }) == 400);
}

TEST_CASE("what asks for a form is done or refused, wherever it stands") {
  const std::string schema =
      R"({"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false})";
  for (const std::string& more :
       {R"(,"response_format":{"type":"json_object","schema":)" + schema + "}",
        R"(,"response_format":{"type":"json_schema","schema":)" + schema + "}",
        R"(,"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":false,"schema":)" + schema +
            "}}",
        R"(,"response_format":{"type":"json_object","json_schema":{"schema":)" + schema + "}}",
        ",\"guided_json\":" + schema, ",\"guided_json\":" + json_text(json(schema)), ",\"json_schema\":" + schema,
        ",\"format\":" + schema, R"(,"structured_outputs":{"json":)" + schema + "}"}) {
    INFO(more);
    const auto form = chat_of(more).shape.form;
    REQUIRE(form);
    text_match match(form);
    CHECK(match.allows(R"({"a":true})", 0));
    CHECK_FALSE(match.allows(R"({"b")", 100));
  }
  for (const char* const more :
       {R"(,"guided_choice":["yes","no"])", R"(,"structured_outputs":{"choice":["yes","no"]})"}) {
    text_match match(chat_of(more).shape.form);
    CHECK((match.allows("yes", 0) && match.allows("no", 0) && match.allows("n", 1)));
    CHECK_FALSE((match.allows("maybe", 9) || match.allows("nope", 9)));
  }
  CHECK(chat_of(R"(,"format":"json")").shape.form);
  CHECK(chat_of(R"(,"structured_outputs":{"json_object":true})").shape.form);
  for (const char* const none :
       {R"(,"response_format":{"type":"text"})", R"(,"grammar":"","format":"","json_schema":{})",
        R"(,"response_format":null,"guided_json":null)"})
    CHECK_FALSE(chat_of(none).shape.form);
  for (const char* const bad : {R"(,"guided_grammar":"root ::= 'a'")",
                                R"(,"grammar":"root ::= 'a'")",
                                R"(,"guided_choice":[])",
                                R"(,"guided_choice":[1])",
                                R"(,"guided_choice":"yes")",
                                R"(,"response_format":{"type":"text","schema":{}})",
                                R"(,"response_format":{"type":"json_schema"})",
                                R"(,"response_format":"json")",
                                R"(,"response_format":{"type":"regex","pattern":"a"})",
                                R"(,"format":"yaml")",
                                R"(,"guided_json":{},"guided_choice":["a"])",
                                R"(,"response_format":{"type":"json_object"},"format":"json")",
                                R"(,"tools":{})",
                                R"(,"tools":[{"type":"function"}])",
                                R"(,"tool_choice":"required")",
                                R"(,"functions":{})",
                                R"(,"tool_choice":{"type":"function","function":{"name":"x"}})",
                                R"(,"function_call":{"name":"x"})",
                                R"(,"modalities":["audio"])",
                                R"(,"modalities":["text","audio"])",
                                R"(,"store":true)",
                                R"(,"stop_token_ids":[4096])",
                                R"(,"min_tokens":9,"max_tokens":8)",
                                R"(,"stop_token_ids":3)"}) {
    INFO(bad);
    CHECK_FALSE(refusal_of(bad).empty());
  }
  for (const char* const good : {R"(,"tools":[],"tool_choice":"none")", R"(,"modalities":["text"],"store":false)",
                                 R"(,"ignore_eos":true,"stop_token_ids":[1,2])", R"(,"min_tokens":3,"format":"json")",
                                 R"(,"stop":["x"],"response_format":{"type":"json_object"})"}) {
    INFO(good);
    CHECK(refusal_of(good).empty());
  }
}

TEST_CASE("other servers' words for off and for any") {
  CHECK_FALSE(chat_of(R"(,"seed":-1)").seeded);
  CHECK(chat_of(R"(,"seed":0)").seeded);
  CHECK(chat_of(R"(,"seed":-9223372036854775808)").seeded);
  CHECK_FALSE(chat_of(R"(,"max_tokens":-1)").max_tokens);
  CHECK_FALSE(chat_of(R"(,"max_completion_tokens":-1)").max_tokens);
  CHECK(chat_of(R"(,"max_tokens":-1)", {.completion_tokens = 7}).max_tokens == 7u);
  CHECK_FALSE(refusal_of(R"(,"max_tokens":0)").empty());
  CHECK_FALSE(refusal_of(R"(,"max_tokens":-2)").empty());
  CHECK_FALSE(refusal_of(R"(,"max_tokens":8)", {.completion_tokens = 7}).empty());
  const auto text = [](const char* body) { return read_completion_request(parse_json(body, {}), model, {}); };
  CHECK(text(R"({"prompt":"a"})").max_tokens == 16u);
  CHECK_FALSE(text(R"({"prompt":"a","max_tokens":-1})").max_tokens);
  CHECK(text(R"({"prompt":"a"})").parse_special);
  CHECK_FALSE(text(R"({"prompt":"a","parse_special":false})").parse_special);
  CHECK(chat_of(R"(,"top_p":0)").sampling.top_p > 0.0f);
  CHECK(chat_of(R"(,"top_p":0)").sampling.top_p < 1e-5f);
  CHECK_FALSE(refusal_of(R"(,"top_p":-0.1)").empty());
  CHECK_FALSE(refusal_of(R"(,"repeat_penalty":1.1,"repetition_penalty":1.2)").empty());
  for (const char* const key : {"05", "+5", " 5", "5 ", "5.0", "1e1", "-1", "", "4096", "99999999999"})
    CHECK_FALSE(refusal_of(R"(,"logit_bias":{")" + std::string(key) + "\":1}").empty());
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
    http_request head{"GET", "/", "", {{"host", host}}, "", "", ""};
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
  const auto with = [](const char* authorization) {
    const http_request head{"GET", "/", "", {{"host", "localhost"}, {"authorization", authorization}}, "", "", ""};
    return status_of([&] { require_access({.api_key = "k", .hosts = {}, .origins = {}}, head, true); });
  };
  for (const char* const good : {"Bearer k", "bearer k", "BEARER  k", "Basic dXNlcjpr", "basic dXNlcjpr"})
    CHECK(with(good) == 200);
  for (const char* const bad :
       {"", "k", "Bearer", "Bearer ", "Bearerk", "Bearer k k", "Bearer K", "Token k", "basic k"})
    CHECK(with(bad) == 401);
}

TEST_CASE("a query has the names that its path knows", "[request]") {
  const auto refusal = [](const char* method, const char* path, const char* query) -> std::string {
    try {
      require_known_query({method, path, query, {}, "", "", ""}, path);
    } catch (const api_error& error) {
      CHECK((error.status == 400 && std::string_view(error.what()).starts_with(error.param + ": expected ")));
      return error.what();
    }
    return {};
  };
  for (const path_query& each : path_queries) {  // a table of words with a blank after each
    CHECK((each.used.empty() || each.used.ends_with(' ')));
    CHECK((each.taken.empty() || each.taken.ends_with(' ')));
    const std::string method(each.method), path(each.path), name(each.used.empty() ? each.taken : each.used);
    CHECK(refusal(method.c_str(), path.c_str(), (name.substr(0, name.find(' ')) + "=1").c_str()).empty());
    CHECK(refusal(method.c_str(), path.c_str(), "x=1").starts_with("x: expected a name"));
  }
  CHECK(refusal("HEAD", "/slots", "fail_on_no_slot=1&model=a&api-version=1").empty());
  CHECK(refusal("GET", "/slots", "action=save").starts_with("action: "));
  CHECK(refusal("POST", "/v1/messages", "betta=true").find("(beta?)") != std::string::npos);
  CHECK(refusal("POST", "/v1/messages", "=true").starts_with(": expected"));
  CHECK(refusal("GET", "/v1/responses/", "include%5b%5D=a&include[]=b&&stream").empty());
  CHECK(refusal("GET", "/v1/responses/", "%6z=1") ==
        "query: expected a name with %XX for what an address cannot have, found another");
  CHECK(query_value("a=1&b=x%20y&a", "b") == "x y");
  CHECK_FALSE(query_value("ab=1", "a"));
  CHECK(query_value("a", "a") == "");
  CHECK(status_of([] { query_value("a=1&a=1", "a"); }) == 400);
  CHECK(status_of([] { query_value("a=%0a", "a"); }) == 400);
}

TEST_CASE("media types in any case") {
  for (const char* const same : {"application/json", "Application/JSON", "application/json; charset=utf-8",
                                 "APPLICATION/JSON ;charset=UTF-8", "application/json\t;x"})
    CHECK(media_type(same) == "application/json");
  for (const char* const other : {"", "text/plain", "application/jsonx", "application/json-patch+json"})
    CHECK(media_type(other) != "application/json");
}

TEST_CASE("a preflight gives back what an allowed origin asks for") {
  const access_rules rules{.api_key = "k", .hosts = {}, .origins = {"https://app.example"}};
  const auto field = [&](const char* method, const char* origin, const char* asked, const char* name) {
    http_request head{method, "/v1/models", "", {{"host", "localhost"}, {"origin", origin}}, "", "", ""};
    if (*asked != '\0') head.fields.emplace_back("access-control-request-headers", asked);
    std::string out;
    for (const auto& [key, value] : cors_fields(rules, head))
      if (key == name) out = value;
    return out;
  };
  constexpr const char* app = "https://app.example";
  constexpr const char* fields = "authorization,content-type,x-stainless-arch, x-stainless-lang";
  CHECK(field("OPTIONS", app, fields, "Access-Control-Allow-Headers") == fields);
  CHECK(field("OPTIONS", app, "", "Access-Control-Allow-Headers") == "Authorization, Content-Type");
  CHECK(field("OPTIONS", app, "a\r\nX: y", "Access-Control-Allow-Headers") == "Authorization, Content-Type");
  CHECK(field("OPTIONS", "https://evil.example", fields, "Access-Control-Allow-Headers").empty());
  CHECK(field("GET", app, fields, "Access-Control-Allow-Headers").empty());
  CHECK(field("GET", app, fields, "Access-Control-Allow-Origin") == app);
}

TEST_CASE("tools and what may be called of them") {
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f","description":"d",)"
                            R"("strict":true,"parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}},)"
                            R"({"type":"function","function":{"name":"g"}}])";
  const auto talk = [&](const std::string& more) { return chat_of(tools + more).talk; };
  CHECK((talk("").use == tool_use::optional && talk("").tools.size() == 2 && talk("").several));
  CHECK(talk(R"(,"tool_choice":"none")").use == tool_use::none);
  CHECK(talk(R"(,"tool_choice":"required","parallel_tool_calls":false)").use == tool_use::required);
  CHECK_FALSE(talk(R"(,"tool_choice":"required","parallel_tool_calls":false)").several);
  const conversation named = talk(R"(,"tool_choice":{"type":"function","function":{"name":"g"}})");
  CHECK((named.use == tool_use::required && named.tools.size() == 1 && named.tools[0].name == "g"));
  const conversation allowed =
      talk(R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function",)"
           R"("function":{"name":"f"}}]}})");
  CHECK((allowed.use == tool_use::required && allowed.tools.size() == 1));
  for (const char* const bad :
       {R"(,"tool_choice":"always")", R"(,"tool_choice":{"type":"function","function":{"name":"h"}})",
        R"(,"tool_choice":{"type":"web"})",
        R"(,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"name":"f"}],"mod":"any"})",
        R"(,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"name":"f","nam":"g"}]})",
        R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"name":"f"}],"mod":"any"}})",
        R"(,"function_call":{"name":"f"})", R"(,"functions":[{"name":"f"}])"}) {
    INFO(bad);
    CHECK_FALSE(refusal_of(tools + bad).empty());
  }
  for (const char* const bad :
       {R"([{"type":"web_search"}])", R"([{"type":"function","function":{"name":"a b"}}])",
        R"([{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}])",
        R"([{"type":"function","function":{"name":"f","parameters":{"type":"array"}}}])",
        R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"if":{}}}}}}])",
        R"([{"type":"function","function":{"name":"f","params":{}}}])"}) {
    INFO(bad);
    CHECK(has(refusal_of(std::string(",\"tools\":") + bad), "tools["));
  }
}

TEST_CASE("messages of calls and their results") {
  const auto turns = [](const char* list) {
    return read_chat_request(parse_json(std::string(R"({"messages":)") + list + "}", {}), model, {}).talk.turns;
  };
  const auto list =
      turns(R"([{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1",)"
            R"("type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
          {"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"r"}]},{"role":"assistant",)"
            R"("content":"<think>\nso\n</think>\n\nb"}])");
  REQUIRE(list.size() == 4);
  CHECK((list[1].calls.size() == 1 && list[1].calls[0].arguments == json{{"x", 1}} && list[1].content.empty()));
  CHECK((list[2].name == "f" && list[2].content == "r" && list[2].call_id == "c1"));
  CHECK((list[3].thought == "so" && list[3].content == "b"));
  for (const char* const bad :
       {R"([{"role":"assistant","content":null}])", R"([{"role":"user","content":null}])",
        R"([{"role":"tool","tool_call_id":"none","content":"r"}])", R"([{"role":"tool","content":"r"}])",
        R"([{"role":"function","name":"f","content":"r"}])",
        R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f",)"
        R"("arguments":"{"}}]}])",
        R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f",)"
        R"("arguments":"[]"}}]}])",
        R"([{"role":"user","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f"}}]}])"}) {
    INFO(bad);
    CHECK(status_of([&] { turns(bad); }) == 400);
  }
}

TEST_CASE("the oldest turns are left out whole, and what the system says stays", "[conversation]") {
  const auto turns_of = [](std::string_view roles) {
    std::vector<turn> out;
    for (std::size_t i = 0; i < roles.size(); ++i)
      out.push_back({roles[i] == 's'   ? "system"
                     : roles[i] == 'u' ? "user"
                     : roles[i] == 'a' ? "assistant"
                                       : "tool",
                     std::to_string(i)});
    return out;
  };
  const auto left_of = [&](std::string_view roles, std::size_t most) {
    auto turns = turns_of(roles);
    const std::size_t count =
        leave_out_oldest(turns, [&](const std::vector<turn>& some) { return some.size() <= most; });
    std::string out = std::to_string(count) + ':';
    for (const turn& each : turns) out += ' ' + each.content;
    return out;
  };
  CHECK(left_of("suauau", 6) == "0: 0 1 2 3 4 5");
  CHECK(left_of("suauau", 5) == "2: 0 3 4 5");
  CHECK(left_of("suauau", 3) == "4: 0 5");
  CHECK(left_of("suauau", 1) == "4: 0 5");       // the last turn stays, whether it fits or not
  CHECK(left_of("suatatau", 5) == "6: 0 7");     // calls and results go with their question
  CHECK(left_of("suuausu", 5) == "3: 0 4 5 6");  // two messages in a row are one turn; a system's later text stays
  CHECK(left_of("auau", 3) == "3: 3");           // what is in front of the first question goes with it
  CHECK(left_of("su", 1) == "0: 0 1");
  CHECK(left_of("", 0) == "0:");
  CHECK(chat_of(R"(,"truncation":"auto")").truncate);
  CHECK_FALSE(chat_of(R"(,"truncation":"disabled")").truncate);
  CHECK(refusal_of(R"(,"truncation":"last")") == "truncation: expected 'auto' or 'disabled', found 'last'");
}

TEST_CASE("texts to embed are one or several, as texts or as token ids", "[request]") {
  model_facts facts = model;
  facts.hidden_size = 64;
  const auto read = [&](const char* text) { return read_embedding_request(parse_json(text, {}), facts, {}); };
  const auto refusal = [&](const char* text) -> std::string {
    try {
      read(text);
    } catch (const api_error& error) { return error.what(); }
    return {};
  };
  const auto several =
      read(R"({"model":"fable","input":["a",[1,2]],"encoding_format":"base64","dimensions":8,"user":"x"})");
  CHECK((several.input.size() == 2 && std::get<1>(several.input[1]) == std::vector<std::int32_t>{1, 2}));
  CHECK((several.base64 && several.dimensions == 8u && !read(R"({"input":"a"})").base64));
  CHECK(read(R"({"input":[1,2]})").input.size() == 1);
  CHECK(refusal(R"({"input":["a",""]})") == "input[1]: expected a text, found an empty one");
  CHECK(refusal(R"({"input":[]})").starts_with("input: expected a string, token ids, or at most 2048 of these"));
  CHECK(refusal(R"({"input":"a","dimensions":65})") == "dimensions: expected an integer of 1 .. 64, found 65");
  CHECK(refusal(R"({"input":"a","encoding_format":"int8"})").starts_with("encoding_format: expected 'float'"));
  CHECK(refusal(R"({"input":[[]]})") == "input[0]: expected at least one token, found none");
  CHECK(refusal(R"({"input":"a","pooling":"mean"})").starts_with("pooling: expected a field that this server knows"));
}

TEST_CASE("regular expressions and grammars are forms, refused by name where they are none", "[request]") {
  CHECK(chat_of(R"(,"guided_regex":"[ab]+")").shape.form != nullptr);
  CHECK(chat_of(R"(,"structured_outputs":{"regex":"a"})").shape.form != nullptr);
  CHECK(chat_of(R"(,"grammar":"root ::= \"a\"")").form_rule != nullptr);
  CHECK(chat_of(R"(,"guided_grammar":"root ::= \"a\"")").shape.form->least_bytes() == 1);
  CHECK(refusal_of(R"(,"guided_regex":"(")").starts_with("guided_regex: expected a regular expression"));
  CHECK(refusal_of(R"(,"guided_regex":3)") == "guided_regex: expected a string, found 3");
  CHECK(refusal_of(R"(,"grammar":"root ::= x")") == "grammar: expected a definition of the rule 'x', found none");
  CHECK(refusal_of(R"(,"grammar":"root ::= root \"a\" | \"b\"")").starts_with("grammar: "));
  CHECK(refusal_of(R"(,"guided_regex":"a","guided_choice":["a"])").find("a second form") != std::string::npos);
}

TEST_CASE("suppressed tokens are biases, and need the host's draw", "[request]") {
  const auto found = chat_of(R"(,"logit_bias":{"7":5},"suppress_tokens":[7,9])");
  CHECK(found.shape.logit_bias ==
        std::vector<std::pair<std::int32_t, float>>{{7, 5.0f}, {7, shaping::never}, {9, shaping::never}});
  CHECK((chat_of(R"(,"suppress_tokens":[9])").shape.needed() && !chat_of(R"(,"suppress_tokens":[])").shape.needed()));
  CHECK(refusal_of(R"(,"suppress_tokens":[4096])") ==
        "suppress_tokens[0]: expected a token id of 0 .. 4095, found 4096");
}

TEST_CASE("a suffix stands after one text", "[request]") {
  const auto read = [](const char* text) { return read_completion_request(parse_json(text, {}), model, {}); };
  CHECK(read(R"({"prompt":"a","suffix":"b"})").suffix == "b");
  CHECK_FALSE(read(R"({"prompt":["a","b"],"suffix":""})").suffix);
  for (const char* bad :
       {R"({"prompt":["a","b"],"suffix":"c"})", R"({"prompt":[1],"suffix":"c"})", R"({"prompt":"a","suffix":1})"})
    CHECK(status_of([&] { read(bad); }) == 400);
}

TEST_CASE("what stays of a full context, and what a request may say of it", "[request]") {
  const auto shift_of = [](const std::string& more) {
    return chat_of(more + R"(,"context_shift":true)").shift.value();
  };
  const context_shift half = shift_of(R"(,"max_tokens":9)"), some = shift_of(R"(,"max_tokens":9,"n_keep":3)"),
                      whole = shift_of(R"(,"max_tokens":9,"n_keep":-1,"n_discard":7)");
  CHECK((half.kept(10, true, 64) == 1 && half.kept(10, false, 64) == 0 && some.kept(10, true, 64) == 4));
  CHECK((some.kept(2, true, 64) == 2 && whole.kept(10, true, 64) == 10 && whole.kept(63, true, 64) == 60));
  CHECK((half.dropped(64, 1) == 31 && whole.dropped(64, 10) == 7 && whole.dropped(64, 60) == 3));
  CHECK((half.dropped(8, 6) == 1 && half.dropped(8, 5) == 1));
  const std::vector<std::int32_t> all{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(shifted(all, 2, 3) == std::vector<std::int32_t>{0, 1, 5, 6, 7});
  for (std::uint32_t kept = 0; kept <= 60; ++kept) {
    const std::uint32_t dropped = half.dropped(64, kept);
    CHECK((dropped >= 1 && kept + dropped < 64));
  }
  CHECK_FALSE(chat_of(R"(,"context_shift":false,"n_keep":0,"n_discard":0)").shift);
  const std::string bound = "context_shift: expected max_tokens of 1 .. 1048576 beside it, since the context does not";
  CHECK(refusal_of(R"(,"context_shift":true)").starts_with(bound));
  CHECK(refusal_of(R"(,"context_shift":true,"max_tokens":1048577)").starts_with(bound));
  CHECK(refusal_of(R"(,"n_keep":1)") == "n_keep: expected context_shift: true beside it, found 1");
  CHECK(refusal_of(R"(,"n_discard":1)") == "n_discard: expected context_shift: true beside it, found 1");
  CHECK(refusal_of(R"(,"n_keep":509)") == "n_keep: expected an integer of -1 .. 508, found 509");
  CHECK(refusal_of(R"(,"n_discard":513)") == "n_discard: expected an integer of 0 .. 512, found 513");
}
