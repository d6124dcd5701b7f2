import type { JsonSchema, Shape } from "sluice";
import type { Permission } from "../../access/roles.ts";
import type { Handler, HttpContext } from "./exchange.ts";
import type { BodyType } from "./read-body.ts";
import type { SchemaName } from "./schemas.ts";

/**
 * One entry of a route table: what is asked, who answers, and what the documentation says of it. `Context` is what handlers may
 * ask, `Name` what answers are called that the documentation has schemas of.
 */
export interface Route<Context = HttpContext, Name extends string = SchemaName> {
  /** `GET` answers HEAD as well. */
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Methods that are answered like the first, and need no description of their own. */
  readonly alsoMethods?: readonly string[];
  /** `{id}` stands for any text without a slash, which in the text itself is `%2F`. */
  readonly path: string;
  readonly summary: string;
  readonly handle: Handler<Context>;
  /** What a caller needs to be allowed to do; `nothing` for what load balancers ask. */
  readonly needs: Permission | "nothing";
  /** What a body may be: one of these. Absent where there is none. */
  readonly bodies?: readonly Shape<unknown>[];
  /** Whether a body must be there. Absent: yes. */
  readonly bodyOptional?: boolean | undefined;
  /** What a body may be written in. Absent: JSON. `untyped`: JSON, whatever its content type says. */
  readonly bodyTypes?: readonly BodyType[] | "untyped" | undefined;
  /** Whether the handler is given the body as text, in `yaml`, whatever it is written in: JSON is YAML, too. */
  readonly bodyAsText?: boolean | undefined;
  /** Request headers that are looked at, and what for. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters of the query: what they mean, or with that their schema. */
  readonly query?: Readonly<Record<string, string | JsonSchema>>;
  /** What the parameters of the path mean, where the documentation says so. */
  readonly pathParameters?: Readonly<Record<string, string>>;
  /** Whether the documentation tells callers to go elsewhere. */
  readonly isDeprecated?: boolean | undefined;
  /** Absent: 64 KiB. */
  readonly maxBodyBytes?: number;
  /** What is answered when all goes well, by status. What goes wrong is the same everywhere. */
  readonly answers: Readonly<Record<number, Answer<Name>>>;
}

export interface Answer<Name extends string = SchemaName> {
  readonly description: string;
  /** One of these schemas, or text of another type, or no body. */
  readonly content: readonly Name[] | "text/plain" | "application/json" | "application/yaml" | "nothing";
  /** Whether it is given as text as well, to who accepts only that. */
  readonly alsoText?: boolean;
  readonly rateLimitHeaders?: boolean;
  /** Further headers of the answer, and what they tell. */
  readonly headers?: Readonly<Record<string, string>>;
}
