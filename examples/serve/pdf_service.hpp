// SPDX-License-Identifier: MIT
// Texts of PDFs, by poppler's program pdftotext where it is installed: one after the other, each in a child process
// with limits.
#pragma once

#include <memory>
#include <string>

#include "job_line.hpp"
#include "later_reply.hpp"

namespace intaglio::serve {

class pdf_service {
 public:
  pdf_service();

  /// Whether the program was there when the server started.
  bool there() const { return there_; }
  /// Has the text extracted when its turn comes. @param reply receives {"text", "pages"}, or the refusal
  /// @throws api_error 501: the program is not installed; 400: not a PDF; 429: too many wait
  void submit(std::string pdf, std::shared_ptr<later_reply> reply);

 private:
  bool there_;
  job_line line_;
};

}  // namespace intaglio::serve
