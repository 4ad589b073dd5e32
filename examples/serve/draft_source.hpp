// SPDX-License-Identifier: MIT
// The model of --draft: compared with the served one before the weights of either are loaded, then loaded beside it.
// Only the engine's source file includes this.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/io/same_tokens.hpp>
#include <intaglio/runtime/basic_batch.hpp>
#include <intaglio/runtime/draft_model.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "../tool/engraved_models.hpp"
#include "../tool/known_models.hpp"
#include "../tool/model_file.hpp"
#include "batch_engine.hpp"
#include "batch_shape.hpp"
#include "metrics.hpp"

namespace intaglio::serve {

class draft_source {
 public:
  /// @param tokens of the served model, which is called `model`  @param of its plan
  /// @throws file_error; argument_error: a model that cannot draft for it
  draft_source(const engine_options& wanted, const io::tokenizer& tokens, std::string model, const plan::table& of)
      : name_(wanted.draft), model_(std::move(model)),
        file_(tool::open_model({.path = wanted.draft, .i2s_layout = wanted.i2s_layout})) {
    if (!file_.vocabulary()) throw argument_error("--draft", "the tokens of " + model_, name_ + " without a tokenizer");
    const io::tokenizer own(*file_.vocabulary(), file_.config().vocab_size);
    if (const std::string other = io::first_other_token(own, tokens); !other.empty())
      throw argument_error("tokens of --draft " + name_, "those of " + model_, other);
    const std::uint32_t longest = file_.config().max_position_embeddings,
                        context = longest == 0 ? of.context : std::min(of.context, longest);
    plans_ = &tool::planned_model_of(file_, {.context = context}, {batch_shape_of, of.shape.all_slots()});
    tool::require_decoder(*plans_);
  }

  /// Loads the model, which then drafts for the batch. @param large the served model's batch, nullptr of an encoder
  /// @param counts get its memory
  /// @throws as basic_batch and draft_model; argument_error: passes of the served model take no drafts
  std::shared_ptr<draft_model> load(basic_batch* large, const session_options& loading, engine_gauges& counts) {
    if (large == nullptr || large->most_drafts() == 0)
      throw argument_error("--draft",
                           "a model whose passes take drafts: a decoder on one device, with exact products, without "
                           "recurrent layers",
                           model_ + ", whose passes take none");
    const std::array<const plan::table*, 2> tables{&plans_->cpu, &plans_->portable};
    auto out = std::make_shared<draft_model>(basic_batch(large->device(), tables, file_, loading), *large,
                                             std::pair(name_, model_));
    large->draft_by(out);
    const plan::table& its = out->batch().table();
    counts.weights_bytes += its.weight_bytes(), counts.cache_bytes += its.cache_bytes() + its.pool_bytes();
    summary_ = "drafts by " + name_ + ": " + gpu::bytes_text(its.weight_bytes()) + " of weights, " +
               gpu::bytes_text(its.cache_bytes() + its.pool_bytes()) + " of caches";
    return out;
  }
  /// What the log says once it is loaded.
  const std::string& summary() const { return summary_; }

 private:
  std::string name_, model_, summary_;
  io::checkpoint file_;
  const tool::engraved_model* plans_ = nullptr;
};

}  // namespace intaglio::serve
