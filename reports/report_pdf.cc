// The module that lays reports out as PDF (report_modules.cc).
#include <cairo-pdf.h>
#include <pango/pangocairo.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "reports/report_chart.h"
#include "reports/report_document.h"

namespace spillway::reports {
namespace {

constexpr double page_width = 595.276, page_height = 841.89, page_margin = 45, room = page_width - 2 * page_margin;
constexpr double cell_gap = 7, cell_size = 7.2, page_text = 9;
constexpr const char* page_ink = "#1A1A1A";

struct Free {
  void operator()(PangoLayout* layout) const { g_object_unref(layout); }
  void operator()(cairo_t* cairo) const { cairo_destroy(cairo); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using Layout = std::unique_ptr<PangoLayout, Free>;

cairo_status_t append(void* bytes, const unsigned char* data, unsigned length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

// Sets a document from top to bottom, page by page.
class PdfPages {
 public:
  explicit PdfPages(const std::string& title)
      : surface_(cairo_pdf_surface_create_for_stream(append, &bytes_, page_width, page_height)),
        cairo_(cairo_create(surface_.get())) {
    cairo_pdf_surface_set_metadata(surface_.get(), CAIRO_PDF_METADATA_TITLE, title.c_str());
    // No clock in the file: the dates that matter are the inputs', in the text.
    cairo_pdf_surface_set_metadata(surface_.get(), CAIRO_PDF_METADATA_CREATE_DATE, "");
  }

  std::string finish() {
    cairo_show_page(cairo_.get());
    cairo_surface_finish(surface_.get());
    return std::move(bytes_);
  }

  void text(const std::string& words, double size, bool bold, double indent, double above) {
    const Layout layout = lay_out(words, size, bold, room - indent);
    space(above);
    if (y_ + height(layout.get()) > page_height - page_margin) new_page();
    colour(page_ink);
    place(layout.get(), page_margin + indent, y_);
    y_ += height(layout.get());
  }

  void verdict(const ReportDocument& document) {
    const Layout layout = lay_out(document.verdict, 10, true, room - 12);
    const double tall = height(layout.get()) + 8;
    constexpr std::array colours = {"#00795A", "#8A5A00", "#6B7280", "#B94600"};  // by Verdict
    colour(colours.at(static_cast<std::size_t>(document.answer)));
    cairo_rectangle(cairo_.get(), page_margin, y_ + 8, 3, tall);
    cairo_fill(cairo_.get());
    colour(page_ink);
    place(layout.get(), page_margin + 12, y_ + 12);
    y_ += tall + 10;
  }

  void item(const std::string& words) {
    space(1);
    const double before = y_;
    text(words, page_text, false, 12, 0);
    if (y_ < before) return;  // it went to a new page
    const Layout dot = lay_out("\u2022", page_text, false, 10);
    place(dot.get(), page_margin + 2, before);
  }

  void page_break() {
    if (y_ > page_margin) new_page();
  }

  void drawing(const ChartDrawing& drawing) {
    space(10);
    if (y_ + drawing.height > page_height - page_margin) new_page();
    for (const ChartLine& line : drawing.lines) stroke(line);
    for (const ChartText& words : drawing.texts) {
      const Layout layout = lay_out(words.text, words.size * 0.86, false, -1);
      int width = 0, tall = 0;
      pango_layout_get_size(layout.get(), &width, &tall);
      const double wide = static_cast<double>(width) / PANGO_SCALE;
      const double back = words.anchor == ChartAnchor::end ? wide : words.anchor == ChartAnchor::middle ? wide / 2 : 0;
      const double baseline = static_cast<double>(pango_layout_get_baseline(layout.get())) / PANGO_SCALE;
      colour(words.colour);
      place(layout.get(), page_margin + words.x - back, y_ + words.y - baseline);
    }
    y_ += drawing.height;
  }

  void table(const ReportTable& what) {
    if (!what.caption.empty()) {
      if (y_ + 60 > page_height - page_margin) new_page();
      text(what.caption, page_text, true, 0, 8);
    }
    space(3);
    const std::vector<double> widths = column_widths(what);
    std::vector<ReportCell> head;
    for (std::size_t c = 0; c < what.columns.size(); ++c) {
      const bool has_numbers =
          std::any_of(what.rows.begin(), what.rows.end(),
                      [c](const std::vector<ReportCell>& cells) { return cells[c].number.has_value(); });
      head.push_back({what.columns[c], has_numbers ? std::optional(0.0) : std::nullopt});  // flush right as its figures
    }
    const double head_height = row(head, widths, true, false);
    row(head, widths, true, true);
    for (std::vector<ReportCell> cells : what.rows) {
      for (std::size_t c = 0; c < cells.size(); ++c)  // what is missing stands with the figures
        if (cells[c].text == "-") cells[c].number = head[c].number;
      if (y_ + row(cells, widths, false, false) > page_height - page_margin && y_ > page_margin + head_height) {
        new_page();
        row(head, widths, true, true);
      }
      row(cells, widths, false, true);
    }
  }

 private:
  static double height(PangoLayout* layout) {
    int wide = 0, tall = 0;
    pango_layout_get_size(layout, &wide, &tall);
    return static_cast<double>(tall) / PANGO_SCALE;
  }

  Layout lay_out(const std::string& words, double size, bool bold, double width) const {
    Layout layout(pango_cairo_create_layout(cairo_.get()));
    PangoFontDescription* font = pango_font_description_from_string("Sans");
    pango_font_description_set_absolute_size(font, size * PANGO_SCALE);
    if (bold) pango_font_description_set_weight(font, PANGO_WEIGHT_BOLD);
    pango_layout_set_font_description(layout.get(), font);
    pango_font_description_free(font);
    std::string joined = words;
    for (std::size_t at = joined.find("/s"); at != std::string::npos; at = joined.find("/s", at + 1))
      joined.insert(at + 1, "\u2060");  // no line ends within "GB/s"
    pango_layout_set_text(layout.get(), joined.c_str(), static_cast<int>(joined.size()));
    if (width > 0) {
      pango_layout_set_width(layout.get(), static_cast<int>(width * PANGO_SCALE));
      pango_layout_set_wrap(layout.get(), PANGO_WRAP_WORD_CHAR);
    }
    return layout;
  }

  void place(PangoLayout* layout, double x, double y) {
    cairo_move_to(cairo_.get(), x, y);
    pango_cairo_show_layout(cairo_.get(), layout);
  }

  void colour(const std::string& hex) {
    const unsigned long value = std::strtoul(hex.c_str() + 1, nullptr, 16);
    const auto part = [value](unsigned shift) { return static_cast<double>(value >> shift & 255U) / 255; };
    cairo_set_source_rgb(cairo_.get(), part(16), part(8), part(0));
  }

  void stroke(const ChartLine& line) {
    if (line.width <= 0 || line.x.empty()) return;
    colour(line.colour);
    cairo_set_line_width(cairo_.get(), line.width);
    const double dashes[] = {5, 4};
    cairo_set_dash(cairo_.get(), dashes, line.dashed ? 2 : 0, 0);
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      const double x = page_margin + line.x[i], y = y_ + line.y[i];
      i == 0 ? cairo_move_to(cairo_.get(), x, y) : cairo_line_to(cairo_.get(), x, y);
    }
    cairo_stroke(cairo_.get());
    cairo_set_dash(cairo_.get(), dashes, 0, 0);
  }

  void space(double points) { y_ += y_ > page_margin ? points : 0; }
  void new_page() {
    cairo_show_page(cairo_.get());
    y_ = page_margin;
  }

  // As wide as their longest line where all fit; else what the narrow ones leave goes to the wide ones in proportion.
  [[nodiscard]] std::vector<double> column_widths(const ReportTable& what) const {
    std::vector<double> natural, least;
    const auto measure = [this](const std::string& words, bool bold) {
      int wide = 0, tall = 0;
      pango_layout_get_size(lay_out(words, cell_size, bold, -1).get(), &wide, &tall);
      return static_cast<double>(wide) / PANGO_SCALE + 1;
    };
    for (std::size_t c = 0; c < what.columns.size(); ++c) {
      double longest_word = 0, widest = 0;
      for (std::size_t at = 0; at < what.columns[c].size();) {
        const std::size_t end = std::min(what.columns[c].find(' ', at), what.columns[c].size());
        longest_word = std::max(longest_word, measure(what.columns[c].substr(at, end - at), true));
        at = end + 1;
      }
      for (const auto& cells : what.rows) {
        const double wide = measure(cells[c].text, false);
        widest = std::max(widest, wide);
        if (cells[c].number) longest_word = std::max(longest_word, wide);
      }
      natural.push_back(std::max({widest, longest_word, std::min(measure(what.columns[c], true), 70.0)}) + cell_gap);
      least.push_back(std::min(natural.back(), std::max(longest_word, 38.0) + cell_gap));
    }
    const double sum = std::accumulate(natural.begin(), natural.end(), 0.0);
    if (sum <= room) return natural;
    const double floor = std::accumulate(least.begin(), least.end(), 0.0);
    const double share = sum > floor ? std::max(0.0, (room - floor) / (sum - floor)) : 0;
    for (std::size_t c = 0; c < natural.size(); ++c) natural[c] = least[c] + share * (natural[c] - least[c]);
    const double total = std::accumulate(natural.begin(), natural.end(), 0.0);
    if (total > room)
      for (double& width : natural) width *= room / total;
    return natural;
  }

  // Its height; drawn only on request.
  double row(const std::vector<ReportCell>& cells, const std::vector<double>& widths, bool is_head, bool draw) {
    std::vector<Layout> layouts;
    double tall = 0;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      layouts.push_back(lay_out(cells[c].text, cell_size, is_head, widths[c] - cell_gap));
      if (cells[c].number) pango_layout_set_alignment(layouts.back().get(), PANGO_ALIGN_RIGHT);
      tall = std::max(tall, height(layouts.back().get()));
    }
    tall += 5;
    if (!draw) return tall;
    double x = page_margin;
    colour(page_ink);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      place(layouts[c].get(), x, y_ + 2);
      x += widths[c];
    }
    y_ += tall;
    colour(is_head ? "#8A8A8A" : "#E3E3E3");
    cairo_set_line_width(cairo_.get(), 0.5);
    cairo_move_to(cairo_.get(), page_margin, y_);
    cairo_line_to(cairo_.get(), x - cell_gap, y_);
    cairo_stroke(cairo_.get());
    return tall;
  }

  std::string bytes_;
  std::unique_ptr<cairo_surface_t, Free> surface_;
  std::unique_ptr<cairo_t, Free> cairo_;
  double y_ = page_margin;
};

std::string pdf_of(const ReportDocument& document) {
  PdfPages pages(document.title);
  pages.text(document.title, 17, true, 0, 0);
  pages.text(document.subtitle, page_text, false, 0, 3);
  pages.verdict(document);
  for (const ReportSection& section : document.sections) {
    if (section.new_page) pages.page_break();
    pages.text(section.heading, 12.5, true, 0, 16);
    for (const std::string& words : section.paragraphs) pages.text(words, page_text, false, 0, 4);
    for (const std::string& words : section.items) pages.item(words);
    for (const ReportChart& chart : section.charts) pages.drawing(draw_chart(chart, room));
    for (const ReportTornado& tornado : section.tornados) pages.drawing(draw_tornado(tornado, room));
    for (const ReportTable& table : section.tables) pages.table(table);
  }
  return pages.finish();
}

}  // namespace
}  // namespace spillway::reports

extern "C" void spillway_report_pdf(const spillway::reports::ReportDocument& document, std::string& bytes) {
  bytes = spillway::reports::pdf_of(document);
}
