import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { installPeers, peerFolder } from "./install-peers.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-peers-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

/** A tool that writes how it was called, and then runs a line of shell. */
function putTool(name: string, line: string): void {
  const bin = path.join(folder, "tools");
  mkdirSync(bin, { recursive: true });
  writeFileSync(path.join(bin, name), `#!/bin/sh\necho "${name} $*" >> '${folder}/calls'\n${line}\n`);
  chmodSync(path.join(bin, name), 0o755);
}

const install = (build = true) =>
  installPeers({
    folder,
    build,
    env: { PATH: `${path.join(folder, "tools")}:/usr/bin:/bin`, PROTOC: "protoc" },
    progress() {},
  });

it("names the tool that is not installed", async () => {
  // Only these are found, whatever the machine has.
  for (const tool of ["go", "cargo"]) putTool(tool, "exit 127");
  const { installed, missing } = await install();
  expect(installed).toEqual({});
  expect(missing).toEqual({
    envoy_ratelimit: "go is not installed",
    gubernator: "go is not installed; go is not installed",
    throttlecrab: "cargo is not installed",
  });
});

it("takes the next release of a peer if one cannot be verified, and reports why if none can", async () => {
  putTool(
    "go",
    `case "$*" in
      *"build"*) if grep -q gubernator-io main.go || test ! -f main.go; then echo "404 Not Found in the checksum database" >&2; exit 1; fi
        echo program > "$4";;
    esac`,
  );
  putTool("cargo", "exit 127");
  const { installed, missing } = await install();
  expect(installed.gubernator?.version).toBe("github.com/mailgun/gubernator/v2 v2.4.0");
  expect(existsSync(installed.gubernator!.program)).toBe(true);
  expect(missing.envoy_ratelimit).toMatch(/`go build .*` failed: .*404 Not Found in the checksum database/s);

  // What was built stays, and needs no tool.
  const again = await install(false);
  expect(again.installed).toEqual(installed);
  expect(again.missing.throttlecrab).toContain("has not been built yet");
});

it("keeps programs in the user's cache, outside the repository", () => {
  expect(peerFolder({ XDG_CACHE_HOME: "/a/cache" })).toBe("/a/cache/sluice-bench-peers");
  expect(path.isAbsolute(peerFolder({}))).toBe(true);
});
