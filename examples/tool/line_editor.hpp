// SPDX-License-Identifier: MIT
// What a user types: edited line by line with a history where stdin and stdout are a terminal, else as it comes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::tool {

/// $XDG_STATE_HOME/intaglio, else ~/.local/state/intaglio; empty where neither variable holds an absolute path.
std::string state_folder();

/// Reads messages. A line that ends in a backslash goes on in the next one; lines between two lines of """ belong
/// together, and so do those of a paste. Editing is libedit's, which is opened at run time; without it lines are read
/// as the terminal gives them.
class line_editor {
 public:
  /// @param history_file file in which typed lines are kept between runs; empty: none
  /// @param commands words that the Tab key completes where a line begins with them
  explicit line_editor(const std::string& history_file, std::vector<std::string> commands = {});
  ~line_editor();
  line_editor(const line_editor&) = delete;
  line_editor& operator=(const line_editor&) = delete;

  /// Nothing at the end of the input. A signal that came meanwhile is in graceful_stop::received(); then the text is
  /// what had been typed.
  /// @param prompt shown on a terminal
  std::optional<std::string> read(std::string_view prompt);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace intaglio::tool
