import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../repository/source-tree.ts";
import { main } from "../restart/start-sluice.ts";

const read = (file: string): string => readFileSync(path.join(repositoryRoot, file), "utf8");
const page = read("docs/deploy.md");

/** Run by a test, which is named; or in need of something that tests have not, which the page says. */
type Proof = { readonly test: readonly [file: string, name: string] } | { readonly needs: string };

const here = "tests/deploy/deploy-commands.test.ts";
const commandTests = "packages/cli/src/commands/control-commands.test.ts";

/** By how commands of the page begin. */
const proofs: Readonly<Record<string, Proof>> = {
  "sluice policy lint --strict": { test: [here, "lints the example policies as a pipeline does"] },
  "npm run faults": { test: ["tests/faults/faults.test.ts", "counters on one server stay honest through"] },
  "npm run gameday": { test: ["tests/gameday/gameday.test.ts", "in its bounded form, the game day"] },
  "docker build": { needs: "with Docker and a network" },
  "npm run image": { test: ["tests/deploy/image.test.ts", "is small, belongs to no one"] },
  "podman run": { test: ["tests/deploy/image.test.ts", "serves without privileges on a file system"] },
  "sh deploy/compose/make-secrets.sh": { test: ["tests/deploy/compose.test.ts", "keeps every secret in a file"] },
  "docker compose": { needs: "These commands need Docker with Compose" },
  "curl -i": { needs: "These commands need Docker with Compose" },
  "kubectl create secret": { needs: "These commands need a cluster" },
  "helm install": { needs: "These commands need a cluster" },
  "helm test": { needs: "These commands need a cluster" },
  "helm upgrade": { needs: "which needs a cluster" },
  "npm install --global": { needs: "These commands need root, systemd" },
  "install -": { test: [here, "installs the files of the unit, for their owner alone where they may hold secrets"] },
  systemctl: { needs: "These commands need root, systemd" },
  "systemd-analyze security": { test: ["tests/deploy/systemd.test.ts", "gives the service hardly anything"] },
  "sluice healthcheck": { test: ["packages/cli/src/commands/healthcheck.test.ts", "asks the server that runs"] },
  "npm run bench": { test: ["bench/service.test.ts", "npm run bench -- service measures everything"] },
  "sluice nodes": { test: [commandTests, "sluice audit and nodes"] },
  "sluice capacity": { test: ["packages/cli/src/commands/capacity.test.ts", "needs no option"] },
  "sluice policy export": { test: [commandTests, "prints a policy so that it can be applied"] },
  "sluice policy apply --replace": { test: [commandTests, "unless it is to replace everything"] },
};

/** The lines of every shell block, continued ones as one, and commands in the text. */
function findCommands(): readonly string[] {
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = ""]) => block.replaceAll(/\\\n\s*/g, ""));
  const lines = blocks.flatMap((block) => block.split("\n")).map((line) => line.replace(/\s+#.*/, "").trim());
  const spans = [...page.matchAll(/`((?:sluice|npm|docker|podman|helm|kubectl|systemctl|systemd-analyze) [^`]+)`/g)];
  return [...lines, ...spans.map(([, span = ""]) => span)].filter((command) => command !== "");
}

const folder = mkdtempSync(path.join(tmpdir(), "sluice-deploy-commands-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("every command of docs/deploy.md", () => {
  it("is run by a test, or the page says what it needs", () => {
    const used = new Set<string>();
    for (const command of findCommands()) {
      const found = Object.keys(proofs).filter((start) => command.startsWith(start));
      expect(found, `how is “${command}” known to work?`).toHaveLength(1);
      used.add(found[0]!);
    }
    expect([...used].sort()).toEqual(Object.keys(proofs).sort());
  });

  it.each(Object.entries(proofs))("is known to work by something that there is: %s", (_, proof) => {
    if ("needs" in proof) expect(page).toContain(proof.needs);
    else expect(read(proof.test[0])).toContain(proof.test[1]);
  });

  it("installs the files of the unit, for their owner alone where they may hold secrets", () => {
    const installs = findCommands().filter((command) => command.startsWith("install -"));
    expect(installs).toHaveLength(4);
    for (const command of installs) {
      const [, ...args] = command.split(" ");
      const target = path.join(folder, args.pop()!);
      // The folder of the target is there on every machine with systemd.
      execFileSync("mkdir", ["-p", path.dirname(target)]);
      execFileSync("install", [...args, target], { cwd: repositoryRoot });
    }
    const modeOf = (file: string): number => statSync(path.join(folder, file)).mode & 0o777;
    const files = ["etc/sluice/sluice.env", "etc/sluice/policies.yaml", "etc/systemd/system/sluice.service"];
    expect(files.map(modeOf)).toEqual([0o600, 0o644, 0o644]);
    // The unit reads what was installed.
    const unit = readFileSync(path.join(folder, files[2]!), "utf8");
    expect(unit).toContain("EnvironmentFile=/etc/sluice/sluice.env");
    expect(readFileSync(path.join(folder, files[0]!), "utf8")).toContain("=/etc/sluice/policies.yaml\n");
  });

  it("lints the example policies as a pipeline does", () => {
    const [command = ""] = findCommands().filter((one) => one.startsWith("sluice policy lint"));
    const args = command.split(" ").slice(1).join(" ").replace("policies.yaml", "config/policies.yaml").split(" ");
    const linted = execFileSync(process.execPath, ["-C", "source", main, ...args], { cwd: repositoryRoot });
    expect(String(linted)).toContain("0 errors, 0 warnings");
  });
});
