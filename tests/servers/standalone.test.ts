import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { createCertificates, flavors, startServer, type TestServer } from "./src/index.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

function closeLater<Closable extends { close(): Promise<void> }>(one: Closable): Closable {
  opened.push(one);
  return one;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // If nothing reaps orphans, a process that ended keeps its id.
  return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}

describe.each(flavors)("a %s server", (flavor) => {
  it("is the product that it is called", async () => {
    const server = closeLater(await startServer({ flavor }));
    const info = String(await server.command("INFO", "server"));
    expect(info.includes("valkey_version:")).toBe(flavor === "valkey");
    expect(info).toContain(`tcp_port:${server.port}`);
    expect(server.url).toBe(`redis://127.0.0.1:${server.port}`);
  });

  it("returns replies in the order of commands, and error replies as rejections", async () => {
    const server = closeLater(await startServer({ flavor }));
    const replies = await Promise.allSettled([
      server.command("SET", "key", 5),
      server.command("INCRBY", "key", 2),
      server.command("LPUSH", "key", "x"),
      server.command("MGET", "key", "none"),
    ]);
    expect(replies).toMatchObject([
      { value: "OK" },
      { value: 7 },
      { reason: { message: expect.stringMatching(/^WRONGTYPE/) } },
      { value: ["7", null] },
    ]);
  });

  it("takes settings from its command line", async () => {
    const server = closeLater(await startServer({ flavor, args: ["--maxmemory", "3mb", "--requirepass", "secret"] }));
    await expect(server.command("GET", "key")).rejects.toThrow("NOAUTH");
    await server.command("AUTH", "secret");
    expect(await server.command("CONFIG", "GET", "maxmemory")).toEqual(["maxmemory", String(3 * 1024 * 1024)]);
  });

  it("answers nothing while it is paused, and everything after", async () => {
    const server = closeLater(await startServer({ flavor }));
    server.pause();
    let answered = false;
    const answer = server.command("PING").finally(() => {
      answered = true;
    });
    await expect.poll(() => readFileSync(`/proc/${server.pid}/status`, "utf8")).toMatch(/^State:\s+T/m);
    expect([server.state, answered]).toEqual(["paused", false]);
    server.resume();
    expect(await answer).toBe("PONG");
    expect(server.state).toBe("running");
  });

  it("comes back on its port without its data after a kill", async () => {
    const server = closeLater(await startServer({ flavor }));
    await server.command("SET", "key", "value");
    const { pid, port } = server;
    await server.kill();
    expect([isRunning(pid), server.state]).toEqual([false, "stopped"]);
    await expect(server.command("GET", "key")).rejects.toThrow("is stopped");
    await server.restart();
    expect(await server.command("GET", "key")).toBeNull();
    expect(server.port).toBe(port);
    expect(server.pid).not.toBe(pid);
  });

  it("restarts also while it is paused", async () => {
    const server = closeLater(await startServer({ flavor }));
    const { pid } = server;
    server.pause();
    await server.restart();
    expect(await server.command("PING")).toBe("PONG");
    expect(isRunning(pid)).toBe(false);
  });

  it("rejects commands that wait for a reply when it is killed", async () => {
    const server = closeLater(await startServer({ flavor }));
    server.pause();
    const answer = expect(server.command("PING")).rejects.toThrow("No reply");
    await server.kill();
    await answer;
  });

  it("is gone after close, and so is its folder", async () => {
    const server = await startServer({ flavor });
    expect([isRunning(server.pid), existsSync(server.folder), existsSync(server.unixSocket)]).toEqual([
      true,
      true,
      true,
    ]);
    await server.close();
    await server.close();
    expect([isRunning(server.pid), existsSync(server.folder)]).toEqual([false, false]);
  });

  it.each([
    ["while it ran", ""],
    ["after it was killed itself", "await server.kill();"],
    ["after it was restarted", "await server.restart();"],
  ])("is gone with its folder when the process that started it was killed %s", async (_when, before) => {
    const index = fileURLToPath(new URL("./src/index.ts", import.meta.url));
    const script = `
      const { startServer } = await import(process.argv[1]);
      const server = await startServer({ flavor: "${flavor}" });
      ${before}
      process.stdout.write(JSON.stringify({ pid: server.pid, folder: server.folder }));
      setInterval(() => undefined, 1_000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script, `file://${index}`]);
    const [printed] = (await once(child.stdout, "data")) as [Buffer];
    const { pid, folder } = JSON.parse(String(printed)) as { pid: number; folder: string };
    expect([isRunning(pid), existsSync(folder)]).toEqual([!before.includes("kill"), true]);
    child.kill("SIGKILL");
    await expect.poll(() => [isRunning(pid), existsSync(folder)], { timeout: 30_000 }).toEqual([false, false]);
  });

  it("says with the end of its log why it does not start", async () => {
    const failure = startServer({ flavor, args: ["--no-such-setting", "1"] });
    await expect(failure).rejects.toThrow(/did not start.*no-such-setting/s);
  });

  it("speaks TLS to clients that know its authority", async () => {
    const certificates = closeLater(await createCertificates());
    const server = closeLater(await startServer({ flavor, tls: certificates }));
    expect(server.url).toMatch(/^rediss:/);
    expect(await server.command("PING")).toBe("PONG");
    expect(await pingOverTls(server, { ca: readFileSync(certificates.ca) })).toBe("+PONG\r\n");
    await expect(pingOverTls(server, {})).rejects.toThrow(/certificate/);
  });

  it("requires a client certificate if configured", async () => {
    const certificates = closeLater(await createCertificates());
    const args = ["--tls-auth-clients", "yes"];
    const server = closeLater(await startServer({ flavor, args, tls: certificates }));
    const ca = readFileSync(certificates.ca);
    const own = { cert: readFileSync(certificates.clientCert), key: readFileSync(certificates.clientKey) };
    expect(await pingOverTls(server, { ca, ...own })).toBe("+PONG\r\n");
    await expect(pingOverTls(server, { ca })).rejects.toThrow();
  });
});

async function pingOverTls({ host, port }: TestServer, options: object): Promise<string> {
  const socket = connect({ host, port, ...options });
  try {
    socket.write("PING\r\n");
    const [chunk] = (await once(socket, "data")) as [Buffer];
    return String(chunk);
  } finally {
    socket.destroy();
  }
}
