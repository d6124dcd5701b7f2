import type { Limits, NextRateLimitOptions } from "@sluice/middleware/next";
import type { NextProxy } from "next/server.js";

/** How a test wants the app to be limited, and where. */
export interface RequestedSetup {
  readonly at: "routes" | "proxy";
  readonly limits: Limits;
  readonly options: NextRateLimitOptions;
  /** The app's own proxy. */
  readonly proxy?: NextProxy | undefined;
}

/** Tests run in the same process, and name in these headers the setup that a request uses, and its place. */
export const setupHeader = "x-setup";
export const placeHeader = "x-at";

/** Next may load a module several times; a map stored in the process exists once. */
export function processMap<Value>(name: string): Map<string, Value> {
  const maps = globalThis as { sluiceNextApp?: Record<string, Map<string, unknown>> };
  maps.sluiceNextApp ??= {};
  maps.sluiceNextApp[name] ??= new Map();
  return maps.sluiceNextApp[name] as Map<string, Value>;
}

export function requestedSetups(): Map<string, RequestedSetup> {
  return processMap("requestedSetups");
}
