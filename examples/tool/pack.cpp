// SPDX-License-Identifier: MIT
// pack: a model as one file that loads by copying.
#include "commands.hpp"
#include "console.hpp"
#include "engraved_models.hpp"
#include "model_file.hpp"

#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/pack.hpp>

#include <array>

namespace intaglio::tool {

void pack(const pack_command_options& options) {
  const io::checkpoint model = open_model({options.file, options.i2s_layout});
  if (model.packed() != nullptr)
    throw input_error(printable(options.file, 240) + ": expected a model that is not packed, found one that is");
  const cache_choice caches;  // named: g++ 14 takes a reference beside a temporary for a dangling one
  const engraved_model& plans = engraved_model_of(model, caches, options.codec);
  judge_codecs(model, plans, options.codec);
  const std::array<const plan::table*, 2> tables{&plans.cpu, &plans.portable};
  progress_bar bar("packing");
  const std::uint64_t bytes = intaglio::pack(
      model, tables, platform::path_of(options.out),
      {.threads = options.threads, .progress = [&](std::uint64_t done, std::uint64_t total) {
         bar.show(total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total),
                  bytes_text(static_cast<double>(done)) + " of " + bytes_text(static_cast<double>(total)));
       }});
  bar.clear();
  note("wrote " + printable(options.out, 240) + ", " + bytes_text(static_cast<double>(bytes)) + " for " +
       std::string(plans.name));
}

}  // namespace intaglio::tool
