// SPDX-License-Identifier: MIT
// tune: measures which kernels and shapes of workgroups are fastest for a model on this device, and keeps the outcome
// for every later start.
#include "commands.hpp"
#include "console.hpp"
#include "device_choice.hpp"
#include "engraved_models.hpp"
#include "known_models.hpp"
#include "model_file.hpp"

#include <intaglio/runtime/synthetic_weights.hpp>
#include <intaglio/runtime/tune.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {
namespace {

std::string gain_text(double before_ms, double after_ms) {
  return fixed(before_ms / std::max(after_ms, 1e-9), 3) + " times as fast";
}

nlohmann::ordered_json json_of(const runtime::tuning_result& found, const plan::table& table, const gpu::device& on,
                               const std::string& path) {
  nlohmann::ordered_json out{{"model", table.model},
                             {"profile", table.profile},
                             {"device", on.label()},
                             {"file", path},
                             {"variant", found.best.variant},
                             {"products", found.best.shapes.size()},
                             {"decode_ms_of_plan", found.plan_decode_ms},
                             {"decode_ms", found.decode_ms},
                             {"prefill_ms", found.prefill_ms},
                             {"trials", nlohmann::ordered_json::array()}};
  for (const runtime::tuning_trial& each : found.trials)
    out["trials"].push_back(
        {{"what", each.what}, {"before_ms", each.before_ms}, {"after_ms", each.after_ms}, {"kept", each.kept}});
  return out;
}

}  // namespace

void tune(const tune_options& options, const common_options& common) {
  const gpu::device on = open_device(common);
  std::optional<io::checkpoint> file;
  if (options.synthetic.empty()) file.emplace(open_model(options.model));
  // A pointer: g++ 14 takes a reference from a call with default arguments for a dangling one.
  const engraved_model* const chosen =
      file ? &engraved_model_of(*file, {}, options.codec) : &engraved_model_by_name(options.synthetic, options.codec);
  const engraved_model& plans = *chosen;
  require_decoder(plans);
  if (file) judge_codecs(*file, plans, options.codec);
  const plan::table& table = plans.table(runtime::class_of(on));
  gpu::pipeline_cache cache(on, gpu::default_cache_folder(), table.hash);
  const std::string path = runtime::tuning_path(cache);
  if (path.empty())
    throw file_error("the folder of compiled pipelines", std::nullopt, "there is none",
                     "XDG_CACHE_HOME or HOME with an absolute path", "neither");
  if (options.forget) {
    const bool was = runtime::forget_tuning(cache);
    return print_line(was ? "forgot " + printable(path, 240)
                          : "nothing was kept for " + std::string(table.model) + " on " + on.label());
  }
  runtime::weight_memory weights = [&] {
    progress_bar bar("loading");
    const auto drawn = [&](const runtime::load_progress& done) {
      bar.show(done.bytes_total == 0 ? 0 : static_cast<double>(done.bytes_done) / static_cast<double>(done.bytes_total),
               bytes_text(static_cast<double>(done.bytes_total)));
    };
    return file ? runtime::load_weights(on, table, *file, {.progress = drawn})
                : runtime::synthetic_weights(on, table, {});
  }();
  note(std::string(table.model) + " on " + on.label() +
       ": variants first, then the products of a token, each by turns with what is fastest so far");
  runtime::tuning_options how;
  how.trial_ms = options.trial_ms;
  how.turns = options.turns;
  how.on_trial = [](const runtime::tuning_trial& each) {
    note((each.kept ? "  kept    " : "  left    ") + each.what + ": " + fixed(each.before_ms, 3) + " -> " +
         fixed(each.after_ms, 3) + " ms a token");
    show_notes();
    graceful_stop::look();
  };
  show_notes();
  const runtime::tuning_result found = runtime::tuner(on, table, cache, std::move(how)).run(std::move(weights));
  if (options.json) print_line(json_of(found, table, on, path).dump());
  else
    print_line("decode " + fixed(found.plan_decode_ms, 3) + " -> " + fixed(found.decode_ms, 3) + " ms a token, " +
               gain_text(found.plan_decode_ms, found.decode_ms) + ", by " + found.best.variant + " and " +
               std::to_string(found.best.shapes.size()) + " shapes of products; a chunk of a prompt " +
               fixed(found.prefill_ms, 3) + " ms\nkept in " + printable(path, 240));
  require_no_messages(on);
}

}  // namespace intaglio::tool
