#include "launch/python_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/python_settings.h"
#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

using test::complaint;
using testing::HasSubstr;

// "name=value" of the last call's arguments; ? where it is no literal.
std::vector<std::string> arguments_of(const std::string& text, const ShellValues& given = {}) {
  TextBudget budget("t.py", text.size());
  std::vector<std::string> made;
  const std::vector<PythonCall> calls = python_calls(text, given, budget);
  if (calls.empty()) return made;
  for (const PythonArgument& each : calls.front().arguments)
    made.push_back(each.name + (each.is_null ? "=null" : "=" + each.value) + (each.is_known ? "" : "?"));
  return made;
}

using Words = std::vector<std::string>;

TEST(PythonCalls, LiteralsAreRead) {
  EXPECT_EQ(arguments_of("f(1, 'a' \"b\", r'\\n', x=2e-5, y=True, z=None, w=-3,)"),
            (Words{"=1", "=ab", "=\\n", "x=2e-5", "y=true", "z=null", "w=-3"}));
  EXPECT_EQ(arguments_of("f(a=['q', \"k\"], b=(1, 2), c={'d': {'e': 1}, 'f': [2]}, g=dict(h=3))").size(), 5U);
  EXPECT_EQ(arguments_of("f(c={'d': {'e': 1}, 'f': [2, 3]})"), (Words{"c.d.e=1", "c.f=2,3"}));
  EXPECT_EQ(arguments_of("f(a=torch.bfloat16, b=4 * 1024, c=not True, d=x.y)"),
            (Words{"a=bfloat16", "b=4096", "c=false", "d=x.y?"}));
  EXPECT_EQ(arguments_of("f(  # comment (\n  a=\"\"\"x\ny\"\"\",\n  b=f'{z}', c=f'w')"),
            (Words{"a=x\ny", "b={z}?", "c=w"}));
}

TEST(PythonCalls, NamesThatAreBoundOnce) {
  EXPECT_EQ(arguments_of("a = 3\nb = a\nb2 = 1; b2 = 2\nf(a, b=b, c=b2)"), (Words{"=3", "b=3", "c=b2?"}));
  EXPECT_EQ(arguments_of("more = {'x': 1, 'y': 'z'}\nf(**more, **other)"), (Words{"x=1", "y=z", "=other?"}));
  EXPECT_EQ(arguments_of("f(a=g(1, b=2), c=x if y else z, d=[h for h in i])"),
            (Words{"a=g(1,b=2)?", "c=xifyelsez?", "d=[hforhini]?"}));
  EXPECT_EQ(arguments_of("f(n=len(x))", {{"len(x)", "7"}}), (Words{"n=7"}));
}

TEST(PythonCalls, ArgparseDefaults) {
  const std::string text = "p.add_argument(\"--micro-batch\", type=int, default=4)\nf(b=args.micro_batch)";
  TextBudget budget("t.py", text.size());
  const std::vector<PythonCall> calls = python_calls(text, {}, budget);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[1].line, 2);
  EXPECT_EQ(calls[1].arguments[0].value, "4");
}

TEST(PythonCalls, WhatPythonWouldRefuse) {
  for (const char* text : {"f(1", "f('a", "f(a))", "x = '''a"})
    EXPECT_THAT(complaint([&] { return arguments_of(text); }), HasSubstr("t.py: line 1")) << text;
  EXPECT_THAT(complaint([] { return arguments_of(std::string(70, '(') + std::string(70, ')')); }),
              HasSubstr("nested deeper"));
}

// Dicts that hold one twice, again and again.
TEST(PythonCalls, WhatGrowsIsRefused) {
  std::string text = "d0 = {'a': 'b'}\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "d" + std::to_string(i - 1);
    text += "d" + std::to_string(i) + " = {'a': " + before + ", 'b': " + before + "}\n";
  }
  EXPECT_THAT(complaint([&] { return arguments_of(text + "f(**d39)"); }), HasSubstr("t.py"));
}

TEST(PythonSettings, AreToldFromOtherTexts) {
  EXPECT_TRUE(is_python("# a\nimport torch\n"));
  EXPECT_TRUE(is_python("#!/usr/bin/env python3\nx = 1\n"));
  EXPECT_TRUE(is_python("from trl import SFTConfig\n"));
  EXPECT_FALSE(is_python("#!/bin/bash\nimport -window root a.png\n"));
  EXPECT_FALSE(is_python("model_name_or_path: gpt2\n"));
  EXPECT_TRUE(is_notebook(" {\"cells\": [], \"nbformat\": 4}"));
}

}  // namespace
}  // namespace spillway::launch
