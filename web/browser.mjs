// SPDX-License-Identifier: Apache-2.0
// A real browser for tests: reads one request per line (JSON), and replies to each with one line.
import { createInterface } from "node:readline";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const browser = await puppeteer.launch({
  args: [...chromium.args, "--no-sandbox"],
  executablePath: await chromium.executablePath(),
  headless: "shell",
});
let page;
let session; // of the page, for events that puppeteer has not
const consoleErrors = [];
const requests = [];

// Without a graphics card, most of the time goes into drawing the scene. Four frames per second are enough.
const FRAME_MS = 250;
const drawSeldom = (frameMs) => {
  window.requestAnimationFrame = (draw) => window.setTimeout(() => draw(performance.now()), frameMs);
  window.cancelAnimationFrame = (id) => window.clearTimeout(id);
};

/** Describe an element that could not be clicked: whether it is enabled, its position, twice, and the element above it. */
const whatKeeps = async (selector) => {
  const place = () => {
    const element = document.querySelector(selector);
    const box = element?.getBoundingClientRect();
    const above = box && document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return JSON.stringify({ isDisabled: element?.disabled, box, above: above?.outerHTML.slice(0, 100) });
  };
  const before = place();
  await new Promise((goOn) => { setTimeout(goOn, 500); });
  return `${before}, then ${place()} in ${innerWidth} x ${innerHeight}`;
};

const does = {
  async open({ url, timeout, width = 1400, height = 900, hasTouch = width < 500, scheme = "dark", frameMs = FRAME_MS, before = "" }) {
    await page?.close();
    consoleErrors.length = requests.length = 0;
    page = await browser.newPage();
    page.setDefaultTimeout(timeout);
    if (frameMs > 0) await page.evaluateOnNewDocument(drawSeldom, frameMs);
    await page.evaluateOnNewDocument(before); // the page's own code
    page.on("console", (message) => ["error", "warn"].includes(message.type()) && consoleErrors.push(message.text()));
    page.on("pageerror", (error) => consoleErrors.push(error.message));
    page.on("request", (request) => requests.push(request.url()));
    const isPhone = width < 500;
    await page.setViewport({ width, height, deviceScaleFactor: 1, isMobile: isPhone, hasTouch });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    session = await page.createCDPSession();
    await page.goto(url);
  },
  evaluate: ({ code }) => page.evaluate(code),
  // Its target may not exist yet.
  wait: ({ code }) => page.waitForFunction(`(() => { try { return ${code}; } catch { return false; } })()`, { polling: 50 }).then(() => true),
  // Once it does not move: incoming data moves elements.
  click: ({ selector }) => page.locator(selector).click().catch(async (error) => {
    throw new Error(`${error}; ${selector}: ${await page.evaluate(whatKeeps, selector)}`);
  }),
  key: ({ code, down }) => (down ? page.keyboard.down(code) : page.keyboard.up(code)),
  async grab({ selector, right, up }) {
    const box = await (await page.$(selector)).boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + right, y - up, { steps: 4 });
  },
  drop: () => page.mouse.up(),
  async touch({ type, fingers }) {
    const touchPoints = await Promise.all(Object.entries(fingers).map(async ([id, [selector, right]]) => {
      const { x, y, width, height } = await (await page.$(selector)).boundingBox();
      return { x: x + width / 2 + right, y: y + height / 2, id: Number(id) };
    }));
    await session.send("Input.dispatchTouchEvent", { type, touchPoints });
  },
  screenshot: ({ path }) => page.screenshot({ path }).then(() => true),
  consoleErrors: () => consoleErrors,
  requests: () => requests,
};

/** Reject after a timeout. A later result is ignored. */
const within = async (timeout, promise) => {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`not done within ${timeout / 1000} s`)), timeout); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};
/** Time for puppeteer to detect a timeout itself, unless the page hangs. */
const GRACE_MS = 1000;
const TEXT_TIMEOUT_MS = 5000;
const pageText = () => within(TEXT_TIMEOUT_MS, page?.evaluate("document.body.innerText")).catch(() => "no text: it does not respond");

console.log(JSON.stringify({ pid: browser.process().pid }));
for await (const line of createInterface({ input: process.stdin })) {
  const { does: what, number, timeout, ...options } = JSON.parse(line);
  try {
    page?.setDefaultTimeout(timeout);
    console.log(JSON.stringify({ number, value: (await within(timeout + GRACE_MS, does[what]({ ...options, timeout }))) ?? null }));
  } catch (error) {
    const asked = options.code ?? options.selector ?? options.url ?? "";
    console.log(JSON.stringify({ number, error: `${what} ${asked}: ${error}; the page says ${JSON.stringify(await pageText())}` }));
  }
}
await browser.close();
