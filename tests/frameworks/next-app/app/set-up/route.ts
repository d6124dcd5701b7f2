import type { NextRequest } from "next/server.js";
import { grantWish } from "../../limited.ts";

/** Sets the app up as the test wants it, and tells what is wrong with that. */
export const GET = (request: NextRequest): Response => {
  try {
    grantWish(request);
    return new Response(null, { status: 204 });
  } catch (error) {
    return new Response((error as Error).message, { status: 400 });
  }
};
