// npm run image: builds the container image on a Debian machine with buildah, without a registry.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { ImageError, writeImageRoot } from "./image-root.mjs";
import { findNodeOrExit } from "./runtime.mjs";

const usage = `Builds the container image of Sluice from this machine's Node and C library, with buildah.

  npm run image -- [--tag NAME] [--archive FILE] [--storage FOLDER]
  npm run image -- --root FOLDER

  --tag NAME        the name of the image (default sluice:VERSION)
  --archive FILE    also write it to a file, as an OCI archive
  --storage FOLDER  keep images in this folder, and not where podman finds them
  --root FOLDER     write the files of the image to this folder, and build nothing
`;

const options = readOptions();
await ensureInstalledOrExit();
const node = findNodeOrExit();
try {
  if (options.root === undefined) await buildImage();
  else await writeImageRoot(path.resolve(options.root), node);
} catch (error) {
  if (!(error instanceof ImageError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}

function readOptions() {
  try {
    const text = /** @type {const} */ ({ type: "string" });
    const { values } = parseArgs({
      options: { tag: text, archive: text, storage: text, root: text, help: { type: "boolean", short: "h" } },
    });
    if (values.help === true) {
      process.stdout.write(usage);
      process.exit(0);
    }
    return values;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${usage}`);
    process.exit(2);
  }
}

async function buildImage() {
  const { version } = JSON.parse(readFileSync(path.join(repositoryRoot, "packages/cli/package.json"), "utf8"));
  const tag = options.tag ?? `sluice:${version}`;
  const context = mkdtempSync(path.join(tmpdir(), "sluice-image-"));
  try {
    await writeImageRoot(context, node);
    const file = path.join(context, "Containerfile");
    writeFileSync(file, lastStage(readFileSync(path.join(repositoryRoot, "deploy/image/Containerfile"), "utf8")));
    const revision = spawnSync("git", ["rev-parse", "HEAD"], { cwd: repositoryRoot, encoding: "utf8" }).stdout?.trim();
    const args = [`VERSION=${version}`, `REVISION=${revision || "unknown"}`].flatMap((arg) => ["--build-arg", arg]);
    // Docker's format, because OCI's has no health check. Nothing runs during this build, so it needs no isolation.
    buildah(["bud", "--format", "docker", "--isolation", "chroot", ...args, "--file", file, "--tag", tag, context]);
    if (options.archive !== undefined)
      buildah(["push", "--quiet", tag, `oci-archive:${path.resolve(options.archive)}:${tag}`]);
    process.stdout.write(`${tag}\n`);
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
}

/**
 * The last stage of the Containerfile, whose files are next to it and not in another stage.
 *
 * @param {string} text
 */
function lastStage(text) {
  const start = text.lastIndexOf("\nFROM scratch\n") + 1;
  if (start === 0) throw new ImageError("deploy/image/Containerfile has no stage FROM scratch");
  return text.slice(start).replaceAll("COPY --from=build /rootfs/", "COPY ");
}

/** @param {readonly string[]} args */
function buildah(args) {
  const { storage } = options;
  const place =
    storage === undefined ? [] : ["--root", path.join(storage, "root"), "--runroot", path.join(storage, "run")];
  const { status, error, stderr } = spawnSync("buildah", [...place, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (error !== undefined && "code" in error && error.code === "ENOENT")
    throw new ImageError(
      "buildah is not installed. Install it (apt-get install buildah), or build deploy/image/Containerfile",
    );
  if (status !== 0) throw new ImageError(`buildah ${args[0]} failed:\n${stderr}`);
}
