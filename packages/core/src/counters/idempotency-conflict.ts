import { SluiceError } from "../errors.ts";

export function idempotencyConflict(id: string): SluiceError {
  return new SluiceError(
    "idempotency_conflict",
    `request id ${JSON.stringify(id)} was already used for another request; use a new id for each different request`,
    [{ path: ["id"], message: "was already used for another request" }],
  );
}
