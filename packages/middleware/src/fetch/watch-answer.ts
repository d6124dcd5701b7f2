import { clientLeft } from "../client-left.ts";
import type { Sent } from "../rate-limit-options.ts";

/**
 * The answer with a body that is counted as it is read, without reading ahead. Reports once how much was sent: when all of
 * it was read, when reading failed or was cancelled, or when the client left.
 */
export function watchAnswer(request: Request, response: Response, done: (sent: Sent) => void): Response {
  const { status, body } = response;
  const { signal } = request;
  if (signal.aborted) {
    done({ status: clientLeft, bytes: 0 });
    return response;
  }
  // A HEAD request gets no body, so the server never reads it. After 101 the connection is no longer HTTP.
  if (body === null || request.method === "HEAD" || status === 101) {
    done({ status, bytes: 0 });
    return response;
  }
  let bytes = 0;
  let reported = false;
  const report = (): void => {
    if (reported) return;
    reported = true;
    signal.removeEventListener("abort", report);
    done({ status, bytes });
  };
  // Some servers neither read nor cancel the body once the client is gone.
  signal.addEventListener("abort", report);
  const reader = body.getReader();
  const counted = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const next = await reader.read().catch((error: unknown) => {
          report();
          throw error;
        });
        if (next.done) {
          controller.close();
          report();
        } else {
          bytes += next.value.byteLength;
          controller.enqueue(next.value);
        }
      },
      cancel: (reason) => {
        report();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(counted, response);
}
