import { SluiceError } from "sluice";

/**
 * Whether a check failed because of the path in it: too long, or with too many readings. A client chose that path, so a
 * caller that lets requests pass without an answer must be given one: a denial.
 */
export function isUnreadablePath(error: unknown): boolean {
  if (!(error instanceof SluiceError) || error.code !== "invalid_request") return false;
  return error.problems.some(({ path }) => path.at(-2) === "dimensions" && path.at(-1) === "endpoint");
}
