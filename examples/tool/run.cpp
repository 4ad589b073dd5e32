// SPDX-License-Identifier: MIT
// run, embed and logits: text or token ids in, text or numbers out.
#include "commands.hpp"
#include "console.hpp"
#include "engine.hpp"
#include "model_file.hpp"
#include "npy_file.hpp"
#include "sampling_choice.hpp"

#include <intaglio/platform/path_text.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {
namespace {

/// What `intaglio run` alone asks of the embedded model.
constexpr const char* story = "Tell me a story about a brave mouse.";

nlohmann::ordered_json json_of(const answer& from, double load_ms) {
  const generation_timings& t = from.result.timings;
  const std::uint32_t decoded =
      t.generated_tokens > 0 ? t.generated_tokens - 1 : 0;  // the first one comes with the prompt
  nlohmann::ordered_json out{{"text", from.result.text}, {"ids", from.result.ids}};
  out["finish_reason"] = from.signal != 0 ? "interrupted" : name(from.result.finish);
  out["timings"] = {{"load_ms", load_ms},
                    {"prompt_tokens", t.prompt_tokens},
                    {"prompt_ms", t.prompt_ms},
                    {"decode_tokens", decoded},
                    {"decode_ms", t.decode_ms},
                    {"tokens_per_second", t.decode_ms > 0 ? decoded / t.decode_ms * 1e3 : 0.0},
                    {"first_token_ms", from.first_token_ms},
                    {"drafted_tokens", t.drafted_tokens},
                    {"accepted_tokens", t.accepted_tokens}};
  return out;
}

}  // namespace

void run(const run_options& options, const common_options& common) {
  std::optional<std::vector<std::int32_t>> ids;
  if (options.ids) ids = parse_ids(*options.ids);
  const bool given = options.prompt || options.file || ids;
  const bool default_story = !given && options.model.embedded() && !options.system;
  std::string prompt = options.file ? read_text(*options.file) : options.prompt.value_or(default_story ? story : "");
  generate_options wanted = generation_of(options.sampling, default_story ? 0.7f : 0.0f, !options.json);
  wanted.max_tokens = options.tokens;
  wanted.stop = options.stop;
  wanted.chunk = options.chunk;
  wanted.tokens_per_submit = options.tokens_per_submit;

  engine model(options.model, common);
  naming_file(model.file(), [&] {
    if (!ids) {
      std::vector<turn> conversation;
      if (options.system) conversation.push_back({"system", *options.system});
      conversation.push_back({"user", prompt});
      ids = options.chat || options.system || default_story
                ? model.encode(conversation)
                : model.encode(prompt, options.plain ? io::prompt_markup::plain : io::prompt_markup::read);
    }
    const answer got = model.generate(*ids, wanted, [&](std::string_view piece) {
      if (options.json) return;
      print(piece);
      flush_output();
    });
    if (options.json) {
      print_line(json_of(got, model.load_ms()).dump());
    } else {
      if (!got.result.text.ends_with('\n')) print("\n");
      flush_output();
      const auto& t = got.result.timings;
      if (t.decode_ms > 0)
        note(std::to_string(t.generated_tokens) + " tokens, " + fixed((t.generated_tokens - 1) / t.decode_ms * 1e3, 1) +
             " tokens/s, loaded in " + fixed(model.load_ms() / 1e3, 2) + " s (" + model.facts().computed + ")");
    }
    flush_output();
    if (got.signal != 0) throw interrupted(got.signal);
  });
  model.require_silence();
}

void embed(const embed_command_options& options, const common_options& common) {
  embed_options wanted{.normalize = options.normalize, .chunk = options.chunk};
  for (const pooling each : {pooling::last, pooling::mean, pooling::first})
    if (options.pooling == name(each)) wanted.pooling = each;
  std::vector<std::string> texts = options.texts;
  if (options.file) texts.push_back(read_text(*options.file));
  std::vector<std::vector<std::int32_t>> inputs;
  if (options.ids) inputs.push_back(parse_ids(*options.ids));
  engine model(options.model, common, false);
  naming_file(model.file(), [&] {
    for (const std::string& text : texts) inputs.push_back(model.encode_for_embedding(text));
    for (const auto& ids : inputs) {
      print_line(nlohmann::ordered_json{{"embedding", model.embed(ids, wanted)}, {"tokens", ids.size()}}.dump());
      flush_output();
    }
  });
  model.require_silence();
}

void logits(const logits_options& options, const common_options& common) {
  const auto ids = parse_ids(options.ids);
  if (ids.empty()) throw argument_error("--ids", "at least one token id", "none");
  const std::filesystem::path folder = platform::path_of(options.out);
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure || !std::filesystem::is_directory(folder))
    throw file_error(options.out, std::nullopt,
                     "cannot make the folder" + (failure ? ": " + failure.message() : std::string{}));
  engine model(options.model, common);
  naming_file(model.file(), [&] {
    const logits_values found = model.logits(ids, options.chunk, options.hidden);
    if (options.hidden)
      write_npy(folder / "hidden.npy", found.hidden, {found.layers + 1ull, ids.size(), found.hidden_size});
    write_npy(folder / "logits.npy", found.logits, {ids.size(), found.vocab_size});
    note("wrote " + printable((folder / "logits.npy").string(), 240) + (options.hidden ? " and hidden.npy" : ""));
  });
  model.require_silence();
}

}  // namespace intaglio::tool
