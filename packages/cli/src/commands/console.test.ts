import type { AdminClient } from "@sluice/client/admin";
import { describe, expect, it } from "vitest";
import type { ControlSession } from "../control/control-session.ts";
import { paintFor } from "../terminal/paint.ts";
import { printConsoleLink } from "./console.ts";

async function run(isTTY: boolean, json = false): Promise<{ out: string; err: string; asked: number }> {
  let out = "";
  let err = "";
  let asked = 0;
  const stdout = { isTTY, write: (text: string) => (out += text) };
  const makeCode = async () => {
    asked += 1;
    return { code: "secret", expires_ms: 1_000 };
  };
  const session: ControlSession = {
    api: { server: "http://127.0.0.1:8090", session: { makeCode } } as unknown as AdminClient,
    terminal: { stdout, stderr: { write: (text: string) => (err += text) } },
    json,
    paint: paintFor(stdout, {}),
    width: undefined,
    nowMs: () => 0,
    sleep: async () => undefined,
    editor: undefined,
  };
  await printConsoleLink(session).catch((error: Error) => {
    err += error.message;
  });
  return { out, err, asked };
}

describe("sluice console", () => {
  it("prints a link to a terminal, with the code where no server sees it", async () => {
    expect((await run(true)).out).toBe("http://127.0.0.1:8090/#code=secret\n");
  });

  it("prints none to a file or a pipe, and makes no code, unless asked for JSON", async () => {
    expect(await run(false)).toEqual({ out: "", err: expect.stringMatching(/only to a terminal/), asked: 0 });
    expect(JSON.parse((await run(false, true)).out)).toEqual({
      link: "http://127.0.0.1:8090/#code=secret",
      expires_ms: 1_000,
    });
  });
});
