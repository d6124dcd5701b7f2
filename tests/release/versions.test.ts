import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { digestChart } from "../../scripts/chart-digest.mjs";
import {
  digestChartFiles,
  findVersionProblems,
  readVersion,
  renderVersion,
  versionPattern,
} from "../../scripts/release/versions.mjs";
import { readSourceTree, repositoryRoot } from "../repository/source-tree.ts";

const tree = readSourceTree();
const version = readVersion(tree);

describe("the version", () => {
  it("is the one of package.json at the root, wherever it is written", () => {
    expect(findVersionProblems(tree)).toEqual([]);
  });

  it.each([
    ["packages/core/package.json", `"version": "${version}"`, '"version": "0.9.0"'],
    ["packages/cli/package.json", `"sluice": "${version}"`, '"sluice": "0.9.0"'],
    ["packages/redis/package.json", `"sluice": "^${version}"`, '"sluice": "^0.9.0"'],
    ["bench/package.json", `"sluice": "${version}"`, '"sluice": "0.9.0"'],
    ["package-lock.json", `"version": "${version}"`, '"version": "0.9.0"'],
    ["deploy/helm/sluice/Chart.yaml", `appVersion: ${version}`, "appVersion: 0.9.0"],
    ["tests/deploy/charts/smallest.rendered.yaml", `image: "sluice:${version}"`, 'image: "sluice:0.9.0"'],
    ["README.md", `Sluice ${version} listens`, "Sluice 0.9.0 listens"],
    ["README.md", `sluice-${version}.tgz`, "sluice-0.9.0.tgz"],
    ["docs/operations.md", `"version": "${version}"`, '"version": "0.9.0"'],
    ["docs/cli.md", `Sluice ${version}, Node`, "Sluice 0.9.0, Node"],
  ])("is missed in %s", (file, right, wrong) => {
    const text = tree.get(file)!;
    expect(text).toContain(right);
    const problems = findVersionProblems(new Map([...tree, [file, text.replace(right, wrong)]]));
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^${file}: line \\d+ says .*0\\.9\\.0`))]);
  });

  it("must be one that npm, helm and git take", () => {
    for (const good of ["1.0.0", "0.1.0", "1.0.0-rc.1", "10.20.30-beta.12"]) expect(good).toMatch(versionPattern);
    for (const bad of ["1.0", "v1.0.0", "1.0.0-rc", "1.0.0+1", "01.0.0", "1.0.0-rc.01", ""]) {
      expect(bad).not.toMatch(versionPattern);
    }
    const root = JSON.parse(tree.get("package.json")!);
    const broken = new Map([...tree, ["package.json", JSON.stringify({ ...root, version: "1.0" })]]);
    expect(findVersionProblems(broken)).toEqual([expect.stringContaining('"1.0" is not a version')]);
  });

  it("becomes another one everywhere at once, and touches no other project's", () => {
    const next = new Map([...tree, ...renderVersion(tree, "7.8.9")]);
    expect(findVersionProblems(next)).toEqual([]);
    expect(JSON.parse(next.get("packages/redis/package.json")!).peerDependencies.sluice).toBe("^7.8.9");
    const versions = (lock: string) => {
      const { packages } = JSON.parse(lock) as { packages: Record<string, { version?: string }> };
      return Object.entries(packages).filter(([place]) => place.includes("node_modules/"));
    };
    expect(versions(next.get("package-lock.json")!)).toEqual(versions(tree.get("package-lock.json")!));
    const back = new Map([...next, ...renderVersion(next, version)]);
    expect([...back].filter(([file, text]) => tree.get(file) !== text).map(([file]) => file)).toEqual([]);
  });

  it("is part of the chart's digest, as the chart's own script computes it", () => {
    expect(digestChartFiles(tree)).toBe(digestChart());
  });
});

describe("what shows the version", () => {
  let daemon: Daemon;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-versions-"));
    const quiet = { debug() {}, info() {}, warn() {}, error() {} };
    const options = {
      httpPort: "0",
      grpcPort: "off",
      respPort: "0",
      adminPort: "0",
      store: `sqlite:${folder}/policies.db`,
    };
    const reading = parseSettings({}, options);
    if (reading.kind === "problems") throw new Error(JSON.stringify(reading));
    daemon = await startDaemon({ settings: reading.settings, log: quiet });
  });

  afterAll(async () => {
    await daemon?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is the command", () => {
    expect(execFileSync(path.join(repositoryRoot, "sluice"), ["--version"], { encoding: "utf8" })).toBe(`${version}\n`);
  });

  it("is a server's state, its metrics and both descriptions of its API", async () => {
    const admin = daemon.addresses.admin[0]!;
    const read = async (url: string) => (await fetch(url)).json() as Promise<Record<string, unknown>>;
    expect(await read(`${daemon.url}/v1/status`)).toMatchObject({ version });
    expect(await read(`${daemon.url}/openapi.json`)).toMatchObject({ info: { version } });
    expect(await read(`${admin}/openapi.json`)).toMatchObject({ info: { version } });
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toContain(`version="${version}"`);
  });

  it("is the greeting in Redis's protocol", async () => {
    const { hostname, port } = new URL(daemon.addresses.resp[0]!);
    const socket = connect(Number(port), hostname);
    socket.end("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
    let answer = "";
    for await (const chunk of socket) answer += chunk;
    expect(answer).toContain(`$7\r\nversion\r\n$${version.length}\r\n${version}\r\n`);
  });
});
