// Texts of files on their way into files of other programs: no formula, no link, no broken document comes of them.
#include <gtest/gtest.h>

#include <string>

#include "base/csv_cell.h"
#include "base/markdown_text.h"
#include "base/svg_text.h"

namespace spillway {
namespace {

TEST(CsvCell, NoFormulaHidesBehindBlanks) {
  for (const std::string blanks : {"", " ", "   ", "\t", " \t ", "\xC2\xA0", "\xEF\xBB\xBF", "\n ", "\v", "\f"})
    for (const std::string formula : {"=1+1", "+SUM(A1)", "-2+3", "@A1"}) {
      const std::string cell = csv_cell(blanks + formula);
      EXPECT_EQ(cell.substr(cell[0] == '"' ? 1 : 0, 1), "'") << blanks << formula;
    }
  for (const std::string plain : {"", " ", "-", " - ", "-1.5", " -1.5", "+3", "-4.2 %", " a=b", "a -b"})
    EXPECT_EQ(csv_cell(plain), plain);
}

TEST(MarkdownText, IsNeitherHtmlNorLink) {
  EXPECT_EQ(markdown_text("<img src=x onerror=alert(1)>"), "&lt;img src=x onerror=alert(1)>");
  EXPECT_EQ(markdown_text("[a](javascript:alert(1))"), "\\[a\\](javascript:alert(1))");
  EXPECT_EQ(markdown_text("\\[a](b)"), "\\\\\\[a\\](b)");  // a backslash before can't undo it
  EXPECT_EQ(markdown_text("a|b\\|c"), "a\\|b\\\\\\|c");
  EXPECT_EQ(markdown_text("&lt;b>"), "&amp;lt;b>");
  EXPECT_EQ(markdown_text("one\r\n# two"), "one  # two");
  EXPECT_EQ(markdown_text("gpt3-175b, `M` -1.5 GiB_x"), "gpt3-175b, `M` -1.5 GiB_x");
}

TEST(XmlCharacters, AreThoseXmlAllows) {
  const std::string instead = "\xEF\xBF\xBD";
  for (const std::string bad : {"\xEF\xBF\xBE", "\xEF\xBF\xBF", "\x01", "\x0b", "\x1f"}) {
    std::string expected;  // for each byte
    for (std::size_t i = 0; i < bad.size(); ++i) expected += instead;
    EXPECT_EQ(xml_characters("a" + bad + "b"), "a" + expected + "b");
    EXPECT_EQ(svg_escape("<" + bad), "&lt;" + expected);
  }
  EXPECT_EQ(xml_characters("\xED\xA0\x80"), instead + instead + instead);  // a surrogate
  EXPECT_EQ(xml_characters("\xC3"), instead);
  for (const std::string good : {"a<&>\"\t\n\r", "\xEF\xBF\xBD", "\xF0\x9F\x98\x80", "\xEE\x80\x80"})
    EXPECT_EQ(xml_characters(good), good);
}

}  // namespace
}  // namespace spillway
