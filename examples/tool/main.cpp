// SPDX-License-Identifier: MIT
// The tool's command line: what each command takes, and which exit code its end has.
#include "commands.hpp"
#include "console.hpp"
#include "download.hpp"
#include "model_cache.hpp"
#include "ranks.hpp"
#include "shell_words.hpp"
#include "walk_commands.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/core/version.hpp>
#include <intaglio/platform/console.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/platform/program.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string_view>
#include <system_error>

namespace {

using namespace intaglio;
using namespace intaglio::tool;

constexpr const char* footer = R"(Examples:
  intaglio run                                            a story by the model that the tool carries
  intaglio run --model MODEL.gguf --chat --prompt "Why is the sky blue?"
  intaglio check MODEL.gguf                               is the file sound, to the last tensor?
  intaglio engrave MODEL.gguf -o mine                     build mine/bin/intaglio for another model
  intaglio plan fable --html plan.html                    the command sequence as a picture

MODEL is a GGUF file or a folder: Hugging Face's (config.json with safetensors or pytorch_model.bin), or Meta's and
Mistral's own (params.json with consolidated.*.pth), or a file of `intaglio pack`, or the https address of a GGUF or
packed file, which is fetched once and kept (`intaglio cache`); #sha256=DIGITS at its end is its checksum. Without
--model the tool uses fable, the story teller inside it.
Exit codes: 0 done, 1 bad input, 2 usage, 3 device, 128 + n ended by signal n. Data goes to stdout, everything else to
stderr.)";

/// A subcommand's parser and what to do when it was chosen.
class command_line : public walk_commands {
 public:
  command_line() {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", "intaglio " + std::to_string(version_major) + "." +
                                           std::to_string(version_minor) + "." + std::to_string(version_patch));
    app_.footer(footer);
    add_common(app_);
    app_.get_formatter()->column_width(34);
    add_story_commands();
    add_file_commands();
    add_walk_commands();
    add_device_commands();
    add_shell_commands();
  }

  exit_code run(int argc, char** argv) {
    try {
      std::vector<std::string> arguments(argv + (argc == 0 ? 0 : 1), argv + argc);
      for (std::string& each : arguments)
        if (each == "-hf") each = "--hf";  // as other programs have it
      std::reverse(arguments.begin(), arguments.end());
      app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
      print(chosen()->help());
      return flush_output(), exit_code::done;
    } catch (const CLI::CallForVersion&) {
      print_line(app_.version());
      return flush_output(), exit_code::done;
    } catch (const CLI::ParseError& error) {
      const std::string command = name_of(chosen());
      show_error((command.empty() ? "" : command + ": ") + printable(error.what(), 340) + "\nsee: intaglio" +
                 (command.empty() ? "" : " " + command) + " --help");
      return exit_code::usage;
    }
    if (common_.quiet) set_quiet();
    if (common_.all) set_all();
    if (chosen() == &app_) {
      show_error("expected a command, found none\nsee: intaglio --help");
      return exit_code::usage;
    }
    for (auto& [parser, work] : commands_)
      if (parser == chosen()) work();
    flush_output();
    return exit_code::done;
  }

 private:
  void add_device_commands() {
    auto* c = add(
        "plan", "Print an engraved command sequence", [this] { tool::plan(plan_, common_); },
        "  intaglio plan fable\n  intaglio plan MODEL.gguf --profile portable\n  intaglio plan bitnet_2b_4t --profile "
        "portable --json\n  intaglio bench --json "
        ">bench.json && intaglio "
        "plan fable --html plan.html --bench bench.json\n  intaglio plan MODEL.gguf --devices 0,1\n  intaglio plan "
        "mistral_7b --cut 16");
    c->add_option("NAME", plan_.name, "name of an engraved model, e.g. fable, or a model's file or folder")->required();
    c->add_option("--codec", plan_.codec, "codec of the matrices, where a model comes in several")->type_name("C");
    c->add_option("--profile", plan_.profile,
                  "which kind of device the plan is for; exact is portable whose chunks leave decode's bits, "
                  "attends_in_f16 has attention of chunks in f16, screened a screened head")
        ->check(CLI::IsMember({"cpu", "portable", "exact", "attends_in_f16", "screened"}))
        ->capture_default_str();
    c->add_option("--positions", plan_.positions,
                  "positions that the KV cache has room for; by default the model's, at most 16,384")
        ->type_name("N")
        ->check(counts_from_one);
    add_cache_type(*c, plan_.cache_type);
    add_devices(*c, plan_.over, "; the stages are said, with their bytes");
    auto* json = c->add_flag("--json", plan_.json, "one JSON object");
    c->add_option("--html", plan_.html, "write a page with timeline, memory map and fusions")
        ->type_name("FILE")
        ->excludes(json);
    c->add_option("--bench", plan_.bench, "output of bench --json, whose times the page then shows")
        ->type_name("FILE")
        ->needs("--html");

    // Only so that it is listed: the server has its own options.
    app_.add_subcommand(
        "serve",
        "Serve a model by OpenAI's, Anthropic's and Ollama's APIs and a web page: intaglio-serve, with its options");

    c = add(
        "devices", "List the Vulkan devices", [this] { tool::devices(devices_); },
        "  intaglio devices\n  intaglio devices --json");
    c->add_flag("--json", devices_.json, "one JSON array");

    c = add(
        "doctor", "Report on device, driver and kernels, fit for a bug report",
        [this] { tool::doctor(doctor_, common_); },
        "  intaglio doctor\n  intaglio doctor --device 1\n  intaglio doctor --report >report.json");
    c->add_flag("--json", doctor_.json, "one JSON object");
    c->add_flag("--report", doctor_.report,
                "one JSON object with limits, features, proofs, times of kernels, workgroups at once and benches");
  }

  /// What shells and man read; installed with the program.
  void add_shell_commands() {
    auto* c = add(
        "completion", "Print a script by which a shell completes commands and options",
        [this] { print(completion_script(app_, shell_)); }, "  source <(intaglio completion bash)");
    c->add_option("SHELL", shell_, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    c = add(
        "man", "Write the pages of the manual, made from this help", [this] { write_man(); },
        "  intaglio man -o share/man/man1");
    c->add_option("-o,--out", man_folder_, "folder to write them in")->type_name("DIR")->required();
  }
  void write_man() {
    std::error_code problem;
    const std::filesystem::path folder = platform::path_of(man_folder_);
    std::filesystem::create_directories(folder, problem);
    for (const auto& [name, text] : man_pages(app_, app_.version())) {
      const std::filesystem::path path = folder / platform::path_of(name);
      std::ofstream out(path, std::ios::binary);
      if (!(out << text).flush()) throw file_error(path.string(), std::nullopt, "cannot write");
    }
  }

  plan_options plan_;
  devices_options devices_;
  doctor_options doctor_;
  std::string shell_, man_folder_;
};

/// The server, beside this program or on the PATH, replaces this process.
[[noreturn]] void become_server(char** argv) {
  const std::filesystem::path own = platform::own_program();
  if (!own.empty()) platform::become_program(own.parent_path() / "intaglio-serve", argv + 1);
  platform::become_program_named("intaglio-serve", argv + 1);
  throw input_error("serve: expected the program intaglio-serve beside this one or on the PATH, found none");
}

int guarded(int argc, char** argv) {
  const auto end = [](exit_code code, const char* what) {
    try {
      flush_output();                  // what came before the error
    } catch (const std::exception&) {  // the first error counts
    }
    show_error(what);
    return static_cast<int>(code);
  };
  try {
    if (argc > 1 && std::string_view(argv[1]) == "serve") become_server(argv);
    return static_cast<int>(command_line().run(argc, argv));
  } catch (const stage_served&) { return 0; } catch (const interrupted& stop) {
    try {
      flush_output();
    } catch (const std::exception&) {}
    return 128 + stop.signal;
  } catch (const device_error& error) {
    return end(exit_code::device, error.what());
  } catch (const argument_error& error) { return end(exit_code::usage, error.what()); } catch (const error& problem) {
    return end(exit_code::bad_input, error_text(problem.what(), problem.details()).c_str());
  } catch (const std::bad_alloc&) {
    return end(exit_code::bad_input, "out of host memory");
  } catch (const std::exception& error) { return end(exit_code::bad_input, error.what()); }
}

}  // namespace

int main(int argc, char** argv) {
  intaglio::platform::console console(argc, argv);
  intaglio::tool::watch_signals();
  const int code = guarded(console.count(), console.words());
  intaglio::tool::show_notes();
  intaglio::tool::end_ranks(code);
  return code;
}
