import type { NextProxy, ProxyConfig } from "next/server.js";
import { grantWish } from "./limited.ts";

export const proxy: NextProxy = (request, event) => grantWish(request).proxy?.(request, event);

/** Only where a test wants it, because Next holds uploads back for a proxy. */
export const config: ProxyConfig = {
  matcher: [{ source: "/:path*", has: [{ type: "header", key: "x-at", value: "proxy" }] }],
};
