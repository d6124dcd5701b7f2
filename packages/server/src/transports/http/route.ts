import type { Shape } from "sluice";
import type { Handler } from "./exchange.ts";
import type { SchemaName } from "./schemas.ts";

/** One entry of the route table: what is asked, who answers, and what the documentation says of it. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly summary: string;
  readonly handle: Handler;
  /** What a body may be: one of these. Absent where there is none. */
  readonly bodies?: readonly Shape<unknown>[];
  /** Request headers that are looked at, and what for. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent: 64 KiB. */
  readonly maxBodyBytes?: number;
  /** What is answered when all goes well, by status. What goes wrong is the same everywhere. */
  readonly answers: Readonly<Record<number, Answer>>;
}

export interface Answer {
  readonly description: string;
  /** One of these schemas, or text of another type. */
  readonly content: readonly SchemaName[] | "text/plain" | "application/json";
  /** Whether it is given as text as well, to who accepts only that. */
  readonly alsoText?: boolean;
  readonly rateLimitHeaders?: boolean;
}
