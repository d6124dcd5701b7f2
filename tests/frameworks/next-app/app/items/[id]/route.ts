import type { NextRequest } from "next/server.js";
import { limited } from "../../../limited.ts";

export const GET = limited(async (_request: NextRequest, { params }: { readonly params: Promise<{ id: string }> }) => {
  const { id } = await params;
  return new Response(decodeURIComponent(id));
});
