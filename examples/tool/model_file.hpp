// SPDX-License-Identifier: MIT
// Opens what --model names: a GGUF file, a folder, or the story teller that the tool carries.
#pragma once

#include "model_options.hpp"

#include <intaglio/io/checkpoint_data.hpp>
#include <intaglio/io/tokenizer.hpp>

#include <functional>
#include <string>
#include <vector>

namespace intaglio::tool {

/// Opens the model, and says its warnings.
/// @throws file_error
io::checkpoint open_model(const model_options& options);

/// Opens a model. A model from an address is opened as soon as its head has arrived: later reads wait for their bytes,
/// and checkpoint::expect_unchanged() waits for all bytes and their checksum. Before that the program may report
/// nothing of the model except the progress.
/// @param load is called with the checkpoint, and once more if the server had another file meanwhile
void load_model(const model_options& options, const std::function<void(const io::checkpoint&)>& load);
/// Whether such a model is still on its way.
bool model_arrives();

/// @throws file_error: the model has no tokenizer, or a broken one
io::tokenizer open_tokenizer(const io::checkpoint& model);

/// Comma-separated token ids: "1,2,3", blanks allowed.
/// @throws argument_error
std::vector<std::int32_t> parse_ids(const std::string& list);

/// A whole file, or stdin where the path is "-".
/// @throws file_error
std::string read_text(const std::string& path);

/// Runs `work`; an argument_error about the input rather than an option becomes an input_error that names the file.
void naming_file(const std::string& file, const std::function<void()>& work);

}  // namespace intaglio::tool
