import type { NextRequest } from "next/server.js";
import { findSetup } from "../../limited.ts";

/** Sets the app up as the test requests, and reports mistakes in that setup. */
export const GET = (request: NextRequest): Response => {
  try {
    findSetup(request);
    return new Response(null, { status: 204 });
  } catch (error) {
    return new Response((error as Error).message, { status: 400 });
  }
};
