#include "cli/output/progress.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include "cli/options/interrupt.h"

namespace spillway::cli {
namespace {

constexpr std::uint64_t smallest_shown_bytes = 50'000'000;
constexpr std::uint64_t bar_cells = 30;
std::atomic<bool> is_shown{false};

void show_line(const std::string& line) {
  is_shown = true;
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

void draw(const std::string& what, std::uint64_t done, std::uint64_t total) {
  const std::uint64_t cells = total == 0 ? 0 : std::min(bar_cells, done * bar_cells / total);
  const std::string bar = std::string(cells, '#') + std::string(bar_cells - cells, '.');
  show_line(fmt::format("[{}] {:3.0f}% {}", bar, 100.0 * static_cast<double>(done) / static_cast<double>(total), what));
}

}  // namespace

Progress::Progress(const Context& context) : visible_(!context.quiet && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear_progress(); }

std::function<bool(std::uint64_t, std::uint64_t)> Progress::callback(std::string what) const {
  return [visible = visible_, what = std::move(what)](std::uint64_t done, std::uint64_t total) {
    if (visible && total >= smallest_shown_bytes) draw(what, done, total);
    return !is_interrupted();
  };
}

std::function<bool(std::size_t, std::size_t)> Progress::counter(std::string what) const {
  return [visible = visible_, what = std::move(what)](std::size_t done, std::size_t total) {
    if (visible) draw(what, done, total);
    return !is_interrupted();
  };
}

bool Progress::show(const std::string& line) const {
  if (visible_) show_line(line);
  return !is_interrupted();
}

void clear_progress() {
  if (is_shown.exchange(false)) std::fputs("\r\033[K", stderr);
}

}  // namespace spillway::cli
