// SPDX-License-Identifier: MIT
// Batches of sessions whole: the constructors that know the plans, and what they run.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/runtime/small_code.hpp"

#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/engraved_batch_session.hpp"
