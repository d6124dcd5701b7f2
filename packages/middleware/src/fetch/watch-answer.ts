import { clientLeft } from "../client-left.ts";
import type { Sent } from "../rate-limit-options.ts";

/**
 * The answer with a body that is counted while it is read, and no faster. Tells once what was sent: when all of it was read,
 * when reading failed or was given up, or when the client left.
 */
export function watchAnswer(request: Request, response: Response, done: (sent: Sent) => void): Response {
  const { status, body } = response;
  const { signal } = request;
  if (signal.aborted) {
    done({ status: clientLeft, bytes: 0 });
    return response;
  }
  // Of a HEAD request nothing is sent, and nobody reads the body. After 101 there is no answer but a conversation.
  if (body === null || request.method === "HEAD" || status === 101) {
    done({ status, bytes: 0 });
    return response;
  }
  let bytes = 0;
  let told = false;
  const tell = (): void => {
    if (told) return;
    told = true;
    signal.removeEventListener("abort", tell);
    done({ status, bytes });
  };
  // Not every server reads or cancels the body of an answer for which there is no client any more.
  signal.addEventListener("abort", tell);
  const reader = body.getReader();
  const counted = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const next = await reader.read().catch((error: unknown) => {
          tell();
          throw error;
        });
        if (next.done) {
          controller.close();
          tell();
        } else {
          bytes += next.value.byteLength;
          controller.enqueue(next.value);
        }
      },
      cancel: (reason) => {
        tell();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(counted, response);
}
