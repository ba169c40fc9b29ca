"""A headless Chromium, driven over its debugging pipe; needs nothing but the standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
ANSWER_SECONDS = 60


def find():
    """The program, or None where there is none."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One browser with one page. What its console says, and every request it makes, is kept."""

    def __init__(self, program, width=1440, height=1000, scheme="light"):
        self.profile = tempfile.TemporaryDirectory(prefix="pyc-page-", ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.answers, to_write = os.pipe()

        def connect():
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        # The pipe's ends must not be the numbers they are moved to.
        to_read, to_write = self.above(to_read), self.above(to_write)
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"],
            preexec_fn=connect, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.events = []
        self.session = None
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    @staticmethod
    def above(fd):
        import fcntl
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
        os.close(fd)
        os.set_inheritable(moved, True)
        return moved

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        self.profile.cleanup()

    def message(self):
        end = time.monotonic() + ANSWER_SECONDS
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self.answers, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError("the browser does not answer")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Loads the file and waits until the page has drawn itself; returns the seconds that took."""
        begin = time.monotonic()
        self.call("Page.navigate", url=f"file://{path}")
        while not self.value("document.readyState === 'complete' && document.documentElement.dataset.ready === 'true'"):
            if time.monotonic() - begin > ANSWER_SECONDS:
                raise RuntimeError(f"the page did not become ready: {self.complaints()}")
            time.sleep(0.01)
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        return time.monotonic() - begin

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key, text=None, modifiers=0):
        params = {"key": key, "modifiers": modifiers}
        if text:
            params["text"] = text
        if key == "Tab":
            params["windowsVirtualKeyCode"] = 9
        if key == "Enter":
            params["windowsVirtualKeyCode"] = 13
        self.call("Input.dispatchKeyEvent", type="keyDown", **params)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def click(self, selector, dx=0.5, dy=0.5):
        """Clicks into the element, at parts of its width and height."""
        x, y = self.value(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                          f" const r = e.getBoundingClientRect(); return [r.left + r.width * {dx}, r.top + r.height * {dy}]; }})()")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path, whole=False):
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def complaints(self):
        """Errors and warnings of scripts and of the browser about the page."""
        out = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                out.append(details.get("exception", {}).get("description", details["text"]))
            if event.get("method") == "Runtime.consoleAPICalled":
                out.append(f"console.{params['type']}")
            if event.get("method") == "Log.entryAdded":
                out.append(params["entry"]["text"])
        return out

    def requests(self):
        """Addresses that were asked for, without pages and data of their own."""
        urls = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("file:", "data:", "about:"))]
