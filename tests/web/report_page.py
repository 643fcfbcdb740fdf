#!/usr/bin/env python3
"""The page of `plimsoll report` in a real headless Chromium.

Checked: no script error and nothing fetched, figures equal to those of `plimsoll plan --json`, the
cursor by keys and pointer, light and dark, the width of a phone, and that the picture is not empty:
a check of the screenshot that fails once the picture is blanked. Says SKIPPED and exits with 77 where
there is no Chromium.

usage: report_page.py PLIMSOLL [NAME OF A TEST]
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402

JOBS = {
    "minigpt": ["minigpt:d=128,L=4,V=1000,s=64,heads=4", "--batch", "8"],
    "device": ["llama-3-8b", "--seq", "8192", "--device", "h100-80g", "--ranks", "8", "--zero", "3"],
    "large": ["llama-3.1-405b", "--seq", "8192", "--precision", "mixed", "--ranks", "64", "--zero",
              "3", "--accumulate", "3"],
    "image": ["cnn:norm=batch", "--batch", "4", "--accumulate", "2"],
}
PHONE = 360
program = None


def output_of(*arguments):
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def number(text):
    return int(text.replace(",", ""))


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = browser.Browser(browser.find_browser())
        cls.plans = {}
        for name, job in JOBS.items():
            output_of("report", *job, "--out", cls.path(name))
            cls.plans[name] = json.loads(output_of("plan", *job, "--json"))

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name + ".html")

    def show(self, name, width=1000, height=900, scheme="light", mobile=False):
        self.browser.size(width, height, mobile)
        self.browser.scheme(scheme)
        self.browser.open(self.path(name))

    def text(self, selector):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def rows(self, section):
        """The cells of a section's table by row, as a reader sees them."""
        return self.browser.evaluate(
            f"[...document.querySelectorAll('#{section} tbody tr')].map("
            "row => [...row.cells].map(cell => cell.textContent))")

    def test_no_script_error_and_nothing_fetched(self):
        for name in JOBS:
            with self.subTest(name):
                self.show(name)
                self.browser.press("ArrowRight")
                self.assertEqual(self.browser.complaints(), [])
                asked = [url for url in self.browser.requests() if not url.startswith("data:")]
                self.assertEqual(asked, ["file://" + self.path(name)])

    def test_a_fault_of_a_script_would_be_seen(self):
        with open(self.path("minigpt"), encoding="utf-8") as file:
            page = file.read()
        broken = self.path("broken")
        with open(broken, "w", encoding="utf-8") as file:
            file.write(page.replace("show(at);", "show(at); nothing_of_this_name();"))
        self.show("broken")
        self.assertEqual(len(self.browser.complaints()), 1)

    def test_figures_are_those_of_the_plan(self):
        for name, plan in self.plans.items():
            with self.subTest(name):
                self.show(name)
                posts = {row[0]: number(row[2]) for row in self.rows("posts") if row[0] in "PGOA"}
                expected = plan["posts"]
                self.assertEqual(posts["P"], expected["P"])
                self.assertEqual(posts["G"], expected["G"])
                self.assertEqual(posts["O"], sum(expected["O"].values()))
                self.assertEqual(posts["A"], expected["A"])
                peak = plan["timeline"]["steady"]["peak"]
                alive = [[row[0], number(row[1])] for row in self.rows("peak")]
                self.assertEqual(alive, [[tag["tag"], tag["bytes"]] for tag in peak["alive"]])
                memory = {row[0]: row[1] for row in self.rows("memory")}
                self.assertEqual(number(memory["requested"]), plan["memory"]["requested"])
                saved = {row[0]: number(row[1]) for row in self.rows("ledger")}
                self.assertEqual(saved, {key: line["bytes"] for key, line in plan["ledger"].items()})
                self.assert_cursor_at(peak["bytes"], peak["operation"])
                embedded = self.browser.evaluate(
                    "document.getElementById('plan').textContent")
                self.assertEqual(json.loads(embedded), plan)

    def assert_cursor_at(self, total, operation):
        said = self.text("#readout")
        self.assertIn(f"{total:,} bytes", said)
        self.assertIn(operation, said)
        tags = self.browser.evaluate(
            "[...document.querySelectorAll('[data-tag]')].map(cell => cell.textContent)")
        self.assertEqual(sum(number(text) for text in tags), total)

    def test_keys_move_the_cursor(self):
        self.show("minigpt")
        curve = json.loads(self.text("#curve"))
        self.browser.evaluate("document.getElementById('plot').focus()")

        def at(index):
            name = curve["operations"][curve["operation"][index]]
            self.assert_cursor_at(int(curve["total"][index]), name)
            self.assertIn(curve["phases"][curve["phase"][index]], self.text("#readout"))
            now = self.browser.evaluate(
                "Number(document.getElementById('plot').getAttribute('aria-valuenow'))")
            self.assertEqual(now, curve["event"][index])

        last, peak = len(curve["event"]) - 1, curve["peak"]
        backward = curve["phases"].index("backward")
        begin, after = curve["phase"].index(backward), curve["phase"].index(backward + 1)
        at(peak)
        for key, index in (("Home", 0), ("ArrowLeft", 0), ("ArrowRight", 1), ("ArrowRight", 2),
                           ("ArrowLeft", 1), ("End", last), ("ArrowRight", last), ("p", peak),
                           ("PageUp", begin), ("PageDown", after), ("PageUp", begin)):
            with self.subTest(key):
                self.browser.press(key)
                at(index)

    def test_the_pointer_moves_the_cursor(self):
        self.show("minigpt")
        curve = json.loads(self.text("#curve"))
        box = self.box("#plot")
        for share in (0.1, 0.5, 0.93):
            self.browser.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
            event = share * curve["events"]
            index = max(i for i, one in enumerate(curve["event"]) if one <= event)
            self.assertIn(f"{int(curve['total'][index]):,} bytes", self.text("#readout"))

    def test_hostile_names_stay_text(self):
        folder = os.path.join(self.folder.name, "</script><img src=x onerror=alert(1)>'\"&")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"model_type": "gpt2", "n_layer": 1, "n_embd": 12}, file)
        output_of("report", folder, "--seq", "8", "--out", self.path("hostile"))
        self.show("hostile")
        self.assertEqual(self.text("h1"), folder)
        self.assertEqual(self.browser.evaluate("document.images.length"), 0)
        self.assertEqual(self.browser.complaints(), [])

    def test_no_sideways_scrolling_on_a_phone(self):
        for name in JOBS:
            with self.subTest(name):
                self.show(name, PHONE, 740, mobile=True)
                width = self.browser.evaluate(
                    "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
                self.assertLessEqual(width, PHONE)
                outside = self.browser.evaluate(
                    "[...document.querySelectorAll('body *')].filter(one => "
                    "!one.closest('svg, script, style, #phases-axis') && "
                    f"one.getBoundingClientRect().right > {PHONE}).map(one => one.outerHTML"
                    ".slice(0, 80))")
                self.assertEqual(outside, [])
                self.assert_drawn()

    def test_light_and_dark_differ_and_can_be_read(self):
        luminance = {}
        for scheme in ("light", "dark"):
            self.show("device", scheme=scheme)
            ink, page = (self.colour("color"), self.colour("background-color"))
            luminance[scheme] = sum(page)
            self.assertGreater(contrast(ink, page), 7, scheme)
            self.assert_drawn()
        self.assertGreater(luminance["light"], 600)
        self.assertLess(luminance["dark"], 150)

    def test_a_blank_picture_is_noticed(self):
        self.show("minigpt")
        self.assert_drawn()
        self.browser.evaluate("document.querySelectorAll('.area').forEach(one => one.remove())")
        with self.assertRaises(AssertionError):
            self.assert_drawn()

    def test_the_picture_is_there_without_a_script(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.show("minigpt")
            self.assert_drawn()
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled", value=False)

    def colour(self, style):
        text = self.browser.evaluate(f"getComputedStyle(document.body)['{style}']")
        return [int(part) for part in re.findall(r"\d+", text)[:3]]

    def box(self, selector):
        return self.browser.evaluate(
            f"(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect();"
            "return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height};"
            "})()")

    def assert_drawn(self):
        """Every tag that holds a hundredth of the peak has its share of the picture's pixels."""
        plot = browser.pixels(self.browser.screenshot(self.box("#plot")))
        counts = collections.Counter(pixel for line in plot for pixel in line)
        everything = sum(counts.values())
        # The tags' bytes over the curve's area, with its own step widths.
        shares = self.browser.evaluate(
            "(() => { const c = JSON.parse(document.getElementById('curve').textContent);"
            "const top = Number(c.total[c.peak]); const shares = {};"
            "for (const tag in c.bytes) { let sum = 0; c.event.forEach((e, i) => { const next = "
            "i + 1 < c.event.length ? c.event[i + 1] : c.events; "
            "sum += Number(c.bytes[tag][i]) * (next - e); });"
            "const fill = getComputedStyle(document.querySelector('.swatch.' + tag))"
            ".backgroundColor; shares[tag] = [sum / top / c.events, fill]; } return shares; })()")
        seen = 0
        for tag, (share, fill) in shares.items():
            if share < 0.03:
                continue
            colour = tuple(int(part) for part in re.findall(r"\d+", fill)[:3])
            drawn = counts[colour] / everything
            # Labels, lines and the scale above the peak take the rest; a thinned curve is coarser.
            self.assertGreater(drawn, 0.4 * share, f"{tag}: {drawn:.4f} of the picture")
            self.assertLess(drawn, 1.2 * share, f"{tag}: {drawn:.4f} of the picture")
            seen += 1
        self.assertGreaterEqual(seen, 2)


def contrast(a, b):
    """The ratio of WCAG: 21 for black on white."""
    def luminance(colour):
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def main():
    global program
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    program = os.path.abspath(sys.argv.pop(1))
    if browser.find_browser() is None:
        print(f"SKIPPED: no Chromium ({', '.join(browser.NAMES)}) on this machine")
        return 77
    unittest.main(verbosity=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
