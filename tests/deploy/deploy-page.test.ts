import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../repository/source-tree.ts";

const read = (file: string): string => readFileSync(path.join(repositoryRoot, file), "utf8");
const page = read("docs/deploy.md");
const cli = read("docs/cli.md");
const find = (pattern: RegExp): readonly string[] => [
  ...new Set([...page.matchAll(pattern)].map(([, found]) => found!)),
];

describe("docs/deploy.md", () => {
  it("names commands, variables and metrics that there are", () => {
    const { scripts } = JSON.parse(read("package.json"));
    const runs = find(/npm run (\w+)/g);
    expect(runs.length).toBeGreaterThan(2);
    for (const name of runs) expect(Object.keys(scripts)).toContain(name);
    const commands = find(/`sluice (\w+)/g);
    expect(commands.length).toBeGreaterThan(2);
    for (const command of commands) expect(cli, command).toContain(`sluice ${command}`);
    for (const variable of find(/\b((?:SLUICE|RATE_LIMIT)_[A-Z_]+)\b/g))
      expect(cli, variable).toContain(`\`${variable}\``);
    const metrics = read("docs/metrics.md");
    for (const metric of find(/`(sluice_[a-z_]+)/g)) expect(metrics, metric).toContain(`\`${metric}`);
  });

  it("sets values that the chart has, and installs files that there are", () => {
    const values = parse(read("deploy/helm/sluice/values.yaml"));
    const set = find(/--set '?([A-Za-z.]+)=/g);
    expect(set).toEqual(["image.repository", "tokens.existingSecret", "envFromSecrets"]);
    for (const name of set) {
      const found = name.split(".").reduce((value, key) => value?.[key], values);
      expect(found, name).toBeDefined();
    }
    for (const file of find(/\b((?:deploy|config)\/[\w./-]+\w)/g))
      expect(existsSync(path.join(repositoryRoot, file)), file).toBe(true);
  });
});
