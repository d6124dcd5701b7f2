import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { rateLimit } from "@sluice/middleware/express";
import express from "express";
import { limit, ManualClock } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import type { RunningApp } from "./framework-under-test.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
let running: RunningApp | undefined;
afterEach(() => running?.close());

/** The lines that README.md gives for an app, in an app. */
async function start(): Promise<string> {
  const code = /^```js\n(app\.use\(rateLimit[\s\S]*?)^```$/m.exec(readme)?.[1];
  if (code === undefined) throw new Error("README.md has no example of an app");
  const app = express();
  app.set("trust proxy", "loopback");
  app.use((request, _response, next) => {
    const id = request.header("x-user");
    if (id !== undefined) Object.assign(request, { user: { id } });
    next();
  });
  const handler: express.RequestHandler = (_request, response) => void response.send("report");
  // The clock is frozen, so that nothing refills meanwhile.
  const frozen: typeof limit = (windows) => limit(windows, { clock: new ManualClock() });
  new Function("app", "rateLimit", "limit", "handler", code)(app, rateLimit, frozen, handler);
  running = await listenOnLoopback(createServer(app));
  return `${running.url}/reports`;
}

describe("the app in README.md", () => {
  it("limits visitors who are not signed in by address, and users by their name", async () => {
    const url = await start();
    const ask = async (headers: Record<string, string>): Promise<string> => {
      const answer = await fetch(url, { headers });
      return `${answer.status} ${answer.headers.get("x-ratelimit-remaining")}`;
    };
    expect(await ask({ "x-forwarded-for": "192.0.2.1" })).toBe("200 19");
    expect(await ask({ "x-forwarded-for": "192.0.2.1" })).toBe("200 18");
    expect(await ask({ "x-forwarded-for": "192.0.2.2" })).toBe("200 19");
    expect(await ask({ "x-forwarded-for": "192.0.2.3", "x-user": "ada" })).toBe("200 19");
    expect(await ask({ "x-forwarded-for": "192.0.2.1", "x-user": "ada" })).toBe("200 18");
  });
});
