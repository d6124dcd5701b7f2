import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { exitCodeFromSignal } from "./ensure-installed.mjs";

/**
 * A program that tests start, and the Debian package that contains it.
 *
 * @typedef {object} Program
 * @property {string} name
 * @property {string} [package] default: its name
 * @property {true} [debian] whether it must be Debian's own build, for the files that Debian adds
 * @property {string} [folders] a folder with one folder per version, of which the newest is used, in `bin`
 * @property {readonly string[]} versionArgs the arguments that make it print its version
 * @property {RegExp} version major and minor in its output; another product with its name does not match
 * @property {readonly [major: number, minor: number]} oldest
 */

/** @type {readonly Program[]} */
export const programs = [
  { name: "valkey-server", versionArgs: ["--version"], version: /^Valkey server v=(\d+)\.(\d+)/, oldest: [8, 0] },
  { name: "redis-server", versionArgs: ["--version"], version: /^Redis server v=(\d+)\.(\d+)/, oldest: [7, 0] },
  { name: "openssl", versionArgs: ["version"], version: /^OpenSSL (\d+)\.(\d+)/, oldest: [3, 0] },
  {
    name: "redis-cli",
    package: "redis-tools",
    versionArgs: ["--version"],
    version: /^redis-cli (\d+)\.(\d+)/,
    oldest: [7, 0],
  },
  {
    name: "nginx",
    package: "nginx-light",
    versionArgs: ["-v"],
    version: /^nginx version: nginx\/(\d+)\.(\d+)/,
    oldest: [1, 22],
  },
  { name: "caddy", versionArgs: ["version"], version: /^v?(\d+)\.(\d+)/, oldest: [2, 6] },
  { name: "curl", versionArgs: ["--version"], version: /^curl (\d+)\.(\d+)/, oldest: [7, 88] },
  {
    name: "h2load",
    package: "nghttp2-client",
    versionArgs: ["--version"],
    version: /^h2load nghttp2\/(\d+)\.(\d+)/,
    oldest: [1, 52],
  },
  {
    name: "systemd-notify",
    package: "systemd",
    versionArgs: ["--version"],
    version: /^systemd (\d+) \(\d+\.(\d+)/,
    oldest: [252, 0],
  },
  {
    name: "promtool",
    package: "prometheus",
    versionArgs: ["--version"],
    version: /^promtool, version (\d+)\.(\d+)/,
    oldest: [2, 42],
  },
  {
    name: "python3",
    package: "python3-grpcio",
    debian: true,
    versionArgs: ["-c", "import grpc; print('grpcio', grpc.__version__)"],
    version: /^grpcio (\d+)\.(\d+)/,
    oldest: [1, 51],
  },
  {
    name: "postgres",
    package: "postgresql",
    folders: "/usr/lib/postgresql",
    versionArgs: ["--version"],
    version: /^postgres \(PostgreSQL\) (\d+)\.(\d+)/,
    oldest: [15, 0],
  },
  {
    name: "kcat",
    versionArgs: ["-V"],
    // It prints its licence and its usage before that.
    version: /^Version (\d+)\.(\d+)/m,
    oldest: [1, 7],
  },
  // Steps the clock of one server. It needs the library with it, which Debian's build finds.
  {
    name: "faketime",
    debian: true,
    versionArgs: ["--version"],
    version: /faketime: Version (\d+)\.(\d+)/,
    oldest: [0, 9],
  },
  // The container image is built and run.
  { name: "buildah", versionArgs: ["--version"], version: /^buildah version (\d+)\.(\d+)/, oldest: [1, 28] },
  { name: "podman", versionArgs: ["--version"], version: /^podman version (\d+)\.(\d+)/, oldest: [4, 3] },
  { name: "runc", versionArgs: ["--version"], version: /^runc version (\d+)\.(\d+)/, oldest: [1, 1] },
  {
    name: "catatonit",
    versionArgs: ["--version"],
    version: /^(?:catatonit|tini) version (\d+)\.(\d+)/,
    oldest: [0, 1],
  },
  // Its wrapper reads settings of the desktop, and prints them before its version if they are unusual.
  { name: "chromium", debian: true, versionArgs: ["--version"], version: /^Chromium (\d+)\.(\d+)/m, oldest: [120, 0] },
  // Load generators for benchmarks.
  { name: "wrk", versionArgs: ["-v"], version: /^wrk (?:debian\/)?(\d+)\.(\d+)/, oldest: [4, 1] },
  {
    name: "redis-benchmark",
    package: "redis-tools",
    versionArgs: ["--version"],
    version: /^redis-benchmark (\d+)\.(\d+)/,
    oldest: [7, 0],
  },
];

const systemFolders = ["/usr/bin", "/usr/sbin"];
const aptFolder = "/etc/apt";
/** Packages run it to learn whether they may start their service; 101 means no. */
const servicePolicy = "/usr/sbin/policy-rc.d";

/** A server that tests need is missing, and could not be installed. */
export class ServersError extends Error {}

/**
 * Makes sure that the servers that tests start are installed. A missing one is installed with apt-get, as root; its service
 * is not started, and the machine's own apt configuration and lists stay unchanged.
 *
 * @returns {Promise<void>}
 */
export async function ensureServers() {
  const lacking = findLacking(programs, printedVersion);
  if (lacking.length === 0) return;
  const canInstall = process.getuid?.() === 0 && findProgram("apt-get") !== undefined;
  if (!canInstall) throw new ServersError(adviceFor(lacking));
  const output = await install(lacking.map(({ program }) => packageFor(program)));
  const stillLacking = findLacking(programs, printedVersion);
  if (stillLacking.length > 0) throw new ServersError(`${output.trim()}\n\n${adviceFor(stillLacking)}`);
}

/**
 * The programs that do not meet the tests' needs, and why.
 *
 * @param {readonly Program[]} wanted
 * @param {(program: Program) => string | undefined} printed its version output; undefined if it is missing
 * @returns {readonly { program: Program, reason: string }[]}
 */
export function findLacking(wanted, printed) {
  return wanted.flatMap((program) => {
    const text = printed(program);
    const reason = text === undefined ? `${program.name} is missing` : whyUnfit(program, text);
    return reason === undefined ? [] : [{ program, reason }];
  });
}

/**
 * @param {Program} program
 * @param {string} printed
 */
function whyUnfit({ name, version, oldest }, printed) {
  const found = version.exec(printed);
  if (found === null) return `${name} is another product, which prints "${printed.split("\n", 1)[0]}"`;
  const [major, minor] = [Number(found[1]), Number(found[2])];
  const recent = major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
  return recent ? undefined : `${name} is version ${major}.${minor}`;
}

/**
 * @param {readonly { program: Program, reason: string }[]} lacking
 * @returns {string}
 */
export function adviceFor(lacking) {
  const reasons = lacking.map(({ reason }) => reason).join("; ");
  const wanted = lacking.map(({ program }) => `${packageFor(program)} ${program.oldest.join(".")} or later`).join(", ");
  return (
    `Tests use real servers, and fail without them: ${reasons}. As root on Debian, npm test installs them with apt-get, ` +
    `from the machine's own suites and their backports. Run it that way, or install ${wanted}, and run this again.`
  );
}

/** @param {Program} program */
function packageFor({ name, package: brings = name }) {
  return brings;
}

/** @param {Program} program */
function printedVersion({ name, versionArgs, debian, folders }) {
  const file =
    (folders && findProgram(name, newestFirst(folders))) ?? findProgram(name, debian ? systemFolders : undefined);
  if (file === undefined) return undefined;
  const { stdout, stderr } = spawnSync(file, versionArgs, { encoding: "utf8" });
  // nginx prints its version to stderr. A program that does not start prints nothing.
  return stdout || stderr || "";
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function newestFirst(folder) {
  const versions = existsSync(folder) ? readdirSync(folder).toSorted((one, other) => Number(other) - Number(one)) : [];
  return versions.map((version) => path.join(folder, version, "bin"));
}

/** @param {string} name */
function findProgram(name, folders = [...(process.env.PATH ?? "").split(path.delimiter), ...systemFolders]) {
  return folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file));
}

/**
 * Returns what apt-get printed; the caller checks whether it succeeded.
 *
 * @param {readonly string[]} packages
 * @returns {Promise<string>}
 */
async function install(packages) {
  process.stderr.write(`Installing ${packages.join(", ")}…\n`);
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-apt-"));
  const ownsPolicy = forbidServices();
  const interrupts = holdInterrupts();
  let output = "";
  try {
    const options = prepareApt(folder);
    // A source that does not answer fails the update, although it may not be needed.
    for (const command of [["update"], ["install", "--yes", "--no-install-recommends", ...packages]]) {
      if (interrupts.signal() === undefined) output += await runApt([...options, ...command]);
    }
  } finally {
    if (ownsPolicy) rmSync(servicePolicy, { force: true });
    rmSync(folder, { recursive: true, force: true });
    interrupts.deliver();
  }
  return output;
}

/** Whether the file is ours to remove. */
function forbidServices() {
  try {
    writeFileSync(servicePolicy, "#!/bin/sh\nexit 101\n", { mode: 0o755, flag: "wx" });
    return true;
  } catch (error) {
    if (existsSync(servicePolicy)) return false;
    throw error;
  }
}

/** An interrupt lets apt-get finish, and ends this process after the cleanup. */
function holdInterrupts() {
  /** @type {NodeJS.Signals | undefined} */
  let held;
  const hold = (/** @type {NodeJS.Signals} */ signal) => {
    held = signal;
  };
  process.on("SIGINT", hold).on("SIGTERM", hold);
  return {
    signal: () => held,
    deliver() {
      process.off("SIGINT", hold).off("SIGTERM", hold);
      if (held !== undefined) process.exit(exitCodeFromSignal(held));
    },
  };
}

/**
 * Options that make apt-get use the machine's sources and their backports, and store lists and archives in the folder.
 * Concurrent installations then share only dpkg, and wait for it.
 *
 * @param {string} folder
 * @returns {readonly string[]}
 */
function prepareApt(folder) {
  const sources = path.join(folder, "sources");
  const lists = path.join(folder, "lists");
  const cache = path.join(folder, "cache");
  for (const each of [sources, lists, cache]) mkdirSync(each);
  // apt-get downloads as a separate user. Sources may contain passwords, and stay unreadable.
  for (const each of [folder, lists, cache]) chmodSync(each, 0o755);
  chmodSync(sources, 0o700);

  const parts = path.join(aptFolder, "sources.list.d");
  const partNames = existsSync(parts) ? readdirSync(parts).filter((name) => /\.(list|sources)$/.test(name)) : [];
  for (const name of partNames) copyFileSync(path.join(parts, name), path.join(sources, name));
  const files = [path.join(aptFolder, "sources.list"), ...partNames.map((name) => path.join(parts, name))];
  const texts = files.filter((file) => existsSync(file)).map((file) => ({ file, text: readFileSync(file, "utf8") }));
  const backports = deriveBackports(texts, findCodename(readFileSync("/etc/os-release", "utf8")));
  writeFileSync(path.join(sources, "sluice-backports.list"), backports.list);
  writeFileSync(path.join(sources, "sluice-backports.sources"), backports.sources);

  return [
    `Dir::Etc::sourceparts=${sources}`,
    `Dir::State::lists=${lists}`,
    `Dir::Cache=${cache}`,
    "DPkg::Lock::Timeout=300",
    "Dpkg::Use-Pty=0",
    "Dpkg::Options::=--force-confdef",
    "Dpkg::Options::=--force-confold",
    "Acquire::Retries=3",
  ].flatMap((option) => ["-o", option]);
}

/**
 * The release that this machine runs, as in os-release: `bookworm`.
 *
 * @param {string} osRelease
 * @returns {string}
 */
export function findCodename(osRelease) {
  return /^VERSION_CODENAME="?([\w-]+)/m.exec(osRelease)?.[1] ?? "stable";
}

/**
 * Sources of the release's backports, in both of apt's formats: those of the release itself, with their addresses,
 * components and keys, for another suite. Empty if the backports are among the sources already.
 *
 * @param {readonly { file: string, text: string }[]} files
 * @param {string} codename
 * @returns {{ list: string, sources: string }}
 */
export function deriveBackports(files, codename) {
  const suite = `${codename}-backports`;
  const lines = files.filter(({ file }) => file.endsWith(".list")).flatMap(({ text }) => text.split("\n"));
  const stanzas = files
    .filter(({ file }) => file.endsWith(".sources"))
    .flatMap(({ text }) => text.replaceAll(/^#.*\n?/gm, "").split(/\n\s*\n/))
    .filter((stanza) => !/^Enabled:\s*(no|false|off|0)\s*$/im.test(stanza));
  const has = (/** @type {string} */ other) =>
    lines.some((line) => parseLine(line)?.suite === other) ||
    stanzas.some((stanza) => readWords(stanza, "Suites").includes(other));
  if (has(suite)) return { list: "", sources: "" };
  return {
    list: lines.flatMap((line) => lineFor(suite, codename, line)).join(""),
    sources: stanzas.flatMap((stanza) => stanzaFor(suite, codename, stanza)).join("\n"),
  };
}

/**
 * `deb [options] address suite component…`
 *
 * @param {string} line
 */
function parseLine(line) {
  const found = /^\s*deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line);
  if (found === null) return undefined;
  const [, options = "", address = "", suite = "", components = ""] = found;
  return { options: options.trim(), address, suite, components: components.trim().split(/\s+/) };
}

/**
 * @param {string} suite
 * @param {string} codename
 * @param {string} line
 */
function lineFor(suite, codename, line) {
  const source = parseLine(line);
  if (source?.suite !== codename || !source.components.includes("main")) return [];
  return [`${["deb", source.options, source.address, suite, ...source.components].filter(Boolean).join(" ")}\n`];
}

/**
 * @param {string} suite
 * @param {string} codename
 * @param {string} stanza
 */
function stanzaFor(suite, codename, stanza) {
  const fits =
    readWords(stanza, "Types").includes("deb") &&
    readWords(stanza, "Suites").includes(codename) &&
    readWords(stanza, "Components").includes("main");
  if (!fits) return [];
  return [
    `${stanza
      .trim()
      .replace(fieldPattern("Types"), "Types: deb\n")
      .replace(fieldPattern("Suites"), `Suites: ${suite}\n`)
      .trim()}\n`,
  ];
}

/**
 * @param {string} stanza
 * @param {string} field
 */
function readWords(stanza, field) {
  return (fieldPattern(field).exec(stanza)?.[1] ?? "").trim().split(/\s+/);
}

/**
 * A field, with the lines that continue it.
 *
 * @param {string} field
 */
function fieldPattern(field) {
  return new RegExp(`^${field}:(.*(?:\\n[ \\t].*)*)(?:\\n|$)`, "im");
}

/**
 * Returns its output.
 *
 * @param {readonly string[]} args
 * @returns {Promise<string>}
 */
function runApt(args) {
  return new Promise((resolve) => {
    const child = spawn("apt-get", args, {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        output += chunk;
      });
    }
    child.once("error", (error) => resolve(`apt-get could not be started: ${error.message}\n`));
    child.once("close", () => resolve(output));
  });
}
