// SPDX-License-Identifier: MIT
#include "device_gates.hpp"

#include "console.hpp"
#include "device_choice.hpp"

#include <intaglio/plan/fuse.hpp>
#include <intaglio/runtime/gate_search.hpp>
#include <intaglio/runtime/kernel_proof.hpp>

#include <chrono>
#include <map>

namespace intaglio::tool {

struct device_gates::body {
  gpu::device on;
  std::uint32_t top;
  std::map<std::pair<dtype, std::uint64_t>, runtime::gate_search>
      searches;  ///< by type and features; most models have one
  std::size_t vectors = 0, layers = 0;
  double load = 0, search = 0;  ///< milliseconds
};

device_gates::device_gates(const common_options& common, std::uint32_t top)
    : body_(new body{open_device(common), top, {}}) {}
device_gates::~device_gates() = default;

std::vector<std::vector<reference::scored_feature>> device_gates::nearest(dtype type, std::span<const std::byte> rows,
                                                                          std::uint32_t width,
                                                                          std::span<const float> x) {
  using clock = std::chrono::steady_clock;
  const auto codec = plan::codec_of(type);
  if (!codec) throw argument_error("gates", "f32, f16 or bf16", std::string(name(type)));
  const auto features = static_cast<std::uint32_t>(rows.size() / kernels::file_row_bytes(*codec, width));
  auto found = body_->searches.find({type, features});
  if (found == body_->searches.end())
    found = body_->searches
                .emplace(std::piecewise_construct, std::forward_as_tuple(type, features),
                         std::forward_as_tuple(body_->on, *codec, width, features, body_->top))
                .first;
  const auto start = clock::now();
  found->second.load(rows);
  const auto loaded = clock::now();
  auto out = found->second.nearest(x);
  body_->load += std::chrono::duration<double, std::milli>(loaded - start).count();
  body_->search += std::chrono::duration<double, std::milli>(clock::now() - loaded).count();
  body_->vectors += out.size(), ++body_->layers;
  return out;
}

std::string device_gates::summary() const {
  require_no_messages(body_->on);
  return body_->on.label() + ": " + std::to_string(body_->vectors) + " searches in " + std::to_string(body_->layers) +
         (body_->layers == 1 ? " layer" : " layers") + ", " + fixed(body_->search, 2) + " ms; its gates there in " +
         fixed(body_->load, 2) + " ms";
}

}  // namespace intaglio::tool
