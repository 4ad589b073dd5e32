// SPDX-License-Identifier: MIT
// What needs no GPU, done twice by tests/windows/run: by a program for this system, and by one for Windows.
// Usage: reads_a_model MODEL.gguf FOLDER    prints what it found
//        reads_a_model program FOLDER      runs itself; its file is named as the folder is
//        reads_a_model echo WORD            prints what it was given
//        reads_a_model terminal FILE        writes in FILE what the terminal takes
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include "intaglio/families/file_types.hpp"
#include "intaglio/families/planned_family.hpp"
#include "intaglio/gpu/cache_file.hpp"
#include "intaglio/gpu/loader.hpp"
#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/leased_mapping.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/platform/console.hpp"
#include "intaglio/platform/path_text.hpp"
#include "intaglio/platform/program.hpp"

namespace {

using namespace intaglio;
namespace files = std::filesystem;

void say(const char* what, const std::string& found) { std::printf("%s: %s\n", what, found.c_str()); }

/// What `call` throws, its paths without folders: these are named differently.
template <class Call>
std::string refusal(const files::path& folder, Call&& call) {
  try {
    call();
  } catch (const error& problem) {
    std::string out = problem.what();
    for (std::size_t at = 0; (at = out.find(folder.string())) != std::string::npos;)
      out.erase(at, folder.string().size() + 1);
    return out;
  }
  return "nothing is refused";
}

void try_files(const files::path& folder) {
  const files::path path = folder / platform::path_of("\xC3\xA4 file");
  const std::string text = "some bytes";
  const auto bytes = std::as_bytes(std::span(text));
  {
    io::atomic_file file(path);
    file.write(bytes);
    say("before commit", files::exists(path) ? "there" : "not there");
    file.commit();
  }
  { io::atomic_file(path).write(bytes); }
  say("files after one that was not committed",
      std::to_string(std::distance(files::directory_iterator(folder), files::directory_iterator())));
  say("a file that is not there", refusal(folder, [&] { io::mapped_file(folder / "none"); }));
  say("a folder", refusal(folder, [&] { io::mapped_file{folder}; }));
  const io::mapped_file file(path);
  say("read", [&] {
    std::string out(4, ' ');
    file.read(5, std::as_writable_bytes(std::span(out)));
    return out;
  }());
  say("changed", file.changed() ? "yes" : "no");
  {
    std::string why;
    const auto lease = io::leased_mapping::of(file, 4096, why);
    say("leased", lease == nullptr ? why
                                   : std::string(reinterpret_cast<const char*>(lease->bytes().data()), text.size()) +
                                         " of " + std::to_string(lease->bytes().size()));
  }
  std::string content;
  say("cache not written", gpu::detail::write_whole_file((folder / "deep" / "er").string(),
                                                         (folder / "deep" / "er" / "cache").string(), text));
  say("cache not read", gpu::detail::read_whole_file((folder / "deep" / "er" / "cache").string(), content));
  say("cache", content);
#if defined(_WIN32)
  const char* const variable = "LOCALAPPDATA";  // which Wine sets at its own start
#else
  const char* const variable = "XDG_CACHE_HOME";
#endif
  platform::set_environment(variable, (folder / "caches").string());
  const std::string caches = gpu::default_cache_folder();
  say("caches", caches.starts_with(folder.string())
                    ? platform::path_of(caches.substr(folder.string().size())).generic_string()
                    : "elsewhere: " + caches);
  const platform::file_number lock = platform::lock_folder(folder);
  say("locked", lock >= 0 ? "yes" : "no");
  const platform::file_number again = platform::lock_folder(folder);
  say("locked again", again >= 0 ? "yes" : errno == EWOULDBLOCK ? "another has it" : "failed");
  if (lock >= 0) platform::close_file(lock);
}

/// A path of more than 260 characters, which Windows takes in one form alone.
void try_long_path(const files::path& folder) {
  files::path deep = folder;
  for (int i = 0; i < 4; ++i) deep /= platform::path_of("\xC3\xB6" + std::string(80, static_cast<char>('a' + i)));
  say("long folders", platform::make_private_folders(deep) ? "made" : platform::system_text(errno));
  const std::string text = "deep bytes";
  {
    io::atomic_file file(deep / "file");
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  say("at the end of a long path", std::to_string(io::mapped_file(deep / "file").size()) + " bytes");
}

/// This program once more, with a word that is not ASCII.
void try_program(const files::path& folder) {
  platform::child_program child;
  if (!child.start({platform::own_program().string(), "echo", "\xC3\xBC \"\xE9\xBC\xA0\\"}))
    return say("a program", platform::system_text(errno));
  std::string out;
  std::byte bytes[256];
  for (std::int64_t count = 1; count != 0;) {
    count = child.read(bytes, 60000);
    if (count < 0) child.end();
    if (count > 0) out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
  }
  const int status = child.wait();
  say("a program", out.substr(0, out.find_first_of("\r\n")) + ", status " + std::to_string(status));
  say("its name", platform::own_program().stem() == folder.filename() ? "that of the folder" : "another");
}

/// A terminal shows escape sequences as colours.
int report_terminal(const files::path& file) {
  std::string out = platform::is_terminal(platform::standard_output) ? "a terminal" : "no terminal";
#if defined(_WIN32)
  DWORD mode = 0;
  ::GetConsoleMode(::GetStdHandle(STD_OUTPUT_HANDLE), &mode);
  out += (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0 ? ", colours" : ", no colours";
  out += ::GetConsoleOutputCP() == CP_UTF8 ? ", UTF-8" : ", another code page";
#else
  out += ", colours, UTF-8";
#endif
  gpu::detail::write_whole_file(file.parent_path().string(), file.string(), out + "\n");
  return 0;
}

void try_model(const files::path& path) {
  const io::checkpoint model = io::checkpoint::open(path);
  say("tensors", std::to_string(model.tensors().size()));
  const io::tokenizer tokens(*model.vocabulary(), model.config().vocab_size);
  std::string list;
  for (const auto each : tokens.encode("Once upon a time, h\xC3\xA9!")) list += " " + std::to_string(each);
  say("tokens", list);
  const auto planned =
      families::planned_of(model.config(), families::types_of(model).types, "", plan::profiles::portable, 64);
  say("plan", std::to_string(planned.table().hash));
}

}  // namespace

int main(int count, char** arguments) try {
  platform::console given(count, arguments);
  if (given.count() != 3) return 2;
  const std::string first = given.words()[1], second = given.words()[2];
  if (first == "echo") return std::printf("%s\n", second.c_str()) < 0 ? 1 : 0;
  if (first == "terminal") return report_terminal(platform::path_of(second));
  const files::path folder = platform::path_of(second);
  if (first == "program") return try_program(folder), 0;
  try_files(folder);
  try_long_path(folder);
  try_model(platform::path_of(first));
  std::string problem;
  say("a library that is not there",
      platform::library_function("no such library", "f", problem) == nullptr ? "none" : "found");
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
