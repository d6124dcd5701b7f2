import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findNode, runsTypeScript, signalToHandOn } from "../../scripts/runtime.mjs";

describe("the Node that runs Sluice", () => {
  let root: string;
  const old = { execPath: "/usr/bin/node", version: "20.20.0" };
  const recent = { execPath: "/usr/bin/node", version: "24.1.0" };

  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), "sluice-runtime-"));
  });

  afterEach(() => {
    rmSync(root, { recursive: true, force: true });
  });

  function placeNode(script: string): string {
    const folder = path.join(root, "node_modules", `node-${process.platform}-${process.arch}`, "bin");
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, "node"), script);
    chmodSync(path.join(folder, "node"), 0o755);
    return path.join(folder, "node");
  }

  it("is the installed one, whatever runs the script", () => {
    const pinned = placeNode("#!/bin/sh\necho v24.0.0\n");
    expect(findNode(root, old)).toBe(pinned);
    expect(findNode(root, recent)).toBe(pinned);
  });

  it("is the running one if none was installed, or the installed one does not start", () => {
    expect(findNode(root, recent)).toBe("/usr/bin/node");
    placeNode("#!/bin/sh\nexit 127\n");
    expect(findNode(root, recent)).toBe("/usr/bin/node");
  });

  it("is missing if the running one is too old", () => {
    expect(findNode(root, old)).toBeUndefined();
  });

  it.each([
    ["20.20.2", false],
    ["22.17.9", false],
    ["22.18.0", true],
    ["24.0.0", true],
  ])("is new enough at %s: %s", (version, enough) => {
    expect(runsTypeScript(version)).toBe(enough);
  });
});

describe("signals to a script that runs Sluice", () => {
  it("are passed on if there is no terminal", () => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) expect(signalToHandOn(signal, false)).toBe(signal);
  });

  it("stop it when the terminal is closed, and are not doubled by Ctrl-C", () => {
    expect(signalToHandOn("SIGHUP", true)).toBe("SIGTERM");
    expect(signalToHandOn("SIGTERM", true)).toBe("SIGTERM");
    expect(signalToHandOn("SIGINT", true)).toBeUndefined();
  });
});
