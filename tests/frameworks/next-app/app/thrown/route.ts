import { limited } from "../../limited.ts";

export const GET = limited(() => {
  throw new Error("broken");
});
