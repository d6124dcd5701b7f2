import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { CheckRequest, grpcService, RateLimiterDefinition } from "@sluice/protocol";
import { createCertificates, type IssuedCertificate, type TestCertificates } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import type { Settings } from "../settings/settings.ts";
import { createRecordingLog } from "../testing/recording-log.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const run = promisify(execFile);

let certificates: TestCertificates;
let gateway: IssuedCertificate;
let stranger: IssuedCertificate;
let renewed: IssuedCertificate;
let folder: string;
let daemon: Daemon | undefined;
let logged: { level: string; message: string }[];

beforeAll(async () => {
  certificates = await createCertificates();
  [gateway, stranger, renewed] = await Promise.all([
    certificates.issue("gateway", "URI:spiffe://acme/gateway"),
    certificates.issue("stranger", "URI:spiffe://acme/stranger"),
    certificates.issue("renewed", "DNS:localhost,IP:127.0.0.1"),
  ]);
}, 60_000);

afterAll(() => certificates.close());

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-network-"));
  logged = [];
});

afterEach(async () => {
  await daemon?.close();
  daemon = undefined;
  await rm(folder, { recursive: true, force: true });
});

const log = createRecordingLog(({ level, message }) => logged.push({ level, message }));

async function start(flags: Partial<Record<keyof Settings, string>>): Promise<Daemon> {
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "0", respPort: "0", ...flags });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  daemon = await startDaemon({ settings: reading.settings, log });
  return daemon;
}

const securely = (): Partial<Record<keyof Settings, string>> => ({
  tlsCert: certificates.cert,
  tlsKey: certificates.key,
});

interface Asking {
  readonly shows?: IssuedCertificate;
  readonly token?: string;
}

const check = CheckRequest.fromPartial({ dimensions: { user: "u" } });
const body = JSON.stringify({ dimensions: { user: "u" } });

/** Each asks for a decision as its users do, and answers `allowed`, or says why not. */
const clients = {
  async curl({ shows, token }: Asking): Promise<string> {
    const url = daemon!.addresses.http.find((address) => !address.startsWith("unix:"))!;
    const args = [
      "--silent",
      "--show-error",
      "--cacert",
      certificates.ca,
      "-d",
      body,
      "-H",
      "content-type: application/json",
    ];
    if (shows !== undefined) args.push("--cert", shows.cert, "--key", shows.key);
    if (token !== undefined) args.push("-H", `authorization: Bearer ${token}`);
    const { stdout } = await run("curl", [...args, `${url}/v1/check`]);
    const { allowed, code } = JSON.parse(stdout) as { allowed?: boolean; code?: string };
    return allowed === true ? "allowed" : String(code);
  },
  async "grpc-js"({ shows, token }: Asking): Promise<string> {
    const address = new URL(daemon!.addresses.grpc.find((one) => !one.startsWith("unix:"))!);
    const pem = await Promise.all(
      [certificates.ca, shows?.key, shows?.cert].map((path) => (path ? readFile(path) : null)),
    );
    const secure = address.protocol === "grpcs:";
    const client = new Client(
      address.host,
      secure ? credentials.createSsl(pem[0], pem[1], pem[2]) : credentials.createInsecure(),
      { "grpc.use_local_subchannel_pool": 1, "grpc.ssl_target_name_override": "localhost" },
    );
    const metadata = new Metadata();
    if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
    const { path, requestSerialize, responseDeserialize } = grpcService(RateLimiterDefinition).check;
    try {
      return await new Promise<string>((resolve, reject) => {
        client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          check,
          metadata,
          { deadline: Date.now() + 10_000 },
          (error: ServiceError | null, answer) => {
            const code = error?.metadata.get("sluice-code")[0];
            if (code !== undefined) resolve(String(code));
            else if (error !== null) reject(error);
            else resolve(answer?.allowed === true ? "allowed" : "denied");
          },
        );
      });
    } finally {
      client.close();
    }
  },
  async "redis-cli"({ shows, token }: Asking): Promise<string> {
    const { protocol, port } = new URL(daemon!.addresses.resp.find((one) => !one.startsWith("unix:"))!);
    const args = ["-h", "127.0.0.1", "-p", port];
    if (protocol === "rediss:") args.push("--tls", "--cacert", certificates.ca);
    if (shows !== undefined) args.push("--cert", shows.cert, "--key", shows.key);
    if (token !== undefined) args.push("--no-auth-warning", "-a", token);
    const { stdout, stderr } = await run("redis-cli", [...args, "CL.THROTTLE", "u", "15", "30", "60"]);
    if (/NOAUTH|WRONGPASS/.test(stdout + stderr)) return "unauthenticated";
    if (/NOPERM/.test(stdout)) return "permission_denied";
    if (!/^(\(integer\) )?0\n/m.test(stdout.replaceAll(/^\d\) /gm, ""))) throw new Error(stdout + stderr);
    return "allowed";
  },
};

const names = Object.keys(clients) as (keyof typeof clients)[];

describe.each(names)("%s on a network", (name) => {
  const ask = clients[name];

  it("is served over TLS", async () => {
    const { addresses } = await start(securely());
    expect([addresses.http[0], addresses.grpc[0], addresses.resp[0]]).toEqual([
      expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
      expect.stringMatching(/^grpcs:\/\/127\.0\.0\.1:\d+$/),
      expect.stringMatching(/^rediss:\/\/127\.0\.0\.1:\d+$/),
    ]);
    expect(await ask({})).toBe("allowed");
  });

  it("is served with the certificate of a name that is let in, and with no other", async () => {
    await start({ ...securely(), tlsClientCa: certificates.ca, tlsClientNames: "spiffe://acme/gateway" });
    expect(await ask({ shows: gateway })).toBe("allowed");
    await expect(ask({ shows: stranger })).rejects.toThrow();
    await expect(ask({})).rejects.toThrow();
    expect(await ask({ shows: gateway })).toBe("allowed");
  });

  it("is identified by its token", async () => {
    const tokens = join(folder, "tokens.yaml");
    const entry = (role: string): object => {
      return { name: role, role, sha256: createHash("sha256").update(`of-${role}`).digest("hex") };
    };
    await writeFile(tokens, JSON.stringify({ tokens: [entry("check"), entry("viewer")] }));
    const { reload } = await start({ tokens });
    expect(await ask({ token: "of-check" })).toBe("allowed");
    expect(await ask({ token: "of-viewer" })).toBe("permission_denied");
    expect(await ask({ token: "of-nobody" })).toBe("unauthenticated");
    expect(await ask({})).toBe("unauthenticated");
    await writeFile(tokens, JSON.stringify({ tokens: [entry("viewer")] }));
    await reload();
    expect(await ask({ token: "of-check" })).toBe("unauthenticated");
    expect(JSON.stringify(logged)).not.toContain("of-");
  });
});

describe("a server on a network", () => {
  it("applies new certificates when it is asked to reload", async () => {
    const [tlsCert, tlsKey] = [join(folder, "tls.crt"), join(folder, "tls.key")];
    const put = async ({ cert, key }: IssuedCertificate): Promise<void> => {
      for (const [from, to] of [
        [cert, tlsCert],
        [key, tlsKey],
      ] as const) {
        await copyFile(from, `${to}.next`);
        await rename(`${to}.next`, to);
      }
    };
    await put(certificates);
    const { url, reload } = await start({ tlsCert, tlsKey });
    const shown = async (): Promise<string> =>
      (
        await run("curl", [
          "--silent",
          "--cacert",
          certificates.ca,
          "-w",
          "%{certs}",
          "-o",
          "/dev/null",
          `${url}/livez`,
        ])
      ).stdout;
    const before = await shown();
    expect(before).toContain("Sluice test server");
    await put(renewed);
    await reload();
    expect(await shown()).toContain("Sluice test renewed");
  });

  it("reports health and readiness to every client", async () => {
    const tokens = join(folder, "tokens.yaml");
    await writeFile(tokens, "tokens: []");
    const { url } = await start({ tokens });
    for (const path of ["/livez", "/readyz"]) expect((await fetch(url + path)).status).toBe(200);
    expect((await fetch(`${url}/v1/policies`)).status).toBe(401);
  });

  it("ends a stream within a second or so when its token is taken back", async () => {
    const tokens = join(folder, "tokens.yaml");
    const sha256 = createHash("sha256").update("of-check").digest("hex");
    await writeFile(tokens, JSON.stringify({ tokens: [{ name: "check", role: "check", sha256 }] }));
    const { addresses, reload } = await start({ tokens });
    const client = new Client(new URL(addresses.grpc[0]!).host, credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
    });
    const { path, requestSerialize, responseDeserialize } = grpcService(RateLimiterDefinition).checkStream;
    const metadata = new Metadata();
    metadata.set("authorization", "Bearer of-check");
    const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    try {
      let answers = 0;
      let ended: ServiceError | undefined;
      stream.on("error", (error: ServiceError) => {
        ended = error;
      });
      stream.on("data", () => {
        answers += 1;
      });
      const ask = (): void => {
        if (ended === undefined) stream.write({ sequence: 1, deadlineMs: 0, checks: [check] });
      };
      ask();
      await expect.poll(() => answers).toBe(1);
      await writeFile(tokens, "tokens: []");
      await reload();
      await expect
        .poll(
          () => {
            ask();
            return ended?.metadata.get("sluice-code");
          },
          { timeout: 30_000 },
        )
        .toEqual(["unauthenticated"]);
    } finally {
      stream.cancel();
      client.close();
    }
  });

  it("listens on unix sockets as well as ports, or alone", async () => {
    const paths = { httpSocket: join(folder, "h"), grpcSocket: join(folder, "g"), respSocket: join(folder, "r") };
    const off = { httpPort: "off", grpcPort: "off", respPort: "off" };
    const { addresses, close } = await start({ ...off, ...paths });
    expect(addresses).toEqual({
      http: [`unix:${paths.httpSocket}`],
      grpc: [`unix:${paths.grpcSocket}`],
      admin: [],
      resp: [`unix:${paths.respSocket}`],
    });
    const { stdout } = await run("curl", ["--silent", "--unix-socket", paths.httpSocket, "http://localhost/livez"]);
    expect(stdout).toContain("live");
    const throttle = ["-s", paths.respSocket, "CL.THROTTLE", "u", "15", "30", "60"];
    expect((await run("redis-cli", throttle)).stdout).toMatch(/^0\n16\n15\n/);
    await close();
    for (const path of Object.values(paths)) await expect(stat(path)).rejects.toThrow("ENOENT");
  });

  it.each([
    ["tlsCert", /SLUICE_TLS_CERT .*does not exist/],
    ["tokens", /SLUICE_TOKENS .*does not exist/],
  ] as const)("does not start without the file of %s, and lets go of everything", async (name, message) => {
    const tokens = join(folder, "tokens.yaml");
    await writeFile(tokens, "tokens: []");
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      await expect(start({ ...securely(), tokens, [name]: join(folder, "nowhere") })).rejects.toThrow(message);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("releases everything if it cannot listen", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const tokens = join(folder, "tokens.yaml");
    await writeFile(tokens, "tokens: []");
    const [httpSocket, respPort] = [join(folder, "h"), String(port)];
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      await expect(start({ ...securely(), tokens, httpSocket, respPort })).rejects.toThrow("EADDRINUSE");
      expect(vi.getTimerCount()).toBe(0);
      await expect(stat(httpSocket)).rejects.toThrow("ENOENT");
    } finally {
      vi.useRealTimers();
      taken.close();
    }
  });

  it("releases everything if it cannot watch its policies", async () => {
    const tokens = join(folder, "tokens.yaml");
    await writeFile(tokens, "tokens: []");
    const config = join(folder, "policies.yaml");
    await writeFile(config, "policies: []");
    const httpSocket = join(folder, "h");
    const reading = parseSettings({}, { httpPort: "off", grpcPort: "off", httpSocket, tokens, config });
    if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
    const { settings } = reading;
    const watch = {
      get quietMs(): number {
        throw new Error("no more watches");
      },
    };
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      await expect(startDaemon({ settings, log, watch })).rejects.toThrow("no more watches");
      expect(vi.getTimerCount()).toBe(0);
      await expect(stat(httpSocket)).rejects.toThrow("ENOENT");
    } finally {
      vi.useRealTimers();
    }
  });
});
