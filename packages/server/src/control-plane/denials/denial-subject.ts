import { createHash } from "node:crypto";
import { isSecretName } from "../../observe/telemetry/secret-names.ts";
import { canonicalSubject } from "../documents/canonical-subject.ts";

/**
 * A subject as denials are stored and found by: in its canonical form. Of an API key, a token and the like only a digest is
 * stored, so that no reader of denials learns one, and its holder still finds them.
 */
export function denialSubject(dimension: string, value: string, ipv6PrefixBits: number | undefined): string {
  if (!isSecretName(dimension)) return canonicalSubject(dimension, value, ipv6PrefixBits);
  return `sha256:${createHash("sha256").update(value).digest("hex").slice(0, 16)}`;
}
