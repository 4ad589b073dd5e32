// SPDX-License-Identifier: MIT
// /v1/infer and /v1/trace: what a walk of the model over its features gives, beside the model itself.
#include <intaglio/core/error.hpp>

#include <algorithm>
#include <cmath>

#include "api.hpp"
#include "later_reply.hpp"
#include "request.hpp"

namespace intaglio::serve {
namespace {

double milliseconds_since(steady::time_point start) {
  return std::chrono::duration<double, std::milli>(steady::now() - start).count();
}

}  // namespace

walk_service& api::walks(const std::string& field) const {
  if (options_.walks == nullptr)
    throw api_error(400, "the server was started without an index of features to walk (--index)", field, "no_walk");
  return *options_.walks;
}

namespace {

json predictions_of(const std::vector<prediction>& list) {
  json out = json::array();
  for (const auto& each : list)
    out.push_back({{"token", as_utf8(each.token)}, {"probability", std::round(each.probability * 1e4) / 1e4}});
  return out;
}
double one_decimal(double milliseconds) { return std::round(milliseconds * 10) / 10; }

/// The answer of /v1/infer while its parts come in.
struct inference {
  std::string prompt, mode;
  steady::time_point start = steady::now();
  std::shared_ptr<later_reply> reply;
  std::mutex mutex;
  std::optional<std::vector<prediction>> walked, dense;
  double walk_ms = 0, dense_ms = 0;

  /// Under the mutex.
  void answer_when_ready() {
    if ((mode != "dense" && !walked) || (mode != "walk" && !dense)) return;
    json out{{"prompt", prompt}};
    if (mode == "compare") {
      const auto shared = std::count_if(walked->begin(), walked->end(), [&](const prediction& a) {
        return std::any_of(dense->begin(), dense->end(), [&](const prediction& b) { return a.token == b.token; });
      });
      out["walk"] = predictions_of(*walked);
      out["walk_ms"] = one_decimal(walk_ms);
      out["dense"] = predictions_of(*dense);
      out["dense_ms"] = one_decimal(dense_ms);
      out["agreement"] = {
          {"same_first", walked->front().token == dense->front().token}, {"shared", shared}, {"of", dense->size()}};
    } else {
      out["predictions"] = predictions_of(mode == "walk" ? *walked : *dense);
    }
    out["mode"] = mode;
    out["latency_ms"] = one_decimal(milliseconds_since(start));
    reply->give(json_reply(out));
  }
};

/// What a walk throws, as an answer.
template <class Work>
void refusing(later_reply& reply, Work&& work) {
  try {
    work();
  } catch (const argument_error& error) {
    reply.refuse(api_error(400, error.what(), error.argument()));
  } catch (const std::exception& error) {
    reply.refuse(api_error(503, std::string("the walk failed: ") + error.what(), {}, "walk_failed", 5));
  }
}

}  // namespace

http_reply api::infer(const asked& of) {
  const infer_request wanted = read_infer_request(of.body, options_.limit);
  const auto ids = checked_prompt(of.facts(), of.words().encode(wanted.prompt), "prompt");
  const auto reply = std::make_shared<later_reply>(of.wake);
  const auto whole = std::make_shared<inference>();
  whole->prompt = wanted.prompt, whole->mode = wanted.mode, whole->reply = reply;
  if (wanted.mode != "dense") {
    walks("mode").submit([whole, ids, wanted, model = of.model, &service = walks("mode")](tool::walker& walker) {
      const auto start = steady::now();
      refusing(*whole->reply, [&] {
        const auto logits =
            walker.logits(ids, wanted.features, [&] { return whole->reply->cancelled() || service.stops(); });
        if (logits.empty()) return whole->reply->refuse(api_error(503, "the server is stopping", {}, "stopping", 5));
        const std::lock_guard lock(whole->mutex);
        whole->walked = likeliest(model->words, logits, wanted.top);
        whole->walk_ms = milliseconds_since(start);
        whole->answer_when_ready();
      });
    });
  }
  if (wanted.mode != "walk") {
    of.model->engine.predict({ids, wanted.top,
                              [whole, model = of.model](std::vector<prediction> found) {
                                const std::lock_guard lock(whole->mutex);
                                whole->dense = std::move(found);
                                whole->dense_ms = milliseconds_since(whole->start);
                                whole->answer_when_ready();
                              },
                              [reply](const api_error& error) { reply->refuse(error); }});
  }
  http_reply out;
  out.pending = reply;
  return out;
}

http_reply api::trace(const asked& of) {
  const trace_request wanted = read_trace_request(of.body, options_.limit);
  std::vector<std::int32_t> ids =
      wanted.messages.empty() ? of.words().encode(wanted.text) : of.words().encode({.turns = wanted.messages}).ids;
  const std::size_t before = wanted.messages.empty() ? 0 : ids.size();
  if (!wanted.messages.empty()) {
    const auto more = of.words().tokens.encode(wanted.text, {});
    ids.insert(ids.end(), more.begin(), more.end());
  }
  ids = checked_prompt(of.facts(), std::move(ids), wanted.messages.empty() ? "prompt" : "messages");
  const auto reply = std::make_shared<later_reply>(of.wake);
  walks().submit([reply, ids, wanted, before, model = of.model, &service = walks()](tool::walker& walker) {
    const auto start = steady::now();
    refusing(*reply, [&] {
      const auto found = walker.trace(ids, wanted.top, [&] { return reply->cancelled() || service.stops(); });
      if (!found) return reply->refuse(api_error(503, "the server is stopping", {}, "stopping", 5));
      const auto piece = [&](std::int32_t token) { return as_utf8(model->words.tokens.piece(token)); };
      json out{{"model", model->facts.id},
               {"reply_from", before},
               {"tokens", json::array()},
               {"fired", json::array()},
               {"promotes", json::array()}};
      for (std::size_t i = 0; i < ids.size(); ++i)
        out["tokens"].push_back({{"id", ids[i]}, {"piece", piece(ids[i])}, {"added_by_layer", found->added[i]}});
      for (const auto& each : found->list)
        out["fired"].push_back({{"token", each.position},
                                {"layer", each.layer},
                                {"feature", each.feature},
                                {"score", each.score},
                                {"contribution", each.contribution}});
      for (const auto& [at, tokens] : found->promoted) {
        json pieces = json::array();
        for (const std::uint32_t token : tokens) pieces.push_back(piece(static_cast<std::int32_t>(token)));
        out["promotes"].push_back({{"layer", at.first}, {"feature", at.second}, {"tokens", std::move(pieces)}});
      }
      out["latency_ms"] = one_decimal(milliseconds_since(start));
      reply->give(json_reply(out));
    });
  });
  http_reply out;
  out.pending = reply;
  return out;
}

}  // namespace intaglio::serve
