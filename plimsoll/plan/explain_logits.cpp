// How the figures of the copies of the logits came about.
#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/explain.hpp"

namespace plimsoll::plan {
namespace {

// The copies by number, since a pass and its rerun make some of the same name.
void explain_copy(const LogitCopies& logits, std::size_t i, std::vector<Term>& terms) {
  const LogitCopy& copy = logits.copies[i];
  const std::string base = fmt::format("logits.{}", i + 1);
  const std::string path = fmt::format("/logits/copies/{}/", i);
  const std::string source =
      fmt::format("the calculated run makes it in {}", timeline::name(copy.phase));
  terms.push_back({base + ".item_bytes", "bytes per logit: " + copy.what, grouped(copy.item),
                   copy.item, "bytes", source, Evidence::kSource, path + "item_bytes"});
  terms.push_back(
      {base + ".bytes", "rows V e: " + copy.what,
       fmt::format("{} x {} x {}", grouped(logits.rows), grouped(logits.vocabulary), copy.item),
       copy.bytes, "bytes", source, Evidence::kSource, path + "bytes"});
}

}  // namespace

void explain_logits(const Plan& plan, std::vector<Term>& terms) {
  if (!plan.logits) return;
  const LogitCopies& logits = *plan.logits;
  const std::int64_t rows = checked_mul(plan.job.batch, plan.job.sequence);
  const auto add = [&](const char* name, const char* formula, const std::string& numbers,
                       std::int64_t value, const char* unit) {
    terms.push_back({std::string("logits.") + name, formula, numbers, value, unit,
                     "the first micro-batch of the calculated run's steady step", Evidence::kSource,
                     std::string("/logits/") + name});
  };
  add("chunks", "parts of the rows, --loss-chunks", grouped(logits.chunks), logits.chunks, "1");
  add("rows", "B T / chunks, rounded up", fmt::format("{} / {}", grouped(rows), logits.chunks),
      logits.rows, "rows");
  add("vocabulary", "V", grouped(logits.vocabulary), logits.vocabulary, "1");
  for (std::size_t i = 0; i < logits.copies.size(); ++i) explain_copy(logits, i, terms);
  add("most_at_once", "highest sum of copies alive together",
      fmt::format("of {} copies", logits.copies.size()), logits.most_at_once, "bytes");
  if (logits.chunks == 1) return;
  add("peak_whole", "the steady step's peak with one chunk", "the same job walked again",
      logits.peak_whole, "bytes");
}

}  // namespace plimsoll::plan
