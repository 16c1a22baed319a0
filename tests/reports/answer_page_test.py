#!/usr/bin/env python3
"""The answer's page in a real browser: nothing on its console, no request, no script but its own; keys, contrast,
targets and what is in sight. Skipped without Debian's chromium, chromium-driver and python3-selenium.

Usage: answer_page_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

DEBIANS = "/usr/bin/python3"  # which Debian's packages are of
if importlib.util.find_spec("selenium") is None:
    if os.path.exists(DEBIANS) and not os.environ.get("SPILLWAY_PAGE_TEST"):
        os.execve(DEBIANS, [DEBIANS, *sys.argv], {**os.environ, "SPILLWAY_PAGE_TEST": "again"})
    print("python3-selenium is not installed: skipped")
    sys.exit(77)
DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
if DRIVER is None or BROWSER is None:
    print("chromium and chromium-driver are not installed: skipped")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import hostile  # noqa: E402
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

PROGRAM, ROOT = sys.argv[1:3]
ONE = {"model": {"name": "gpt2-small", "layers": 4, "sequence": 1024, "micro_batch": 8},
       "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 2500000000}}
PIPELINE = {"model": {"name": "gpt2-small", "layers": 8, "sequence": 256, "micro_batch": 1,
                      "gradient_accumulation": 8, "pipeline_parallel": 4}, "hardware": {"profile": "dgx-a100-40gb"}}

# Texts below 4.5 to 1 (3 to 1 where they are large), by computed colours; buttons below 24 pixels.
LOOKS = """
const bad = [];
const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const behind = node => { for (; node; node = node.parentElement) { const c = parse(getComputedStyle(node).backgroundColor);
  if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
for (const node of document.querySelectorAll("body *")) {
  const own = [...node.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  const box = node.getBoundingClientRect(), style = getComputedStyle(node);
  if (own && box.width > 1 && box.height > 1 && style.visibility === "visible" && !["SCRIPT", "NOSCRIPT"].includes(node.tagName)) {
    const a = light(parse(style.color)), b = light(behind(node)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 18.66 && +style.fontWeight >= 700;
    if (ratio < (large ? 3 : 4.5)) bad.push(ratio.toFixed(2) + " " + node.tagName + "." + node.className + " " + node.textContent.slice(0, 40));
  }
  if (["BUTTON", "INPUT", "SUMMARY"].includes(node.tagName) && box.width > 0 && (box.height < 24 || box.width < 24))
    bad.push("target " + box.width + " x " + box.height + " " + node.textContent.slice(0, 40));
}
return bad;
"""


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        options = Options()
        options.binary_location = BROWSER
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--window-size=1280,720", "--force-device-scale-factor=1", "--lang=en"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        cls.addClassCleanup(cls.driver.quit)
        cls.pages = {
            "fit": cls.written("fit", cls.scenario("one", ONE), "--replays", "60"),
            "run": cls.written("run", cls.scenario("one", ONE)),
            "pipeline": cls.written("explain", cls.scenario("stages", PIPELINE)),
            "hostile": cls.written("fit", cls.scenario("hostile", {**ONE, "model": {
                **ONE["model"], "name": cls.hostile_model()}}, hostile.NAME), "--replays", "30"),
            "snapshot": cls.written("explain", hostile.snapshot(ROOT, cls.folder.name)),
            "times alone": cls.written("explain", cls.hostile_capture()),
        }

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def scenario(cls, name, parts, title=None):
        path = cls.path(name + ".json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"schema": "spillway-scenario", "version": 1, "title": title or name, **parts}, out)
        return path

    @classmethod
    def hostile_model(cls):
        with open(os.path.join(ROOT, "models/data/gpt2-small.json"), encoding="utf-8") as file:
            model = json.load(file)
        with open(cls.path("hostile-model.json"), "w", encoding="utf-8") as out:
            json.dump({**model, "title": hostile.NAME}, out)
        return cls.path("hostile-model.json")

    @classmethod
    def hostile_capture(cls):
        """Kernels and their launches, without memory."""
        events = []
        for i in range(20):
            events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 100 * i, "dur": 5,
                        "args": {"correlation": i + 1}},
                       {"ph": "X", "cat": "kernel", "name": f"kernel {i % 3} {hostile.NAME}", "pid": 0, "tid": 7, "ts": 100 * i + 10,
                        "dur": 80, "args": {"correlation": i + 1, "device": 0, "stream": 7}}]
        with open(cls.path("hostile-capture.json"), "w", encoding="utf-8") as out:
            json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
                       "traceEvents": events}, out)
        return cls.path("hostile-capture.json")

    @classmethod
    def written(cls, command, *arguments):
        page = cls.path(f"{command}-{len(os.listdir(cls.folder.name))}.html")
        done = subprocess.run([PROGRAM, command, *arguments, "--output", page], capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.returncode in (0, 1, 4), done.stderr
        return page

    def open(self, name, fragment="", size=(1280, 720)):
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False})
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get("file://" + self.pages[name] + fragment)
        self.assertEqual(self.driver.execute_script("return document.documentElement.dataset.ready"), "yes")
        # A frame later all is painted.
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def test_nothing_is_said_loaded_or_run(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.open(name)
                self.assertEqual(self.driver.get_log("browser"), [])
                asked = [json.loads(entry["message"])["message"]["params"]["request"]["url"]
                         for entry in self.driver.get_log("performance") if "Network.requestWillBeSent\"" in entry["message"]]
                others = [url for url in asked if not url.startswith(("data:", "file://" + page))]
                self.assertEqual(others, [])
                self.assertIsNone(self.script("return window.ran === undefined ? null : window.ran"))
                self.assertEqual(self.script("return document.images.length + document.querySelectorAll('svg').length"), 0)
                self.assertEqual(self.script("return document.scripts.length"), 2)
                self.assertLess(os.path.getsize(page), 1_000_000)
        self.open("hostile")
        self.assertIn("<img src=", self.driver.find_element(By.ID, "title").text)
        self.assertIn("\\u{202E}", self.driver.find_element(By.ID, "title").text)
        self.assertNotIn("\u202e", self.script("return document.body.textContent"))

    def test_the_policy_refuses_what_is_not_the_pages(self):
        self.open("run")
        self.script("const s = document.createElement('script'); s.textContent = 'window.ran = 4'; document.body.append(s);"
                    "const i = new Image(); i.src = 'https://127.0.0.1:9/y.png'; document.body.append(i);")
        self.assertIsNone(self.script("return window.ran === undefined ? null : window.ran"))
        said = " ".join(entry["message"] for entry in self.driver.get_log("browser"))
        self.assertIn("Content Security Policy", said)

    def test_verdict_ways_and_picture_are_in_sight(self):
        for name in self.pages:
            with self.subTest(name):
                self.open(name)
                self.assertFalse(self.script("return document.documentElement.scrollWidth > innerWidth"))
                self.assertLess(self.script("return document.getElementById('verdict').getBoundingClientRect().bottom"), 300)
                self.assertLessEqual(self.script("return document.getElementById('plot').getBoundingClientRect().bottom"), 720)
                ways = self.script("return [...document.querySelectorAll('.way')].map(w => w.getBoundingClientRect().bottom)")
                self.assertTrue(all(bottom <= 720 for bottom in ways[:6]), ways)

    def test_the_picture_is_drawn(self):
        """Each owner that the legend names has its colour in the picture, and the axis its words."""
        colours = ("const c = document.getElementById('base'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                   "const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] + ',' + d[i+1] + ',' + d[i+2]);"
                   "return seen.size")
        for name in ("run", "pipeline", "snapshot"):
            with self.subTest(name):
                self.open(name)
                self.assertGreater(self.script(colours), 20)
                label = self.script("return document.getElementById('base').getAttribute('aria-label')")
                self.assertRegex(label, r"\d+(\.\d+)? [GM]iB allocated at the peak")
        self.open("times alone")
        self.assertGreater(self.script(colours), 2)
        self.assertIn("What runs when", self.script("return document.querySelector('#picture h2').textContent"))

    def test_a_way_is_chosen_by_keys(self):
        self.open("fit")
        before = self.script("return document.getElementById('base').toDataURL()")
        self.script("document.querySelector('.way').focus()")
        self.press(Keys.ARROW_DOWN)
        second = self.script("return document.activeElement.querySelector('.name').textContent")
        self.assertTrue(self.script("return document.getElementById('preview').textContent").startswith(second))
        self.press(Keys.ENTER)
        self.assertEqual(self.script("return document.activeElement.getAttribute('aria-expanded')"), "true")
        self.assertIn("way=2", self.script("return location.hash"))
        self.assertIn("--way 2", self.script("return document.querySelector('.command').textContent"))
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
        self.assertNotEqual(self.script("return document.getElementById('base').toDataURL()"), before)
        self.press(Keys.ESCAPE)
        self.assertEqual(self.script("return document.querySelectorAll('.way[aria-expanded=true]').length"), 0)
        self.open("fit", "#way=2&theme=dark")
        self.assertEqual(self.script("return document.querySelectorAll('.way[aria-expanded=true]').length"), 1)
        self.assertEqual(self.script("return document.documentElement.dataset.theme"), "dark")

    def test_the_picture_is_read_by_keys(self):
        self.open("pipeline")
        self.script("document.getElementById('plot').focus()")
        self.press(*[Keys.ARROW_RIGHT] * 30)
        told = self.script("return document.getElementById('readout').textContent")
        self.assertRegex(told, r"s: [\d.]+ [GM]iB = weights [\d.]+")
        drawn = self.script("return document.getElementById('base').toDataURL()")
        self.press("+", "+")
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
        self.assertNotEqual(self.script("return document.getElementById('base').toDataURL()"), drawn)
        self.press("0")
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
        self.assertEqual(self.script("return document.getElementById('base').toDataURL()"), drawn)
        stage = self.script("return document.getElementById('subtitle').textContent")
        self.press("]")
        self.assertNotEqual(self.script("return document.getElementById('subtitle').textContent"), stage)
        self.press(Keys.TAB, Keys.TAB, Keys.TAB)  # no trap
        self.assertNotEqual(self.script("return document.activeElement.id"), "plot")

    def test_stages_and_the_command_are_reached_by_keys(self):
        self.open("pipeline")
        told = "return document.querySelector('#stages [aria-pressed=true]').getAttribute('aria-label')"
        self.script("document.querySelector('#stages button').focus()")
        self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
        self.assertIn("stage 1", self.script(told))
        self.assertIn("stage=1", self.script("return location.hash"))
        self.assertIn("stage 1", self.script("return document.activeElement.getAttribute('aria-label')"))
        self.script("document.getElementById('plot').focus()")
        self.press("[")
        self.assertIn("stage 0", self.script(told))
        whole = self.script("return document.getElementById('base').toDataURL()")
        self.press("+", "+", "-", "-")
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
        self.assertEqual(self.script("return document.getElementById('base').toDataURL()"), whole)
        self.script("[...document.querySelectorAll('button')].find(b => b.textContent === 'Copy command').focus()")
        self.press(Keys.ENTER)
        self.assertIn("spillway explain", self.script("return getSelection().toString()"))

    def test_find_hides_what_is_not_meant(self):
        self.open("fit")
        self.press("/")
        self.assertEqual(self.script("return document.activeElement.id"), "find")
        self.press("recompute")
        shown = self.script("return [...document.querySelectorAll('.way:not(.gone)')].map(w => w.textContent.toLowerCase())")
        everything = self.script("return document.querySelectorAll('.way').length")
        self.assertTrue(0 < len(shown) < everything, shown)
        self.assertRegex(self.script("return document.getElementById('hits').textContent"), r"\d+ hits?")
        self.press(Keys.ESCAPE)
        self.assertEqual(self.script("return document.querySelectorAll('.way:not(.gone)').length"), everything)

    def test_texts_can_be_read_and_targets_be_met(self):
        for name in self.pages:
            for theme in ("light", "dark"):
                with self.subTest(name, theme=theme):
                    self.open(name, "#way=1&theme=" + theme)
                    self.assertEqual(self.script(LOOKS), [])

    def test_without_scripts_the_answer_is_there(self):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.driver.get("file://" + self.pages["fit"])
            text = self.driver.find_element(By.TAG_NAME, "noscript").text
        finally:
            self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        self.assertIn("Fits in", text)
        self.assertIn("spillway fit", text)
        self.assertIn("GiB left", text)

    def test_nothing_is_cut_on_paper(self):
        """At the width of A4 less its margins: no word of a table in pieces, no tile beyond the map, no row too wide."""
        cut = """
          const wide = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
          const map = document.querySelector(".treemap");
          for (const tile of map ? map.children : [])
            if (tile.getBoundingClientRect().right > map.getBoundingClientRect().right + 1) wide.push("tile " + tile.title);
          for (const cell of document.querySelectorAll("th, td.label, td.holder, td.n")) {
            const range = document.createRange(), line = parseFloat(getComputedStyle(cell).lineHeight) || 20;
            range.selectNodeContents(cell);
            const words = cell.textContent.trim().split(/\\s+/).length;
            if (range.getBoundingClientRect().height > line * words + 2) wide.push(cell.textContent.slice(0, 40));
          }
          for (const button of document.querySelectorAll("button:not(.way)"))
            if (button.getBoundingClientRect().height > 0) wide.push("button " + button.textContent);
          return wide;"""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        try:
            for name in self.pages:
                with self.subTest(name):
                    self.open(name, size=(703, 1030))
                    self.assertEqual(self.script(cut), [])
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    def test_a_long_name_leaves_six_set_ups_in_sight(self):
        self.open("fit")
        self.script("for (const n of document.querySelectorAll('.way .name')) n.textContent = 'recompute layers, keep inputs '.repeat(6)")
        ways = self.script("return [...document.querySelectorAll('.way')].map(w => w.getBoundingClientRect().height)")
        self.assertTrue(all(height <= 76 for height in ways), ways)

    def test_it_prints(self):
        self.open("fit", "#way=1&theme=dark")
        self.script("addEventListener('beforeprint', () => { window.still = document.getElementById('still'); })")
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        self.assertGreater(len(printed["data"]), 20_000)
        self.assertGreater(self.script("return window.still.naturalWidth"), 1000)  # at twice the size of the screen's
        self.assertEqual(self.script("return document.documentElement.dataset.theme"), "dark")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
