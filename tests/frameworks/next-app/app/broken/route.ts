import { limited } from "../../limited.ts";

/** An app that answers its errors itself, because what Next answers to them has no header fields of others. */
export const GET = limited(() => {
  try {
    throw new Error("broken");
  } catch {
    return new Response("broken", { status: 500 });
  }
});
