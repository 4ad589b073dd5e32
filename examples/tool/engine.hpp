// SPDX-License-Identifier: MIT
// A model on a device by plain calls, so that only engine.cpp includes the run time and Vulkan.
#pragma once

#include "commands.hpp"

#include <intaglio/io/prompt.hpp>
#include <intaglio/runtime/embed_options.hpp>
#include <intaglio/runtime/generation.hpp>
#include <intaglio/runtime/sampling.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace intaglio::tool {

/// One turn of a conversation; roles are system, user and assistant.
struct turn {
  std::string role, text;
};

/// What a generation gave, and the signal that ended it early.
struct answer {
  generation result;
  int signal = 0;             ///< 0: none
  double first_token_ms = 0;  ///< from the call to the first token
};

/// float32 [tokens, vocabulary] and, where asked for, [layers + 1, tokens, width].
struct logits_values {
  std::vector<float> logits, hidden;
  std::uint32_t vocab_size = 0, hidden_size = 0, layers = 0;
};

/// A model on its device, in numbers.
struct engine_facts {
  std::string model, profile, device;
  std::uint32_t layers = 0, context = 0, position = 0;  ///< position: tokens of the history
  std::uint64_t weight_bytes = 0, cache_bytes = 0, device_bytes = 0;
  std::string computed;  ///< computed_text
};

/// What the device spends on a pass, kernel by kernel, the dearest first; of the passes that were timed.
struct kernel_shares {
  std::uint64_t timed = 0;
  double pass_ms = 0;
  struct one {
    std::string kernel;
    double share = 0;
  };
  std::vector<one> kernels;
};

/// Opens the model, finds its plan, opens the device, loads with a progress bar.
class engine {
 public:
  /// @throws file_error, mismatch_error, device_error and errors derived from them
  /// @param decodes whether a next token will be needed  @error argument_error: an encoder, which has none
  engine(const model_options& model, const common_options& common, bool decodes = true);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  const std::string& file() const;
  const std::string& device() const;
  double load_ms() const;
  std::uint32_t context() const;

  /// Tokens of a ready-made prompt after the model's BOS.
  std::vector<std::int32_t> encode(std::string_view text, io::prompt_markup markup = io::prompt_markup::read) const;
  /// Tokens of a conversation up to where the model's answer begins.
  /// @throws file_error: the model has no chat template that is known
  std::vector<std::int32_t> encode(std::span<const turn> conversation) const;

  /// Generates from the tokens; what they share with the last call's is not computed again. A signal ends it after the
  /// current token.
  /// @throws argument_error and device errors; what `each` throws
  answer generate(std::span<const std::int32_t> ids, const generate_options& options,
                  const std::function<void(std::string_view)>& each);

  /// Tokens of a text that becomes a vector.
  std::vector<std::int32_t> encode_for_embedding(std::string_view text) const;
  /// f32 [hidden_size]. @throws argument_error and device errors
  std::vector<float> embed(std::span<const std::int32_t> ids, const embed_options& options);

  logits_values logits(std::span<const std::int32_t> ids, std::uint32_t chunk, bool hidden);

  engine_facts facts() const;
  kernel_shares decode_times() const;
  kernel_shares prompt_times() const;

  /// Writes the session into a file, or goes on where such a file's session was.
  /// @throws file_error, device errors
  void save(const std::string& path, const sampling_options& sampling, const std::string& note);
  std::pair<sampling_options, std::string> restore(const std::string& path);
  /// Forgets all tokens.
  void reset();

  /// Call it when the work is done.
  /// @throws device_error: the validation layer had something to say
  void require_silence() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace intaglio::tool
