import type { NextProxy, ProxyConfig } from "next/server.js";
import { findSetup } from "./limited.ts";

export const proxy: NextProxy = (request, event) => findSetup(request).proxy?.(request, event);

/** Only if a test requests it, because Next holds uploads back for a proxy. */
export const config: ProxyConfig = {
  matcher: [{ source: "/:path*", has: [{ type: "header", key: "x-at", value: "proxy" }] }],
};
