// SPDX-License-Identifier: MIT
// Parsers of commands, and what each does when it was chosen.
#pragma once

#include "commands.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace intaglio::tool {

/// Commands with their parsers.
class command_parsers {
 protected:
  /// The command that was named, or one of its own.
  CLI::App* chosen() {
    CLI::App* out = &app_;
    while (!out->get_subcommands().empty()) out = out->get_subcommands().front();
    return out;
  }
  static std::string name_of(const CLI::App* of) {
    std::string out;
    for (; of->get_parent() != nullptr; of = of->get_parent()) out = of->get_name() + (out.empty() ? "" : " ") + out;
    return out;
  }

  void add_common(CLI::App& to) {
    to.add_option("--device", common_.device,
                  "which device: its number, UUID or a part of its name, as `intaglio devices` shows them")
        ->type_name("DEVICE")
        ->group("Everywhere");
    to.add_flag("--validate", common_.validate,
                "run under Vulkan's validation layer, whose messages are errors; name the first layer without numbers")
        ->group("Everywhere");
    to.add_flag("--quiet", common_.quiet, "no notes, warnings and progress")->group("Everywhere");
    to.add_flag("--all", common_.all, "report every fault of a file, a line each, not only the first")
        ->group("Everywhere");
  }

  CLI::App* add(const char* name, const char* description, std::function<void()> work, const char* examples) {
    return add(app_, name, description, std::move(work), examples);
  }
  CLI::App* add(CLI::App& under, const char* name, const char* description, std::function<void()> work,
                const char* examples) {
    CLI::App* out = under.add_subcommand(name, description);
    add_common(*out);
    out->footer(std::string("Examples:\n") + examples);
    commands_.emplace_back(out, std::move(work));
    return out;
  }

  CLI::App app_{"Language models engraved by the C++ compiler, run by Vulkan", "intaglio"};
  common_options common_;
  std::vector<std::pair<CLI::App*, std::function<void()>>> commands_;
};

}  // namespace intaglio::tool
