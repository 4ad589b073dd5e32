// SPDX-License-Identifier: MIT
// Generations that decode together: each has a slot of the batch while it runs, joins and leaves between tokens, and
// draws what it would draw alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "token_engine.hpp"

namespace intaglio::serve {

class rank_job;

struct engine_options {
  std::string model;  ///< path; empty: the embedded one
  std::string i2s_layout = "block128";
  std::uint32_t context = 0;      ///< positions; 0: as engraved, or tool::default_context
  std::string cache_type;         ///< of the KV cache: kernels::cache_codecs; empty: the profile's own
  std::uint32_t slot_count = 0;   ///< generations at once; 0: as batch_shape.hpp says
  std::string codec;              ///< to compute in, whatever the file's; empty: the file's own
  std::string chat_template;      ///< in place of the file's: a text, or a name (is_template_name); empty: the file's
  std::vector<std::string> lora;  ///< adapters that are merged into it (io/lora_adapter.hpp)
  std::vector<std::string> lora_by_request;  ///< that requests choose among: NAME=FILE, or FILE, whose stem is the name
  std::string device;                        ///< index, UUID or part of the name; empty: by rule
  std::vector<std::string> devices{};  ///< over which the model is cut, each as `device` names one; empty: one device
  std::vector<std::uint32_t> cut{};    ///< layers in front of each cut; empty: by the devices' memory and rates
  rank_job* ranks = nullptr;           ///< over which it is cut, of rank 0 of such a job; nullptr: one process
  std::string name;                    ///< that clients ask for; empty: the engraved model's
  std::vector<std::string> aliases;
  bool any_name = false;  ///< clients may ask for any other name too
  std::uint32_t queue = 256;
  std::string batch_products = "exact";  ///< or f16, on GPUs (plan::batch_shape::coded_products)
  std::uint32_t prompt_lookup = 0;       ///< tokens drafted at most for a pass of one generation; 0: none
  std::string draft;            ///< a smaller model of the same tokens that drafts, as `model` names one; empty: none
  std::uint32_t draft_max = 7;  ///< tokens that it drafts at most for a pass of one generation
  double gpu_idle = 0;          ///< share of the time that the device is left idle, 0 .. 0.95
  std::function<void(const std::string& event, const std::string& text)> log;
  /// Called before weights and caches are allocated, on the engine's thread; returns when there is room.
  /// @param bytes that they take  @param available bytes of the device's own memory at that time
  std::function<void(std::uint64_t bytes, std::uint64_t available)> make_room;
  std::function<void()> load_failed;  ///< the first load, or a rank; other failures are tried again
};

/// Reads the head of the model that the options name. @throws file_error
model_head read_model_head(const engine_options& options);
std::unique_ptr<token_engine> make_batch_engine(const engine_options& options, metrics& counts);

}  // namespace intaglio::serve
