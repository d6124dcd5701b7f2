import { connect, type Socket } from "node:net";
import { createLimiter } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type StartedHttp, startHttp } from "./testing/start-http.ts";

let server: StartedHttp;
/** One that waits for requests not as long. */
let hasty: StartedHttp;
const logged: unknown[] = [];

beforeAll(async () => {
  const log = { debug() {}, info() {}, warn() {}, error: (_event: string, fields: object = {}) => logged.push(fields) };
  const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1k/s"] }] }] };
  server = await startHttp(createLimiter({ policies }), { log });
  hasty = await startHttp(createLimiter({ policies }), { log }, { headersWithinMs: 1_000, requestWithinMs: 1_500 });
});

afterAll(async () => {
  await server.close();
  await hasty.close();
});

/** Whatever came before, the next request is served, and nothing went wrong that was not foreseen. */
async function expectServing({ url } = server): Promise<void> {
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  expect(logged).toEqual([]);
}

/** Sends bytes, then runs `then`, and returns all answers until the connection is gone. */
function send(
  bytes: string | Uint8Array,
  then: (socket: Socket) => void = () => {},
  { port } = server,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    let answer = "";
    socket.setEncoding("latin1").on("data", (chunk) => {
      answer += chunk;
    });
    socket.once("connect", () => socket.write(bytes, () => then(socket)));
    socket.on("end", () => socket.end());
    socket.on("error", () => {}).on("close", () => resolve(answer));
  });
}

const head = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
const body = '{"dimensions":{"user":"u"}}';

describe("slow requests", () => {
  it("are answered 408 and closed, wherever they stopped, even if a few bytes come now and then", async () => {
    const stopped = {
      "before the request line": "",
      "in the request line": "POST /v1/che",
      "in the headers": head,
      "in the body": `${head}content-length: 100\r\n\r\n{"dimen`,
      "in a chunk": `${head}transfer-encoding: chunked\r\n\r\n20\r\n{"dimen`,
    };
    let drops: NodeJS.Timeout | undefined;
    const dripping = send(
      head,
      (socket) => {
        drops = setInterval(() => socket.write("x-drop: x\r\n"), 50);
      },
      hasty,
    );
    const answers = Object.entries(stopped).map(async ([where, text]) => [where, await send(text, undefined, hasty)]);
    for (const [where, answer] of [...(await Promise.all(answers)), ["drop by drop", await dripping]]) {
      expect(answer, where).toMatch(/^HTTP\/1\.1 408 [\s\S]*application\/problem\+json[\s\S]*connection: close/i);
      expect(answer, where).toContain("did not arrive in time");
    }
    clearInterval(drops);
    await expectServing(hasty);
  });
});

describe("requests that break off", () => {
  it("are answered 400 if the other end stops writing in their middle", async () => {
    for (const sent of ["POST /v1/che", head, `${head}content-length: 100\r\n\r\n{"dimen`]) {
      expect(await send(sent, (socket) => socket.end())).toMatch(/^(HTTP\/1\.1 400 [\s\S]*problem\+json|$)/);
      await expectServing();
    }
  });

  it("are still answered if the other end stops writing after them", async () => {
    const whole = `${head}content-length: ${body.length}\r\n\r\n${body}`;
    expect(await send(whole, (socket) => socket.end())).toMatch(/^HTTP\/1\.1 200 [\s\S]*"allowed":true/);
    await expectServing();
  });

  it("leave nothing behind if the connection is reset", async () => {
    for (const sent of ["POST /v1/che", head, `${head}content-length: 100\r\n\r\n{"dimen`])
      expect(await send(sent, (socket) => socket.resetAndDestroy())).toBe("");
    await expectServing();
  });
});

describe("excessive input", () => {
  async function post(text: string): Promise<{ status: number; body: Record<string, unknown> }> {
    const response = await fetch(`${server.url}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: text,
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  it("is refused as 10 000 dimensions, in few words", async () => {
    const dimensions = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`d${i}`, "x"]));
    const { status, body: large } = await post(JSON.stringify({ dimensions }));
    expect([status, large.code]).toEqual([413, "body_too_large"]);
    const { body: answered } = await post(JSON.stringify({ checks: [{ dimensions }, {}] }));
    expect(answered.answers).toMatchObject([
      { status: 400, error: { problems: [{ field: "dimensions" }] } },
      { status: 200 },
    ]);
    expect(JSON.stringify(answered).length).toBeLessThan(2_000);
    await expectServing();
  });

  it("is refused as JSON that is nested without end", async () => {
    const deep = `${'{"a":'.repeat(9_000)}1${"}".repeat(9_000)}`;
    expect((await post(deep)).status).toBe(400);
    expect((await post("[".repeat(60_000))).status).toBe(400);
    expect((await post(`{"dimensions":${deep}}`)).status).toBe(400);
    await expectServing();
  });

  it("is refused before it is sent, and if its length is not given", async () => {
    expect(await send(`${head}content-length: 9999999\r\n\r\n{`)).toMatch(/^HTTP\/1\.1 413 [\s\S]*body_too_large/);
    const chunk = `8000\r\n${"x".repeat(0x8000)}\r\n`;
    const endless = `${head}transfer-encoding: chunked\r\n\r\n${chunk.repeat(40)}`;
    expect(await send(endless)).toMatch(/^(HTTP\/1\.1 413 [\s\S]*body_too_large|$)/);
    await expectServing();
  });
});

describe("invalid requests", () => {
  /** Small and seeded: a failure comes again. */
  function randomBytes(seed: number): () => number {
    let state = seed;
    return () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 24;
    };
  }

  it("is answered or hung up on, whatever the bytes are", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const next = randomBytes(seed);
      const bytes = Uint8Array.from({ length: 1 + next() * 4 }, next);
      expect(await send(bytes, (socket) => socket.end()), `seed ${seed}`).toMatch(/^(HTTP\/1\.1 4\d\d [\s\S]*|$)/);
    }
    await expectServing();
  });

  it("are answered or hung up on, if a good one has some bytes wrong", async () => {
    const good = Buffer.from(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    for (let seed = 1; seed <= 120; seed++) {
      const next = randomBytes(seed);
      const bytes = Buffer.from(good);
      for (let wrong = 0; wrong < 1 + (next() % 4); wrong++) bytes[(next() * 256 + next()) % bytes.length] = next();
      const answer = await send(bytes, (socket) => socket.end());
      expect(answer, `seed ${seed}`).toMatch(/^(HTTP\/1\.1 (200|4\d\d) [\s\S]*|$)/);
      expect(answer, `seed ${seed}`).not.toMatch(/\bat .*\.ts:|node_modules/);
    }
    await expectServing();
  });

  it.each([
    ["two lengths", `${head}content-length: 5\r\ncontent-length: 6\r\n\r\n{}`],
    ["a length and chunks", `${head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a length that is none", `${head}content-length: -1\r\n\r\n`],
    ["a header with a line end in it", "GET /livez HTTP/1.1\r\nhost: a\r\nx: a\rb\r\n\r\n"],
    ["a space before the colon", "GET /livez HTTP/1.1\r\nhost : a\r\n\r\n"],
  ])("is refused with %s, which two servers could read in two ways", async (_what, text) => {
    expect(await send(text)).toMatch(/^HTTP\/1\.1 400 /);
    await expectServing();
  });
});
