import type { GrpcEngine } from "../clients/contract/grpc-engines.ts";
import type { JudgedCase } from "./judge-results.ts";

/** Something that the machine lacks; the message says what, and what to do. */
export class Missing extends Error {
  override readonly name = "Missing";
}

/** What one part of a run found out about one engine. */
export interface PartResult {
  readonly part: PartName;
  /** Empty for a part that has nothing to do with one. */
  readonly engine: string;
  /** Who took part: `h2spec`, `grpc-go`, `Envoy`. */
  readonly peer: string;
  readonly version: string;
  readonly cases: readonly JudgedCase[];
  readonly problems: readonly string[];
}

export const partNames = ["h2spec", "clients", "grpc-go", "tonic", "envoy", "kafka"] as const;
export type PartName = (typeof partNames)[number];

/** One part of `npm run conformance`. */
export interface ConformancePart {
  readonly name: PartName;
  /** For `--help`. */
  readonly summary: string;
  /** Throws `Missing` if the machine cannot play it. */
  play(engine: GrpcEngine, progress: (text: string) => void): Promise<readonly PartResult[]>;
}
