#include "traces/formats/kineto/json_tokenizer.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "traces/formats/kineto/byte_block.h"

namespace spillway::traces {

// Small inputs need no large window: it grows to chunk_bytes as they are read.
constexpr std::size_t first_bytes = std::size_t{16} << 10;

JsonWindow::JsonWindow(ByteSource& source) : source_(source), buffer_(first_bytes + padding_bytes, '\0') {
  end_ = buffer_.data();
}

JsonWindow::Refill JsonWindow::refill(const char*& keep) {
  const auto kept = static_cast<std::size_t>(end_ - keep);
  std::size_t capacity = buffer_.size() - padding_bytes;
  const bool is_full = end_ == buffer_.data() + capacity;
  window_offset_ += static_cast<std::uint64_t>(keep - buffer_.data());
  std::memmove(buffer_.data(), keep, kept);
  if ((is_full && capacity < chunk_bytes) || (kept > capacity / 2 && capacity < max_token_bytes)) {
    capacity *= 2;
    buffer_.resize(capacity + padding_bytes);
  }
  keep = buffer_.data();
  std::size_t got = 0;
  if (kept < capacity) got = source_.read(std::as_writable_bytes(std::span(buffer_).subspan(kept, capacity - kept)));
  end_ = buffer_.data() + kept + got;
  std::memset(buffer_.data() + kept + got, 0, padding_bytes);
  if (got != 0) return Refill::more;
  return kept >= capacity ? Refill::too_long : Refill::ended;
}

namespace json {
namespace {

static_assert(ByteBlock::size <= JsonWindow::padding_bytes);

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Behind the bracket that closes the `depth` open ones; braces and brackets count alike.
const char* skip_nested(const char* at, const char* end, int depth) {
  while (at < end) {
    const ByteBlock block(at);
    // '[' and '{' (and ']' and '}') differ in one bit only.
    const ByteBlock folded = block.folded();
    const ByteBlock::Matches found = block.matches('"') | folded.matches('{') | folded.matches('}');
    if (found == 0) {
      at += ByteBlock::size;
      continue;
    }
    at += ByteBlock::first(found);
    if (at >= end) return nullptr;
    const char c = *at++;
    if (c == '"') {
      bool escaped = false;
      const char* close = find_quote(at, end, escaped);
      if (close == nullptr) return nullptr;
      at = close + 1;
    } else if ((c | 0x20) == '{') {
      ++depth;
    } else if (--depth == 0) {
      return at;
    }
  }
  return nullptr;
}

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

bool parse_hex4(std::string_view text, unsigned& code) {
  if (text.size() < 4) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, code, 16);
  return error == std::errc() && end == text.data() + 4;
}

// The code point of "uXXXX" at `at`, with a following low surrogate joined; returns the characters used, 0 if
// malformed.
std::size_t parse_unicode_escape(std::string_view text, unsigned& code) {
  if (!parse_hex4(text.substr(1), code)) return 0;
  unsigned low = 0;
  if (code < 0xd800 || code > 0xdfff) return 5;
  if (code < 0xdc00 && text.substr(5, 2) == "\\u" && parse_hex4(text.substr(7), low) && low >= 0xdc00 &&
      low <= 0xdfff) {
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    return 11;
  }
  code = 0xfffd;
  return 5;
}

bool parse_double(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() && error == std::errc() && std::isfinite(value);
}

}  // namespace

const char* find_quote(const char* at, const char* end, bool& escaped) {
  while (at < end) {
    const ByteBlock block(at);
    const ByteBlock::Matches found = block.matches('"') | block.matches('\\');
    if (found == 0) {
      at += ByteBlock::size;
      continue;
    }
    at += ByteBlock::first(found);
    if (at >= end) return nullptr;
    if (*at == '"') return at;
    escaped = true;
    at += 2;
  }
  return nullptr;
}

const char* skip_braces(const char* at, const char* end, int depth) { return skip_nested(at, end, depth); }

const char* skip_value(const char* at, const char* end) {
  if (at >= end) return nullptr;
  if (*at == '"') {
    bool escaped = false;
    const char* close = find_quote(at + 1, end, escaped);
    return close == nullptr ? nullptr : close + 1;
  }
  if (*at == '{' || *at == '[') return skip_nested(at + 1, end, 1);
  while (at < end && *at != ',' && *at != '}' && *at != ']' && *at != ' ' && *at != '\n' && *at != '\r' && *at != '\t')
    ++at;
  return at < end ? at : nullptr;
}

std::string unescape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const char c = raw[++i];
    constexpr std::string_view codes = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const std::size_t known = codes.find(c);
    unsigned code = 0;
    if (known != std::string_view::npos) {
      out += meanings[known];
    } else if (const std::size_t used = c == 'u' ? parse_unicode_escape(raw.substr(i), code) : 0; used != 0) {
      append_utf8(out, code);
      i += used - 1;
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

bool parse_integer(std::string_view text, Integer& result) {
  const char* const first = text.data();
  const char* const last = first + text.size();
  result.exact = true;
  const auto [end, error] = std::from_chars(first, last, result.value);
  if (error == std::errc() && end == last) return true;
  std::uint64_t wide = 0;
  const auto [wide_end, wide_error] = std::from_chars(first, last, wide);
  if (wide_error == std::errc() && wide_end == last) {
    result = {std::numeric_limits<std::int64_t>::max(), false};
    return true;
  }
  double real = 0;
  if (!parse_double(text, real)) return false;
  constexpr double limit = 9.2e18;
  result.exact = std::abs(real) < limit && std::nearbyint(real) == real;
  if (real >= limit)
    result.value = std::numeric_limits<std::int64_t>::max();
  else if (real <= -limit)
    result.value = std::numeric_limits<std::int64_t>::min();
  else
    result.value = static_cast<std::int64_t>(real);
  return true;
}

bool parse_micros(std::string_view text, Micros& result) {
  const char* at = text.data();
  const char* const last = at + text.size();
  const bool negative = at < last && *at == '-';
  if (negative) ++at;
  std::int64_t whole = 0, picos = 0;
  const char* const digits = at;
  while (at < last && is_digit(*at) && at - digits < 18) whole = whole * 10 + (*at++ - '0');
  if (at == digits) return false;
  if (at < last && *at == '.') {
    ++at;
    for (std::int64_t unit = 100'000; at < last && is_digit(*at); ++at, unit /= 10) picos += unit * (*at - '0');
  }
  if (at != last) {  // an exponent or a very long number
    double real = 0;
    if (!parse_double(text, real) || std::abs(real) > 9e17) return false;
    const double below = std::floor(real);
    result = {static_cast<std::int64_t>(below), static_cast<std::int64_t>((real - below) * 1e6)};
    return true;
  }
  if (negative && picos != 0) {
    whole = -whole - 1;
    picos = 1'000'000 - picos;
  } else if (negative) {
    whole = -whole;
  }
  result = {whole, picos};
  return true;
}

}  // namespace json
}  // namespace spillway::traces
