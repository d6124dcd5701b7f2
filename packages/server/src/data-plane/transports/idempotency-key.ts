import type { CheckRequest } from "sluice";

/** How long an id from a header or from metadata is remembered; one in the body, ten minutes. */
const headerIdTtlMs = 5 * 60 * 1000;

/** The header, and gRPC metadata, that names a request which may be sent again. */
export const idempotencyHeaderName = "x-idempotency-key";

type Id = Pick<CheckRequest, "id" | "idTtlMs">;

const none: Id = {};

/**
 * The id in `X-Idempotency-Key`, which counts only if the server is configured to trust it: a client that chooses ids
 * passes for free.
 */
export function headerId(
  request: { readonly headers: Readonly<Record<string, unknown>> },
  context: { readonly idempotencyHeader: boolean },
): Id {
  return context.idempotencyHeader ? idFromText(request.headers[idempotencyHeaderName]) : none;
}

/** The same for a text that was read already. */
export function idFromText(id: unknown): Id {
  return typeof id === "string" && id !== "" ? { id, idTtlMs: headerIdTtlMs } : none;
}
