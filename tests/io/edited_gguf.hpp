// SPDX-License-Identifier: MIT
// Small GGUF files that tests of io/checkpoint_gguf.hpp edit, and what opening them gives.
#pragma once

#include <string>

#include "../conformance.hpp"
#include "gguf_image.hpp"
#include "intaglio/io/checkpoint.hpp"

namespace edited_gguf {

/// What comes of a tiny model after an edit: the config that is read, or the refusal.
template <class Edit>
intaglio::io::checkpoint edited(const gguf_image& sound, Edit&& edit) {
  gguf_image image = sound;
  edit(image);
  const temporary_folder made;
  return intaglio::io::checkpoint::open_gguf(write_bytes(made / "model.gguf", image.build()));
}
template <class Edit>
std::string refusal(const gguf_image& sound, Edit&& edit) {
  try {
    edited(sound, edit);
  } catch (const intaglio::file_error& problem) { return whole_text(problem); }
  return "accepted";
}
inline gguf_image bitnet() { return gguf_image::of(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf")); }
inline gguf_image llama() { return gguf_image::of(shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf")); }

}  // namespace edited_gguf
