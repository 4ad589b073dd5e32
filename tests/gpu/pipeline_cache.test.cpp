// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/scale_add.hpp"
#include "temporary_folder.hpp"

#include <intaglio/gpu/pipeline.hpp>

#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <sstream>

using namespace intaglio;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

void write(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

std::size_t files_in(const std::string& folder) {
  std::size_t out = 0;
  for (const auto& each : std::filesystem::directory_iterator(folder)) out += each.exists() ? 1 : 0;
  return out;
}

void build_one(const gpu::device& on, gpu::pipeline_cache& cache) {
  const gpu::specialization constants[] = {{0, 64}};
  const gpu::pipeline_description one{
      .name = "scale_add", .spirv = scale_add_spirv(), .constants = constants, .push_constant_bytes = 24};
  (void)gpu::build_pipelines(on, {&one, 1}, &cache);
}

}  // namespace

TEST_CASE("a stored cache is found again with its note") {
  const own_device checked;
  const temporary_folder folder;
  {
    gpu::pipeline_cache cache(checked.device, folder / "made/when/needed", 7);
    CHECK_FALSE(cache.loaded());
    CHECK(cache.warning().empty());
    build_one(checked.device, cache);
    CHECK(cache.hits() + cache.misses() == 1);
    cache.set_note("kernels proved");
    cache.store();
    CHECK(cache.warning().empty());
    CHECK(files_in(folder / "made/when/needed") == 1);  // no temporary is left
  }
  gpu::pipeline_cache again(checked.device, folder / "made/when/needed", 7);
  CHECK(again.loaded());
  CHECK(again.note() == "kernels proved");
  build_one(checked.device, again);
  const auto before = std::filesystem::last_write_time(again.path());
  again.store();  // nothing new: the file stays as it is
  CHECK(std::filesystem::last_write_time(again.path()) == before);

  gpu::pipeline_cache other_plan(checked.device, folder / "made/when/needed", 8);
  CHECK_FALSE(other_plan.loaded());
  CHECK(other_plan.warning().empty());
  gpu::pipeline_cache in_memory(checked.device, "", 7);
  in_memory.store();
  CHECK(in_memory.warning().empty());
}

TEST_CASE("an unusable file is ignored with one warning and rewritten") {
  const own_device checked;
  const temporary_folder folder;
  std::string path, sound;
  {
    gpu::pipeline_cache cache(checked.device, folder.path(), 7);
    cache.set_note("old");
    cache.store();
    path = cache.path();
    sound = content(path);
  }
  REQUIRE(sound.size() > 100);
  std::string corrupt = sound;
  corrupt[sound.size() - 1] = static_cast<char>(corrupt[sound.size() - 1] ^ 1);
  const std::string foreign = gpu::detail::frame_cache({}, "", "another driver's");
  for (const std::string& bad : {std::string(), std::string("x"), std::string(300, 'x'),
                                 sound.substr(0, sound.size() / 2), corrupt, sound + "tail", foreign}) {
    write(path, bad);
    gpu::pipeline_cache cache(checked.device, folder.path(), 7);
    CHECK_FALSE(cache.loaded());
    CHECK(cache.note().empty());
    CHECK(cache.warning().find(path) != std::string::npos);
    const std::string warning = cache.warning();
    cache.set_note("old");
    cache.store();
    CHECK(cache.warning() == warning);
    CHECK(content(path) == sound);
  }
}

TEST_CASE("a folder, a pipe or a read-only folder costs a warning and no more") {
  const own_device checked;
  const temporary_folder folder;
  const std::string path = gpu::pipeline_cache(checked.device, folder.path(), 7).path();

  std::filesystem::create_directories(path + "/inside");
  {
    gpu::pipeline_cache cache(checked.device, folder.path(), 7);
    CHECK(cache.warning().find("no regular file") != std::string::npos);
    cache.store();
    CHECK(std::filesystem::is_directory(path));
    CHECK(files_in(folder.path()) == 1);
  }
  std::filesystem::remove_all(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  {
    // returns at once, although no process writes to the pipe
    gpu::pipeline_cache cache(checked.device, folder.path(), 7);
    CHECK(cache.warning().find("no regular file") != std::string::npos);
    cache.store();
    CHECK(std::filesystem::is_regular_file(path));
  }
  write(folder / "a file", "no folder");
  gpu::pipeline_cache below_a_file(checked.device, folder / "a file/cache", 7);
  CHECK_FALSE(below_a_file.warning().empty());
  below_a_file.store();
  gpu::pipeline_cache nowhere(checked.device, "/proc/no/such/folder", 7);
  CHECK(nowhere.warning().empty());
  nowhere.store();
  CHECK_FALSE(nowhere.warning().empty());
}

TEST_CASE("a writer killed at any moment leaves the old file or the new one") {
  const own_device checked;
  const temporary_folder folder;
  const std::string path = folder / "x.pipelines";
  const gpu::detail::cache_key key{};
  const std::string contents[] = {gpu::detail::frame_cache(key, "a", std::string(200'000, 'a')),
                                  gpu::detail::frame_cache(key, "b", std::string(150'000, 'b'))};
  REQUIRE(gpu::detail::write_whole_file(folder.path(), path, contents[0]).empty());
  for (int round = 0; round < 100; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0)
      for (int turn = round;; ++turn) (void)gpu::detail::write_whole_file(folder.path(), path, contents[turn % 2]);
    ::usleep(static_cast<useconds_t>(50 + 37 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    const std::string found = content(path);
    REQUIRE((found == contents[0] || found == contents[1]));
  }
}
