// SPDX-License-Identifier: MIT
// What needs no GPU, done twice by tests/windows/run: by a program for this system, and by one for Windows.
// Usage: reads_a_model MODEL.gguf FOLDER    prints what it found
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
  const files::path path = folder / "a file";
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
  const platform::file_number lock = platform::lock_folder(folder);
  say("locked", lock >= 0 ? "yes" : "no");
  const platform::file_number again = platform::lock_folder(folder);
  say("locked again", again >= 0 ? "yes" : errno == EWOULDBLOCK ? "another has it" : "failed");
  if (lock >= 0) platform::close_file(lock);
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
  if (count != 3) return 2;
  try_files(arguments[2]);
  try_model(arguments[1]);
  std::string problem;
  say("a library that is not there",
      platform::library_function("no such library", "f", problem) == nullptr ? "none" : "found");
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
