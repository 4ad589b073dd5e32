// SPDX-License-Identifier: MIT
// Generations as OpenAI's answers: one document at the end, or events as the text comes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api_error.hpp"
#include "generation.hpp"
#include "http.hpp"
#include "metrics.hpp"

namespace intaglio::serve {

struct completion_identity {
  std::string id, model, fingerprint;
  std::int64_t created = 0;
  bool chat = false, stream = false, include_usage = false, usage_so_far = false, logprobs = false;
  std::uint32_t prompts = 1;  ///< choices come prompt by prompt
};

class completion_reply : public pending_reply {
 public:
  completion_reply(completion_identity identity, std::vector<std::shared_ptr<generation>> choices, metrics& counts);
  bool streams() const override { return identity_.stream; }
  std::string poll() override;
  bool done() const override { return open_ == 0; }
  http_reply reply() override;
  void cancel() override;

 private:
  struct choice {
    std::shared_ptr<generation> from;
    std::string text;
    std::vector<token_told> tokens;
    std::string finish;
    std::size_t text_offset = 0;
    bool open = true;
  };
  std::string event(const choice& of, std::size_t index, const news& what, bool first) const;
  /// Tokens of all choices so far.
  struct token_counts {
    std::uint64_t prompt = 0, completion = 0, cached = 0;
  };
  token_counts counted() const;

  completion_identity identity_;
  std::vector<choice> choices_;
  api_error error() const;
  std::string error_;
  int error_status_ = 503;
  std::size_t open_;
  bool begun_ = false;
  metrics& counts_;
};

}  // namespace intaglio::serve
