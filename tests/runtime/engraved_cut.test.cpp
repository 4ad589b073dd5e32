// SPDX-License-Identifier: MIT
// An engraved model over several devices, with the plans that its session on one device has.
#include "intaglio/runtime/engraved_cut.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "shared.hpp"

using namespace intaglio;

TEST_CASE("sessions of an engraved model take a list of devices, alone and together", "[once]") {
  using model = models::fable;
  constexpr plan::batch_shape shape{.slot_count = 2, .page_size = 16, .pages = 4 * 8};
  const checked_device first, last(1);
  const std::array on{first.device, last.device};
  if (!first.on_cpu()) SKIP("NOT RUN: needs a CPU driver, found " << first.device.label());
  const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::vector<std::int32_t> ids{1, 20, 300, 7, 45, 9};
  const session_options options{.cache_folder = ""};
  const generate_options wish{.max_tokens = 12, .stop_at_end = false};

  session<model, plan::profiles::cpu> whole(first.device, file, options);
  const std::vector<std::int32_t> expected = whole.generate(ids, wish).ids;
  basic_session cut = cut_session<model, plan::profiles::cpu>(on, file, options, {.after = {3}});
  CHECK(cut.executor().is_stage());
  CHECK(cut.generate(ids, wish).ids == expected);

  basic_batch batch = cut_batch<model, shape, plan::profiles::cpu>(on, file, options, {.after = {3}});
  CHECK(batch.slot_count() == 4);
  batch.join(ids, {.max_tokens = 12});
  std::vector<std::int32_t> together;
  for (std::uint32_t step = 0; batch.active() != 0 && step < 100; ++step)
    for (const batch_token& each : batch.step()) together.push_back(each.id);
  CHECK(together == expected);
}
