import { describe, expect, it } from "vitest";
import { createLogger } from "./logger.ts";

function capture(): { text: string; write(text: string): void } {
  return {
    text: "",
    write(text: string): void {
      this.text += text;
    },
  };
}

describe("the logger", () => {
  it("writes one JSON object per line to stdout in json format", () => {
    const stdout = capture();
    const stderr = capture();
    const log = createLogger({ level: "info", format: "json", stdout, stderr });
    log.info({ generation: 3 }, "policies loaded");
    log.debug({}, "not at this level");
    const lines = stdout.text.trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: "info", message: "policies loaded", generation: 3 });
    expect(JSON.parse(lines[0]!).time).toMatch(/^\d{4}-\d\d-\d\dT/);
    expect(stderr.text).toBe("");
  });

  it("writes a readable line to stderr in text format, with every problem below it", () => {
    const stdout = capture();
    const stderr = capture();
    const log = createLogger({ level: "warn", format: "text", stdout, stderr });
    const place = { file: "p.yaml", line: 4, column: 7 };
    log.warn({ file: "p.yaml", problems: [{ path: ["policies", 0], message: "is wrong", place }] }, "not reloaded");
    expect(stderr.text).toMatch(
      /^\d\d:\d\d:\d\d warn {2}not reloaded file=p\.yaml\n {2}p\.yaml:4:7 policies\[0\]: is wrong\n$/,
    );
    expect(stdout.text).toBe("");
  });

  it("blots out secrets", () => {
    const stdout = capture();
    const log = createLogger({ level: "info", format: "json", stdout, stderr: capture() });
    log.info({ token: "t0psecret", headers: { authorization: "Bearer t0psecret", accept: "*/*" } }, "asked");
    expect(stdout.text).not.toContain("t0psecret");
    expect(stdout.text).toContain("*/*");
  });
});
