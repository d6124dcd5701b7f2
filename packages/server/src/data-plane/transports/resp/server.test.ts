import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type CounterStore, createLimiter, type Limiter, MemoryCounters, SluiceError } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import type { Tracing } from "../../../observe/telemetry/tracing.ts";
import { createTestService, type ListeningTransport, listenForTest, silentLog } from "../../../testing/test-service.ts";
import type { Access, Caller } from "../../access/access.ts";
import { type Role, rolePermissions } from "../../access/roles.ts";
import type { ServiceOptions } from "../../service/create-service.ts";
import { HeldBytes } from "../held-bytes.ts";
import { Turns } from "../turns.ts";
import { maxCommandBytes } from "./command-reader.ts";
import type { ConnectionBounds, ConnectionShared } from "./connection.ts";
import { createRespServer } from "./server.ts";

const policies = {
  policies: [
    { id: "per-user", limits: [{ by: ["user"], windows: ["3/h"] }] },
    { id: "COST", match: { domain: "odd" }, limits: [{ name: "runs", by: ["user"], windows: ["1/h"] }] },
    {
      id: "banned",
      match: { domain: "strict" },
      deny: { user: ["mallory"] },
      limits: [{ by: ["user"], windows: ["9/h"] }],
    },
  ],
  default: { limits: [{ by: ["user"], windows: ["5/h"] }] },
};

const patient = { timeout: 30_000, interval: 5 };

let server: ListeningTransport | undefined;
afterEach(async () => {
  await server?.close(0);
  server = undefined;
});

async function listen(
  limiter: Limiter = createLimiter({ policies }),
  service: Partial<Omit<ServiceOptions, "limiter">> = {},
  options: Partial<ConnectionBounds & ConnectionShared> = {},
): Promise<ListeningTransport> {
  server = await listenForTest("resp", createRespServer(createTestService(limiter, service), options));
  return server;
}

function encode(...words: readonly (string | number)[]): string {
  const parts = words.map((word) => Buffer.from(String(word), "latin1"));
  return `*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part.toString("latin1")}\r\n`).join("")}`;
}

/** Everything that is answered until the connection is closed, one character for each byte. */
function collect(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.on("close", () => resolve(text));
  });
}

function open({ port }: Pick<ListeningTransport, "port">): Socket {
  return connect({ host: "127.0.0.1", port, allowHalfOpen: true });
}

/** Sends everything, then ends; returns everything received. */
async function talk(listening: Pick<ListeningTransport, "port">, said: string | Buffer): Promise<string> {
  const socket = open(listening);
  const heard = collect(socket);
  socket.end(typeof said === "string" ? Buffer.from(said, "latin1") : said);
  const text = await heard;
  return text;
}

/** Reads until this was received. */
function hear(socket: Socket, wanted: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const listenTo = (chunk: Buffer): void => {
      text += chunk.toString("latin1");
      if (text.includes(wanted)) leave(resolve);
    };
    const fail = (): void => leave(() => reject(new Error(`closed after ${JSON.stringify(text)}`)));
    const leave = (settle: (text: string) => void): void => {
      socket.off("data", listenTo);
      socket.off("close", fail);
      settle(text);
    };
    socket.on("data", listenTo);
    socket.once("close", fail);
  });
}

/** Remote counters that answer when they are let. */
function elsewhere(): { readonly store: CounterStore; readonly asked: (() => void)[] } {
  const memory = new MemoryCounters();
  const asked: (() => void)[] = [];
  const later = <T>(answer: () => T): Promise<Awaited<T>> =>
    new Promise((resolve, reject) => {
      asked.push(() =>
        Promise.resolve()
          .then(answer)
          .then(resolve as (value: T) => void, reject),
      );
    });
  const store: CounterStore = {
    local: false,
    take: (limits, options) => later(() => memory.take(limits, options)),
    peek: (limits) => later(() => memory.peek(limits)),
    give: (receipt) => later(() => memory.give(receipt)),
    charge: (limits) => later(() => memory.charge(limits)),
    block: (limits, forMs) => later(() => memory.block(limits, forMs)),
    reset: (limits) => later(() => memory.reset(limits)),
    read: (limit) => later(() => memory.read(limit)),
    close: async () => memory.close(),
  };
  return { store, asked };
}

/** Tokens that are the names of their roles. */
function tokens(): Access & { readonly known: Set<string> } {
  const known = new Set<string>(["check", "viewer", "operator"]);
  const callers = new Map<string, Caller>();
  return {
    known,
    identify(token) {
      if (token === undefined || !known.has(token)) throw new SluiceError("unauthenticated", "say who you are");
      const caller = callers.get(token) ?? { name: `${token}-1`, may: new Set(rolePermissions[token as Role]) };
      callers.set(token, caller);
      return caller;
    },
  };
}

describe("SLUICE.CHECK", () => {
  it("answers with allowed, limit, remaining, the two times, reason, policy and scope", async () => {
    const reply = await talk(await listen(), encode("SLUICE.CHECK", "per-user", "user=u", "COST", 3));
    expect(reply).toBe(
      "*8\r\n:1\r\n:3\r\n:0\r\n:-1\r\n:3600000\r\n$13\r\nwithin_limits\r\n$8\r\nper-user\r\n$4\r\nuser\r\n",
    );
  });

  it("says in how many milliseconds to come back, and never for what never fits", async () => {
    const limiter = createLimiter({ policies });
    const listening = await listen(limiter);
    const [first, second, third] = (
      await talk(
        listening,
        encode("SLUICE.CHECK", "per-user", "user=u", "COST", 3) +
          encode("sluice.check", "per-user", "user=u") +
          encode("SLUICE.CHECK", "per-user", "user=u", "cost", 4),
      )
    )
      .split("*8\r\n")
      .slice(1);
    expect(first).toMatch(/^:1\r\n:3\r\n:0\r\n:-1\r\n/);
    expect(second).toMatch(/^:0\r\n:3\r\n:0\r\n:1[12]\d{5}\r\n:3[56]\d{5}\r\n\$10\r\nover_limit\r\n/);
    expect(third).toMatch(/^:0\r\n:3\r\n:0\r\n:-1\r\n:3[56]\d{5}\r\n\$10\r\nnever_fits\r\n/);
  });

  it("asks all that match if no policy is named", async () => {
    expect(await talk(await listen(), encode("SLUICE.CHECK", "user=u"))).toContain("$8\r\nper-user\r\n");
  });

  it("answers with names in RESP3", async () => {
    const reply = await talk(
      await listen(),
      encode("HELLO", 3) + encode("SLUICE.CHECK", "per-user", "user=u", "PREVIEW"),
    );
    expect(reply.slice(reply.indexOf("%13"))).toBe(
      "%13\r\n+allowed\r\n#t\r\n+limit\r\n:3\r\n+remaining\r\n:3\r\n+retry_after_ms\r\n_\r\n+reset_after_ms\r\n:0\r\n" +
        "+reason\r\n$13\r\nwithin_limits\r\n+policy\r\n$8\r\nper-user\r\n+scope\r\n$4\r\nuser\r\n+cost\r\n:1\r\n" +
        "+state\r\n$6\r\nnormal\r\n+replayed\r\n#f\r\n+preview\r\n#t\r\n+degraded\r\n_\r\n",
    );
  });

  it("takes a policy that is called like an option behind POLICY", async () => {
    const reply = await talk(
      await listen(),
      encode("SLUICE.CHECK", "POLICY", "COST", "user=u", "DOMAIN", "odd", "DEADLINE", "50"),
    );
    expect(reply).toContain("$4\r\nCOST\r\n$4\r\nruns\r\n");
  });

  it("sends texts in UTF-8", async () => {
    const reply = await talk(await listen(), encode("SLUICE.CHECK", Buffer.from("größe").toString("latin1")));
    expect(Buffer.from(reply, "latin1").toString()).toBe('-NOPOLICY no policy has the id "größe"\r\n');
  });

  it("has nothing if there is no limit", async () => {
    const reply = await talk(await listen(), encode("SLUICE.CHECK", "banned", "user=mallory"));
    expect(reply).toBe("*8\r\n:0\r\n:-1\r\n:-1\r\n:-1\r\n:-1\r\n$9\r\ndeny_list\r\n$6\r\nbanned\r\n$-1\r\n");
  });

  it("charges an id once, and refuses it for something else", async () => {
    const listening = await listen();
    const asked = encode("SLUICE.CHECK", "per-user", "user=u", "ID", "i1");
    const other = encode("SLUICE.CHECK", "per-user", "user=u", "ID", "i1", "COST", 2);
    const [, one, two] = (await talk(listening, asked + asked)).split("*8\r\n");
    expect([one, two].map((reply) => reply?.split("\r\n")[2])).toEqual([":2", ":2"]);
    expect(await talk(listening, other)).toMatch(/^-CONFLICT /);
  });

  it("separates bytes that are not text", async () => {
    const asked = (user: string): string => encode("SLUICE.CHECK", "per-user", `user=${user}`, "COST", 3);
    const replies = await talk(await listen(), asked("\xff") + asked("\xfe") + asked("\xff"));
    expect(replies.match(/\*8\r\n:\d/g)).toEqual(["*8\r\n:1", "*8\r\n:1", "*8\r\n:0"]);
  });

  it.each([
    [["nope"], /^-NOPOLICY no policy has the id "nope"\r\n$/],
    [["=v"], /^-ERR a dimension must have a name before its =\r\n$/],
    [["user=u", "user=v"], /^-ERR dimensions.user must be given once\r\n$/],
    [["__proto__=u"], /^-ERR dimensions.__proto__ is not a name that a dimension may have\r\n$/],
    [["user=u", "COST"], /^-ERR COST must be followed by its value\r\n$/],
    [["user=u", "COST", "1.5"], /^-ERR cost must be a whole number from 0 to 100000, not '1.5'\r\n$/],
    [["user=u", "COST", "0"], /^-ERR cost must be .* \(0 only in a preview\), not 0\r\n$/],
    [["user=u", "DEADLINE", "0"], /^-ERR deadline must be a whole number from 1 to 60000, not '0'\r\n$/],
    [["user=u", "ID", ""], /^-ERR id must have 1 to 256 characters\r\n$/],
    [[`${"n".repeat(129)}=v`], /^-ERR a dimension must have a name of at most 128 characters\r\n$/],
    [[`user=${"u".repeat(4_097)}`], /^-ERR dimensions.user must have at most 4096 characters\r\n$/],
    [Array.from({ length: 33 }, (_, i) => `d${i}=v`), /^-ERR dimensions must be at most 32\r\n$/],
    [Array.from({ length: 33 }, () => "per-user"), /^-ERR policies must be a list of 1 to 32 policy ids/],
    [["per\r\n+OK\r\nuser"], /^-NOPOLICY [^\r\n]*\r\n$/],
    [["x".repeat(257)], /^-ERR a policy's id must have 1 to 256 characters\r\n$/],
  ])("says why it refuses: $1", async (words, reply) => {
    expect(await talk(await listen(), encode("SLUICE.CHECK", ...words))).toMatch(reply);
  });

  it("asks for a word at least", async () => {
    expect(await talk(await listen(), encode("SLUICE.CHECK"))).toBe(
      "-ERR wrong number of arguments for 'sluice.check' command\r\n",
    );
  });

  it("sheds load with BUSY", async () => {
    const decide = {
      one(): never {
        throw new SluiceError("overloaded", "too many");
      },
      together(): never {
        throw new SluiceError("overloaded", "too many");
      },
      pending: 0,
    };
    expect(await talk(await listen(undefined, { decide }), encode("SLUICE.CHECK", "user=u"))).toBe(
      "-BUSY too many\r\n",
    );
  });

  it("ends the spans of commands, those that fail as well", async () => {
    const ended: unknown[] = [];
    const tracing: Tracing = {
      start: (_protocol, name) => ({ around: (decide) => decide, end: (outcome) => ended.push([name, outcome]) }),
      spans: { exported: 0, dropped: 0 },
      close: async () => {},
    };
    const listening = await listen(undefined, { tracing });
    await talk(listening, encode("SLUICE.CHECK", "user=u") + encode("SLUICE.CHECK", "nope") + encode("PING"));
    expect(ended).toEqual([
      ["sluice.check", { status: "answered" }],
      ["sluice.check", { status: "error" }],
    ]);
  });

  it("reports unforeseen errors without details, and logs them", async () => {
    const logged: unknown[] = [];
    const decide = {
      one(): never {
        throw new Error("a secret");
      },
      together: () => [],
      pending: 0,
    };
    const log = { ...silentLog, error: (_event: string, fields: object = {}) => logged.push(fields) };
    const reply = await talk(await listen(undefined, { decide, log }), encode("SLUICE.CHECK", "user=u"));
    expect(reply).toMatch(/^-ERR something went wrong here/);
    expect(logged).toMatchObject([{ command: "sluice.check" }]);
  });
});

describe("a connection", () => {
  it("answers a pipeline of 10 000 commands in order, that arrives at once", async () => {
    const said = Array.from({ length: 10_000 }, (_, i) => encode("ECHO", i)).join("");
    const wanted = Array.from({ length: 10_000 }, (_, i) => `$${String(i).length}\r\n${i}\r\n`).join("");
    expect(await talk(await listen(), said)).toBe(wanted);
  });

  it("carries out a pipeline in steps, and answers others in between", async () => {
    // As if the time of a turn were always spent.
    const turns = new Turns();
    turns.mayGoOn = () => false;
    const listening = await listen(undefined, {}, { turns });
    const ahead = open(listening);
    let heard = 0;
    ahead.on("data", (chunk: Buffer) => {
      heard += chunk.length;
    });
    const commands = 20_000;
    ahead.write(encode("PING").repeat(commands));
    await expect.poll(() => heard, { interval: 1 }).toBeGreaterThan(0);
    expect(await talk(listening, encode("PING"))).toBe("+PONG\r\n");
    expect(heard).toBeLessThan(commands * "+PONG\r\n".length);
    await expect.poll(() => heard, { timeout: 30_000 }).toBe(commands * "+PONG\r\n".length);
    ahead.destroy();
  });

  it("closes the oldest of those that leave commands half sent, if together they hold too much", async () => {
    const held = new HeldBytes(1024 * 1024);
    const listening = await listen(undefined, {}, { held });
    const closed: number[] = [];
    const sockets = Array.from({ length: 30 }, (_, i) => {
      const socket = open(listening).on("error", () => {});
      socket.on("close", () => closed.push(i)).on("end", () => socket.destroy());
      // Half a command, as long as one may be.
      socket.resume().write(`*2\r\n$4\r\nECHO\r\n$65000\r\n${"a".repeat(60_000)}`);
      return socket;
    });
    await expect.poll(() => closed.length, { timeout: 30_000 }).toBeGreaterThan(10);
    expect(held.total).toBeLessThanOrEqual(1024 * 1024);
    expect(await talk(listening, encode("PING"))).toBe("+PONG\r\n");
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => held.total).toBe(0);
  });

  it("answers what comes byte by byte", async () => {
    const socket = open(await listen());
    const heard = collect(socket);
    socket.setNoDelay(true);
    for (const byte of Buffer.from(encode("ECHO", "a\r\nb") + encode("CL.THROTTLE", "k", 1, 1, 1))) {
      await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve));
    }
    socket.end();
    expect(await heard).toBe("$4\r\na\r\nb\r\n*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1\r\n");
  });

  it("takes lines as people type them", async () => {
    expect(await talk(await listen(), 'PING\r\n\r\necho "a b"\nnope\r\n')).toBe(
      "+PONG\r\n$3\r\na b\r\n-ERR unknown command 'nope'\r\n",
    );
  });

  it("accepts no word that only looks like the numbers of another command", async () => {
    const replies = await talk(
      await listen(),
      `${encode("CL.THROTTLE", "k", 15, 30, 60)}CL.THROTTLE k 15 "$2\\r\\n30\\r\\n$2" 60\r\nCL.THROTTLE k 15 30 60\r\n`,
    );
    expect(replies).toMatch(/^\*5\r\n(?::-?\d+\r\n){5}-ERR count must be a whole number [^\r]*\r\n\*5\r\n:0\r\n/);
  });

  it.each([
    ["*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"],
    [`*1\r\n$${10_000_000}\r\n${"a".repeat(200_000)}`, "-ERR Protocol error: invalid bulk length\r\n"],
    ["a".repeat(200_000), "-ERR Protocol error: a command has at most 65536 bytes\r\n"],
    ["*10001\r\n", "-ERR Protocol error: invalid multibulk length\r\n"],
  ])("answers an invalid command, and closes: $1", async (said, reply) => {
    const listening = await listen();
    expect(await talk(listening, encode("PING") + said + encode("PING"))).toBe(`+PONG\r\n${reply}`);
    expect(await talk(listening, encode("PING")), "the next one").toBe("+PONG\r\n");
  });

  it("closes after QUIT, and does not listen behind it", async () => {
    const socket = open(await listen());
    const heard = collect(socket);
    socket.write(encode("QUIT") + encode("PING"));
    expect(await heard).toBe("+OK\r\n");
  });

  it("does not talk to browsers", async () => {
    const body = encode("CL.THROTTLE", "k", 0, 1, 60);
    for (const first of ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: sluice\r\n"]) {
      const reply = await talk(await listen(), `${first}Accept: */*\r\n\r\n${body}`);
      expect(reply).toMatch(/-ERR this port speaks the protocol of Redis, not HTTP\r\n$/);
      await server?.close(0);
    }
  });

  it("survives random bytes, and serves the next", async () => {
    const listening = await listen();
    let seed = 12_345;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (seed >>> 8) % below;
    };
    const words = [
      "*3\r\n",
      "$5\r\n",
      "CL.THROTTLE",
      "SLUICE.CHECK",
      "\r\n",
      "*-1\r\n",
      "HELLO 3\r\n",
      "$-1\r\n",
      "PING\n",
      "\xff",
    ];
    for (let round = 0; round < 150; round++) {
      let said = "";
      for (let i = random(40); i >= 0; i--)
        said +=
          random(2) === 0
            ? words[random(words.length)]!
            : String.fromCharCode(...Array.from({ length: random(30) }, () => random(256)));
      const reply = await talk(listening, said);
      expect(reply, JSON.stringify(said)).toMatch(/^$|\r\n$/);
    }
    expect(await talk(listening, encode("PING"))).toBe("+PONG\r\n");
  });

  it("stops reading while a client leaves its replies unread, and continues when it reads", async () => {
    const listening = await listen();
    const socket = open(listening);
    const size = 60_000;
    const commands = 1_000;
    socket.pause();
    const command = Buffer.from(encode("ECHO", "a".repeat(size)));
    let sent = 0;
    for (; sent < commands; sent++) socket.write(command);
    // More than kernels hold for a connection stays on the client's side, because it is not read.
    const unsentAfter = async (ms: number): Promise<number> => {
      await sleep(ms);
      return socket.writableLength;
    };
    let before = await unsentAfter(200);
    for (let now = await unsentAfter(200); now !== before; now = await unsentAfter(200)) before = now;
    expect(before).toBeGreaterThan(10_000_000);
    expect(await talk(listening, encode("PING")), "others are served").toBe("+PONG\r\n");
    let heard = 0;
    socket.on("data", (chunk: Buffer) => {
      heard += chunk.length;
    });
    socket.resume();
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.end();
    await closed;
    expect(heard).toBe(commands * (size + `$${size}\r\n\r\n`.length));
  });

  it("closes on a client that keeps not reading", async () => {
    const listening = await listen(undefined, {}, { unreadMs: 100 });
    const socket = open(listening);
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.pause();
    const command = Buffer.from(encode("ECHO", "a".repeat(60_000)));
    for (let i = 0; i < 500; i++) socket.write(command);
    await closed;
    expect(await talk(listening, encode("PING"))).toBe("+PONG\r\n");
  });

  it("closes on a client that leaves a command half said, and on no other", async () => {
    const listening = await listen(undefined, {}, { halfwayMs: 100 });
    const idle = open(listening);
    idle.write(encode("PING"));
    await hear(idle, "+PONG\r\n");
    const half = open(listening);
    const heard = collect(half);
    half.write(`${encode("PING")}*1\r\n$4\r\nPI`);
    expect(await heard).toBe("+PONG\r\n");
    idle.write(encode("PING"));
    expect(await hear(idle, "+PONG\r\n")).toBe("+PONG\r\n");
    idle.destroy();
    half.destroy();
  });

  it("closes on a client that says one command for ever", async () => {
    const socket = open(await listen(undefined, {}, { halfwayMs: 200 }));
    const heard = collect(socket);
    socket.write("*2\r\n$4\r\nECHO\r\n$60000\r\n");
    const dripping = setInterval(() => socket.write("a"), 5);
    expect(await heard).toBe("");
    clearInterval(dripping);
  });

  it("closes on a client that does not hang up after the last reply", async () => {
    const listening = await listen(undefined, {}, { lingerMs: 50 });
    const socket = open(listening);
    socket.on("error", () => {});
    socket.write(encode("QUIT"));
    await hear(socket, "+OK\r\n");
    await expect.poll(() => talk(listening, encode("INFO", "clients")), patient).toContain("connected_clients:1\r\n");
    socket.destroy();
  });

  it("answers each command with its own number of words", async () => {
    const replies = await talk(
      await listen(),
      encode("ECHO") + encode("ECHO", 1, 2) + encode("PING", 1, 2) + encode("SELECT"),
    );
    expect(replies.match(/-ERR wrong number of arguments for '\w+' command\r\n/g)).toHaveLength(4);
  });
});

describe("with remote counters", () => {
  it("answers in the order of commands, whatever is there first", async () => {
    const { store, asked } = elsewhere();
    const socket = open(await listen(createLimiter({ policies, counters: store })));
    const heard = collect(socket);
    socket.end(
      encode("ECHO", "a") +
        encode("SLUICE.CHECK", "per-user", "user=u") +
        encode("ECHO", "b") +
        encode("CL.THROTTLE", "k", 0, 1, 60) +
        encode("ECHO", "c"),
    );
    await expect.poll(() => asked.length, patient).toBe(2);
    asked[1]!();
    asked[0]!();
    expect(await heard).toMatch(
      /^\$1\r\na\r\n\*8\r\n:1\r\n(?:[^\r]+\r\n)+\$1\r\nb\r\n\*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n\$1\r\nc\r\n$/,
    );
  });

  it("answers in the version that was spoken when it was asked", async () => {
    const { store, asked } = elsewhere();
    const socket = open(await listen(createLimiter({ policies, counters: store })));
    const heard = collect(socket);
    const check = encode("SLUICE.CHECK", "per-user", "user=u");
    socket.end(check + encode("HELLO", 3) + check + encode("RESET") + check);
    await expect.poll(() => asked.length, patient).toBe(3);
    for (const answer of asked) answer();
    expect((await heard).match(/\*8|%\d+|\+RESET/g)).toEqual(["*8", "%7", "%13", "+RESET", "*8"]);
  });

  it("does not read on while long replies wait behind one that is not there yet", async () => {
    const { store, asked } = elsewhere();
    const listening = await listen(createLimiter({ policies, counters: store }));
    const socket = open(listening);
    const heard = collect(socket);
    const reply = `$60000\r\n${"a".repeat(60_000)}\r\n`;
    socket.write(encode("CL.THROTTLE", "k", 0, 1, 60));
    for (let i = 0; i < 50; i++) socket.write(encode("ECHO", "a".repeat(60_000)));
    socket.end();
    await expect.poll(() => asked.length, patient).toBe(1);
    for (let i = 0; i < 20; i++) await talk(listening, encode("PING"));
    const stats = await talk(listening, encode("INFO", "stats"));
    expect(Number(/processed:(\d+)/.exec(stats)?.[1]) - 22, "CL.THROTTLE and a few more").toBeLessThan(5);
    asked[0]!();
    expect((await heard).length).toBe("*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n".length + 50 * reply.length);
  });

  it("reads no more than it may have in flight", async () => {
    const { store, asked } = elsewhere();
    const socket = open(await listen(createLimiter({ policies, counters: store }), {}, { maxInFlight: 10 }));
    const heard = collect(socket);
    const commands = 95;
    socket.end(Array.from({ length: commands }, (_, i) => encode("CL.THROTTLE", `k${i}`, i, 1, 1)).join(""));
    for (let answered = 0; answered < commands; ) {
      await expect.poll(() => asked.length, patient).toBe(Math.min(10, commands - answered));
      answered += asked.length;
      for (const answer of asked.splice(0)) answer();
    }
    const wanted = Array.from({ length: commands }, (_, i) => `*5\r\n:0\r\n:${i + 1}\r\n:${i}\r\n:-1\r\n:1\r\n`);
    expect(await heard).toBe(wanted.join(""));
  });

  it("distinguishes a denial because of an outage from one by a limit", async () => {
    const counters = elsewhere().store;
    const fail = async (): Promise<never> => {
      throw new Error("away");
    };
    const closed = { policies: [{ id: "shut", limits: [{ by: ["user"], windows: ["3/h"] }], on_failure: "closed" }] };
    const limiter = createLimiter({ policies: closed, counters: { ...counters, take: fail } });
    const reply = await talk(await listen(limiter), encode("SLUICE.CHECK", "user=u"));
    expect(reply).toMatch(/^\*8\r\n:0\r\n:3\r\n:-1\r\n:1000\r\n:-1\r\n\$8\r\ndegraded\r\n/);
  });
});

describe("a server that stops", () => {
  it("answers what it received, closes what is idle, and counts what it cuts off", async () => {
    const { store, asked } = elsewhere();
    const listening = await listen(createLimiter({ policies, counters: store }));
    const [idle, busy] = [open(listening), open(listening)];
    idle.write(encode("PING"));
    await hear(idle, "+PONG\r\n");
    const [idleEnds, busyHeard] = [collect(idle), collect(busy)];
    busy.write(encode("CL.THROTTLE", "k", 0, 1, 60) + encode("PING"));
    await expect.poll(() => asked.length, patient).toBe(1);
    const closing = listening.close(60_000);
    expect(await idleEnds).toBe("");
    asked[0]!();
    expect(await busyHeard).toBe("*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n+PONG\r\n");
    expect(await closing).toBe(0);
  });

  it("loses no answer, though its client reads late and keeps sending", async () => {
    const service = createTestService(createLimiter({ policies }));
    const listening = await listenForTest("resp", createRespServer(service));
    const socket = open(listening);
    socket.pause();
    const heard = collect(socket);
    const reply = `$50000\r\n${"a".repeat(50_000)}\r\n`;
    for (let i = 0; i < 60; i++) socket.write(encode("ECHO", "a".repeat(50_000)));
    const answered = async (command: string): Promise<number> => {
      const line = new RegExp(`command="${command}",outcome="answered"} (\\d+)`);
      return Number(line.exec(await service.metrics.render())?.[1] ?? 0);
    };
    await expect.poll(() => answered("echo"), patient).toBeGreaterThan(3);
    const closing = listening.close(60_000);
    for (let i = 0; i < 20; i++) {
      await sleep(5);
      socket.write(encode("PING"));
    }
    socket.resume();
    const text = await heard;
    // What arrived before it stopped to listen was answered as well.
    const pongs = "+PONG\r\n".length * (await answered("ping"));
    expect(text.length).toBe((await answered("echo")) * reply.length + pongs);
    expect(await closing).toBe(0);
  });

  it("does not count a client as cut off that has every reply, and only does not hang up", async () => {
    const listening = await listen();
    const socket = open(listening);
    socket.write(encode("PING"));
    await hear(socket, "+PONG\r\n");
    const ended = new Promise((resolve) => socket.once("end", resolve));
    expect(await listening.close(200)).toBe(0);
    socket.resume();
    await ended;
    socket.destroy();
  });

  it("lets no client in any longer", async () => {
    const transport = createRespServer(createTestService(createLimiter({ policies })));
    const late = createServer((socket) => transport.accept(socket)).listen(0, "127.0.0.1");
    await once(late, "listening");
    await transport.drain(0);
    const { port } = late.address() as AddressInfo;
    expect(await talk({ port }, encode("PING"))).toBe("");
    late.close();
  });

  it("cuts off what does not finish in time", async () => {
    const { store, asked } = elsewhere();
    const listening = await listen(createLimiter({ policies, counters: store }));
    const socket = open(listening);
    const heard = collect(socket);
    socket.write(encode("CL.THROTTLE", "k", 0, 1, 60));
    await expect.poll(() => asked.length, patient).toBe(1);
    expect(await listening.close(10)).toBe(1);
    expect(await heard).toBe("");
  });
});

describe("tokens", () => {
  it("are asked for before anything else", async () => {
    const listening = await listen(undefined, { access: tokens() });
    const replies = await talk(
      listening,
      encode("PING") +
        encode("SLUICE.CHECK", "user=u") +
        encode("HELLO", 3) +
        encode("AUTH", "wrong") +
        encode("AUTH", "someone", "check") +
        encode("AUTH", "check") +
        encode("PING") +
        encode("AUTH", "default", "check") +
        encode("AUTH", "check-1", "check") +
        encode("RESET") +
        encode("PING"),
    );
    expect(replies.split("\r\n").map((reply) => reply.split(" ")[0])).toEqual([
      "-NOAUTH",
      "-NOAUTH",
      "-NOAUTH",
      "-WRONGPASS",
      "-WRONGPASS",
      "+OK",
      "+PONG",
      "+OK",
      "+OK",
      "+RESET",
      "-NOAUTH",
      "",
    ]);
  });

  it("are asked for whatever is sent, even if it is not a command", async () => {
    const listening = await listen(undefined, { access: tokens() });
    const replies = await talk(listening, encode("nope") + encode("ECHO") + encode("PING"));
    expect(replies.match(/-\w+/g)).toEqual(["-NOAUTH", "-NOAUTH", "-NOAUTH"]);
    expect(await talk(listening, "GET / HTTP/1.1\r\nHost: sluice\r\n\r\n")).toMatch(/not HTTP\r\n$/);
  });

  it("leave little room to clients without one", async () => {
    const listening = await listen(undefined, { access: tokens() });
    const long = encode("SLUICE.CHECK", ...Array.from({ length: 5 }, (_, i) => `d${i}=${"a".repeat(1_000)}`));
    const tooLong = "-ERR Protocol error: a command has at most 4096 bytes before AUTH\r\n";
    expect(await talk(listening, encode("PING") + long)).toMatch(new RegExp(`^-NOAUTH .*\r\n${tooLong}$`));
    expect(await talk(listening, "*2\r\n$4\r\nPING\r\n$5000\r\n")).toBe(tooLong);
    expect(await talk(listening, `ping ${"a".repeat(5_000)}`)).toBe(tooLong);
    expect(await talk(listening, encode("AUTH", "check") + long)).toMatch(/^\+OK\r\n\*8\r\n/);
    expect(await talk(listening, encode("AUTH", "check") + encode("RESET") + long)).toBe(`+OK\r\n+RESET\r\n${tooLong}`);
  });

  it("are waited for, but not for long", async () => {
    const options = { strangerMs: 100 };
    const listening = await listen(undefined, { access: tokens() }, options);
    const known = open(listening);
    known.write(encode("AUTH", "check"));
    await hear(known, "+OK\r\n");
    const silent = open(listening);
    const talkative = open(listening);
    const talking = setInterval(() => talkative.write(encode("RESET")), 5);
    const closed = [silent, talkative].map(collect);
    expect((await Promise.all(closed))[0]).toBe("");
    clearInterval(talking);
    known.write(encode("PING"));
    expect(await hear(known, "+PONG\r\n")).toBe("+PONG\r\n");
    known.destroy();
  });

  it("are not waited for if none is needed", async () => {
    const listening = await listen(undefined, {}, { strangerMs: 100, halfwayMs: 200 });
    const silent = open(listening);
    const half = open(listening);
    const cut = collect(half);
    half.write("*");
    await cut;
    silent.write(encode("PING"));
    expect(await hear(silent, "+PONG\r\n")).toBe("+PONG\r\n");
    silent.destroy();
  });

  it("come with HELLO as well", async () => {
    const listening = await listen(undefined, { access: tokens() });
    expect(await talk(listening, encode("HELLO", 3, "AUTH", "default", "wrong"))).toMatch(/^-WRONGPASS /);
    expect(
      await talk(
        listening,
        encode("HELLO", 3, "AUTH", "default", "check", "SETNAME", "me") + encode("CLIENT", "GETNAME"),
      ),
    ).toMatch(/^%7\r\n[\s\S]*\$2\r\nme\r\n$/);
  });

  it("decide who may do what", async () => {
    const access = tokens();
    const listening = await listen(undefined, { access });
    const as = (role: string, ...words: string[]): Promise<string> =>
      talk(listening, encode("AUTH", role) + encode(...words));
    expect(await as("viewer", "SLUICE.CHECK", "user=u")).toMatch(/^\+OK\r\n-NOPERM /);
    expect(await as("viewer", "CL.THROTTLE", "k", "1", "1", "1")).toMatch(/^\+OK\r\n-NOPERM /);
    expect(await as("check", "SLUICE.RESET", "user=u")).toMatch(/^\+OK\r\n-NOPERM /);
    expect(await as("check", "SLUICE.CHECK", "user=u")).toMatch(/^\+OK\r\n\*8\r\n/);
    expect(await as("viewer", "INFO")).toMatch(/^\+OK\r\n\$/);
  });

  it("stop working on open connections when they are taken back", async () => {
    const access = tokens();
    const socket = open(await listen(undefined, { access }));
    socket.write(encode("AUTH", "check") + encode("PING"));
    await hear(socket, "+PONG\r\n");
    access.known.delete("check");
    await expect
      .poll(
        () => {
          socket.write(encode("PING"));
          return hear(socket, "\r\n");
        },
        { timeout: 30_000, interval: 100 },
      )
      .toBe("-NOAUTH Authentication required. Say AUTH and a token first.\r\n");
    socket.destroy();
  });

  it("do not come back after RESET, unless they are said again", async () => {
    const socket = open(await listen(undefined, { access: tokens() }));
    socket.write(encode("AUTH", "check") + encode("RESET"));
    await hear(socket, "+RESET\r\n");
    // Longer than a token that is known is believed without asking again.
    await sleep(1_100);
    socket.write(encode("PING"));
    expect(await hear(socket, "\r\n")).toMatch(/^-NOAUTH /);
    socket.destroy();
  });

  it("are needless if there are none", async () => {
    expect(await talk(await listen(), encode("AUTH", "secret") + encode("PING"))).toMatch(
      /^-ERR AUTH was called, but this server knows no tokens[^\r]*\r\n\+PONG\r\n$/,
    );
  });
});

describe("SLUICE.RESET", () => {
  it("forgets counters of policies, and of CL.THROTTLE by their key", async () => {
    const listening = await listen(undefined, { access: tokens() });
    const replies = await talk(
      listening,
      encode("AUTH", "operator") +
        encode("SLUICE.CHECK", "per-user", "user=u", "COST", 3) +
        encode("SLUICE.RESET", "per-user", "user=u") +
        encode("SLUICE.CHECK", "per-user", "user=u", "COST", 3) +
        encode("CL.THROTTLE", "k", 0, 1, 60) +
        encode("SLUICE.RESET", "KEY", "k") +
        encode("CL.THROTTLE", "k", 0, 1, 60) +
        encode("CL.THROTTLE", "k", 0, 1, 60),
    );
    expect(replies.match(/\*\d\r\n:\d/g)).toEqual(["*8\r\n:1", "*8\r\n:1", "*5\r\n:0", "*5\r\n:0", "*5\r\n:1"]);
  });

  it("answers how many counters were reset, 0 if no policy counts such a check", async () => {
    const limiter = createLimiter({ policies: { ...policies, default: "none" } });
    const listening = await listen(limiter, { access: tokens() });
    const ask = (...words: string[]): Promise<string> =>
      talk(listening, encode("AUTH", "operator") + encode("SLUICE.RESET", ...words));
    expect(await ask("per-user", "user=u")).toBe("+OK\r\n:1\r\n");
    expect(await ask("user=u", "DOMAIN", "nowhere")).toBe("+OK\r\n:0\r\n");
  });

  it("is logged with who asked for it", async () => {
    const logged: object[] = [];
    const log = { ...silentLog, info: (_event: string, fields: object = {}) => logged.push(fields) };
    const listening = await listen(undefined, { access: tokens(), log });
    await talk(listening, encode("AUTH", "operator") + encode("SLUICE.RESET", "KEY", "k"));
    expect(logged).toMatchObject([{ caller: "operator-1", dimensions: { key: "k" } }]);
  });

  it("treats KEY as a policy's id if no key follows", async () => {
    const listening = await listen(undefined, { access: tokens() });
    for (const words of [["KEY"], ["KEY", "a", "b"]])
      expect(await talk(listening, encode("AUTH", "operator") + encode("SLUICE.RESET", ...words))).toContain(
        '-NOPOLICY no policy has the id "KEY"',
      );
  });

  it("reports unavailable counters, and nothing of where they are", async () => {
    const reset = async (): Promise<never> => {
      throw new Error("connect ECONNREFUSED 10.0.0.7:6379");
    };
    const limiter = createLimiter({ policies, counters: { ...elsewhere().store, reset } });
    const listening = await listen(limiter, { access: tokens() });
    expect(await talk(listening, encode("AUTH", "operator") + encode("SLUICE.RESET", "user=u"))).toBe(
      "+OK\r\n-UNAVAILABLE the counters cannot be reached; nothing is wrong with the request, so repeat it in a few seconds\r\n",
    );
  });
});

describe("what every Redis server answers", () => {
  it("is answered here as well", async () => {
    const listening = await listen();
    const ask = (...words: (string | number)[]): Promise<string> => talk(listening, encode(...words));
    expect(await ask("PING", "a")).toBe("$1\r\na\r\n");
    expect(await ask("SELECT", 0)).toBe("+OK\r\n");
    expect(await ask("SELECT", 1)).toBe("-ERR DB index is out of range\r\n");
    expect(await ask("SELECT", "x")).toBe("-ERR invalid DB index\r\n");
    expect(await ask("CONFIG", "GET", "save")).toBe("*0\r\n");
    expect(await ask("CONFIG", "SET", "save", "")).toMatch(/^-ERR /);
    expect(await ask("COMMAND", "COUNT")).toBe(":14\r\n");
    expect(await ask("COMMAND", "INFO", "cl.throttle", "get")).toBe(
      "*2\r\n*10\r\n$11\r\ncl.throttle\r\n:-5\r\n*2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n*-1\r\n",
    );
    expect(await ask("COMMAND", "NOPE")).toMatch(/^-ERR unknown subcommand 'NOPE'/);
    expect(await ask("CLIENT", "ID")).toMatch(/^:\d+\r\n$/);
    expect(await ask("CLIENT", "GETNAME")).toBe("$-1\r\n");
    expect(await ask("CLIENT", "SETNAME", "a b")).toMatch(/^-ERR names have/);
    expect(await ask("CLIENT", "SETINFO", "LIB-NAME", "x")).toBe("+OK\r\n");
    expect(await ask("CLIENT", "SETINFO", "LIB-AGE", "x")).toMatch(/^-ERR /);
    expect(await ask("CLIENT", "NO-EVICT", "on")).toBe("+OK\r\n");
    expect(await ask("CLIENT", "REPLY", "OFF")).toMatch(/^-ERR /);
    expect(await ask("CLIENT", "KILL", "x")).toMatch(/^-ERR unknown subcommand 'KILL'/);
    expect(await ask("CLIENT", "LIST")).toMatch(/\r\nid=\d+ addr=127\.0\.0\.1:\d+ name= .* resp=2\n\r\n$/);
    expect(await ask("HELLO", 4)).toBe("-NOPROTO unsupported protocol version\r\n");
    expect(await ask("HELLO", 2, "NOPE")).toBe("-ERR syntax error in HELLO option 'NOPE'\r\n");
    expect(await ask("HELLO")).toMatch(/^\*14\r\n\$6\r\nserver\r\n\$6\r\nsluice\r\n/);
    expect(await ask("GET", "a\r\nb")).toBe("-ERR unknown command 'GET'\r\n");
    expect(await ask("G\r\nT")).toBe("-ERR unknown command 'G T'\r\n");
    expect(await ask("gr\xc3\xb6\xc3\x9fe")).toBe("-ERR unknown command 'gr\xc3\xb6\xc3\x9fe'\r\n");
    expect(await ask("CL.THROTTLE", "k", "\xc3\xb6", 1, 1)).toMatch(/, not '\xc3\xb6'\r\n$/);
  });

  it("shows its status in INFO", async () => {
    const reply = await talk(await listen(), encode("PING") + encode("INFO", "stats", "SLUICE"));
    expect(reply).toContain("# Stats\r\ntotal_connections_received:1\r\ntotal_commands_processed:2\r\n");
    expect(reply).toContain("policies:3\r\npolicies_generation:1\r\npolicies_state:current\r\ncounters:memory\r\n");
    expect(reply).not.toContain("# Server");
  });
});

describe("metrics", () => {
  it("count commands by name and outcome, and give no stranger a label", async () => {
    const service = createTestService(createLimiter({ policies }));
    server = await listenForTest("resp", createRespServer(service));
    await talk(
      server,
      encode("PING") +
        encode("PiNg") +
        encode("evil") +
        encode("SLUICE.CHECK", "nope") +
        encode("CL.THROTTLE", "k", 1, 1, 1),
    );
    const text = await service.metrics.render();
    const lines = text.split("\n").filter((line) => line.startsWith("sluice_resp_commands_total{"));
    expect(lines.sort()).toEqual([
      'sluice_resp_commands_total{command="cl.throttle",outcome="answered"} 1',
      'sluice_resp_commands_total{command="ping",outcome="answered"} 2',
      'sluice_resp_commands_total{command="sluice.check",outcome="error"} 1',
      'sluice_resp_commands_total{command="unknown",outcome="error"} 1',
    ]);
    expect(text).toContain('sluice_protocol_checks_total{protocol="resp"} 2');
    expect(text).toContain('sluice_checks_total{policy="cl.throttle",domain="",version="",allowed="true"} 1');
    expect(text).toContain('sluice_window_remaining{policy="cl.throttle",domain="",scope="",window="other",name=""} 1');
  });

  it(`have room for the longest command there is, of ${maxCommandBytes} bytes`, async () => {
    const word = "a".repeat(maxCommandBytes - encode("ECHO", "").length - 10);
    expect((await talk(await listen(), encode("ECHO", word))).length).toBeGreaterThan(word.length);
  });
});
