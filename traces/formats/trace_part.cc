#include "traces/formats/trace_part.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/input_error.h"
#include "traces/capture_fit.h"
#include "traces/derive.h"
#include "traces/formats/kineto/json_tokenizer.h"
#include "traces/formats/kineto/kineto_part.h"
#include "traces/size_check.h"

namespace spillway::traces {
namespace {

constexpr std::size_t chunk_bytes = 4 << 20;
constexpr std::size_t most_event = 64 << 10;  // how far the parts of one event may lie apart

// The number behind a key of the event around `at`, which ends at the first '}' that closes it.
bool number_behind(std::string_view event, std::string_view key, double& value) {
  const std::size_t found = event.find(key);
  if (found == std::string_view::npos) return false;
  const std::size_t begin = event.find_first_not_of(" :\"", found + key.size());
  if (begin == std::string_view::npos) return false;
  const std::size_t end = event.find_first_of(",}\" \r\n", begin);
  json::Micros micros;
  if (end == std::string_view::npos || !json::parse_micros(event.substr(begin, end - begin), micros)) return false;
  value = static_cast<double>(micros.whole) + static_cast<double>(micros.picos) * 1e-6;
  return true;
}

class Survey {
 public:
  // Of the text from `at` on; what may be cut off at its end is left for the next time. Returns where that begins.
  std::size_t take(std::string_view text, std::size_t at, bool is_last) {
    constexpr std::string_view key = "\"ts\"";
    std::size_t looked_at = 0, open = 0, close = 0;  // the braces around what was found last
    while (true) {
      const std::size_t found = text.find(key, at);
      if (found == std::string_view::npos) break;
      if (!is_last && text.size() - found < most_event) return found;
      const std::size_t opened = text.substr(looked_at, found - looked_at).rfind('{');
      const bool is_new = looked_at == 0 || opened != std::string_view::npos;
      if (opened != std::string_view::npos) open = looked_at + opened;
      if (close <= found) close = std::min(text.find_first_of("{}", found), text.size());
      looked_at = found;
      // An event has one time, and its parts lie near each other.
      if (is_new && close - open <= 2 * most_event) take_event(text.substr(open, close - open), text.substr(found, 64));
      at = found + key.size();
    }
    if (is_last) return text.size();
    return std::max(at, text.size() - std::min(text.size(), key.size()));
  }
  TraceSurvey finish() {
    TraceSurvey survey;
    survey.first_us = static_cast<std::int64_t>(std::floor(first_));
    survey.length_us = last_ - first_;
    survey.events = events_;
    for (TraceSurvey::Step& step : steps_) {
      step.from_us -= first_;
      step.until_us -= first_;
    }
    std::sort(steps_.begin(), steps_.end(),
              [](const TraceSurvey::Step& a, const TraceSurvey::Step& b) { return a.from_us < b.from_us; });
    survey.steps = std::move(steps_);
    return survey;
  }
  [[nodiscard]] bool is_empty() const { return events_ == 0; }

 private:
  void take_event(std::string_view event, std::string_view time) {
    double begin = 0, duration = 0;
    if (!number_behind(time, "\"ts\"", begin) || begin == 0) return;
    if (event.find("\"ph\": \"M\"") != std::string_view::npos || event.find("\"ph\":\"M\"") != std::string_view::npos)
      return;  // names of threads and processes
    number_behind(event, "\"dur\"", duration);
    first_ = std::min(first_, begin);
    last_ = std::max(last_, begin + duration);
    ++events_;
    const std::size_t named = event.find("\"ProfilerStep#");
    if (named == std::string_view::npos || event.find("\"gpu_user_annotation\"") != std::string_view::npos) return;
    const std::size_t end = event.find('"', named + 1);
    if (end == std::string_view::npos) return;
    steps_.push_back({std::string(event.substr(named + 1, end - named - 1)), begin, begin + duration});
  }

  double first_ = std::numeric_limits<double>::infinity(), last_ = -std::numeric_limits<double>::infinity();
  std::uint64_t events_ = 0;
  std::vector<TraceSurvey::Step> steps_;
};

void require_kineto(const std::string& path) {
  const TraceFormat format = detect_format(path);
  if (format != TraceFormat::kineto)
    throw InputError(path, "", "is a " + std::string(to_string(format)) + ", of which no part can be read",
                     "read it whole");
}

}  // namespace

TraceSurvey survey_trace(const std::string& path, const ReadOptions& options) {
  require_kineto(path);
  ByteSource source = ByteSource::open(path, options.max_decompressed_bytes, options.progress);
  Survey survey;
  std::string text;
  // The beginning of an event lies before its time: that much of what was looked at stays.
  std::size_t looked_at = 0;
  while (true) {
    const std::size_t kept = std::min(looked_at, most_event);
    text.erase(0, looked_at - kept);
    const std::size_t old = text.size();
    text.resize(old + chunk_bytes);
    const std::size_t read = source.read({reinterpret_cast<std::byte*>(text.data()) + old, chunk_bytes});
    text.resize(old + read);
    const bool is_last = read < chunk_bytes;
    looked_at = survey.take(text, kept, is_last);
    if (is_last) break;
  }
  if (survey.is_empty())
    throw InputError(path, "", "has no events with a time", "is this a trace written by torch.profiler?");
  return survey.finish();
}

Trace read_trace_part(const std::string& path, const TracePart& part, const ReadOptions& options) {
  const TraceSurvey survey = survey_trace(path, options);
  const auto on_clock = [&](double us) {
    const double most = static_cast<double>(std::numeric_limits<std::int64_t>::max() / 4);
    return survey.first_us + static_cast<std::int64_t>(std::clamp(std::floor(us), -most, most));
  };
  if (!(part.from_us < part.until_us) || part.from_us >= survey.length_us || part.until_us <= 0)
    throw InputError(path, "", "nothing was recorded in that part of its time",
                     "choose a part of its " + std::to_string(survey.length_us / 1e3) + " ms");
  ByteSource source = ByteSource::open(path, options.max_decompressed_bytes, options.progress);
  Trace trace = read_kineto_part(source, options, {on_clock(part.from_us), on_clock(part.until_us)});
  check_sizes(trace);
  derive(trace);
  fit_capture(trace);
  return trace;
}

}  // namespace spillway::traces
