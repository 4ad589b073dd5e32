// SPDX-License-Identifier: MIT
// Includes code that runs once at start (readers of files, plans, creation of devices) as small code where clang
// compiles it, as runtime/session.hpp does with the rest: the program hello has more than 3 MB otherwise. Code that
// processes each weight, and tokenizers, are included before and stay fast code.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "intaglio/codecs/decode.hpp"
#include "intaglio/io/byte_level_bpe.hpp"
#include "intaglio/io/codec.hpp"
#include "intaglio/io/nfc.hpp"
#include "intaglio/io/ordered_work.hpp"
#include "intaglio/io/pretokenizer.hpp"
#include "intaglio/io/sentencepiece_bpe.hpp"
#include "intaglio/kernels/catalogue.hpp"

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpragma-clang-attribute"  // all headers may have been included before
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#endif

#include "intaglio/gpu/device.hpp"
#include "intaglio/gpu/pipeline.hpp"
#include "intaglio/gpu/pipeline_cache.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/io/chat_template.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/detokenizer.hpp"
#include "intaglio/io/packed_image.hpp"
#include "intaglio/io/packed_writer.hpp"
#include "intaglio/io/prompt.hpp"
#include "intaglio/io/session_file.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/plan/verify.hpp"

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang diagnostic pop
#endif
