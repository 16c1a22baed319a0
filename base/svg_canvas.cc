#include "base/svg_canvas.h"

#include "base/svg_text.h"

namespace spillway {

void SvgCanvas::text(double x, double y, double size, std::string_view words, std::string_view fill,
                     std::string_view anchor, std::string_view more) {
  put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:g}\" fill=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, size,
      fill, anchor, more, svg_escape(words));
}

void SvgCanvas::text_upwards(double x, double y, double size, std::string_view words, std::string_view fill) {
  put("<text transform=\"translate({:.1f},{:.1f}) rotate(-90)\" font-size=\"{:g}\" fill=\"{}\" "
      "text-anchor=\"middle\">{}</text>\n",
      x, y, size, fill, svg_escape(words));
}

void SvgCanvas::rect(double x, double y, double width, double height, std::string_view fill, std::string_view more) {
  put("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"{}/>\n", x, y, width, height, fill,
      more);
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, std::string_view stroke, std::string_view more) {
  put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x1, y1, x2, y2, stroke,
      more);
}

std::string SvgCanvas::document(double width, double height, std::string_view title) const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\">\n<title>{2}</title>\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#FFFFFF\"/>\n{3}</svg>\n",
      width, height, svg_escape(title), body_);
}

std::string SvgCanvas::inline_element(double width, double height, std::string_view title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>{2}</title>\n{3}</svg>\n",
      width, height, svg_escape(title), body_);
}

}  // namespace spillway
