// Parts that the SVG pictures share: a white sheet with shapes and words on it, and colours. Pixels from the upper left
// corner; numbers are written alike on every machine and in every locale.
#pragma once

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace spillway {

inline constexpr std::string_view svg_ink = "#1A1A1A", svg_faint = "#5F5F5F", svg_grid = "#E3E3E3";
// Distinct for the colour-blind: Okabe and Ito, "Color universal design" (2008), with a purple and a grey.
inline constexpr std::array<std::string_view, 8> svg_colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                                "#E69F00", "#56B4E9", "#7B3294", "#4D4D4D"};

// More attributes of a text. The rim keeps it readable on lines and areas.
inline constexpr std::string_view svg_bold = " font-weight=\"bold\"";
inline constexpr std::string_view svg_rim =
    " stroke=\"#FFFFFF\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\"";

class SvgCanvas {
 public:
  // Markup as it stands.
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Arguments>(arguments)...);
  }
  // words: escaped here. anchor: "start", "middle" or "end". more: further attributes, with a space before each.
  void text(double x, double y, double size, std::string_view words, std::string_view fill = svg_ink,
            std::string_view anchor = "start", std::string_view more = "");
  // Reads upwards; (x, y) is on its baseline.
  void text_upwards(double x, double y, double size, std::string_view words, std::string_view fill = svg_ink);
  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view more = "");
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, std::string_view more = "");

  // The whole file. The canvas may be drawn on further.
  [[nodiscard]] std::string document(double width, double height, std::string_view title) const;
  // An element to stand in an HTML page, on the page's own ground.
  [[nodiscard]] std::string inline_element(double width, double height, std::string_view title) const;

 private:
  std::string body_;
};

}  // namespace spillway
