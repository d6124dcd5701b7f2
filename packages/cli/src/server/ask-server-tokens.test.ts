import { EventEmitter } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createCertificates } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runProgram } from "../program.ts";
import { askServer, isInTheClear } from "./ask-server.ts";

let server: Server;
let url: string;
let asked: IncomingMessage[];

beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push(request);
    response.setHeader("content-type", "application/json").end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function refusal(options: { server: string; token?: string }): Promise<string> {
  return askServer(options, "v1/status").then(
    () => "",
    (error: Error) => error.message,
  );
}

describe("a command that asks a server", () => {
  it("sends its token, without the line break that files end with", async () => {
    await askServer({ server: url, token: "sluice_abc\n" }, "v1/status");
    expect(asked[0]?.headers.authorization).toBe("Bearer sluice_abc");
  });

  it.each(["hunter\n2", "hunter 2", "hunter\u20262", " "])(
    "never shows a token that cannot be sent (%j)",
    async (token) => {
      const message = await refusal({ server: url, token });
      expect(message).toMatch(/^SLUICE_TOKEN holds/);
      expect(message).not.toContain("hunter");
      expect(asked).toEqual([]);
    },
  );

  it("takes no password in the address, and does not show it", async () => {
    const message = await refusal({ server: url.replace("//", "//user:hunter2@") });
    expect(message).toMatch(/^--server must not hold a user and a password/);
    expect(message).not.toContain("hunter2");
  });

  it.each([
    ["http://sluice.example:8080", true],
    ["http://10.0.0.7", true],
    ["https://sluice.example", false],
    ["http://127.0.0.1:8080", false],
    ["http://[::1]:8080", false],
    ["http://localhost:8080", false],
  ])("knows whether others can read on the way what is sent to %s", (to, expected) => {
    expect(isInTheClear(to)).toBe(expected);
  });

  it.each(["check a=1", "explain a=1", "status", "reset a=1"])(
    "warns of a token that others can read on the way (%s)",
    async (words) => {
      const tell = async (server: string, token: string): Promise<string> => {
        let told = "";
        const terminal = { stdout: { write: () => true }, stderr: { write: (text: string) => (told += text) } };
        const args = [...words.split(" "), "--server", server];
        await runProgram({ args, env: { SLUICE_TOKEN: token }, terminal, signals: new EventEmitter() });
        return told;
      };
      const warning = /^The token in SLUICE_TOKEN travels in the clear to http:\/\/0\.0\.0\.0.*https:\/\//;
      // Leads here, and does not look so.
      const elsewhere = url.replace("127.0.0.1", "0.0.0.0");
      expect(await tell(elsewhere, "hunter2")).toMatch(warning);
      expect(asked[0]?.headers.authorization).toBe("Bearer hunter2");
      expect(await tell(elsewhere, "")).not.toMatch(warning);
      expect(await tell(url, "hunter2")).not.toContain("in the clear");
    },
  );
});

describe("a server behind TLS", () => {
  it.each([
    ["status", "--server"],
    ["top --once", "--server"],
    ["nodes", "--admin"],
  ])("is asked by sluice %s where --ca, or SLUICE_CA, vouches for it", async (words, flag) => {
    const certificates = await createCertificates();
    const asking: string[] = [];
    const tls = createTlsServer(
      { cert: await readFile(certificates.cert), key: await readFile(certificates.key) },
      (request, response) => {
        asking.push(request.headers.authorization ?? "");
        response.writeHead(418, { "content-type": "text/plain" }).end("short and stout");
      },
    );
    await new Promise<void>((resolve) => tls.listen(0, "127.0.0.1", resolve));
    const run = async (more: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
      let told = "";
      const terminal = { stdout: { write: () => true }, stderr: { write: (text: string) => (told += text) } };
      const to = `https://127.0.0.1:${(tls.address() as AddressInfo).port}`;
      const args = [...words.split(" "), flag, to, ...more];
      expect(await runProgram({ args, env, terminal, signals: new EventEmitter() })).not.toBe(0);
      return told;
    };
    try {
      expect(await run([])).toMatch(/its certificate is not trusted \(\w+\); .*--ca FILE/);
      expect(asking).toEqual([]);
      const tokenFile = `${certificates.key}.token`;
      await writeFile(tokenFile, "sluice_abc\n");
      expect(await run(["--ca", certificates.ca, "--token-file", tokenFile])).toMatch(/418.*short and stout/);
      expect(await run([], { SLUICE_CA: certificates.ca })).toMatch(/418.*short and stout/);
      expect(asking).toEqual(["Bearer sluice_abc", ""]);
    } finally {
      tls.close();
      await certificates.close();
    }
  });
});
