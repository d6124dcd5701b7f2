import { Metadata, status } from "@grpc/grpc-js";

export interface EndingStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata | null;
  /** The app threw this status on purpose, as in `{ code: status.UNAUTHENTICATED, details: "…" }`. */
  readonly meant: boolean;
}

/** How a call ends whose limit threw: with a status where the error is one, as errors of handlers are, else untold. */
export function statusFromError(error: unknown): EndingStatus {
  const { code, details, metadata } = (error ?? {}) as Readonly<Record<string, unknown>>;
  // Errors of databases have numbers for codes as well, but no details.
  if (typeof details !== "string" || typeof code !== "number" || status[code] === undefined || code === status.OK) {
    return { code: status.UNKNOWN, details: "Unknown error", metadata: null, meant: false };
  }
  return { code, details, metadata: metadata instanceof Metadata ? metadata : null, meant: true };
}
