import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { startServer, type TestServer } from "@sluice/test-servers";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hasCommonJs } from "../../scripts/build-cjs.mjs";
import { findPublicPackages, packPackages } from "../../scripts/pack-packages.mjs";
import { environmentFor } from "../../scripts/runtime.mjs";
import { type SluiceProcess, startSluice } from "../remote/sluice-process.ts";
import { findExample } from "../repository/readme-example.ts";
import { repositoryRoot } from "../repository/source-tree.ts";
import { bundle } from "./bundle.ts";
import { admits, findNodes, npmHasNodes } from "./find-nodes.ts";
import { packOnce } from "./pack-once.ts";
import { findFileProblems, findSpecifiers } from "./published-files.ts";
import { runJest } from "./run-jest.ts";
import { Stranger } from "./stranger.ts";
import { compile } from "./type-check.ts";

/** Installing and starting other Nodes takes a moment; on a machine that is busy it takes many. */
const patienceMs = 300_000;
vi.setConfig({ testTimeout: patienceMs, hookTimeout: patienceMs });

const packages = findPublicPackages();
const names = packages.map(({ manifest }) => manifest.name);
const nodes = findNodes();
const env = environmentFor(nodes.at(-1)!.path);

let tarballs: ReadonlyMap<string, string>;
let folder: string;
let stranger: Stranger;
/** Has also what packages name among their peers. */
let equipped: Stranger;
let server: TestServer;
/** Serves the policies of the client's page, with its counters in `server`. */
let sluice: SluiceProcess;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-tarballs-"));
  tarballs = await packOnce(env);
  stranger = new Stranger();
  for (const program of [
    "use-core.mjs",
    "use-core.ts",
    "import-everything.mjs",
    "require-everything.cjs",
    "close-redis.mjs",
    "serve.mjs",
  ]) {
    stranger.copyProgram(program);
  }
  const root = JSON.parse(readFileSync(path.join(repositoryRoot, "package.json"), "utf8"));
  await stranger.install(env, [...tarballs.values(), `@types/node@${root.devDependencies["@types/node"]}`]);
  equipped = stranger.copy();
  for (const { folder: home, manifest } of packages) equipped.link(home, listForeignPeers(manifest));
  server = await startServer({ flavor: "valkey" });
  const page = readFileSync(path.join(repositoryRoot, "packages/client/README.md"), "utf8");
  const policies = path.join(folder, "policies.yaml");
  writeFileSync(policies, /^```yaml\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? "");
  sluice = await startSluice("--config", policies, "--redis", server.url);
  await compileExamples();
});

afterAll(async () => {
  await sluice?.close();
  await server?.close();
  stranger?.remove();
  equipped?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** The packages' pages, for people and for coding agents, but for those of the server, the console and the command line, which have no code. */
const examples = packages
  .filter(({ manifest }) => !["@sluice/server", "@sluice/cli", "@sluice/console"].includes(manifest.name))
  .flatMap(({ folder: home, manifest }) =>
    ["README.md", ...(hasAgentsPage(home) ? ["AGENTS.md"] : [])].map((page) => ({
      name: `${manifest.name}/${page}`,
      engines: manifest.engines?.node ?? "",
      ...findExample(readFileSync(path.join(repositoryRoot, home, page), "utf8")),
    })),
  );

function hasAgentsPage(home: string): boolean {
  return existsSync(path.join(repositoryRoot, home, "AGENTS.md"));
}

async function compileExamples(): Promise<void> {
  for (const { name, code } of examples) {
    const own = withServer(withServer(code, "redis", server.url), "grpc", sluice.grpc);
    equipped.write(`${exampleFile(name)}.ts`, own);
  }
  const files = examples.map(({ name }) => `${exampleFile(name)}.ts`);
  const problems = await compile(equipped, { resolution: "nodenext", types: ["node"], files, outDir: "compiled" });
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

/** The server of this test instead of the page's, and the time that a busy machine may take, before options if there are any. */
function withServer(code: string, scheme: string, url: string): string {
  return code.replace(new RegExp(`"${scheme}:[^"]*"(, \\{)?`), (_, options?: string) => {
    return `${JSON.stringify(url)}, { deadlineMs: 20_000${options === undefined ? " }" : ","}`;
  });
}

function exampleFile(name: string): string {
  return `example-${name.replace(/\W+/g, "-")}`;
}

function listForeignPeers(manifest: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(manifest.peerDependencies ?? {}).filter((name) => !names.includes(name));
}

/** What can be imported on a Node, of all packages. */
function specifiersOn(version: string): readonly string[] {
  return packages
    .filter(({ manifest }) => admits(manifest.engines?.node ?? "", version))
    .flatMap(({ manifest }) => findSpecifiers(manifest));
}

/** What can be imported of packages that are built for CommonJS too. */
function specifiersInCommonJs(): readonly string[] {
  return packages.filter(({ manifest }) => hasCommonJs(manifest)).flatMap(({ manifest }) => findSpecifiers(manifest));
}

/** What can be imported of some packages. */
function specifiersOf(...some: readonly string[]): readonly string[] {
  return packages
    .filter(({ manifest }) => some.includes(manifest.name))
    .flatMap(({ manifest }) => findSpecifiers(manifest));
}

/** Nest is made of ES modules since 12, so an app in CommonJS needs a Node that can require those, or an older Nest. */
function isForNest(specifier: string): boolean {
  return specifier.startsWith("@sluice/middleware/nest");
}

/** A module that has all types of some modules. */
function renderExports(specifiers: readonly string[]): string {
  return specifiers.map((specifier, index) => `export * as m${index} from "${specifier}";\n`).join("");
}

describe.each(packages)("the tarball of $manifest.name", ({ folder: home, manifest }) => {
  const { name } = manifest;

  it("has no problem that publint reports", async () => {
    const data = readFileSync(tarballs.get(name)!);
    const { messages } = await publint({ strict: true, pack: { tarball: toArrayBuffer(data) } });
    expect(messages).toEqual([]);
  });

  it("has types wherever it has a module, for apps in ES modules and in CommonJS", async () => {
    const result = await checkPackage(createPackageFromTarballData(readFileSync(tarballs.get(name)!)));
    // A package of files for browsers has no module.
    if (findSpecifiers(manifest).length === 0) return expect(result.types).toBe(false);
    if (result.types === false) throw new Error("no types were found");
    expect(Object.keys(result.entrypoints).length).toBe(Object.keys(manifest.exports ?? {}).length);
    // node10 reads no `exports`. A package without a build for CommonJS needs a Node that can `require` an ES module.
    const ignored = hasCommonJs(manifest) ? ["node10"] : ["node10", "node16-cjs"];
    expect(result.problems.filter((one) => !("resolutionKind" in one && ignored.includes(one.resolutionKind)))).toEqual(
      [],
    );
  });

  it("has every file that one leads to, and no other", () => {
    expect(findFileProblems(path.join(stranger.folder, "node_modules", name))).toEqual([]);
  });

  it("contains its page for coding agents, if it has one", () => {
    const published = path.join(stranger.folder, "node_modules", name, "AGENTS.md");
    expect(existsSync(published)).toBe(hasAgentsPage(home));
  });

  it("has nothing of the workshop in its manifest", () => {
    const published = readFileSync(path.join(stranger.folder, "node_modules", name, "package.json"), "utf8");
    expect(published).not.toMatch(/"(source|devDependencies|scripts|private)"/);
  });

  it("comes from npm run pack alone", () => {
    expect(manifest.scripts?.prepack, `${home}/package.json`).toMatch(/npm run pack.*exit 1$/);
  });
});

it("packing again gives the same bytes, at another time, in another folder and for another user", async () => {
  const again = path.join(folder, "again");
  const umask = process.umask(0o077);
  try {
    await packPackages(again, { ...env, TZ: "Pacific/Auckland", LC_ALL: "C" });
  } finally {
    process.umask(umask);
  }
  const digest = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");
  for (const [name, tarball] of tarballs) {
    expect(digest(path.join(again, path.basename(tarball))), name).toBe(digest(tarball));
  }
});

describe("pages for coding agents", () => {
  it("are in every package that apps import", () => {
    const having = packages.filter(({ folder: home }) => hasAgentsPage(home)).map(({ manifest }) => manifest.name);
    expect(having).toEqual(
      expect.arrayContaining([
        "sluice",
        "@sluice/cli",
        "@sluice/client",
        "@sluice/middleware",
        "@sluice/pace",
        "@sluice/protocol",
        "@sluice/redis",
        "@sluice/server",
        "@sluice/simulate",
        "@sluice/sql",
      ]),
    );
  });
});

describe("a user's project", () => {
  it("has one copy of each package", () => {
    for (const name of names) expect(stranger.findCopies(name)).toEqual([name]);
  });

  it("is tried on Node 20, 22 and 24, where npm has them", () => {
    const majors = nodes.map(({ version }) => Number.parseInt(version, 10));
    expect(majors).toEqual(npmHasNodes() ? [20, 22, 24] : [expect.any(Number)]);
  });
});

describe.each(nodes)("on Node $version", ({ version, path: node }) => {
  const specifiers = specifiersOn(version);

  it("core decides in memory", async () => {
    expect(await stranger.run(node, ["use-core.mjs"])).toBe("done\n");
  });

  it("importing everything does nothing, and lacks nothing but optional peers", async () => {
    const { modules, effects } = JSON.parse(await stranger.run(node, ["import-everything.mjs", ...specifiers]));
    expect(effects).toEqual([]);
    expect(Object.keys(modules)).toEqual(specifiers);
    for (const { manifest } of packages) {
      const peers = listForeignPeers(manifest).join("|");
      for (const specifier of findSpecifiers(manifest).filter((one) => specifiers.includes(one))) {
        if (Array.isArray(modules[specifier])) expect(modules[specifier], specifier).not.toEqual([]);
        else expect(`${specifier}: ${modules[specifier]}`).toMatch(new RegExp(`Cannot find package '(${peers})'`));
      }
    }
  });

  it("everything can be imported if its peers are installed, and the process ends", async () => {
    const { modules } = JSON.parse(await equipped.run(node, ["import-everything.mjs", ...specifiers]));
    expect(Object.entries(modules).filter(([, exported]) => !Array.isArray(exported))).toEqual([]);
  });

  it("everything can be required by CommonJS, and is what is imported", async () => {
    expect(JSON.parse(await equipped.run(node, ["require-everything.cjs", ...specifiers]))).toEqual([]);
  });

  it("everything has a build for a Node that cannot require ES modules", async () => {
    const program = ["--no-experimental-require-module", "require-everything.cjs", "--apart"];
    const loadable = specifiersInCommonJs().filter((specifier) => !isForNest(specifier));
    expect(JSON.parse(await equipped.run(node, [...program, ...loadable]))).toEqual([]);
  });

  it("an app in CommonJS is tested by Jest as it comes, with fake timers", async () => {
    expect(await runJest(equipped, node)).toBe(1);
    if (!version.startsWith("24.")) return;
    // For tests in ES modules.
    expect(await runJest(equipped, node, ["--experimental-vm-modules"])).toBe(1);
  });

  it("counters on a server let go of the process when they are closed", async () => {
    await server.command("FLUSHALL");
    expect(await stranger.run(node, ["close-redis.mjs", server.url])).toBe("[]");
  });

  it("the examples on the packages' pages print what the pages say", async () => {
    for (const { name, output, engines } of examples) {
      if (!admits(engines, version)) continue;
      await server.command("FLUSHALL");
      expect(await equipped.run(node, [`compiled/${exampleFile(name)}.js`]), name).toBe(output);
    }
  });
});

const serving = packages.find(({ manifest }) => manifest.name === "@sluice/server");
describe.each(nodes.filter(({ version }) => admits(serving?.manifest.engines?.node ?? "", version)))(
  "the server on Node $version",
  ({ path: node }) => {
    it("serves, applies new policies and closes", async () => {
      expect(await stranger.run(node, ["serve.mjs"])).toBe("done\n");
    });

    it("is a command", async () => {
      const printed = await stranger.runCommand(node, "sluice", ["check", "ip=203.0.113.7", "--local", "--json"]);
      expect(JSON.parse(printed)).toMatchObject({ allowed: true, policy: "default" });
    });
  },
);

/** TypeScript that becomes CommonJS. */
const commonProgram = `import { createLimiter, type Limiter } from "sluice";
import { parsePolicyText } from "sluice/policy-text";

const { policySet } = parsePolicyText("policies: [{ id: api, limits: [{ by: [user], windows: 1/m }] }]");
const limiter: Limiter = createLimiter({ policies: policySet });
const ada = { dimensions: { user: "ada" } };
console.log(limiter.checkSync(ada).allowed, limiter.checkSync(ada).allowed);
`;
describe("a user's TypeScript", () => {
  it.each(["nodenext", "bundler"] as const)("takes all types as they are, resolved for %s", async (resolution) => {
    equipped.write("everything.ts", renderExports(packages.flatMap(({ manifest }) => findSpecifiers(manifest))));
    const files = ["everything.ts", "use-core.ts"];
    expect(await compile(equipped, { resolution, types: ["node"], files })).toEqual([]);
  });

  it.each(["nodenext", "bundler"] as const)(
    "needs no types of Node's for core, resolved for %s",
    async (resolution) => {
      stranger.write("core.ts", renderExports(specifiersOf("sluice")));
      expect(await compile(stranger, { resolution, types: [], files: ["core.ts"] })).toEqual([]);
    },
  );

  it("may be as old as 5.6", async () => {
    stranger.write("counters.ts", renderExports(specifiersOf("sluice", "@sluice/redis")));
    const files = ["counters.ts", "use-core.ts"];
    expect(await compile(stranger, { resolution: "nodenext", types: ["node"], files, compiler: "5.6" })).toEqual([]);
  });

  it("becomes a program that runs on the oldest Node", async () => {
    const options = { resolution: "nodenext", types: ["node"], files: ["use-core.ts"], outDir: "compiled" } as const;
    expect(await compile(stranger, options)).toEqual([]);
    expect(await stranger.run(nodes[0]!.path, ["compiled/use-core.js"])).toBe("done\n");
  });

  it.each([
    { resolution: "nodenext" },
    { resolution: "nodenext", compiler: "5.6" },
    { resolution: "node20" },
    { resolution: "node16" },
    { resolution: "node16", compiler: "5.6" },
    { resolution: "commonjs" },
  ] as const)("may be CommonJS, as docs/library.md says, and runs: %o", async (which) => {
    const name = `common-${which.resolution}-${"compiler" in which ? which.compiler : "newest"}`;
    stranger.write(`${name}.cts`, commonProgram);
    const options = { ...which, types: ["node"], files: [`${name}.cts`], outDir: "common" };
    expect(await compile(stranger, options)).toEqual([]);
    const compiled = readFileSync(path.join(stranger.folder, "common", `${name}.cjs`), "utf8");
    expect(compiled).toContain('require("sluice/policy-text")');
    expect(await stranger.run(nodes[0]!.path, [`common/${name}.cjs`])).toBe("true false\n");
  });

  it.each(["node16", "nodenext"] as const)("takes all types into CommonJS, resolved for %s", async (resolution) => {
    const named = specifiersInCommonJs().filter((specifier) => resolution === "nodenext" || !isForNest(specifier));
    const file = `everything-${resolution}.cts`;
    equipped.write(file, renderExports(named));
    expect(await compile(equipped, { resolution, types: ["node"], files: [file] })).toEqual([]);
  });

  it("is refused when it uses a type wrongly", async () => {
    stranger.write("wrong.ts", 'import { createLimiter } from "sluice";\ncreateLimiter({ clock: 1 });\n');
    const problems = await compile(stranger, { resolution: "nodenext", types: [], files: ["wrong.ts"] });
    expect(problems).toEqual([expect.stringContaining("wrong.ts(2,17)")]);
  });
});

describe("a bundle", () => {
  it("contains nothing of unused imports", async () => {
    for (const { manifest } of packages.filter((one) => one.manifest.sideEffects === false)) {
      const code = findSpecifiers(manifest).map((one) => `import "${one}";\n`);
      const { files } = await bundle(stranger.folder, code.join(""), listForeignPeers(manifest));
      expect(files, manifest.name).toEqual([]);
    }
  });

  it("with a limiter contains neither YAML nor unused code, and has less than 56 kB", async () => {
    const { files, imports, gzipBytes } = await bundle(
      stranger.folder,
      'import { createLimiter, limit } from "sluice";\nexport const made = [createLimiter(), limit("1/s").by("ip")];\n',
    );
    expect(imports).toEqual([]);
    expect(files.filter((file) => !file.startsWith("sluice/dist/"))).toEqual([]);
    const unasked = /policy-text|testing|render-headers|render-problem|policy-schema|client-ip|lint-policies|yaml/;
    expect(files.filter((file) => unasked.test(file))).toEqual([]);
    expect(files).toContain("sluice/dist/create-limiter.js");
    expect(gzipBytes).toBeLessThan(56_000);
  });

  it("with one function contains that and its dependencies", async () => {
    const { files, gzipBytes } = await bundle(
      stranger.folder,
      'import { findClientIp } from "sluice";\nexport const ip = findClientIp({ peer: "203.0.113.7" });\n',
    );
    expect([...files].sort()).toEqual(["sluice/dist/subject/client-ip.js", "sluice/dist/subject/ip-address.js"]);
    expect(gzipBytes).toBeLessThan(3_000);
  });
});

function toArrayBuffer(data: Buffer): ArrayBuffer {
  return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) as ArrayBuffer;
}
