// SPDX-License-Identifier: MIT
// The only unit that knows model types; everything behind it works on tables.
#include "engraved_models.hpp"

#include INTAGLIO_ENGRAVED_HEADER

#include <intaglio/plan/engrave.hpp>
#include <intaglio/plan/profile.hpp>

#include <vector>

namespace intaglio::tool {
namespace {

template <class Model>
engraved_model tables_of(const named_model<Model>& entry) {
  return {entry.name, plan::engraved<Model, plan::profiles::cpu>::table, plan::engraved<Model, plan::profiles::portable>::table};
}

}  // namespace

std::span<const engraved_model> engraved_models() {
  static const std::vector<engraved_model> list =
      std::apply([](const auto&... entries) { return std::vector<engraved_model>{tables_of(entries)...}; }, ::engraved_models);
  return list;
}

const engraved_model& engraved_model_by_name(const std::string& name) {
  std::string known;
  for (const auto& each : engraved_models()) {
    if (each.name == name) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw argument_error("name of an engraved model", "one of: " + known, "'" + printable(name, 60) + "'");
}

const engraved_model& engraved_model_of(const io::checkpoint& file) {
  const engraved_model* nearest = nullptr;
  std::vector<std::string> fewest;
  for (const auto& each : engraved_models()) {
    auto differences = file.differences(each.config());
    if (differences.empty()) return each;
    if (nearest == nullptr || differences.size() < fewest.size()) {
      nearest = &each;
      fewest = std::move(differences);
    }
  }
  for (auto& line : fewest) line += " (" + std::string(nearest->name) + ")";
  throw mismatch_error(file.path(), std::move(fewest), "intaglio engrave " + printable(file.path(), 240) + " -o DIR");
}

}  // namespace intaglio::tool
