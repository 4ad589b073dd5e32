// SPDX-License-Identifier: MIT
// Models from the net, by a server on this machine that breaks off, lies about lengths and stalls (model_server.py).
#include "../io/gguf_image.hpp"
#include "tool/program.hpp"

#include <sys/resource.h>

using namespace tool_test;

namespace {

const std::string fable_path = in_source("examples/tool/fable.gguf");
constexpr const char* fable_sha256 = "30982fc59f6b4159596546262f8baa2458d629dcc00ae0eb0cd49606f6641617";

class model_server {
 public:
  model_server() {
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      ::execlp("python3", "python3", in_source("tests/tool/model_server.py").c_str(), fable_path.c_str(),
               (folder_ / "port").c_str(), (folder_ / "log").c_str(), nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 3000 && !fs::exists(folder_ / "port"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    port_ = content(folder_ / "port");
    REQUIRE_FALSE(port_.empty());
  }
  model_server(const model_server&) = delete;
  model_server& operator=(const model_server&) = delete;
  ~model_server() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  std::string address(const std::string& kind) const { return "http://127.0.0.1:" + port_ + "/" + kind + ".gguf"; }
  /// Requests since the last call: "PATH RANGE IF_RANGE" a line.
  std::string log() {
    const std::string all = content(folder_ / "log");
    std::string out = all.substr(read_);
    read_ = all.size();
    return out;
  }
  outcome with(std::vector<std::string> arguments, std::vector<std::pair<std::string, std::string>> more = {}) const {
    more.insert(more.end(), {{"XDG_CACHE_HOME", cache().string()}, {"INTAGLIO_STALL_SECONDS", "1"}});
    return call(std::move(arguments), {.environment = more, .input = {}, .stdout_path = {}});
  }
  outcome fetch(const std::string& address) const { return with({"inspect", address, "--json"}); }
  fs::path cache() const { return folder_ / "cache"; }
  /// Files of the repository someone/tales.
  fs::path hub() const { return folder_ / "hub"; }
  std::string address() const { return "http://127.0.0.1:" + port_; }
  /// What "holds" waits for.
  void let_go() const { write(folder_ / "let_go", ""); }

 private:
  temporary_folder folder_;
  std::string port_;
  std::size_t read_ = 0;
  pid_t child_ = -1;
};

}  // namespace

TEST_CASE("a model by its address: fetched once, whatever the server does on the way") {
  model_server server;
  const std::string expected = call({"inspect", fable_path, "--json"}).json()["tensors"].dump();
  for (const std::string kind : {"good", "breaks", "stalls", "busy", "changes", "plain", "linked"}) {
    CAPTURE(kind);
    server.log();
    const outcome got =
        server.fetch(server.address(kind) + (kind == "good" ? "#sha256=" + std::string(fable_sha256) : ""));
    CAPTURE(got.err);
    REQUIRE(got.code == 0);
    CHECK(got.json()["tensors"].dump() == expected);
    CHECK(contains(got.err, fable_sha256));
    const std::string requests = server.log();
    if (kind == "breaks")
      CHECK(requests ==
            "/breaks.gguf None None\n/breaks.gguf bytes=1000000- \"first\"\n/breaks.gguf bytes=2000000- "
            "\"first\"\n/breaks.gguf bytes=3000000- \"first\"\n");
    if (kind == "stalls") CHECK(contains(got.err, "no data came for a while at 500.0 kB"));
    CHECK(server.fetch(server.address(kind)).json()["tensors"].dump() == expected);
    CHECK(server.log().empty());  // the second time from the cache
  }
  const outcome story = server.with({"run", "-m", server.address("good"), "--prompt", "Once", "-n", "2"});
  CHECK(story.code == 0);

  const auto list = server.with({"cache", "list", "--json"}).json();
  REQUIRE(list.size() == 7);
  CHECK(list[0]["address"] == server.address("breaks"));
  CHECK(list[0]["whole"] == true);
  CHECK(list[0]["sha256"] == fable_sha256);
  CHECK(contains(server.with({"cache", "list"}).out, server.address("stalls")));
  CHECK(server.with({"cache", "delete", server.address("good")}).code == 0);
  CHECK(server.with({"cache", "delete", server.address("good")}).code == 2);
  CHECK(server.with({"cache", "delete"}).code == 2);
  CHECK(server.with({"cache", "list", "--json"}).json().size() == 6);
  CHECK(server.with({"cache", "delete", "--all"}).code == 0);
  CHECK(server.with({"cache", "list", "--json"}).json().empty());
  CHECK(fs::is_empty(server.cache() / "intaglio/models"));

  // The cache by the names that other tools have.
  const outcome pulled = server.with({"pull", server.address("good")});
  REQUIRE(pulled.code == 0);
  CHECK(call({"inspect", pulled.out.substr(0, pulled.out.find('\n')), "--json"}).json()["tensors"].dump() == expected);
  CHECK(contains(server.with({"list"}).out, server.address("good")));
  CHECK(server.with({"rm", server.address("good")}).code == 0);
  CHECK(server.with({"rm", server.address("good")}).code == 2);
  CHECK(server.with({"list", "--json"}).json().empty());
}

TEST_CASE("a download that cannot be right is refused, and says why") {
  model_server server;
  const std::string other(64, '0');
  const std::vector<std::pair<std::string, std::string>> wrong{
      {server.address("missing"), "the server answered 404"},
      {server.address("circle"), "expected at most 5 redirects, found more"},
      {server.address("away"), "redirects to 'http://192.0.2.1/model.gguf': expected an https address"},
      {server.address("short"), "length of the file"},
      {server.address("lies"), "length of the file: expected 4"},
      {server.address("grows"), "as the server said before, found 4"},
      {server.address("deaf"), "the connection broke off"},
      {server.address("digest"), std::string("SHA-256 of the file: expected ")},
      {server.address("good") + "#sha256=" + other,
       "SHA-256 of the file: expected " + other + ", found " + fable_sha256},
      {server.address("good") + "#sha256=12", "expected after # of an address sha256= and 64 digits"},
      {"http://192.0.2.1/model.gguf", "expected an https address, or http to this machine"},
      {"http://localhost@192.0.2.1/model.gguf", "expected an https address, or http to this machine"},
      {"http://127.0.0.1.example.org/model.gguf", "expected an https address, or http to this machine"},
      {"http://me@127.0.0.1/model.gguf", "expected an address without a user"},
      {"https://", "expected an address https://HOST/PATH"}};
  for (const auto& [address, sentence] : wrong) {
    CAPTURE(address);
    const outcome got = server.fetch(address);
    CAPTURE(got.err);
    CHECK((got.code == 1 || got.code == 2));
    CHECK(got.out.empty());
    CHECK(contains(got.err, sentence));
  }
  // What was refused for its checksum does not stay.
  for (const auto& each : server.with({"cache", "list", "--json"}).json())
    if (each["address"] == server.address("good") || each["address"] == server.address("digest"))
      CHECK(each["bytes"] == 0);
}

TEST_CASE("a download that was stopped, or had no room, goes on in the next run") {
  model_server server;
  const temporary_folder folder;
  // A limit of the process replaces a full disk: both refuse the write with a code.
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::rlimit small = before;
  small.rlim_cur = 1'500'000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const outcome full = server.fetch(server.address("good"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(full.code == 1);
  CHECK(contains(full.err, "good.gguf.part: offset 0x16e360: cannot write: File too large"));
  server.log();
  const outcome rest = server.fetch(server.address("good"));
  CAPTURE(rest.err);
  CHECK(rest.code == 0);
  CHECK(server.log() == "/good.gguf bytes=1500000- \"first\"\n");

  for (const int signal : {SIGINT, SIGKILL}) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::setenv("XDG_CACHE_HOME", server.cache().c_str(), 1);
      const int none = ::open("/dev/null", O_RDWR);
      ::dup2(none, 1);
      ::dup2(none, 2);
      ::execl(paths::tool, paths::tool, "inspect", server.address("crawls").c_str(), nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 3000 && !contains(server.with({"cache", "list"}).out, "1.0 MB"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(child, signal);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (signal == SIGINT) CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 130));
    const auto list = server.with({"cache", "list", "--json"}).json();
    REQUIRE(list.size() == 2);
    CHECK(list[0]["whole"] == false);
    CHECK(list[0]["bytes"] >= 1'000'000);
  }
}

TEST_CASE("a model is loaded while its file still comes, and reported when all of it was right") {
  model_server server;
  const temporary_folder folder;
  const std::string expected = call({"run", "--prompt", "Once", "-n", "8", "--temperature", "0"}).out;
  const std::string out = folder / "out";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("XDG_CACHE_HOME", server.cache().c_str(), 1);
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0666), 1);
    ::dup2(::open("/dev/null", O_WRONLY), 2);
    ::execl(paths::tool, paths::tool, "run", "-m", server.address("holds").c_str(), "--prompt", "Once", "-n", "8",
            "--temperature", "0", nullptr);
    ::_exit(127);
  }
  // Half of the file is there, and the device is open.
  const fs::path maps = "/proc/" + std::to_string(child) + "/maps";
  const auto loads = [&] { return contains(content(maps), "libvulkan_"); };
  const auto half = [&] { return contains(server.with({"cache", "list"}).out, "2.0 MB"); };
  for (int i = 0; i < 3000 && !(loads() && half()); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(loads());
  CHECK(half());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(content(out).empty());
  server.let_go();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(content(out) == expected);

  // What came before the break is of another file: all is read anew. A wrong checksum is known at the last byte, and
  // nothing was said by then.
  for (const std::string kind : {"breaks", "changes", "plain"}) {
    CAPTURE(kind);
    const outcome got =
        server.with({"run", "-m", server.address(kind), "--prompt", "Once", "-n", "8", "--temperature", "0"});
    CAPTURE(got.err);
    CHECK(got.code == 0);
    CHECK(got.out == expected);
  }
  const outcome wrong = server.with({"run", "-m", server.address("digest"), "--prompt", "Once", "-n", "8"});
  CHECK(wrong.code == 1);
  CHECK(wrong.out.empty());
  CHECK(contains(wrong.err, "SHA-256 of the file: expected "));
}

TEST_CASE("a model by its name on the hub: the file that is meant, from where the hub says it is") {
  model_server server;
  fs::create_directory(server.hub());
  const auto of_hub = [&](const std::string& name, std::vector<std::pair<std::string, std::string>> more = {}) {
    more.emplace_back("HF_ENDPOINT", server.address() + "/");
    return server.with({"inspect", "hf:" + name, "--json"}, std::move(more));
  };
  for (const char* other :
       {"README.md", "mmproj-F16.gguf", "Tales-UD-Q4_K_M.gguf", "Tales-Q8_0.gguf", "Tales-Q4_K_S.gguf"})
    write(server.hub() / other, "no model");
  fs::copy_file(fable_path, server.hub() / "Tales-Q4_K_M.gguf");
  fs::copy_file(fable_path, server.hub() / "Tales-TQ1_0.gguf");
  const std::string expected = call({"inspect", fable_path, "--json"}).json()["tensors"].dump();

  for (const auto& [name, file] : {std::pair<std::string, std::string>{"someone/tales", "Tales-Q4_K_M.gguf"},
                                   {"someone/tales:q4_k_m", ""},
                                   {"someone/tales:TQ1_0", "Tales-TQ1_0.gguf"}}) {
    CAPTURE(name);
    server.log();
    const outcome got = of_hub(name);
    CAPTURE(got.err);
    REQUIRE(got.code == 0);
    CHECK(got.json()["tensors"].dump() == expected);
    const std::string requests = server.log();
    CHECK(contains(requests, "/api/models/someone/tales None None\n"));
    if (file.empty()) CHECK_FALSE(contains(requests, "/stored/"));  // the cache has it
    else CHECK(contains(requests, "/someone/tales/resolve/main/" + file + " None None\n/stored/" + file));
  }
  CHECK(server.with({"run", "-hf", "someone/tales", "--prompt", "Once", "-n", "2"}, {{"HF_ENDPOINT", server.address()}})
            .code == 0);

  for (const auto& [name, sentence] :
       {std::pair<std::string, std::string>{"someone/tales:Q4", "expected a GGUF file that names Q4, found "},
        {"someone/tales:Q5_K_M", "expected a GGUF file that names Q5_K_M, found Tales-"},
        {"someone/else", "the server answered 404"},
        {"tales", "expected OWNER/REPO or OWNER/REPO:QUANTISATION, found 'tales'"},
        {"../tales", "expected OWNER/REPO or OWNER/REPO:QUANTISATION"},
        {"someone/tales:", "expected OWNER/REPO or OWNER/REPO:QUANTISATION"}}) {
    CAPTURE(name);
    const outcome got = of_hub(name);
    CAPTURE(got.err);
    CHECK((got.code == 1 || got.code == 2));
    CHECK(contains(got.err, sentence));
  }

  // A split model: all its parts, and then the first is opened.
  const auto whole = gguf_image::of(fable_path);
  const auto half = whole.tensors.begin() + static_cast<std::ptrdiff_t>(whole.tensors.size() / 2);
  for (std::uint16_t part = 0; part < 2; ++part) {
    gguf_image image;
    if (part == 0) image.keys = whole.keys;
    image.set("split.no", part);
    image.set("split.count", std::uint16_t{2});
    image.set("split.tensors.count", static_cast<std::int32_t>(whole.tensors.size()));
    if (part == 0) image.tensors.assign(whole.tensors.begin(), half);
    else image.tensors.assign(half, whole.tensors.end());
    write_bytes(server.hub() / ("Tales-BF16-0000" + std::to_string(part + 1) + "-of-00002.gguf"), image.build());
  }
  const outcome split = of_hub("someone/tales:BF16");
  CAPTURE(split.err);
  REQUIRE(split.code == 0);
  CHECK(split.json()["tensors"].size() == whole.tensors.size());

  // A token is for the hub, and not for where the files are.
  write(server.hub() / "private", "");
  CHECK(contains(of_hub("someone/tales:Q8_0").err, "the server answered 401"));
  CHECK(contains(of_hub("someone/tales:Q8_0", {{"HF_TOKEN", "secret"}}).err, "Tales-Q8_0.gguf"));

  // Where the hub does not answer, what is cached serves; other names do not.
  const auto alone = [&](const std::string& name) {
    return server.with({"inspect", "hf:" + name, "--json"}, {{"HF_ENDPOINT", server.address()}, {"HF_TOKEN", "wrong"}});
  };
  const outcome cached = alone("someone/tales");
  CHECK(cached.code == 0);
  CHECK(contains(cached.err, "taking what the cache has"));
  CHECK(alone("someone/others").code != 0);
}
