// SPDX-License-Identifier: MIT
#include "cut_text.hpp"

#include "cut.hpp"
#include "cut_page.hpp"

#include <intaglio/plan/explain_cut.hpp>

#include <array>
#include <memory>

namespace intaglio::tool {

std::string cut_text(const engraved_model& model, const model_options& over, bool for_cpu, const common_options& common,
                     cut_form form) {
  std::vector<std::shared_ptr<const plan::stage>> stages;
  std::vector<std::string> names;
  if (over.devices.empty()) {
    const plan::table& whole = for_cpu ? model.cpu : model.portable;
    for (const plan::layer_range each : plan::stages_of(whole.config->num_hidden_layers, over.cut))
      stages.push_back(std::make_shared<const plan::stage>(whole, each));
  } else {
    const std::vector<gpu::device> on = open_devices(over, common);
    const std::array<const plan::table*, 2> tables{&model.cpu, &model.portable};
    const runtime::device_cut cut = runtime::cut_over(on, tables, cut_choice(on, over.cut));
    runtime::require_stage_memory(on, cut);
    stages = cut.stages;
    for (const gpu::device& each : on) names.push_back(each.label());
  }
  if (form == cut_form::json) return plan::explain_cut_json(stages, names, model.name) + '\n';
  if (form == cut_form::page) return cut_page(stages, names, model.name).text();
  return std::string(model.name) + " in " + std::to_string(stages.size()) + " stages\n" +
         plan::explain_cut(stages, names);
}

}  // namespace intaglio::tool
