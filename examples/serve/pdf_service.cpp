// SPDX-License-Identifier: MIT
#include "pdf_service.hpp"

#include <intaglio/platform/program.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "limits.hpp"
#include "other_apis.hpp"

namespace intaglio::serve {
namespace {

constexpr const char* program = "pdftotext";

api_error unreadable(const std::string& found) {
  return api_error(400,
                   "the PDF: expected one that " + std::string(program) + " reads without a password, found " + found,
                   {}, "unreadable_pdf");
}

/// @throws api_error
http_reply text_of(const std::string& pdf) {
  // The program reads a file from its standard input; a pipe would have to be filled while its output is read.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  if (!file || std::fwrite(pdf.data(), 1, pdf.size(), file.get()) != pdf.size() || std::fflush(file.get()) != 0)
    throw api_error(503, "the PDF cannot be written to a temporary file", {}, "no_room", 30);
  const platform::limited_result found =
      platform::run_limited({limits::pdf_seconds, limits::pdf_text_bytes, limits::pdf_memory_bytes},
                            {program, "-q", "-enc", "UTF-8", "-", "-"}, file.get());
  if (!found.done) throw unreadable(found.text);
  std::string text = found.text;
  const auto pages = std::count(text.begin(), text.end(), '\f');  // each page ends with one
  std::replace(text.begin(), text.end(), '\f', '\n');
  return json_reply({{"text", as_utf8(text)}, {"pages", pages}});
}

}  // namespace

pdf_service::pdf_service() : there_(platform::program_exists(program)) {}

void pdf_service::submit(std::string pdf, std::shared_ptr<later_reply> reply) {
  if (!there_)
    throw api_error(501,
                    "PDFs: expected the program pdftotext on the server's machine, found none (Debian, Ubuntu: "
                    "poppler-utils)",
                    {}, "no_pdftotext");
  if (!pdf.starts_with("%PDF-"))
    throw api_error(400, "the body: expected a PDF, which begins with %PDF-, found another beginning", {}, "no_pdf");
  line_.add([pdf = std::move(pdf), reply = std::move(reply)] {
    if (reply->cancelled()) return;
    try {
      reply->give(text_of(pdf));
    } catch (const api_error& refusal) { reply->refuse(refusal); } catch (const std::exception&) {
      reply->refuse(api_error(500, "the server failed to answer"));
    }
  });
}

}  // namespace intaglio::serve
