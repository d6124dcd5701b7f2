import { limited } from "../../limited.ts";

export const GET = limited(() => {
  let left = 3;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (left-- > 0) controller.enqueue(new TextEncoder().encode("x".repeat(1000)));
      else controller.close();
    },
  });
  return new Response(body);
});
