import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

/** A file of the console, in memory. */
export interface ConsoleFile {
  readonly type: string;
  readonly etag: string;
  /** Whether its name changes with its content. */
  readonly isHashed: boolean;
  /** Its bytes in an encoding that the client accepts, and that encoding; undefined for none. */
  encoded(accepted: string): Promise<{ readonly bytes: Buffer; readonly encoding: string | undefined }>;
}

/** The built console, by paths such as `assets/index-1a2b.js`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

/** Larger or more is not our console. */
const maxBytes = 16 * 1024 * 1024;
const maxFiles = 500;
/** Anything smaller fits into one packet as it is. */
const minCompressedBytes = 1_024;

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".webmanifest": "application/manifest+json; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};

/** What is worth compressing; the other types are compressed already. */
const compressible = /^(text|application)\/|svg/;

/** Where `@sluice/console` was built. Undefined if the package is not installed. */
export function findConsoleFolder(): string | undefined {
  try {
    return join(dirname(fileURLToPath(import.meta.resolve("@sluice/console/package.json"))), "dist");
  } catch {
    return undefined;
  }
}

/**
 * Reads the built console once: what is served later is never looked up on the disk. Throws if it is too large.
 */
export async function readConsoleFiles(folder: string): Promise<ConsoleFiles | "missing"> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => !path.endsWith(".map"));
  if (paths.length > maxFiles) throw new Error(`${folder} has ${paths.length} files; at most ${maxFiles} are served`);
  const read = new Map<string, Buffer>();
  let bytes = 0;
  for (const path of paths) {
    const content = await readFile(path);
    bytes += content.length;
    if (bytes > maxBytes) throw new Error(`${folder} has more than ${maxBytes} bytes, which is the most`);
    read.set(path.slice(folder.length + 1).replaceAll("\\", "/"), content);
  }
  if (!read.has("index.html")) return "missing";
  const files = new Map<string, ConsoleFile>();
  for (const [path, content] of read) {
    const type = types[extname(path)];
    if (type !== undefined) files.set(path, consoleFile(path, type, content, read));
  }
  return files;
}

function consoleFile(path: string, type: string, plain: Buffer, all: ReadonlyMap<string, Buffer>): ConsoleFile {
  const encodings = new Map<string, Promise<Buffer>>();
  const isCompressed = plain.length >= minCompressedBytes && compressible.test(type);
  /** Compressed by the build, or once when it is first asked for. */
  const encode = (encoding: Encoding): Promise<Buffer> => {
    const known = encodings.get(encoding.name);
    if (known !== undefined) return known;
    const built = all.get(path + encoding.suffix);
    const bytes = built === undefined ? encoding.compress(plain) : Promise.resolve(built);
    encodings.set(encoding.name, bytes);
    return bytes;
  };
  return {
    type,
    etag: `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`,
    isHashed: path.startsWith("assets/"),
    async encoded(accepted) {
      const encoding = isCompressed ? chooseEncoding(accepted) : undefined;
      if (encoding === undefined) return { bytes: plain, encoding: undefined };
      return { bytes: await encode(encoding), encoding: encoding.name };
    },
  };
}

interface Encoding {
  readonly name: "br" | "gzip";
  readonly suffix: string;
  compress(plain: Buffer): Promise<Buffer>;
}

/** The best first. */
const encodings: readonly Encoding[] = [
  {
    name: "br",
    suffix: ".br",
    compress: (plain) => promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  },
  { name: "gzip", suffix: ".gz", compress: (plain) => promisify(gzip)(plain, { level: 9 }) },
];

/** An encoding that `Accept-Encoding` names, and does not refuse with `q=0`. */
function chooseEncoding(accepted: string): Encoding | undefined {
  const names = new Set(
    accepted.split(",").flatMap((part) => {
      const [name = "", ...parameters] = part.split(";").map((one) => one.trim().toLowerCase());
      return parameters.some((one) => /^q=0(\.0*)?$/.test(one)) ? [] : [name];
    }),
  );
  return encodings.find(({ name }) => names.has(name));
}
