import type { Shape } from "sluice";
import type { Permission } from "../../access/roles.ts";
import type { Handler } from "./exchange.ts";
import type { SchemaName } from "./schemas.ts";

/** One entry of the route table: what is asked, who answers, and what the documentation says of it. */
export interface Route {
  /** `GET` answers HEAD as well. */
  readonly method: "GET" | "POST";
  /** Methods that are answered like the first, and need no description of their own. */
  readonly alsoMethods?: readonly string[];
  readonly path: string;
  readonly summary: string;
  readonly handle: Handler;
  /** What a caller needs to be allowed to do; `nothing` for what load balancers ask. */
  readonly needs: Permission | "nothing";
  /** What a body may be: one of these. Absent where there is none. */
  readonly bodies?: readonly Shape<unknown>[];
  /** Request headers that are looked at, and what for. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters of the query, and what they mean. */
  readonly query?: Readonly<Record<string, string>>;
  /** Absent: 64 KiB. */
  readonly maxBodyBytes?: number;
  /** What is answered when all goes well, by status. What goes wrong is the same everywhere. */
  readonly answers: Readonly<Record<number, Answer>>;
}

export interface Answer {
  readonly description: string;
  /** One of these schemas, or text of another type, or no body. */
  readonly content: readonly SchemaName[] | "text/plain" | "application/json" | "nothing";
  /** Whether it is given as text as well, to who accepts only that. */
  readonly alsoText?: boolean;
  readonly rateLimitHeaders?: boolean;
  /** Further headers of the answer, and what they tell. */
  readonly headers?: Readonly<Record<string, string>>;
}
