// SPDX-License-Identifier: MIT
#include "log.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>

#include <intaglio/platform/clock.hpp>
#include <intaglio/platform/console.hpp>

#include "json_document.hpp"

namespace intaglio::serve {
namespace {

std::atomic<bool> quiet{false};
std::atomic<int> rank{-1};  ///< -1: there is one process

std::string now() {
  const auto time = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  const std::tm parts = platform::utc_time(seconds).value_or(std::tm{});
  std::array<char, 40> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string fraction = std::to_string(1000 + milliseconds).substr(1);
  return std::string(text.data(), size) + '.' + fraction + 'Z';
}

}  // namespace

void set_log_rank(int of) { rank = of; }

void set_quiet_log() { quiet = true; }

void log_line(std::string_view level, std::string_view event,
              std::initializer_list<std::pair<std::string_view, log_value>> fields) {
  if (quiet && level == "info") return;
  json line{{"time", now()}, {"level", level}, {"event", event}};
  if (const int its = rank; its >= 0) line["rank"] = its;
  for (const auto& [name, value] : fields) std::visit([&](const auto& each) { line[std::string(name)] = each; }, value);
  const std::string text = json_text(line) + '\n';
  // One write, so that lines of several threads stay whole.
  platform::write_some(platform::standard_error, std::as_bytes(std::span(text)));
}

}  // namespace intaglio::serve
