import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { statSync } from "node:fs";
import { chmod, copyFile, lstat, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { connect as connectNet, createServer, Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { createCertificates, type IssuedCertificate, type TestCertificates } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Protocol } from "../../protocol.ts";
import { parseSettings, SettingError } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";
import { createRecordingLog } from "../../testing/recording-log.ts";
import { createDoor, type Door, type DoorOptions, type ListenError } from "./door.ts";
import { createTls, type Tls } from "./tls.ts";

let certificates: TestCertificates;
let gateway: IssuedCertificate;
let spiffe: IssuedCertificate;
let tricky: IssuedCertificate;
/** As the first, with another key. */
let renewed: IssuedCertificate;

beforeAll(async () => {
  certificates = await createCertificates();
  [gateway, spiffe, tricky, renewed] = await Promise.all([
    certificates.issue("gateway", "DNS:gateway.internal"),
    certificates.issue("spiffe", "URI:spiffe://acme/envoy,IP:10.0.0.7,email:ops@acme.example"),
    certificates.issue("tricky", `DER:${derOfUri("http://x/, DNS:gateway.internal").toString("hex")}`),
    certificates.issue("renewed", "DNS:localhost,IP:127.0.0.1"),
  ]);
}, 60_000);

afterAll(() => certificates.close());

/** Subject alternative names of a single URI, whatever is in it. */
function derOfUri(uri: string): Buffer {
  const value = Buffer.from(uri, "latin1");
  return Buffer.concat([Buffer.from([0x30, value.length + 2, 0x86, value.length]), value]);
}

let folder: string;
let doors: Door[];
let clients: Socket[];
let tls: Tls | undefined;
let accepted: Socket[];
let turnedAway: string[];
let logged: { level: string; fields: Readonly<Record<string, unknown>>; message: string }[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-door-"));
  [doors, clients, accepted, turnedAway, logged] = [[], [], [], [], []];
});

afterEach(async () => {
  for (const client of clients) client.destroy();
  for (const socket of accepted) socket.destroy();
  await Promise.all(doors.map((door) => door.close()));
  tls?.close();
  tls = undefined;
  await rm(folder, { recursive: true, force: true });
});

const log = createRecordingLog((line) => logged.push(line));

/** Echoes what it receives. */
const echo = {
  accept(socket: Socket): void {
    accepted.push(socket);
    socket.pipe(socket);
  },
};

function readSettings(flags: Partial<Record<keyof Settings, string>>): Settings {
  const reading = parseSettings({}, flags);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading.settings;
}

async function listen(options: Partial<DoorOptions> = {}): Promise<{ port: number; address: string; door: Door }> {
  const door = createDoor({
    protocol: "http",
    endpoints: [{ kind: "port", host: "127.0.0.1", port: 0 }],
    transport: echo,
    maxConnections: 100,
    onTurnedAway: (protocol, why) => turnedAway.push(`${protocol} ${why}`),
    ...options,
  });
  doors.push(door);
  const [address = ""] = await door.listen();
  return { door, address, port: Number(address.slice(address.lastIndexOf(":") + 1)) };
}

async function listenSecurely(
  flags: Partial<Record<keyof Settings, string>> = {},
  options: Partial<DoorOptions> = {},
): Promise<{ port: number; door: Door }> {
  const settings = readSettings({ tlsCert: certificates.cert, tlsKey: certificates.key, ...flags });
  tls = await createTls({ settings, log, pollMs: 10 });
  return listen({ tls, ...options });
}

async function connect(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connectTls({ host: "127.0.0.1", port, ca: await readFile(certificates.ca), ...options });
  clients.push(socket);
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  return socket;
}

/** What it says back, or that it hung up. */
async function say(socket: Socket, text: string): Promise<string> {
  const heard = new Promise<string>((resolve) => {
    socket.once("data", (chunk) => resolve(String(chunk)));
    socket.once("close", () => resolve("hung up"));
    socket.once("error", () => resolve("hung up"));
  });
  if (socket.destroyed) return "hung up";
  socket.write(text);
  return heard;
}

/** Whether a client of these options gets through. In TLS 1.3 one that is refused learns it only afterwards. */
async function getsIn(port: number, options: ConnectionOptions = {}): Promise<boolean> {
  try {
    return (await say(await connect(port, options), "hello")) === "hello";
  } catch {
    return false;
  }
}

async function showing({ cert, key }: IssuedCertificate): Promise<ConnectionOptions> {
  return { cert: await readFile(cert), key: await readFile(key) };
}

async function refusal(options: Partial<DoorOptions>): Promise<ListenError> {
  return listen(options).then(
    () => expect.unreachable("it listens"),
    (error: ListenError) => error,
  );
}

describe("a door with TLS", () => {
  it.each(["TLSv1.2", "TLSv1.3"] as const)("speaks %s, and never in the clear", async (version) => {
    const { port } = await listenSecurely();
    const socket = await connect(port, { minVersion: version, maxVersion: version });
    expect(socket.authorized).toBe(true);
    expect(await say(socket, "hello")).toBe("hello");
    const clear = connectNet(port, "127.0.0.1");
    clients.push(clear);
    const answer = await say(clear, "GET / HTTP/1.1\r\n\r\n");
    expect(answer).not.toContain("GET");
    await expect.poll(() => turnedAway).toEqual(["http tls"]);
  });

  it("speaks nothing older", async () => {
    const { port } = await listenSecurely();
    const ciphers = "DEFAULT:@SECLEVEL=0";
    expect(await getsIn(port, { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers })).toBe(false);
    expect(accepted).toEqual([]);
    await expect.poll(() => turnedAway).toEqual(["http tls"]);
  });

  it.each([
    ["http", ["h2", "http/1.1"], "http/1.1"],
    ["grpc", ["http/1.1", "h2"], "h2"],
    ["resp", ["redis"], false],
  ] as const)("negotiates the protocol inside TLS with clients of %s", async (protocol, offered, chosen) => {
    const { port } = await listenSecurely({}, { protocol });
    const socket = await connect(port, { ALPNProtocols: [...offered] });
    expect(socket.alpnProtocol).toBe(chosen);
    expect(await say(socket, "hello")).toBe("hello");
  });

  it("refuses a client of gRPC that can only speak HTTP/1.1", async () => {
    const { port } = await listenSecurely({}, { protocol: "grpc" });
    expect(await getsIn(port, { ALPNProtocols: ["http/1.1"] })).toBe(false);
    await expect.poll(() => turnedAway).toEqual(["grpc tls"]);
  });

  it("counts a client among the connections while it has not agreed on TLS", async () => {
    const { port, door } = await listenSecurely({}, { maxConnections: 1 });
    const slow = connectNet(port, "127.0.0.1");
    clients.push(slow);
    await expect.poll(() => door.connections).toBe(1);
    expect(await getsIn(port)).toBe(false);
    expect(turnedAway).toEqual(["http too_many"]);
    slow.destroy();
    await expect.poll(() => door.connections).toBe(0);
    expect(await getsIn(port)).toBe(true);
  });

  it.each([
    ["says nothing", Buffer.alloc(0)],
    ["says half a greeting", Buffer.from([0x16, 0x03, 0x01])],
  ])("lets a client go that %s for too long", async (_what, bytes) => {
    const { port, door } = await listenSecurely({}, { handshakeWithinMs: 50 });
    const slow = connectNet(port, "127.0.0.1");
    clients.push(slow);
    slow.on("error", () => {});
    if (bytes.length > 0) slow.write(bytes);
    await once(slow, "close");
    await expect.poll(() => turnedAway).toEqual(["http tls"]);
    await expect.poll(() => door.connections).toBe(0);
  });

  it("does not take a probe that says nothing for a failure", async () => {
    const { port, door } = await listenSecurely();
    const probe = connectNet(port, "127.0.0.1");
    await once(probe, "connect");
    await expect.poll(() => door.connections).toBe(1);
    probe.destroy();
    await expect.poll(() => door.connections).toBe(0);
    expect(turnedAway).toEqual([]);
  });

  it("survives random bytes and resets, and serves the next one", async () => {
    const { port, door } = await listenSecurely();
    for (let index = 0; index < 20; index += 1) {
      const socket = connectNet(port, "127.0.0.1");
      clients.push(socket);
      socket.on("error", () => {});
      await once(socket, "connect");
      socket.write(Buffer.from(Array.from({ length: 64 }, (_, at) => (index * 31 + at * 17) & 0xff)));
      if (index % 2 === 0) socket.resetAndDestroy();
    }
    expect(await getsIn(port)).toBe(true);
    for (const client of clients) client.destroy();
    await expect.poll(() => door.connections).toBe(0);
  });

  it("closes connections in their TLS handshake, and leaves the rest open", async () => {
    const { port, door } = await listenSecurely({}, { handshakeWithinMs: 3_600_000 });
    const open = await connect(port);
    expect(await say(open, "hello")).toBe("hello");
    const half = connectNet(port, "127.0.0.1");
    clients.push(half);
    await expect.poll(() => door.connections).toBe(2);
    await door.close();
    await once(half, "close");
    expect(await say(open, "still here")).toBe("still here");
    expect(turnedAway).toEqual([]);
    expect(await getsIn(port)).toBe(false);
  });

  it("is spoken to by curl", async () => {
    const { port } = await listenSecurely(
      {},
      {
        transport: {
          accept(socket): void {
            accepted.push(socket);
            socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
          },
        },
      },
    );
    const curl = spawn("curl", ["--silent", "--cacert", certificates.ca, `https://localhost:${port}/`], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    curl.stdout.on("data", (chunk) => {
      out += String(chunk);
    });
    expect(await once(curl, "close")).toEqual([0, null]);
    expect(out).toBe("ok");
  });
});

describe("certificates of clients", () => {
  it("are needed, from an authority that is trusted", async () => {
    const { port } = await listenSecurely({ tlsClientCa: certificates.ca });
    const other = await createCertificates();
    try {
      expect(await getsIn(port, await showing(gateway))).toBe(true);
      expect(await getsIn(port)).toBe(false);
      expect(await getsIn(port, await showing({ cert: other.clientCert, key: other.clientKey }))).toBe(false);
      expect(accepted).toHaveLength(1);
      await expect.poll(() => turnedAway).toEqual(["http tls", "http tls"]);
    } finally {
      await other.close();
    }
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)("are shown anew on every connection (%s)", async (version) => {
    const { port } = await listenSecurely({ tlsClientCa: certificates.ca });
    let session: Buffer | undefined;
    const first = await connect(port, { ...(await showing(gateway)), maxVersion: version, minVersion: version });
    first.on("session", (one: Buffer) => {
      session = one;
    });
    expect(await say(first, "hello")).toBe("hello");
    session ??= first.getSession();
    // With the session of a client that had a certificate, and none of its own.
    expect(await getsIn(port, { session, minVersion: version, maxVersion: version })).toBe(false);
    expect(accepted).toHaveLength(1);
  });

  it.each([
    ["gateway.internal", ["gateway"]],
    ["GATEWAY.internal", ["gateway"]],
    ["*.internal", ["gateway"]],
    ["internal", []],
    ["*.gateway.internal", []],
    ["spiffe://acme/envoy", ["spiffe"]],
    ["spiffe://acme/envo", []],
    ["ops@acme.example", ["spiffe"]],
    ["10.0.0.7", ["spiffe"]],
    ["other.internal, spiffe://acme/envoy, gateway.internal", ["gateway", "spiffe"]],
  ] as const)("are let in by the names %s", async (tlsClientNames, expected) => {
    const { port } = await listenSecurely({ tlsClientCa: certificates.ca, tlsClientNames });
    const letIn: string[] = [];
    for (const [name, certificate] of Object.entries({ gateway, spiffe, tricky }))
      if (await getsIn(port, await showing(certificate))) letIn.push(name);
    expect(letIn).toEqual(expected);
    await expect.poll(() => turnedAway.length).toBe(3 - expected.length);
    for (const one of turnedAway) expect(one).toBe("http client_name");
  });

  it("are not let in by their common name", async () => {
    const { port } = await listenSecurely({ tlsClientCa: certificates.ca, tlsClientNames: "client" });
    const client = { cert: certificates.clientCert, key: certificates.clientKey };
    expect(await getsIn(port, await showing(client))).toBe(false);
    await expect.poll(() => turnedAway).toEqual(["http client_name"]);
  });

  it.each(["a b", "gate*way", "*", "*.*.example", "host:8080", "-a"])("cannot be named %s", async (name) => {
    await expect(listenSecurely({ tlsClientCa: certificates.ca, tlsClientNames: name })).rejects.toThrow(
      /SLUICE_TLS_CLIENT_NAMES \(--tls-client-names\): .* is not a client name/,
    );
  });
});

describe("certificates on disk", () => {
  let cert: string;
  let key: string;

  beforeEach(async () => {
    [cert, key] = [join(folder, "tls.crt"), join(folder, "tls.key")];
    await put(certificates);
  });

  async function put(issued: IssuedCertificate): Promise<void> {
    await replace(issued.cert, cert);
    await replace(issued.key, key);
  }

  /** In one stroke: half of a file, found twice, would be reported for itself. */
  async function replace(from: string, to: string): Promise<void> {
    await copyFile(from, `${to}.next`);
    await rename(`${to}.next`, to);
  }

  async function readSerial(port: number): Promise<string> {
    const socket = await connect(port);
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  }

  it("are read again when they change, while connections go on", async () => {
    const { port } = await listenSecurely({ tlsCert: cert, tlsKey: key });
    const before = await connect(port);
    const serial = before.getPeerCertificate().serialNumber;
    let failed = 0;
    let on = true;
    const traffic = (async () => {
      while (on) if (!(await getsIn(port))) failed += 1;
    })();
    await put(renewed);
    await expect.poll(() => readSerial(port), { timeout: 30_000 }).not.toBe(serial);
    on = false;
    await traffic;
    expect(failed).toBe(0);
    expect(await say(before, "still here")).toBe("still here");
    expect(logged.map(({ message }) => message)).toContain("certificates reloaded");
  });

  it("stay as they were while the new ones cannot be used, which is logged once", async () => {
    const { port } = await listenSecurely({ tlsCert: cert, tlsKey: key });
    const serial = await readSerial(port);
    await replace(renewed.key, key);
    const errors = (): unknown[] => logged.filter(({ level }) => level === "error").map(({ fields }) => fields.reason);
    await expect
      .poll(errors, { timeout: 30_000 })
      .toEqual([expect.stringContaining("does not belong to the certificate")]);
    expect(await readSerial(port)).toBe(serial);
    await tls?.reload();
    expect(errors()).toHaveLength(2);
    await replace(renewed.cert, cert);
    await expect.poll(() => readSerial(port), { timeout: 30_000 }).not.toBe(serial);
    expect(JSON.stringify(logged)).not.toContain("PRIVATE");
  });

  it("take effect at once on request", async () => {
    const settings = readSettings({ tlsCert: cert, tlsKey: key });
    tls = await createTls({ settings, log, pollMs: 3_600_000 });
    const { port } = await listen({ tls });
    const serial = await readSerial(port);
    await put(renewed);
    await tls?.reload();
    expect(await readSerial(port)).not.toBe(serial);
  });

  it("are warned of while they run out, and not at the start alone", async () => {
    const { validToDate } = new X509Certificate(await readFile(cert));
    const warnings = (): unknown[] => logged.filter(({ level }) => level === "warn").map(({ message }) => message);
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"], now: Date.now() });
    try {
      tls = await createTls({ settings: readSettings({ tlsCert: cert, tlsKey: key }), log, pollMs: 1e9 });
      const days = (count: number): number => count * 24 * 3_600_000;
      const calmMs = validToDate.getTime() - days(15) - Date.now();
      vi.setSystemTime(Date.now() + calmMs);
      logged = [];
      vi.advanceTimersByTime(days(0.5));
      expect(warnings()).toEqual([]);
      vi.advanceTimersByTime(days(2));
      expect(warnings()).toContain("the certificate expires soon");
      vi.advanceTimersByTime(days(14));
      expect(warnings()).toContain("the certificate has expired; clients will refuse it");
      tls?.close();
      logged = [];
      vi.advanceTimersByTime(days(14));
      expect(warnings()).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("change who is let in, too", async () => {
    const ca = join(folder, "ca.crt");
    await copyFile(certificates.ca, ca);
    const { port } = await listenSecurely({ tlsClientCa: ca });
    expect(await getsIn(port, await showing(gateway))).toBe(true);
    const other = await createCertificates();
    try {
      await replace(other.ca, ca);
      await tls?.reload();
      expect(await getsIn(port, await showing(gateway))).toBe(false);
      expect(await getsIn(port, await showing({ cert: other.clientCert, key: other.clientKey }))).toBe(true);
    } finally {
      await other.close();
    }
  });

  it.each([
    ["a missing file", { tlsCert: "/nowhere/tls.crt" }, /SLUICE_TLS_CERT .*does not exist/],
    ["a folder", { tlsKey: tmpdir() }, /SLUICE_TLS_KEY .*is a folder/],
    ["a key for a certificate", { tlsCert: "$key" }, /SLUICE_TLS_CERT .*contains no certificate/],
    ["a certificate for a key", { tlsKey: "$cert" }, /SLUICE_TLS_KEY .*cannot be used/],
    ["a key of another", { tlsKey: "$other" }, /SLUICE_TLS_KEY .*the key does not belong to the certificate/],
    ["an authority that is none", { tlsClientCa: "$key" }, /SLUICE_TLS_CLIENT_CA .*contains no certificate/],
    ["an empty authority", { tlsClientCa: "$empty" }, /SLUICE_TLS_CLIENT_CA .*contains no certificate/],
  ] as const)("are refused at the start if there is %s", async (_what, flags, message) => {
    const empty = join(folder, "empty");
    await writeFile(empty, "");
    const files: Record<string, string> = { $key: key, $cert: cert, $other: renewed.key, $empty: empty };
    const named = Object.fromEntries(Object.entries(flags).map(([name, path]) => [name, files[path] ?? path]));
    const started = listenSecurely({ tlsCert: cert, tlsKey: key, ...named });
    await expect(started).rejects.toThrow(SettingError);
    await expect(started).rejects.toThrow(message);
  });
});

describe("a door to a unix socket", () => {
  const at = (path: string): Partial<DoorOptions> => ({ endpoints: [{ kind: "socket", path }] });

  async function talk(path: string): Promise<string> {
    const socket = connectNet(path);
    clients.push(socket);
    await once(socket, "connect");
    return say(socket, "hello");
  }

  it("is open to owner and group, and gone when it is closed", async () => {
    const path = join(folder, "http.sock");
    const { door, address } = await listen(at(path));
    expect(address).toBe(`unix:${path}`);
    expect((await stat(path)).mode & 0o777).toBe(0o660);
    expect(await talk(path)).toBe("hello");
    await door.close();
    await expect(lstat(path)).rejects.toThrow("ENOENT");
  });

  it("is closed to other users from its first moment", async () => {
    const path = join(folder, "http.sock");
    const modes: number[] = [];
    const { listen: original } = Server.prototype;
    const spy = vi.spyOn(Server.prototype, "listen").mockImplementation(function (this: Server, ...args: unknown[]) {
      Reflect.apply(original, this, args);
      modes.push(statSync(path).mode & 0o777);
      return this;
    });
    try {
      await listen(at(path));
    } finally {
      spy.mockRestore();
    }
    expect(modes).toEqual([0o660]);
  });

  it("has no TLS, even if ports have", async () => {
    const path = join(folder, "http.sock");
    await listenSecurely({}, at(path));
    expect(await talk(path)).toBe("hello");
  });

  it.each(["8080", "0", "1e3", ""])(
    "is never taken for a port, on every address, when it is named %j",
    async (path) => {
      const error = await refusal(at(path));
      expect(error).toMatchObject({ code: "path", message: expect.stringContaining("write ./") });
    },
  );

  it("is opened even if a killed process left its own", async () => {
    const path = join(folder, "http.sock");
    const script = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => console.log("up"))`;
    const other = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    await once(other.stdout, "data");
    const message = "another process listens there already";
    expect((await refusal(at(path))).message).toContain(message);
    other.kill("SIGKILL");
    await once(other, "exit");
    expect((await lstat(path)).isSocket()).toBe(true);
    await listen(at(path));
    expect(await talk(path)).toBe("hello");
  });

  it("never removes what is not a socket, and says which path is meant", async () => {
    const path = join(folder, "notes.txt");
    await writeFile(path, "precious");
    const error = await refusal(at(path));
    expect(error).toMatchObject({ protocol: "http", endpoint: { kind: "socket", path } });
    expect(error.message).toContain("not a socket has that name");
    expect(await readFile(path, "utf8")).toBe("precious");
  });

  it("refuses a path that the kernel would cut short", async () => {
    const path = join(folder, "a".repeat(120));
    expect((await refusal(at(path))).message).toContain("at most 107 bytes");
  });

  it("cannot be opened in a folder that is not there", async () => {
    expect(await refusal(at(join(folder, "nowhere", "http.sock")))).toMatchObject({ name: "ListenError" });
    await chmod(folder, 0o700);
  });
});

describe("any door", () => {
  it("turns excess connections away, over all its endpoints together, and has room again afterwards", async () => {
    const path = join(folder, "http.sock");
    const { port, door } = await listen({
      maxConnections: 2,
      endpoints: [
        { kind: "port", host: "127.0.0.1", port: 0 },
        { kind: "socket", path },
      ],
    });
    const first = connectNet(port, "127.0.0.1");
    const second = connectNet(path);
    clients.push(first, second);
    expect([await say(first, "1"), await say(second, "2")]).toEqual(["1", "2"]);
    const third = connectNet(port, "127.0.0.1");
    clients.push(third);
    expect(await say(third, "3")).toBe("hung up");
    expect(turnedAway).toEqual(["http too_many"]);
    first.destroy();
    await expect.poll(() => door.connections).toBe(1);
    const fourth = connectNet(port, "127.0.0.1");
    clients.push(fourth);
    expect(await say(fourth, "4")).toBe("4");
  });

  it("keeps one address from taking every connection, and counts none over a unix socket", async () => {
    const path = join(folder, "http.sock");
    const { port } = await listen({
      maxConnections: 4,
      maxPerAddress: 2,
      endpoints: [
        { kind: "port", host: "127.0.0.1", port: 0 },
        { kind: "socket", path },
      ],
    });
    const from = (localAddress: string): Socket => {
      const socket = connectNet({ port, host: "127.0.0.1", localAddress });
      clients.push(socket);
      return socket;
    };
    const greedy = from("127.0.0.2");
    expect([await say(greedy, "1"), await say(from("127.0.0.2"), "2")]).toEqual(["1", "2"]);
    expect(await say(from("127.0.0.2"), "3")).toBe("hung up");
    expect(turnedAway).toEqual(["http too_many_of_address"]);
    expect(await say(from("127.0.0.3"), "4")).toBe("4");
    const sidecar = connectNet(path);
    clients.push(sidecar);
    expect(await say(sidecar, "5")).toBe("5");
    greedy.destroy();
    await expect.poll(async () => say(from("127.0.0.2"), "6")).toBe("6");
  });

  it("does not wait for open connections when it closes, and they go on", async () => {
    const { port, door } = await listen();
    const open = connectNet(port, "127.0.0.1");
    clients.push(open);
    expect(await say(open, "hello")).toBe("hello");
    await door.close();
    expect(await say(open, "still here")).toBe("still here");
    const late = connectNet(port, "127.0.0.1");
    const [error] = (await once(late, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNREFUSED");
  });

  it.each(["http", "grpc", "resp"] as const)("says why it could not listen (%s)", async (protocol: Protocol) => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    try {
      const error = await refusal({ protocol, endpoints: [{ kind: "port", host: "127.0.0.1", port }] });
      expect(error).toMatchObject({ protocol, endpoint: { port }, code: "EADDRINUSE" });
    } finally {
      taken.close();
    }
  });
});
