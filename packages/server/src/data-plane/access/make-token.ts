import { hash, randomBytes } from "node:crypto";

/** What every token begins with, by which a leaked one is found. */
const tokenPrefix = "sluice_";
const tokenBytes = 32;

/** A new token: 256 bits that nobody guesses. */
export function makeToken(): string {
  return `${tokenPrefix}${randomBytes(tokenBytes).toString("base64url")}`;
}

/** What is kept of a token: its SHA-256 in hex. */
export function digestOfToken(token: string): string {
  return hash("sha256", token, "hex");
}
