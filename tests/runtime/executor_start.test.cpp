// SPDX-License-Identifier: MIT
#include "intaglio/runtime/executor_start.hpp"

#include "gpu/checked_device.hpp"

using namespace intaglio;
using runtime::executor_start;

namespace {

const plan::dispatch layers{.kernel = kernels::kernel::layers}, long_layers{.kernel = kernels::kernel::layers};

plan::sequence resident_sequence() {
  plan::sequence out;
  out.resident = std::span(&layers, 1);
  out.resident_long = std::span(&long_layers, 1);
  return out;
}
constexpr auto all = [](std::span<const plan::dispatch>) { return true; };
constexpr auto none = [](std::span<const plan::dispatch> part) { return part.empty(); };

}  // namespace

TEST_CASE("a start that leaves nothing is complete") {
  executor_start start;
  CHECK(start.is_complete());
  CHECK(start.can_draw());
  CHECK_FALSE(start.next({}, true, false, true, all));
}

TEST_CASE("the resident dispatch is used when its pipelines are made, between passes") {
  const plan::sequence resident = resident_sequence(), chain;
  executor_start start(&resident);
  CHECK_FALSE(start.is_complete());
  CHECK_FALSE(start.next(chain, true, false, false, none));
  CHECK_FALSE(start.next(chain, false, false, true, all));
  const auto step = start.next(chain, true, true, false, all);
  CHECK(step.layers);
  CHECK_FALSE(step.drawing);
  start.take_layers();
  CHECK(start.is_complete());
  // Their form for long contexts may come later.
  start.leave_long();
  CHECK_FALSE(start.is_complete());
  CHECK_FALSE(start.next(resident, true, false, false, none));
  CHECK(start.next(resident, true, false, false, all).layers);
  start.take_layers();
  CHECK(start.is_complete());
}

TEST_CASE("who draws gets the interim form first, and the drawing form when every pipeline is made") {
  executor_start start;
  start.leave_drawing();
  CHECK_FALSE(start.is_complete());
  CHECK_FALSE(start.can_draw());
  CHECK_FALSE(start.next({}, true, false, true, all));  // no pass has sampled yet
  start.record_drawing(kernels::sample_form::interim);
  CHECK(start.can_draw());
  CHECK_FALSE(start.next({}, true, false, false, all));
  CHECK_FALSE(start.next({}, true, true, true, all));  // a job that does not draw does not wait for it
  CHECK(start.next({}, false, false, true, all).drawing);
  start.take_drawing();
  CHECK(start.is_complete());
  CHECK(start.draws_by() == kernels::sample_form::any);
}

TEST_CASE("what is proven is noted when all is done") {
  const checked_device checked;
  gpu::pipeline_cache cache(checked.device, "", 1);
  const plan::sequence resident = resident_sequence();
  executor_start start(&resident);
  start.leave_drawing();
  start.note_when_complete(cache, "proven", "proven as chain");
  start.take_layers();
  start.keep_note();
  CHECK(cache.note().empty());
  start.note_chain();  // they were wrong on this device
  start.take_drawing();
  start.keep_note();
  CHECK(cache.note() == "proven as chain");
  start.note_when_complete(cache, "another", "");
  start.forget_note();
  start.keep_note();
  CHECK_FALSE(start.has_note());
  CHECK(cache.note() == "proven as chain");
}
