// Opens a page in headless Chromium and tells when it was first painted, what it asked of the network and what it complained of.
//
//   node tests/sim/report/first_paint.mjs report.html [WIDTHxHEIGHT] [picture.png]
//
// Times are the browser's own (Paint Timing, milliseconds since the navigation began), of a fresh profile: nothing is cached.
// Exit code 1: a request beside the page itself, a message on the console, or no paint. Needs Node and Chromium.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [file, size = "1400x1000", picture] = process.argv.slice(2);
if (!file) {
  console.error("usage: node first_paint.mjs report.html [WIDTHxHEIGHT] [picture.png]");
  process.exit(2);
}
const profile = mkdtempSync(join(tmpdir(), "fabricast-page-"));
const browser = spawn("chromium", ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
  `--window-size=${size.replace("x", ",")}`, `--user-data-dir=${profile}`, "about:blank"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const ended = new Promise((done) => browser.once("exit", done));

// The browser's protocol: JSON ended by a zero byte, in on its fourth stream, out on its fifth.
const waiting = new Map(), listeners = [];
let count = 0, rest = Buffer.alloc(0);
browser.stdio[4].on("data", (part) => {
  rest = Buffer.concat([rest, part]);
  for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) {
    const message = JSON.parse(rest.subarray(0, end).toString());
    if (message.id) waiting.get(message.id)(message.result ?? message.error);
    else listeners.forEach((listen) => listen(message));
  }
});
const ask = (method, params = {}, sessionId) => new Promise((answer) => {
  waiting.set(++count, answer);
  browser.stdio[3].write(JSON.stringify({ id: count, method, params, sessionId }) + "\0");
});

const { targetInfos } = await ask("Target.getTargets");
const { targetId } = targetInfos.find((target) => target.type === "page");
const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
const requests = [], complaints = [];
let loaded;
const load = new Promise((done) => { loaded = done; });
listeners.push(({ method, params }) => {
  if (method === "Network.requestWillBeSent") requests.push(params.request.url);
  if (method === "Log.entryAdded") complaints.push(params.entry.text);
  if (method === "Runtime.consoleAPICalled") complaints.push(params.args.map((a) => a.value).join(" "));
  if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.exception?.description ?? "exception");
  if (method === "Page.loadEventFired") loaded();
});
for (const domain of ["Network", "Log", "Runtime", "Page"]) await ask(`${domain}.enable`, {}, sessionId);
const url = "file://" + resolve(file);
await ask("Page.navigate", { url }, sessionId);
await load;
await new Promise((later) => setTimeout(later, 500));
const { result } = await ask("Runtime.evaluate", { returnByValue: true, expression: `({
  paints: performance.getEntriesByType("paint").map((e) => [e.name, e.startTime]),
  dom: performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd,
  load: performance.getEntriesByType("navigation")[0].loadEventEnd,
  wide: document.documentElement.scrollWidth > document.documentElement.clientWidth })` }, sessionId);
if (picture) {
  const { data } = await ask("Page.captureScreenshot", { captureBeyondViewport: true }, sessionId);
  writeFileSync(picture, Buffer.from(data, "base64"));
}
browser.kill();
await ended;
rmSync(profile, { recursive: true, force: true });

const outside = requests.filter((asked) => asked !== url && !asked.startsWith("data:"));
const { paints, dom, load: whole, wide } = result.value;
for (const [name, time] of paints) console.log(`${name}: ${time.toFixed(0)} ms`);
console.log(`document read: ${dom.toFixed(0)} ms, loaded: ${whole.toFixed(0)} ms; ${statSync(file).size} bytes`);
console.log(`requests beside the page: ${outside.length} ${outside.join(" ")}`);
console.log(`messages: ${complaints.length} ${complaints.join(" | ")}`);
console.log(wide ? "wider than the window" : "as wide as the window");
process.exit(outside.length + complaints.length > 0 || paints.length === 0 ? 1 : 0);
