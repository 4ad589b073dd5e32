// SPDX-License-Identifier: MIT
// Everything that runs models on Vulkan devices. Models themselves are in intaglio/models/.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/runtime/session.hpp"
