// SPDX-License-Identifier: MIT
// plan: the engraved sequence as text, JSON or a page.
#include "commands.hpp"
#include "console.hpp"
#include "cut_text.hpp"
#include "engraved_models.hpp"
#include "known_models.hpp"
#include "model_file.hpp"
#include "plan_page.hpp"

#include <intaglio/io/atomic_file.hpp>
#include <intaglio/platform/path_text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

namespace intaglio::tool {
namespace {

/// What bench --json wrote about this very plan.
std::vector<measured_times> read_times(const std::string& path, const plan::table& of) {
  using json = nlohmann::json;
  const json bench = json::parse(read_text(path), nullptr, false);
  const auto refuse = [&](const std::string& what, const std::string& expected, const std::string& found) {
    throw file_error(path, std::nullopt, what, expected, found);
  };
  if (!bench.is_object() || !bench.contains("plan") || !bench.contains("sequences"))
    refuse("output of bench --json", "an object with plan and sequences", "something else");
  try {
    const std::string hash = bench.at("plan").at("hash").get<std::string>();
    if (hash != std::to_string(of.hash))
      refuse("plan that was measured",
             std::string(of.model) + " for profile " + std::string(of.profile) + ", hash " + std::to_string(of.hash),
             printable(bench.at("plan").at("model").get<std::string>(), 60) + " for profile " +
                 printable(bench.at("plan").at("profile").get<std::string>(), 60) + ", hash " + printable(hash, 30));
    std::vector<measured_times> out;
    for (const auto& sequence : bench.at("sequences")) {
      measured_times times{sequence.at("name").get<std::string>(),
                           {},
                           bench.at("stream_bytes_per_second").get<double>(),
                           bench.at("device").get<std::string>()};
      for (const auto& each : sequence.at("dispatches"))
        times.microseconds.push_back(each.at("microseconds").get<double>());
      out.push_back(std::move(times));
    }
    return out;
  } catch (const json::exception& problem) {
    throw file_error(path, std::nullopt, "output of bench --json: " + printable(problem.what(), 200));
  }
}

bool is_model_name(std::string_view text) {
  const auto known = known_models();
  return std::any_of(engraved_models().begin(), engraved_models().end(),
                     [&](const engraved_model& each) { return each.name == text; }) ||
         std::find(known.begin(), known.end(), text) != known.end();
}

/// The plans of a name or file. @param file is opened where it is one
const engraved_model& plans_of(const plan_options& options, std::optional<io::checkpoint>& file) {
  if (std::error_code ignored;
      !is_model_name(options.name) && std::filesystem::exists(platform::path_of(options.name), ignored))
    file.emplace(open_model({options.name}));
  cache_choice cache = cache_of(options.positions, options.cache_type);
  cache.chunk = chunk_of_stages(options.over.devices);
  const engraved_model& model = file ? engraved_model_of(*file, cache, options.codec)
                                     : engraved_model_by_name(options.name, options.codec, cache);
  if (file) judge_codecs(*file, model, options.codec);
  return model;
}

void write_page(const std::string& path, const std::string& page) {
  io::atomic_file file(platform::path_of(path));
  file.write(std::as_bytes(std::span(page)));
  file.commit();
  note("wrote " + printable(path, 240));
}

}  // namespace

void plan(const plan_options& options, const common_options& common) {
  std::optional<io::checkpoint> file;
  const engraved_model& model = plans_of(options, file);
  if (!options.over.devices.empty() || !options.over.cut.empty()) {
    if (!options.bench.empty()) throw argument_error("--bench", "a plan on one device", "one that is cut");
    const cut_form form = !options.html.empty() ? cut_form::page : options.json ? cut_form::json : cut_form::words;
    const std::string text = cut_text(model, options.over, options.profile == "cpu", common, form);
    return form == cut_form::page ? write_page(options.html, text) : print(text);
  }
  std::optional<plan::planned> other;
  for (const plan::profile* each : {&plan::profiles::exact, &plan::profiles::attends_in_f16, &plan::profiles::screened})
    if (options.profile == each->name) other.emplace(model.planned(*each, {}));
  const plan::table& table = other ? other->table() : options.profile == "cpu" ? model.cpu : model.portable;
  if (!options.html.empty()) {
    const std::string page =
        plan_page(table, model.name,
                  options.bench.empty() ? std::vector<measured_times>{} : read_times(options.bench, table))
            .text();
    return write_page(options.html, page);
  }
  if (options.json) print_line(plan::explain_json(table, model.name));
  else print(plan::explain(table, model.name));
}

}  // namespace intaglio::tool
