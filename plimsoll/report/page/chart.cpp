#include "plimsoll/report/page/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/report/page/markup.hpp"

namespace plimsoll::report {
namespace {

using timeline::Curve;
using timeline::Instant;
using timeline::Tag;

// The drawing's own units; the page stretches it.
constexpr double kWidth = 1000;
constexpr double kHeight = 400;

// What stays comes first, so that the changing parts lie on flat ground.
constexpr std::array kStackOrder = {
    Tag::kParameters, Tag::kMasterCopy, Tag::kOptimizer,        Tag::kBuffers,
    Tag::kInputs,     Tag::kSnapshot,   Tag::kKvCache,          Tag::kGathered,
    Tag::kGradients,  Tag::kReduce,     Tag::kActivations,      Tag::kLogitsAndLoss,
    Tag::kBackward,   Tag::kWorkspace,  Tag::kLibraryWorkspace, Tag::kAssumedWorkspace};
static_assert(kStackOrder.size() == static_cast<std::size_t>(Tag::kCount));

std::int64_t bytes_of(const Instant& instant, Tag tag) {
  return instant.alive[static_cast<std::size_t>(tag)];
}

// At most one decimal, none where it is 0.
std::string coordinate(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// "10 GiB", not "10.00 GiB".
std::string round_text(std::int64_t bytes) {
  std::string text = human(Bytes{bytes});
  const std::size_t zeros = text.find(".00 ");
  return zeros == std::string::npos ? text : text.erase(zeros, 3);
}

std::string percent(double share) { return fmt::format("{:.3f}%", 100 * share); }

class Chart {
 public:
  Chart(const StepRecord& record, std::optional<std::int64_t> available)
      : record_(record), curve_(record.curve), tags_(stacked_tags(curve_)) {
    top_ = static_cast<double>(peak().bytes);
    // A device far larger than the step would flatten the curve.
    constexpr double kFlattens = 1.6;
    if (available && static_cast<double>(*available) <= kFlattens * top_) available_ = available;
    if (available_) top_ = std::max(top_, static_cast<double>(*available_));
    top_ = std::max(1.0, 1.06 * top_);
  }

  std::string html() const {
    return fmt::format(
               "<figure id=\"chart\">\n<figcaption><h2>Memory over the {} step<span>, stacked by "
               "tag; {} "
               "at the peak</span></h2></figcaption>\n",
               name(record_.shown), human(Bytes{peak().bytes})) +
           plot() + phase_labels() + axis() + readout() + legend() + "</figure>\n";
  }

 private:
  const Instant& peak() const { return curve_.points[curve_.peak]; }
  double share_of(std::int64_t event) const {
    return static_cast<double>(event) / static_cast<double>(curve_.events);
  }
  double x(std::int64_t event) const { return kWidth * share_of(event); }
  double height(std::int64_t bytes) const { return static_cast<double>(bytes) / top_; }
  double y(std::int64_t bytes) const { return kHeight * (1 - height(bytes)); }

  std::string plot() const {
    return fmt::format(
               "<div id=\"plot\" tabindex=\"0\" role=\"slider\" aria-label=\"event of the step\" "
               "aria-valuemin=\"0\" aria-valuemax=\"{}\" aria-valuenow=\"{}\" "
               "aria-valuetext=\"{}\">\n",
               curve_.events - 1, peak().event, escaped(readout_text())) +
           drawing() + ticks() + peak_label() + available_label() + "</div>\n";
  }

  std::string drawing() const {
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\n", kWidth,
        kHeight);
    svg += bands();
    // Each area reaches down to the axis and is covered by those below it in the stack.
    for (std::size_t levels = tags_.size(); levels > 0; --levels) {
      svg += fmt::format("<path class=\"area {}\" d=\"{}\"/>\n", timeline::name(tags_[levels - 1]),
                         area(levels));
    }
    svg += grid();
    svg += vertical("peak", peak().event);
    svg += vertical("cursor", peak().event);
    if (available_) svg += horizontal("available", *available_);
    return svg + "</svg>\n";
  }

  std::string bands() const {
    std::string svg;
    for (std::size_t i = 0; i < curve_.phases.size(); ++i) {
      const timeline::CurvePhase& phase = curve_.phases[i];
      svg += fmt::format("<rect class=\"band {}\" x=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                         i % 2 == 0 ? "even" : "odd", coordinate(x(phase.first)),
                         coordinate(x(phase.last + 1) - x(phase.first)), kHeight);
    }
    return svg;
  }

  // The lowest `levels` tags as one step-shaped area.
  std::string area(std::size_t levels) const {
    std::string path = fmt::format("M0 {}", kHeight);
    std::string before = coordinate(kHeight);
    for (const Instant& point : curve_.points) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < levels; ++i) sum += bytes_of(point, tags_[i]);
      const std::string now = coordinate(y(sum));
      if (now == before) continue;
      path += fmt::format("H{}V{}", coordinate(x(point.event)), now);
      before = now;
    }
    return path + fmt::format("H{}V{}Z", kWidth, kHeight);
  }

  std::string horizontal(const char* kind, std::int64_t bytes) const {
    return fmt::format("<line class=\"{0}\" x1=\"0\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>\n", kind,
                       kWidth, coordinate(y(bytes)));
  }

  std::string vertical(const char* kind, std::int64_t event) const {
    return fmt::format("<line class=\"{0}\" x1=\"{1}\" x2=\"{1}\" y1=\"0\" y2=\"{2}\"/>\n", kind,
                       coordinate(x(event)), kHeight);
  }

  std::string grid() const {
    std::string svg;
    for (const std::int64_t bytes : axis_ticks(static_cast<std::int64_t>(top_))) {
      svg += horizontal("grid", bytes);
    }
    return svg;
  }

  std::string ticks() const {
    std::string html = "<span class=\"tick\" style=\"bottom:0\">0</span>\n";
    for (const std::int64_t bytes : axis_ticks(static_cast<std::int64_t>(top_))) {
      html += fmt::format("<span class=\"tick\" style=\"bottom:{}\">{}</span>\n",
                          percent(height(bytes)), round_text(bytes));
    }
    return html;
  }

  // Stands on the side of its line where there is room.
  std::string peak_label() const {
    const double share = share_of(peak().event);
    const bool left = share > 0.5;
    return fmt::format("<span class=\"peak-label\" style=\"{}:{}\">peak {}</span>\n",
                       left ? "right" : "left", percent(left ? 1 - share : share),
                       human(Bytes{peak().bytes}));
  }

  std::string available_label() const {
    if (!available_) return "";
    return fmt::format("<span class=\"available-label\" style=\"bottom:{}\">available {}</span>\n",
                       percent(height(*available_)), human(Bytes{*available_}));
  }

  std::string phase_labels() const {
    std::string html = "<div id=\"phases-axis\" aria-hidden=\"true\">\n";
    for (std::size_t i = 0; i < curve_.phases.size(); ++i) {
      const timeline::CurvePhase& phase = curve_.phases[i];
      const std::string& title = record_.phases.names[i];
      html += fmt::format("<span class=\"{}\" style=\"left:{};width:{}\" title=\"{}\">{}</span>\n",
                          i % 2 == 0 ? "even" : "odd", percent(share_of(phase.first)),
                          percent(share_of(phase.last + 1) - share_of(phase.first)), title, title);
    }
    return html + "</div>\n";
  }

  std::string axis() const {
    const auto points = static_cast<std::int64_t>(curve_.points.size());
    const std::string drawn =
        points == curve_.events
            ? "all of them drawn"
            : fmt::format("{} drawn, the peak and the borders of phases among them",
                          grouped(points));
    return fmt::format(
        "<p class=\"axis\">{} events of the step from left to right: allocations, releases, "
        "changes of purpose; no time. {}.</p>\n",
        grouped(curve_.events), drawn);
  }

  std::string readout_text() const {
    const Instant& at = peak();
    std::string text =
        fmt::format("event {}, {}", grouped(at.event), record_.phases.names[at.phase]);
    const std::string& operation = record_.operations.at(at.operation);
    if (!operation.empty()) {
      text += ", " + made_by(operation, record_.phases.keys[at.phase].phase);
    }
    return text + fmt::format(": {} bytes ({})", grouped(at.bytes), human(Bytes{at.bytes}));
  }

  std::string readout() const {
    return "<p id=\"readout\" aria-live=\"polite\">" + escaped(readout_text()) + "</p>\n" +
           "<p class=\"keys\">Pointer or arrow keys: one instant; Page Up and Down: phase; Home, "
           "End; P: the peak.</p>\n";
  }

  // From the top of the stack to its bottom, as it is drawn.
  std::string legend() const {
    std::string html = "<table id=\"legend\"><tbody>\n";
    for (auto tag = tags_.rbegin(); tag != tags_.rend(); ++tag) {
      html += fmt::format(
          "<tr><th scope=\"row\" class=\"text\"><span class=\"swatch {0}\"></span>{0}</th><td "
          "class=\"number\" data-tag=\"{0}\">{1}</td></tr>\n",
          timeline::name(*tag), grouped(bytes_of(peak(), *tag)));
    }
    return html + "</tbody></table>\n";
  }

  const StepRecord& record_;
  const Curve& curve_;
  const std::vector<Tag> tags_;
  std::optional<std::int64_t> available_;
  double top_ = 1;
};

}  // namespace

std::string chart_html(const StepRecord& record, std::optional<std::int64_t> available) {
  return Chart(record, available).html();
}

std::vector<Tag> stacked_tags(const Curve& curve) {
  std::vector<Tag> tags;
  for (const Tag tag : kStackOrder) {
    const auto has = [&](const Instant& point) { return bytes_of(point, tag) != 0; };
    if (std::any_of(curve.points.begin(), curve.points.end(), has)) tags.push_back(tag);
  }
  return tags;
}

std::vector<std::int64_t> axis_ticks(std::int64_t top) {
  double unit = 1;
  while (static_cast<double>(top) / unit >= 1024) unit *= 1024;
  const double about = static_cast<double>(top) / unit / 4;
  const double power = std::pow(10, std::floor(std::log10(std::max(about, 1e-3))));
  double step = 10 * power;
  for (const double round : {5.0, 2.0, 1.0}) {
    if (round * power >= about) step = round * power;
  }
  std::vector<std::int64_t> ticks;
  for (double at = step; at * unit <= static_cast<double>(top); at += step) {
    const std::int64_t bytes = std::llround(at * unit);
    if (bytes > 0 && (ticks.empty() || bytes > ticks.back())) ticks.push_back(bytes);
  }
  return ticks;
}

}  // namespace plimsoll::report
