// SPDX-License-Identifier: MIT
#define INTAGLIO_IMPLEMENTATION  // the one file of the tool that defines sessions (docs/embedding.md)
#include "engine.hpp"

#include "console.hpp"
#include "cut.hpp"
#include "engraved_models.hpp"
#include "known_models.hpp"
#include "model_file.hpp"
#include "ranks.hpp"
#include "template_engine.hpp"

#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/basic_session.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <utility>

namespace intaglio::tool {
namespace {

using clock = std::chrono::steady_clock;
double milliseconds_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

kernel_shares shares_of(const runtime::pass_times& times) {
  kernel_shares out{
      times.timed, times.timed == 0 ? 0 : times.nanoseconds() / 1e6 / static_cast<double>(times.timed), {}};
  for (std::size_t i = 0; i < times.kernels.size(); ++i)
    if (times.kernels[i].dispatches != 0)
      out.kernels.push_back({std::string(kernels::interface_of(static_cast<kernels::kernel>(i)).name),
                             times.kernels[i].nanoseconds / times.nanoseconds()});
  std::sort(out.kernels.begin(), out.kernels.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

/// The file's plans. Without a requested context, it plans a context that the device's memory has room for: it halves
/// the number of positions until it fits. A note says the memory before it is taken. If the model is cut over several
/// devices, the last device's plan represents all.
const engraved_model& plans_that_fit(const io::checkpoint& file, const model_options& model,
                                     std::span<const gpu::device> on) {
  constexpr std::uint32_t least = 512;
  const std::uint32_t context = model.context;
  cache_choice cache = cache_of(context, model.cache_type);
  cache.chunk = chunk_of_stages(model.devices);
  const engraved_model* plans = &engraved_model_of(file, cache, model.codec);
  const std::uint64_t available = runtime::available_memory(on);
  const auto table = [&]() -> const plan::table& { return plans->table(runtime::class_of(on.back())); };
  const auto needed = [&] {
    return runtime::needed_memory(table(), model.weight_budget
                                               ? std::optional(std::min(*model.weight_budget, table().weight_bytes()))
                                               : std::nullopt);
  };
  while (context == 0 && table().context > least && needed().total() > available)
    cache.context = table().context / 2, plans = &engraved_model_of(file, cache, model.codec);
  const std::string free =
      gpu::bytes_text(available) + " that " + (on.size() == 1 ? "the device has" : "the devices have") + " free";
  if (context == 0 && table().context < default_context(file.config()))
    note("context of " + std::to_string(table().context) + " positions, which is what fits into the " + free +
         "; --context asks for another");
  judge_codecs(file, *plans, model.codec);
  note("takes " + runtime::need_text(needed(), table().context) + " of the " + free);
  return *plans;
}

}  // namespace

struct engine::parts {
  std::string file;
  std::vector<gpu::device> devices;  ///< by stage
  basic_session session;
  const gpu::device& device() const { return devices.back(); }
  double load_ms = 0;
};

engine::engine(const model_options& model, const common_options& common, bool decodes) {
  const auto start = clock::now();
  // A driver takes longer to open than a vocabulary to be read.
  const bool cut = !model.devices.empty();
  if (!cut && !model.mpi && !model.cut.empty()) throw argument_error("--cut", "--devices beside it", "none");
  std::future<gpu::device> opening = cut ? std::future<gpu::device>{} : begin_opening(common, model.mpi);
  load_model(model, [&](const io::checkpoint& checkpoint) {
    std::vector<gpu::device> devices =
        cut ? open_devices(model, common) : std::vector{open_device(common, std::move(opening))};
    const engraved_model& plans = plans_that_fit(checkpoint, model, devices);
    if (decodes) require_decoder(plans);
    progress_bar bar("loading");
    session_options options;
    options.find_first_nan = common.validate;
    options.weight_budget = model.weight_budget;
    options.templates = template_engine();
    options.progress = [&](const load_progress& at) {
      if (model_arrives()) return;  // how far that is is shown already
      bar.show(at.bytes_total == 0 ? 0 : static_cast<double>(at.bytes_done) / static_cast<double>(at.bytes_total),
               bytes_text(static_cast<double>(at.bytes_done)) + " of " +
                   bytes_text(static_cast<double>(at.bytes_total)) + ", " + std::to_string(at.tensors_done) + " of " +
                   std::to_string(at.tensors_total) + " tensors");
    };
    const std::array<const plan::table*, 2> tables{&plans.cpu, &plans.portable};
    basic_session session = model.mpi
                                ? session_over_ranks(devices.front(), tables, checkpoint, options, model)
                                : cut_session(devices, tables, checkpoint, options, cut_choice(devices, model.cut));
    bar.clear();
    for (std::size_t i = checkpoint.warnings().size(); i < session.warnings().size(); ++i)
      warn(session.warnings()[i]);  // the first ones were said
    parts_ = std::make_unique<parts>(
        parts{checkpoint.path(), std::move(devices), std::move(session), milliseconds_since(start)});
  });
}
engine::~engine() = default;

const std::string& engine::file() const { return parts_->file; }
const std::string& engine::device() const { return parts_->device().label(); }
double engine::load_ms() const { return parts_->load_ms; }
std::uint32_t engine::context() const { return parts_->session.context(); }

std::vector<std::int32_t> engine::encode(std::string_view text, io::prompt_markup markup) const {
  return parts_->session.encode(text, markup);
}

std::vector<std::int32_t> engine::encode(std::span<const turn> conversation) const {
  std::vector<io::chat_message> messages;
  for (const auto& each : conversation) messages.push_back({each.role, each.text});
  return parts_->session.encode(std::span<const io::chat_message>(messages));
}

answer engine::generate(std::span<const std::int32_t> ids, const generate_options& options,
                        const std::function<void(std::string_view)>& each) {
  const auto start = clock::now();
  answer out;
  text_stream stream = parts_->session.begin(ids, options);
  // Until there is something to keep, a signal ends the process at once.
  std::optional<graceful_stop> guard;
  while (stream.next()) {
    if (out.first_token_ms == 0) out.first_token_ms = milliseconds_since(start);
    guard ? void() : void(guard.emplace());
    if (each) each(stream.piece());
    out.signal = graceful_stop::received();
    if (out.signal != 0) {
      stream.cancel();
      if (each && !stream.piece().empty()) each(stream.piece());
      break;
    }
  }
  out.result = stream.result();
  if (out.first_token_ms == 0) out.first_token_ms = out.result.timings.prompt_ms;
  return out;
}

std::vector<std::int32_t> engine::encode_for_embedding(std::string_view text) const {
  return io::encode_for_embedding(parts_->session.tokenizer(), text);
}
std::vector<float> engine::embed(std::span<const std::int32_t> ids, const embed_options& options) {
  return parts_->session.embed(ids, options);
}

logits_values engine::logits(std::span<const std::int32_t> ids, std::uint32_t chunk, bool hidden) {
  logits_result found = parts_->session.logits(ids, chunk, hidden);
  const decoder_config& config = *parts_->session.table().config;
  return {std::move(found.logits), std::move(found.hidden), config.vocab_size, config.hidden_size,
          config.num_hidden_layers};
}

engine_facts engine::facts() const {
  const basic_session& of = parts_->session;
  const plan::table& table = of.table();
  return {runtime::model_name(table),
          std::string(table.profile),
          device(),
          table.config->num_hidden_layers,
          table.context,
          of.position(),
          table.weight_bytes(),
          table.cache_bytes(),
          runtime::needed_memory(table).total(),
          computed_text(table)};
}

kernel_shares engine::decode_times() const {
  return shares_of(parts_->session.executor().times(runtime::pass_kind::decode));
}
kernel_shares engine::prompt_times() const {
  return shares_of(parts_->session.executor().times(runtime::pass_kind::prefill));
}

void engine::save(const std::string& path, const sampling_options& sampling, const std::string& note) {
  parts_->session.save(platform::path_of(path), {sampling, note});
}
std::pair<sampling_options, std::string> engine::restore(const std::string& path) {
  session_note found = parts_->session.restore(platform::path_of(path));
  return {found.sampling, std::move(found.text)};
}
void engine::reset() { parts_->session.reset(); }

void engine::require_silence() const {
  for (const gpu::device& each : parts_->devices) require_no_messages(each);
}

}  // namespace intaglio::tool
