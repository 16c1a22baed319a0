#include "gui/canvas/tokens.h"

#include <algorithm>
#include <cmath>

#include "traces/trace.h"

namespace spillway::gui {
namespace {

struct Row {
  Token token;
  const char *light, *dark;
};

constexpr std::array<Row, token_count> table = {{
    {Token::canvas, "#FFFFFF", "#121519"},       {Token::panel, "#F5F6F8", "#1A1E24"},
    {Token::raised, "#FFFFFF", "#222730"},       {Token::sunken, "#ECEEF2", "#0D0F12"},
    {Token::line, "#D5D9E0", "#333A45"},         {Token::grid, "#E6E9EE", "#242A32"},
    {Token::control, "#7C8696", "#8893A3"},      {Token::text, "#16191D", "#E9ECF0"},
    {Token::muted, "#56606E", "#A6B0BD"},        {Token::faint, "#5F6977", "#929CAA"},
    {Token::accent, "#0B6A8A", "#62D3EA"},       {Token::accent_surface, "#DDF0F6", "#143A45"},
    {Token::on_accent, "#FFFFFF", "#06181C"},    {Token::good, "#0A7042", "#58CF97"},
    {Token::good_surface, "#E1F3E9", "#153526"}, {Token::warn, "#855400", "#F0BC55"},
    {Token::warn_surface, "#FCEFD2", "#3A2D10"}, {Token::bad, "#B3261E", "#FF8F86"},
    {Token::bad_surface, "#FBE4E2", "#451C1A"},  {Token::forward, "#6584D0", "#8EAFFE"},
    {Token::recompute, "#33539F", "#5B7FD6"},    {Token::backward, "#AE5644", "#D47763"},
    {Token::optimizer, "#229D79", "#5AC9A1"},    {Token::weight, "#445961", "#849399"},
    {Token::temporary, "#C776AC", "#FFB5EB"},    {Token::communication, "#563173", "#926CB0"},
    {Token::host, "#683C00", "#A07331"},         {Token::drive, "#A39242", "#E5D183"},
    {Token::unknown, "#6E7783", "#8C95A1"},      {Token::cached, "#808A97", "#6B7583"},
}};

TokenColors colors(bool is_dark) {
  TokenColors found;
  for (const Row& row : table)
    found[static_cast<std::size_t>(row.token)] = QColor(QLatin1String(is_dark ? row.dark : row.light));
  return found;
}

double linear(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

}  // namespace

const TokenColors& light_tokens() {
  static const TokenColors found = colors(false);
  return found;
}

const TokenColors& dark_tokens() {
  static const TokenColors found = colors(true);
  return found;
}

Token work_token(WorkColor work) {
  switch (work) {
    case WorkColor::forward:
      return Token::forward;
    case WorkColor::recompute:
      return Token::recompute;
    case WorkColor::backward:
      return Token::backward;
    case WorkColor::optimizer:
      return Token::optimizer;
    case WorkColor::communication:
      return Token::communication;
    case WorkColor::copy:
      return Token::host;
    case WorkColor::storage:
      return Token::drive;
    case WorkColor::other:
    case WorkColor::host_call:
      return Token::unknown;
    case WorkColor::waiting:
      return Token::cached;
  }
  return Token::unknown;
}

Token owner_token(std::string_view kind) {
  struct Named {
    std::string_view word;
    Token token;
  };
  static const std::array<Named, 10> names = {{
      {to_string(TensorRole::weight), Token::weight},
      {to_string(TensorRole::gradient), Token::backward},
      {to_string(TensorRole::optimizer_state), Token::optimizer},
      {to_string(TensorRole::activation), Token::forward},
      {to_string(TensorRole::temporary), Token::temporary},
      {to_string(Phase::forward), Token::forward},
      {to_string(Phase::backward), Token::backward},
      {to_string(Phase::optimizer), Token::optimizer},
      {to_string(Phase::communication), Token::communication},
      {to_string(Phase::recompute), Token::recompute},
  }};
  const auto found =
      std::find_if(names.begin(), names.end(), [kind](const Named& named) { return kind.ends_with(named.word); });
  return found == names.end() ? Token::unknown : found->token;
}

Token line_token(std::size_t place) {
  constexpr std::array<Token, line_tokens> tokens = {Token::optimizer, Token::forward, Token::weight, Token::recompute,
                                                     Token::temporary, Token::drive,   Token::host};
  return place < tokens.size() ? tokens[place] : Token::unknown;
}

int owner_rank(Token owner) {
  constexpr std::array order = {Token::weight,    Token::optimizer, Token::backward,     Token::forward,
                                Token::recompute, Token::temporary, Token::communication};
  return static_cast<int>(std::find(order.begin(), order.end(), owner) - order.begin());
}

double luminance(const QColor& color) {
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

}  // namespace spillway::gui
