import { hash, randomBytes } from "node:crypto";

/** The prefix of every token, by which a leaked one is found. */
const tokenPrefix = "sluice_";
const tokenBytes = 32;

/** A new token: 256 random bits. */
export function makeToken(): string {
  return `${tokenPrefix}${randomBytes(tokenBytes).toString("base64url")}`;
}

/** What is stored of a token: its SHA-256 in hex. */
export function tokenDigest(token: string): string {
  return hash("sha256", token, "hex");
}
