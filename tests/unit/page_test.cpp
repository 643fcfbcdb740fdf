// The page: well-formed, nothing fetched, hostile names harmless, figures those of the JSON.
#include "plimsoll/report/page/page.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/report/measured.hpp"
#include "plimsoll/report/page/chart.hpp"
#include "plimsoll/report/page/markup.hpp"
#include "plimsoll/report/plan_json.hpp"

#include "tests/unit/some_plan.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using plan::Plan;
using report::ShownStep;

const std::string kMiniGpt = "minigpt:d=128,L=4,V=1000,s=64,heads=4";

std::string page_of(const Plan& plan, ShownStep shown = ShownStep::kSteady) {
  return report::page_html({plan, report::record_step(plan, shown), std::nullopt, "Made here"});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The text between `begin` and the next `end`; empty when there is none.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const std::size_t start = from + begin.size();
  return text.substr(start, text.find(end, start) - start);
}

json data_of(const std::string& page, const std::string& id) {
  return json::parse(
      between(page, "<script type=\"application/json\" id=\"" + id + "\">", "</script>"));
}

// What is wrong with the nesting of a page's elements; empty when nothing is.
std::string nesting_fault(const std::string& page) {
  static const std::set<std::string> kVoid = {"meta", "link", "br", "!doctype"};
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "odd quotes in <" + tag;
    at = end;
    if (tag.ends_with("/")) continue;
    const bool closes = tag.starts_with("/");
    const std::string name = tag.substr(closes ? 1 : 0, tag.find(' ') - (closes ? 1 : 0));
    if (kVoid.contains(name)) continue;
    if (closes) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
      open.pop_back();
      continue;
    }
    open.push_back(name);
    // Their content is no markup.
    if (name == "script" || name == "style") at = page.find("</" + name + ">", at);
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

std::vector<Plan> plans() {
  return {test::some_plan(kMiniGpt, [](plan::Job& job) { job.batch = 8; }),
          test::some_plan("gpt2",
                          [](plan::Job& job) {
                            job.accumulate = 5;
                            job.precision = plan::Precision::kMixed;
                          }),
          test::some_plan("llama-3.2-1b",
                          [](plan::Job& job) {
                            job.ranks = 4;
                            job.stage = shard::Stage::kParameters;
                            job.checkpoint = plan::Checkpoint::kBlock;
                          }),
          test::some_plan("cnn:norm=batch", [](plan::Job& job) {
            job.sequence = 0;
            job.backend = plan::Backend::kCuda;
          })};
}

TEST_CASE("a page is well-formed, and nothing in it is fetched from anywhere") {
  for (const Plan& plan : plans()) {
    CAPTURE(plan.spec.title);
    for (const ShownStep shown : {ShownStep::kSteady, ShownStep::kFirst}) {
      const std::string page = page_of(plan, shown);
      CHECK(nesting_fault(page) == "");
      for (const char* outside : {"http://", "https://", "//www", " src=", "@import", "url("}) {
        CAPTURE(outside);
        CHECK_FALSE(contains(page, outside));
      }
      CHECK(between(page, "href=\"", "\"") == "data:,");
      CHECK(page.size() < 1'000'000);
    }
  }
}

TEST_CASE("the checker of nesting finds faults") {
  CHECK(nesting_fault("<p>a<br>b</p>") == "");
  CHECK(nesting_fault("<p><b></p></b>") != "");
  CHECK(nesting_fault("<p>") != "");
  CHECK(nesting_fault("<p class=\"a></p>") != "");
  CHECK(nesting_fault("<script>a < b</script>") == "");
}

TEST_CASE("names from outside cannot become markup") {
  const std::string hostile =
      "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;\n\xff/config.json";
  Plan plan = plans()[0];
  plan.spec.title = hostile;
  plan.spec.assumptions = {hostile};
  plan.job.assumptions = {hostile};
  report::Reconciliation measured;
  measured.rows = {report::make_row(hostile, 1, 2, 3, hostile)};
  const report::StepRecord record = report::record_step(plan, ShownStep::kSteady);
  const std::string page = report::page_html({plan, record, measured, hostile});
  CHECK(nesting_fault(page) == "");
  CHECK_FALSE(contains(page, "<script>alert"));
  CHECK_FALSE(contains(page, "<img"));
  CHECK(contains(page, "&lt;/script&gt;&lt;script&gt;alert(1)"));
  CHECK(contains(page, "&amp;amp;?\xEF\xBF\xBD/config.json"));
  // As data it is what it was, but for the byte that is no UTF-8.
  std::string title = hostile;
  title.replace(title.find('\xff'), 1, "\xEF\xBF\xBD");
  CHECK(data_of(page, "plan")["model"]["title"] == title);
}

// The cells of a section's table, row by row, without their markup.
std::vector<std::vector<std::string>> rows_of(const std::string& page, const std::string& id) {
  std::vector<std::vector<std::string>> rows;
  std::string body =
      between(between(page, "<section id=\"" + id + "\">", "</section>"), "<tbody>", "</tbody>");
  for (std::size_t at = body.find("<tr"); at != std::string::npos; at = body.find("<tr", at + 1)) {
    const std::string row = body.substr(at, body.find("</tr>", at) - at);
    std::vector<std::string> cells;
    for (std::size_t end = row.find("</t"); end != std::string::npos;
         end = row.find("</t", end + 1)) {
      const std::size_t begin = row.rfind('>', end) + 1;
      cells.push_back(row.substr(begin, end - begin));
    }
    rows.push_back(cells);
  }
  return rows;
}

// The figure in the column `column` of the row that begins with `name`.
std::string cell(const std::string& page, const std::string& id, const std::string& name,
                 std::size_t column) {
  for (const auto& row : rows_of(page, id)) {
    if (row[0] == name) return row.at(column);
  }
  return "no row " + name;
}

std::string shown(const json& bytes) { return grouped(bytes.get<std::int64_t>()); }

TEST_CASE("the page holds the plan's JSON, and its tables have the same figures") {
  for (const Plan& plan : plans()) {
    CAPTURE(plan.spec.title);
    const json expected = json::parse(report::json_text(report::plan_json(plan)));
    const std::string page = page_of(plan);
    CHECK(data_of(page, "plan") == expected);
    CHECK(cell(page, "posts", "P", 2) == shown(expected["posts"]["P"]));
    CHECK(cell(page, "posts", "G", 2) == shown(expected["posts"]["G"]));
    CHECK(cell(page, "posts", "A", 2) == shown(expected["posts"]["A"]));
    const json& steady = expected["timeline"]["steady"];
    CHECK(rows_of(page, "peak").size() == steady["peak"]["alive"].size());
    for (const json& alive : steady["peak"]["alive"]) {
      CHECK(cell(page, "peak", alive["tag"], 1) == shown(alive["bytes"]));
    }
    CHECK(cell(page, "ledger", "distinct", 1) == shown(expected["ledger"]["distinct"]["bytes"]));
    CHECK(cell(page, "flops", "forward", 1) == shown(expected["flops"]["forward"]["full"]));
    CHECK(cell(page, "memory", "requested", 1) == shown(expected["memory"]["requested"]));
    const auto phases = rows_of(page, "phases");
    CHECK(phases[0][2] == shown(steady["phases"][0]["start"]));
    CHECK(phases.back()[4] == shown(steady["phases"].back()["peak"]));
    CHECK(rows_of(page, "facts").size() == expected["facts"].size());
  }
}

TEST_CASE("the cursor's data: tags sum to the total, the peak and the phases are the plan's") {
  for (const Plan& plan : plans()) {
    CAPTURE(plan.spec.title);
    const json curve = data_of(page_of(plan), "curve");
    const json& totals = curve["total"];
    for (std::size_t i = 0; i < totals.size(); ++i) {
      std::int64_t sum = 0;
      for (const json& tag : curve["bytes"]) sum += std::stoll(tag[i].get<std::string>());
      CHECK(sum == std::stoll(totals[i].get<std::string>()));
    }
    const std::size_t peak = curve["peak"];
    CHECK(totals[peak] == std::to_string(plan.steady.peak.bytes));
    CHECK(curve["operations"][curve["operation"][peak].get<std::size_t>()] ==
          plan.steady.peak_operation);
    const std::string name(timeline::name(plan.steady.peak.phase.phase));
    CHECK(curve["phases"][curve["phase"][peak].get<std::size_t>()].get<std::string>().starts_with(
        name));
    std::map<std::size_t, std::int64_t> highest;
    for (std::size_t i = 0; i < totals.size(); ++i) {
      std::int64_t& top = highest[curve["phase"][i]];
      top = std::max<std::int64_t>(top, std::stoll(totals[i].get<std::string>()));
    }
    CHECK(highest.size() == curve["phases"].size());
    CHECK(highest.begin()->second == plan.steady.phases.front().peak);
    CHECK(highest.rbegin()->second == plan.steady.phases.back().peak);
  }
}

TEST_CASE("micro-batches that repeat are drawn once, and their number is told") {
  const json curve = data_of(page_of(plans()[1]), "curve");
  const json expected = {"zero_grad",
                         "forward, micro-batch 0",
                         "loss, micro-batch 0",
                         "backward, micro-batch 0",
                         "forward, micro-batches 1 to 4",
                         "loss, micro-batches 1 to 4",
                         "backward, micro-batches 1 to 4",
                         "optimizer"};
  CHECK(curve["phases"] == expected);
}

TEST_CASE("a large model's page stays below a megabyte, its curve is thinned, its peak is exact") {
  const Plan plan = test::some_plan("llama-3.1-405b", [](plan::Job& job) {
    job.sequence = 8192;
    job.ranks = 64;
    job.stage = shard::Stage::kParameters;
    job.precision = plan::Precision::kMixed;
    job.accumulate = 3;
  });
  const std::string page = page_of(plan);
  CHECK(page.size() < 1'000'000);
  const json curve = data_of(page, "curve");
  CHECK(curve["events"] > 10'000);
  CHECK(curve["total"].size() <= 1300);
  CHECK(curve["total"][curve["peak"].get<std::size_t>()] == std::to_string(plan.steady.peak.bytes));
}

TEST_CASE("the largest tensors are alive at the peak, and parameters have their names") {
  const Plan plan = test::some_plan(kMiniGpt);
  const report::StepRecord record = report::record_step(plan, ShownStep::kSteady);
  REQUIRE(record.largest.size() == report::kLargestTensors);
  // V x D floats: the embedding, two moments of it, and the same of the head.
  CHECK(record.largest[0].bytes == 1000 * 128 * 4);
  const auto is_embedding = [](const report::AliveTensor& tensor) {
    return tensor.tag == timeline::Tag::kParameters && contains(tensor.made_by, "weight");
  };
  CHECK(std::count_if(record.largest.begin(), record.largest.end(), is_embedding) >= 1);
  std::map<timeline::Tag, std::int64_t> sums;
  for (const report::AliveTensor& tensor : record.largest) sums[tensor.tag] += tensor.bytes;
  for (const auto& [tag, bytes] : sums) {
    CHECK(bytes <= plan.steady.peak.alive[static_cast<std::size_t>(tag)]);
  }
  // With room for all of them they are the peak.
  std::int64_t all = 0;
  const Plan small =
      test::some_plan("minigpt:d=4,L=1,V=3,s=2,heads=1", [](plan::Job& job) { job.sequence = 2; });
  for (const auto& tensor : report::record_step(small, ShownStep::kSteady, 1200).largest) {
    all += tensor.bytes;
  }
  CHECK(all <= small.steady.peak.bytes);
}

TEST_CASE("ticks are round, about four, and never above the top") {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  CHECK(report::axis_ticks(4 * kGiB) ==
        std::vector<std::int64_t>{kGiB, 2 * kGiB, 3 * kGiB, 4 * kGiB});
  CHECK(report::axis_ticks(0).empty());
  for (const std::int64_t top : {1L, 7L, 1023L, 1024L, 5'000'000L, 999 * kGiB, 4096 * kGiB}) {
    CAPTURE(top);
    const auto ticks = report::axis_ticks(top);
    CHECK(ticks.size() >= 1);
    CHECK(ticks.size() <= 5);
    CHECK(ticks.back() <= top);
    CHECK(std::is_sorted(ticks.begin(), ticks.end()));
  }
}

TEST_CASE("what a device has is drawn where it is not far above the curve") {
  const auto chart = [](std::int64_t available) {
    const Plan plan = test::some_plan(kMiniGpt);
    return report::chart_html(report::record_step(plan, ShownStep::kSteady), available);
  };
  CHECK(contains(chart(20'000'000), "available 19.07 MiB"));
  CHECK_FALSE(contains(chart(std::int64_t{1} << 40), "available"));
}

}  // namespace
}  // namespace plimsoll
