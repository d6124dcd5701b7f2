import { PolicyStoreUnavailable } from "@sluice/sql";
import { SluiceError } from "sluice";

/** Whether an error says that the policy store cannot be asked now, and nothing else is wrong. */
export function isStoreAway(error: unknown): boolean {
  if (error instanceof SluiceError) return error.code === "policy_store_unavailable";
  return error instanceof PolicyStoreUnavailable;
}
