import type { Limits, NextRateLimitOptions } from "@sluice/middleware/next";
import type { NextProxy } from "next/server.js";

/** How a test wants the app to be limited, and where. */
export interface Wish {
  readonly at: "routes" | "proxy";
  readonly limits: Limits;
  readonly options: NextRateLimitOptions;
  /** The app's own proxy. */
  readonly proxy?: NextProxy | undefined;
}

/** Tests run in the same process, and say in these headers which of their wishes a request is about, and its place. */
export const wishHeader = "x-wish";
export const placeHeader = "x-at";

/** A module of Next's may be there several times; what is kept by the process is there once. */
export function keptByProcess<Kept>(name: string): Map<string, Kept> {
  const kept = globalThis as { sluiceNextApp?: Record<string, Map<string, unknown>> };
  kept.sluiceNextApp ??= {};
  kept.sluiceNextApp[name] ??= new Map();
  return kept.sluiceNextApp[name] as Map<string, Kept>;
}

export function wishes(): Map<string, Wish> {
  return keptByProcess("wishes");
}
