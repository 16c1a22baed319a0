#include "gui/canvas/tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gui/canvas/theme.h"

namespace spillway::gui {
namespace {

using Linear = std::array<double, 3>;
using Matrix = std::array<Linear, 3>;

// Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB.
struct Sight {
  const char* name;
  Matrix matrix;
};
const Sight sights[] = {
    {"ordinary", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protanopia",
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
    {"deuteranopia",
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
    {"tritanopia",
     {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}},
};

double linear(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

Linear seen(const QColor& color, const Matrix& sight) {
  const Linear rgb = {linear(color.redF()), linear(color.greenF()), linear(color.blueF())};
  Linear out{};
  for (std::size_t i = 0; i < 3; ++i)
    out[i] = std::clamp(sight[i][0] * rgb[0] + sight[i][1] * rgb[1] + sight[i][2] * rgb[2], 0.0, 1.0);
  return out;
}

// CIE 1976 L*a*b* under D65.
Linear lab(const Linear& rgb) {
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  const double x = f((0.4124 * rgb[0] + 0.3576 * rgb[1] + 0.1805 * rgb[2]) / 0.95047);
  const double y = f(0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]);
  const double z = f((0.0193 * rgb[0] + 0.1192 * rgb[1] + 0.9505 * rgb[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double distance(const QColor& a, const QColor& b, const Matrix& sight) {
  const Linear x = lab(seen(a, sight)), y = lab(seen(b, sight));
  return std::sqrt((x[0] - y[0]) * (x[0] - y[0]) + (x[1] - y[1]) * (x[1] - y[1]) + (x[2] - y[2]) * (x[2] - y[2]));
}

constexpr std::array roles = {Token::forward,   Token::backward,      Token::optimizer, Token::weight,
                              Token::temporary, Token::communication, Token::host,      Token::drive};

class Tokens : public testing::TestWithParam<bool> {
 protected:
  const Theme& theme_ = GetParam() ? dark_theme() : light_theme();
};

TEST_P(Tokens, RolesStayApartForEveryKindOfSight) {
  for (const Sight& sight : sights)
    for (std::size_t i = 0; i < roles.size(); ++i)
      for (std::size_t j = i + 1; j < roles.size(); ++j)
        EXPECT_GE(distance(theme_[roles[i]], theme_[roles[j]], sight.matrix), 15)
            << sight.name << " " << theme_[roles[i]].name().toStdString() << " "
            << theme_[roles[j]].name().toStdString();
}

TEST_P(Tokens, TextReadsOnEverySurface) {
  for (const Token surface : {Token::canvas, Token::panel, Token::raised, Token::sunken})
    for (const Token ink :
         {Token::text, Token::muted, Token::faint, Token::accent, Token::good, Token::warn, Token::bad})
      EXPECT_GE(contrast(theme_[ink], theme_[surface]), 4.5)
          << theme_[ink].name().toStdString() << " on " << theme_[surface].name().toStdString();
  EXPECT_GE(contrast(theme_[Token::good], theme_[Token::good_surface]), 4.5);
  EXPECT_GE(contrast(theme_[Token::warn], theme_[Token::warn_surface]), 4.5);
  EXPECT_GE(contrast(theme_[Token::bad], theme_[Token::bad_surface]), 4.5);
  EXPECT_GE(contrast(theme_[Token::on_accent], theme_[Token::accent]), 4.5);
  EXPECT_GE(contrast(theme_[Token::text], theme_[Token::accent_surface]), 4.5);
}

TEST_P(Tokens, ShapesAndEdgesOfControlsShow) {
  for (const Token surface : {Token::panel, Token::raised, Token::canvas}) {
    EXPECT_GE(contrast(theme_[Token::control], theme_[surface]), 3);
    EXPECT_GE(contrast(theme_[Token::accent], theme_[surface]), 3);
  }
  for (const Token role : roles) {
    EXPECT_GE(contrast(theme_[role], theme_[Token::canvas]), 3) << theme_[role].name().toStdString();
    EXPECT_GE(contrast(Theme::text_on(theme_[role]), theme_[role]), 4.5) << theme_[role].name().toStdString();
  }
  for (const Token role : {Token::recompute, Token::unknown, Token::cached})
    EXPECT_GE(contrast(theme_[role], theme_[Token::canvas]), 3) << theme_[role].name().toStdString();
}

// What forward computes and what it leaves behind are one hue, whatever else a step holds.
TEST_P(Tokens, OwnersHaveTheColourOfTheirCause) {
  EXPECT_EQ(theme_[owner_token("activation")], theme_.work[static_cast<std::size_t>(WorkColor::forward)]);
  EXPECT_EQ(theme_[owner_token("gradient")], theme_.work[static_cast<std::size_t>(WorkColor::backward)]);
  EXPECT_EQ(theme_[owner_token("allocated in backward")], theme_[owner_token("gradient")]);
  EXPECT_EQ(theme_[owner_token("optimizer_state")], theme_.work[static_cast<std::size_t>(WorkColor::optimizer)]);
  EXPECT_NE(theme_[owner_token("weight")], theme_[owner_token("activation")]);
  EXPECT_EQ(theme_[owner_token("held before")], theme_[Token::unknown]);
}

INSTANTIATE_TEST_SUITE_P(Themes, Tokens, testing::Bool(),
                         [](const auto& one) { return std::string(one.param ? "dark" : "light"); });

}  // namespace
}  // namespace spillway::gui
