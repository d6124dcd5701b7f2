import { EventEmitter } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
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
      const warning = /^SLUICE_TOKEN travels in the clear to http:\/\/0\.0\.0\.0.*https:\/\//;
      // Leads here, and does not look so.
      const elsewhere = url.replace("127.0.0.1", "0.0.0.0");
      expect(await tell(elsewhere, "hunter2")).toMatch(warning);
      expect(asked[0]?.headers.authorization).toBe("Bearer hunter2");
      expect(await tell(elsewhere, "")).not.toMatch(warning);
      expect(await tell(url, "hunter2")).not.toContain("in the clear");
    },
  );
});
