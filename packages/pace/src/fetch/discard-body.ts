/** Longer bodies are cut off rather than read: a new connection costs less. */
const maxReadBytes = 64 * 1024;

/**
 * Reads an answer's body to its end in the background, so that its connection is free for the next attempt. The function
 * it returns stops that, whether or not the body has ended.
 */
export function discardBody(body: ReadableStream<Uint8Array> | null | undefined): () => void {
  if (!body || body.locked) return () => undefined;
  const reader = body.getReader();
  const cancel = (): void => {
    reader.cancel().catch(() => undefined);
  };
  const drain = async (): Promise<void> => {
    for (let read = 0; read <= maxReadBytes; ) {
      const { done, value } = await reader.read();
      if (done) return;
      read += value.byteLength;
    }
    cancel();
  };
  drain().catch(() => undefined);
  return cancel;
}
