#include "plimsoll/report/trace.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/walk.hpp"
#include "plimsoll/report/json.hpp"
#include "plimsoll/report/step_record.hpp"
#include "plimsoll/timeline/curve.hpp"

namespace plimsoll::report {
namespace {

using timeline::Instant;
using timeline::OperationId;
using timeline::Phase;

// Rows of the picture.
constexpr int kPhases = 1;
constexpr int kOperations = 2;

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// Writes events in order of time; slices are closed in the reverse order of their opening.
class TraceSink final : public timeline::InstantSink {
 public:
  TraceSink(ShownPhases phases, const plan::Plan& plan, std::vector<std::string> operations)
      : InstantSink(phases.keys),
        names_(std::move(phases.names)),
        plan_(plan),
        operations_(std::move(operations)) {
    name_row("process_name", 0, "plimsoll plan " + plan.spec.title);
    name_row("thread_name", kPhases, "steps and phases");
    name_row("thread_name", kOperations, "operations");
  }

  std::string finish() {
    close_step();
    return "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"axis\":\"one microsecond per event of "
           "memory, no time\"},\"traceEvents\":[\n" +
           text_ + "\n]}\n";
  }

 private:
  void at(const Instant& now) override {
    if (!now_ || now_->phase != now.phase) begin_phase_slice(now);
    if (!now_ || now_->operation != now.operation) {
      now_event_ = now.event;
      close_operation();
      open_operation(now);
    }
    count(now);
    mark_peak(now);
    now_ = now;
    now_event_ = now.event + 1;
  }

  void phase_ends() override {
    close_operation();
    slice_ends(kPhases);
  }

  void begin_phase_slice(const Instant& now) {
    const timeline::PhaseKey& key = shown()[now.phase];
    now_event_ = now.event;
    if (key.phase != Phase::kModel && step_ != key.step) {
      close_step();
      step_ = key.step;
      slice_begins(kPhases, key.step == 0 ? "first step" : "steady step");
    }
    slice_begins(kPhases, names_[now.phase]);
    now_.reset();
  }

  void close_step() {
    if (step_) slice_ends(kPhases);
    step_.reset();
  }

  void open_operation(const Instant& now) {
    if (now.operation == 0) return;
    slice_begins(kOperations, made_by(operations_.at(now.operation), shown()[now.phase].phase));
    operation_open_ = true;
  }

  void close_operation() {
    if (operation_open_) slice_ends(kOperations);
    operation_open_ = false;
  }

  // Counters that changed since they were last written.
  void count(const Instant& now) {
    for (std::size_t i = 0; i < now.alive.size(); ++i) {
      if (written_ && written_->alive[i] == now.alive[i]) continue;
      if (!written_ && now.alive[i] == 0) continue;
      counter(timeline::name(static_cast<timeline::Tag>(i)), now.event, now.alive[i]);
    }
    if (!written_ || written_->bytes != now.bytes) counter("all tags", now.event, now.bytes);
    written_ = now;
  }

  void mark_peak(const Instant& now) {
    const timeline::PhaseKey& key = shown()[now.phase];
    const plan::StepTimeline& step = key.step == 0 ? plan_.first : plan_.steady;
    if (marked_ == key.step || now.bytes != step.peak.bytes || !(key == step.peak.phase)) return;
    marked_ = key.step;
    const std::string title = fmt::format(
        "peak of the {} step: {}", key.step == 0 ? "first" : "steady", human(Bytes{now.bytes}));
    event(
        fmt::format(R"("ph":"i","s":"p","tid":{},"ts":{},"name":{},"args":{{"bytes":{},"at":{}}})",
                    kPhases, now.event, quoted(title), now.bytes, quoted(step.peak_operation)));
  }

  void name_row(const char* kind, int row, const std::string& name) {
    event(fmt::format(R"("ph":"M","tid":{},"name":"{}","args":{{"name":{}}})", row, kind,
                      quoted(name)));
  }
  void slice_begins(int row, const std::string& name) {
    event(fmt::format(R"("ph":"B","tid":{},"ts":{},"name":{})", row, now_event_, quoted(name)));
  }
  void slice_ends(int row) { event(fmt::format(R"("ph":"E","tid":{},"ts":{})", row, now_event_)); }
  void counter(std::string_view name, std::int64_t when, std::int64_t bytes) {
    event(fmt::format(R"("ph":"C","tid":0,"ts":{},"name":"{}","args":{{"bytes":{}}})", when, name,
                      bytes));
  }
  void event(const std::string& fields) {
    text_ += (text_.empty() ? "" : ",\n") + ("{\"pid\":1," + fields + "}");
  }

  const std::vector<std::string> names_;
  const plan::Plan& plan_;
  const std::vector<std::string> operations_;
  std::string text_;
  std::optional<Instant> now_;      // of the open phase
  std::optional<Instant> written_;  // what the counters say
  std::int64_t now_event_ = 0;      // where slices begin and end
  std::optional<std::int32_t> step_;
  std::int32_t marked_ = -1;  // the last step whose peak is marked
  bool operation_open_ = false;
};

ShownPhases whole_run(const plan::Plan& plan) {
  ShownPhases all = shown_phases(plan, ShownStep::kFirst);
  const ShownPhases steady = shown_phases(plan, ShownStep::kSteady);
  all.keys.insert(all.keys.end(), steady.keys.begin(), steady.keys.end());
  all.names.insert(all.names.end(), steady.names.begin(), steady.names.end());
  return all;
}

}  // namespace

std::string trace_json(const plan::Plan& plan) {
  const network::Network network = network::build_network(plan.spec, plan.job.build_options());
  TraceSink sink(whole_run(plan), plan, plan::operation_names(network));
  plan::walk(network, plan.job, {}, sink);
  return sink.finish();
}

}  // namespace plimsoll::report
