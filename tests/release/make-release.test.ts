import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { checkRelease, checkTests } from "../../scripts/release/check-release.mjs";
import { recordTestedCommit } from "../../scripts/release/git.mjs";
import {
  makeRelease,
  orderPackages,
  type ReleaseParts,
  renderChecksums,
  renderCommands,
} from "../../scripts/release/make-release.mjs";
import { prepareRelease } from "../../scripts/release/prepare-release.mjs";
import { findSigner, type Signer } from "../../scripts/release/sign.mjs";

let folder: string;
/** A small repository with a version in the places where ours has it. */
let root: string;
let key: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-release-"));
  key = path.join(folder, "id_ed25519");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "ann@example.com", "-f", key]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeEach(() => {
  root = mkdtempSync(path.join(folder, "clone-"));
  const manifest = { name: "sluice-workspace", version: "1.0.0-rc.1", private: true };
  write("package.json", JSON.stringify(manifest));
  write("packages/core/package.json", JSON.stringify({ name: "sluice", version: "1.0.0-rc.1" }));
  write("package-lock.json", JSON.stringify({ ...manifest, packages: { "": manifest } }));
  write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- A limit.\n\n## 0.1.0 (2026-01-31)\n\n- A start.\n");
  write(".gitignore", ".sluice/\n");
  git("init", "--quiet", "--initial-branch", "main");
  // What the machine's own git is configured to sign with is another matter.
  git("config", "user.signingkey", "");
  commit();
});

function write(file: string, text: string): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), text);
}

function git(...args: readonly string[]): void {
  const own = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"];
  execFileSync("git", [...own, ...args], { cwd: root, stdio: "pipe" });
}

function commit(): void {
  git("add", "--all");
  git("commit", "--quiet", "--message", "A change");
}

function listSigner(): void {
  const [type, text] = readFileSync(`${key}.pub`, "utf8").split(" ");
  write("SIGNERS", `# Signers\nann@example.com namespaces="sluice-release" ${type} ${text}\n`);
}

/** The checks that fail, and what they say. */
function findWrong(signer?: Signer): Readonly<Record<string, string>> {
  const wrong = checkRelease(root, signer).filter(({ kind }) => kind === "wrong");
  return Object.fromEntries(wrong.map(({ name, detail }) => [name, detail]));
}

describe("what a release needs", () => {
  it("is there after --prepare and a commit", () => {
    expect(prepareRelease(root, "1.0.0", "2026-11-19")).toEqual([
      ...["CHANGELOG.md", "package-lock.json", "package.json", "packages/core/package.json"],
    ]);
    expect(readFileSync(path.join(root, "CHANGELOG.md"), "utf8")).toBe(
      "# Changelog\n\n## Unreleased\n\n## 1.0.0 (2026-11-19)\n\n- A limit.\n\n## 0.1.0 (2026-01-31)\n\n- A start.\n",
    );
    commit();
    expect(findWrong()).toEqual({});
  });

  it("is not there before: no section, with what to run", () => {
    expect(findWrong()).toEqual({ changelog: expect.stringContaining("npm run release -- --prepare 1.0.0-rc.1") });
  });

  it("is a clean tree on main, one version, and a free tag", () => {
    prepareRelease(root, "1.0.0", "2026-11-19");
    expect(findWrong()).toEqual({ tree: expect.stringMatching(/CHANGELOG\.md, package-lock\.json/) });
    commit();
    git("tag", "v1.0.0");
    expect(findWrong()).toEqual({});
    write("packages/core/package.json", JSON.stringify({ name: "sluice", version: "0.9.0" }));
    git("switch", "--quiet", "--create", "other");
    commit();
    expect(findWrong()).toEqual({
      branch: expect.stringContaining("this is other"),
      versions: expect.stringMatching(/packages\/core\/package\.json: line 1 says .*0\.9\.0/),
      tag: expect.stringContaining("v1.0.0 is another commit already"),
    });
  });

  it("is a dated section with a text, and nothing left that is unreleased", () => {
    const problemOf = (changelog: string) => {
      write("CHANGELOG.md", changelog);
      return findWrong().changelog;
    };
    expect(problemOf("## 1.0.0-rc.1\n\n- A limit.\n")).toMatch(/has no date/);
    expect(problemOf("## 1.0.0-rc.1 (2026-11-19)\n\n## 0.1.0\n")).toMatch(/is empty/);
    expect(problemOf("## Unreleased\n\n- More.\n\n## 1.0.0-rc.1 (2026-11-19)\n\n- A limit.\n")).toMatch(/is not empty/);
    expect(problemOf("## Unreleased\n\n## 1.0.0-rc.1 (2026-11-19)\n\n- A limit.\n")).toBeUndefined();
  });

  it("is tests that passed on this very commit", () => {
    expect(checkTests(root).kind).toBe("note");
    const head = execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
    recordTestedCommit(root, head);
    expect(checkTests(root).kind).toBe("right");
    write("new.txt", "");
    expect(checkTests(root).kind).toBe("note");
    commit();
    expect(checkTests(root).kind).toBe("note");
  });

  it("is refused a version that is none, and one that the changelog has", () => {
    expect(() => prepareRelease(root, "1.0", "2026-11-19")).toThrow(/not a version/);
    expect(() => prepareRelease(root, "0.1.0", "2026-11-19")).toThrow(/has a section 0\.1\.0 already/);
    prepareRelease(root, "1.0.0", "2026-11-19");
    expect(() => prepareRelease(root, "1.0.1", "2026-11-20")).toThrow(/nothing under "## Unreleased"/);
  });

  it("is a key that users can verify, if there is one", () => {
    expect(findSigner(root, {})).toBeUndefined();
    expect(checkRelease(root, undefined)).toContainEqual({
      ...{ name: "signature", kind: "note" },
      detail: expect.stringContaining("will not be signed"),
    });
    git("config", "gpg.format", "ssh");
    git("config", "user.signingkey", key);
    const signer = findSigner(root, {});
    expect(signer).toEqual({ kind: "ssh", key });
    const line = /ann@example\.com namespaces="sluice-release" ssh-ed25519 \S+/;
    git("config", "user.email", "ann@example.com");
    expect(findWrong(signer).signature).toMatch(line);
    listSigner();
    expect(findWrong(signer).signature).toBeUndefined();
    expect(findWrong({ kind: "ssh", key: `${key}-gone` }).signature).toMatch(/is not an SSH key/);
    expect(findWrong({ kind: "gpg", key: "nobody@example.test" }).signature).toMatch(/gpg has no secret key/);
  });
});

describe("a release", () => {
  const parts = (signer?: Signer): ReleaseParts => ({
    ...{ root, version: "1.0.0", commit: "c0ffee", signer, notes: "- A limit.", sbom: { bomFormat: "CycloneDX" } },
    tools: { node: "24.21.0", npm: "11.0.0" },
    pack: async (target) => {
      writeFileSync(path.join(target, "sluice-1.0.0.tgz"), "a tarball");
      return [{ manifest: { name: "sluice", version: "1.0.0" } }];
    },
  });
  const unsigned = ["RELEASE_NOTES.md", "SHA256SUMS", "build.json", "sluice-1.0.0.cdx.json", "sluice-1.0.0.tgz"];
  let out: string;

  beforeEach(() => {
    out = path.join(root, "dist", "1.0.0");
  });

  /** Runs the commands that the notes show, in the folder of the release, as a user does. */
  function verify(): string {
    const notes = readFileSync(path.join(out, "RELEASE_NOTES.md"), "utf8");
    const commands = [...notes.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = ""]) => text).join("");
    const own = commands.replace("-f SIGNERS", `-f '${root}/SIGNERS'`).replace("NAME", "ann@example.com");
    return execFileSync("sh", ["-ec", own], { cwd: out, encoding: "utf8", stdio: "pipe" });
  }

  it("without a key has checksums, and nothing that looks signed", async () => {
    const { files } = await makeRelease(out, parts());
    expect(files).toEqual(unsigned);
    expect(readdirSync(out).toSorted()).toEqual(unsigned);
    expect(readdirSync(path.dirname(out))).toEqual(["1.0.0"]);
    expect(readFileSync(path.join(out, "RELEASE_NOTES.md"), "utf8")).toMatch(
      /^# Sluice 1\.0\.0\n\n- A limit\.\n[\s\S]*not signed/,
    );
    expect(verify()).toContain("sluice-1.0.0.tgz: OK");
    writeFileSync(path.join(out, "sluice-1.0.0.tgz"), "another tarball");
    expect(() => verify()).toThrow(/sluice-1\.0\.0\.tgz: FAILED|did NOT match/);
  });

  it("with an SSH key is signed, and the commands in its notes verify it", async () => {
    listSigner();
    await makeRelease(out, parts({ kind: "ssh", key }));
    expect(readdirSync(out)).toContain("SHA256SUMS.sig");
    expect(verify()).toContain('Good "sluice-release" signature for ann@example.com');
    writeFileSync(path.join(out, "sluice-1.0.0.tgz"), "another tarball");
    rmSync(path.join(out, "SHA256SUMS"));
    const sums = renderChecksums(out);
    writeFileSync(path.join(out, "SHA256SUMS"), sums.replace(/.*SHA256SUMS\.sig\n/, ""));
    expect(() => verify()).toThrow(/incorrect signature|Could not verify|Signature verification failed/);
  });

  it("with an OpenPGP key is signed, and the commands in its notes verify it", async () => {
    const home = mkdtempSync(path.join(tmpdir(), "sluice-gpg-"));
    const before = process.env.GNUPGHOME;
    process.env.GNUPGHOME = home;
    try {
      const batch = ["--batch", "--passphrase", "", "--pinentry-mode", "loopback"];
      execFileSync("gpg", [...batch, "--quick-generate-key", "ann@example.com", "ed25519", "sign"], { stdio: "pipe" });
      const signer: Signer = { kind: "gpg", key: "ann@example.com" };
      const line = /# openpgp [0-9A-F]{40}/.exec(findWrong(signer).signature ?? "")?.[0];
      write("SIGNERS", `${line}\n`);
      expect(findWrong(signer).signature).toBeUndefined();
      await makeRelease(out, parts(signer));
      expect(readdirSync(out)).toContain("SHA256SUMS.asc");
      expect(verify()).toContain("sluice-1.0.0.tgz: OK");
    } finally {
      execFileSync("gpgconf", ["--kill", "all"], { stdio: "pipe" });
      if (before === undefined) delete process.env.GNUPGHOME;
      else process.env.GNUPGHOME = before;
      rmSync(home, { recursive: true, force: true });
    }
  });

  it("that cannot be signed or packed is not there, and neither is a part of it", async () => {
    write("SIGNERS", "");
    await expect(makeRelease(out, parts({ kind: "ssh", key }))).rejects.toThrow(/does not accept its own signature/);
    const pack = () => Promise.reject(new Error("tsc failed"));
    await expect(makeRelease(out, { ...parts(), pack })).rejects.toThrow("tsc failed");
    expect(readdirSync(path.dirname(out))).toEqual([]);
  });

  it("replaces an earlier one, and nothing else", async () => {
    listSigner();
    await makeRelease(out, parts({ kind: "ssh", key }));
    await makeRelease(out, parts());
    expect(existsSync(path.join(out, "SHA256SUMS.sig"))).toBe(false);
    rmSync(path.join(out, "SHA256SUMS"));
    await expect(makeRelease(out, parts())).rejects.toThrow(/is not a release that may be replaced/);
  });

  it("publishes nothing, and says how to: packages after those they need", () => {
    const order = orderPackages([
      {
        ...{ name: "@sluice/server", version: "1.0.0", dependencies: { "@sluice/sql": "^1.0.0", pg: "8.0.0" } },
        optionalDependencies: { "@sluice/redis": "1.0.0" },
      },
      { name: "@sluice/redis", version: "1.0.0", peerDependencies: { sluice: "^1.0.0" } },
      { name: "@sluice/sql", version: "1.0.0", dependencies: { sluice: "^1.0.0" } },
      { name: "sluice", version: "1.0.0" },
    ]);
    expect(order).toEqual(["sluice", "@sluice/sql", "@sluice/redis", "@sluice/server"]);
    const commands = renderCommands({
      folder: "dist/1.0.0-rc.1",
      version: "1.0.0-rc.1",
      remote: "origin",
      canSign: true,
      order,
    });
    expect(commands).toEqual([
      "git tag --sign v1.0.0-rc.1 --cleanup=verbatim --file dist/1.0.0-rc.1/RELEASE_NOTES.md",
      "git push origin main v1.0.0-rc.1",
      "npm publish dist/1.0.0-rc.1/sluice-1.0.0-rc.1.tgz --access public --tag next",
      "npm publish dist/1.0.0-rc.1/sluice-sql-1.0.0-rc.1.tgz --access public --tag next",
      "npm publish dist/1.0.0-rc.1/sluice-redis-1.0.0-rc.1.tgz --access public --tag next",
      "npm publish dist/1.0.0-rc.1/sluice-server-1.0.0-rc.1.tgz --access public --tag next",
      "npm run image -- --tag sluice:1.0.0-rc.1 --archive sluice-1.0.0-rc.1.tar",
    ]);
  });
});

describe("npm run release", () => {
  const script = path.join(import.meta.dirname, "../../scripts/release.mjs");
  const run = (...args: readonly string[]) =>
    execFileSync(process.execPath, [script, ...args], { encoding: "utf8", stdio: "pipe" });

  it("has help", () => {
    expect(run("--help")).toMatch(
      /--prepare VERSION[\s\S]*--dry-run[\s\S]*--out FOLDER[\s\S]*--key FILE[\s\S]*--gpg KEY/,
    );
  });

  it("refuses what it does not know, before it does anything", () => {
    expect(() => run("--publish")).toThrow(/Unknown option '--publish'/);
    expect(() => run("--key", "a", "--gpg", "b")).toThrow(/Name one key/);
    expect(() => run("--prepare", "1.0")).toThrow(/"1\.0" is not a version/);
  });
});
