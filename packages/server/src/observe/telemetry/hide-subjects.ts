import { createHmac, randomBytes } from "node:crypto";

/** Dimensions that do not identify the caller. */
const harmless: ReadonlySet<string> = new Set(["method", "tier", "region"]);

/** Values of dimensions as they may be logged. */
export type HideSubjects = (dimensions: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;

/** A limit's subject as it may be shown. */
export type ShowSubject = (subject: string) => string;

/**
 * Subjects as short hashes under a key of this process: the same subject has the same hash until the process ends, and
 * a reader cannot find the subject by trying. The endpoint is hashed as well, because paths contain ids.
 */
export function createHideSubjects(key: Buffer = randomBytes(32)): HideSubjects {
  const hash = createHash(key);
  return (dimensions) =>
    Object.fromEntries(
      Object.entries(dimensions).map(([name, value]) => [name, harmless.has(name) ? value : hash(value)]),
    );
}

/** The same for the subject of a limit. A limit without dimensions has an empty one, which stays empty. */
export function createHideSubject(key: Buffer = randomBytes(32)): ShowSubject {
  const hash = createHash(key);
  return (subject) => (subject === "" ? subject : hash(subject));
}

function createHash(key: Buffer): (value: unknown) => string {
  return (value) => `#${createHmac("sha256", key).update(String(value)).digest("hex").slice(0, 12)}`;
}
