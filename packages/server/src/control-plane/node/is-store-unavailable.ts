import { PolicyStoreUnavailable } from "@sluice/sql";
import { SluiceError } from "sluice";

/** Whether an error means that the policy store is unavailable, and nothing else is wrong. */
export function isStoreUnavailable(error: unknown): boolean {
  if (error instanceof SluiceError) return error.code === "policy_store_unavailable";
  return error instanceof PolicyStoreUnavailable;
}
