import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createNotifier } from "./notify-systemd.ts";

const main = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url));
/** Receives as systemd does, and prints what arrives, a report a line. */
const receiver = `
import socket, sys
inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
inbox.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(inbox.recv(4096).decode().replace("\\n", " ").strip(), flush=True)
`;

let folder: string;
let socket: string;
let systemd: ChildProcess;
let received: string[];
let served: ChildProcess | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-notify-"));
  socket = join(folder, "notify");
  received = [];
  systemd = spawn("/usr/bin/python3", ["-c", receiver, socket], { stdio: ["ignore", "pipe", "inherit"] });
  systemd.stdout!.setEncoding("utf8").on("data", (text: string) => received.push(...text.trimEnd().split("\n")));
  await once(systemd.stdout!, "data");
  received = [];
});

afterEach(async () => {
  served?.kill("SIGKILL");
  const ended = once(systemd, "close");
  systemd.kill("SIGKILL");
  await ended;
  await rm(folder, { recursive: true, force: true });
});

/** systemd-notify follows a report with an empty one, or one that asks whether it was read. */
const reports = (): readonly string[] => received.filter((line) => line !== "" && !line.startsWith("BARRIER="));

it("tells systemd when a server is ready, alive and stopping", async () => {
  const child = spawn(process.execPath, ["-C", "source", main, "serve", "--notify"], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...{ PATH: process.env.PATH, SLUICE_HTTP_PORT: "0", SLUICE_GRPC_PORT: "off", SLUICE_LOG_LEVEL: "error" },
      ...{ NOTIFY_SOCKET: socket, WATCHDOG_USEC: "400000" },
    },
  });
  served = child;
  const exited = once(child, "close");
  await expect.poll(reports, { timeout: 60_000 }).toContain("WATCHDOG=1");
  expect(reports()[0]).toMatch(/^READY=1 STATUS=Sluice \S+: 0 policies, counters in memory$/);
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
  expect(reports().at(-1)).toBe("STOPPING=1 STATUS=Finishing what is in flight");
}, 120_000);

it("leaves a watchdog alone that is meant for another process", async () => {
  const env = { PATH: process.env.PATH!, NOTIFY_SOCKET: socket, WATCHDOG_USEC: "2000", WATCHDOG_PID: "1" };
  const notifier = createNotifier({ notify: true }, env, { warn() {} });
  notifier.ready("one");
  await expect.poll(reports).toEqual(["READY=1 STATUS=one"]);
  notifier.stopping();
  await expect.poll(reports).toHaveLength(2);
});

it("logs why it cannot tell, once for each outage, and does no harm", async () => {
  const reasons: unknown[] = [];
  const log = { warn: (_event: string, fields?: Readonly<Record<string, unknown>>) => reasons.push(fields?.reason) };
  createNotifier({ notify: true }, {}, log).ready("unheard");
  expect(reasons).toEqual(["NOTIFY_SOCKET is not set; only systemd sets it, for Type=notify"]);
  const lost = createNotifier({ notify: true }, { NOTIFY_SOCKET: socket, PATH: folder }, log);
  lost.ready("unheard");
  lost.stopping();
  await expect.poll(() => reasons).toHaveLength(2);
  expect(reasons[1]).toContain("systemd-notify is not installed");
  createNotifier({ notify: false }, {}, log).ready("unwanted");
  expect(reasons).toHaveLength(2);
});
