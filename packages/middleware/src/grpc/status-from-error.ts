import { Metadata, status } from "@grpc/grpc-js";

export interface EndingStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata | null;
  /** The app threw this status on purpose, as in `{ code: status.UNAUTHENTICATED, details: "…" }`. */
  readonly meant: boolean;
}

/** The status of a call whose limit threw: the error's own if it carries one, as handlers' errors may, else UNKNOWN. */
export function statusFromError(error: unknown): EndingStatus {
  const { code, details, metadata } = (error ?? {}) as Readonly<Record<string, unknown>>;
  // Database errors have numeric codes as well, but no details.
  if (typeof details !== "string" || typeof code !== "number" || status[code] === undefined || code === status.OK) {
    return { code: status.UNKNOWN, details: "Unknown error", metadata: null, meant: false };
  }
  return { code, details, metadata: metadata instanceof Metadata ? metadata : null, meant: true };
}
