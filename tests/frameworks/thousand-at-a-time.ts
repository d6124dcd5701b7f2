/**
 * A body in pieces of 1 000 bytes, made when they are asked for and not before. One that does not end keeps who reads it
 * waiting.
 */
export function thousandAtATime(
  pieces: number,
  { ends = true, onPull = (): void => {} } = {},
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = pieces;
  return new ReadableStream(
    {
      pull: async (controller) => {
        onPull();
        if (left-- > 0) controller.enqueue(new TextEncoder().encode("x".repeat(1000)));
        else if (ends) controller.close();
        else await new Promise(() => {});
      },
    },
    { highWaterMark: 0 },
  );
}
