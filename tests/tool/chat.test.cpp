// SPDX-License-Identifier: MIT
// chat: its commands by a pipe, line editing, history and Ctrl-C on a terminal of its own.
#include "tool/program.hpp"

#include <pty.h>

#include <poll.h>
#include <sys/resource.h>

using namespace tool_test;

namespace {

/// The tool on a pseudo-terminal.
class terminal {
 public:
  terminal(std::vector<std::string> arguments, const std::vector<std::pair<std::string, std::string>>& environment) {
    arguments.insert(arguments.begin(), paths::tool);
    std::vector<char*> words;
    for (auto& each : arguments) words.push_back(each.data());
    words.push_back(nullptr);
    winsize size{};
    size.ws_row = 40, size.ws_col = 200;
    child_ = ::forkpty(&side_, nullptr, nullptr, &size);
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
  }
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(side_);
  }

  void type(const std::string& text) {
    REQUIRE(::write(side_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  /// Reads until the text has come after what was awaited before.
  void await(const std::string& text) {
    while (out_.find(text, seen_) == std::string::npos) {
      INFO("awaited: " << text << "\nfound: " << out_.substr(seen_));
      REQUIRE(read_more());
    }
    seen_ = out_.find(text, seen_) + text.size();
  }
  /// @return as outcome::code
  int end() {
    while (read_more()) {}
    int status = 0;
    REQUIRE(::waitpid(child_, &status, 0) == child_);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  const std::string& out() const { return out_; }

 private:
  bool read_more() {
    pollfd input{side_, POLLIN, 0};
    if (::poll(&input, 1, 240'000) != 1) return false;
    char piece[4096];
    const ssize_t count = ::read(side_, piece, sizeof piece);
    if (count > 0) out_.append(piece, static_cast<std::size_t>(count));
    return count > 0;
  }
  pid_t child_ = -1;
  int side_ = -1;
  std::string out_;
  std::size_t seen_ = 0;
};

outcome chat(const std::string& input, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"chat", "-n", "12"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return call(arguments, {.environment = {}, .input = input, .stdout_path = {}});
}

}  // namespace

TEST_CASE("a saved chat goes on as if it had not been interrupted") {
  const temporary_folder folder;
  const std::string file = folder / "fox.session", first = "Tell me a story about a fox.\n", second = "And \\\nthen?\n";
  const outcome whole = chat("/system Be brief.\n" + first + "/save " + file + "\n" + second + "/retry\n/stats\n",
                             {"--temperature", "0.8", "--seed", "5"});
  CAPTURE(whole.err);
  REQUIRE(whole.code == 0);
  CHECK(contains(whole.err, "kept in " + file));
  CHECK(contains(whole.err, "seed 6"));
  CHECK(contains(whole.err, "last reply: 12 tokens"));
  CHECK(contains(whole.err, "by kernel: "));
  CHECK_FALSE(contains(whole.out + whole.err, "\x1b"));  // no colours where there is no terminal
  const std::size_t line = whole.out.find('\n') + 1;
  const outcome rest = chat("/load " + file + "\n\"\"\"\nAnd \nthen?\n\"\"\"\n/retry\n/system\n/stats\n");
  CAPTURE(rest.err);
  CHECK(rest.code == 0);
  CHECK(rest.out == whole.out.substr(line));
  CHECK(contains(rest.err, "2 turns, "));
  CHECK(contains(rest.err, "system message: Be brief."));

  std::string bytes = content(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write(file, bytes);
  const outcome bad = chat("/load " + file + "\n/load\n/save /dev/null\n/save " + folder.path().string() +
                               "/no/s\n/model nowhere.gguf\n/model\n/nonsense\n/help\n" + first,
                           {"--temperature", "0.8", "--seed", "5", "--system", "Be brief."});
  CAPTURE(bad.err);
  CHECK(bad.code == 0);
  CHECK(bad.out == whole.out.substr(0, line));  // what was refused changed nothing
  for (const std::string sentence :
       {"fox.session: offset 0x", "checksum of the file: expected", "/load needs the name of a file",
        "/dev/null: cannot be replaced", "/no/s", "nowhere.gguf: no such file", "fable (", "unknown: /nonsense",
        "/retry             another reply"})
    CHECK(contains(bad.err, sentence));
}

TEST_CASE("how a chat draws is shown and set between messages") {
  const outcome found = chat(
      "/set\n/set temperature 0\n/set tokens 5\n/set top_k 40\n/set\nTell me a story.\n/stats\n"
      "/set temperature hot\n/set top_p 2\n/set tokens 0\n/set mood 1\n/set temprature 1\n/sett\n",
      {"--temperature", "0.8", "--seed", "5"});
  CAPTURE(found.err);
  CHECK(found.code == 0);
  for (const std::string sentence :
       {"temperature 0.80, top_k 0", "seed 5, tokens 12", "temperature 0.00, top_k 40", "tokens 5, markdown on",
        "last reply: 5 tokens", "temperature: expected a number", "top_p", "tokens: expected at least 1",
        "found 'mood'\n", "found 'temprature'; did you mean temperature?", "did you mean /set?"})
    CHECK(contains(found.err, sentence));
}

TEST_CASE("the oldest messages leave a full context, and the user is notified") {
  std::string tale, input;
  for (int i = 0; i < 8; ++i) tale += " Then the fox met a mouse, a bear and a hen on the way to the market.";
  for (int i = 0; i < 3; ++i) input += "Story number " + std::to_string(i) + "." + tale + "\n";
  const outcome found =
      call({"chat", "--temperature", "0", "-n", "6"}, {.environment = {}, .input = input, .stdout_path = {}});
  CAPTURE(found.err);
  CHECK(found.code == 0);
  CHECK(contains(found.err, "the context has 512 tokens: the oldest 2 messages are left out from here on"));
  CHECK(std::count(found.out.begin(), found.out.end(), '\n') >= 3);
}

TEST_CASE("chat on a terminal: edited lines, history of earlier runs, Ctrl-C") {
  const temporary_folder folder;
  const std::vector<std::pair<std::string, std::string>> environment{{"XDG_STATE_HOME", folder.path().string()},
                                                                     {"TERM", "xterm"}};
  const std::string start = "\x1b[?2004h";
  {
    terminal to({"chat", "--temperature", "0"}, environment);
    to.await(start);
    to.type("Tell me a stry about a mouse.");
    to.type(std::string(17, '\x02') +
            "o"
            "\x05\r");  // back, the letter that is missing, to the end
    to.await("Once upon");
    to.type("\x03");  // stops the reply
    to.await(start);
    to.type("/sta\t\r");  // completed
    to.await("last reply: ");
    to.await(start);
    to.type("/set to\t");  // begins two names: both are shown
    to.await("tokens  top_k  top_p");
    to.type("k\t7\r/set\r");
    to.await("tokens 7");
    to.await(start);
    to.type("\x1b[200~two\nlines\x1b[201~\x15never sent\x15/model\r");  // a paste is one message; Ctrl-U takes it back
    to.await("fable");
    to.await(start);
    to.type("\x03");
    to.await("Ctrl-C again");
    to.await(start);
    to.type("\x1b[200~Say\nwhy.\x1b[201~ \xc3\xbc\r");
    to.await("\n");
    to.await(start);
    to.type("\x04");
    CHECK(to.end() == 0);
    CHECK(contains(to.out(), "\x1b["));
  }
  CHECK(content(folder / "intaglio/chat_history") ==
        "Tell me a story about a mouse.\n/stats \n/set tokens 7\n/set\n/model\nSay\u23cewhy. \u00fc\n");
  {
    terminal to({"chat", "--temperature", "0", "-n", "3"}, environment);
    to.await(start);
    to.type("\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\r");
    to.await("Tell me a story about a mouse.");
    to.await("Once upon");
    to.await(start);
    to.type("\x03");
    to.await("Ctrl-C again");
    to.type("\x03");
    CHECK(to.end() == 130);
  }
}

TEST_CASE("a chat that is killed while it is stored, or has no room for it, leaves the stored one whole") {
  const temporary_folder folder;
  const std::string file = folder / "fox.session", tell = "Tell me a story about a fox.\n";
  REQUIRE(chat(tell + "/save " + file + "\n").code == 0);
  const std::string whole = content(file);
  const auto is_whole = [&] { return chat("/load " + file + "\n/system\n"); };

  // A limit of the process replaces a full disk: both refuse the write with a code.
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::rlimit small = before;
  small.rlim_cur = whole.size() - 100;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const outcome full = chat(tell + "/save " + file + "\n" + tell);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CAPTURE(full.err);
  CHECK(full.code == 0);  // and it goes on
  CHECK(contains(full.err, "cannot write: File too large"));
  CHECK(content(file) == whole);

  std::string input = tell;
  for (int i = 0; i < 2000; ++i) input += "/save " + file + "\n";
  write(folder / "input", input);
  int killed = 0;
  for (int pause = 5; pause <= 80; pause += 15) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::dup2(::open((folder / "input").c_str(), O_RDONLY), 0);
      for (const int stream : {1, 2}) ::dup2(::open("/dev/null", O_WRONLY), stream);
      ::execl(paths::tool, paths::tool, "chat", "-n", "12", nullptr);
      ::_exit(127);
    }
    const auto stored = fs::last_write_time(file);
    for (int i = 0; i < 6000 && fs::last_write_time(file) == stored; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    const outcome loaded = is_whole();
    CAPTURE(loaded.err);
    CHECK(contains(loaded.err, "2 turns, "));
  }
  CHECK(killed != 0);
}
