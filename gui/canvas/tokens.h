// The window's colours by what they mean, light and dark: one hue per cause, the same in every view, scenario and
// theme. Forward work and the activations it leaves in memory share a hue, so that the eye goes from a kernel to its
// bytes.
//
// Contrasts are WCAG 2's: text 4.5 on its surface, colours of the canvas and edges of controls 3. Any two of the eight
// roles stay apart under deuteranopia, protanopia and tritanopia as well (tests/gui/canvas/tokens_test.cc).
#pragma once

#include <QColor>
#include <array>
#include <cstdint>
#include <string_view>

#include "sim/pictures/timeline_lanes.h"

namespace spillway::gui {

enum class Token : std::uint8_t {
  // Surfaces: the canvas, panels, what lies on them, wells.
  canvas,
  panel,
  raised,
  sunken,
  line,     // separators: decoration only
  grid,     // behind the data
  control,  // edges of controls
  // Text on any of the surfaces.
  text,
  muted,
  faint,
  // Focus and selection; a verdict; each with its own surface.
  accent,
  accent_surface,
  on_accent,
  good,
  good_surface,
  warn,
  warn_surface,
  bad,
  bad_surface,
  // Roles: of work, and of the memory that it takes.
  forward,    // activations
  recompute,  // hatched as well
  backward,   // gradients
  optimizer,  // its state
  weight,
  temporary,
  communication,  // links, collectives, their buffers
  host,           // copies to and from host memory
  drive,
  unknown,  // inputs, buffers, operators
  cached,   // cached and free memory, bubbles: hatched
};
inline constexpr std::size_t token_count = static_cast<std::size_t>(Token::cached) + 1;
using TokenColors = std::array<QColor, token_count>;

const TokenColors& light_tokens();
const TokenColors& dark_tokens();

Token work_token(WorkColor work);
// kind: as MemoryPicture::kinds, by role or phase.
Token owner_token(std::string_view kind);
// Colours of a program's lines that hold most, by their place; further lines share one colour.
inline constexpr std::size_t line_tokens = 7;
Token line_token(std::size_t place);
// Place of an owner in a stack, from the bottom: weights, optimizer, gradients, activations, temporaries, the rest.
int owner_rank(Token owner);

// WCAG 2: relative luminance, 0 .. 1; contrast, 1 .. 21.
double luminance(const QColor& color);
double contrast(const QColor& a, const QColor& b);

}  // namespace spillway::gui
