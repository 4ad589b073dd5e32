// SPDX-License-Identifier: MIT
#include "../../examples/serve/model_set.hpp"

#include <catch2/catch_test_macros.hpp>
#include <intaglio/io/byte_level_bpe.hpp>
#include <intaglio/io/jinja.hpp>
#include <intaglio/io/unicode.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace intaglio;
using namespace intaglio::serve;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

const language& any_words() {
  static const language words = [] {
    io::vocabulary file;
    file.source = "model.gguf", file.architecture = "llama", file.model = "gpt2", file.pre_tokenizer = "llama-bpe";
    for (const char32_t c : io::byte_alphabet) io::append_utf8(file.tokens.emplace_back(), c);
    file.token_types.assign(256, 1);
    file.tokens.push_back("<end>"), file.token_types.push_back(3);
    file.eos_id = 256, file.add_bos = false;
    return language(file, 257, io::jinja_renderer(), "chatml");
  }();
  return words;
}

/// Loads by asking for as much memory as its file has bytes; a file of the name broken fails.
class fake_engine : public token_engine {
 public:
  using room = std::function<void(std::uint64_t, std::uint64_t)>;
  fake_engine(const model_set::file& of, room make_room, std::atomic<int>& loads, std::atomic<int>& ends)
      : of_(of), make_room_(std::move(make_room)), loads_(loads), ends_(ends) {
    facts_.id = of.name;
  }
  ~fake_engine() override {
    if (thread_.joinable()) thread_.join();
    ++ends_;
  }
  void start() override {
    thread_ = std::thread([this] {
      try {
        make_room_(fs::file_size(of_.path), 80);
        if (of_.name == "broken") throw std::runtime_error("no weights");
        ++loads_;
        state_ = engine_state::ready;
      } catch (const std::exception& problem) {
        what_ = problem.what();
        state_ = engine_state::failed;
      }
    });
  }
  engine_status status() const override {
    const engine_state state = state_;
    return {state, 1, state == engine_state::failed ? what_ : std::string()};
  }
  const language* words() const override { return state_ == engine_state::ready ? &any_words() : nullptr; }
  const model_facts* facts() const override { return state_ == engine_state::ready ? &facts_ : nullptr; }
  const engine_gauges& gauges() const override { return gauges_; }
  std::string plan_page() const override { return {}; }
  std::string device() const override { return {}; }
  void submit(std::vector<std::shared_ptr<generation>>) override {}
  void predict(question) override {}
  void embed(embedding) override {}
  void order(slot_order) override {}
  void refuse_more() override {}
  void end_all() override {}

 private:
  model_set::file of_;
  room make_room_;
  std::atomic<int>&loads_, &ends_;
  std::atomic<engine_state> state_{engine_state::loading};
  std::string what_;
  model_facts facts_;
  engine_gauges gauges_;
  std::thread thread_;
};

struct folder_of_models {
  folder_of_models() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~folder_of_models() { fs::remove_all(path); }
  void add(const std::string& name, std::size_t bytes = 30) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << std::string(bytes, 'x');
  }
  model_set set(std::uint64_t memory, bool any_name = false) {
    return model_set(path.string(), memory, any_name, 4, [this](const model_set::file& of, auto make_room) {
      return std::make_unique<fake_engine>(of, std::move(make_room), loads, ends);
    });
  }
  fs::path path = fs::temp_directory_path() / "intaglio-model-set-test";
  std::atomic<int> loads{0}, ends{0};
};

using served = std::shared_ptr<const served_model>;

/// Looks until the model answers.
served wait_for(model_set::visit& visit) {
  for (int i = 0; i < 500; ++i) {
    if (served found = visit.look()) return found;
    std::this_thread::sleep_for(2ms);
  }
  return {};
}
served wait_for(model_set& of, const std::optional<std::string>& name) { return wait_for(*of.ask(name)); }

template <class Call>
std::pair<int, std::string> refusal_of(Call&& call) {
  try {
    call();
  } catch (const api_error& error) { return {error.status, error.what()}; }
  return {200, {}};
}
std::string states(model_set& of) {
  std::string out;
  for (const listed_model& each : of.list()) out += each.id + ' ' + each.state + ' ';
  return out;
}

}  // namespace

TEST_CASE("models of a folder are its GGUF files and folders with a config", "[model_set]") {
  folder_of_models in;
  for (const char* each :
       {"b.gguf", "a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "hf/config.json", "one/x.gguf", "two/x.gguf",
        "two/y.gguf", "notes.txt", ".hidden.gguf", "b/params.json", "mmproj-b.gguf", "hub/config.json", "hub/z.gguf"})
    in.add(each);
  std::string names;
  for (const auto& each : model_set::scan(in.path.string()))
    names += each.name + '=' + fs::path(each.path).filename().string() + ' ';
  CHECK(names == "a=a-00001-of-00002.gguf b=b b.gguf=b.gguf hf=hf hub=z.gguf one=x.gguf ");
  CHECK_THROWS_AS(model_set((in.path / "none").string(), 0, false, 1, {}), std::runtime_error);
  CHECK_THROWS_AS(model_set((in.path / "two/x.gguf").string(), 0, false, 1, {}), std::runtime_error);
}

TEST_CASE("models are loaded when they are asked for, and the least recently used is unloaded", "[model_set]") {
  folder_of_models in;
  for (const char* each : {"a.gguf", "b.gguf", "c.gguf"}) in.add(each);
  model_set models = in.set(70);  // two of them
  CHECK((states(models) == "a unloaded b unloaded c unloaded " && in.loads == 0));
  CHECK(wait_for(models, "a")->facts.id == "a");
  CHECK(wait_for(models, "b"));
  CHECK(wait_for(models, "a"));
  CHECK((states(models) == "a loaded b loaded c unloaded " && in.loads == 2));
  CHECK(models.memory() == std::pair<std::uint64_t, std::uint64_t>{60, 70});
  CHECK(wait_for(models, "c"));
  CHECK((states(models) == "a loaded b unloaded c loaded " && in.ends == 1));
}

TEST_CASE("a model that answers is not unloaded; other loads wait for it, and it accepts no further use",
          "[model_set]") {
  folder_of_models in;
  for (const char* each : {"a.gguf", "b.gguf"}) in.add(each);
  model_set models = in.set(40);
  served a = wait_for(models, "a");
  const auto b = models.ask("b");
  for (int i = 0; i < 100; ++i) CHECK_FALSE(b->look());
  for (int i = 0; i < 500 && models.ask("a")->look(); ++i) std::this_thread::sleep_for(2ms);
  const auto late = models.ask("a");
  CHECK_FALSE(late->look());
  a.reset();
  served answers = wait_for(*b);
  REQUIRE(answers);
  CHECK_FALSE(late->look());  // begins to load: it waits for b in turn
  answers.reset();
  CHECK(b->look());  // holds its model as long as it lives
}

TEST_CASE("refusals of models name what there is", "[model_set]") {
  folder_of_models in;
  for (const char* each : {"a.gguf", "broken.gguf"}) in.add(each);
  in.add("large.gguf", 90);
  model_set models = in.set(70);
  const auto [unknown, which] = refusal_of([&] { models.ask("x"); });
  CHECK((unknown == 404 && which == "model: expected one of 'a', 'broken', 'large', found 'x'"));
  CHECK(refusal_of([&] { models.ask({}); }).first == 400);
  for (int i = 0; i < 2; ++i) {  // each request tries anew
    const auto [status, text] = refusal_of([&] { wait_for(models, "broken"); });
    CHECK((status == 500 && text == "model: 'broken' could not be loaded: no weights"));
  }
  CHECK(refusal_of([&] { wait_for(models, "large"); }).second.find("--memory") != std::string::npos);
  CHECK(wait_for(models, "a"));
  in.add("new.gguf");
  CHECK(wait_for(models, "new"));
  std::vector<std::shared_ptr<model_set::visit>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(models.ask("a")), waiting.back()->look();
  CHECK(refusal_of([&] { models.ask("a"); }).first == 429);
  models.refuse_more();
  CHECK(refusal_of([&] { models.ask("a"); }).first == 503);
}

TEST_CASE("any name means the one model where that is asked for", "[model_set]") {
  folder_of_models in;
  in.add("a.gguf");
  model_set strict = in.set(0), lenient = in.set(0, true);
  CHECK(refusal_of([&] { strict.ask("gpt-4"); }).first == 404);
  CHECK(wait_for(strict, {})->facts.id == "a");
  CHECK(strict.memory().second == 70);  // seven eighths of what was there
  CHECK(wait_for(lenient, "gpt-4")->facts.id == "a");
  in.add("b.gguf");
  CHECK(refusal_of([&] { lenient.ask("gpt-4"); }).first == 404);
}

TEST_CASE("many ask for many models at once, and each is answered", "[model_set]") {
  folder_of_models in;
  for (const char* each : {"a.gguf", "b.gguf", "c.gguf", "d.gguf"}) in.add(each);
  model_set models(in.path.string(), 70, false, 100, [&](const model_set::file& of, auto make_room) {
    return std::make_unique<fake_engine>(of, std::move(make_room), in.loads, in.ends);
  });
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k)
        if (wait_for(models, std::string(1, static_cast<char>('a' + (i * 7 + k * 3) % 4)))) ++answered;
    });
  for (auto& each : clients) each.join();
  CHECK(answered == 160);
  CHECK(models.memory().first <= 70);
}
