import { SluiceError } from "../errors.ts";
import { maxCost } from "./check-request.ts";

/** Refuses a cost that is not a whole number from 1 to 100 000; 0 passes in a preview. */
export function checkCost(cost: unknown, preview: boolean): void {
  if (typeof cost === "number" && Number.isInteger(cost) && cost <= maxCost && cost >= (preview ? 0 : 1)) return;
  const shown = typeof cost === "number" ? String(cost) : (JSON.stringify(cost)?.slice(0, 64) ?? typeof cost);
  const message = `must be a whole number from 1 to ${maxCost}${cost === 0 ? " (0 only in a preview)" : ""}, not ${shown}`;
  throw new SluiceError("invalid_request", `cost ${message}`, [{ path: ["cost"], message }]);
}
