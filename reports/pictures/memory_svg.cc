#include "reports/pictures/memory_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/axis.h"
#include "base/number_text.h"
#include "base/svg_canvas.h"
#include "base/svg_text.h"
#include "reports/pictures/picture_style.h"

namespace spillway::reports {
namespace {

constexpr double bottom_room = 34;
constexpr std::array<std::string_view, 8> kind_fill = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                                       "#56B4E9", "#D55E00", "#F0E442", "#999999"};

class Sheet : public SvgCanvas {
 public:
  Sheet(const MemoryPicture& picture, int width, double plot_height)
      : picture_(picture),
        width_(std::clamp(width, 480, 4096)),
        left_(margin + axis_room),
        plot_(width_ - margin - left_),
        height_(plot_height) {
    text(margin, margin + large, large, fit_text(picture.title, large * 1.08, width_ - 2 * margin), ink, "start", true);
    double y = margin + large + 8;
    for (const std::string& line : wrap_text(picture.subtitle, normal, width_ - 2 * margin, 3)) {
      text(margin, y + normal, normal, line, faint);
      y += normal + 6;
    }
    top_ = y + 14;
  }

  void text(double x, double y, double size, std::string_view words, std::string_view fill = ink,
            std::string_view anchor = "start", bool bold = false) {
    SvgCanvas::text(x, y, size, words, fill, anchor, std::string(bold ? svg_bold : "") + std::string(svg_rim));
  }

  void byte_axis(Bytes most) {
    for (const Tick& tick : byte_ticks(most, 6)) {
      const double y = bottom() - height_ * static_cast<double>(tick.at) / static_cast<double>(most.count());
      line(left_, y, left_ + plot_, y, grid);
      text(left_ - 8, y + 4, small, tick.label, faint, "end");
    }
  }
  void time_axis() {
    line(left_, bottom(), left_ + plot_, bottom(), faint);
    const std::int64_t span = picture_.end - picture_.begin;
    std::vector<Tick> ticks = time_ticks(Picos(span), 8);
    if (!picture_.timed) {
      ticks.clear();
      const std::int64_t step = static_cast<std::int64_t>(round_step(static_cast<double>(span / 7 + 1)));
      for (std::int64_t at = 0; at <= span; at += step) ticks.push_back({at, std::to_string(at)});
      text(left_ + plot_, bottom() + 30, small, "memory events", faint, "end");
    }
    double free_from = 0;
    for (const Tick& tick : ticks) {
      const double x = left_ + plot_ * static_cast<double>(tick.at) / static_cast<double>(span);
      const double half = text_width(tick.label, small) / 2;
      const double middle = std::min(x, width_ - 4 - half);
      line(x, bottom(), x, bottom() + 4, faint);
      if (middle - half < free_from) continue;
      text(middle, bottom() + 17, small, tick.label, faint, "middle");
      free_from = middle + half + 8;
    }
  }
  void legend(const std::vector<std::pair<std::string_view, std::string>>& entries) {
    double x = left_, y = bottom() + bottom_room + 8;
    for (const auto& [fill, name] : entries) {
      const double room = 18 + text_width(name, small) + 16;
      if (x + room > width_ - margin && x > left_) x = left_, y += 18;
      rect(x, y, 12, 12, fill);
      text(x + 18, y + 10, small, name, faint);
      x += room;
    }
    end_ = y + 12 + margin;
  }

  [[nodiscard]] double left() const { return left_; }
  [[nodiscard]] double plot() const { return plot_; }
  [[nodiscard]] double top() const { return top_; }
  [[nodiscard]] double bottom() const { return top_ + height_; }
  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double x_of(std::int64_t at) const {
    return left_ +
           plot_ * static_cast<double>(at - picture_.begin) / static_cast<double>(picture_.end - picture_.begin);
  }

  [[nodiscard]] std::string finish() const { return document(width_, end_, picture_.title); }

 private:
  const MemoryPicture& picture_;
  double width_, left_, plot_, top_ = 0, height_, end_ = 0;
};

// The most of each pixel column; a column without a point keeps what was held.
struct Columns {
  std::vector<Bytes> allocated, reserved;
};

Columns fold(const MemoryPicture& picture, std::size_t count) {
  Columns columns{std::vector<Bytes>(count, Bytes(-1)), std::vector<Bytes>(count, Bytes(-1))};
  const double scale = static_cast<double>(count) / static_cast<double>(picture.end - picture.begin);
  Bytes allocated{}, reserved{};
  std::size_t reached = 0;
  const auto keep = [&](std::size_t column) {
    columns.allocated[column] = std::max(columns.allocated[column], allocated);
    columns.reserved[column] = std::max(columns.reserved[column], reserved);
  };
  for (const MemoryPicture::Point& point : picture.curve) {
    const auto column =
        std::min(count - 1, static_cast<std::size_t>(static_cast<double>(point.at - picture.begin) * scale));
    for (; reached < column; ++reached) keep(reached);
    keep(column);
    allocated = point.allocated;
    reserved = point.reserved;
    keep(column);
  }
  for (; reached < count; ++reached) keep(reached);
  return columns;
}

// Addresses in use, without the unused between them.
class Compression {
 public:
  explicit Compression(const std::vector<MemoryPicture::Block>& blocks) {  // in order of address
    for (const MemoryPicture::Block& block : blocks) {
      const std::uint64_t end = block.address + static_cast<std::uint64_t>(block.size.count());
      if (ranges_.empty() || block.address > ranges_.back().end) {
        ranges_.push_back({block.address, end, total_});
        total_ += end - block.address;
      } else if (end > ranges_.back().end) {
        total_ += end - ranges_.back().end;
        ranges_.back().end = end;
      }
    }
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] std::uint64_t of(std::uint64_t address) const {
    auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                  [](std::uint64_t wanted, const Range& range) { return wanted < range.begin; });
    --after;
    return after->at + (address - after->begin);
  }
  [[nodiscard]] std::vector<std::uint64_t> seams() const {
    std::vector<std::uint64_t> seams;
    for (std::size_t i = 1; i < ranges_.size(); ++i) seams.push_back(ranges_[i].at);
    return seams;
  }

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0, at = 0;
  };
  std::vector<Range> ranges_;
  std::uint64_t total_ = 0;
};

// Cells of two pixels; each belongs to whoever fills most of it.
class Raster {
 public:
  Raster(const MemoryPicture& picture, const Compression& compression, std::size_t columns, std::size_t rows)
      : columns_(columns),
        rows_(rows),
        filled_(columns * rows, 0),
        most_(columns * rows, 0),
        kind_(columns * rows, none) {
    const double per_column = static_cast<double>(picture.end - picture.begin) / static_cast<double>(columns);
    const double per_row =
        static_cast<double>(std::max<std::uint64_t>(1, compression.total())) / static_cast<double>(rows);
    for (const MemoryPicture::Block& block : picture.blocks) {
      const auto y = static_cast<double>(compression.of(block.address)) / per_row;
      add(static_cast<double>(block.begin - picture.begin) / per_column,
          static_cast<double>(block.end - picture.begin) / per_column, y,
          y + static_cast<double>(block.size.count()) / per_row, std::min(block.kind, kind_fill.size() - 1));
    }
  }
  static constexpr std::uint8_t none = 0xff;
  // What fills most of a cell; none where it is mostly free.
  [[nodiscard]] std::uint8_t at(std::size_t column, std::size_t row) const {
    const std::size_t cell = row * columns_ + column;
    return filled_[cell] >= 0.5F ? kind_[cell] : none;
  }

 private:
  void add(double x0, double x1, double y0, double y1, std::size_t kind) {
    const auto last_column = std::min(columns_, static_cast<std::size_t>(std::ceil(x1)));
    const auto last_row = std::min(rows_, static_cast<std::size_t>(std::ceil(y1)));
    for (auto row = static_cast<std::size_t>(y0); row < last_row; ++row) {
      const double high = std::min(y1, static_cast<double>(row + 1)) - std::max(y0, static_cast<double>(row));
      for (auto column = static_cast<std::size_t>(x0); column < last_column; ++column) {
        const double wide = std::min(x1, static_cast<double>(column + 1)) - std::max(x0, static_cast<double>(column));
        const auto part = static_cast<float>(std::max(0.0, wide) * std::max(0.0, high));
        const std::size_t cell = row * columns_ + column;
        filled_[cell] += part;
        if (part > most_[cell]) most_[cell] = part, kind_[cell] = static_cast<std::uint8_t>(kind);
      }
    }
  }
  std::size_t columns_, rows_;
  std::vector<float> filled_, most_;
  std::vector<std::uint8_t> kind_;
};

// Runs of equal cells in a row, joined with equal runs above them.
void paint(Sheet& sheet, const Raster& raster, std::size_t columns, std::size_t rows, double cell) {
  struct Run {
    std::size_t begin = 0, end = 0, row = 0;  // row: where it began
    std::uint8_t kind = 0;
  };
  std::vector<Run> open;
  const auto draw = [&](const Run& run, std::size_t row) {
    sheet.rect(sheet.left() + cell * static_cast<double>(run.begin), sheet.bottom() - cell * static_cast<double>(row),
               cell * static_cast<double>(run.end - run.begin), cell * static_cast<double>(row - run.row),
               kind_fill[run.kind]);
  };
  for (std::size_t row = 0; row <= rows; ++row) {
    std::vector<Run> now;
    for (std::size_t column = 0; row < rows && column < columns;) {
      const std::uint8_t kind = raster.at(column, row);
      std::size_t end = column + 1;
      while (end < columns && raster.at(end, row) == kind) ++end;
      if (kind != Raster::none) now.push_back({column, end, row, kind});
      column = end;
    }
    for (const Run& run : open) {
      const auto same = std::find_if(now.begin(), now.end(), [&](const Run& other) {
        return other.begin == run.begin && other.end == run.end && other.kind == run.kind;
      });
      if (same == now.end())
        draw(run, row);
      else
        same->row = run.row;
    }
    open = std::move(now);
  }
}

void mark_peak(Sheet& sheet, const MemoryPicture& picture, Bytes most, bool allocated) {
  const auto value = [allocated](const MemoryPicture::Point& p) { return allocated ? p.allocated : p.reserved; };
  const auto peak = std::max_element(picture.curve.begin(), picture.curve.end(),
                                     [&](const auto& a, const auto& b) { return value(a) < value(b); });
  const std::string words = fmt::format("{} {}", allocated ? "allocated" : "reserved", bytes_text(value(*peak)));
  const double half = text_width(words, small) / 2, x = sheet.x_of(peak->at);
  const double y = sheet.bottom() - (sheet.bottom() - sheet.top()) * static_cast<double>(value(*peak).count()) /
                                        static_cast<double>(most.count());
  sheet.put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, y,
            allocated ? allocated_fill : reserved_line);
  sheet.text(std::clamp(x, sheet.left() + half + 2, sheet.width() - margin - half), allocated ? y + 16 : y - 7, small,
             words, ink, "middle", true);
}

}  // namespace

std::string memory_curve_svg(const MemoryPicture& picture, int width) {
  Sheet sheet(picture, width, 300);
  Bytes most{1};
  for (const MemoryPicture::Point& point : picture.curve) most = std::max({most, point.allocated, point.reserved});
  const bool shows_capacity = picture.capacity > Bytes(0) && picture.capacity < most * 3;
  if (shows_capacity) most = std::max(most, picture.capacity);
  most += most / 12;
  sheet.byte_axis(most);
  const auto count = static_cast<std::size_t>(sheet.plot());
  const Columns columns = fold(picture, count);
  const double scale = (sheet.bottom() - sheet.top()) / static_cast<double>(most.count());
  const auto path = [&](const std::vector<Bytes>& values) {
    std::string points;
    for (std::size_t i = 0; i < count; ++i) {
      const bool turns = i == 0 || i + 1 == count || values[i] != values[i - 1] || values[i] != values[i + 1];
      if (!turns) continue;
      const double y = sheet.bottom() - scale * static_cast<double>(std::max(Bytes(0), values[i]).count());
      points += fmt::format("{:.1f},{:.1f} ", sheet.left() + static_cast<double>(i), y);
    }
    return points;
  };
  sheet.put("<polygon points=\"{:.1f},{:.1f} {}{:.1f},{:.1f}\" fill=\"{}\" fill-opacity=\"0.75\"/>\n", sheet.left(),
            sheet.bottom(), path(columns.allocated), sheet.left() + static_cast<double>(count - 1), sheet.bottom(),
            allocated_fill);
  sheet.put("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path(columns.reserved),
            reserved_line);
  if (shows_capacity) {
    const double y = sheet.bottom() - scale * static_cast<double>(picture.capacity.count());
    sheet.line(sheet.left(), y, sheet.left() + sheet.plot(), y, red, " stroke-dasharray=\"6 4\"");
    sheet.text(sheet.left() + sheet.plot(), y + 15, small, "capacity " + bytes_text(picture.capacity), red, "end");
  }
  sheet.time_axis();
  mark_peak(sheet, picture, most, false);
  mark_peak(sheet, picture, most, true);
  sheet.legend({{allocated_fill, "allocated"}, {reserved_line, "reserved"}});
  return sheet.finish();
}

std::string address_map_svg(const MemoryPicture& picture, int width) {
  constexpr double cell = 2, height = 420;
  Sheet sheet(picture, width, height);
  const Compression compression(picture.blocks);
  sheet.byte_axis(Bytes(static_cast<std::int64_t>(std::max<std::uint64_t>(1, compression.total()))));
  const auto columns = static_cast<std::size_t>(sheet.plot() / cell), rows = static_cast<std::size_t>(height / cell);
  paint(sheet, Raster(picture, compression, columns, rows), columns, rows, cell);
  const double scale = height / static_cast<double>(std::max<std::uint64_t>(1, compression.total()));
  double last = sheet.bottom() + 8;
  for (const std::uint64_t seam : compression.seams()) {
    const double y = sheet.bottom() - scale * static_cast<double>(seam);
    if (last - y < 4) continue;
    sheet.line(sheet.left(), y, sheet.left() + sheet.plot(), y, "#FFFFFF", " stroke-width=\"0.6\"");
    last = y;
  }
  sheet.time_axis();
  std::vector<std::pair<std::string_view, std::string>> entries;
  for (std::size_t kind = 0; kind < picture.kinds.size() && kind < kind_fill.size(); ++kind) {
    const bool rest = kind + 1 == kind_fill.size() && picture.kinds.size() > kind_fill.size();
    entries.emplace_back(kind_fill[kind], rest ? "others" : picture.kinds[kind]);
  }
  sheet.legend(entries);
  return sheet.finish();
}

}  // namespace spillway::reports
